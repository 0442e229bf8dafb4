// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/arm"
)

// begun makes the steps of a creation up to the instance, which Azure accepted.
func begun(t *testing.T, d *driver, spec json.RawMessage) (provider.Ref, json.RawMessage) {
	t.Helper()
	resolved, err := d.Resolve(t.Context(), spec)
	must(t, err)
	r := provider.Ref{UID: "uid-1", Name: "worker-a", Token: "t"}
	for range 2 {
		in, err := d.Create(t.Context(), r, resolved)
		must(t, err)
		r.Progress = in.Progress
	}
	return r, resolved
}

// Why an instance failed, and whether it runs, is told also where the list of states may not be read, by lists and looks alike: an attempt
// that found no room is not over, and a Machine whose extension failed works (E2, R-S14).
func TestFailuresAreToldWhereStatesMayNotBeRead(t *testing.T) {
	t.Parallel()
	for _, deny := range []string{"VirtualMachinesClient.NewListAllPager", ""} {
		cloud := &arm.Cloud{Deny: deny}
		d, _ := wired(t, cloud, account())
		cloud.Starve("AllocationFailed")
		r, _ := begun(t, d, spec(nil))
		cloud.Starve("")
		running, _, err := create(t, d, "worker-b", spec(nil))
		must(t, err)
		cloud.Fail("worker-b", "VMExtensionProvisioningError")
		listed, err := d.List(t.Context())
		must(t, err)
		for name, want := range map[string]struct {
			ref   provider.Ref
			state provider.State
			code  provider.Code
		}{"worker-a": {r, provider.StateFailed, provider.Exhausted}, "worker-b": {running, provider.StateRunning, 0}} {
			found, err := d.Find(t.Context(), want.ref)
			k := slices.IndexFunc(listed, func(in provider.Instance) bool { return in.Name == name })
			if err != nil || len(found) != 1 || k < 0 {
				t.Fatalf("Find = %+v, %v; listed %+v", found, err, listed)
			}
			if diff := cmp.Diff(found[0], listed[k]); diff != "" || found[0].State != want.state || found[0].Code != want.code {
				t.Errorf("%q denied: %s is %s (%v), and listed:\n%s", deny, name, found[0].State, found[0].Code, diff)
			}
		}
	}
}

// waited is a progress that has waited for that long.
func waited(t *testing.T, recorded json.RawMessage, d time.Duration) json.RawMessage {
	t.Helper()
	var p progress
	must(t, json.Unmarshal(recorded, &p))
	p.Since -= int64(d / time.Second)
	text, err := json.Marshal(p)
	must(t, err)
	return text
}

// What failed and runs may be a Node: that a read leaves its power out, or says that nobody knows, is no word that it never had any, and
// what is to go for that is looked at again after a while (2e). How long another instance was waited for counts nothing.
func TestInstanceWhosePowerIsLeftOutStays(t *testing.T) {
	t.Parallel()
	for _, reads := range []int{1, 2, 3} {
		cloud := &arm.Cloud{}
		d, w := wired(t, cloud, account())
		cloud.Starve("OSProvisioningTimedOut")
		r, resolved := begun(t, d, spec(nil))
		cloud.Hush("worker-a", reads)
		in, err := proceed(t.Context(), d, r, resolved)
		if err != nil || in.State != provider.StateRunning || slices.Contains(w.since(0), "VirtualMachinesClient.BeginDelete") {
			t.Errorf("left out of %d reads: Create = %+v, %v", reads, in, err)
		}
	}
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	cloud.Starve("OSProvisioningTimedOut")
	r, resolved := begun(t, d, spec(nil))
	cloud.Power("worker-a", "unknown")
	for range 2 {
		in, err := d.Create(t.Context(), r, resolved)
		if err != nil || in.State != provider.StateIncomplete {
			t.Fatalf("whose power nobody knows: Create = %+v, %v", in, err)
		}
		r.Progress = in.Progress
	}
	r.Progress = waited(t, bytes.ReplaceAll(r.Progress, []byte(" has power"), []byte("0 has power")), time.Hour)
	if in, err := d.Create(t.Context(), r, resolved); err != nil || in.State != provider.StateIncomplete {
		t.Errorf("where another one was waited for: Create = %+v, %v", in, err)
	}
}

// Whatever let an instance fail that never had power: it goes, and is made anew by its own attempt. What its spec is to blame for is final.
func TestInstanceThatFailedIsMadeAnew(t *testing.T) {
	t.Parallel()
	for code, anew := range map[string]bool{
		"ConflictingUserInput": true, "InternalExecutionError": true, "NetworkingInternalOperationError": true, "VMStartTimedOut": true,
		"DiskServiceInternalError": true, "OperationPreempted": true, "InvalidParameter": false,
	} {
		cloud := &arm.Cloud{}
		d, _ := wired(t, cloud, account())
		cloud.Starve(code)
		r, resolved := begun(t, d, spec(nil))
		in, err := d.Create(t.Context(), r, resolved)
		if in.State == provider.StateIncomplete && err == nil && anew { // Azure may only have left its power out
			r.Progress = waited(t, in.Progress, doubtFor)
			in, err = d.Create(t.Context(), r, resolved)
		}
		if anew != (provider.CodeOf(err) == provider.Exhausted && err != nil) || anew == (in.State == provider.StateFailed) {
			t.Errorf("%s: Create = %+v, %v", code, in, err)
			continue
		}
		if cloud.Starve(""); anew {
			if in, err := proceed(t.Context(), d, r, resolved); err != nil || in.State != provider.StateRunning {
				t.Errorf("%s: Create again = %+v, %v", code, in, err)
			}
		}
	}
}

// A disk that is to be kept does not keep its own Machine from getting an instance: of one that never ran it goes, with the instance or
// with the attempt.
func TestKeptDiskOfAFailedInstanceIsMadeAnew(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	cloud.Starve("AllocationFailed")
	r, resolved := begun(t, d, spec(data("data", "Detach")))
	if _, err := d.Create(t.Context(), r, resolved); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "AllocationFailed") {
		t.Fatalf("Create = %v", err)
	}
	for range 2 { // and says so each time
		if _, err := proceed(t.Context(), d, r, resolved); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "AllocationFailed") {
			t.Fatalf("Create = %v", err)
		}
	}
	former := r
	former.Attempt = true
	deleted(t, d, former)
	if left := cloud.Names(arm.Disks, arm.Cards); len(left) > 0 {
		t.Errorf("left of the attempt are %v", left)
	}
	cloud.Starve("")
	r.Token, r.Progress = "next", nil
	if in, err := proceed(t.Context(), d, r, resolved); err != nil || in.State != provider.StateRunning {
		t.Fatalf("Create = %+v, %v", in, err)
	}
	deleted(t, d, provider.Ref{UID: r.UID, Name: r.Name})
	if left := cloud.Names(arm.Disks, arm.Cards); !slices.Equal(left, []string{"worker-a_data"}) {
		t.Errorf("left of the Machine are %v", left)
	}
}

// Disks that are still on their way out are waited for; what another attempt's instance wrote, or somebody else, stays.
func TestDisksThatAreThereAlready(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Linger: 30 * time.Millisecond}
	d, w := wired(t, cloud, account())
	cloud.Starve("AllocationFailed")
	r, resolved := begun(t, d, spec(data("logs", "Delete")))
	if _, err := d.Create(t.Context(), r, resolved); provider.CodeOf(err) != provider.Exhausted {
		t.Fatal(err)
	}
	cloud.Starve("")
	before := len(w.since(0))
	if in, err := proceed(t.Context(), d, r, resolved); err != nil || in.State != provider.StateRunning {
		t.Fatalf("Create = %+v, %v", in, err)
	}
	made := slices.DeleteFunc(w.since(before), func(op string) bool { return op != "VirtualMachinesClient.BeginCreateOrUpdate" })
	if len(made) != 1 {
		t.Errorf("the instance is asked for %d times", len(made))
	}
	for what, change := range map[string]map[string]string{"another attempt's, kept": {tagToken: "former", tagKept: "logs"}, "another Machine's": {tagUID: "theirs"}, "nobody's": {tagUID: ""}} {
		cloud := &arm.Cloud{}
		d, _ := wired(t, cloud, account())
		r, _, err := create(t, d, "worker-a", spec(data("logs", "Delete")))
		must(t, err)
		cloud.KeepDisk("worker-a", "worker-a_logs")
		cloud.Tag(arm.Disks, "worker-a_logs", change)
		must(t, d.drop(t.Context(), d.id(instanceKind, "worker-a")))
		_, err = proceed(t.Context(), d, r, resolved)
		if left := cloud.Names(arm.Disks); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "worker-a_logs") || !slices.Equal(left, []string{"worker-a_logs"}) {
			t.Errorf("%s: Create = %v; there are %v", what, err, left)
		}
	}
}

// A request that took too long may have been done: that is no refusal (2b.4).
func TestRequestThatTookTooLongIsNoRefusal(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		if op == "VirtualMachinesClient.BeginCreateOrUpdate" {
			return says(408, "application/json", errorJSON("RequestTimeout", "The operation did not complete in time."))(nil)
		}
		return next()
	})
	resolved, err := d.Resolve(t.Context(), spec(nil))
	must(t, err)
	r := provider.Ref{UID: "uid-1", Name: "worker-a", Token: "t"}
	in, err := d.Create(t.Context(), r, resolved)
	must(t, err)
	r.Progress = in.Progress
	if _, err := d.Create(t.Context(), r, resolved); provider.CodeOf(err).Definite() || err == nil {
		t.Errorf("Create = %v (%v)", err, provider.CodeOf(err))
	}
}

// What a step finds is this attempt's, ready, and nobody else's, or the next step is not made (2b.8).
func TestStepsGoOnWithWhatIsTheirOwn(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	resolved, err := d.Resolve(t.Context(), spec(nil))
	must(t, err)
	r := provider.Ref{UID: "uid-1", Name: "worker-a", Token: "t"}
	in, err := d.Create(t.Context(), r, resolved)
	must(t, err)
	r.Progress = in.Progress
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		res, err := next()
		if err == nil && op == "InterfacesClient.Get" {
			text, _ := io.ReadAll(res.Body)
			res.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(text, []byte(`"Succeeded"`), []byte(`"Updating"`))))
		}
		return res, err
	})
	if in, err := d.Create(t.Context(), r, resolved); err != nil || in.State != provider.StateIncomplete || len(cloud.Names(arm.Instances)) > 0 {
		t.Errorf("with an interface that is not ready Create = %+v, %v", in, err)
	}
	w.set(nil)
	next := r
	next.Token = "next"
	_, err = d.Create(t.Context(), next, resolved)
	must(t, err)
	if is := dig(cloud.Body(arm.Cards, "worker-a-nic"), "tags", tagToken); is != "next" {
		t.Errorf("the interface of a former attempt is used as it is, with the token %v", is)
	}
	if in, err := proceed(t.Context(), d, next, resolved); err != nil || in.Token != "next" {
		t.Fatalf("Create = %+v, %v", in, err)
	}
	if in, err := d.Create(t.Context(), r, resolved); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "another attempt") {
		t.Errorf("of another attempt's instance Create = %+v, %v", in, err)
	}
	cloud.Add("rescue", nil)
	cloud.Lend("worker-a-nic", "rescue")
	must(t, d.drop(t.Context(), d.id(instanceKind, "worker-a")))
	before := cloud.Body(arm.Cards, "worker-a-nic")
	_, err = proceed(t.Context(), d, next, resolved)
	if diff := cmp.Diff(before, cloud.Body(arm.Cards, "worker-a-nic")); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "not this Machine's") || diff != "" {
		t.Errorf("with an interface that another instance has Create = %v; it was changed:\n%s", err, diff)
	}
}

// What is in another location is another account's, though the resource group is the same: no two list it, or sweep it.
func TestInstanceOfAnotherLocationIsNotListed(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	_, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	a := account()
	a.Region = "westus/" + arm.Group
	west, _ := wired(t, cloud, a)
	if all, err := west.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("List = %+v, %v", all, err)
	}
}
