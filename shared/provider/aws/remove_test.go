// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// deleted calls Delete until nothing is left.
func deleted(t *testing.T, d *driver, r provider.Ref) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err := d.Delete(t.Context(), r)
		if provider.CodeOf(err) == provider.NotFound {
			return
		}
		must(t, err)
		if time.Since(begin) > 20*time.Second {
			t.Fatal("Delete does not end")
		}
	}
}

// SPEC E9: a recorded instance that EC2 does not know yet is no absence; it goes once it is known.
func TestRecordedInstanceThatEC2DoesNotKnowYet(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Lag: time.Hour}
	region := serve(t, cloud)
	d, _ := region.wired(t, region.account())
	r, i, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	r.ID, r.ProviderID, r.Began = i.ID, i.ProviderID, time.Now()
	if err := d.Delete(t.Context(), r); err != nil {
		t.Errorf("Delete of what was made a moment ago = %v", err)
	}
	old := r
	old.Began = time.Now().Add(-horizon)
	if err := d.Delete(t.Context(), old); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete of what EC2 should know by now = %v", err)
	}
	cloud.CatchUp()
	deleted(t, d, r)
	if n := len(cloud.Live()); n != 0 {
		t.Errorf("nothing is there, says Delete, and %d instances live", n)
	}
}

// SPEC E9, E10: an instance that only the progress names, because no list shows it yet, is terminated.
func TestHalfMadeInstanceThatNoListShowsIsDeleted(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Lag: 50 * time.Millisecond, Boot: time.Hour}
	region := serve(t, cloud)
	d, _ := region.wired(t, region.account())
	resolved, err := d.Resolve(t.Context(), spec(map[string]any{"loadBalancers": []any{map[string]any{"name": "apps", "type": "classic"}}}))
	must(t, err)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t", Began: time.Now()}
	i, err := d.Create(t.Context(), r, resolved)
	must(t, err)
	r.Progress = i.Progress
	deleted(t, d, r)
	if n := len(cloud.Live()); n != 0 {
		t.Errorf("nothing is there, says Delete, and %d instances live", n)
	}
}

// An id that EC2 does not know yet is no absence; one that it has forgotten is.
func TestHalfMadeInstanceThatEC2DoesNotKnow(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	d, _ := region.wired(t, region.account())
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t", Began: time.Now()}
	i, err := provider.Incomplete(r, progress{Instance: "i-0123456789abcdef0"})
	must(t, err)
	r.Progress = i.Progress
	if err := d.Delete(t.Context(), r); err != nil {
		t.Errorf("Delete of what was made a moment ago = %v", err)
	}
	r.Began = time.Now().Add(-horizon)
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete of what ended long ago = %v", err)
	}
}

// Nor is an instance that EC2 shows without its tags: whose it is shows later. It is not terminated as nobody's either.
func TestHalfMadeInstanceThatShowsNoTagsYet(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	region := serve(t, cloud)
	d, _ := region.wired(t, region.account())
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t", Began: time.Now()}
	i, err := provider.Incomplete(r, progress{Instance: idsOf(provider.Ref{ProviderID: cloud.Add("eu-west-1a", "m5.large", nil)})[0]})
	must(t, err)
	r.Progress = i.Progress
	if err := d.Delete(t.Context(), r); err != nil || len(cloud.Live()) != 1 {
		t.Errorf("Delete of what was made a moment ago = %v, %d instances live", err, len(cloud.Live()))
	}
	r.Began = time.Now().Add(-horizon)
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.NotFound || len(cloud.Live()) != 1 {
		t.Errorf("Delete of what never had tags = %v, %d instances live", err, len(cloud.Live()))
	}
}

// SPEC E10: the host that the progress names is given back although no list shows it yet.
func TestHostThatNoListShowsIsGivenBack(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	d, w, r, _ := allocated(t, cloud)
	lag := time.Now().Add(50 * time.Millisecond)
	w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
		if action == "DescribeHosts" && time.Now().Before(lag) {
			return page(200, "text/xml", `<DescribeHostsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><hostSet/></DescribeHostsResponse>`)(nil)
		}
		return next()
	})
	deleted(t, d, r)
	if n := len(cloud.Hosts()); n != 0 {
		t.Errorf("nothing is there, says Delete, and %d hosts are paid for", n)
	}
}

// What could not be listed is not gone: the Machine would go, and its instance stay (R-S2, R-S12). Neither is the host under it given back.
func TestWhatCouldNotBeListedIsNotGone(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	region := serve(t, cloud)
	d, w := region.wired(t, region.account())
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t", Began: time.Now().Add(-horizon)}
	i, err := provider.Incomplete(r, progress{Instance: "i-0123456789abcdef0"})
	must(t, err)
	r.Progress = i.Progress
	for f := range faults {
		for n, of := range []string{"by its tag", "by its id"} {
			once(w, "DescribeInstances", n+1, f)
			if err := d.Delete(t.Context(), r); err == nil || provider.CodeOf(err) == provider.NotFound {
				t.Errorf("%s of the list %s: Delete = %v", f, of, err)
			}
		}
	}
	w.set(nil)
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete of what is gone = %v", err)
	}
	other := provider.Ref{UID: uuid.NewUUID(), Name: "made-by-another-system", ProviderID: cloud.Add("eu-west-1a", "m5.large", nil)}
	for f := range faults {
		once(w, "DescribeInstances", 2, f) // the first is by its tag, which it does not have
		if found, err := d.Find(t.Context(), other); err == nil {
			t.Errorf("%s: Find of what is recorded = %+v", f, found)
		}
	}
}

// A list by tags may show an instance later than its id does: what the id shows, and is the Machine's, is terminated, and no absence.
func TestInstanceThatItsIDAloneShowsIsTerminated(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	region := serve(t, cloud)
	d, w := region.wired(t, region.account())
	r, i, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	half, err := provider.Incomplete(r, progress{Instance: i.ID})
	must(t, err)
	r.Progress, r.Began = half.Progress, time.Now().Add(-horizon)
	listed := false
	w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
		if action == "DescribeInstances" && !listed {
			listed = true
			return page(200, "text/xml", `<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><reservationSet/></DescribeInstancesResponse>`)(nil)
		}
		return next()
	})
	if err := d.Delete(t.Context(), r); err != nil || len(cloud.Live()) != 0 {
		t.Errorf("Delete of what its id alone shows = %v, %d instances live", err, len(cloud.Live()))
	}
}

// Of two that are recorded one that EC2 does not know yet is no absence, whatever became of the other.
func TestRecordedInstanceBesideOneThatEnded(t *testing.T) {
	t.Parallel()
	const unknown = "i-0123456789abcdef0"
	region := serve(t, &ec2.Cloud{})
	d, _ := region.wired(t, region.account())
	r, i, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	deleted(t, d, r)
	half, err := provider.Incomplete(r, progress{Instance: i.ID})
	must(t, err)
	r.ID, r.ProviderID, r.Progress, r.Began = unknown, "aws:///us-east-2a/"+unknown, half.Progress, time.Now()
	other := r
	other.UID = uuid.NewUUID() // whose tag leads to neither
	for whose, r := range map[string]provider.Ref{"its own": r, "another's": other} {
		if err := d.Delete(t.Context(), r); err != nil {
			t.Errorf("Delete beside one that ended, %s = %v", whose, err)
		}
	}
}

// As long as it is not known that no instance is there, the host for it is not given back, and the error is told.
func TestHostStaysWhereInstancesAreNotKnown(t *testing.T) {
	t.Parallel()
	for f := range faults {
		cloud := &ec2.Cloud{}
		d, w, r, _ := allocated(t, cloud)
		once(w, "DescribeInstances", 1, f)
		if err := d.Delete(t.Context(), r); err == nil || len(cloud.Hosts()) != 1 {
			t.Errorf("%s: Delete = %v with %d hosts", f, err, len(cloud.Hosts()))
		}
	}
}
