// SPDX-License-Identifier: Apache-2.0

package arm

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// makeInstance is a PUT of an instance: with If-None-Match it changes none that is there
// (https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update).
func (k *call) makeInstance(name string, model any, onlyNew bool) (object, *refusal) {
	c := k.cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
	body := k.wellKnown(model)
	id := ID(Instances, name)
	if have := c.there(id); have != nil {
		if onlyNew {
			return nil, refuse(http.StatusPreconditionFailed, "PreconditionFailed", "The resource '%s' exists already.", name)
		}
		have.body.merge(body)
		return have.shown(false), nil
	}
	if c.exhausted != "" {
		return nil, refuse(http.StatusConflict, c.exhausted, "The requested size for resource '%s' is currently not available in location '%s'.", name, Location)
	}
	if no := c.sound(body, name); no != nil {
		return nil, no
	}
	conflict := c.conflicts(body)
	t := c.add(id, body)
	if t.fails = cmp.Or(c.later, conflict); t.fails != "" && strings.HasPrefix(t.fails, "OS") {
		t.power, t.fails = "running", ""
		t.failed = c.later
	}
	c.settle(t)
	return t.shown(false), nil
}

// sound is what Azure refuses at once.
func (c *Cloud) sound(body object, name string) *refusal {
	p := body.object("properties")
	cards := p.object("networkProfile").list("networkInterfaces")
	if len(cards) == 0 {
		return refuse(http.StatusBadRequest, "InvalidParameter", "Required parameter 'networkProfile.networkInterfaces' is missing (null).")
	}
	for _, n := range cards {
		card := c.there(n.text("id"))
		if card == nil {
			return refuse(http.StatusNotFound, "NotFound", "The Resource '%s' was not found.", n.text("id"))
		}
		if of := card.body.object("properties").object("virtualMachine").text("id"); of != "" && !strings.EqualFold(of, ID(Instances, name)) {
			return refuse(http.StatusBadRequest, "NicInUse", "Network Interface '%s' is used by existing resource '%s'.", card.id, of)
		}
	}
	if size := p.object("hardwareProfile").text("vmSize"); size == "Standard_None" {
		return refuse(http.StatusBadRequest, "InvalidParameter", "The value %s provided for the VM size is not valid.", size)
	}
	system := p.object("osProfile")
	if linux := system.object("linuxConfiguration"); len(linux.object("ssh").list("publicKeys")) == 0 && system.text("adminPassword") == "" {
		return refuse(http.StatusBadRequest, "InvalidParameter", "Authentication using either SSH or by user name and password must be enabled in Linux profile.")
	}
	if most := 50; len(body.object("tags")) > most {
		return refuse(http.StatusBadRequest, "InvalidTags", "The tags have more than %d names.", most)
	}
	return nil
}

// conflicts returns the code with which an instance fails after it was accepted because a disk of its is there
// (https://github.com/kubernetes-sigs/cluster-api-provider-azure/issues/1008).
func (c *Cloud) conflicts(body object) string {
	storage := body.object("properties").object("storageProfile")
	for _, d := range append([]object{storage.object("osDisk")}, storage.list("dataDisks")...) {
		if c.there(ID(Disks, d.text("name"))) != nil {
			return "ConflictingUserInput"
		}
	}
	return ""
}

// update is a PATCH of an instance: what it has takes the place of what was there, all tags included.
func (k *call) update(name string, model any, etag string) (object, *refusal) {
	c := k.cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
	patch := k.wellKnown(model)
	t := c.there(ID(Instances, name))
	switch {
	case t == nil:
		return nil, absent(ID(Instances, name))
	case etag != "" && etag != t.body.text("etag"):
		return nil, refuse(http.StatusPreconditionFailed, "PreconditionFailed", "The resource was changed.")
	case !t.leaving.IsZero():
		return nil, refuse(http.StatusConflict, "OperationNotAllowed", "The request failed due to conflict with a concurrent request: the resource is being deleted.")
	case t.body.object("properties").text("provisioningState") == "Creating", t.patch != nil:
		return nil, refuse(http.StatusConflict, "AnotherOperationInProgress", "Another operation on this resource is in progress.")
	}
	if p := patch.object("properties").object("storageProfile").object("osDisk"); len(p) > 0 && p.text("createOption") == "" {
		return nil, refuse(http.StatusBadRequest, "InvalidParameter", "Required parameter 'osDisk.createOption' is missing (null).")
	}
	t.patch, t.patched = patch, time.Now()
	c.pass()
	return t.shown(false), nil
}

// remove is a DELETE: 204 of what is not there, 202 of what goes.
func (k *call) remove(kind, name string) (int, *refusal) {
	c := k.cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
	t := c.there(ID(kind, name))
	if t == nil {
		return http.StatusNoContent, nil
	}
	p := t.body.object("properties")
	switch {
	case kind == Cards && c.reserved:
		return 0, refuse(http.StatusBadRequest, "NicReservedForAnotherVm", "Nic(s) in request is reserved for another Virtual Machine for 180 seconds.")
	case kind == Cards && p.object("virtualMachine").text("id") != "":
		return 0, refuse(http.StatusBadRequest, "NicInUse", "Network Interface '%s' is used by existing resource.", name)
	case kind == Addresses && p.object("ipConfiguration").text("id") != "":
		return 0, refuse(http.StatusBadRequest, "PublicIPAddressCannotBeDeleted", "Public IP address '%s' can not be deleted since it is still allocated.", name)
	case kind == Disks && t.body.text("managedBy") != "":
		return 0, refuse(http.StatusConflict, "OperationNotAllowed", "Disk '%s' is attached to VM.", name)
	}
	if t.leaving.IsZero() {
		t.leaving = time.Now()
	}
	c.pass()
	return http.StatusAccepted, nil
}

// start starts an instance, or one that runs anew.
func (k *call) start(name string, again bool) *refusal {
	c := k.cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
	t := c.there(ID(Instances, name))
	switch {
	case t == nil:
		return absent(ID(Instances, name))
	case again && t.power != "running":
		return refuse(http.StatusConflict, "OperationNotAllowed", "Cannot restart a VM that is not running.")
	}
	t.power = "running"
	return nil
}

// put is a PUT of a network interface or a public address: one that is there is changed.
func (k *call) put(kind, name string, model any) (object, *refusal) {
	c := k.cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
	body := k.wellKnown(model)
	id := ID(kind, name)
	for _, a := range body.object("properties").list("ipConfigurations") {
		v := a.object("properties")
		sub := v.object("subnet").text("id")
		if _, ok := fixed(kindOf(sub)); sub != "" && !ok {
			return nil, refuse(http.StatusBadRequest, "InvalidResourceReference", "Resource %s referenced by resource %s was not found.", sub, id)
		}
		if public := v.object("publicIPAddress").text("id"); public != "" && c.there(public) == nil {
			return nil, refuse(http.StatusBadRequest, "InvalidResourceReference", "Resource %s referenced by resource %s was not found.", public, id)
		}
	}
	t := c.there(id)
	if t != nil && !t.leaving.IsZero() {
		return nil, refuse(http.StatusConflict, "AnotherOperationInProgress", "Another operation on this or dependent resource is in progress.")
	}
	if t == nil {
		t = c.add(id, body)
	} else {
		was := t.body.object("properties")
		for _, told := range []string{"resourceGuid", "provisioningState", "virtualMachine", "ipConfiguration", "ipAddress"} {
			if value, ok := was[told]; ok {
				body.in("properties")[told] = value
			}
		}
		body["id"], body["name"] = t.id, name
		t.body = body
		c.etag(t)
	}
	if kind == Cards {
		c.addressed(t)
	} else {
		t.body.in("properties")["ipAddress"] = fmt.Sprintf("20.51.%d.%d", t.order/250, t.order%250+1)
	}
	return t.shown(false), nil
}
