// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// The steps between the making of an instance and its first start, in their order. Each begins when the one before has ended.
const (
	stepDisks = "disks"
	stepCards = "network interfaces"
	stepTag   = "tag"
	stepGroup = "affinity groups"
	stepPin   = "pin CPUs"
	noTag     = "no tag" // beside stepTag: it was denied
)

// prepare makes what comes before the first start, step by step, and reports whether one has to be waited for.
func (d *driver) prepare(ctx context.Context, r provider.Ref, req request, i instance, p *progress) (waits bool, err error) {
	for _, step := range []struct {
		name string
		do   func() (waits bool, err error)
	}{
		{stepDisks, func() (bool, error) { return d.disks(ctx, r, req, i, p) }},
		{stepCards, func() (bool, error) { return false, d.cards(ctx, req, i) }},
		{stepTag, func() (bool, error) { return false, d.attach(ctx, i, p) }},
		{stepGroup, func() (bool, error) { return false, d.join(ctx, req, i) }},
		{stepPin, func() (bool, error) { return false, d.pin(ctx, req, i) }},
	} {
		if slices.Contains(p.Done, step.name) {
			continue
		}
		if hurried(ctx) {
			return true, nil
		}
		if waits, err := step.do(); waits || err != nil {
			return waits, err
		}
		p.Done = append(p.Done, step.name)
	}
	return false, nil
}

// naming says which field of the spec a refusal is about.
func naming(p *field.Path, value any, err error) error {
	if err == nil {
		return nil
	}
	return provider.ErrorAfter(provider.CodeOf(err), after(err), "%s: %v: %w", p, value, err)
}

// at returns the path of what belongs to an instance.
func (i instance) at(parts ...string) string { return "/vms/" + i.ID + strings.Join(parts, "") }

// attached returns the disks of an instance.
func (d *driver) attached(ctx context.Context, i instance) ([]attachment, error) {
	all, err := page[attachment](ctx, d.session, "list disks of "+i.Name, i.at("/diskattachments"), "disk_attachment", url.Values{"follow": {"disk"}})
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if !uuids.MatchString(a.ID) {
			return nil, provider.Errorf(provider.Unknown, "list disks of %s: the answer has a disk with the id %.40q", i.Name, a.ID)
		}
	}
	slices.SortFunc(all, func(a, b attachment) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// mostResizes is how often the engine is asked in a row for a size that it takes: what becomes of it later, it says in its events alone.
const mostResizes = 3

// disks gives the disks their marks, by which one that outlives its instance is found, and the first its size.
func (d *driver) disks(ctx context.Context, r provider.Ref, req request, i instance, p *progress) (waits bool, err error) {
	all, err := d.attached(ctx, i)
	if err != nil {
		return false, err
	}
	if len(all) == 0 {
		return false, provider.Errorf(provider.Unknown, "list disks of %s: it has none, and is made of a template that has", i.Name)
	}
	for n, a := range all {
		description, err := describing(i.Mark, a)
		if err != nil {
			return false, err
		}
		alias := prefix(d.account.ClusterID, string(r.UID)) + strconv.Itoa(n+1)
		larger := bool(a.Bootable) && int64(a.Disk.Size) < req.Spec.OSDisk.SizeGB<<30
		switch {
		case a.Disk.Status == "locked":
			return true, nil
		case a.Disk.Status == "illegal":
			return false, provider.Errorf(provider.Exhausted, "create %s: its disk %s is illegal: the engine's events say why", i.Name, a.ID)
		case a.Disk.Alias == alias && a.Disk.Description == description && !larger:
			continue
		}
		change := content{"alias": alias, "description": description}
		if larger {
			if p.Resized == mostResizes {
				p.Resized = 0
				return false, naming(at("os_disk", "size_gb"), req.Spec.OSDisk.SizeGB, provider.Errorf(provider.Exhausted,
					"create %s: the engine took this size %d times, and its disk %s has %d bytes: the engine's events say why", i.Name, mostResizes, a.ID, a.Disk.Size))
			}
			change["provisioned_size"] = req.Spec.OSDisk.SizeGB << 30
		}
		err = d.session.ask(ctx, "name disk of "+i.Name, http.MethodPut, i.at("/diskattachments/", a.ID), nil, content{"disk": change}, nil)
		if err != nil && larger {
			return false, naming(at("os_disk", "size_gb"), req.Spec.OSDisk.SizeGB, err)
		}
		if larger && err == nil {
			p.Resized++
		}
		if err != nil || larger { // which takes its time
			return err == nil, err
		}
	}
	return false, nil
}

// describing returns what stands in the description of one of the disks that the instance with this mark has.
func describing(m mark, a attachment) (string, error) {
	b, err := json.Marshal(mark{Cluster: m.Cluster, UID: m.UID, Of: m.Of, Token: m.Token, ID: a.ID})
	if err != nil {
		return "", fmt.Errorf("write mark: %w", err)
	}
	return string(b), nil
}

// cards replaces the template's network cards by one for each of the spec; without any the template's stay, or with an instance type that
// one's. One without any would never join.
func (d *driver) cards(ctx context.Context, req request, i instance) error {
	want := req.Spec.NetworkInterfaces
	all, err := page[card](ctx, d.session, "list network interfaces of "+i.Name, i.at("/nics"), "nic", nil)
	if err != nil {
		return err
	}
	if len(want) == 0 {
		if len(all) == 0 {
			return provider.Errorf(provider.Exhausted, "%s: there is none, and neither the template nor the instance type gives %s one: name a vNIC profile", at("network_interfaces"), i.Name)
		}
		return nil
	}
	have := map[string]bool{}
	for _, c := range all {
		if kept(want, c) {
			have[c.Name] = true
			continue
		}
		if !uuids.MatchString(c.ID) {
			return provider.Errorf(provider.Unknown, "list network interfaces of %s: the answer has one with the id %.40q", i.Name, c.ID)
		}
		err := d.session.ask(ctx, "remove network interface "+c.Name+" of "+i.Name, http.MethodDelete, i.at("/nics/", c.ID), nil, nil, nil)
		if err != nil && provider.CodeOf(err) != provider.NotFound {
			return err
		}
	}
	for n, w := range want {
		if have[nameOf(n)] {
			continue
		}
		body := content{"name": nameOf(n), "vnic_profile": reference{w.VNICProfileID}}
		err := d.session.ask(ctx, "add network interface to "+i.Name, http.MethodPost, i.at("/nics"), nil, body, nil)
		if says(err, "already in use") { // somebody was faster
			return provider.Errorf(provider.Unknown, "%w: look again", err)
		}
		if err != nil {
			return naming(at("network_interfaces").Index(n).Child("vnic_profile_id"), w.VNICProfileID, err)
		}
	}
	return nil
}

// kept reports whether c is one of those that the spec wants.
func kept(want []providerspec.OvirtNetworkInterface, c card) bool {
	for n, w := range want {
		if c.Name == nameOf(n) {
			return strings.EqualFold(w.VNICProfileID, c.Profile.ID)
		}
	}
	return false
}

// nameOf returns what the n-th network card is called, as OpenShift does.
func nameOf(n int) string { return "nic" + strconv.Itoa(n+1) }

// attach gives i the cluster's tag, by which OpenShift's installer removes what a cluster had. Tags are of the whole engine: who may not make
// or give them has instances without.
func (d *driver) attach(ctx context.Context, i instance, p *progress) error {
	tag := d.tag()
	if tag == "" {
		return nil
	}
	err := d.give(ctx, i, tag)
	if _, refused := errors.AsType[*refusal](err); refused && provider.CodeOf(err) == provider.Denied {
		p.Done = append(p.Done, noTag)
		return nil
	}
	return err
}

func (d *driver) give(ctx context.Context, i instance, tag string) error {
	there := func(path string) (bool, error) {
		all, err := page[named](ctx, d.session, "list tags", path, "tag", nil)
		return slices.ContainsFunc(all, func(t named) bool { return t.Name == tag }), err
	}
	if has, err := there(i.at("/tags")); has || err != nil {
		return err
	}
	known, err := there("/tags")
	if err != nil {
		return err
	}
	if !known {
		body := content{"name": tag, "description": "what OpenShift cluster " + tag + " has"}
		if err := d.session.ask(ctx, "make tag "+tag, http.MethodPost, "/tags", nil, body, nil); err != nil && !refusedWith(err, http.StatusConflict) { // or somebody was faster
			return err
		}
	}
	return d.session.ask(ctx, "tag "+i.Name+" with "+tag, http.MethodPost, i.at("/tags"), nil, content{"name": tag}, nil)
}

// join makes i a member of the spec's affinity groups.
func (d *driver) join(ctx context.Context, req request, i instance) error {
	for n, group := range req.Groups {
		path := "/clusters/" + req.Spec.ClusterID + "/affinitygroups/" + group + "/vms"
		member := func() (bool, error) {
			all, err := page[named](ctx, d.session, "list members of an affinity group", path, "vm", nil)
			return slices.ContainsFunc(all, func(m named) bool { return m.ID == i.ID }), err
		}
		if in, err := member(); err != nil {
			return err
		} else if in {
			continue
		}
		err := d.session.ask(ctx, "add "+i.Name+" to an affinity group", http.MethodPost, path, nil, reference{i.ID}, nil)
		if refusedWith(err, http.StatusConflict) { // somebody was faster, or it stands against another group
			if in, look := member(); look == nil && in {
				continue
			}
		}
		if err != nil {
			return naming(at("affinity_groups_names").Index(n), req.Spec.AffinityGroupsNames[n], err)
		}
	}
	return nil
}

// pin lets the engine fit CPUs and NUMA nodes to a host.
func (d *driver) pin(ctx context.Context, req request, i instance) error {
	if req.Spec.AutoPinningPolicy != "resize_and_pin" {
		return nil
	}
	err := d.session.ask(ctx, "pin CPUs of "+i.Name, http.MethodPost, i.at("/autopincpuandnumanodes"), nil, content{"optimize_cpu_settings": true}, nil)
	return naming(at("auto_pinning_policy"), req.Spec.AutoPinningPolicy, err)
}

// note writes down which instance the mark is of, and which disks are its own.
func (d *driver) note(ctx context.Context, i instance) error {
	m, err := d.known(ctx, i)
	if err != nil {
		return err
	}
	return d.write(ctx, i, m)
}

// known returns the mark of i with its id and its own disks, as it was noted, or else as things are. A mark without them says nothing of what
// became of i since: it may have been started, and the note of it lost.
func (d *driver) known(ctx context.Context, i instance) (mark, error) {
	m := i.Mark
	if m.ID != "" {
		return m, nil
	}
	all, err := d.attached(ctx, i)
	if err != nil {
		return m, err
	}
	for _, a := range all {
		if i.owns(a) {
			m.Disks = append(m.Disks, a.ID)
		}
	}
	m.ID = i.ID
	return m, nil
}

// start lets i run: with its user data, as it never did before.
func (d *driver) start(ctx context.Context, i instance) error {
	err := d.session.ask(ctx, "start "+i.Name, http.MethodPost, i.at("/start"), nil, content{}, nil)
	if says(err, "vm is running.") { // somebody was faster
		return nil
	}
	return err
}

// launched writes down that i was started, be it by people: from now on it is no creation that could go on.
func (d *driver) launched(ctx context.Context, i instance, p progress) error {
	m, err := d.known(ctx, i)
	if err != nil {
		return err
	}
	m.Launched, m.Untagged = true, slices.Contains(p.Done, noTag)
	return d.write(ctx, i, m)
}

// write changes the mark of i.
func (d *driver) write(ctx context.Context, i instance, m mark) error {
	comment, err := m.comment()
	if err != nil {
		return err
	}
	return d.session.ask(ctx, "note on "+i.Name, http.MethodPut, i.at(), nil, content{"comment": comment}, nil)
}
