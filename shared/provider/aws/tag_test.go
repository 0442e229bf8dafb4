// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"maps"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// What is written on an instance that runs does not say whose it is, whoever asks for that: by another's tag nobody finds it again, and it
// is made twice (R-S1).
func TestTagsThatAreWrittenDoNotSayWhoseItIs(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	d, _ := region.wired(t, region.account())
	r, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	theirs := map[string]string{tagUID: "theirs", tagCluster + "test": owned, d.tagCluster(): "shared"}
	must(t, d.Update(t.Context(), r, theirs))
	maps.Copy(theirs, map[string]string{"team": "a"})
	must(t, d.Update(t.Context(), r, theirs))
	found, err := d.Find(t.Context(), provider.Ref{UID: r.UID, Name: r.Name})
	must(t, err)
	if len(found) != 1 || found[0].UID != r.UID || found[0].Tags["team"] != "a" {
		t.Errorf("found are %+v", found)
	}
}
