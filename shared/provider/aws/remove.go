// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// remove terminates every instance that r names, then gives back the host that was allocated for it (SPEC E10).
func (d *driver) remove(ctx context.Context, r provider.Ref) error {
	p, _ := parseProgress(r) // where nobody can read it, the tags lead to what there is
	none := d.terminate(ctx, r, p)
	if provider.CodeOf(none) != provider.NotFound {
		return none
	}
	there, err := d.release(ctx, r, p)
	if there || err != nil {
		return err
	}
	return none
}

// terminate ends every instance that r names. Volumes and interfaces go with it.
func (d *driver) terminate(ctx context.Context, r provider.Ref, p progress) error {
	found, err := d.named(ctx, r)
	if err != nil {
		return err
	}
	if p.Instance != "" && !slices.ContainsFunc(found, func(i types.Instance) bool { return aws.ToString(i.InstanceId) == p.Instance }) {
		if there, err := d.halfMade(ctx, p); there || err != nil {
			return err
		}
	}
	there := live(found)
	if len(found) == 0 && recorded(r) {
		return d.unseen(ctx, r)
	}
	if len(there) == 0 {
		return provider.Errorf(provider.NotFound, "delete %s: no instance is there", r.Name)
	}
	ids, err := d.leaveAll(ctx, there)
	if err != nil || len(ids) == 0 {
		return err
	}
	_, err = d.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
	if refusal(err) == "InvalidInstanceID.NotFound" {
		return nil // gone in between: the next call says so
	}
	return err
}

// leaveAll takes instances out of their load balancers, and returns the ids of those that are not on their way out yet.
func (d *driver) leaveAll(ctx context.Context, there []types.Instance) (ids []string, err error) {
	for _, i := range there {
		if i.State != nil && i.State.Name == types.InstanceStateNameShuttingDown {
			continue
		}
		if err := d.leave(ctx, i); err != nil {
			return nil, err
		}
		ids = append(ids, aws.ToString(i.InstanceId))
	}
	return ids, nil
}

// halfMade terminates an instance that only an attempt's progress names and no list shows, and reports whether it may be
// there. A terminated one is listed for an hour: this one is too new, or gone for long.
func (d *driver) halfMade(ctx context.Context, p progress) (there bool, err error) {
	_, err = d.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{p.Instance}})
	if refusal(err) == "InvalidInstanceID.NotFound" {
		return p.fresh(), nil
	}
	return true, err
}

// recorded reports whether a Machine records r's one instance, as it does of what the driver made for it.
func recorded(r provider.Ref) bool {
	ids := idsOf(r)
	return r.UID != "" && r.ProviderID != "" && len(ids) == 1 && ids[0] == r.ID
}

// unseen is a recorded instance that no list shows, neither as terminated, though EC2 shows that for an hour: it may be
// so new that reads lag behind (SPEC E9). It is asked for by its id without filters, which names another's as well.
func (d *driver) unseen(ctx context.Context, r provider.Ref) error {
	out, err := d.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{r.ID}})
	if refusal(err) == "InvalidInstanceID.NotFound" || err == nil && !slices.ContainsFunc(out.Reservations, func(v types.Reservation) bool {
		return slices.ContainsFunc(v.Instances, func(i types.Instance) bool { return d.means(r, i) && len(live([]types.Instance{i})) > 0 })
	}) {
		return provider.Errorf(provider.NotFound, "delete %s: no instance is there", r.Name)
	}
	if err != nil {
		return err
	}
	_, err = d.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{r.ID}})
	return err
}
