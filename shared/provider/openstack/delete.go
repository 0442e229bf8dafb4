// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Delete implements [provider.Driver]: instances first, their ports, trunks and volumes once they are gone.
func (d *driver) Delete(ctx context.Context, r provider.Ref) error {
	ctx, cancel, c, err := d.connect(ctx)
	defer cancel()
	if err != nil {
		return err
	}
	found, err := d.find(ctx, c, r)
	if err != nil {
		return err
	}
	for _, s := range found {
		if err := d.removeInstance(ctx, c, r, s); err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return nil
	}
	there, err := d.removeChildren(ctx, c, r)
	if err != nil {
		return err
	}
	if !there {
		return provider.Errorf(provider.NotFound, "delete %s: nothing is there", r.Name)
	}
	return nil
}

// removeInstance asks for the removal of an instance, once, and once more when it was forgotten, which it tells, or put off.
func (d *driver) removeInstance(ctx context.Context, c caller, r provider.Ref, s server) error {
	if s.deleting() && !s.forgotten() && !s.withdrawn() {
		return nil
	}
	if err := d.mark(ctx, c, r, s); err != nil {
		return err
	}
	if s.withdrawn() {
		return unlessGone(c.post(ctx, c.compute, "delete instance "+s.ID+", whose removal was put off", "servers/"+s.ID+"/action", map[string]any{"forceDelete": nil}, nil))
	}
	if err := c.remove(ctx, c.compute, "delete instance "+s.ID, "servers/"+s.ID); err != nil {
		return err
	}
	if s.forgotten() {
		return provider.ErrorAfter(provider.Unknown, time.Minute, "delete instance %s: it has been in the state deleting since %s, and was asked for once more: see whether Nova's service on its host runs (openstack compute service list)",
			s.ID, s.Updated.UTC().Format(time.RFC3339))
	}
	return nil
}

// mark writes on the ports of an instance that is about to go what its tags do not say: once it is gone nothing else does.
func (d *driver) mark(ctx context.Context, c caller, r provider.Ref, s server) error {
	switch {
	case r.UID == "":
		return d.bind(ctx, c, s)
	case !tagged(s.Tags):
		return d.adopt(ctx, c, r.UID, s)
	}
	return nil
}

// adopt marks the ports that OpenShift made with an instance as the Machine's, all at once: they go as its own would, with
// their trunks (SPEC E19). OpenShift names them after the instance, and says in tags or description who made them; what says
// nothing like that somebody else attached, and keeps.
func (d *driver) adopt(ctx context.Context, c caller, uid types.UID, s server) error {
	const maker = "cluster-api-provider-openstack"
	all, err := c.portsWith(ctx, url.Values{"device_id": {s.ID}})
	if err != nil {
		return err
	}
	for _, p := range all {
		called := p.Name == s.Name || strings.HasPrefix(p.Name, s.Name+"-")
		made := slices.Contains(p.Tags, maker) || strings.HasPrefix(p.Description, "Created by "+maker+" ")
		if p.Device != s.ID || tagged(p.Tags) || !called || !made {
			continue
		}
		tags := append(p.Tags, tag(tagUID, string(uid)), tag(tagCluster, d.tags.cluster))
		if err := unlessGone(c.tagPort(ctx, p, tags)); err != nil {
			return err
		}
	}
	return nil
}

// bind marks the ports of an instance that is removed by its id alone: else they could be those of another instance of the
// same Machine.
func (d *driver) bind(ctx context.Context, c caller, s server) error {
	o := d.tags.owner(s.Tags)
	if !o.cluster || o.token == "" {
		return nil
	}
	ports, err := c.ports(ctx, tag(tagCluster, d.tags.cluster), tag(tagToken, o.token))
	if err != nil {
		return err
	}
	alone := true
	if slices.ContainsFunc(ports, func(p port) bool { return p.Device == "" }) {
		twins, err := c.servers(ctx, tag(tagToken, o.token))
		if err != nil {
			return err
		}
		alone = len(twins) <= 1
	}
	for _, p := range ports {
		if p.Device != s.ID && (p.Device != "" || !alone) {
			continue
		}
		path := "ports/" + p.ID + "/tags/" + url.PathEscape(tag(tagServer, s.ID))
		if err := unlessGone(c.request(ctx, c.network, "tag port "+p.ID, http.MethodPut, path, gophercloud.RequestOpts{})); err != nil {
			return err
		}
	}
	return nil
}

// removeChildren removes what is left of instances that are gone, each by itself: what cannot be removed keeps nothing else that
// is paid for. It reports whether there was anything.
func (d *driver) removeChildren(ctx context.Context, c caller, r provider.Ref) (there bool, err error) {
	ports, volumes, err := d.children(ctx, c, r)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, p := range ports {
		errs = append(errs, d.removeUnused(ctx, c, p))
	}
	for _, v := range volumes {
		errs = append(errs, c.removeVolume(ctx, v))
	}
	return len(errs) > 0, errors.Join(errs...)
}

// removeUnused removes a port unless people gave it to another instance, which would be cut off: it is theirs to detach. The Machine's own
// has it where its removal was put off, and it is in no list.
func (d *driver) removeUnused(ctx context.Context, c caller, p port) error {
	if !isID(p.Device) {
		return c.removePort(ctx, p)
	}
	s, err := c.server(ctx, p.Device)
	of, owner := d.tags.ownerOfPort(p), d.tags.owner(s.Tags)
	switch {
	case provider.CodeOf(err) == provider.NotFound: // Nova has yet to say so to Neutron
		return c.removePort(ctx, p)
	case err != nil:
		return err
	case s.deleting() && owner.cluster && owner.uid == of.uid && of.uid != "":
		return c.removePort(ctx, p)
	}
	return provider.Errorf(provider.Exhausted, "delete port %s (%s): the instance %s (%s) has it: detach it", p.Name, p.ID, s.Name, s.ID)
}

func (c caller) removeVolume(ctx context.Context, v volume) error {
	if !v.idle() {
		return c.release(ctx, v)
	}
	return c.remove(ctx, c.volume, "delete volume "+v.ID, "volumes/"+v.ID)
}

// children lists the ports and volumes of a Machine, or of one attempt, or those that go with an instance that was removed by its
// id, or the one port or volume with this id. Of a port that has no tags yet nobody knows the attempt: the next one removes it.
func (d *driver) children(ctx context.Context, c caller, r provider.Ref) (ports []port, volumes []volume, err error) {
	if r.UID != "" {
		if ports, err = c.portsOf(ctx, d.tags, r.UID); err != nil {
			return nil, nil, err
		}
		volumes, err = c.ownVolumes(ctx, map[string]string{tagUID: string(r.UID), tagCluster: d.tags.cluster})
		if r.Attempt {
			ports = slices.DeleteFunc(ports, func(p port) bool { return d.tags.ownerOfPort(p).token != r.Token })
			volumes = slices.DeleteFunc(volumes, func(v volume) bool { return v.tag(tagToken) != r.Token })
		}
		return ports, volumes, err
	}
	if !isID(r.ID) {
		return nil, nil, nil
	}
	if ports, err = c.ports(ctx, tag(tagCluster, d.tags.cluster), tag(tagServer, r.ID)); err != nil {
		return nil, nil, err
	}
	switch p, err := c.port(ctx, r.ID); {
	case provider.CodeOf(err) == provider.NotFound:
	case err != nil:
		return nil, nil, err
	case d.tags.ownerOfPort(p).cluster:
		ports = append(ports, p)
	}
	var v struct {
		Volume volume `json:"volume"`
	}
	if c.volume == nil {
		return ports, nil, nil
	}
	switch err := c.get(ctx, c.volume, "get volume "+r.ID, "volumes/"+r.ID, &v); {
	case provider.CodeOf(err) == provider.NotFound:
	case err != nil:
		return nil, nil, err
	case d.tags.ownerOf(v.Volume.tag).cluster && !v.Volume.copied():
		volumes = append(volumes, v.Volume)
	}
	return ports, volumes, nil
}

var _ provider.PowerCycler = (*driver)(nil)

// PowerCycle implements [provider.PowerCycler]. An instance that is being built, or was reset a moment ago, starts from
// power-off anyhow.
func (d *driver) PowerCycle(ctx context.Context, r provider.Ref) error {
	ctx, cancel, c, err := d.connect(ctx)
	defer cancel()
	if err != nil {
		return err
	}
	found, err := d.find(ctx, c, r)
	if err != nil {
		return err
	}
	there := false
	for _, s := range found {
		if s.deleting() {
			continue
		}
		there = true
		if s.Status == "BUILD" || s.Status == "HARD_REBOOT" {
			continue
		}
		body := map[string]any{"reboot": map[string]any{"type": "HARD"}}
		if err := c.post(ctx, c.compute, "power-cycle instance "+s.ID, "servers/"+s.ID+"/action", body, nil); err != nil {
			return err
		}
	}
	if !there {
		return provider.Errorf(provider.NotFound, "power-cycle %s: no instance is there", r.Name)
	}
	return nil
}
