// SPDX-License-Identifier: Apache-2.0

// Package vcenter runs VMware's own simulator of a vCenter, vcsim, with what an administrator makes for Machines.
package vcenter

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator" // the tagging service
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
)

// Template is the virtual machine that instances are cloned from, with a snapshot.
const Template = "cluster-a389-fmxsv-rhcos"

// VCenter is a vCenter with datacenter DC0, cluster DC0_C0 with the resource pool workers and the VM group zone-a, folder
// /DC0/vm/cluster-a389-fmxsv, datastore LocalDS_0, networks VM Network and DC0_DVPG0. It serves HTTPS on loopback and
// believes every password.
type VCenter struct {
	Service *simulator.Service
	Host    string // with the port
	CA      []byte // of its certificate, in PEM

	model  *simulator.Model
	server *simulator.Server
}

// Start returns when the vCenter is prepared. The context bounds the start only.
func Start(ctx context.Context) (*VCenter, error) {
	model := simulator.VPX()
	model.Machine = 2
	if err := model.Create(); err != nil {
		return nil, fmt.Errorf("make a vCenter: %w", err)
	}
	model.Service.TLS = new(tls.Config)
	model.Service.RegisterEndpoints = true
	v := &VCenter{Service: model.Service, model: model, server: model.Service.NewServer()}
	v.Host = v.server.URL.Host
	v.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: v.server.Certificate().Raw})
	client, err := govmomi.NewClient(ctx, v.server.URL, true)
	if err == nil {
		err = v.prepare(ctx, client.Client)
	}
	if err != nil {
		v.Stop()
		return nil, fmt.Errorf("prepare the vCenter: %w", err)
	}
	return v, nil
}

// Stop ends the vCenter and forgets everything in it.
func (v *VCenter) Stop() {
	v.server.Close()
	v.model.Remove()
}

// prepare makes what an administrator makes.
func (v *VCenter) prepare(ctx context.Context, c *vim25.Client) error {
	f := find.NewFinder(c)
	if err := v.template(ctx, f); err != nil {
		return err
	}
	dc, err := f.Datacenter(ctx, "/DC0")
	if err != nil {
		return err
	}
	folders, err := dc.Folders(ctx)
	if err != nil {
		return err
	}
	if _, err := folders.VmFolder.CreateFolder(ctx, "cluster-a389-fmxsv"); err != nil {
		return err
	}
	pool, err := f.ResourcePool(ctx, "/DC0/host/DC0_C0/Resources")
	if err != nil {
		return err
	}
	if _, err := pool.Create(ctx, "workers", types.DefaultResourceConfigSpec()); err != nil {
		return err
	}
	cluster, err := f.ClusterComputeResource(ctx, "/DC0/host/DC0_C0")
	if err != nil {
		return err
	}
	return done(ctx)(cluster.Reconfigure(ctx, &types.ClusterConfigSpecEx{GroupSpec: []types.ClusterGroupSpec{{
		ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd},
		Info:            &types.ClusterVmGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: "zone-a"}},
	}}}, true))
}

// template makes a template of one of the model's virtual machines.
func (v *VCenter) template(ctx context.Context, f *find.Finder) error {
	vm, err := f.VirtualMachine(ctx, "/DC0/vm/DC0_C0_RP0_VM0")
	if err != nil {
		return err
	}
	if err := done(ctx)(vm.PowerOff(ctx)); err != nil {
		return err
	}
	if err := done(ctx)(vm.Rename(ctx, Template)); err != nil {
		return err
	}
	v.Edit(vm.Reference(), func(m *simulator.VirtualMachine) { m.Config.Version = "vmx-19" })
	if err := done(ctx)(vm.CreateSnapshot(ctx, "golden", "", false, false)); err != nil {
		return err
	}
	if err := vm.MarkAsTemplate(ctx); err != nil {
		return err
	}
	sim := v.Service.Context
	g := &guests{taken: map[types.ManagedObjectReference]bool{}, cloning: map[string]*types.VirtualMachineConfigSpec{}}
	sim.Map.AddHandler(g)
	sim.Map.Put(&golden{sim.Map.Get(vm.Reference()).(*simulator.VirtualMachine), g})
	return nil
}

// Edit changes a virtual machine behind everybody's back.
func (v *VCenter) Edit(ref types.ManagedObjectReference, f func(*simulator.VirtualMachine)) {
	sim := v.Service.Context
	vm := sim.Map.Get(ref).(*simulator.VirtualMachine)
	sim.Map.WithLock(sim, ref, func() { f(vm) })
}

func done(ctx context.Context) func(*object.Task, error) error {
	return func(task *object.Task, err error) error {
		if err != nil {
			return err
		}
		return task.Wait(ctx)
	}
}
