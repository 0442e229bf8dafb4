// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// vms answers about virtual machines.
func (e *Engine) vms(r request) (string, content, *fault) {
	if r.part(1) == "" {
		if r.Method == http.MethodPost {
			return e.add(r)
		}
		var all []content
		for _, i := range e.instances {
			all = append(all, e.shown(i, r.follow))
		}
		return e.list(r, "vm", all)
	}
	i := e.instance(r.part(1))
	if i == nil {
		return "", nil, absent("VM: id=" + r.part(1))
	}
	switch part := r.part(2); {
	case part == "" && r.Method == http.MethodGet:
		return "vm", e.shown(i, r.follow), nil
	case part == "" && r.Method == http.MethodPut:
		return e.edit(i, r)
	case part == "" && r.Method == http.MethodDelete:
		return e.drop(i)
	case part == "nics":
		return e.nics(i, r)
	case part == "tags":
		return e.tagsOf(i, r)
	case part == "reporteddevices":
		return e.list(r, "reported_device", reported(i))
	case part == "diskattachments":
		return e.attachments(i, r)
	case r.Method == http.MethodPost:
		return e.act(i, part, r)
	}
	return "", nil, absent(r.URL.Path)
}

// shown is what is told of an instance.
func (e *Engine) shown(i *instance, follow []string) content {
	c := content{
		"id": i.id, "href": root + "/vms/" + i.id, "name": i.name, "status": i.status, "cluster": content{"id": i.cluster}, "template": content{"id": i.template},
		"creation_time": i.created.UnixMilli(), "comment": text(i.fields, "comment"), "description": text(i.fields, "description"), "type": cmp.Or(text(i.fields, "type"), "server"),
		"memory": max(gib, whole(i.fields, "memory")), "(tag)": i.tags,
		"delete_protected": text(i.fields, "delete_protected") == "true",
		"cpu":              topology(int(max(1, whole(i.fields, "cpu", "topology", "sockets"))), int(max(1, whole(i.fields, "cpu", "topology", "cores"))), int(max(1, whole(i.fields, "cpu", "topology", "threads")))),
		"os":               content{"type": "rhcos_x64"}, "memory_policy": content{"guaranteed": max(gib, whole(i.fields, "memory_policy", "guaranteed")), "max": int64(64 * gib), "ballooning": true},
	}
	if id := text(i.fields, "instance_type", "id"); id != "" {
		c["instance_type"] = content{"id": id}
	}
	for _, name := range []string{"initialization", "custom_properties", "placement_policy"} {
		if of, is := i.fields[name].(content); is {
			c[name] = of
		}
	}
	if slices.Contains(follow, "nics") {
		c["nics"] = within("nic", e.cardsOf(i))
	}
	if slices.Contains(follow, "tags") {
		c["tags"] = within("tag", e.tagsIn(i))
	}
	if slices.Contains(follow, "reported_devices") {
		c["reported_devices"] = within("reported_device", reported(i))
	}
	return c
}

// reported is what the guest's agent says: a bridge over the network card has its address, and Pods have theirs.
func reported(i *instance) []content {
	if i.ip == "" {
		return nil
	}
	said := func(id, name, mac string, ips ...content) content {
		return content{"id": id + i.id, "name": name, "type": "network", "mac": content{"address": mac}, "ips": content{"ip": ips}}
	}
	return []content{
		said("device-", "br-ex", i.cards[0].mac, content{"address": i.ip, "version": "v4"}, content{"address": "fe80::1", "version": "v6"}),
		said("pod-", "veth0", "0a:58:0a:80:00:01", content{"address": "10.128.0.1", "version": "v4"}),
	}
}

// within is a list inside of a thing: nothing, if there is none.
func within(one string, all []content) content {
	if len(all) == 0 {
		return content{}
	}
	return content{one: all}
}

// add makes an instance of a template, whose disks take their time.
func (e *Engine) add(r request) (string, content, *fault) {
	name, cluster := text(r.body, "name"), text(r.body, "cluster", "id")
	n := slices.IndexFunc(e.templates, func(t *template) bool { return t.id == text(r.body, "template", "id") })
	switch {
	case name == "":
		return "", nil, unread("Vm [name] required for add")
	case cluster != Cluster && cluster != Elsewhere:
		return "", nil, unread("Vm [cluster.id|name] required for add")
	case n < 0:
		return "", nil, absent("VmTemplate: id=" + text(r.body, "template", "id"))
	case slices.ContainsFunc(e.instances, func(i *instance) bool { return i.name == name && i.cluster == cluster }): // a data center has one cluster here
		return "", nil, failed("Cannot add VM. The VM name is already in use, please choose a unique name and try again.")
	case e.full:
		return "", nil, failed("Cannot add VM. Low disk space on Storage Domain data.")
	}
	t := e.templates[n]
	i := &instance{id: e.id(1), name: name, cluster: cluster, template: t.id, status: "image_locked", fields: r.body, created: e.now()}
	for _, of := range t.disks {
		d := *of
		d.id, d.status = e.id(7), "locked"
		for _, a := range several(r.body, "disk_attachments", "disk_attachment") {
			if k, _ := a["disk"].(content); text(k, "id") == of.id {
				d.differ(k)
			}
		}
		i.disks = append(i.disks, &d)
	}
	e.disks = append(e.disks, i.disks...)
	for _, of := range t.cards {
		if text(r.body, "instance_type", "id") != "" { // whose cards count, and it has none
			break
		}
		i.cards = append(i.cards, e.card(of.name, of.profile))
	}
	e.instances = append(e.instances, i)
	e.after(e.Lock, func() {
		if e.spoils {
			e.erase(i, 0)
			return
		}
		i.status = "down"
		for _, d := range i.disks {
			d.status = "ok"
		}
	})
	e.catchUp()
	return "vm", e.shown(i, nil), nil
}

func (e *Engine) card(name, profile string) *card {
	id := e.id(8)
	return &card{id, name, profile, fmt.Sprintf("56:6f:00:00:%02x:%02x", e.next/256%256, e.next%256)}
}

// differ changes a disk as a request wants it.
func (d *disk) differ(k content) {
	set := func(field *string, name string) {
		if value := text(k, name); value != "" {
			*field = value
		}
	}
	set(&d.alias, "alias")
	set(&d.description, "description")
	set(&d.format, "format")
	if sparse, err := strconv.ParseBool(text(k, "sparse")); err == nil {
		d.sparse = sparse
	}
	for _, it := range several(k, "storage_domains", "storage_domain") {
		d.domain = text(it, "id")
	}
}

// erase removes an instance at once, and its disks, which are locked and nobody's meanwhile, when that takes its time. Those that leak are broken
// then.
func (e *Engine) erase(i *instance, takes time.Duration) {
	e.instances = slices.DeleteFunc(e.instances, func(other *instance) bool { return other == i })
	for id, all := range e.members {
		e.members[id] = slices.DeleteFunc(all, func(member string) bool { return member == i.id })
	}
	leaks := e.leaks
	for _, d := range i.disks {
		d.status = "locked"
	}
	e.after(takes, func() {
		if !leaks {
			e.disks = slices.DeleteFunc(e.disks, func(d *disk) bool { return slices.Contains(i.disks, d) })
			return
		}
		for _, d := range i.disks {
			d.status = "illegal"
		}
	})
}

func (e *Engine) edit(i *instance, r request) (string, content, *fault) {
	if i.status == "image_locked" {
		return "", nil, failed("Cannot edit VM. VM is locked. Please try again later.")
	}
	if e.frozen {
		return "", nil, failed("Cannot edit VM. At least one of the pinned Hosts is not in the same cluster.")
	}
	for name, v := range r.body {
		i.fields[name] = v
	}
	return "vm", e.shown(i, nil), nil
}

func (e *Engine) drop(i *instance) (string, content, *fault) {
	switch {
	case i.status == "image_locked":
		return "", nil, failed("Cannot remove VM: VM is locked. Please try again in a few minutes.")
	case !slices.Contains([]string{"down", "image_illegal", "unassigned"}, i.status):
		return "", nil, failed("Cannot remove VM. VM is running.")
	case text(i.fields, "delete_protected") == "true":
		return "", nil, failed("Cannot remove VM. Delete protection is enabled. In order to delete, disable Delete protection first.")
	}
	e.erase(i, e.Halt)
	e.catchUp()
	return "action", content{"status": "complete"}, nil
}

// act does what changes the state of an instance.
func (e *Engine) act(i *instance, what string, r request) (string, content, *fault) {
	running := !slices.Contains([]string{"down", "image_locked", "image_illegal", "unassigned", "suspended"}, i.status)
	switch {
	case what == "start" && i.status == "image_locked":
		return "", nil, failed("Cannot run VM. VM is locked. Please try again later.")
	case what == "start" && running:
		return "", nil, failed("Cannot run VM. VM is running.")
	case what == "start" && e.busy:
		return "", nil, failed("Cannot run VM. There is no host that satisfies current scheduling constraints. See below for details:, " +
			"The host a did not satisfy internal filter Memory because its available memory is too low (512 MB) to run the VM.")
	case what == "start" && slices.ContainsFunc(i.disks, func(d *disk) bool { return d.status == "locked" }):
		return "", nil, failed("Cannot run VM: The following disks are locked: %s. Please try again in a few minutes.", i.disks[0].alias)
	case what == "start":
		e.boot(i, "wait_for_launch")
	case what == "stop" && i.status == "image_locked":
		return "", nil, failed("Cannot stop VM. VM is locked. Please try again later.")
	case what == "stop" && (i.status == "saving_state" || i.status == "restoring_state"):
		return "", nil, failed("Cannot stop VM. VM is in saving/restoring state.\n-Please try again when the VM is either up or down.")
	case what == "stop" && (!running && i.status != "suspended" || i.status == "unknown"): // of which the engine does not know that it runs
		return "", nil, failed("Cannot stop VM. VM is not running.")
	case what == "stop" && e.saves && r.body["force"] != true:
		return "", nil, failed("Cannot stop VM. The VM is during a backup operation.")
	case what == "stop":
		i.status = "powering_down"
		e.after(e.Halt, func() {
			if i.status == "powering_down" {
				i.status, i.ip = "down", ""
			}
		})
	case what == "reset" && e.old:
		return "", nil, failed("") // in no words
	case what == "reset" && (!running || slices.Contains([]string{"paused", "not_responding", "unknown", "saving_state", "restoring_state", "wait_for_launch"}, i.status)):
		return "", nil, failed("Cannot reset VM because the VM is in %s status.", i.status)
	case what == "reset" && i.status == "powering_down": // which it takes, and the end comes all the same
	case what == "reset":
		e.boot(i, "reboot_in_progress")
	case what == "autopincpuandnumanodes":
		i.pinned = true
	default:
		return "", nil, absent(what)
	}
	e.catchUp()
	return "action", content{"status": "complete"}, nil
}

func (e *Engine) boot(i *instance, first string) {
	i.status = first
	e.after(e.Boot/2, func() {
		if i.status == first {
			i.status = "powering_up"
		}
	})
	e.after(e.Boot, func() {
		if i.status == "powering_up" || i.status == first {
			i.status = "up"
			if i.ip == "" && len(i.cards) > 0 {
				e.next++
				i.ip = fmt.Sprintf("192.0.%d.%d", e.next/250, e.next%250+1)
			}
		}
	})
}
