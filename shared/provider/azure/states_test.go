// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/arm"
)

// Whatever becomes of the list of states, in a process that never had one too: the other calls go on, and what is on record of instances
// stays (G11). That it is asked for too often pauses nothing but itself.
func TestStatesThatFailFromTheBeginning(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 500, 503, 400, 404} {
		cloud := &arm.Cloud{}
		a := account()
		first, _ := wired(t, cloud, a)
		r, _, err := create(t, first, "worker-a", spec(nil))
		must(t, err)
		d, asked := wiredAside(t, cloud, a, status)
		for range 2 {
			listed, err := d.List(t.Context())
			found, lost := d.Find(t.Context(), r)
			if err != nil || lost != nil || len(listed) != 1 || len(found) != 1 {
				t.Fatalf("%d: List = %+v, %v; Find = %+v, %v", status, listed, err, found, lost)
			}
			if diff := cmp.Diff(listed, found); diff != "" || found[0].State != provider.StateRunning || found[0].CloudState != "" || found[0].Status != nil {
				t.Errorf("%d: found is %+v; listed and found differ:\n%s", status, found[0], diff)
			}
		}
		must(t, d.Update(t.Context(), r, map[string]string{"a": "b"}))
		must(t, d.PowerCycle(t.Context(), r))
		must(t, d.Delete(t.Context(), r))
		if n := asked.Load(); n != 1 {
			t.Errorf("%d: the list is asked for %d times", status, n)
		}
	}
}

// Of an instance that the list of states lacks, or tells no power of, what is on record stays (G11): lists lag one behind the other, and
// while an instance changes Azure may leave its power out (https://github.com/Azure/azure-sdk-for-python/issues/3406).
func TestPowerThatIsNotToldChangesNoRecord(t *testing.T) {
	t.Parallel()
	id := arm.ID(arm.Instances, "worker-a")
	for _, said := range []string{
		`{"value":[]}`, `{"value":[{"id":"` + id + `"}]}`,
		`{"value":[{"id":"` + id + `","properties":{"instanceView":{"statuses":[{"code":"ProvisioningState/succeeded"}]}}}]}`,
	} {
		d, w := wired(t, &arm.Cloud{}, account())
		_, _, err := create(t, d, "worker-a", spec(nil))
		must(t, err)
		w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
			if op == "VirtualMachinesClient.NewListAllPager" {
				return says(200, "application/json", said)(nil)
			}
			return next()
		})
		all, err := d.List(t.Context())
		must(t, err)
		if len(all) != 1 || all[0].State != provider.StateRunning || all[0].CloudState != "" || all[0].Status != nil {
			t.Errorf("%s: List = %+v", said, all)
		}
	}
}

// wiredAside opens a driver to which the list of states answers with a status, and counts how often.
func wiredAside(t *testing.T, cloud http.RoundTripper, a provider.Account, status int) (*driver, *atomic.Int32) {
	t.Helper()
	d, _ := wired(t, cloud, a)
	asked := &atomic.Int32{}
	d.http.Transport = d.paced(roundTrip(func(r *http.Request) (*http.Response, error) {
		if arm.Operation(r) != "VirtualMachinesClient.NewListAllPager" {
			return cloud.RoundTrip(r)
		}
		asked.Add(1)
		res, err := says(status, "application/json", errorJSON("OperationNotAllowed", "The server rejected the request."))(nil)
		res.Header.Set("Retry-After", "300")
		return res, err
	}))
	return d, asked
}
