// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/drivertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, _ := v.wired(t, v.account())
	a, b := v.tag(t, d, "owner", "team-a", reference{}), v.tag(t, d, "cost", "7", reference{})
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		h := harness(t, v)
		h.Tags = []map[string]string{{a: ""}, {a: ""}, {b: ""}}
		return h
	})
}

func harness(t *testing.T, v *vcenter) drivertest.Harness {
	t.Helper()
	var hangs atomic.Bool
	var writes atomic.Int64
	p := Provider(nil)
	p.Open = func(_ context.Context, a provider.Account) (provider.Driver, error) {
		d, w := v.wired(t, a)
		w.set(func(method string, next func() (*http.Response, error)) (*http.Response, error) {
			if hangs.Load() {
				time.Sleep(400 * time.Millisecond) // longer than the suite waits
				return nil, context.DeadlineExceeded
			}
			if strings.HasSuffix(method, "_Task") || strings.Contains(method, "tag-association/id:") {
				writes.Add(1)
			}
			return next()
		})
		return d, nil
	}
	return drivertest.Harness{
		Provider: p, Account: v.account(), Spec: v.spec(nil), Invalid: invalid(v),
		Missing: &drivertest.Bad{
			Spec:  v.spec(map[string]any{"network": map[string]any{"devices": []any{map[string]any{"networkName": "outer"}}}}),
			Names: []string{"providerSpec.value.network.devices[0].networkName", "outer", "not found"},
		},
		Pace:    20 * time.Millisecond,
		Exhaust: func(exhausted bool) { exhaust(v, exhausted) },
		Hang:    func(hang bool) { hangs.Store(hang) },
		Writes:  func() int { return int(writes.Load()) },
		Untagged: func() (string, func() bool) {
			return untagged(t, v)
		},
		NamedAs:       untaggedName(t),
		OnePerMachine: true, UniqueNames: true, TokensReused: true,
		OwnNames: true, // there are no types (SPEC E26)
	}
}

func invalid(v *vcenter) []drivertest.Bad {
	card := func(key string, value any) map[string]any {
		return map[string]any{"network": map[string]any{"devices": []any{map[string]any{"networkName": "VM Network", key: value}}}}
	}
	return []drivertest.Bad{
		{Spec: v.spec(map[string]any{"template": ""}), Names: []string{"providerSpec.value.template"}},
		{Spec: v.spec(map[string]any{"numCPUs": "four"}), Names: []string{"providerSpec.value.numCPUs", "four"}},
		{Spec: v.spec(map[string]any{"template": "DC0_C0_RP0_VM1"}), Names: []string{"providerSpec.value.template", "DC0_C0_RP0_VM1", "hardware version 13"}},
		{Spec: v.spec(map[string]any{"diskGiB": 1}), Names: []string{"providerSpec.value.diskGiB", "1", "do not shrink"}},
		{Spec: v.spec(map[string]any{"workspace": map[string]any{"resourcePool": "/DC0/host/*/Resources"}}), Names: []string{"providerSpec.value.workspace.resourcePool", "/DC0/host/*/Resources", "multiple"}},
		{Spec: v.spec(card("ipAddrs", []string{"10.0.0.7"})), Names: []string{"providerSpec.value.network.devices[0]", "10.0.0.7"}},
		{Spec: v.spec(card("gateway", "up")), Names: []string{"providerSpec.value.network.devices[0]", "up"}},
	}
}

// exhaust lets every clone fail for want of room.
func exhaust(v *vcenter, exhausted bool) {
	v.service.ClearFaultRules()
	if exhausted {
		v.service.AddFaultRule(&simulator.FaultInjectionRule{
			MethodName: "CloneVM_Task", ObjectType: "*", ObjectName: "*", Probability: 1,
			FaultType: simulator.FaultTypeCustom, Fault: &types.NoDiskSpace{Datastore: "LocalDS_0"}, Enabled: true,
		})
	}
}

func untaggedName(t *testing.T) string {
	return "somebody-elses-" + strings.ToLower(t.Name()[len(t.Name())-8:])
}

// untagged makes an instance as another system does.
func untagged(t *testing.T, v *vcenter) (string, func() bool) {
	t.Helper()
	ctx, c := t.Context(), v.client(t)
	vm, err := find.NewFinder(c).VirtualMachine(ctx, "/DC0/vm/"+templateName)
	must(t, err)
	folder, err := find.NewFinder(c).Folder(ctx, "/DC0/vm")
	must(t, err)
	pool, err := find.NewFinder(c).ResourcePool(ctx, "/DC0/host/DC0_C0/Resources")
	must(t, err)
	ref := pool.Reference()
	task, err := vm.Clone(ctx, folder, untaggedName(t), types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Pool: &ref}})
	must(t, err)
	info, err := task.WaitForResult(ctx)
	must(t, err)
	made := object.NewVirtualMachine(c, info.Result.(reference))
	done(t)(made.PowerOn(ctx))
	var m mo.VirtualMachine
	must(t, made.Properties(ctx, made.Reference(), []string{"config.uuid"}, &m))
	return scheme + m.Config.Uuid, func() bool {
		found, err := everywhere(context.WithoutCancel(ctx), c, "name")
		must(t, err)
		for _, o := range found {
			if o.Obj == made.Reference() {
				return true
			}
		}
		return false
	}
}
