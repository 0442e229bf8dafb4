// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/arm"
)

// data is a data disk of a spec.
func data(suffix, policy string) map[string]any {
	return map[string]any{"dataDisks": []any{map[string]any{"nameSuffix": suffix, "diskSizeGB": 64, "lun": 0, "deletionPolicy": policy}}}
}

// swept removes what a list shows as the sweep does, which knows a leftover by its own name, until there is nothing left.
func swept(t *testing.T, d *driver) {
	t.Helper()
	for range 8 {
		all, err := d.List(t.Context())
		must(t, err)
		for _, in := range all {
			err := d.Delete(t.Context(), provider.Ref{Name: in.Name, ID: in.ID, ProviderID: in.ProviderID, Token: in.Token, UID: in.UID})
			if err != nil && provider.CodeOf(err) != provider.NotFound {
				t.Fatalf("Delete of %s = %v", in.Name, err)
			}
		}
	}
}

// What outlived its instance goes by what lists tell of it: its own name is no Machine's (R-S2).
func TestLeftoversGoByWhatListsTell(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	_, _, err := create(t, d, "worker-a", spec(map[string]any{"publicIP": true}))
	must(t, err)
	cloud.Keep(arm.Cards, "worker-a-nic", true)
	cloud.Keep(arm.Addresses, "worker-a-ip", true)
	must(t, d.drop(t.Context(), d.id(instanceKind, "worker-a")))
	swept(t, d)
	if left := cloud.Names(arm.Cards, arm.Addresses, arm.Disks); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// A removal that knows no spec removes the data disks too that stayed when their instance went, and says nothing is there when that is so.
func TestDataDisksThatStayedGo(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(data("logs", "Delete")))
	must(t, err)
	cloud.KeepDisk("worker-a", "worker-a_logs")
	deleted(t, d, r)
	if left := cloud.Names(arm.Disks); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// A copy of an instance, which carries its tags, hides nothing of what the original left.
func TestCopyHidesNoLeftover(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	_, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	cloud.Keep(arm.Cards, "worker-a-nic", true)
	cloud.Copy("worker-a", "restored")
	all, err := d.List(t.Context())
	must(t, err)
	if len(all) != 2 {
		t.Fatalf("listed %+v", all)
	}
	must(t, d.drop(t.Context(), d.id(instanceKind, "worker-a")))
	all, err = d.List(t.Context())
	if err != nil || len(all) != 2 || !all[1].Child || all[1].Name != "worker-a-nic" {
		t.Errorf("List = %+v, %v", all, err)
	}
}

// A disk of a living instance that somebody took off is no leftover: whoever did may want to put it back.
func TestDiskThatWasTakenOffIsNoLeftover(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(data("logs", "Delete")))
	must(t, err)
	cloud.TakeOff("worker-a", "worker-a_logs")
	if all, err := d.List(t.Context()); err != nil || len(all) != 1 || all[0].Child {
		t.Errorf("List = %+v, %v", all, err)
	}
	deleted(t, d, r)
	if left := cloud.Names(arm.Disks); len(left) != 0 { // with its Machine it goes
		t.Errorf("left are %v", left)
	}
}

// What somebody uses elsewhere stays, and keeps no Machine from going: a public address on a load balancer, or on a network interface that
// another instance has.
func TestAddressThatIsUsedElsewhereStays(t *testing.T) {
	t.Parallel()
	for what, move := range map[string]func(*arm.Cloud){
		"a load balancer": func(c *arm.Cloud) {
			c.Hang("worker-a-ip", "Microsoft.Network/loadBalancers/lb/frontendIPConfigurations/f")
		},
		"a rescue instance":  func(c *arm.Cloud) { c.Keep(arm.Cards, "worker-a-nic", true); c.Lend("worker-a-nic", "rescue") },
		"another interface":  func(c *arm.Cloud) { c.Hang("worker-a-ip", arm.Cards+"/rescue-nic/ipConfigurations/0") },
		"none any more, yet": func(c *arm.Cloud) { c.Hang("worker-a-ip", "") },
	} {
		cloud := &arm.Cloud{}
		d, _ := wired(t, cloud, account())
		cloud.Add("rescue", nil)
		r, _, err := create(t, d, "worker-a", spec(map[string]any{"publicIP": true}))
		must(t, err)
		cloud.Keep(arm.Addresses, "worker-a-ip", true)
		move(cloud)
		deleted(t, d, r)
		if left := cloud.Names(arm.Addresses); (len(left) == 0) != (what == "none any more, yet") {
			t.Errorf("%s: left are %v", what, left)
		}
	}
}

// What is on record and new is not gone because a read does not lead to it: Azure looks for it in a copy of its own first, which lags.
func TestInstanceThatNoReadShowsYetIsThere(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	r, in, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		switch {
		case strings.HasSuffix(op, ".Get"):
			return says(404, "application/json", errorJSON("ResourceNotFound", "The Resource was not found."))(nil)
		case strings.Contains(op, "List"):
			return says(200, "application/json", `{"value":[]}`)(nil)
		}
		return next()
	})
	r.ID, r.ProviderID, r.Began = in.ID, in.ProviderID, time.Now()
	must(t, d.Delete(t.Context(), r))
	old := r
	old.Began = time.Now().Add(-horizon)
	if err := d.Delete(t.Context(), old); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete of what is long there = %v", err)
	}
	w.set(nil)
	deleted(t, d, r) // whose removal was begun: no more is waited for
}

// So is one that an attempt has asked for, and nothing else has on record yet: its network interface is not taken from it, and no other
// attempt begins before it is known (2b.8).
func TestInstanceOfAnAttemptThatNoReadShowsYetIsThere(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	r, _ := begun(t, d, spec(nil))
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		switch op {
		case "VirtualMachinesClient.Get":
			return says(404, "application/json", errorJSON("ResourceNotFound", "The Resource was not found."))(nil)
		case "VirtualMachinesClient.NewListPager":
			return says(200, "application/json", `{"value":[]}`)(nil)
		}
		return next()
	})
	r.Began = time.Now()
	attempt := r
	attempt.Attempt = true
	for _, of := range []provider.Ref{r, attempt} {
		before := cloud.Writes()
		if err := d.Delete(t.Context(), of); err != nil || cloud.Writes() != before {
			t.Errorf("Delete = %v, and %d writes", err, cloud.Writes()-before)
		}
	}
	w.set(nil)
	deleted(t, d, attempt) // whose removal was begun: no more is waited for
	if left := cloud.Names(arm.Instances, arm.Cards, arm.Disks); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// A removal that another process began is begun once, and over when the instance is gone, new as it may be.
func TestRemovalIsBegunOnce(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Shutdown: 2 * time.Second}
	one, w := wired(t, cloud, account())
	r, in, err := create(t, one, "worker-a", spec(nil))
	must(t, err)
	r.ID, r.ProviderID, r.Began = in.ID, in.ProviderID, time.Now()
	must(t, one.Delete(t.Context(), r))
	must(t, one.Delete(t.Context(), r))
	another, v := wired(t, cloud, account())
	must(t, another.Delete(t.Context(), r))
	deleted(t, another, r)
	begun := slices.DeleteFunc(append(w.since(0), v.since(0)...), func(op string) bool { return op != "VirtualMachinesClient.BeginDelete" })
	if len(begun) != 1 {
		t.Errorf("it is begun %d times", len(begun))
	}
}

// That an instance is there already is Azure's word, whatever a read says after it (2b.4).
func TestInstanceThatIsThereAndNotSeenIsNoRefusal(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	resolved, err := d.Resolve(t.Context(), spec(nil))
	must(t, err)
	r := provider.Ref{UID: "uid-1", Name: "worker-a", Token: "t"}
	in, err := d.Create(t.Context(), r, resolved)
	must(t, err)
	r.Progress = in.Progress
	once(w, "VirtualMachinesClient.BeginCreateOrUpdate", 1, "the answer is lost")
	if _, err := d.Create(t.Context(), r, resolved); provider.CodeOf(err) != provider.Unknown {
		t.Fatal(err)
	}
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		if op == "VirtualMachinesClient.Get" || op == "DisksClient.Get" {
			return says(404, "application/json", errorJSON("ResourceNotFound", "The Resource was not found."))(nil)
		}
		return next()
	})
	if _, err := d.Create(t.Context(), r, resolved); provider.CodeOf(err) != provider.Unknown || err == nil {
		t.Errorf("Create = %v (%v)", err, provider.CodeOf(err))
	}
}

// Who could read disks and may no more has lost a right: that is no word about disks (G5).
func TestRightToReadDisksThatWasLost(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	cloud.KeepDisk("worker-a", "worker-a_OSDisk")
	must(t, d.drop(t.Context(), d.id(instanceKind, "worker-a")))
	all, err := d.List(t.Context())
	must(t, err)
	if len(all) != 1 || !all[0].Child {
		t.Fatalf("listed %+v", all)
	}
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		if strings.HasPrefix(op, "DisksClient.") {
			return says(403, "application/json", errorJSON("AuthorizationFailed", "The client does not have authorization."))(nil)
		}
		return next()
	})
	if _, err := d.List(t.Context()); provider.CodeOf(err) != provider.Denied {
		t.Errorf("List = %v", err)
	}
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.Denied {
		t.Errorf("Delete = %v", err)
	}
}

// An empty list of disks is no right to read them: Azure leaves out of lists what may not be read
// (https://github.com/Azure/azure-sdk-for-go/issues/14110). What is denied after it is what OpenShift's rights deny.
func TestEmptyListOfDisksIsNoRight(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		switch {
		case op == "DisksClient.NewListByResourceGroupPager":
			return says(200, "application/json", `{"value":[]}`)(nil)
		case strings.HasPrefix(op, "DisksClient."):
			return says(403, "application/json", errorJSON("AuthorizationFailed", "The client does not have authorization."))(nil)
		}
		return next()
	})
	if _, err := d.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	if _, err := d.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	deleted(t, d, r)
}

// No Machine has an instance of another cluster removed by writing its provider id, nor one beyond the resource group that says nothing.
func TestWrittenProviderIDLeadsToNoOtherCluster(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	id := cloud.Add("theirs", map[string]string{tagCluster + "other": owned})
	deleted(t, d, provider.Ref{UID: "uid-1", Name: "worker-a", ProviderID: providerID(id)})
	if left := cloud.Names(arm.Instances); !slices.Equal(left, []string{"theirs"}) {
		t.Errorf("left are %v", left)
	}
	beyond := thing{ID: d.idIn("payroll", instanceKind, "db")}
	if d.mayBeNamed(beyond) {
		t.Error("what is beyond the resource group may be named")
	}
	if beyond.Tags = map[string]string{d.tagCluster(): owned}; !d.mayBeNamed(beyond) {
		t.Error("what is the cluster's may not")
	}
}

// A tag that is there in other letters with the same value is there: Azure may keep its letters, and nothing is changed for ever.
func TestTagInOtherLettersIsThere(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	cloud.Tag(arm.Instances, "worker-a", map[string]string{"CostCenter": "7"})
	n := cloud.Writes()
	must(t, d.Update(t.Context(), r, map[string]string{"costcenter": "7"}))
	if cloud.Writes() != n {
		t.Error("it is written")
	}
	must(t, d.Update(t.Context(), r, map[string]string{"costcenter": "8"}))
	if cloud.Writes() != n+1 {
		t.Error("another value is not")
	}
}

// Azure takes keys of RSA and of ED25519.
func TestKeysThatAzureDoesNotTake(t *testing.T) {
	t.Parallel()
	const ecdsa = "ZWNkc2Etc2hhMi1uaXN0cDI1NiBBQUFBRTJWalpITmhMWE5vWVRJdGJtbHpkSEF5TlRZQUFBQUlibWx6ZEhBeU5UWUFBQUJCQk0="
	if _, err := sshKeyOf(ecdsa); provider.CodeOf(err) != provider.Invalid {
		t.Errorf("it is taken: %v", err)
	}
}
