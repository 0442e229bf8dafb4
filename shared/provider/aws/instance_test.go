// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// Without the names that the network gives nobody knows an instance whole, and nothing stands in its place: what has no id would be somebody
// else's instance.
func TestInstanceWhoseNamesCannotBeReadIsNoOther(t *testing.T) {
	t.Parallel()
	for f := range faults {
		region := serve(t, &ec2.Cloud{})
		d, _ := region.wired(t, region.account())
		r, _, err := create(t, d, "worker-a", spec(nil))
		must(t, err)
		for call, look := range map[string]func(*driver) ([]provider.Instance, error){
			"Find": func(d *driver) ([]provider.Instance, error) { return d.Find(t.Context(), r) },
			"List": func(d *driver) ([]provider.Instance, error) { return d.List(t.Context()) },
		} {
			other, w := region.wired(t, region.account()) // which has yet to ask for the names
			once(w, "DescribeVpcs", 1, f)
			if all, err := look(other); err == nil || len(all) != 0 {
				t.Errorf("%s: %s = %+v, %v", f, call, all, err)
			}
		}
	}
}

// What is not told is no address: two Nodes that have none would be told apart by nothing.
func TestAddressesAreOfWhatIsInUse(t *testing.T) {
	t.Parallel()
	i := types.Instance{
		PrivateDnsName: aws.String(""), PublicDnsName: aws.String(""),
		NetworkInterfaces: []types.InstanceNetworkInterface{
			{Status: "in-use", PrivateIpAddresses: []types.InstancePrivateIpAddress{
				{PrivateIpAddress: aws.String("10.0.0.1"), Association: &types.InstanceNetworkInterfaceAssociation{}}, {}, {PrivateIpAddress: aws.String("10.0.0.1")},
			}, Ipv6Addresses: []types.InstanceIpv6Address{{}}},
			{Status: "detaching", PrivateIpAddresses: []types.InstancePrivateIpAddress{{PrivateIpAddress: aws.String("10.0.0.2")}}},
		},
	}
	if got := addresses(i, []string{"example.com"}); !slices.Equal(got, []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}) {
		t.Errorf("addresses %v", got)
	}
}

// What one page told is there, though a later one does not: it has ended since, or the one who answers has yet to hear of it (G5).
func TestInstanceThatOnePageToldIsThere(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Page: 4}
	region := serve(t, cloud)
	d, w := region.wired(t, region.account())
	first := ""
	for range 10 {
		id := cloud.Add("us-east-2b", "m5.large", map[string]string{tagUID: string(uuid.NewUUID()), d.tagCluster(): owned})
		if first == "" {
			first = id[strings.LastIndexByte(id, '/')+1:]
		}
	}
	told := false
	w.set(func(_ string, next func() (*http.Response, error)) (*http.Response, error) {
		if told {
			return next()
		}
		told = true
		defer cloud.End(first)
		return next()
	})
	all, err := d.every(t.Context())
	if err != nil || len(all) != 10 || !slices.ContainsFunc(all, func(i types.Instance) bool { return aws.ToString(i.InstanceId) == first }) {
		t.Errorf("a list of %d, %v", len(all), err)
	}
}

// An instance that could not be looked for is not gone: whoever wants it restarted is told so, and nothing is restarted.
func TestInstanceThatCouldNotBeLookedForIsNotRestarted(t *testing.T) {
	t.Parallel()
	for f := range faults {
		cloud := &ec2.Cloud{}
		region := serve(t, cloud)
		d, w := region.wired(t, region.account())
		once(w, "DescribeInstances", 1, f)
		if err := d.PowerCycle(t.Context(), provider.Ref{UID: "mine"}); err == nil || provider.CodeOf(err) == provider.NotFound || writes(cloud) != 0 {
			t.Errorf("%s: PowerCycle = %v, %d writes", f, err, writes(cloud))
		}
	}
}

// An answer that lists nothing at all is none: neither is an instance gone by it, nor is the account empty (R-S1, R-S2).
func TestAnswerWithoutAList(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	d, w := region.wired(t, region.account())
	r := provider.Ref{UID: "mine", ID: "i-0123456789abcdef0"}
	w.set(func(string, func() (*http.Response, error)) (*http.Response, error) {
		return page(200, "text/xml", `<DescribeInstancesResponse/>`)(nil)
	})
	if all, err := d.List(t.Context()); err == nil {
		t.Errorf("List = %v", all)
	}
	if all, err := d.Find(t.Context(), r); err == nil {
		t.Errorf("Find = %v", all)
	}
	if err := d.Delete(t.Context(), r); err == nil || provider.CodeOf(err) == provider.NotFound {
		t.Errorf("Delete = %v", err)
	}
}

// An instance that is off is started, which a reboot does not; one that runs is rebooted, and one that has ended neither.
func TestHowAnInstanceIsPowerCycled(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{"running": "RebootInstances", "stopping": "RebootInstances", "stopped": "StartInstances", "terminated": ""} {
		region := serve(t, &ec2.Cloud{})
		d, w := region.wired(t, region.account())
		asked := ""
		w.set(func(action string, _ func() (*http.Response, error)) (*http.Response, error) {
			if action != "DescribeInstances" {
				asked += action
				return page(200, "text/xml", "<"+action+"Response/>")(nil)
			}
			return page(200, "text/xml", `<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>i-0123456789abcdef0</instanceId><instanceState><name>`+state+
				`</name></instanceState><tagSet><item><key>`+tagUID+`</key><value>mine</value></item><item><key>`+d.tagCluster()+`</key><value>owned</value></item></tagSet></item></instancesSet></item></reservationSet></DescribeInstancesResponse>`)(nil)
		})
		if err := d.PowerCycle(t.Context(), provider.Ref{UID: "mine"}); asked != want || (want == "") != (provider.CodeOf(err) == provider.NotFound) || want != "" && err != nil {
			t.Errorf("%s: PowerCycle = %v, asked for %q", state, err, asked)
		}
	}
}
