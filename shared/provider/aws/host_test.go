// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// onHost is a spec that wants a host of its own.
func onHost() json.RawMessage {
	return spec(map[string]any{"placement": map[string]any{
		"region": "us-east-2", "availabilityZone": "us-east-2b", "tenancy": "host",
		"host": map[string]any{"affinity": "DedicatedHost", "dedicatedHost": map[string]any{
			"allocationStrategy": "Dynamic", "dynamicHostAllocation": map[string]any{"tags": []any{map[string]any{"name": "owner", "value": "team-a"}}},
		}},
	}})
}

// allocated has a host allocated for a Machine, and returns how to go on with it.
func allocated(t *testing.T, cloud *ec2.Cloud) (*driver, *wire, provider.Ref, json.RawMessage) {
	t.Helper()
	region := serve(t, cloud)
	d, w := region.wired(t, region.account())
	resolved, err := d.Resolve(t.Context(), onHost())
	must(t, err)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t", Began: time.Now()}
	i, err := d.Create(t.Context(), r, resolved)
	must(t, err)
	r.Progress = i.Progress
	return d, w, r, resolved
}

// SPEC E5, E10: a host is allocated for the Machine, recorded before it is used, told in its status, and given back when
// its instance is gone.
func TestHostIsAllocatedAndGivenBack(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Shutdown: 20 * time.Millisecond}
	region := serve(t, cloud)
	d, _ := region.wired(t, region.account())
	resolved, err := d.Resolve(t.Context(), onHost())
	must(t, err)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t", Began: time.Now()}
	first, err := d.Create(t.Context(), r, resolved)
	if err != nil || first.State != provider.StateIncomplete || len(cloud.Live()) != 0 || len(cloud.Hosts()) != 1 {
		t.Fatalf("Create = %+v, %v with %d instances on %d hosts", first, err, len(cloud.Live()), len(cloud.Hosts()))
	}
	id := slices.Collect(maps.Keys(cloud.Hosts()))[0]
	want := map[string]string{"Name": "worker-a", "owner": "team-a", "kubernetes.io/cluster/cluster-8trtb-rlgsx": "owned", "machine-functions/machine-uid": string(r.UID)}
	if got := cloud.Hosts()[id]; !maps.Equal(got, want) {
		t.Errorf("the host's tags are %v, want %v", got, want)
	}
	left, err := d.List(t.Context())
	if err != nil || len(left) != 1 || left[0].ID != id || !left[0].Child || left[0].UID != r.UID {
		t.Errorf("a host without its instance is listed as %+v, %v", left, err)
	}
	i, err := proceed(t.Context(), d, r, resolved) // whose progress was lost
	must(t, err)
	form := cloud.Live()[i.ID]
	if form.Get("Placement.HostId") != id || form.Get("Placement.Tenancy") != "host" || form.Get("Placement.Affinity") != "host" || len(cloud.Hosts()) != 1 {
		t.Errorf("the instance is placed by %q %q %q, of %d hosts", form.Get("Placement.HostId"), form.Get("Placement.Tenancy"), form.Get("Placement.Affinity"), len(cloud.Hosts()))
	}
	if !strings.Contains(string(i.Status), `"dedicatedHost":{"id":"`+id+`"}`) {
		t.Errorf("status %s", i.Status)
	}
	r.ID, r.ProviderID = i.ID, i.ProviderID
	for err = error(nil); provider.CodeOf(err) != provider.NotFound; time.Sleep(5 * time.Millisecond) {
		must(t, err)
		err = d.Delete(t.Context(), r)
	}
	if len(cloud.Live()) != 0 || len(cloud.Hosts()) != 0 {
		t.Errorf("%d instances, %d hosts are left", len(cloud.Live()), len(cloud.Hosts()))
	}
}

// What an attempt that was refused allocated is used by the next, and never kept for nothing.
func TestHostOfARefusedAttempt(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	d, _, r, resolved := allocated(t, cloud)
	cloud.Exhaust(true)
	if _, err := d.Create(t.Context(), r, resolved); provider.CodeOf(err) != provider.Exhausted {
		t.Errorf("Create = %v", err)
	}
	again := provider.Ref{UID: r.UID, Name: r.Name, Token: "t2"}
	if _, err := d.Create(t.Context(), again, resolved); err != nil || len(cloud.Hosts()) != 1 {
		t.Errorf("the next attempt = %v with %d hosts", err, len(cloud.Hosts()))
	}
	for id := range cloud.Hosts() { // as a sweep does that found it
		must(t, d.Delete(t.Context(), provider.Ref{Name: r.Name, ID: id}))
	}
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.NotFound || len(cloud.Hosts()) != 0 {
		t.Errorf("Delete = %v, %d hosts are left", err, len(cloud.Hosts()))
	}
}

// A host that carries an instance still, as of an attempt that ended, is not the next attempt's.
func TestHostThatCarriesAnInstanceIsNotTaken(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Shutdown: time.Hour}
	d, _, r, resolved := allocated(t, cloud)
	i, err := proceed(t.Context(), d, r, resolved)
	must(t, err)
	first := slices.Collect(maps.Keys(cloud.Hosts()))[0]
	cloud.End(i.ID)
	again, err := d.Create(t.Context(), provider.Ref{UID: r.UID, Name: r.Name, Token: "t2"}, resolved)
	must(t, err)
	if len(cloud.Hosts()) != 2 || strings.Contains(string(again.Progress), first) {
		t.Errorf("the next attempt has %s of %d hosts, the first has %s", again.Progress, len(cloud.Hosts()), first)
	}
}

// What EC2 does not know, as a host that was given back long ago, is not paid for, and nobody is told that it is.
func TestHostThatIsNotKnownIsNotPaidFor(t *testing.T) {
	t.Parallel()
	d, _, r, _ := allocated(t, &ec2.Cloud{})
	r.UID, r.Progress = uuid.NewUUID(), []byte(`{"host":"h-00000000000000bad"}`)
	if err := d.Delete(t.Context(), r); err != nil {
		t.Errorf("Delete = %v", err)
	}
	r.Began = time.Now().Add(-horizon)
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete after the horizon = %v", err)
	}
}

// A host that the next attempt cannot use, of another instance type or broken, is given back: it would be refused for ever.
func TestHostThatFitsNoLongerIsGivenBack(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*ec2.Cloud, json.RawMessage) json.RawMessage{
		"another type": func(_ *ec2.Cloud, resolved json.RawMessage) json.RawMessage {
			return []byte(strings.Replace(string(resolved), `"instanceType":"m5a.4xlarge"`, `"instanceType":"m5.large"`, 1))
		},
		"broken": func(cloud *ec2.Cloud, resolved json.RawMessage) json.RawMessage {
			cloud.BreakHosts()
			return resolved
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cloud := &ec2.Cloud{}
			d, _, r, resolved := allocated(t, cloud)
			first := slices.Collect(maps.Keys(cloud.Hosts()))[0]
			again := provider.Ref{UID: r.UID, Name: r.Name, Token: "t2"}
			i, err := d.Create(t.Context(), again, change(cloud, resolved))
			if _, kept := cloud.Hosts()[first]; err != nil || i.State != provider.StateIncomplete || kept || len(cloud.Hosts()) != 1 {
				t.Errorf("Create = %+v, %v on hosts %v, at first on %s", i, err, cloud.Hosts(), first)
			}
		})
	}
}

// While EC2 does not release what fits no longer, a Mac's host for its first day, no other one is allocated: each attempt would leave one
// more that is paid for.
func TestHostThatIsNotReleasedIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	d, w, r, resolved := allocated(t, cloud)
	first := slices.Collect(maps.Keys(cloud.Hosts()))[0]
	w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
		if action == "ReleaseHosts" {
			return page(200, "text/xml", `<ReleaseHostsResponse><unsuccessful><item><error><code>Client.HostMinAllocationPeriodUnexpired</code></error><resourceId>`+first+
				`</resourceId></item></unsuccessful></ReleaseHostsResponse>`)(nil)
		}
		return next()
	})
	cloud.BreakHosts()
	for _, token := range []string{"t2", "t3"} {
		_, err := d.Create(t.Context(), provider.Ref{UID: r.UID, Name: r.Name, Token: token}, resolved)
		if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(fmt.Sprint(err), first) || !strings.Contains(fmt.Sprint(err), "Unexpired") || len(cloud.Hosts()) != 1 {
			t.Errorf("Create = %v with %d hosts, at first %s", err, len(cloud.Hosts()), first)
		}
	}
}

// Nor is one while EC2 still counts the instance of an attempt that ended on what fits no longer: a deletion would wait for that without a
// word, but whoever allocated another now would leave the first to the Machine's end.
func TestHostThatIsOccupiedStillIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	d, w, r, resolved := allocated(t, cloud)
	i, err := proceed(t.Context(), d, r, resolved)
	must(t, err)
	cloud.End(i.ID)
	first := slices.Collect(maps.Keys(cloud.Hosts()))[0]
	w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
		if action == "ReleaseHosts" {
			return page(200, "text/xml", `<ReleaseHostsResponse><unsuccessful><item><error><code>Client.InvalidHost.Occupied</code></error><resourceId>`+first+
				`</resourceId></item></unsuccessful></ReleaseHostsResponse>`)(nil)
		}
		return next()
	})
	cloud.BreakHosts()
	_, err = d.Create(t.Context(), provider.Ref{UID: r.UID, Name: r.Name, Token: "t2"}, resolved)
	if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(fmt.Sprint(err), first) || len(cloud.Hosts()) != 1 {
		t.Errorf("Create = %v with %d hosts, at first %s", err, len(cloud.Hosts()), first)
	}
}

// Credentials of before know nothing of hosts: what they may not ask for is not there.
func TestHostsNeedNoRightWhereThereAreNone(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{Deny: "DescribeHosts"})
	d, _ := region.wired(t, region.account())
	r, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	if all, err := d.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("List = %v, %v", all, err)
	}
	must(t, d.Delete(t.Context(), r))
}

// A host that was allocated is asked for and given back, also with credentials that were narrowed since: what may not be
// asked is said, not taken for absence.
func TestHostIsNotForgottenForLackOfARight(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Page: 1}
	d, w, r, resolved := allocated(t, cloud)
	one := page(200, "text/xml", `<DescribeHostsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><hostSet/><nextToken>2</nextToken></DescribeHostsResponse>`)
	pages := 0
	denied := func(after int) {
		pages = 0
		w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
			if action != "DescribeHosts" {
				return next()
			}
			if pages++; pages <= after {
				return one(nil)
			}
			return page(403, "text/xml", errorXML("UnauthorizedOperation", "You are not authorized to perform this operation."))(nil)
		})
	}
	denied(0)
	for _, began := range []time.Time{time.Now(), time.Now().Add(-horizon)} { // so new that no list shows it, and old
		r.Began = began
		if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.Denied {
			t.Errorf("Delete = %v, want Denied", err)
		}
	}
	for id := range cloud.Hosts() {
		if err := d.Delete(t.Context(), provider.Ref{Name: r.Name, ID: id}); provider.CodeOf(err) != provider.Denied {
			t.Errorf("Delete of a host that was listed = %v, want Denied", err)
		}
	}
	if _, err := d.Create(t.Context(), provider.Ref{UID: r.UID, Name: r.Name, Token: "t2"}, resolved); provider.CodeOf(err) != provider.Denied || len(cloud.Hosts()) != 1 {
		t.Errorf("the next attempt = %v with %d hosts, want Denied with the one", err, len(cloud.Hosts()))
	}
	denied(1)
	if all, err := d.List(t.Context()); provider.CodeOf(err) != provider.Denied {
		t.Errorf("List that is denied its second page = %v, %v", all, err)
	}
}

// A host that EC2 does not release is paid for: whoever removes the Machine is told why, and what is on it (SPEC E10).
func TestHostThatIsNotReleasedIsTold(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Shutdown: time.Millisecond}
	d, _, r, resolved := allocated(t, cloud)
	_, err := proceed(t.Context(), d, r, resolved)
	must(t, err)
	host := slices.Collect(maps.Keys(cloud.Hosts()))[0]
	_, other, err := create(t, d, "worker-b", spec(map[string]any{"placement": map[string]any{
		"region": "us-east-2", "availabilityZone": "us-east-2b", "tenancy": "host",
		"host": map[string]any{"affinity": "DedicatedHost", "dedicatedHost": map[string]any{"id": host}},
	}}))
	must(t, err)
	for range 100 {
		if err = d.Delete(t.Context(), r); err != nil {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if err == nil || !strings.Contains(err.Error(), host) || !strings.Contains(err.Error(), "Occupied") || !strings.Contains(err.Error(), other.ID) {
		t.Errorf("Delete = %v, want it to name host %s and instance %s", err, host, other.ID)
	}
	cloud.End(other.ID)
	for range 100 {
		if err = d.Delete(t.Context(), r); provider.CodeOf(err) == provider.NotFound {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if n := len(cloud.Hosts()); n != 0 {
		t.Errorf("%d hosts are left", n)
	}
}

// An answer without a host is none: nobody takes what is not in it.
func TestAllocationThatAnswersNoHost(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	d, w := region.wired(t, region.account())
	resolved, err := d.Resolve(t.Context(), onHost())
	must(t, err)
	w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
		if action == "AllocateHosts" {
			return page(200, "text/xml", `<AllocateHostsResponse><hostIdSet/></AllocateHostsResponse>`)(nil)
		}
		return next()
	})
	if _, err := d.Create(t.Context(), provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}, resolved); provider.CodeOf(err) != provider.Unknown || err == nil {
		t.Errorf("Create = %v (%v)", err, provider.CodeOf(err))
	}
}

// A cloud of EC2's protocol that does not know dedicated hosts has none: its instances are listed, and removed.
func TestCloudThatKnowsNoHostsHasNone(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	d, w := region.wired(t, region.account())
	w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
		if action == "DescribeHosts" {
			return page(400, "text/xml", errorXML("InvalidAction", "The action DescribeHosts is not valid for this web service."))(nil)
		}
		return next()
	})
	r, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	if all, err := d.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("List = %v, %v", all, err)
	}
	must(t, d.Delete(t.Context(), r))
}
