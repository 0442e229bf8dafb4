// SPDX-License-Identifier: Apache-2.0

package arm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8/fake"
)

// The answers of the fake servers' handlers.
type (
	poll[T any]  = azfake.PollerResponder[T]
	whole[T any] = azfake.Responder[T]
	pager[T any] = azfake.PagerResponder[T]
	problem      = azfake.ErrorResponder
)

// call is one request.
type call struct {
	cloud   *Cloud
	request *http.Request
	body    []byte
	refused *refusal
}

var errRefused = errors.New("refused")

// no ends a call with a refusal.
func (k *call) no(r *refusal) (e problem) {
	k.refused = r
	e.SetError(errRefused)
	return e
}

func absent(id string) *refusal {
	kind, name := kindOf(id)
	return refuse(http.StatusNotFound, "ResourceNotFound", "The Resource '%s/%s' under resource group '%s' was not found.", kind, name, Group)
}

// read returns a resource, or refuses.
func (k *call) read(kind, name string, view bool) (object, bool) {
	c := k.cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
	t := c.there(ID(kind, name))
	if t == nil {
		k.refused = absent(ID(kind, name))
		return nil, false
	}
	return t.shown(view), true
}

// wellKnown notes which fields of the request the API's model does not have.
func (k *call) wellKnown(model any) object {
	var asked any
	_ = json.Unmarshal(k.body, &asked) // the fake server has read it
	known := objectOf(model)
	k.cloud.unknown = append(k.cloud.unknown, lacking("", asked, map[string]any(known))...)
	return known
}

// pages cuts a list.
func pages(all []object, most int) (cut [][]object) {
	if most <= 0 {
		most = len(all)
	}
	for len(all) > most {
		cut, all = append(cut, all[:most]), all[most:]
	}
	return append(cut, all)
}

func (k *call) compute() *fake.ServerFactory {
	return &fake.ServerFactory{
		VirtualMachinesServer:  k.instances(),
		DisksServer:            k.disks(),
		AvailabilitySetsServer: k.sets(),
		ResourceSKUsServer:     k.sizes(),
	}
}

func (k *call) instances() fake.VirtualMachinesServer {
	return fake.VirtualMachinesServer{
		Get: func(_ context.Context, _, name string, o *armcompute.VirtualMachinesClientGetOptions) (
			resp whole[armcompute.VirtualMachinesClientGetResponse], e problem,
		) {
			found, ok := k.read(Instances, name, o != nil && o.Expand != nil && *o.Expand == armcompute.InstanceViewTypesInstanceView)
			if !ok {
				return resp, k.no(k.refused)
			}
			resp.SetResponse(http.StatusOK, armcompute.VirtualMachinesClientGetResponse{VirtualMachine: as[armcompute.VirtualMachine](found)}, nil)
			return resp, e
		},
		BeginCreateOrUpdate: func(_ context.Context, _, name string, p armcompute.VirtualMachine, o *armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions) (
			resp poll[armcompute.VirtualMachinesClientCreateOrUpdateResponse], e problem,
		) {
			made, no := k.makeInstance(name, p, o != nil && o.IfNoneMatch != nil && *o.IfNoneMatch == "*")
			if no != nil {
				return resp, k.no(no)
			}
			resp.SetTerminalResponse(http.StatusCreated, armcompute.VirtualMachinesClientCreateOrUpdateResponse{VirtualMachine: as[armcompute.VirtualMachine](made)}, nil)
			return resp, e
		},
		BeginUpdate: func(_ context.Context, _, name string, p armcompute.VirtualMachineUpdate, o *armcompute.VirtualMachinesClientBeginUpdateOptions) (
			resp poll[armcompute.VirtualMachinesClientUpdateResponse], e problem,
		) {
			etag := ""
			if o != nil && o.IfMatch != nil {
				etag = *o.IfMatch
			}
			changed, no := k.update(name, p, etag)
			if no != nil {
				return resp, k.no(no)
			}
			resp.SetTerminalResponse(http.StatusOK, armcompute.VirtualMachinesClientUpdateResponse{VirtualMachine: as[armcompute.VirtualMachine](changed)}, nil)
			return resp, e
		},
		BeginDelete: func(_ context.Context, _, name string, _ *armcompute.VirtualMachinesClientBeginDeleteOptions) (
			resp poll[armcompute.VirtualMachinesClientDeleteResponse], e problem,
		) {
			status, no := k.remove(Instances, name)
			if no != nil {
				return resp, k.no(no)
			}
			resp.AddNonTerminalResponse(status, nil)
			return resp, e
		},
		BeginRestart: func(_ context.Context, _, name string, _ *armcompute.VirtualMachinesClientBeginRestartOptions) (
			resp poll[armcompute.VirtualMachinesClientRestartResponse], e problem,
		) {
			if no := k.start(name, true); no != nil {
				return resp, k.no(no)
			}
			resp.AddNonTerminalResponse(http.StatusAccepted, nil)
			return resp, e
		},
		BeginStart: func(_ context.Context, _, name string, _ *armcompute.VirtualMachinesClientBeginStartOptions) (
			resp poll[armcompute.VirtualMachinesClientStartResponse], e problem,
		) {
			if no := k.start(name, false); no != nil {
				return resp, k.no(no)
			}
			resp.AddNonTerminalResponse(http.StatusAccepted, nil)
			return resp, e
		},
		NewListPager: func(string, *armcompute.VirtualMachinesClientListOptions) (
			resp pager[armcompute.VirtualMachinesClientListResponse],
		) {
			for _, page := range k.pages(Instances, false) {
				resp.AddPage(http.StatusOK, as[armcompute.VirtualMachinesClientListResponse](page), nil)
			}
			return resp
		},
		NewListAllPager: func(o *armcompute.VirtualMachinesClientListAllOptions) (
			resp pager[armcompute.VirtualMachinesClientListAllResponse],
		) {
			for _, page := range k.pages(Instances, o != nil && o.StatusOnly != nil && *o.StatusOnly == "true") {
				resp.AddPage(http.StatusOK, as[armcompute.VirtualMachinesClientListAllResponse](page), nil)
			}
			return resp
		},
	}
}

func (k *call) disks() fake.DisksServer {
	return fake.DisksServer{
		Get: func(_ context.Context, _, name string, _ *armcompute.DisksClientGetOptions) (
			resp whole[armcompute.DisksClientGetResponse], e problem,
		) {
			found, ok := k.read(Disks, name, false)
			if !ok {
				return resp, k.no(k.refused)
			}
			resp.SetResponse(http.StatusOK, armcompute.DisksClientGetResponse{Disk: as[armcompute.Disk](found)}, nil)
			return resp, e
		},
		BeginDelete: func(_ context.Context, _, name string, _ *armcompute.DisksClientBeginDeleteOptions) (
			resp poll[armcompute.DisksClientDeleteResponse], e problem,
		) {
			status, no := k.remove(Disks, name)
			if no != nil {
				return resp, k.no(no)
			}
			resp.AddNonTerminalResponse(status, nil)
			return resp, e
		},
		NewListByResourceGroupPager: func(string, *armcompute.DisksClientListByResourceGroupOptions) (
			resp pager[armcompute.DisksClientListByResourceGroupResponse],
		) {
			for _, page := range k.pages(Disks, false) {
				resp.AddPage(http.StatusOK, as[armcompute.DisksClientListByResourceGroupResponse](page), nil)
			}
			return resp
		},
	}
}

func (k *call) sets() fake.AvailabilitySetsServer {
	return fake.AvailabilitySetsServer{
		Get: func(_ context.Context, _, name string, _ *armcompute.AvailabilitySetsClientGetOptions) (
			resp whole[armcompute.AvailabilitySetsClientGetResponse], e problem,
		) {
			found, ok := fixed("Microsoft.Compute/availabilitySets", name)
			if !ok {
				return resp, k.no(absent(ID("Microsoft.Compute/availabilitySets", name)))
			}
			resp.SetResponse(http.StatusOK, armcompute.AvailabilitySetsClientGetResponse{AvailabilitySet: as[armcompute.AvailabilitySet](found)}, nil)
			return resp, e
		},
	}
}

func (k *call) sizes() fake.ResourceSKUsServer {
	return fake.ResourceSKUsServer{
		NewListPager: func(*armcompute.ResourceSKUsClientListOptions) (
			resp pager[armcompute.ResourceSKUsClientListResponse],
		) {
			for _, page := range pages(offers(), k.cloud.Page) {
				resp.AddPage(http.StatusOK, as[armcompute.ResourceSKUsClientListResponse](object{"value": page}), nil)
			}
			return resp
		},
	}
}

// pages returns the pages of a list of some kind.
func (k *call) pages(kind string, view bool) (all []object) {
	c := k.cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.listed(kind)
	if view {
		found = nil
		for _, t := range c.sorted() {
			if of, _ := kindOf(t.id); of == kind && t.gone.IsZero() && time.Since(t.made) >= c.Lag {
				found = append(found, t.shown(true))
			}
		}
	}
	for _, page := range pages(found, c.Page) {
		if page == nil {
			page = []object{}
		}
		all = append(all, object{"value": page})
	}
	return all
}
