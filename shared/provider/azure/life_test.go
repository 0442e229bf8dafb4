// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/arm"
)

// What an instance is follows from the state of its latest change and from its power (SPEC E40).
func TestStatesOfInstances(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state, power, reason string
		want                 provider.State
		code                 provider.Code
		word                 string
	}{
		{"Creating", "", "", provider.StateIncomplete, 0, "Creating"},
		{"Creating", "running", "", provider.StateIncomplete, 0, "Creating"},
		{"Succeeded", "running", "", provider.StateRunning, 0, "Running"},
		{"Succeeded", "starting", "", provider.StatePending, 0, "Starting"},
		{"Succeeded", "stopping", "", provider.StateStopped, 0, "Stopping"},
		{"Succeeded", "stopped", "", provider.StateStopped, 0, "Stopped"},
		{"Succeeded", "deallocating", "", provider.StateStopped, 0, "Deallocating"},
		{"Succeeded", "deallocated", "", provider.StateStopped, 0, "Deallocated"},
		{"Succeeded", "unknown", "", provider.StateRunning, 0, "Unknown"},
		{"Succeeded", "", "", provider.StateRunning, 0, "Succeeded"},
		{"Updating", "running", "", provider.StateRunning, 0, "Updating"},
		{"Updating", "deallocated", "", provider.StateStopped, 0, "Updating"},
		{"Deleting", "running", "", provider.StateDeleting, 0, "Deleting"},
		{"Failed", "", "AllocationFailed", provider.StateFailed, provider.Exhausted, "Failed"},
		{"Failed", "deallocated", "ZonalAllocationFailed", provider.StateFailed, provider.Exhausted, "Failed"},
		{"Failed", "unknown", "OverconstrainedAllocationRequest", provider.StateFailed, provider.Exhausted, "Failed"},
		{"Failed", "", "OSProvisioningInternalError", provider.StateFailed, provider.Exhausted, "Failed"},
		{"Failed", "", "ConflictingUserInput", provider.StateFailed, provider.Exhausted, "Failed"},
		{"Failed", "", "InvalidParameter", provider.StateFailed, 0, "Failed"},
		{"Failed", "", "", provider.StateFailed, provider.Exhausted, "Failed"},
		{"Failed", "running", "OSProvisioningTimedOut", provider.StateRunning, 0, "Failed"},
		{"Failed", "starting", "AllocationFailed", provider.StateRunning, 0, "Failed"},
		{"Failed", "stopped", "VMExtensionProvisioningError", provider.StateStopped, 0, "Failed"},
	} {
		i := instance{Properties: instanceProperties{State: c.state, View: &view{}}}
		state := strings.ToLower(c.state)
		if c.reason != "" {
			state += "/" + c.reason
		}
		i.Properties.View.Statuses = []status{{Code: "ProvisioningState/" + state, Message: "why"}}
		if c.power != "" {
			i.Properties.View.Statuses = append(i.Properties.View.Statuses, status{Code: "PowerState/" + c.power})
		}
		got, code, message := i.state()
		if got != c.want || code != c.code || i.cloudState() != c.word || c.reason != "" && message != c.reason+": why" || got == provider.StateFailed && message == "" {
			t.Errorf("%s, %s, %s is %s (%v, %q), in Azure's word %s", c.state, c.power, c.reason, got, code, message, i.cloudState())
		}
	}
}

// An instance that Azure accepted and found no room for is removed by its own attempt, which tries again as often as that is worth it:
// nothing else is lost, and nobody's Machine fails (E2, 2b.8).
func TestInstanceThatFoundNoRoomIsMadeAnew(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Shutdown: 5 * time.Millisecond}
	d, _ := wired(t, cloud, account())
	cloud.Starve("AllocationFailed")
	r, _, err := create(t, d, "worker-a", spec(nil))
	if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "AllocationFailed") {
		t.Fatalf("Create = %v", err)
	}
	cloud.Starve("")
	resolved, err := d.Resolve(t.Context(), spec(nil))
	must(t, err)
	in, err := proceed(t.Context(), d, r, resolved)
	if err != nil || in.State != provider.StateRunning {
		t.Fatalf("Create = %+v, %v", in, err)
	}
	if all := cloud.Names(arm.Instances, arm.Cards); !slices.Equal(all, []string{"worker-a", "worker-a-nic"}) {
		t.Errorf("there are %v", all)
	}
}

// One whose system did not report in time runs all the same: it is the Machine's, with the reason beside it.
func TestInstanceThatDidNotReportRuns(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	cloud.Starve("OSProvisioningTimedOut")
	r, in, err := create(t, d, "worker-a", spec(nil))
	if err != nil || in.State != provider.StateRunning || !strings.HasPrefix(in.Message, "OSProvisioningTimedOut") || in.CloudState != "Failed" {
		t.Errorf("Create = %+v, %v", in, err)
	}
	deleted(t, d, r)
}

// A Machine that is made anew under its name waits until the former one's instance is gone, and takes nothing of it over (R-S3).
func TestMachineOfAFormerOnesName(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Shutdown: 50 * time.Millisecond}
	d, _ := wired(t, cloud, account())
	former, was, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	must(t, d.Delete(t.Context(), former))
	resolved, err := d.Resolve(t.Context(), spec(nil))
	must(t, err)
	r, waited := provider.Ref{UID: "uid-2", Name: "worker-a", Token: "t2"}, 0
	for {
		in, err := proceed(t.Context(), d, r, resolved)
		if err == nil {
			if in.ID == was.ID || in.UID != r.UID || in.State != provider.StateRunning || waited == 0 {
				t.Errorf("after %d refusals Create = %+v", waited, in)
			}
			break
		}
		if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "not this Machine's") {
			t.Fatalf("Create = %v", err)
		}
		if found, err := d.Find(t.Context(), r); err != nil || len(found) != 0 {
			t.Fatalf("Find = %+v, %v", found, err)
		}
		waited++
		time.Sleep(5 * time.Millisecond)
	}
	deleted(t, d, former) // which leaves the next one's
	if left := cloud.Names(arm.Instances, arm.Cards); !slices.Equal(left, []string{"worker-a", "worker-a-nic"}) {
		t.Errorf("left are %v", left)
	}
}

// While it is there it is told as its attempt's own, which is not over.
func TestInstanceThatFoundNoRoomIsTold(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Boot: time.Hour}
	d, _ := wired(t, cloud, account())
	cloud.Starve("AllocationFailed")
	resolved, err := d.Resolve(t.Context(), spec(nil))
	must(t, err)
	r := provider.Ref{UID: "uid-1", Name: "worker-a", Token: "t"}
	for range 2 {
		in, err := d.Create(t.Context(), r, resolved)
		must(t, err)
		r.Progress = in.Progress
	}
	cloud.Fail("worker-a", "AllocationFailed")
	cloud.Power("worker-a", "")
	for what, all := range map[string]func() ([]provider.Instance, error){
		"Find": func() ([]provider.Instance, error) { return d.Find(t.Context(), r) },
		"List": func() ([]provider.Instance, error) { return d.List(t.Context()) },
	} {
		found, err := all()
		if err != nil || len(found) != 1 || found[0].State != provider.StateFailed || found[0].Code != provider.Exhausted || found[0].Token != "t" || found[0].Child {
			t.Errorf("%s = %+v, %v", what, found, err)
		}
	}
}

// A failed instance keeps its network interface for three minutes: the removal says so, and goes on when it may (R-B12).
func TestInterfaceThatIsReservedIsRemovedLater(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	cloud.Exhaust(true)
	r, _, err := create(t, d, "worker-a", spec(nil))
	if provider.CodeOf(err) != provider.Exhausted {
		t.Fatal(err)
	}
	cloud.Reserve(true)
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "NicReservedForAnotherVm") {
		t.Errorf("Delete = %v", err)
	}
	cloud.Reserve(false)
	deleted(t, d, r)
	if left := cloud.Names(arm.Cards); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// The instance goes first, then what hangs on it, and addresses last (SPEC E40).
func TestOrderOfRemoval(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(map[string]any{"publicIP": true}))
	must(t, err)
	cloud.Keep(arm.Cards, "worker-a-nic", true)
	cloud.KeepDisk("worker-a", "worker-a_OSDisk")
	cloud.Keep(arm.Addresses, "worker-a-ip", true)
	before := len(w.since(0))
	deleted(t, d, r)
	done := slices.DeleteFunc(w.since(before), func(op string) bool { return !strings.Contains(op, ".Begin") })
	want := []string{"VirtualMachinesClient.BeginDelete", "DisksClient.BeginDelete", "InterfacesClient.BeginDelete", "PublicIPAddressesClient.BeginDelete"}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Errorf("removed are (-want +got):\n%s", diff)
	}
	if left := cloud.Names(arm.Instances, arm.Cards, arm.Addresses, arm.Disks); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// However far lists lag behind, what is asked for by its name is found, made once and removed, with all that belongs to it (R-B01).
func TestListsThatLagMatterNothing(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Lag: time.Hour, Shutdown: 5 * time.Millisecond}
	d, _ := wired(t, cloud, account())
	r, in, err := create(t, d, "worker-a", spec(map[string]any{"publicIP": true}))
	must(t, err)
	if all, err := d.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("List = %+v, %v", all, err)
	}
	resolved, err := d.Resolve(t.Context(), spec(nil))
	must(t, err)
	if again, err := proceed(t.Context(), d, r, resolved); err != nil || again.ID != in.ID {
		t.Errorf("Create again = %+v, %v", again, err)
	}
	if found, err := d.Find(t.Context(), r); err != nil || len(found) != 1 || found[0].ID != in.ID {
		t.Errorf("Find = %+v, %v", found, err)
	}
	deleted(t, d, r)
	if left := cloud.Names(arm.Instances, arm.Cards, arm.Addresses, arm.Disks); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// Nor does a list of what belongs to instances that is ahead of theirs have a network interface removed from below one.
func TestInterfaceLeadsToItsInstance(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Shutdown: 5 * time.Millisecond}
	d, w := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		if op == "VirtualMachinesClient.NewListPager" {
			return says(200, "application/json", `{"value":[]}`)(nil)
		}
		return next()
	})
	if all, err := d.List(t.Context()); err != nil || len(all) != 0 { // nor is it a leftover
		t.Errorf("List = %+v, %v", all, err)
	}
	deleted(t, d, provider.Ref{UID: r.UID})
	if left := cloud.Names(arm.Instances, arm.Cards, arm.Disks); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
	r, _, err = create(t, d, "worker-b", spec(nil))
	must(t, err)
	cloud.Tag(arm.Instances, "worker-b", map[string]string{tagUID: "theirs"})
	if err := d.Delete(t.Context(), provider.Ref{UID: r.UID}); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete of what another's instance uses = %v", err)
	}
	if left := cloud.Names(arm.Instances, arm.Cards); !slices.Equal(left, []string{"worker-b", "worker-b-nic"}) {
		t.Errorf("left are %v", left)
	}
}

// A disk that a spec wants kept outlives its Machine, and is no leftover (SPEC E38).
func TestDiskThatIsKeptIsNoLeftover(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(map[string]any{"dataDisks": []any{
		map[string]any{"nameSuffix": "data", "diskSizeGB": 64, "lun": 0, "deletionPolicy": "Detach"},
		map[string]any{"nameSuffix": "logs", "diskSizeGB": 64, "lun": 1, "deletionPolicy": "Delete"},
	}}))
	must(t, err)
	deleted(t, d, r)
	all, err := d.List(t.Context())
	if left := cloud.Names(arm.Disks, arm.Cards); err != nil || len(all) != 0 || !slices.Equal(left, []string{"worker-a_data"}) {
		t.Errorf("listed %+v, %v; left are %v", all, err, left)
	}
	deleted(t, d, provider.Ref{UID: r.UID})
	if left := cloud.Names(arm.Disks); !slices.Equal(left, []string{"worker-a_data"}) {
		t.Errorf("left are %v", left)
	}
}

// What another system made takes its disk and its network interface along, though nobody can tell afterwards whose they were.
func TestInstanceOfAnotherSystemTakesAlongWhatIsIts(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Change: 20 * time.Millisecond}
	d, _ := wired(t, cloud, account())
	failed := cloud.Add("worker-failed", map[string]string{tagCluster + clusterID: owned})
	cloud.Fail("worker-failed", "VMExtensionProvisioningError")
	deleted(t, d, provider.Ref{UID: "uid-2", Name: "worker-failed", ProviderID: providerID(failed)})
	id := cloud.Add("worker-old", map[string]string{tagCluster + clusterID: owned})
	stays := cloud.Add("worker-other", map[string]string{tagCluster + clusterID: owned})
	deleted(t, d, provider.Ref{UID: "uid-1", Name: "worker-old", ProviderID: providerID(id)})
	want := []string{"worker-other", "worker-other-nic", "worker-other_OSDisk"}
	if left := cloud.Names(arm.Instances, arm.Cards, arm.Disks); !slices.Equal(left, want) {
		t.Errorf("left are %v, want what belongs to %s", left, stays)
	}
	if fields := cloud.Unknown(); len(fields) > 0 {
		t.Errorf("the API does not know %v", fields)
	}
}

// Leftovers go by their own ids, and those of the same name that came since stay (R-S3).
func TestLeftoversGoByTheirIDs(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	cloud.Exhaust(true)
	r, _, err := create(t, d, "worker-a", spec(map[string]any{"publicIP": true}))
	if provider.CodeOf(err) != provider.Exhausted {
		t.Fatal(err)
	}
	all, err := d.List(t.Context())
	if err != nil || len(all) != 1 || !all[0].Child || all[0].UID != r.UID || all[0].Token != r.Token || !strings.HasPrefix(all[0].ID, cardKind+"/worker-a-nic/") {
		t.Fatalf("List = %+v, %v", all, err) // the address is the interface's
	}
	former := all[0].ID
	deleted(t, d, r)
	next := r
	next.Token = "next"
	resolved, err := d.Resolve(t.Context(), spec(map[string]any{"publicIP": true}))
	must(t, err)
	if _, err := proceed(t.Context(), d, next, resolved); provider.CodeOf(err) != provider.Exhausted {
		t.Fatal(err)
	}
	if err := d.Delete(t.Context(), provider.Ref{ID: former}); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete of what is gone = %v", err)
	}
	for range 4 {
		all, err = d.List(t.Context())
		must(t, err)
		for _, in := range all {
			must(t, d.Delete(t.Context(), provider.Ref{ID: in.ID}))
		}
	}
	if left := cloud.Names(arm.Cards, arm.Addresses); len(all) != 0 || len(left) != 0 {
		t.Errorf("listed %+v; left are %v", all, left)
	}
}

// Where credentials may not read how all instances are nobody looks at one either: what is told would change with whoever asks (R-S14).
func TestStatesThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Deny: "VirtualMachinesClient.NewListAllPager"}
	d, w := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	cloud.Power("worker-a", "deallocated")
	for range 3 {
		found, err := d.Find(t.Context(), r)
		listed, lost := d.List(t.Context())
		if err != nil || lost != nil || len(found) != 1 || len(listed) != 1 {
			t.Fatalf("Find = %+v, %v; List = %+v, %v", found, err, listed, lost)
		}
		if diff := cmp.Diff(found[0], listed[0]); diff != "" || found[0].State != provider.StateRunning {
			t.Errorf("found and listed differ:\n%s", diff)
		}
	}
	asked := slices.DeleteFunc(w.since(0), func(op string) bool { return op != cloud.Deny })
	if len(asked) != 1 {
		t.Errorf("what is denied is asked for %d times", len(asked))
	}
}

// OpenShift gives credentials that may remove disks, and not read them: an instance comes and goes all the same, with its own.
func TestCredentialsThatMayNotReadDisks(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Deny: "DisksClient."}
	d, _ := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	if all, err := d.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("List = %+v, %v", all, err)
	}
	deleted(t, d, provider.Ref{UID: r.UID})
	deleted(t, d, r)
	if left := cloud.Names(arm.Instances, arm.Cards, arm.Disks); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
	for _, kind := range []string{"InterfacesClient.", "PublicIPAddressesClient.", "VirtualMachinesClient.NewListPager"} { // of all else it is no absence (G5)
		d, _ := wired(t, &arm.Cloud{Deny: kind}, account())
		if all, err := d.List(t.Context()); provider.CodeOf(err) != provider.Denied {
			t.Errorf("%s: List = %+v, %v", kind, all, err)
		}
		for _, of := range []provider.Ref{r, {UID: r.UID}} { // by its name, and by lists
			if err := d.Delete(t.Context(), of); provider.CodeOf(err) != provider.Denied {
				t.Errorf("%s: Delete = %v", kind, err)
			}
		}
	}
}

// A subscription whose list of states takes too long costs nobody the other lists (G6): then no state is told.
func TestStatesThatTakeTooLong(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	cloud.Power("worker-a", "deallocated")
	d.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		if arm.Operation(r) == "VirtualMachinesClient.NewListAllPager" {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return cloud.RoundTrip(r)
	})
	listed, err := d.List(t.Context())
	if err != nil || len(listed) != 1 || listed[0].State != provider.StateRunning {
		t.Errorf("List = %+v, %v", listed, err)
	}
	if found, err := d.Find(t.Context(), r); err != nil || len(found) != 1 || found[0].State != provider.StateRunning {
		t.Errorf("Find = %+v, %v", found, err)
	}
	must(t, d.PowerCycle(t.Context(), r)) // which looks itself
	if found, err := d.at(t.Context(), arm.ID(arm.Instances, "worker-a")); err != nil || found.power() != "running" {
		t.Errorf("power-cycled it is %+v, %v", found, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	other, _ := wired(t, cloud, account())
	other.http.Transport = d.http.Transport
	if _, err := other.List(ctx); !errors.Is(err, context.DeadlineExceeded) { // that time was the caller's
		t.Errorf("List = %v", err)
	}
	if _, known := other.states.known(); known {
		t.Error("what nobody waited for is known")
	}
}

// Where they may, both tell the same.
func TestStoppedInstanceIsToldAlike(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(map[string]any{"publicIP": true}))
	must(t, err)
	cloud.Power("worker-a", "deallocated")
	found, err := d.Find(t.Context(), r)
	must(t, err)
	listed, err := d.List(t.Context())
	must(t, err)
	if diff := cmp.Diff(found, listed); diff != "" || found[0].State != provider.StateStopped || found[0].CloudState != "Deallocated" {
		t.Errorf("found and listed differ, or it is %s:\n%s", found[0].CloudState, diff)
	}
	before := len(w.since(0))
	must(t, d.PowerCycle(t.Context(), r))
	if ops := w.since(before); !slices.Contains(ops, "VirtualMachinesClient.BeginStart") {
		t.Errorf("a stopped instance is power-cycled by %v", ops)
	}
	before = len(w.since(0))
	must(t, d.PowerCycle(t.Context(), r))
	if ops := w.since(before); !slices.Contains(ops, "VirtualMachinesClient.BeginRestart") {
		t.Errorf("a running instance is power-cycled by %v", ops)
	}
}

// Tags that somebody else writes meanwhile are not lost: the write is refused, and tried again.
func TestTagsOfOthersStay(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(map[string]any{"tags": map[string]string{"Team": "a"}}))
	must(t, err)
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		if op == "VirtualMachinesClient.BeginUpdate" {
			w.set(nil)
			cloud.Tag(arm.Instances, "worker-a", map[string]string{"audit": "1"})
		}
		return next()
	})
	tags := map[string]string{"team": "b", "Machine-Functions.machine-uid": "theirs"}
	if err := d.Update(t.Context(), r, tags); provider.CodeOf(err) != provider.Unknown {
		t.Fatalf("Update = %v", err)
	}
	must(t, d.Update(t.Context(), r, tags))
	n := cloud.Writes()
	must(t, d.Update(t.Context(), r, tags))
	found, err := d.Find(t.Context(), r)
	if err != nil || len(found) != 1 || !maps.Equal(found[0].Tags, map[string]string{"team": "b", "audit": "1"}) || found[0].UID != r.UID || cloud.Writes() != n {
		t.Errorf("found %+v, %v, after %d writes more", found, err, cloud.Writes()-n)
	}
}

func TestTypesHaveCapacityAndZones(t *testing.T) {
	t.Parallel()
	d, _ := wired(t, &arm.Cloud{Page: 2}, account())
	all, err := d.InstanceTypes(t.Context())
	must(t, err)
	const gib = 1 << 30
	want := []provider.InstanceType{
		{Name: "Standard_D4ps_v5", Arch: "arm64", MilliCPU: 4000, Memory: 16 * gib, Zones: []string{"1", "2", "3"}},
		{Name: "Standard_D4s_v3", Arch: "amd64", MilliCPU: 4000, Memory: 16 * gib, Disk: 32 * gib, Zones: []string{"1", "2", "3"}},
		{Name: "Standard_D64_v2", Arch: "amd64", Problem: "Azure does not sell it to this subscription in eastus2 (NotAvailableForSubscription): ask Azure for it, or name another size"},
		{Name: "Standard_M8-2ms", Arch: "amd64", MilliCPU: 2000, Memory: 218*gib + 3*gib/4},
		{Name: "Standard_NC24ads_A100_v4", Arch: "amd64", MilliCPU: 24000, Memory: 220 * gib, GPU: 1, GPUType: "nvidia.com/gpu", Zones: []string{"1", "3"}},
		{Name: "Standard_NG32ads_V620_v1", Arch: "amd64", MilliCPU: 32000, Memory: 64 * gib, GPU: 1, GPUType: "amd.com/gpu"},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A list costs five requests, however many instances there are; a look at one that its name leads to costs three.
func TestCallsThatAListCosts(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	var last provider.Ref
	for n := range 5 {
		r, in, err := create(t, d, fmt.Sprintf("worker-%d", n), spec(nil))
		must(t, err)
		last = r
		last.ID, last.ProviderID = in.ID, in.ProviderID
	}
	_, err := d.List(t.Context())
	must(t, err)
	for what, call := range map[string]func() error{
		"a list, 5":  func() error { _, err := d.List(t.Context()); return err },
		"a look, 2":  func() error { _, err := d.Find(t.Context(), last); return err },
		"an id, 0":   func() error { _, err := d.Identity(t.Context()); return err },
		"a guess, 2": func() error { _, err := d.Find(t.Context(), provider.Ref{UID: "none", Name: "worker-9"}); return err },
	} {
		before := len(w.since(0))
		must(t, call())
		if _, want, _ := strings.Cut(what, ", "); fmt.Sprint(len(w.since(before))) != want {
			t.Errorf("%s: it costs %v", what, w.since(before))
		}
	}
}

// What is asked for side by side panics where it is waited for: who called can survive it (RELIABILITY 2c).
func TestPanicSideBySideIsTheCallers(t *testing.T) {
	t.Parallel()
	d, w := wired(t, &arm.Cloud{}, account())
	var calls atomic.Int32
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		if op == "DisksClient.NewListByResourceGroupPager" || op == "DisksClient.Get" {
			calls.Add(1)
			panic("poison")
		}
		return next()
	})
	for what, call := range map[string]func() error{
		"List":   func() error { _, err := d.List(t.Context()); return err },
		"Delete": func() error { return d.Delete(t.Context(), provider.Ref{UID: "uid-1", Name: "worker-a"}) },
	} {
		func() {
			defer func() {
				if p := beside.Caught(recover()); p.Value != "poison" || !strings.Contains(p.Stack, "provider/azure") {
					t.Errorf("%s panics with %v", what, p)
				}
			}()
			t.Errorf("%s: %v", what, call())
		}()
	}
}

// What answers as Azure does but without what makes an answer one is no answer (SPEC E39, G5).
func TestAnswersThatSayNothing(t *testing.T) {
	t.Parallel()
	for body, operations := range map[string][]string{
		`{}`:                 {"VirtualMachinesClient.Get", "VirtualMachinesClient.NewListPager", "InterfacesClient.NewListPager", "DisksClient.NewListByResourceGroupPager"},
		`{"value":[{}]}`:     {"VirtualMachinesClient.NewListPager", "InterfacesClient.NewListPager", "PublicIPAddressesClient.NewListPager", "DisksClient.NewListByResourceGroupPager"},
		`null`:               {"VirtualMachinesClient.Get", "VirtualMachinesClient.NewListPager"},
		`{"id":"/x/y"}`:      {"VirtualMachinesClient.Get"},
		`{"id":7}`:           {"VirtualMachinesClient.Get"},
		`{"value":{"id":7}}`: {"VirtualMachinesClient.NewListPager"},
		``:                   {"VirtualMachinesClient.Get", "VirtualMachinesClient.NewListPager"},
	} {
		for _, operation := range operations {
			d, w := wired(t, &arm.Cloud{}, account())
			w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
				if op == operation {
					return says(200, "application/json", body)(nil)
				}
				return next()
			})
			var err error
			if operation == "VirtualMachinesClient.Get" {
				_, err = d.Find(t.Context(), provider.Ref{UID: "uid-1", Name: "worker-a"})
			} else {
				_, err = d.List(t.Context())
			}
			if provider.CodeOf(err) != provider.Unknown || err == nil {
				t.Errorf("%s with %s: %v", operation, body, err)
			}
		}
	}
}
