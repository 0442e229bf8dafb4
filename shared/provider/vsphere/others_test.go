// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// The list of a VM group is written as a whole: whoever joins one leaves its other members in it, and those of other groups alone. Who could not
// read it writes nothing.
func TestWhoJoinsAGroupLeavesTheOthersInIt(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	ctx, c := t.Context(), v.client(t)
	f := find.NewFinder(c)
	cluster, err := f.ClusterComputeResource(ctx, "/DC0/host/DC0_C0")
	must(t, err)
	others, err := f.VirtualMachineList(ctx, "/DC0/vm/DC0_*")
	must(t, err)
	into := func(group string) request {
		return request{Group: new(cluster.Reference()), Spec: providerspec.VSphere{Workspace: providerspec.VSphereWorkspace{VMGroup: group}}}
	}
	first, second, joins := others[0].Reference(), others[1].Reference(), others[2].Reference()
	for name, member := range map[string]reference{"zone-b": second, "zone-a": first} {
		spec := types.ClusterGroupSpec{ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationEdit}}
		if name == "zone-b" {
			spec.Operation = types.ArrayUpdateOperationAdd
		}
		spec.Info = &types.ClusterVmGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: name}, Vm: []reference{member}}
		done(t)(cluster.Reconfigure(ctx, &types.ClusterConfigSpecEx{GroupSpec: []types.ClusterGroupSpec{spec}}, true))
	}
	d, w := v.wired(t, v.account())
	mine, err := d.session.connect(ctx)
	must(t, err)
	for range 2 { // who is a member has joined
		task, err := d.join(ctx, mine, into("zone-b"), clone{Ref: joins})
		must(t, err)
		if task != nil {
			must(t, object.NewTask(c, *task).Wait(ctx))
		}
	}
	for group, want := range map[string][]reference{"zone-a": {first}, "zone-b": {second, joins}} {
		if have, err := members(ctx, c, cluster.Reference(), group); err != nil || !slices.Equal(have, want) {
			t.Errorf("%s has %v, %v; want %v", group, have, err, want)
		}
	}
	written := w.count("ReconfigureComputeResource_Task")
	once(w, "", 1, "a proxy's page")
	if task, err := d.join(ctx, mine, into("zone-a"), clone{Ref: joins}); err == nil || task != nil || w.count("ReconfigureComputeResource_Task") != written {
		t.Errorf("join of a group that could not be read = %v, %v", task, err)
	}
}

// Of two that join a VM group at the same time the one that read the older list, and wrote later, takes the other out of it, though that may be
// complete by then: it puts it back when its own instance has started. What people have moved to another cluster the group takes no more, and what
// a copy says of itself does not count.
func TestWhoJoinsAGroupLateTakesNobodyOut(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	ctx, c := t.Context(), v.client(t)
	spec := v.spec(map[string]any{"workspace": map[string]any{"vmGroup": "zone-a"}})
	late, w := v.wired(t, v.account())
	prompt, _ := v.wired(t, v.account())
	var between sync.Once
	w.set(func(method string, next func() (*http.Response, error)) (*http.Response, error) {
		if method == "ReconfigureComputeResource_Task" {
			between.Do(func() {
				if _, in, err := create(t, prompt, "worker-b", spec); err != nil || in.State != provider.StateRunning {
					t.Errorf("the other = %+v, %v", in, err)
				}
			})
		}
		return next()
	})
	_, in, err := create(t, late, "worker-a", spec)
	if must(t, err); in.State != provider.StateRunning {
		t.Errorf("%+v", in)
	}
	cluster, err := find.NewFinder(c).ClusterComputeResource(ctx, "/DC0/host/DC0_C0")
	must(t, err)
	all := v.machines(t)
	has := func(who ...string) {
		t.Helper()
		have, err := members(ctx, c, cluster.Reference(), "zone-a")
		must(t, err)
		for _, name := range who {
			if !slices.Contains(have, all[name].Self) {
				t.Errorf("the group has %v, and not %s (%s)", have, name, all[name].Self.Value)
			}
		}
	}
	has("worker-a", "worker-b")

	done(t)(cluster.Reconfigure(ctx, &types.ClusterConfigSpecEx{GroupSpec: []types.ClusterGroupSpec{{ // as of somebody with a list from before both
		ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationEdit},
		Info:            &types.ClusterVmGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: "zone-a"}},
	}}}, true))
	copied := copyOf(t, v, all["worker-b"], "forensics", "")
	moved(t, v, all["worker-b"].Self)
	_, _, err = create(t, prompt, "worker-c", spec)
	must(t, err)
	all = v.machines(t)
	has("worker-a", "worker-c")
	have, err := members(ctx, c, cluster.Reference(), "zone-a")
	if err != nil || slices.Contains(have, copied.Self) || slices.Contains(have, all["worker-b"].Self) {
		t.Errorf("the group has %v, %v, with a copy (%v) or what is in no cluster (%v)", have, err, copied.Self.Value, all["worker-b"].Self.Value)
	}
}

// Who joins a group asks for the marks of those in its cluster, and for no more: a vCenter may have thousands of others. Whom people have moved
// to where the user may read nothing keeps nobody from it.
func TestWhoJoinsAGroupAsksItsClusterForMarks(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	ctx, c := t.Context(), v.client(t)
	spec := v.spec(map[string]any{"workspace": map[string]any{"vmGroup": "zone-a"}})
	d, w := v.wired(t, v.account())
	for _, name := range []string{"worker-a", "worker-b"} {
		_, _, err := create(t, d, name, spec)
		must(t, err)
	}
	cluster, err := find.NewFinder(c).ClusterComputeResource(ctx, "/DC0/host/DC0_C0")
	must(t, err)
	done(t)(cluster.Reconfigure(ctx, &types.ClusterConfigSpecEx{GroupSpec: []types.ClusterGroupSpec{{
		ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationEdit},
		Info:            &types.ClusterVmGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: "zone-a"}},
	}}}, true))
	stays, goes := v.machines(t)["worker-a"].Self, v.machines(t)["worker-b"].Self
	moved(t, v, goes)
	var looks []string
	w.set(func(method string, next func() (*http.Response, error)) (*http.Response, error) {
		res, err := next()
		if err != nil {
			return res, err
		}
		body, err := io.ReadAll(res.Body)
		res.Body = io.NopCloser(bytes.NewReader(body))
		text := string(body)
		if strings.Contains(text, ">"+goes.Value+"<") && strings.Contains(text, "<name>config.") || strings.Contains(text, ">"+stays.Value+"<") && strings.Contains(text, "<name>config.changeVersion</name>") {
			looks = append(looks, method)
		}
		return res, err
	})
	_, in, err := create(t, d, "worker-c", spec)
	if err != nil || in.State != provider.StateRunning || len(looks) > 0 {
		t.Errorf("the next one = %+v, %v, with looks at others by %v", in, err, looks)
	}
	have, err := members(ctx, c, cluster.Reference(), "zone-a")
	if want := []reference{v.machines(t)["worker-c"].Self, stays}; err != nil || !slices.Equal(have, want) {
		t.Errorf("the group has %v, %v, want %v", have, err, want)
	}
}

// moved takes an instance out of its cluster; vcsim leaves it there when it is relocated.
func moved(t *testing.T, v *vcenter, m reference) {
	t.Helper()
	ctx := v.service.Context
	vm := ctx.Map.Get(m).(*simulator.VirtualMachine)
	pool, host := ctx.Map.Get(*vm.ResourcePool).(*simulator.ResourcePool), ctx.Map.Get(*vm.Runtime.Host).(*simulator.HostSystem)
	ctx.Map.RemoveReference(ctx, pool, &pool.Vm, m)
	ctx.Map.RemoveReference(ctx, host, &host.Vm, m)
}

// spy tells what is sent.
type spy struct {
	next http.RoundTripper
	sent func(body string)
}

func (s spy) RoundTrip(r *http.Request) (*http.Response, error) {
	b, _ := io.ReadAll(r.Body) // a request of this process
	r.Body = &replay{bytes.NewReader(b)}
	s.sent(string(b))
	return s.next.RoundTrip(r)
}

// An instance's own disks are noted once they are known: by a note of none, or of some, the others would outlive it. And a change is one of what
// was read: somebody may have attached a disk since, which is not the instance's own.
func TestDisksAreNotedOnceTheyAreKnown(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	r, _ := begun(t, d, v.spec(nil))
	c, err := d.session.connect(t.Context())
	must(t, err)
	m, err := d.one(t.Context(), c, r)
	must(t, err)
	for _, method := range []string{"RetrievePropertiesEx", "RetrieveProperties"} {
		for n := 1; n <= 2; n++ { // the disks, and where they lie
			before := w.count(method)
			once(w, method, n, "a proxy's page")
			if task, err := note(t.Context(), c, *m); w.count(method) > before && (err == nil || w.count("ReconfigVM_Task") != 0) {
				t.Errorf("note without an answer to %d. %s = %v, %v", n, method, task, err)
			}
		}
	}
	w.set(nil)
	sent := ""
	w.next = spy{w.next, func(body string) { sent += body }}
	m.Version = "2026-11-27T00:00:00Z"
	_, err = note(t.Context(), c, *m)
	if must(t, err); !strings.Contains(sent, "<changeVersion>"+m.Version+"</changeVersion>") {
		t.Errorf("sent was %s", sent)
	}
}

// What has started is not prepared again, nor is what has been done done twice: an instance that people switched off would come up with other
// settings.
func TestWhatIsPreparedIsNotPreparedAgain(t *testing.T) {
	t.Parallel()
	tagged := request{Spec: providerspec.VSphere{TagIDs: []string{"t"}}}
	for name, c := range map[string]struct {
		req  request
		have clone
		p    progress
	}{
		"one that was launched and is off": {tagged, clone{Launched: &launched{}}, progress{}},
		"one that runs":                    {tagged, clone{Power: types.VirtualMachinePowerStatePoweredOn}, progress{}},
		"configured":                       {request{}, clone{Configured: byUserData}, progress{}},
		"tagged":                           {tagged, clone{Configured: byUserData}, progress{Tagged: true}},
		"customized":                       {request{}, clone{Configured: byCustomization}, progress{Customized: true}},
		"being customized":                 {request{}, clone{Configured: byCustomization, Customizing: "c"}, progress{}},
	} {
		p := c.p
		d := &driver{}
		d.cluster.asked = time.Now()                                                          // no tag of the cluster
		began, err := d.prepare(t.Context(), nil, provider.Ref{Name: "m"}, c.req, c.have, &p) // there is no vCenter to ask
		if began || err != nil || p != c.p {
			t.Errorf("%s: %v, %v, %+v", name, began, err, p)
		}
	}
}

// A name that is taken while nobody can look at whose is no refusal: the clone may be the Machine's own, and another attempt would begin beside it
// (R-S1).
func TestTakenNameThatCannotBeLookedAtIsNoRefusal(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	r, _ := begun(t, d, v.spec(nil))
	other := provider.Ref{UID: uuid.NewUUID(), Name: r.Name}
	c, err := d.session.connect(t.Context())
	must(t, err)
	req := request{Folder: *v.machines(t)[r.Name].Parent}
	if err := d.taken(t.Context(), c, r, req); err != nil {
		t.Errorf("taken by its own = %v", err)
	}
	if err := d.taken(t.Context(), c, other, req); provider.CodeOf(err) != provider.Exhausted {
		t.Errorf("taken by another's = %v", err)
	}
	for _, method := range []string{"FindAllByUuid", "FindChild"} {
		w.fails(method, "HostCommunication")
		if err := d.taken(t.Context(), c, other, req); err == nil || strings.Contains(err.Error(), "rename or remove it") {
			t.Errorf("taken without an answer to %s = %v", method, err)
		}
	}
}
