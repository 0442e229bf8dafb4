// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"fmt"
	"maps"
	"testing"
	"time"

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

// As many tags as a spec may have are all there, beside those by which an instance, its load balancers and its host are known: EC2 takes 50
// of one thing, and 256 characters of a value.
func TestMostTags(t *testing.T) {
	t.Parallel()
	tags := func(n int) (all []any) {
		for k := range n {
			all = append(all, map[string]any{"name": fmt.Sprintf("t%d", k)})
		}
		return all
	}
	allocated := map[string]any{"affinity": "DedicatedHost", "dedicatedHost": map[string]any{"allocationStrategy": "Dynamic", "dynamicHostAllocation": map[string]any{"tags": tags(46)}}}
	for name, change := range map[string]map[string]any{
		"alone":                  {"tags": tags(46)},
		"beside a load balancer": {"tags": tags(44), "loadBalancers": []any{map[string]any{"name": "apps", "type": "classic"}}},
		"of a host":              {"placement": map[string]any{"region": "us-east-2", "availabilityZone": "us-east-2b", "tenancy": "host", "host": allocated}},
	} {
		cloud := &ec2.Cloud{Boot: time.Millisecond}
		region := serve(t, cloud)
		a := region.account()
		a.ClusterUID = "mark"
		d, _ := region.wired(t, a)
		if _, _, err := create(t, d, "worker-a", spec(change)); err != nil || len(cloud.Live()) != 1 {
			t.Errorf("%s: %v with %d instances", name, err, len(cloud.Live()))
		}
	}
}
