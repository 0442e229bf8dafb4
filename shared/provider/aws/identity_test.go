// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"net/http"
	"slices"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// Whose the credentials are is told by any instance of the cluster; where it has none the token service is asked, once.
func TestIdentity(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		with func(*ec2.Cloud)
		want string
		asks int
	}{
		"an instance of the control plane tells": {func(c *ec2.Cloud) {
			c.Add("us-east-2b", "m5.large", map[string]string{"kubernetes.io/cluster/cluster-8trtb-rlgsx": "owned"})
		}, "210987654321", 0},
		"the token service tells":                       {func(*ec2.Cloud) {}, "210987654321", 1},
		"a cloud without a token service does not tell": {func(c *ec2.Cloud) { c.Deny = "GetCallerIdentity" }, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud := &ec2.Cloud{Account: "210987654321"}
			c.with(cloud)
			region := serve(t, cloud)
			d, _ := region.wired(t, region.account())
			for range 3 {
				if got, err := d.Identity(t.Context()); got != c.want || err != nil {
					t.Errorf("Identity = %q, %v; want %q", got, err, c.want)
				}
			}
			calls := slices.DeleteFunc(cloud.Calls(), func(call string) bool { return call != "GetCallerIdentity" })
			if len(calls) != c.asks {
				t.Errorf("the token service was asked %d times, want %d", len(calls), c.asks)
			}
		})
	}
}

// An answer that does not come is no word that a cloud has no token service: where nobody knows whose account it is, what it does not
// show would be gone (G5).
func TestTokenServiceThatDoesNotAnswerIsNotMissing(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*http.Response) (*http.Response, error){
		"lost":            faults["the answer is lost"].answer,
		"unavailable":     faults["unavailable"].answer,
		"a proxy's page":  faults["a proxy's page"].answer,
		"a gateway's":     faults["a gateway's haste"].answer,
		"no content":      faults["no content"].answer,
		"asked too often": page(400, "text/xml", errorXML("Throttling", "Rate exceeded")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			region := serve(t, &ec2.Cloud{Account: "210987654321"})
			d, w := region.wired(t, region.account())
			w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
				if action == "GetCallerIdentity" {
					return answer(nil)
				}
				return next()
			})
			if got, err := d.Identity(t.Context()); got != "" || err == nil || provider.CodeOf(err) != provider.Unknown {
				t.Errorf("Identity = %q, %v (%v)", got, err, provider.CodeOf(err))
			}
		})
	}
}

// The token service of a region is beside EC2, in each of Amazon's partitions.
func TestTokenServiceIsBesideEC2(t *testing.T) {
	t.Parallel()
	for region, want := range map[string]string{
		"us-east-2": "https://sts.us-east-2.amazonaws.com/", "us-gov-west-1": "https://sts.us-gov-west-1.amazonaws.com/",
		"cn-north-1": "https://sts.cn-north-1.amazonaws.com.cn/", "us-iso-east-1": "https://sts.us-iso-east-1.c2s.ic.gov/",
	} {
		got, err := (&clients{region: region}).tokenService(t.Context())
		if got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", region, got, err, want)
		}
	}
}
