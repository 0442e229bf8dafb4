// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// dynamic reports whether a host is allocated for the Machine (SPEC E5). It is paid for until it is released.
func dynamic(s providerspec.AWS) bool {
	h := s.Placement.Host
	return h != nil && h.DedicatedHost != nil && h.DedicatedHost.AllocationStrategy == "Dynamic"
}

// allocate returns the host of a Machine: one that an earlier attempt left, if it fits still, or that of this attempt, which its
// token makes once (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_AllocateHosts.html).
func (d *driver) allocate(ctx context.Context, r provider.Ref, req request) (string, error) {
	left, err := d.hosts(ctx, has("tag:"+tagUID, string(r.UID)))
	if err != nil {
		return "", err
	}
	left = slices.DeleteFunc(left, func(h types.Host) bool { return len(h.Instances) > 0 })
	if k := slices.IndexFunc(left, func(h types.Host) bool { return fits(h, req) }); k >= 0 {
		return aws.ToString(left[k].HostId), nil
	}
	if len(left) > 0 { // each attempt would leave one more
		out, err := d.ec2.ReleaseHosts(ctx, &ec2.ReleaseHostsInput{HostIds: idsOfHosts(left)})
		if err != nil {
			return "", d.about(at("placement", "host", "dedicatedHost"), err)
		}
		if err := d.kept(ctx, provider.Ref{}, out.Unsuccessful, left); err != nil { // also one that the Machine's own instance of before occupies
			return "", err
		}
	}
	all := map[string]string{}
	if a := req.Spec.Placement.Host.DedicatedHost.DynamicHostAllocation; a != nil {
		all = wanted(providerspec.AWS{Tags: a.Tags})
	}
	all = d.owning(all, r, req)
	out, err := d.ec2.AllocateHosts(ctx, &ec2.AllocateHostsInput{
		AvailabilityZone: optional(req.Zone), InstanceType: &req.Spec.InstanceType, Quantity: aws.Int32(1), AutoPlacement: types.AutoPlacementOff,
		ClientToken:       aws.String(clientToken(r, req.Zone)),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeDedicatedHost, Tags: pairs(all)}},
	})
	if err != nil {
		return "", d.about(at("placement", "host", "dedicatedHost"), err)
	}
	if len(out.HostIds) != 1 {
		return "", provider.Errorf(provider.Unknown, "EC2 answered with %d hosts, one was asked for", len(out.HostIds))
	}
	return out.HostIds[0], nil
}

// fits reports whether h takes the instance that req asks for, as far as EC2 tells.
func fits(h types.Host, req request) bool {
	p := h.HostProperties
	sound := h.State == types.AllocationStateAvailable || h.State == types.AllocationStatePending
	return sound && aws.ToString(h.AvailabilityZone) == req.Zone && (p == nil || p.InstanceType == nil || *p.InstanceType == req.Spec.InstanceType)
}

func idsOfHosts(all []types.Host) (ids []string) {
	for _, h := range all {
		ids = append(ids, aws.ToString(h.HostId))
	}
	return ids
}

// allocated returns the cluster's hosts, as hosts does, where none may ever have been allocated: whose credentials do not
// allow to ask has none. Those that OpenShift made before it knew allocation do not. Nor has a cloud any that knows no hosts.
func (d *driver) allocated(ctx context.Context, filters ...types.Filter) ([]types.Host, error) {
	all, err := d.hosts(ctx, filters...)
	if errors.Is(err, errMayNotAsk) {
		return nil, nil
	}
	return all, err
}

// errMayNotAsk is what credentials without the right to DescribeHosts get, or whoever asks a cloud that does not know it, as long as
// nothing was told.
var errMayNotAsk = errors.New("ask for hosts")

// errNoHosts is an answer that does not list any. It is none: a proxy sends such, and nobody knows of what.
var errNoHosts = errors.New("DescribeHosts was answered without a hostSet")

// hosts returns the cluster's allocated hosts that filters select and that are not released.
func (d *driver) hosts(ctx context.Context, filters ...types.Filter) ([]types.Host, error) {
	var all []types.Host
	told := false
	in := &ec2.DescribeHostsInput{Filter: append(filters, d.ours(), has("tag-key", tagUID)), MaxResults: aws.Int32(mostHosts)}
	for pages := ec2.NewDescribeHostsPaginator(d.ec2, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if code := refusal(err); (code == "UnauthorizedOperation" || code == "InvalidAction") && !told {
			return nil, fmt.Errorf("%w: %w", errMayNotAsk, err)
		}
		if err != nil {
			return nil, err
		}
		told = true
		if page.Hosts == nil {
			return nil, errNoHosts
		}
		for _, h := range page.Hosts {
			if !released(h) {
				all = append(all, h)
			}
		}
	}
	return all, nil
}

// mostHosts is the most that EC2 tells in one answer.
const mostHosts = 500

// freeHosts returns hosts on which nothing runs, as leftovers of their Machines' instances.
func (d *driver) freeHosts(ctx context.Context) ([]provider.Instance, error) {
	found, err := d.allocated(ctx)
	if err != nil {
		return nil, err
	}
	var all []provider.Instance
	for _, h := range found {
		if len(h.Instances) > 0 {
			continue
		}
		of := types.Instance{Tags: h.Tags}
		all = append(all, provider.Instance{
			ID: aws.ToString(h.HostId), UID: apitypes.UID(tagOf(of, tagUID)), ClusterUID: apitypes.UID(tagOf(of, tagMark)), Name: tagOf(of, tagName), State: provider.StateRunning,
			CloudState: string(h.State), Zone: aws.ToString(h.AvailabilityZone), Region: d.account.Region, Created: aws.ToTime(h.AllocationTime), Child: true,
		})
	}
	return all, nil
}

// release gives back the hosts that r names, by the Machine's tag or as a leftover by id, and the one that p names, and
// reports whether one is still there. EC2 keeps a host until its instance is terminated. A host does not tell which attempt it was
// allocated for, and the next one takes it over if it fits: of one attempt's only that goes which its progress names.
func (d *driver) release(ctx context.Context, r provider.Ref, p progress) (there bool, err error) {
	var found []types.Host
	switch {
	case r.Attempt && p.Host == "":
		return false, nil
	case r.UID != "" && p.Host == "":
		found, err = d.allocated(ctx, has("tag:"+tagUID, string(r.UID)))
	case r.UID != "":
		found, err = d.hosts(ctx, has("tag:"+tagUID, string(r.UID)))
	case strings.HasPrefix(r.ID, "h-"):
		found, err = d.host(ctx, r.ID)
		found = slices.DeleteFunc(found, func(h types.Host) bool { return !d.allocatedBy(h) || released(h) })
	default:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if r.Attempt {
		found = slices.DeleteFunc(found, func(h types.Host) bool { return aws.ToString(h.HostId) != p.Host })
	}
	ids, err := d.held(ctx, r, found, p)
	if err != nil {
		return true, err
	}
	if len(ids) == 0 {
		return false, nil
	}
	out, err := d.ec2.ReleaseHosts(ctx, &ec2.ReleaseHostsInput{HostIds: ids})
	if err != nil {
		return true, err
	}
	return true, d.kept(ctx, r, out.Unsuccessful, found)
}

// held returns the ids of the hosts that were found, and of the one that p names if it is too new to be found.
func (d *driver) held(ctx context.Context, r provider.Ref, found []types.Host, p progress) ([]string, error) {
	ids := idsOfHosts(found)
	if p.Host == "" || !fresh(r) || slices.Contains(ids, p.Host) {
		return ids, nil
	}
	all, err := d.host(ctx, p.Host)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(all, released) { // one that EC2 does not know is too new
		ids = append(ids, p.Host)
	}
	return ids, nil
}

// kept says which hosts EC2 did not release, and why: they are paid for. It says nothing of one that carries nobody but the
// Machine's own instance, which EC2 shows there for a while after its end.
func (d *driver) kept(ctx context.Context, r provider.Ref, refused []types.UnsuccessfulItem, hosts []types.Host) error {
	for _, u := range refused {
		id, code, message := aws.ToString(u.ResourceId), "", ""
		if u.Error != nil {
			code, message = aws.ToString(u.Error.Code), aws.ToString(u.Error.Message)
		}
		if strings.HasSuffix(code, "NotFound") {
			continue
		}
		on := carried(hosts, id)
		if strings.HasSuffix(code, "Occupied") {
			ended, err := d.named(ctx, r)
			if err != nil {
				return err
			}
			own := func(id string) bool {
				return slices.ContainsFunc(ended, func(i types.Instance) bool { return aws.ToString(i.InstanceId) == id })
			}
			if on = slices.DeleteFunc(on, own); len(on) == 0 && len(ended) > 0 {
				continue
			}
		}
		carries := ""
		if len(on) > 0 {
			carries = ", it carries " + strings.Join(on, ", ")
		}
		return provider.Errorf(provider.Exhausted, "host %s is not released and paid for on: %s%s", id, strings.TrimSpace(code+" "+message), carries)
	}
	return nil
}

// carried returns the ids of the instances on one of some hosts.
func carried(hosts []types.Host, id string) (on []string) {
	for _, h := range hosts {
		for _, i := range h.Instances {
			if aws.ToString(h.HostId) == id {
				on = append(on, aws.ToString(i.InstanceId))
			}
		}
	}
	return on
}

// host asks for a host by its id, which is no filter that EC2 knows, and tells it in whatever state and whosever it is. None is one that
// EC2 does not know yet, or no longer: it shows a released one for a while.
func (d *driver) host(ctx context.Context, id string) ([]types.Host, error) {
	out, err := d.ec2.DescribeHosts(ctx, &ec2.DescribeHostsInput{HostIds: []string{id}})
	if refusal(err) == "InvalidHostID.NotFound" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if out.Hosts == nil {
		return nil, errNoHosts
	}
	return out.Hosts, nil
}

// released reports whether h is not paid for any more.
func released(h types.Host) bool {
	return h.State == types.AllocationStateReleased || h.State == types.AllocationStateReleasedPermanentFailure
}

// allocatedBy reports whether h was allocated for a Machine of the cluster.
func (d *driver) allocatedBy(h types.Host) bool {
	of := types.Instance{Tags: h.Tags}
	return tagOf(of, d.tagCluster()) == owned && tagOf(of, tagUID) != ""
}
