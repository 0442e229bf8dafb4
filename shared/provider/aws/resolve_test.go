// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// An instance comes into the network and the groups that its spec selects, by id or by filters; where a selection finds nothing none is made,
// in place of one in the cloud's own.
func TestWhatASpecSelects(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	d, _ := region.wired(t, region.account())
	id := func(id string) map[string]any { return map[string]any{"id": id} }
	called := func(name string) map[string]any {
		return map[string]any{"filters": []any{map[string]any{"name": "tag:Name", "values": []string{name}}}}
	}
	const private = "cluster-8trtb-rlgsx-private-us-east-2"
	anywhere := map[string]any{"region": "us-east-2"}
	for name, c := range map[string]struct {
		change             map[string]any
		code               provider.Code
		subnet, zone, sets string
	}{
		"a subnet by its id":           {map[string]any{"subnet": id("subnet-c"), "placement": anywhere}, 0, "subnet-c", "us-east-2c", "sg-1 sg-2"},
		"the first of several subnets": {map[string]any{"subnet": called(private + "*"), "placement": anywhere}, 0, "subnet-a", "us-east-2a", "sg-1 sg-2"},
		"that of the zone":             {map[string]any{"subnet": called(private + "*")}, 0, "subnet-b", "us-east-2b", "sg-1 sg-2"},
		"the cloud's own subnet":       {map[string]any{"subnet": map[string]any{}}, 0, "", "us-east-2b", "sg-1 sg-2"},
		"no such subnet":               {map[string]any{"subnet": id("subnet-x"), "placement": anywhere}, provider.NotFound, "", "", ""},
		"a subnet of another zone":     {map[string]any{"subnet": id("subnet-a")}, provider.Invalid, "", "", ""},
		"a group by its id":            {map[string]any{"securityGroups": []any{id("sg-2")}}, 0, "subnet-b", "us-east-2b", "sg-2"},
		"groups by both, each once":    {map[string]any{"securityGroups": []any{id("sg-2"), called("cluster-8trtb-rlgsx-*")}}, 0, "subnet-b", "us-east-2b", "sg-1 sg-2"},
		"no such group":                {map[string]any{"securityGroups": []any{called("outer")}}, provider.NotFound, "", "", ""},
		"no such group beside one":     {map[string]any{"securityGroups": []any{id("sg-2"), called("outer")}}, provider.NotFound, "", "", ""},
		"no such image":                {map[string]any{"ami": id("ami-x")}, provider.NotFound, "", "", ""},
	} {
		var got request
		resolved, err := d.Resolve(t.Context(), spec(c.change))
		if err == nil {
			must(t, json.Unmarshal(resolved, &got))
		}
		if provider.CodeOf(err) != c.code || (err == nil) != (c.code == 0) || err == nil && (got.Subnet != c.subnet || got.Zone != c.zone || strings.Join(got.Groups, " ") != c.sets) {
			t.Errorf("%s: %v, subnet %q, zone %q, groups %q", name, err, got.Subnet, got.Zone, got.Groups)
		}
	}
}

// Whatever becomes of whichever look: without an answer nothing is selected.
func TestLookThatFailedSelectsNothing(t *testing.T) {
	t.Parallel()
	for f := range faults {
		for _, action := range []string{"DescribeSubnets", "DescribeSecurityGroups", "DescribeImages"} {
			region := serve(t, &ec2.Cloud{})
			d, w := region.wired(t, region.account())
			once(w, action, 1, f)
			if resolved, err := d.Resolve(t.Context(), spec(nil)); err == nil || provider.CodeOf(err) != faults[f].code || !slices.Contains(w.since(0), action) {
				t.Errorf("%s of %s: Resolve = %s, %v", f, action, resolved, err)
			}
		}
	}
}

// An image that is not there yet, or no more, is waited for; a cloud that tells no state has it.
func TestImageThatIsNotAvailable(t *testing.T) {
	t.Parallel()
	for state, code := range map[string]provider.Code{"available": 0, "": 0, "pending": provider.Exhausted, "deregistered": provider.Exhausted} {
		region := serve(t, &ec2.Cloud{})
		d, w := region.wired(t, region.account())
		w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
			if action != "DescribeImages" {
				return next()
			}
			return page(200, "text/xml", `<DescribeImagesResponse><imagesSet><item><imageId>ami-1</imageId><imageState>`+state+`</imageState></item></imagesSet></DescribeImagesResponse>`)(nil)
		})
		if _, err := d.Resolve(t.Context(), spec(nil)); provider.CodeOf(err) != code {
			t.Errorf("%q: Resolve = %v", state, err)
		}
	}
}

// No instance is made without the user data that its spec names: it would be paid for and never be a Node.
func TestNoInstanceWithoutItsUserData(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	region := serve(t, cloud)
	a := region.account()
	data := map[string][]byte{"userData": []byte("#cloud-config")}
	a.UserData = func(context.Context, string) (map[string][]byte, string, error) { return data, "1", nil }
	d, _ := region.wired(t, a)
	resolved, err := d.Resolve(t.Context(), spec(nil))
	must(t, err)
	data = map[string][]byte{"disableTemplating": []byte("true")}
	_, err = d.Create(t.Context(), provider.Ref{UID: "mine", Name: "worker-a", Token: "t"}, resolved)
	if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "machines/worker-user-data has no key userData") || len(cloud.Live()) != 0 {
		t.Errorf("Create = %v with %d instances", err, len(cloud.Live()))
	}
	if _, err = d.Resolve(t.Context(), spec(nil)); provider.CodeOf(err) != provider.Exhausted {
		t.Errorf("Resolve = %v", err)
	}
}

// Spot capacity is asked for by its name or by its options, and is not bought at another price in their place.
func TestHowCapacityIsBought(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec providerspec.AWS
		want types.MarketType
	}{
		"as usual":            {providerspec.AWS{}, ""},
		"as usual, by name":   {providerspec.AWS{MarketType: "OnDemand"}, ""},
		"spot by its name":    {providerspec.AWS{MarketType: "Spot"}, types.MarketTypeSpot},
		"spot by its options": {providerspec.AWS{SpotMarketOptions: &providerspec.AWSSpotMarket{}}, types.MarketTypeSpot},
		"a block of capacity": {providerspec.AWS{MarketType: "CapacityBlock"}, types.MarketTypeCapacityBlock},
	} {
		got := market(c.spec)
		if (got == nil) != (c.want == "") || got != nil && got.MarketType != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
