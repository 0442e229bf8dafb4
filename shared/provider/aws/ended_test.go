// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// A launch that fails after it was accepted leaves a terminated instance, which alone knows the reason (B21).
func TestEndedSaysWhy(t *testing.T) {
	t.Parallel()
	const reason = "Client.InternalError: Client error on launch"
	cloud := &ec2.Cloud{}
	region := serve(t, cloud)
	d, _ := region.wired(t, region.account())
	r, i, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	r.ID, r.ProviderID = i.ID, i.ProviderID
	if got, err := d.Ended(t.Context(), r); got != "" || err != nil {
		t.Errorf("Ended of what is there = %q, %v", got, err)
	}
	other := r // the same Machine, of another attempt
	other.Token, other.ID, other.ProviderID = "t2", "", ""
	resolved, err := d.Resolve(t.Context(), spec(nil))
	must(t, err)
	twin, err := proceed(t.Context(), d, other, resolved)
	must(t, err)
	cloud.Fail(twin.ID, "another's")
	if got, err := d.Ended(t.Context(), r); got != "" || err != nil {
		t.Errorf("Ended beside a twin that ended = %q, %v", got, err)
	}
	cloud.Fail(i.ID, reason)
	if got, err := d.Ended(t.Context(), r); got != reason || err != nil {
		t.Errorf("Ended = %q, %v; want %q", got, err, reason)
	}
	if found, err := d.Find(t.Context(), r); len(found) != 0 || err != nil {
		t.Errorf("Find = %+v, %v", found, err)
	}
	if got, err := d.Ended(t.Context(), provider.Ref{UID: "nobody", Name: "worker-b"}); got != "" || err != nil {
		t.Errorf("Ended of what never was = %q, %v", got, err)
	}
}
