// SPDX-License-Identifier: Apache-2.0

package arm

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// there returns a resource that exists, by its id.
func (c *Cloud) there(id string) *thing {
	t := c.things[strings.ToLower(id)]
	if t == nil || !t.gone.IsZero() {
		return nil
	}
	return t
}

// kindOf returns the kind of a resource, and its name.
func kindOf(id string) (kind, name string) {
	_, rest, _ := strings.Cut(id, "/providers/")
	return path.Dir(rest), path.Base(rest)
}

// add makes a resource.
func (c *Cloud) add(id string, body object) *thing {
	if c.things == nil {
		c.things = map[string]*thing{}
	}
	c.made++
	t := &thing{id: id, order: c.made, body: body, made: time.Now()}
	kind, name := kindOf(id)
	body["id"], body["name"], body["type"] = id, name, kind
	guid := fmt.Sprintf("%08x-0000-4000-8000-%012x", c.made, c.made)
	switch p := body.in("properties"); kind {
	case Instances:
		p["vmId"], p["timeCreated"], p["provisioningState"] = guid, t.made.UTC().Format(time.RFC3339), "Creating"
	case Disks:
		p["uniqueId"], p["timeCreated"], p["provisioningState"] = guid, t.made.UTC().Format(time.RFC3339), "Succeeded"
	default:
		p["resourceGuid"], p["provisioningState"] = guid, "Succeeded"
	}
	c.things[strings.ToLower(id)] = t
	c.etag(t)
	return t
}

// etag gives a resource that was changed another one.
func (c *Cloud) etag(t *thing) {
	c.made++
	t.body["etag"] = fmt.Sprintf("\"%d\"", c.made)
}

// addressed gives a network interface its addresses.
func (c *Cloud) addressed(t *thing) {
	p := t.body.in("properties")
	p.in("dnsSettings")["internalDomainNameSuffix"] = "x4zq.bx.internal.cloudapp.net"
	all := p.list("ipConfigurations")
	for n, a := range all {
		v := a.in("properties")
		v["privateIPAddress"] = fmt.Sprintf("10.0.%d.%d", 128+t.order/200, t.order%200+4)
		if v.text("privateIPAddressVersion") == "IPv6" {
			v["privateIPAddress"] = fmt.Sprintf("fd00:128::%x", t.order)
		}
		if public := c.there(v.object("publicIPAddress").text("id")); public != nil {
			public.body.in("properties")["ipConfiguration"] = object{"id": fmt.Sprintf("%s/ipConfigurations/%d", t.id, n)}
		}
	}
}

// settle is what happens once an instance is accepted: its disks are made, its network interfaces are its own.
func (c *Cloud) settle(t *thing) {
	p := t.body.in("properties")
	storage := p.in("storageProfile")
	disks := append([]object{storage.object("osDisk")}, storage.list("dataDisks")...)
	for _, d := range disks {
		id := ID(Disks, d.text("name"))
		if d.text("name") == "" || c.there(id) != nil {
			continue
		}
		tags := object{}
		if !c.Bare {
			tags = t.body.object("tags").clone()
		}
		made := c.add(id, object{"location": Location, "tags": tags, "managedBy": t.id})
		made.body.in("properties")["diskState"] = "Attached"
		d.in("managedDisk")["id"] = id
	}
	for _, n := range p.object("networkProfile").list("networkInterfaces") {
		if card := c.there(n.text("id")); card != nil {
			card.body.in("properties")["virtualMachine"] = object{"id": t.id}
		}
	}
}

// pass lets what takes time come to its end.
func (c *Cloud) pass() {
	now := time.Now()
	for _, t := range c.sorted() {
		kind, _ := kindOf(t.id)
		if !t.gone.IsZero() {
			continue
		}
		if !t.leaving.IsZero() {
			if now.Sub(t.leaving) >= cmp.Or(t.lasts, c.Shutdown) {
				c.end(t)
			}
			continue
		}
		if kind != Instances {
			continue
		}
		p := t.body.in("properties")
		if p.text("provisioningState") == "Creating" && now.Sub(t.made) >= c.Boot {
			if p["provisioningState"], t.power = "Succeeded", cmp.Or(t.power, "running"); t.fails != "" {
				t.failed, t.power = t.fails, ""
			}
		}
		if t.patch != nil && now.Sub(t.patched) >= c.Change {
			t.body.merge(t.patch)
			t.patch = nil
			c.etag(t)
		}
		if t.failed != "" {
			p["provisioningState"] = "Failed"
		}
	}
}

// end removes a resource, and what goes along with it.
func (c *Cloud) end(t *thing) {
	t.gone = time.Now()
	p := t.body.object("properties")
	switch kind, _ := kindOf(t.id); kind {
	case Instances:
		for _, n := range p.object("networkProfile").list("networkInterfaces") {
			card := c.there(n.text("id"))
			if card == nil {
				continue
			}
			delete(card.body.in("properties"), "virtualMachine")
			if n.object("properties").text("deleteOption") == "Delete" {
				c.end(card)
			}
		}
		c.detach(p.object("storageProfile"))
	case Cards:
		for _, a := range p.list("ipConfigurations") {
			ref := a.object("properties").object("publicIPAddress")
			public := c.there(ref.text("id"))
			if public == nil {
				continue
			}
			delete(public.body.in("properties"), "ipConfiguration")
			if ref.object("properties").text("deleteOption") == "Delete" {
				c.end(public)
			}
		}
	}
}

// detach frees the disks of an instance that is removed, and removes those that go along with it.
func (c *Cloud) detach(storage object) {
	for _, d := range append([]object{storage.object("osDisk")}, storage.list("dataDisks")...) {
		disk := c.there(ID(Disks, d.text("name")))
		if disk == nil {
			continue
		}
		delete(disk.body, "managedBy")
		disk.body.in("properties")["diskState"] = "Unattached"
		if d.text("deleteOption") == "Delete" {
			c.end(disk)
		}
	}
}

// sorted returns everything in the order of its making.
func (c *Cloud) sorted() []*thing {
	var all []*thing
	for _, t := range c.things {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *thing) int { return cmp.Compare(a.order, b.order) })
	return all
}

// listed returns the resources of a kind as lists show them: some time behind.
func (c *Cloud) listed(kind string) (all []object) {
	c.pass()
	for _, t := range c.sorted() {
		if of, _ := kindOf(t.id); of != kind || time.Since(t.made) < c.Lag || !t.gone.IsZero() && time.Since(t.gone) >= c.Lag {
			continue
		}
		all = append(all, t.shown(false))
	}
	return all
}

// shown is what a read shows, with how an instance is now or without.
func (t *thing) shown(view bool) object {
	o := t.body.clone()
	kind, _ := kindOf(t.id)
	p := o.in("properties")
	if !t.leaving.IsZero() {
		p["provisioningState"] = "Deleting"
	}
	if kind != Instances {
		return o
	}
	if t.patch != nil && t.leaving.IsZero() {
		o.merge(t.patch.clone())
		o.in("properties")["provisioningState"] = "Updating"
	}
	delete(p.object("osProfile"), "customData") // nobody is told
	if view {
		p["instanceView"] = object{"statuses": t.statuses()}
	}
	return o
}

// statuses are the words about an instance (https://learn.microsoft.com/azure/virtual-machines/states-billing).
func (t *thing) statuses() []any {
	state := strings.ToLower(t.body.object("properties").text("provisioningState"))
	first := object{"code": "ProvisioningState/" + state, "level": "Info", "displayStatus": state}
	if state == "failed" {
		first["code"], first["level"], first["message"] = "ProvisioningState/failed/"+t.failed, "Error", "Allocation failed. We do not have sufficient capacity for the requested VM size in this region."
	}
	if t.hushed > 0 {
		t.hushed--
		return []any{first}
	}
	if t.power == "" {
		return []any{first}
	}
	return []any{first, object{"code": "PowerState/" + t.power, "level": "Info"}}
}
