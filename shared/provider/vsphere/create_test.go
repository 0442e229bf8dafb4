// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// make creates an instance of a spec, as often as it takes.
func create(t *testing.T, d *driver, name string, spec json.RawMessage) (provider.Ref, provider.Instance, error) {
	t.Helper()
	r := provider.Ref{UID: uuid.NewUUID(), Name: name, Token: "token-" + name}
	resolved, err := d.Resolve(t.Context(), spec)
	if err != nil {
		return r, provider.Instance{}, err
	}
	i, err := proceed(t.Context(), d, r, resolved)
	return r, i, err
}

// proceed calls Create until the instance is complete. Errors that prove nothing are tried again, with the progress of
// before.
func proceed(ctx context.Context, d *driver, r provider.Ref, resolved json.RawMessage) (provider.Instance, error) {
	for try := 0; ; try++ {
		i, err := d.Create(ctx, r, resolved)
		switch {
		case try == 100, err != nil && provider.CodeOf(err) != provider.Unknown && provider.CodeOf(err) != provider.Throttled:
			return i, err
		case err == nil && i.State != provider.StateIncomplete:
			return i, nil
		case err == nil:
			r.Progress = i.Progress
		}
	}
}

// failedTask puts a task into the vCenter that ended with a fault, as one does that takes longer than a call waits, and
// returns the progress that speaks of it.
func failedTask(t *testing.T, v *vcenter, step string, fault types.BaseMethodFault) []byte {
	t.Helper()
	root := v.client(t).ServiceContent.RootFolder
	task := &simulator.Task{Execute: func(*simulator.Task) (types.AnyType, types.BaseMethodFault) { return nil, nil }}
	task.Self = reference{Type: "Task", Value: "task-failed"}
	task.Info = types.TaskInfo{State: types.TaskInfoStateError, Entity: &root, Error: &types.LocalizedMethodFault{Fault: fault, LocalizedMessage: "not now"}}
	v.service.Context.Map.Put(task)
	p, err := json.Marshal(progress{Step: step, Task: &task.Self})
	must(t, err)
	return p
}

// A step whose task failed is told once, and then begun anew (SPEC E2, E27).
func TestStepThatFailedIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		step, call string
		fault      types.BaseMethodFault
		made       bool // a clone is there
	}{
		{stepClone, "CloneVM_Task", &types.TaskInProgress{}, false},
		{stepClone, "CloneVM_Task", &types.InvalidDeviceSpec{}, false}, // as where no port of the network is free
		{stepStart, "PowerOnVM_Task", &types.InsufficientMemoryResourcesFault{}, true},
		{stepStart, "PowerOnVM_Task", &types.InvalidDeviceBacking{}, true}, // as where the host has lost the network
		{stepCustomize, "CustomizeVM_Task", &types.ResourceInUse{}, true},
	} {
		t.Run(tt.step+" "+name(tt.fault), func(t *testing.T) {
			t.Parallel()
			v := newVCenter(t)
			d, w := v.wired(t, v.account())
			spec := v.spec(map[string]any{"userDataSecret": map[string]any{"name": "cloud-init"}, "network": map[string]any{"devices": []any{
				map[string]any{"networkName": "VM Network", "ipAddrs": []string{"10.0.0.7/24"}, "gateway": "10.0.0.1"}}}})
			resolved, err := d.Resolve(t.Context(), spec)
			must(t, err)
			r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
			if tt.made {
				_, err := d.Create(t.Context(), r, resolved)
				must(t, err)
			}
			r.Progress = failedTask(t, v, tt.step, tt.fault)
			before := w.count(tt.call)
			in, err := d.Create(t.Context(), r, resolved)
			if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), tt.step+" worker-a: not now") || w.count(tt.call) != before {
				t.Fatalf("Create = %v, %d calls", err, w.count(tt.call)-before)
			}
			r.Progress = in.Progress
			in, err = proceed(t.Context(), d, r, resolved)
			if err != nil || in.State != provider.StateRunning || w.count(tt.call) != before+1 {
				t.Errorf("then %+v, %v, %d calls", in, err, w.count(tt.call)-before)
			}
		})
	}
}

func TestEveryFieldArrives(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	ctx, c := t.Context(), v.client(t)
	d, _ := v.wired(t, v.account())
	tag := v.tag(t, d, "owner", "team-a", reference{})
	cluster, err := find.NewFinder(c).ClusterComputeResource(ctx, "/DC0/host/DC0_C0")
	must(t, err)
	dc, err := find.NewFinder(c).Datacenter(ctx, "/DC0")
	must(t, err)
	v.tag(t, d, regionCategory, "eu", dc.Reference())
	v.tag(t, d, zoneCategory, "eu-1", cluster.Reference())
	r, i, err := create(t, d, "worker-a", v.spec(map[string]any{
		"tagIDs": []string{tag}, "workspace": map[string]any{"vmGroup": "zone-a"},
		"dataDisks": []any{
			map[string]any{"name": "a", "sizeGiB": 1, "provisioningMode": "Thick"},
			map[string]any{"name": "b", "sizeGiB": 2, "provisioningMode": "EagerlyZeroed"},
		},
		"network": map[string]any{"devices": []any{
			map[string]any{"networkName": "DC0_DVPG0", "ipAddrs": []string{"10.1.0.7/20"}, "gateway": "10.1.0.1", "nameservers": []string{"10.1.0.2"}},
			map[string]any{"networkName": "VM Network"},
		}},
	}))
	must(t, err)
	m := v.machines(t)["worker-a"]
	if i.ProviderID != "vsphere://"+m.Config.Uuid || i.Region != "eu" || i.Zone != "eu-1" || i.CloudState != "poweredOn" || i.State != provider.StateRunning {
		t.Errorf("instance = %+v", i)
	}
	got := map[string]any{
		"instanceUuid": m.Config.InstanceUuid, "cpu": m.Config.Hardware.NumCPU, "cores": *m.Config.Hardware.NumCoresPerSocket,
		"memory": m.Config.Hardware.MemoryMB, "diskUUID": *m.Config.Flags.DiskUuidEnabled, "cards": cards(m), "disks": disks(m),
		"folder": pathOf(t, v, *m.Parent), "pool": pathOf(t, v, *m.ResourcePool), "status": string(i.Status),
	}
	want := map[string]any{
		"instanceUuid": string(r.UID), "cpu": int32(4), "cores": int32(2), "memory": int32(12288), "diskUUID": true,
		"cards":  []string{"*types.VirtualEthernetCardDistributedVirtualPortBackingInfo", "*types.VirtualEthernetCardNetworkBackingInfo"},
		"disks":  []string{"30GiB", "1GiB thin=false scrub=false", "2GiB thin=false scrub=true"},
		"folder": "/DC0/vm/cluster-a389-fmxsv", "pool": "/DC0/host/DC0_C0/Resources/workers",
		"status": fmt.Sprintf(`{"instanceId":%q,"instanceState":"poweredOn"}`, i.ID),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instance (-want +got):\n%s", diff)
	}
	settings := settingsOf(m)
	for key, want := range map[string]string{
		"guestinfo.ignition.config.data":           "eyJpZ25pdGlvbiI6IHsidmVyc2lvbiI6ICIzLjIuMCJ9fQ==",
		"guestinfo.ignition.config.data.encoding":  "base64",
		"guestinfo.hostname":                       "worker-a",
		"stealclock.enable":                        "TRUE",
		"guestinfo.afterburn.initrd.network-kargs": "ip=10.1.0.7::10.1.0.1:255.255.240.0:::none nameserver=10.1.0.2",
	} {
		if settings[key] != want {
			t.Errorf("%s = %q, want %q", key, settings[key], want)
		}
	}
	group, err := members(ctx, c, cluster.Reference(), "zone-a")
	if err != nil || !slices.Contains(group, m.Self) {
		t.Errorf("VM group has %v, %v, want %v", group, err, m.Self)
	}
	must(t, d.session.tagging(ctx, c, func(tm *tags.Manager) error {
		ids, err := tm.ListAttachedTags(ctx, m.Self)
		if err == nil && !slices.Contains(ids, tag) {
			t.Errorf("tags %v, want %s", ids, tag)
		}
		return err
	}))
}

// A template's sockets need not fit the CPUs of a spec, and a vCenter takes none that do not: a spec that says nothing of them has one socket.
// What says nothing of CPUs either has its template's.
func TestSocketsFitTheCPUs(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	r, resolved := begun(t, d, v.spec(nil))
	c, err := d.session.connect(t.Context())
	must(t, err)
	var req request
	must(t, json.Unmarshal(resolved, &req))
	sent := ""
	w.next = spy{w.next, func(body string) { sent = body }}
	for _, tt := range []struct {
		cpus, cores int64
		want        string
	}{{3, 0, "<numCPUs>3</numCPUs><numCoresPerSocket>3</numCoresPerSocket>"}, {4, 2, "<numCPUs>4</numCPUs><numCoresPerSocket>2</numCoresPerSocket>"}, {0, 0, ""}} {
		m, err := d.one(t.Context(), c, r)
		must(t, err)
		req.Spec.NumCPUs, req.Spec.NumCoresPerSocket = tt.cpus, tt.cores
		_, err = d.configure(t.Context(), c, r, req, *m)
		if must(t, err); !strings.Contains(sent, tt.want) || tt.want == "" && strings.Contains(sent, "<num") {
			t.Errorf("%d CPUs, %d cores per socket: sent was %s", tt.cpus, tt.cores, sent)
		}
	}
}

// A card may have addresses of both families, and a gateway of one: the other has none, instead of one that it cannot reach.
func TestGatewayIsOfItsAddressesFamily(t *testing.T) {
	t.Parallel()
	addresses := []string{"10.1.0.7/20", "2001:db8::7/64"}
	for gateway, want := range map[string]string{
		"10.1.0.1":    "ip=10.1.0.7::10.1.0.1:255.255.240.0:::none ip=[2001:db8::7]:::64:::none",
		"2001:db8::1": "ip=10.1.0.7:::255.255.240.0:::none ip=[2001:db8::7]::[2001:db8::1]:64:::none",
		"":            "ip=10.1.0.7:::255.255.240.0:::none ip=[2001:db8::7]:::64:::none",
	} {
		if got := kernelArguments([]providerspec.VSphereDevice{{Gateway: gateway, IPAddrs: addresses}}); got != want {
			t.Errorf("gateway %q: %s, want %s", gateway, got, want)
		}
	}
}

// An address's zone is one word, or the kernel of the guest would read arguments in it.
func TestZonesAreWords(t *testing.T) {
	t.Parallel()
	const bad = "fe80::1%] systemd.unit=emergency.target rd.break ["
	for named, d := range map[string]providerspec.VSphereDevice{
		"gateway: ": {Gateway: bad}, "nameservers: ": {Nameservers: []string{"192.0.2.53", bad}}, "ipAddrs: ": {IPAddrs: []string{"fe80::1%x y/64"}},
	} {
		d.IPAddrs = append(d.IPAddrs, "2001:db8::7/64")
		if err := checkDevice(d); err == nil || !strings.HasPrefix(err.Error(), named) || !strings.Contains(err.Error(), "fe80::1%") {
			t.Errorf("%+v: %v", d, err)
		}
		for arg := range strings.FieldsSeq(kernelArguments([]providerspec.VSphereDevice{d})) {
			if !argument.MatchString(arg) {
				t.Errorf("%+v adds the kernel argument %q", d, arg)
			}
		}
	}
	good := providerspec.VSphereDevice{IPAddrs: []string{"2001:DB8::7/64"}, Gateway: "FE80::1%eth0.1", Nameservers: []string{"2001:db8:0::53", "192.0.2.53"}}
	want := "ip=[2001:db8::7]::[fe80::1%eth0.1]:64:::none nameserver=2001:db8::53 nameserver=192.0.2.53"
	if got := kernelArguments([]providerspec.VSphereDevice{good}); checkDevice(good) != nil || got != want {
		t.Errorf("%s, want %s; %v", got, want, checkDevice(good))
	}
	if got := adapter(good); got.IpV6Spec.Gateway[0] != "fe80::1%eth0.1" || got.DnsServerList[0] != "2001:db8::53" {
		t.Errorf("%+v, %+v", got, got.IpV6Spec)
	}
}

func TestLinkedClone(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	for name, tt := range map[string]struct {
		snapshot, names string
		code            provider.Code
	}{
		"worker-a": {"", "", 0},
		"worker-b": {"golden", "", 0},
		"worker-c": {"silver", "silver", provider.NotFound},
	} {
		_, _, err := create(t, d, name, v.spec(map[string]any{"cloneMode": "linkedClone", "snapshot": tt.snapshot}))
		if provider.CodeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.names) {
			t.Errorf("%s: %v, want code %v", name, err, tt.code)
		}
	}
	if n := w.count("CloneVM_Task"); n != 2 {
		t.Errorf("%d clones, want 2", n)
	}
	var req request
	resolved, err := d.Resolve(t.Context(), v.spec(map[string]any{"cloneMode": "linkedClone"}))
	must(t, err)
	must(t, json.Unmarshal(resolved, &req))
	if req.Snapshot == nil {
		t.Errorf("resolved %s: no snapshot", resolved)
	}
}

func TestPrerequisiteThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, _ := v.wired(t, v.account())
	for _, tt := range []struct {
		change map[string]any
		code   provider.Code
		names  []string
	}{
		{map[string]any{"userDataSecret": map[string]any{"name": "absent"}}, provider.Exhausted, []string{"machines/absent", "not found"}},
		{map[string]any{"userDataSecret": map[string]any{"name": "unread"}}, provider.Unknown, []string{"machines/unread", "not ready"}},
		{map[string]any{"userDataSecret": map[string]any{"name": "empty"}}, provider.Exhausted, []string{"machines/empty", "no key userData"}},
		{map[string]any{"workspace": map[string]any{"vmGroup": "zone-z"}}, provider.NotFound, []string{"providerSpec.value.workspace.vmGroup", "zone-z"}},
		{map[string]any{"tagIDs": []string{"urn:vmomi:InventoryServiceTag:5736bf56-49f5-4667-b38c-b97e09dc9578:GLOBAL"}}, provider.NotFound, []string{"providerSpec.value.tagIDs[0]", "5736bf56"}},
	} {
		_, _, err := create(t, d, "worker-"+tt.names[0][len(tt.names[0])-3:len(tt.names[0])-1], v.spec(tt.change))
		if provider.CodeOf(err) != tt.code {
			t.Errorf("%v: %v, want %v", tt.change, err, tt.code)
			continue
		}
		for _, want := range tt.names {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not name %s", err, want)
			}
		}
	}
}

// A volume of a pod is attached to the instance when that is deleted: it outlives it (SPEC E25, R-B29).
func TestForeignDisksOutliveTheInstance(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	ctx, c := t.Context(), v.client(t)
	d, w := v.wired(t, v.account())
	r, _, err := create(t, d, "worker-a", v.spec(nil))
	must(t, err)
	vm := object.NewVirtualMachine(c, v.machines(t)["worker-a"].Self)
	store, _ := v.volume(t, vm, "persistent")
	err = removed(t, d, r)
	if provider.CodeOf(err) != provider.NotFound || len(v.machines(t)) != 0 {
		t.Fatalf("Delete = %v, left %v", err, v.machines(t))
	}
	if w.count("ReconfigVM_Task") < 3 { // configure, note disks, detach
		t.Error("nothing was detached")
	}
	if _, err := store.Stat(ctx, "kubevols/pvc-1.vmdk"); err != nil {
		t.Errorf("the volume is gone: %v", err)
	}
}

// volume attaches a disk that is not the instance's own, and returns where it lies.
func (v *vcenter) volume(t *testing.T, vm *object.VirtualMachine, mode types.VirtualDiskMode) (*object.Datastore, *types.VirtualDisk) {
	t.Helper()
	ctx, c := t.Context(), v.client(t)
	devices, err := vm.Device(ctx)
	must(t, err)
	controller, err := devices.FindDiskController("")
	must(t, err)
	finder := find.NewFinder(c)
	store, err := finder.Datastore(ctx, "/DC0/datastore/LocalDS_0")
	must(t, err)
	dc, err := finder.Datacenter(ctx, "/DC0")
	must(t, err)
	must(t, object.NewFileManager(c).MakeDirectory(ctx, store.Path("kubevols"), dc, true))
	disk := devices.CreateDisk(controller, store.Reference(), store.Path("kubevols/pvc-1.vmdk"))
	disk.CapacityInKB = 1 << 20
	disk.Backing.(*types.VirtualDiskFlatVer2BackingInfo).DiskMode = string(mode) // CreateDisk makes no other
	must(t, vm.AddDevice(ctx, disk))
	devices, err = vm.Device(ctx)
	must(t, err)
	disks := disksOf(devices)
	return store, disks[len(disks)-1]
}

// noteDisks notes all disks of an instance as its own: vcsim lets those of the template lie in the template's folder.
func (v *vcenter) noteDisks(t *testing.T, vm *object.VirtualMachine) {
	t.Helper()
	disks, err := attached(t.Context(), v.client(t), vm.Reference())
	must(t, err)
	var own launched
	for _, disk := range disks {
		own.Disks = append(own.Disks, diskID(disk))
	}
	setting, err := noted(keyLaunched, own)
	must(t, err)
	done(t)(vm.Reconfigure(t.Context(), types.VirtualMachineConfigSpec{ExtraConfig: []types.BaseOptionValue{setting}}))
}

// removed calls Delete until it says anything.
func removed(t *testing.T, d *driver, r provider.Ref) (err error) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && err == nil; {
		err = d.Delete(t.Context(), r)
	}
	return err
}

// A vCenter destroys with an instance what its snapshots hold, also what was detached since. A disk of somebody else's in one
// keeps the instance until people have seen to it; independent disks, as pods' volumes are, are in none.
func TestDiskInASnapshotOutlivesTheInstance(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		mode     types.VirtualDiskMode
		detached bool // before the instance is deleted
		kept     bool
	}{
		{"attached", types.VirtualDiskModePersistent, false, true},
		{"detached since", types.VirtualDiskModePersistent, true, true},
		{"in no snapshot", types.VirtualDiskModeIndependent_persistent, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := newVCenter(t)
			ctx := t.Context()
			d, w := v.wired(t, v.account())
			r, _, err := create(t, d, "worker-a", v.spec(nil))
			must(t, err)
			vm := object.NewVirtualMachine(v.client(t), v.machines(t)["worker-a"].Self)
			v.noteDisks(t, vm)
			store, disk := v.volume(t, vm, tt.mode)
			done(t)(vm.CreateSnapshot(ctx, "nightly", "", false, false))
			if tt.detached {
				must(t, vm.RemoveDevice(ctx, true, disk))
			}
			reconfigured := w.count("ReconfigVM_Task")
			err = removed(t, d, r)
			if tt.kept {
				if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), `"nightly"`) || !strings.Contains(err.Error(), "kubevols/pvc-1.vmdk") {
					t.Errorf("Delete = %v", err)
				}
				if w.count("Destroy_Task") > 0 || w.count("ReconfigVM_Task") > reconfigured || len(v.machines(t)) != 1 {
					t.Fatal("the snapshot was not left alone")
				}
				done(t)(vm.RemoveAllSnapshot(ctx, nil))
				err = removed(t, d, r)
			}
			if provider.CodeOf(err) != provider.NotFound || len(v.machines(t)) != 0 {
				t.Fatalf("Delete = %v, left %v", err, v.machines(t))
			}
			if _, err := store.Stat(ctx, "kubevols/pvc-1.vmdk"); err != nil && !tt.detached { // else it went with the snapshot, as people wanted
				t.Errorf("the volume is gone: %v", err)
			}
		})
	}
}

func TestOwnDisksAreThoseOfTheFolderThatHaveNoOtherLife(t *testing.T) {
	t.Parallel()
	disk := func(file, id, other string) *types.VirtualDisk {
		b := &types.VirtualDiskFlatVer2BackingInfo{Uuid: id}
		b.FileName = file
		d := &types.VirtualDisk{VirtualDevice: types.VirtualDevice{Backing: b}}
		if other != "" {
			d.VDiskId = &types.ID{Id: other}
		}
		return d
	}
	all := []*types.VirtualDisk{
		disk("[ds1] worker-a/worker-a.vmdk", "root", ""), disk("[ds2] worker-a/worker-a_1.vmdk", "data", ""),
		disk("[ds1] kubevols/pvc-1.vmdk", "volume", ""), disk("[ds1] worker-a/moved.vmdk", "fcd", "a-life"), disk("[ds1] worker-a/nameless.vmdk", "", ""),
	}
	if got, want := ownDisks(all, "worker-a"), []string{"data", "root"}; !slices.Equal(got, want) {
		t.Errorf("own disks %v, want %v", got, want)
	}
}

func TestStrangerOfTheSameName(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, _ := v.wired(t, v.account())
	_, _, err := create(t, d, "worker-a", v.spec(nil))
	must(t, err)
	_, _, err = create(t, d, "worker-a", v.spec(nil))
	if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "rename or remove it") {
		t.Errorf("Create = %v", err)
	}
}

// What a guest says of itself is believed of its network cards alone, as far as it is an address, once, and of no more than a host has.
func TestAddressesAreTheGuests(t *testing.T) {
	t.Parallel()
	m := clone{Name: "worker-a", Guest: []types.GuestNicInfo{
		{DeviceConfigId: 4000, IpAddress: []string{
			"10.0.0.7", "fe80::1", "fd00::7", "10.0.0.7", "::ffff:10.0.0.7", "fd00::8%kubernetes.default.svc", "0.0.0.0", "224.0.0.1", "x",
		}},
		{DeviceConfigId: -1, IpAddress: []string{"10.128.0.1"}}, // a bridge of pods
	}}
	want := []corev1.NodeAddress{{Type: "InternalDNS", Address: "worker-a"}, {Type: "InternalIP", Address: "10.0.0.7"}, {Type: "InternalIP", Address: "fd00::7"}}
	if diff := cmp.Diff(want, (&driver{}).instance(m).Addresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

// An address that moves between the cluster's Nodes, which a guest tells of as one of its card, is none of a Machine's: it is on another one
// tomorrow, and Nodes are looked for by those.
func TestVirtualAddressesAreNobodys(t *testing.T) {
	t.Parallel()
	m := clone{Name: "worker-a", Guest: []types.GuestNicInfo{{DeviceConfigId: 4000, IpAddress: []string{"10.0.0.5", "10.0.0.7", "fd00:0::5", "fd00::7"}}}}
	d := &driver{account: provider.Account{VirtualIPs: []string{"::ffff:10.0.0.5", "FD00::5", "nonsense"}}}
	want := []corev1.NodeAddress{{Type: "InternalDNS", Address: "worker-a"}, {Type: "InternalIP", Address: "10.0.0.7"}, {Type: "InternalIP", Address: "fd00::7"}}
	if diff := cmp.Diff(want, d.instance(m).Addresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

// tag makes a tag in a category, and attaches it unless to is empty.
func (v *vcenter) tag(t *testing.T, d *driver, category, name string, to reference) (id string) {
	t.Helper()
	ctx := t.Context()
	c, err := d.session.connect(ctx)
	must(t, err)
	must(t, d.session.tagging(ctx, c, func(m *tags.Manager) error {
		cid, err := m.CreateCategory(ctx, &tags.Category{Name: category, Cardinality: "SINGLE"})
		if err != nil {
			return err
		}
		if id, err = m.CreateTag(ctx, &tags.Tag{Name: name, CategoryID: cid}); err != nil || to.Value == "" {
			return err
		}
		return m.AttachTag(ctx, id, to)
	}))
	return id
}

func pathOf(t *testing.T, v *vcenter, ref reference) string {
	t.Helper()
	p, err := find.InventoryPath(t.Context(), v.client(t), ref)
	must(t, err)
	return p
}

func settingsOf(m mo.VirtualMachine) map[string]string {
	all := map[string]string{}
	for _, o := range m.Config.ExtraConfig {
		all[o.GetOptionValue().Key] = fmt.Sprint(o.GetOptionValue().Value)
	}
	return all
}

func cards(m mo.VirtualMachine) (all []string) {
	for _, d := range m.Config.Hardware.Device {
		if card, ok := d.(types.BaseVirtualEthernetCard); ok {
			all = append(all, fmt.Sprintf("%T", card.GetVirtualEthernetCard().Backing))
		}
	}
	return all
}

func disks(m mo.VirtualMachine) (all []string) {
	for i, d := range disksOf(m.Config.Hardware.Device) {
		text := fmt.Sprintf("%dGiB", d.CapacityInKB/kibPerGiB)
		if b := d.Backing.(*types.VirtualDiskFlatVer2BackingInfo); i > 0 {
			text += fmt.Sprintf(" thin=%v scrub=", *b.ThinProvisioned)
			if b.EagerlyScrub != nil {
				text += fmt.Sprint(*b.EagerlyScrub)
			}
		}
		all = append(all, text)
	}
	return all
}
