// SPDX-License-Identifier: Apache-2.0

// Package arm is the part of Azure Resource Manager that instances need, for tests: Azure's own fake servers speak its wire, what it does
// is what docs/azure-semantics.md quotes.
package arm

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// What there is.
const (
	Subscription = "2f9bb1a5-7e40-4d0c-8f0e-5a1e6a1f2b3c"
	Tenant       = "6f2c7b1e-0b0f-4d7f-9a55-3c1c5f0e9d10"
	Group        = "cluster-fz2xk-rg"
	Location     = "eastus2"
)

// Cloud is a subscription with one resource group. The zero Cloud is empty and lets everybody in. Its fields are set before it serves.
type Cloud struct {
	Secret   string        // of the client that is let in; empty: any
	Deny     string        // operations that nobody may call, by how they begin: DisksClient.
	Lag      time.Duration // how long lists show what was
	Boot     time.Duration // from Creating to Succeeded
	Shutdown time.Duration // from Deleting until it is gone
	Change   time.Duration // from Updating to what a PATCH of an instance says
	Linger   time.Duration // how much longer than their instance disks are there that go along with it
	Page     int           // most resources in one page; 0: all
	Bare     bool          // disks do not get the tags of their instance

	mu        sync.Mutex
	things    map[string]*thing // by id in small letters
	calls     []string
	unknown   []string // fields of requests that the API does not have
	exhausted string   // the code of the refusal
	later     string   // the code with which an instance fails after it was accepted
	reserved  bool     // network interfaces of instances that failed are kept for them
	without   bool     // the resource group was removed
	lists     map[string]http.RoundTripper
	made      int
}

// thing is one resource, as JSON has it.
type thing struct {
	id      string
	order   int
	body    object
	made    time.Time
	leaving time.Time     // its removal began
	lasts   time.Duration // from there until it is gone, if not as long as the Cloud says
	gone    time.Time     // lists may show it for a while yet
	patch   object        // that is under way
	patched time.Time
	power   string
	hushed  int    // reads that leave it out yet
	fails   string // the code with which its creation ends
	failed  string
}

// refusal is an error of the API.
type refusal struct {
	status        int
	code, message string
}

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status, code, fmt.Sprintf(format, args...)}
}

// Calls returns the operations that were called, in their order.
func (c *Cloud) Calls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// Writes returns how many of them change something.
func (c *Cloud) Writes() (n int) {
	for _, call := range c.Calls() {
		if strings.Contains(call, ".Begin") {
			n++
		}
	}
	return n
}

// Unknown returns the fields of requests that the API's models do not have.
func (c *Cloud) Unknown() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.unknown)
}

// Exhaust refuses new instances for want of room; Starve lets them fail once they were accepted.
func (c *Cloud) Exhaust(exhausted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exhausted = ""; exhausted {
		c.exhausted = "SkuNotAvailable"
	}
}

// Refuse refuses new instances with a code; empty: no more.
func (c *Cloud) Refuse(code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exhausted = code
}

// Starve lets instances that are accepted fail with a code; empty: no more.
func (c *Cloud) Starve(code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.later = code
}

// RemoveGroup removes the resource group with all that is in it.
func (c *Cloud) RemoveGroup() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.without, c.things = true, nil
}

// CatchUp ends the lag of lists.
func (c *Cloud) CatchUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Lag = 0
}

// ID returns the id of a resource of a kind, such as Microsoft.Compute/virtualMachines.
func ID(kind, name string) string {
	return "/subscriptions/" + Subscription + "/resourceGroups/" + Group + "/providers/" + kind + "/" + name
}

// The kinds of resources that can be made.
const (
	Instances = "Microsoft.Compute/virtualMachines"
	Disks     = "Microsoft.Compute/disks"
	Cards     = "Microsoft.Network/networkInterfaces"
	Addresses = "Microsoft.Network/publicIPAddresses"
)

// Names returns the names of the resources of some kinds that are there, sorted.
func (c *Cloud) Names(kinds ...string) (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
	for _, t := range c.things {
		if kind, name := kindOf(t.id); t.gone.IsZero() && slices.Contains(kinds, kind) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// Body returns what a resource is, or nil if it is not there.
func (c *Cloud) Body(kind, name string) map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
	t := c.there(ID(kind, name))
	if t == nil {
		return nil
	}
	return t.body.clone()
}

// Tag changes the tags of a resource, as a person does; an empty value takes one away.
func (c *Cloud) Tag(kind, name string, tags map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.there(ID(kind, name))
	all := t.body.object("tags")
	for key, value := range tags {
		if all[key] = value; value == "" {
			delete(all, key)
		}
	}
	t.body["tags"] = all
	c.etag(t)
}

// Power sets the power of an instance, as somebody else does: running, stopped, deallocated.
func (c *Cloud) Power(name, power string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
	c.there(ID(Instances, name)).power = power
}

// Hush leaves the power of an instance out of the next reads of it, as Azure may for a while.
func (c *Cloud) Hush(name string, reads int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
	c.there(ID(Instances, name)).hushed = reads
}

// Fail lets the latest change of an instance fail with a code, as one that has run.
func (c *Cloud) Fail(name, code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
	c.there(ID(Instances, name)).failed = code
}

// Add makes an instance as another system does, with its network interface and disk, and returns its ARM id. Nothing goes along with it.
func (c *Cloud) Add(name string, tags map[string]string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := object{}
	for key, value := range tags {
		all[key] = value
	}
	card := c.add(ID(Cards, name+"-nic"), object{
		"location": Location, "tags": maps.Clone(all),
		"properties": object{"ipConfigurations": []any{object{"name": "pipConfig", "properties": object{}}}},
	})
	c.addressed(card)
	i := c.add(ID(Instances, name), object{
		"location": Location, "tags": all,
		"properties": object{
			"hardwareProfile": object{"vmSize": "Standard_D8s_v3"},
			"osProfile":       object{"computerName": name},
			"storageProfile":  object{"osDisk": object{"name": name + "_OSDisk", "createOption": "FromImage", "deleteOption": "Detach"}},
			"networkProfile":  object{"networkInterfaces": []any{object{"id": card.id, "properties": object{"primary": true}}}},
		},
	})
	c.settle(i)
	i.made = i.made.Add(-time.Hour)
	return i.id
}

// Copy makes an instance like another one, tags and all, under another name, and returns its ARM id.
func (c *Cloud) Copy(name, as string) string {
	tags := map[string]string{}
	for key, value := range object(c.Body(Instances, name)).object("tags") {
		tags[key], _ = value.(string)
	}
	return c.Add(as, tags)
}

// Keep lets a network interface, or the address that it has, stay when its instance goes.
func (c *Cloud) Keep(kind, name string, keeps bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	option := "Delete"
	if keeps {
		option = "Detach"
	}
	id := ID(kind, name)
	for _, t := range c.things {
		p := t.body.object("properties")
		for _, n := range p.object("networkProfile").list("networkInterfaces") {
			if n.text("id") == id {
				n.in("properties")["deleteOption"] = option
			}
		}
		for _, a := range p.list("ipConfigurations") {
			if ref := a.object("properties").object("publicIPAddress"); ref.text("id") == id {
				ref.in("properties")["deleteOption"] = option
			}
		}
	}
}

// Reserve keeps network interfaces for instances that failed.
func (c *Cloud) Reserve(reserved bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserved = reserved
}

// KeepDisk lets a disk stay when its instance goes.
func (c *Cloud) KeepDisk(instance, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	storage := c.there(ID(Instances, instance)).body.object("properties").object("storageProfile")
	for _, d := range append([]object{storage.object("osDisk")}, storage.list("dataDisks")...) {
		if d.text("name") == name {
			d["deleteOption"] = "Detach"
		}
	}
}

// TakeOff detaches a disk from an instance that runs, as a person does.
func (c *Cloud) TakeOff(instance, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	storage := c.there(ID(Instances, instance)).body.object("properties").in("storageProfile")
	var rest []any
	for _, d := range storage.list("dataDisks") {
		if d.text("name") != name {
			rest = append(rest, d)
		}
	}
	storage["dataDisks"] = rest
	disk := c.there(ID(Disks, name))
	delete(disk.body, "managedBy")
	disk.body.in("properties")["diskState"] = "Unattached"
}

// Hang lets a public address hang on something else, by what follows /providers/ in its id, or on nothing.
func (c *Cloud) Hang(address, on string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.there(ID(Addresses, address)).body.in("properties")
	delete(p, "ipConfiguration")
	if on != "" {
		p["ipConfiguration"] = object{"id": path.Join(ID(on, ""))}
	}
	for _, t := range c.things {
		for _, a := range t.body.object("properties").list("ipConfigurations") {
			if a.object("properties").object("publicIPAddress").text("id") == ID(Addresses, address) {
				delete(a.in("properties"), "publicIPAddress")
			}
		}
	}
}

// Lend gives a network interface to another instance.
func (c *Cloud) Lend(card, instance string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := ID(Cards, card)
	for _, t := range c.things {
		network := t.body.object("properties").object("networkProfile")
		var rest []any
		for _, n := range network.list("networkInterfaces") {
			if n.text("id") != id {
				rest = append(rest, n)
			}
		}
		if len(network) > 0 {
			network["networkInterfaces"] = rest
		}
	}
	c.there(id).body.in("properties")["virtualMachine"] = object{"id": ID(Instances, instance)}
}

// Strand removes an instance and leaves a disk of its that says it is in use yet.
func (c *Cloud) Strand(instance, disk string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
	id := ID(Instances, instance)
	for key := range c.things {
		if strings.EqualFold(key, id) {
			delete(c.things, key)
		}
	}
	for _, t := range c.things { // as its network interface is free
		delete(t.body.in("properties"), "virtualMachine")
	}
	c.there(ID(Disks, disk)).body["managedBy"] = id
}
