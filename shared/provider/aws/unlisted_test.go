// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"net/http"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// An answer that does not list what a load balancer has, as of something else than AWS, says nothing of it: an instance that did not leave
// its targets would go on to be sent what is another's.
func TestInstanceStaysUntilItsTargetsAreTold(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"DescribeLoadBalancers", "DescribeTargetGroups"} {
		cloud := &ec2.Cloud{Boot: time.Millisecond}
		region := serve(t, cloud)
		d, w := region.wired(t, region.account())
		r, i, err := create(t, d, "worker-a", spec(balancedBy("cluster-8trtb-rlgsx-int", "network")))
		must(t, err)
		w.set(func(sent string, next func() (*http.Response, error)) (*http.Response, error) {
			if sent == action {
				return page(200, "text/xml", "<"+action+"Response><"+action+"Result/></"+action+"Response>")(nil)
			}
			return next()
		})
		err = d.Delete(t.Context(), r)
		if _, there := cloud.Live()[i.ID]; err == nil || provider.CodeOf(err) != provider.Unknown || !there || len(cloud.Targets()) == 0 {
			t.Errorf("%s: Delete = %v, the instance is there: %v, targets %v", action, err, there, cloud.Targets())
		}
	}
}

// No region is without types: an answer without any would take the capacity off every set.
func TestAnswerWithoutTypesIsNone(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	d, w := region.wired(t, region.account())
	w.set(func(sent string, next func() (*http.Response, error)) (*http.Response, error) {
		if sent == "DescribeInstanceTypes" {
			return page(200, "text/xml", "<DescribeInstanceTypesResponse/>")(nil)
		}
		return next()
	})
	if all, err := d.InstanceTypes(t.Context()); err == nil || provider.CodeOf(err) != provider.Unknown {
		t.Errorf("InstanceTypes = %v, %v", all, err)
	}
}
