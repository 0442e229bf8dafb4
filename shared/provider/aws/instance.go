// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// alive are the states of an instance that is still there. A terminated one is shown for an hour more (SPEC E9).
var alive = []string{"pending", "running", "stopping", "stopped", "shutting-down"}

// pageSize is the most that EC2 tells in one answer.
const pageSize = 1000

// describe returns every instance that all filters select, in whatever state.
func (d *driver) describe(ctx context.Context, filters ...types.Filter) ([]types.Instance, error) {
	var all []types.Instance
	in := &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(pageSize)}
	for pages := ec2.NewDescribeInstancesPaginator(d.ec2, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		found, err := d.told(page)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// told returns the instances of an answer. One that does not list any is no answer: a proxy sends such, and nobody knows of what.
func (d *driver) told(page *ec2.DescribeInstancesOutput) (all []types.Instance, err error) {
	if page.Reservations == nil {
		return nil, provider.Errorf(provider.Unknown, "DescribeInstances was answered without a reservationSet")
	}
	d.whose.learn(page.Reservations)
	for _, r := range page.Reservations {
		all = append(all, r.Instances...)
	}
	return all, nil
}

// page returns the first of them, and whether there are more.
func (d *driver) page(ctx context.Context, filters ...types.Filter) (all []types.Instance, more bool, err error) {
	out, err := d.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(pageSize)})
	if err != nil {
		return nil, false, err
	}
	all, err = d.told(out)
	return all, aws.ToString(out.NextToken) != "", err
}

// live leaves out what is gone.
func live(all []types.Instance) []types.Instance {
	return slices.DeleteFunc(slices.Clone(all), func(i types.Instance) bool {
		return i.State != nil && i.State.Name == types.InstanceStateNameTerminated
	})
}

var idPattern = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// scheme is what a provider id begins with; zone and id follow (SPEC E11).
const scheme = "aws:///"

// idsOf returns the instance ids that r records.
func idsOf(r provider.Ref) []string {
	var ids []string
	for _, id := range []string{r.ID, r.ProviderID[strings.LastIndexByte(r.ProviderID, '/')+1:]} {
		if idPattern.MatchString(id) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// named returns the instances that r names, terminated ones too: by the Machine's tag, or by an id unless the tag is
// another Machine's.
func (d *driver) named(ctx context.Context, r provider.Ref) ([]types.Instance, error) {
	var all []types.Instance
	if r.UID != "" {
		tagged, err := d.describe(ctx, d.ours(), has("tag:"+tagUID, string(r.UID)))
		if err != nil {
			return nil, err
		}
		all = tagged
	}
	unknown := slices.DeleteFunc(idsOf(r), func(id string) bool {
		return slices.ContainsFunc(all, func(i types.Instance) bool { return aws.ToString(i.InstanceId) == id })
	})
	if len(unknown) > 0 {
		recorded, err := d.describe(ctx, has("instance-id", unknown...))
		if err != nil {
			return nil, err
		}
		all = append(all, recorded...)
	}
	return slices.DeleteFunc(all, func(i types.Instance) bool { return !d.means(r, i) }), nil
}

// copied reports whether i has the tags of a Machine's instance, and was made by somebody else: backups that are restored, launch
// templates made of an instance and whoever wants one more like it copy tags, and have client tokens of their own. Of one without a client
// token nobody knows: clouds of this protocol may tell none. Nor of a spot instance: the request that EC2 makes for it may have another.
func copied(i types.Instance) bool {
	token := aws.ToString(i.ClientToken)
	return tagOf(i, tagUID) != "" && i.InstanceLifecycle != types.InstanceLifecycleTypeSpot && token != "" && !strings.Contains(token, zoneMark)
}

// means reports whether r names i. What carries no Machine's tag, or a copy of it, was made by another system: it is the Machine's that
// records its provider id. What is recorded and carries the Machine's own tag stays its own where somebody took the cluster's off.
func (d *driver) means(r provider.Ref, i types.Instance) bool {
	uid, id := tagOf(i, tagUID), aws.ToString(i.InstanceId)
	recorded := machine.SameID(r.ProviderID, providerID(i))
	switch {
	case r.Attempt && attemptOf(aws.ToString(i.ClientToken)) != r.Token:
		return false
	case uid == "" || copied(i):
		return recorded
	case tagOf(i, d.tagCluster()) != owned:
		return recorded && uid == string(r.UID) && !d.anothers(i)
	case r.UID == "":
		return recorded || r.ID == id
	}
	return uid == string(r.UID)
}

// anothers reports whether a tag says that i is another cluster's.
func (d *driver) anothers(i types.Instance) bool {
	return slices.ContainsFunc(i.Tags, func(t types.Tag) bool {
		return strings.HasPrefix(aws.ToString(t.Key), tagCluster) && aws.ToString(t.Key) != d.tagCluster()
	})
}

func tagOf(i types.Instance, key string) string {
	for _, t := range i.Tags {
		if aws.ToString(t.Key) == key {
			return aws.ToString(t.Value)
		}
	}
	return ""
}

func zoneOf(i types.Instance) string {
	if i.Placement == nil {
		return ""
	}
	return aws.ToString(i.Placement.AvailabilityZone)
}

func providerID(i types.Instance) string {
	return scheme + zoneOf(i) + "/" + aws.ToString(i.InstanceId)
}

// why says in the cloud's words how an instance ended.
func why(i types.Instance) string {
	if i.StateReason != nil && aws.ToString(i.StateReason.Message) != "" {
		return aws.ToString(i.StateReason.Message)
	}
	if reason := aws.ToString(i.StateTransitionReason); reason != "" {
		return reason
	}
	return "terminated"
}

// status is the providerStatus of a Machine, as OpenShift writes it (SPEC E5).
type status struct {
	InstanceID    string         `json:"instanceId"`
	InstanceState string         `json:"instanceState"`
	DedicatedHost *dedicatedHost `json:"dedicatedHost,omitempty"`
}

type dedicatedHost struct {
	ID string `json:"id"`
}

func (d *driver) instances(ctx context.Context, found []types.Instance) ([]provider.Instance, error) {
	var all []provider.Instance
	for _, i := range found {
		in, err := d.instance(ctx, i)
		if err != nil {
			return nil, err
		}
		all = append(all, in)
	}
	return all, nil
}

// instance returns the machine layer's view of i.
func (d *driver) instance(ctx context.Context, i types.Instance) (provider.Instance, error) {
	suffixes, err := d.suffixes(ctx, aws.ToString(i.VpcId))
	if err != nil {
		return provider.Instance{}, err
	}
	return d.view(i, suffixes), nil
}

// view is what instance returns, with names below the domains that the network gives.
func (d *driver) view(i types.Instance, suffixes []string) provider.Instance {
	cloudState := ""
	if i.State != nil {
		cloudState = string(i.State.Name)
	}
	in := provider.Instance{
		ID: aws.ToString(i.InstanceId), ProviderID: providerID(i), UID: apitypes.UID(tagOf(i, tagUID)), ClusterUID: apitypes.UID(tagOf(i, tagMark)),
		Token: attemptOf(aws.ToString(i.ClientToken)), Name: tagOf(i, tagName), State: state(i), CloudState: cloudState,
		Type: string(i.InstanceType), Region: d.account.Region, Zone: zoneOf(i), Addresses: addresses(i, suffixes),
		Created: aws.ToTime(i.LaunchTime), Spot: i.InstanceLifecycle == types.InstanceLifecycleTypeSpot, Tags: map[string]string{},
	}
	if copied(i) { // nobody's: at most it is told of
		in.Message, in.UID, in.Token = fmt.Sprintf("it carries a copy of the tags of machine UID %s", in.UID), "", ""
	}
	for _, t := range i.Tags {
		if k := aws.ToString(t.Key); !reserved(k) {
			in.Tags[k] = aws.ToString(t.Value)
		}
	}
	for _, name := range leaves(i) {
		in.Tags[tagBalancer+name] = "network"
	}
	told := status{InstanceID: in.ID, InstanceState: cloudState}
	if i.Placement != nil && aws.ToString(i.Placement.HostId) != "" {
		told.DedicatedHost = &dedicatedHost{*i.Placement.HostId}
	}
	in.Status, _ = json.Marshal(told) // strings only
	return in
}

// state tells an instance that has yet to join its load balancers from a complete one.
func state(i types.Instance) provider.State {
	if i.State == nil {
		return provider.StatePending
	}
	waiting := tagOf(i, tagBalancers) != "" && tagOf(i, tagJoined) == "" && !copied(i)
	switch i.State.Name {
	case types.InstanceStateNameShuttingDown, types.InstanceStateNameTerminated:
		return provider.StateDeleting
	case types.InstanceStateNameStopping, types.InstanceStateNameStopped:
		return provider.StateStopped
	case types.InstanceStateNamePending, types.InstanceStateNameRunning:
	}
	switch {
	case waiting:
		return provider.StateIncomplete
	case i.State.Name == types.InstanceStateNameRunning:
		return provider.StateRunning
	}
	return provider.StatePending
}

// addresses are those of the interfaces in use, then the names (SPEC E11).
func addresses(i types.Instance, suffixes []string) []corev1.NodeAddress {
	var all []corev1.NodeAddress
	add := func(kind corev1.NodeAddressType, address string) {
		a := corev1.NodeAddress{Type: kind, Address: address}
		if address != "" && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	for _, n := range i.NetworkInterfaces {
		if n.Status != types.NetworkInterfaceStatusInUse {
			continue
		}
		for _, six := range n.Ipv6Addresses {
			add(corev1.NodeInternalIP, aws.ToString(six.Ipv6Address))
		}
		for _, four := range n.PrivateIpAddresses {
			add(corev1.NodeInternalIP, aws.ToString(four.PrivateIpAddress))
			if four.Association != nil {
				add(corev1.NodeExternalIP, aws.ToString(four.Association.PublicIp))
			}
		}
	}
	name := aws.ToString(i.PrivateDnsName)
	add(corev1.NodeInternalDNS, name)
	add(corev1.NodeHostName, name)
	host, _, _ := strings.Cut(name, ".")
	for _, suffix := range suffixes {
		if host != "" {
			add(corev1.NodeInternalDNS, host+"."+suffix)
		}
	}
	add(corev1.NodeExternalDNS, aws.ToString(i.PublicDnsName))
	return all
}
