// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator" // the tagging service
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// vcenter is VMware's own simulator, vcsim, over HTTPS.
type vcenter struct {
	server  *simulator.Server
	service *simulator.Service
	host    string
	ca      []byte
	users   atomic.Int32
	admin   *vim25.Client
}

const (
	templateName = "cluster-a389-fmxsv-rhcos"
	ignitionData = `{"ignition": {"version": "3.2.0"}}`
)

// newVCenter starts a vCenter with a cluster, a template, a resource pool, a folder and a VM group.
func newVCenter(t *testing.T) *vcenter {
	t.Helper()
	model := simulator.VPX()
	model.Machine = 2
	if err := model.Create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Remove)
	model.Service.TLS = new(tls.Config)
	model.Service.RegisterEndpoints = true
	v := &vcenter{service: model.Service, server: model.Service.NewServer()}
	t.Cleanup(v.server.Close)
	v.host = v.server.URL.Host
	v.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: v.server.Certificate().Raw})
	v.prepare(t)
	return v
}

// prepare makes what an administrator makes.
func (v *vcenter) prepare(t *testing.T) {
	t.Helper()
	ctx, c := t.Context(), v.client(t)
	f := find.NewFinder(c)
	vm, err := f.VirtualMachine(ctx, "/DC0/vm/DC0_C0_RP0_VM0")
	must(t, err)
	done(t)(vm.PowerOff(ctx))
	done(t)(vm.Rename(ctx, templateName))
	v.edit(vm.Reference(), func(m *simulator.VirtualMachine) { m.Config.Version = "vmx-19" })
	done(t)(vm.CreateSnapshot(ctx, "golden", "", false, false))
	must(t, vm.MarkAsTemplate(ctx))
	sim := v.service.Context
	g := &guests{taken: map[reference]bool{}, cloning: map[string]*types.VirtualMachineConfigSpec{}}
	sim.Map.AddHandler(g)
	sim.Map.Put(&golden{sim.Map.Get(vm.Reference()).(*simulator.VirtualMachine), g})
	dc, err := f.Datacenter(ctx, "/DC0")
	must(t, err)
	folders, err := dc.Folders(ctx)
	must(t, err)
	_, err = folders.VmFolder.CreateFolder(ctx, "cluster-a389-fmxsv")
	must(t, err)
	pool, err := f.ResourcePool(ctx, "/DC0/host/DC0_C0/Resources")
	must(t, err)
	_, err = pool.Create(ctx, "workers", types.DefaultResourceConfigSpec())
	must(t, err)
	cluster, err := f.ClusterComputeResource(ctx, "/DC0/host/DC0_C0")
	must(t, err)
	done(t)(cluster.Reconfigure(ctx, &types.ClusterConfigSpecEx{GroupSpec: []types.ClusterGroupSpec{{
		ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd},
		Info:            &types.ClusterVmGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: "zone-a"}},
	}}}, true))
}

// client is the administrator's.
func (v *vcenter) client(t *testing.T) *vim25.Client {
	t.Helper()
	if v.admin != nil {
		return v.admin
	}
	d, err := open(t.Context(), v.account())
	must(t, err)
	v.admin, err = d.(*driver).session.connect(t.Context())
	must(t, err)
	return v.admin
}

// account is that of another user each time, whose calls are counted by themselves.
func (v *vcenter) account() provider.Account {
	return provider.Account{
		Kind: Kind, ClusterID: "cluster-a389-fmxsv", Region: v.host, Namespace: "machines", Secret: "vsphere-cloud-credentials",
		Credentials: map[string][]byte{
			v.host + ".username": fmt.Appendf(nil, "machines-%d@vsphere.local", v.users.Add(1)), v.host + ".password": []byte("canary-7f3a"),
			v.host + ".ca": v.ca,
		},
		UserData: func(_ context.Context, name string) (map[string][]byte, string, error) {
			switch name {
			case "worker-user-data":
				return map[string][]byte{"userData": []byte(ignitionData)}, "1", nil
			case "cloud-init":
				return map[string][]byte{"userData": []byte("#cloud-config\n")}, "1", nil
			case "empty":
				return nil, "1", nil
			}
			return nil, "", errors.New("secrets \"" + name + "\" not found")
		},
	}
}

// spec is the providerSpec of the walk-through with fields replaced.
func (v *vcenter) spec(change map[string]any) json.RawMessage {
	s := map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": Kind, "template": templateName,
		"workspace": map[string]any{
			"server": v.host, "datacenter": "DC0", "folder": "/DC0/vm/cluster-a389-fmxsv", "datastore": "LocalDS_0",
			"resourcePool": "/DC0/host/DC0_C0/Resources/workers",
		},
		"network": map[string]any{"devices": []any{map[string]any{"networkName": "DC0_DVPG0"}, map[string]any{"networkName": "VM Network"}}},
		"numCPUs": 4, "numCoresPerSocket": 2, "memoryMiB": 12288, "diskGiB": 30,
		"dataDisks":      []any{map[string]any{"name": "images", "sizeGiB": 2, "provisioningMode": "Thin"}},
		"userDataSecret": map[string]any{"name": "worker-user-data"}, "credentialsSecret": map[string]any{"name": "vsphere-cloud-credentials"},
	}
	for k, value := range change {
		if inner, ok := value.(map[string]any); ok && s[k] != nil {
			for ik, iv := range inner {
				s[k].(map[string]any)[ik] = iv
			}
			continue
		}
		s[k] = value
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

// edit changes a virtual machine behind everybody's back.
func (v *vcenter) edit(ref reference, f func(*simulator.VirtualMachine)) {
	sim := v.service.Context
	vm := sim.Map.Get(ref).(*simulator.VirtualMachine)
	sim.Map.WithLock(sim, ref, func() { f(vm) })
}

// machines returns all virtual machines but the template and those that the model has, by name.
func (v *vcenter) machines(t *testing.T) map[string]mo.VirtualMachine {
	t.Helper()
	c := v.client(t)
	found, err := everywhere(t.Context(), c, "name")
	must(t, err)
	all := map[string]mo.VirtualMachine{}
	for _, o := range found {
		vm := object.NewVirtualMachine(c, o.Obj)
		var m mo.VirtualMachine
		must(t, vm.Properties(t.Context(), o.Obj, nil, &m))
		if m.Name != templateName && !strings.HasPrefix(m.Name, "DC0_") {
			all[m.Name] = m
		}
	}
	return all
}

// golden is a template whose clones get the identity that the call asks for, as API and vCenter have it
// (VirtualMachineCloneSpec.config). vcsim sets it on a copy that it throws away.
type golden struct {
	*simulator.VirtualMachine
	guests *guests
}

// CloneVMTask overrides vcsim's.
func (g *golden) CloneVMTask(ctx *simulator.Context, req *types.CloneVM_Task) soap.HasFault {
	g.guests.mu.Lock()
	if g.guests.cloning[req.Name] == nil { // else its name is taken, and the call is going to fail
		g.guests.cloning[req.Name] = req.Spec.Config
	}
	g.guests.mu.Unlock()
	res := g.VirtualMachine.CloneVMTask(ctx, req)
	if body, ok := res.(*methods.CloneVM_TaskBody); ok && body.Res != nil {
		ctx.Map.Get(body.Res.Returnval).(*simulator.Task).Wait() // vCenters let nobody at a clone that is not done; vcsim does
	}
	return res
}

// guests plays what vcsim lacks: a started instance's first network card gets an address.
type guests struct {
	mu      sync.Mutex
	taken   map[reference]bool
	cloning map[string]*types.VirtualMachineConfigSpec
}

func (*guests) Reference() reference                       { return reference{Type: "Guests", Value: "guests"} }
func (*guests) RemoveObject(*simulator.Context, reference) {}

func (*guests) PutObject(*simulator.Context, mo.Reference) {}

func (g *guests) UpdateObject(_ *simulator.Context, o mo.Reference, changes []types.PropertyChange) {
	vm, ok := o.(*mo.VirtualMachine)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if config := g.cloning[vm.Name]; config != nil {
		delete(g.cloning, vm.Name)
		vm.Config.InstanceUuid, vm.Summary.Config.InstanceUuid = config.InstanceUuid, config.InstanceUuid
		vm.Config.ExtraConfig = append(vm.Config.ExtraConfig, config.ExtraConfig...)
	}
	started := slices.ContainsFunc(changes, func(c types.PropertyChange) bool {
		return c.Name == "runtime.powerState" && c.Val == types.VirtualMachinePowerStatePoweredOn
	})
	if started && len(vm.Guest.Net) > 0 && len(vm.Guest.Net[0].IpAddress) == 0 {
		g.taken[vm.Self] = true
		n := len(g.taken)
		vm.Guest.Net[0].IpAddress = []string{fmt.Sprintf("10.0.%d.%d", n/250, n%250+1), "fe80::1"}
	}
}

// wire is the HTTP traffic of a driver, where a test may look and cut.
type wire struct {
	next http.RoundTripper
	mu   sync.Mutex
	sent []string // the SOAPAction's method, or the REST path
	cut  func(method string, next func() (*http.Response, error)) (*http.Response, error)
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	method := r.URL.Path
	if r.URL.Path == "/sdk" {
		method = methodOf(r)
	}
	w.mu.Lock()
	w.sent = append(w.sent, method)
	cut := w.cut
	w.mu.Unlock()
	if cut != nil {
		return cut(method, func() (*http.Response, error) { return w.next.RoundTrip(r) })
	}
	return w.next.RoundTrip(r)
}

func (w *wire) set(cut func(method string, next func() (*http.Response, error)) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

// count returns how many calls of these methods were sent.
func (w *wire) count(methods ...string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sent {
		if slices.Contains(methods, s) {
			n++
		}
	}
	return n
}

// methodOf reads the method out of a SOAP envelope.
func methodOf(r *http.Request) string {
	var b bytes.Buffer
	_, _ = b.ReadFrom(r.Body) // a request of this process
	r.Body = http.NoBody
	body := b.Bytes()
	r.Body = &replay{bytes.NewReader(body)}
	_, after, _ := strings.Cut(string(body), "<Body><")
	name, _, _ := strings.Cut(strings.TrimLeft(after, "<"), " ")
	return strings.TrimSuffix(strings.TrimSuffix(name, ">"), "/")
}

type replay struct{ *bytes.Reader }

func (replay) Close() error { return nil }

// wired opens a driver whose traffic the test holds.
func (v *vcenter) wired(t *testing.T, a provider.Account) (*driver, *wire) {
	t.Helper()
	d, err := open(t.Context(), a)
	must(t, err)
	s := d.(*driver).session
	guarded := s.soap.Client.Transport.(vcenterOnly)
	w := &wire{next: guarded.next}
	s.soap.Client.Transport = vcenterOnly{w}
	return d.(*driver), w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func done(t *testing.T) func(*object.Task, error) {
	t.Helper()
	return func(task *object.Task, err error) {
		t.Helper()
		must(t, err)
		must(t, task.Wait(t.Context()))
	}
}
