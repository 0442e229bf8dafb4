// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// host is a dedicated one.
type host struct {
	id, zone, kind, token string
	tags                  map[string]string
	released, broken      bool
}

// allocate makes one host; its token makes no second (API_AllocateHosts, ClientToken).
func (c *Cloud) allocate(form url.Values) (any, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := func(h *host) any {
		return struct {
			ID string `xml:"hostIdSet>item"`
		}{h.id}
	}
	for _, h := range c.dedicated {
		if h.token == form.Get("ClientToken") {
			return answer(h), nil
		}
	}
	if c.exhausted {
		return nil, refuse(http.StatusInternalServerError, "InsufficientHostCapacity", "There is not enough capacity to fulfill your Dedicated Host request.")
	}
	tags := tagsOf(form, "TagSpecification.1.")
	if no := tooMuch(tags); no != nil {
		return nil, no
	}
	h := &host{
		id: fmt.Sprintf("h-%017x", 0xd000+len(c.dedicated)), zone: form.Get("AvailabilityZone"), kind: form.Get("InstanceType"), token: form.Get("ClientToken"), tags: tags,
	}
	c.dedicated = append(c.dedicated, h)
	return answer(h), nil
}

// on returns the instances that a host still carries. The caller holds the lock.
func (c *Cloud) on(h *host) (ids []string) {
	for _, i := range c.instances {
		if _, state := i.state(c, time.Now()); i.form.Get("Placement.HostId") == h.id && state != "terminated" {
			ids = append(ids, i.id)
		}
	}
	return ids
}

// hostFilters are those that EC2 knows of hosts, beside their tags (API_DescribeHosts). The id is a parameter of its own.
var hostFilters = []string{"auto-placement", "availability-zone", "client-token", "host-reservation-id", "instance-type", "state", "tag-key"}

// hosts shows released ones too, as EC2 does for a while.
func (c *Cloud) hosts(form url.Values) (any, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := list(form, "HostId")
	if len(ids) > 0 && form.Get("MaxResults") != "" {
		return nil, refuse(http.StatusBadRequest, "InvalidParameterCombination", "The parameter hostIds cannot be used with the parameter maxResults")
	}
	for _, f := range filtersOf(form) {
		if !slices.Contains(hostFilters, f.name) && !strings.HasPrefix(f.name, "tag:") {
			return nil, refuse(http.StatusBadRequest, "InvalidParameterValue", "The filter '%s' is invalid", f.name)
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(c.dedicated, func(h *host) bool { return h.id == id }) {
			return nil, refuse(http.StatusBadRequest, "InvalidHostID.NotFound", "The host ID '%s' does not exist", id)
		}
	}
	type carried struct {
		ID string `xml:"instanceId"`
	}
	type item struct {
		ID        string    `xml:"hostId"`
		Zone      string    `xml:"availabilityZone"`
		Kind      string    `xml:"hostProperties>instanceType"`
		State     string    `xml:"state"`
		Tags      []pair    `xml:"tagSet>item"`
		Instances []carried `xml:"instances>item"`
	}
	var out struct {
		Items []item `xml:"hostSet>item"`
	}
	for _, h := range c.dedicated {
		as := &instance{id: h.id, tags: h.tags}
		other := func(f filter) bool { return !as.matches(c, f, time.Now()) }
		if len(ids) > 0 && !slices.Contains(ids, h.id) || slices.ContainsFunc(filtersOf(form), other) {
			continue
		}
		i := item{ID: h.id, Zone: h.zone, Kind: h.kind, State: "available"}
		if h.broken {
			i.State = "permanent-failure"
		}
		for _, id := range c.on(h) {
			i.Instances = append(i.Instances, carried{id})
		}
		if h.released {
			i.State = "released"
		}
		for _, k := range slices.Sorted(maps.Keys(h.tags)) {
			i.Tags = append(i.Tags, pair{k, h.tags[k]})
		}
		out.Items = append(out.Items, i)
	}
	return out, nil
}

// release answers for each host apart: one that carries an instance is not released.
func (c *Cloud) release(form url.Values) (any, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	type failure struct {
		Code string `xml:"error>code"`
		ID   string `xml:"resourceId"`
	}
	var out struct {
		Done   []string  `xml:"successful>item"`
		Failed []failure `xml:"unsuccessful>item"`
	}
	for _, id := range list(form, "HostId") {
		k := slices.IndexFunc(c.dedicated, func(h *host) bool { return h.id == id })
		switch {
		case k < 0:
			out.Failed = append(out.Failed, failure{"Client.InvalidHostID.NotFound", id})
		case len(c.on(c.dedicated[k])) > 0:
			out.Failed = append(out.Failed, failure{"Client.InvalidHost.Occupied", id})
		default:
			c.dedicated[k].released = true
			out.Done = append(out.Done, id)
		}
	}
	return out, nil
}

// BreakHosts lets all dedicated hosts fail for good.
func (c *Cloud) BreakHosts() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.dedicated {
		h.broken = true
	}
}

// Hosts returns the tags of the dedicated hosts that are allocated, by id.
func (c *Cloud) Hosts() map[string]map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]map[string]string{}
	for _, h := range c.dedicated {
		if !h.released {
			all[h.id] = maps.Clone(h.tags)
		}
	}
	return all
}
