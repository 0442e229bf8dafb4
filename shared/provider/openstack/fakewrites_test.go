// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
)

// longestText is what Neutron takes of a description.
const longestText = 255

// single is the name of a single thing of a collection.
func single(kind string) string { return strings.TrimSuffix(strings.ReplaceAll(kind, "-", "_"), "s") }

func (f *fake) show(kind, id string) (int, any, http.Header) {
	t, ok := f.things[kind][id]
	if !ok {
		return refuse(http.StatusNotFound, "itemNotFound", "%s %s could not be found.", kind, id)
	}
	if kind == "images" { // Glance's are not wrapped
		return http.StatusOK, t.fields, nil
	}
	return http.StatusOK, map[string]any{single(kind): t.fields}, nil
}

// drop removes at once, or begins to.
func (f *fake) drop(kind, id string) (int, any, http.Header) {
	t, ok := f.things[kind][id]
	switch {
	case !ok:
		return refuse(http.StatusNotFound, "itemNotFound", "%s %s could not be found.", kind, id)
	case kind == "servers" && f.putsOff:
		t.fields["status"] = "SOFT_DELETED"
	case kind == "servers":
		if t.dying.IsZero() {
			t.fields["OS-EXT-STS:task_state"], t.fields["updated"] = "deleting", time.Now().UTC().Format(time.RFC3339)
			if f.forgets--; f.forgets < 0 {
				t.dying = time.Now()
			}
		}
	case kind == "attachments" && f.things["servers"][t.text("instance")] != nil:
		return refuse(http.StatusConflict, "conflictingRequest", "Detach volume from instance %s using the Compute API", t.text("instance"))
	case kind == "attachments":
		f.detach(t.text("volume_id"))
	case kind == "volumes" && (t.text("status") != "available" && t.text("status") != "error"):
		return refuse(http.StatusBadRequest, "badRequest", "Volume status must be available or error")
	case kind == "volumes":
		t.dying, t.fields["status"] = time.Now(), "deleting"
	case kind == "ports" && t.fields["trunk_details"] != nil:
		return refuse(http.StatusConflict, "NeutronError", "Port %s is currently a parent port for trunk.", id)
	case kind == "trunks":
		if p := f.things["ports"][t.text("port_id")]; p != nil {
			delete(p.fields, "trunk_details")
		}
		delete(f.things[kind], id)
	default:
		for _, ip := range f.things["floatingips"] {
			if ip.text("port_id") == id {
				ip.fields["port_id"] = nil
			}
		}
		delete(f.things[kind], id)
	}
	return http.StatusNoContent, nil, nil
}

// change writes fields or tags.
func (f *fake) change(parts []string, asked map[string]any, match string) (int, any, http.Header) {
	t, ok := f.things[parts[0]][parts[1]]
	switch {
	case !ok:
		return refuse(http.StatusNotFound, "NeutronError", "%s %s could not be found.", parts[0], parts[1])
	case len(parts) == 3:
		t.fields["tags"] = asked["tags"]
	case len(parts) == 4:
		name := strings.ReplaceAll(parts[3], "%3D", "=")
		list, _ := t.fields["tags"].([]any)
		t.fields["tags"] = append(list, name)
	case match != "" && match != fmt.Sprintf("revision_number=%v", t.fields["revision_number"]):
		return refuse(http.StatusPreconditionFailed, "NeutronError", "Constrained to %s, but current revision is %v", match, t.fields["revision_number"])
	default:
		fields := asked[single(parts[0])].(map[string]any)
		if text, _ := fields["description"].(string); len([]rune(text)) > longestText {
			return refuse(http.StatusBadRequest, "NeutronError", "Invalid input for description. Reason: '%s' exceeds maximum length of %d.", text, longestText)
		}
		maps.Copy(t.fields, fields)
	}
	if n, ok := t.fields["revision_number"].(int); ok {
		t.fields["revision_number"] = n + 1
	}
	return http.StatusOK, map[string]any{single(parts[0]): t.fields}, nil
}

func (f *fake) make(parts []string, asked map[string]any) (int, any, http.Header) {
	switch {
	case len(parts) == 3 && parts[2] == "metadata":
		return f.annotate(parts[0], parts[1], asked["metadata"].(map[string]any))
	case len(parts) == 3 && parts[2] == "action":
		return f.act(parts[1], asked)
	case parts[0] == "ports":
		return f.makePorts(asked["ports"].([]any))
	case parts[0] == "servers":
		return f.makeServer(asked["server"].(map[string]any), asked["os:scheduler_hints"])
	case parts[0] == "trunks":
		fields := asked["trunk"].(map[string]any)
		p, ok := f.things["ports"][fmt.Sprint(fields["port_id"])]
		if !ok || p.fields["trunk_details"] != nil {
			return refuse(http.StatusConflict, "NeutronError", "Port %v is in use by another trunk.", fields["port_id"])
		}
		id := f.add("trunks", fields)
		p.fields["trunk_details"] = map[string]any{"trunk_id": id}
		return http.StatusCreated, map[string]any{"trunk": fields}, nil
	case parts[0] == "server_groups":
		fields := asked["server_group"].(map[string]any)
		f.add("server_groups", fields)
		return http.StatusOK, map[string]any{"server_group": fields}, nil
	case parts[0] == "volumes":
		fields := asked["volume"].(map[string]any)
		fields["status"], fields["created_at"] = "creating", time.Now().UTC().Format("2006-01-02T15:04:05.000000")
		f.add("volumes", fields)
		return http.StatusAccepted, map[string]any{"volume": fields}, nil
	}
	return refuse(http.StatusNotFound, "itemNotFound", "nothing is made at %v", parts)
}

// detach ends what instances have of a volume.
func (f *fake) detach(volume string) {
	maps.DeleteFunc(f.things["attachments"], func(_ string, t *thing) bool { return t.text("volume_id") == volume })
	v := f.things["volumes"][volume].fields
	v["status"], v["attachments"] = "available", []any{}
	delete(v, "server")
}

// annotate adds metadata to an instance or a volume.
func (f *fake) annotate(kind, id string, metadata map[string]any) (int, any, http.Header) {
	s, ok := f.things[kind][id]
	if !ok {
		return refuse(http.StatusNotFound, "itemNotFound", "%s of %s could not be found.", id, kind)
	}
	have, _ := s.fields["metadata"].(map[string]any)
	all := map[string]any{}
	maps.Copy(all, have)
	maps.Copy(all, metadata)
	s.fields["metadata"] = all
	return http.StatusOK, map[string]any{"metadata": all}, nil
}

func (f *fake) act(id string, asked map[string]any) (int, any, http.Header) {
	s, ok := f.things["servers"][id]
	if !ok {
		return refuse(http.StatusNotFound, "itemNotFound", "Instance %s could not be found.", id)
	}
	if _, force := asked["forceDelete"]; force {
		s.fields["OS-EXT-STS:task_state"], s.dying = "deleting", time.Now()
	} else {
		s.fields["status"], s.born = "HARD_REBOOT", time.Now()
	}
	return http.StatusAccepted, nil, nil
}

// makePorts makes all or none. Unlike tags, which it drops, Neutron takes a description.
func (f *fake) makePorts(all []any) (int, any, http.Header) {
	for _, one := range all {
		fields := one.(map[string]any)
		network := f.things["networks"][fmt.Sprint(fields["network_id"])]
		mac, given := fields["mac_address"]
		if given && (!f.macs || network.text("project_id") != own) {
			return refuse(http.StatusForbidden, "NeutronError", "((rule:create_port and rule:create_port:mac_address)) is disallowed by policy")
		}
		for _, p := range f.things["ports"] {
			if given && p.fields["mac_address"] == mac {
				return refuse(http.StatusConflict, "NeutronError", "Unable to complete operation for network %v. The mac address %v is in use.", fields["network_id"], mac)
			}
		}
	}
	made := []any{}
	for _, one := range all {
		fields := one.(map[string]any)
		fields["tags"], fields["device_id"], fields["revision_number"] = []any{}, "", 1
		fields["created_at"] = time.Now().UTC().Format(time.RFC3339)
		fields["address"] = fmt.Sprintf("10.0.%d.%d", f.writes/250, f.writes%250+len(made)+2)
		f.add("ports", fields)
		made = append(made, maps.Clone(fields))
		f.writes++
	}
	return http.StatusCreated, map[string]any{"ports": made}, nil
}

func (f *fake) makeServer(asked map[string]any, hints any) (int, any, http.Header) {
	if f.quota != 0 && len(f.things["servers"]) >= f.quota {
		return refuse(http.StatusForbidden, "forbidden", "Quota exceeded for instances: Requested 1, but already used %d of %d instances", f.quota, f.quota)
	}
	ids := []string{}
	for _, n := range asked["networks"].([]any) {
		id := fmt.Sprint(n.(map[string]any)["port"])
		p, ok := f.things["ports"][id]
		if !ok {
			return refuse(http.StatusBadRequest, "badRequest", "Port %s could not be found.", id)
		}
		if p.text("device_id") != "" {
			return refuse(http.StatusConflict, "conflictingRequest", "Port %s is still in use.", id)
		}
		ids = append(ids, id)
	}
	flavor := f.things["flavors"][fmt.Sprint(asked["flavorRef"])]
	fields := maps.Clone(asked)
	fields["status"], fields["created"], fields["ports"] = "BUILD", time.Now().UTC().Format(time.RFC3339), ids
	fields["hints"], fields["OS-EXT-STS:task_state"] = hints, "scheduling"
	fields["flavor"] = map[string]any{"original_name": flavor.text("name")}
	id := f.add("servers", fields)
	devices, _ := asked["block_device_mapping_v2"].([]any)
	for _, d := range devices {
		if v, ok := f.things["volumes"][fmt.Sprint(d.(map[string]any)["uuid"])]; ok {
			v.fields["status"], v.fields["server"], v.fields["attachments"] = "in-use", id, []any{map[string]any{"server_id": id}}
			f.add("attachments", map[string]any{"instance": id, "volume_id": v.text("id"), "status": "attached"})
		}
	}
	return http.StatusAccepted, map[string]any{"server": map[string]any{"id": id}}, nil
}

// untagged makes an instance as another system would.
func (f *fake) untagged(metadata map[string]any) (providerID string, exists func() bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.add("servers", map[string]any{
		"name": "somebody-elses", "status": "BUILD", "ports": []string{}, "tags": []any{}, "created": time.Now().UTC().Format(time.RFC3339),
		"flavor": map[string]any{"original_name": "4c12g30d"}, "metadata": metadata,
	})
	return "openstack:///" + id, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.settle()
		_, ok := f.things["servers"][id]
		return ok
	}
}
