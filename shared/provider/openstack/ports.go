// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// havePorts finds the attempt's ports, and makes those that are missing. It reports whether they are on record; what is
// on record and gone ends the attempt.
func (a *attempt) havePorts(ctx context.Context, made []server) (recorded bool, err error) {
	if len(a.ref.Progress) > 0 { // they had their tags before they were recorded
		all, err := a.caller.ports(ctx, tag(tagUID, string(a.ref.UID)), tag(tagCluster, a.tags.cluster))
		if err != nil {
			return false, err
		}
		return true, a.recordedPorts(all)
	}
	all, err := a.portsOf(ctx, a.tags, a.ref.UID)
	if err != nil {
		return false, err
	}
	if a.ports = a.ownPorts(all); !a.complete() {
		if err := a.removeStale(ctx, all, made); err != nil {
			return false, err
		}
		if err := a.makePorts(ctx); err != nil {
			return false, err
		}
	}
	return false, a.tagPorts(ctx)
}

// recordedPorts finds the ports of the progress among all of the Machine.
func (a *attempt) recordedPorts(all []port) error {
	var p progress
	if err := json.Unmarshal(a.ref.Progress, &p); err != nil || len(p.Ports) != len(a.wanted.Ports) {
		return provider.Errorf(provider.NotFound, "the progress %.100q names no ports for this spec", a.ref.Progress)
	}
	for _, id := range p.Ports {
		i := slices.IndexFunc(all, func(have port) bool { return have.ID == id && valueOf(have.Tags, tagToken) == a.ref.Token })
		if i < 0 {
			return provider.Errorf(provider.NotFound, "port %s of this attempt was removed", id)
		}
		a.ports = append(a.ports, all[i])
	}
	a.refused, a.latest = p.Refused, p.Made
	return nil
}

// ownPorts returns the attempt's ports in the order of the spec. One that has no tags yet is known by its address. Where
// Neutron let two calls make one each, both calls take the older.
func (a *attempt) ownPorts(all []port) []port {
	own := make([]port, len(a.wanted.Ports))
	for i, w := range a.wanted.Ports {
		for _, p := range all {
			mine := valueOf(p.Tags, tagToken) == a.ref.Token && valueOf(p.Tags, tagPart) == strconv.Itoa(i)
			if mac := a.body(i, w, true).MAC; !mine && (tagged(p.Tags) || mac == "" || !strings.EqualFold(mac, p.MAC)) {
				continue
			}
			if own[i].ID == "" || cmp.Or(p.Created.Compare(own[i].Created), cmp.Compare(p.ID, own[i].ID)) < 0 {
				own[i] = p
			}
		}
	}
	return own
}

func (a *attempt) complete() bool {
	return !slices.ContainsFunc(a.ports, func(p port) bool { return p.ID == "" })
}

// removeStale removes what earlier attempts, which the cloud refused, have left: each attempt would leave more. Before it has, nothing
// is asked for, so to wait leaves nothing unclear.
func (a *attempt) removeStale(ctx context.Context, all []port, made []server) error {
	if err := a.removeStalePorts(ctx, all, made); err != nil {
		return err
	}
	if len(a.wanted.volumes()) == 0 {
		return nil
	}
	return a.removeStaleVolumes(ctx, made)
}

func (a *attempt) removeStalePorts(ctx context.Context, all []port, made []server) error {
	for _, p := range all {
		if own := slices.ContainsFunc(a.ports, func(q port) bool { return q.ID == p.ID }); own {
			continue
		}
		token := valueOf(p.Tags, tagToken)
		if age := time.Since(p.Created); token == "" && age.Abs() < launchFor {
			return provider.ErrorAfter(provider.Throttled, launchFor-age.Abs(), "create ports: port %s was made %v ago, and by whom is not known yet", p.ID, age.Round(time.Second))
		}
		used := slices.ContainsFunc(made, func(s server) bool { return valueOf(s.Tags, tagToken) == token })
		if token == a.ref.Token || used || p.Device != "" {
			continue
		}
		if err := a.removePort(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) removeStaleVolumes(ctx context.Context, made []server) error {
	volumes, err := a.ownVolumes(ctx, map[string]string{tagUID: string(a.ref.UID), tagCluster: a.tags.cluster})
	if err != nil {
		return err
	}
	for _, v := range volumes {
		used := slices.ContainsFunc(made, func(s server) bool { return valueOf(s.Tags, tagToken) == v.tag(tagToken) })
		if v.tag(tagToken) == a.ref.Token || used || !v.idle() {
			continue
		}
		if err := a.remove(ctx, a.volume, "delete volume "+v.ID, "volumes/"+v.ID); err != nil {
			return err
		}
	}
	return nil
}

// makePorts makes the missing ports with one request: all, or none. Where a MAC address is taken it is by this attempt's
// port, of a call that was faster, or was answered nothing.
func (a *attempt) makePorts(ctx context.Context) error {
	err := a.postPorts(ctx, true)
	switch {
	case refusedWith(err, http.StatusForbidden) && strings.Contains(err.Error(), "mac_address"):
		err = a.postPorts(ctx, false)
	case refusedWith(err, http.StatusConflict) && strings.Contains(strings.ToLower(err.Error()), "mac address"):
		all, e := a.portsOf(ctx, a.tags, a.ref.UID)
		if e != nil {
			return e
		}
		if a.ports = a.ownPorts(all); a.complete() {
			return nil
		}
		err = provider.Errorf(provider.Unknown, "%w", err) // somebody else's port, or one that is not listed yet
	}
	return err
}

// postPorts sends the request, and takes the ports from its answer.
func (a *attempt) postPorts(ctx context.Context, addresses bool) error {
	var (
		bodies []portBody
		which  []int
		answer struct {
			Ports []port `json:"ports"`
		}
	)
	for i, w := range a.wanted.Ports {
		if a.ports[i].ID == "" {
			bodies, which = append(bodies, a.body(i, w, addresses)), append(which, i)
		}
	}
	err := a.post(ctx, a.network, "create ports", "ports", map[string]any{"ports": bodies}, &answer)
	if err == nil && len(answer.Ports) != len(bodies) {
		err = provider.Errorf(provider.Unknown, "create ports: %d were asked for, and %d answered", len(bodies), len(answer.Ports))
	}
	if err != nil {
		return err
	}
	for i, p := range answer.Ports {
		a.ports[which[i]] = p
	}
	return nil
}

// body is what Neutron gets for the i-th port.
func (a *attempt) body(i int, w wantedPort, addresses bool) portBody {
	b := w.Body
	b.Name = a.ref.Name + "-" + cmp.Or(w.Suffix, strconv.Itoa(i))
	b.Description = a.tags.description(a.ref.UID)
	if b.MAC == "" && w.Own && addresses {
		b.MAC = macAddress(a.ref.Token, i)
	}
	return b
}

// tagPorts gives the ports their tags, and the descriptions that the spec wants. They have the instance's tags as well, as
// OpenShift's do: by those its installer removes what is left of a cluster.
func (a *attempt) tagPorts(ctx context.Context) error {
	for i, w := range a.wanted.Ports {
		p := &a.ports[i]
		if tagged(p.Tags) {
			continue
		}
		p.Tags = unique(slices.Concat(a.own(), []string{tag(tagPart, strconv.Itoa(i))}, foreign(a.wanted.Tags), foreign(w.Tags)))
		err := a.tagPort(ctx, *p, p.Tags)
		if err == nil && i > 0 && w.Body.Description != "" { // the first one's is written with the claim
			err = a.request(ctx, a.network, "describe port "+p.ID, http.MethodPut, "ports/"+p.ID,
				gophercloud.RequestOpts{JSONBody: map[string]any{"port": map[string]any{"description": w.Body.Description}}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// macAddress returns the address of an attempt's i-th port: one that is administered locally, as OpenStack's all are.
func macAddress(token string, i int) string {
	sum := sha256.Sum256([]byte(token + "/" + strconv.Itoa(i)))
	return fmt.Sprintf("fa:%02x:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3], sum[4])
}

// dressPorts gives the ports what is not part of the request that makes them. It reports whether it changed anything,
// because the ports have to be read again then.
func (a *attempt) dressPorts(ctx context.Context) (changed bool, err error) {
	if a.wanted.FloatingIP != "" {
		if changed, err = a.attach(ctx); err != nil {
			return false, err
		}
	}
	trunks, err := a.haveTrunks(ctx)
	return changed || trunks, err
}

// haveTrunks makes each port that shall be one the parent of a trunk, which carries the instance's tags. They are a request
// of their own, so a trunk may be there without them. One without tags goes with its port all the same.
func (a *attempt) haveTrunks(ctx context.Context) (changed bool, err error) {
	if !slices.ContainsFunc(a.wanted.Ports, func(w wantedPort) bool { return w.Trunk }) {
		return false, nil
	}
	own := a.own()
	tags := unique(slices.Concat(own, foreign(a.wanted.Tags)))
	done, err := pages[named](ctx, a.caller, a.network, "list trunks", "trunks", "trunks", url.Values{"tags": {join(own)}})
	if err != nil {
		return false, err
	}
	for i, w := range a.wanted.Ports {
		id := ""
		if t := a.ports[i].Trunk; t != nil {
			id = t.ID
		}
		if !w.Trunk || id != "" && slices.ContainsFunc(done, func(n named) bool { return n.ID == id }) {
			continue
		}
		changed = true
		if id == "" {
			if id, err = a.makeTrunk(ctx, a.ports[i]); err != nil || id == "" {
				return true, err
			}
		}
		err := a.request(ctx, a.network, "tag trunk "+id, http.MethodPut, "trunks/"+id+"/tags", gophercloud.RequestOpts{JSONBody: map[string]any{"tags": tags}})
		if err != nil {
			return false, err
		}
	}
	return changed, nil
}

// makeTrunk makes a trunk and returns its id, or "" if another call was faster.
func (a *attempt) makeTrunk(ctx context.Context, p port) (id string, err error) {
	var answer struct {
		Trunk named `json:"trunk"`
	}
	body := map[string]any{"trunk": map[string]any{"name": p.Name, "port_id": p.ID}}
	err = a.post(ctx, a.network, "create trunk of port "+p.ID, "trunks", body, &answer)
	switch {
	case refusedWith(err, http.StatusConflict):
		return "", nil
	case err == nil && answer.Trunk.ID == "":
		err = coded("create trunk of port "+p.ID, errEmpty)
	}
	return answer.Trunk.ID, err
}

// attach gives the floating IP to the first port. It is never taken away from another one, nor from one that gets it meanwhile: Neutron would.
func (a *attempt) attach(ctx context.Context) (changed bool, err error) {
	doing := "attach floating IP " + a.wanted.FloatingIP
	var answer struct {
		IP struct {
			Address  string `json:"floating_ip_address"`
			Port     string `json:"port_id"`
			Revision *int   `json:"revision_number"`
		} `json:"floatingip"`
	}
	if err := a.get(ctx, a.network, doing, "floatingips/"+a.wanted.FloatingIP, &answer); err != nil {
		return false, err
	}
	switch answer.IP.Port {
	case a.ports[0].ID:
		return false, nil
	case "":
	default:
		return false, provider.Errorf(provider.Exhausted, "floating IP %s belongs to port %s", answer.IP.Address, answer.IP.Port)
	}
	opts := gophercloud.RequestOpts{JSONBody: map[string]any{"floatingip": map[string]any{"port_id": a.ports[0].ID}}}
	if answer.IP.Revision != nil {
		opts.MoreHeaders = map[string]string{"If-Match": fmt.Sprintf("revision_number=%d", *answer.IP.Revision)}
	}
	err = a.request(ctx, a.network, doing, http.MethodPut, "floatingips/"+a.wanted.FloatingIP, opts)
	if refusedWith(err, http.StatusPreconditionFailed) { // the next call sees whose it is
		return true, nil
	}
	return true, err
}
