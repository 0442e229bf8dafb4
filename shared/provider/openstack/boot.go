// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"cmp"
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// idle reports whether a volume is nobody's and nothing is being done to it.
func (v volume) idle() bool {
	return len(v.Attachments) == 0 && (v.Status == "available" || v.Status == "error" || v.Status == "error_deleting")
}

// haveVolumes makes the volumes, one after the other, and waits a little for the last. It returns their ids by name once
// all can be attached.
func (a *attempt) haveVolumes(ctx context.Context) (ids map[string]string, ready bool, err error) {
	wanted := a.wanted.volumes()
	if len(wanted) == 0 {
		return nil, true, nil
	}
	for {
		have, err := a.ownVolumes(ctx, map[string]string{tagUID: string(a.ref.UID), tagToken: a.ref.Token})
		if err != nil {
			return nil, false, err
		}
		ids, ready = map[string]string{}, true
		for _, w := range wanted {
			v, ok := oldest(have, w.Name)
			switch {
			case !ok:
				a.latest = "volume " + w.Name
				return nil, false, a.makeVolume(ctx, w)
			case v.Status == "error":
				return nil, false, provider.Errorf(provider.Exhausted, "volume %s (%s) is in the state error: Cinder found no place for it, or could not read the image", v.Name, v.ID)
			case v.Status != "available":
				ready = false
			}
			if err := a.sign(ctx, v); err != nil {
				return nil, false, err
			}
			ids[w.Name] = v.ID
		}
		if ready || !pause(ctx, time.Second) {
			return ids, ready, nil
		}
	}
}

// sign writes on a volume which one it is, so that it is told from what is restored from its backups. Where that is denied nothing else
// depends on it.
func (a *attempt) sign(ctx context.Context, v volume) error {
	if v.tag(tagVolume) != "" {
		return nil
	}
	err := a.post(ctx, a.volume, "sign volume "+v.ID, "volumes/"+v.ID+"/metadata", map[string]any{"metadata": map[string]string{tagVolume: v.ID}}, nil)
	if provider.CodeOf(err) == provider.Denied {
		return nil
	}
	return err
}

// oldest returns the volume of a name: where two calls made one each, both take the same.
func oldest(have []volume, name string) (volume, bool) {
	have = slices.DeleteFunc(slices.Clone(have), func(v volume) bool { return v.tag(tagPart) != name })
	if len(have) == 0 {
		return volume{}, false
	}
	return slices.MinFunc(have, func(x, y volume) int { return cmp.Or(cmp.Compare(x.Created, y.Created), cmp.Compare(x.ID, y.ID)) }), true
}

// pause waits while the call has time for that. It reports whether there is time for more.
func pause(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d+reserve {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (a *attempt) makeVolume(ctx context.Context, w wantedVolume) error {
	body := map[string]any{
		"name": a.ref.Name + "-" + w.Name, "size": w.GiB, "metadata": a.ownMetadata(w.Name),
	}
	set(body, "volume_type", w.Type)
	set(body, "availability_zone", w.Zone)
	if w.Name == rootName {
		set(body, "imageRef", a.wanted.Image)
	}
	return a.launch(ctx, "volume "+w.Name, func() error {
		return a.post(ctx, a.volume, "create volume "+w.Name, "volumes", map[string]any{"volume": body}, nil)
	})
}

func set(body map[string]any, name, value string) {
	if value != "" {
		body[name] = value
	}
}

// boot asks for the instance: once in a minute at most, unless it is told no.
func (a *attempt) boot(ctx context.Context, volumes map[string]string, group string) (provider.Instance, error) {
	userData, err := a.userData(ctx, a.wanted.UserData)
	if err != nil {
		return provider.Instance{}, err
	}
	var answer struct {
		Server server `json:"server"`
	}
	err = a.launch(ctx, "instance", func() error {
		return a.post(ctx, a.compute, "create instance", "servers", a.order(volumes, group, userData), &answer)
	})
	if err != nil {
		return provider.Instance{}, err
	}
	if answer.Server.ID == "" {
		return provider.Instance{}, coded("create instance", errEmpty)
	}
	return a.accepted(ctx, server{ID: answer.Server.ID, Status: "BUILD", Task: "scheduling", Created: time.Now()})
}

// order is the request for the instance.
func (a *attempt) order(volumes map[string]string, group string, userData []byte) map[string]any {
	w := a.wanted
	networks := []map[string]any{}
	for _, p := range a.ports {
		networks = append(networks, map[string]any{"port": p.ID})
	}
	server := map[string]any{
		"name": a.ref.Name, "flavorRef": w.Flavor, "networks": networks,
		"tags":     unique(slices.Concat(a.own(), foreign(w.Tags))),
		"metadata": a.metadata(),
	}
	set(server, "key_name", w.Key)
	set(server, "availability_zone", w.Zone)
	if len(userData) > 0 {
		server["user_data"] = base64.StdEncoding.EncodeToString(userData)
	}
	if w.ConfigDrive != nil {
		server["config_drive"] = *w.ConfigDrive
	}
	if w.Root == nil {
		server["imageRef"] = w.Image
	}
	if disks := a.devices(volumes); len(disks) > 0 {
		server["block_device_mapping_v2"] = disks
	}
	order := map[string]any{"server": server}
	if group != "" {
		order["os:scheduler_hints"] = map[string]any{"group": group}
	}
	return order
}

const metaPrimary = "machine-primary-network"

// metadata is what the instance itself can read.
func (a *attempt) metadata() map[string]string {
	m := map[string]string{}
	maps.Copy(m, a.wanted.Metadata)
	if a.wanted.Primary != "" {
		m[metaPrimary] = a.wanted.Primary
	}
	return m
}

// devices lists the disks, the one to boot from first. What Nova attaches goes with the instance.
func (a *attempt) devices(volumes map[string]string) []map[string]any {
	w := a.wanted
	if w.Root == nil && len(w.Disks) == 0 {
		return nil
	}
	root := map[string]any{"boot_index": 0, "delete_on_termination": true, "source_type": "image", "destination_type": "local", "uuid": w.Image}
	if w.Root != nil {
		root["source_type"], root["destination_type"], root["uuid"] = "volume", "volume", volumes[rootName]
	}
	all := []map[string]any{root}
	for _, d := range w.Disks {
		disk := map[string]any{"boot_index": -1, "delete_on_termination": true, "tag": d.Name}
		if d.Local {
			disk["source_type"], disk["destination_type"], disk["volume_size"] = "blank", "local", d.GiB
		} else {
			disk["source_type"], disk["destination_type"], disk["uuid"] = "volume", "volume", volumes[d.Name]
		}
		all = append(all, disk)
	}
	return all
}

// unique drops what is said twice: Nova refuses that.
func unique(tags []string) []string {
	var all []string
	for _, t := range tags {
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}
