// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// Find implements [provider.Driver].
func (d *driver) Find(ctx context.Context, r provider.Ref) ([]provider.Instance, error) {
	ctx, cancel, c, err := d.connect(ctx)
	defer cancel()
	if err != nil {
		return nil, err
	}
	found, err := d.find(ctx, c, r)
	if err != nil {
		return nil, err
	}
	var all []provider.Instance
	for _, s := range found {
		all = append(all, d.instance(s))
	}
	return all, nil
}

// find returns the instances that r names: by the Machine's tag, by an id unless the tag is another Machine's. That a
// list by tags has none is not believed as long as a port of the Machine is in use: a cell that does not answer is left
// out of such lists.
func (d *driver) find(ctx context.Context, c caller, r provider.Ref) ([]server, error) {
	var all []server
	ids := []string{r.ID, r.ProviderID[strings.LastIndexByte(r.ProviderID, '/')+1:]} // a region may stand before it
	if r.UID != "" {
		tagged, err := c.servers(ctx, tag(tagUID, string(r.UID)), tag(tagCluster, d.tags.cluster))
		if err != nil {
			return nil, err
		}
		if all = tagged; len(all) == 0 {
			ports, err := c.portsOf(ctx, d.tags, r.UID)
			if err != nil {
				return nil, err
			}
			for _, p := range ports {
				ids = append(ids, p.Device)
			}
		}
	}
	all, err := c.withIDs(ctx, all, ids)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.unknown() {
			return nil, provider.Errorf(provider.Unknown, "find %s: Nova does not know how instance %s is: its cell does not answer", r.Name, s.ID)
		}
	}
	return slices.DeleteFunc(all, func(s server) bool { return !d.means(r, s) }), nil
}

// withIDs adds to all the servers with these ids that it does not have and that are there. What is no id is passed over.
func (c caller) withIDs(ctx context.Context, all []server, ids []string) ([]server, error) {
	for _, id := range ids {
		if !isID(id) || slices.ContainsFunc(all, func(s server) bool { return s.ID == id }) {
			continue
		}
		s, err := c.server(ctx, id)
		if provider.CodeOf(err) == provider.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// means reports whether r names s. What carries no tag of ours is named only by the provider id that a Machine records.
func (d *driver) means(r provider.Ref, s server) bool {
	o := d.tags.owner(s.Tags)
	recorded := machine.SameID(r.ProviderID, providerID(s.ID))
	switch {
	case r.Attempt && o.token != r.Token:
		return false
	case !tagged(s.Tags):
		return recorded
	case !o.cluster: // somebody took its tag off, unless another's is there
		return recorded && r.UID != "" && r.UID == o.uid && valueOf(s.Tags, tagCluster) == ""
	case r.UID == "" || o.uid == "":
		return recorded || r.ID == s.ID
	}
	return r.UID == o.uid
}

// List implements [provider.Driver]: four lists, whatever the number of instances. Nova is asked for all of the project
// and not by tag, because only then it tells of cells that do not answer.
func (d *driver) List(ctx context.Context) ([]provider.Instance, error) {
	ctx, cancel, c, err := d.connect(ctx)
	defer cancel()
	if err != nil {
		return nil, err
	}
	var (
		servers []server
		ports   []port
		volumes []volume
	)
	g, ctx := beside.WithContext(ctx)
	g.Go(func() (err error) { servers, err = c.everyServer(ctx); return err })
	g.Go(func() (err error) { ports, err = c.portsOfCluster(ctx, d.tags); return err })
	g.Go(func() (err error) {
		volumes, err = c.volumes(ctx, map[string]string{tagCluster: d.tags.cluster})
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var all []provider.Instance
	byID, byToken := map[string]bool{}, map[string]bool{}
	for _, s := range servers {
		if s.unknown() {
			return nil, provider.Errorf(provider.Unknown, "list instances: a cell of Nova's does not answer, instance %s among others is not told of", s.ID)
		}
		switch {
		case d.tags.owner(s.Tags).cluster:
			byID[s.ID], byToken[valueOf(s.Tags, tagToken)] = true, true
			all = append(all, d.instance(s))
		case d.openshifts(s):
			byID[s.ID] = true
			all = append(all, d.instance(s))
		}
	}
	return append(all, d.leftovers(ports, volumes, byID, byToken)...), nil
}

// openshifts reports whether OpenShift, or its installer, made s for the cluster: then it says so, and carries no tag of ours.
func (d *driver) openshifts(s server) bool {
	const key = "openshiftClusterID"
	return !tagged(s.Tags) && (s.Metadata[key] == d.account.ClusterID || slices.Contains(s.Tags, tag(key, d.account.ClusterID)))
}

// leftovers are the ports and volumes of the cluster that are of no server, known by its id or by the token of its attempt.
func (d *driver) leftovers(ports []port, volumes []volume, byID, byToken map[string]bool) []provider.Instance {
	var all []provider.Instance
	for _, p := range ports {
		if o := d.tags.ownerOfPort(p); o.cluster && !byID[p.Device] && (p.Device != "" || !byToken[o.token]) {
			all = append(all, d.child(p.ID, p.Name, o))
		}
	}
	for _, v := range volumes {
		attached := slices.ContainsFunc(v.Attachments, func(at struct {
			Server string `json:"server_id"`
		}) bool {
			return byID[at.Server]
		})
		switch o := d.tags.ownerOf(v.tag); {
		case !o.cluster || attached:
		case v.copied():
			left := d.child(v.ID, v.Name, owner{mark: o.mark})
			left.Message = "it carries a copy of the metadata of volume " + v.tag(tagVolume)
			all = append(all, left)
		case !byToken[o.token]:
			all = append(all, d.child(v.ID, v.Name, o))
		}
	}
	return all
}

func (d *driver) child(id, name string, o owner) provider.Instance {
	return provider.Instance{ID: id, UID: o.uid, ClusterUID: o.mark, Token: o.token, Name: name, Region: d.session.cloud.region, Child: true}
}

// instance tells of s in the words of the contract.
func (d *driver) instance(s server) provider.Instance {
	o := d.tags.owner(s.Tags)
	in := provider.Instance{
		ID: s.ID, ProviderID: providerID(s.ID), UID: o.uid, ClusterUID: o.mark, Token: o.token, Name: s.Name, State: s.state(), CloudState: s.Status,
		Type: s.Flavor.Name, Region: d.session.cloud.region, Zone: s.Zone, Addresses: s.addresses(), Created: s.Created, Message: shorten(s.Fault.Message),
		Tags: labeled(s.Tags, s.Metadata), Again: s.forgotten() || s.withdrawn(),
	}
	if in.State == provider.StateFailed && shortage.MatchString(s.Fault.Message) {
		in.Code = provider.Exhausted
	}
	if !o.cluster {
		in.UID, in.Token = "", ""
	}
	status, err := json.Marshal(map[string]string{"instanceId": s.ID, "instanceState": s.Status})
	if err == nil { // strings only
		in.Status = status
	}
	return in
}

// shortage is what Nova says of an instance for which its scheduler, or every host that it tried, had no room.
var shortage = regexp.MustCompile(`No valid host|Exceeded maximum number of retries|Insufficient|(?i)quota`)

// state returns what a status of Nova's means. An instance in ERROR that has run may do so still.
func (s server) state() provider.State {
	switch {
	case s.deleting():
		return provider.StateDeleting
	case s.placing():
		return provider.StateIncomplete
	case s.Status == "ERROR" && !s.launched():
		return provider.StateFailed
	}
	switch s.Status {
	case "ACTIVE", "REBOOT", "HARD_REBOOT", "PASSWORD", "MIGRATING", "RESIZE", "VERIFY_RESIZE", "REVERT_RESIZE":
		return provider.StateRunning
	case "BUILD", "REBUILD", "UNKNOWN":
		return provider.StatePending
	}
	return provider.StateStopped // SHUTOFF, PAUSED, SUSPENDED, SHELVED…, RESCUE, ERROR
}

// addresses lists the primary network's addresses first. The name is among them once there is any, so that the kubelet's
// certificate can be told (SPEC E20, B80).
func (s server) addresses() []corev1.NodeAddress {
	var all []corev1.NodeAddress
	primary := s.Metadata[metaPrimary]
	networks := slices.SortedFunc(maps.Keys(s.Addresses), func(x, y string) int {
		if (x == primary) != (y == primary) {
			return cmp.Compare(btoi(y == primary), btoi(x == primary))
		}
		return strings.Compare(x, y)
	})
	for _, network := range networks {
		for _, a := range s.Addresses[network] {
			kind := corev1.NodeInternalIP
			if a.Type == "floating" {
				kind = corev1.NodeExternalIP
			}
			all = append(all, corev1.NodeAddress{Type: kind, Address: a.Address})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return append(all, corev1.NodeAddress{Type: corev1.NodeHostName, Address: s.Name}, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: s.Name})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
