// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// remove terminates every instance that r names, then gives back the host that was allocated for it (SPEC E10).
func (d *driver) remove(ctx context.Context, r provider.Ref) error {
	p, _ := provider.ProgressOf[progress](r) // where nobody can read it, the tags lead to what there is
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
	unseen := false
	for _, id := range recorded(r, p) {
		if slices.ContainsFunc(found, func(i types.Instance) bool { return aws.ToString(i.InstanceId) == id }) {
			continue
		}
		known, err := d.known(ctx, id)
		if err != nil {
			return err
		}
		unseen = unseen || len(known) == 0 || slices.ContainsFunc(live(known), untagged)
		found = append(found, slices.DeleteFunc(known, func(i types.Instance) bool { return !d.means(r, i) })...)
	}
	there := live(found)
	if len(there) == 0 && unseen && fresh(r) {
		return nil // too new for every read: a later call finds it
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

// recorded returns the ids of instances that the driver made for a Machine: the one that its record names, and the one
// that its attempt's progress does. No list may show them yet (SPEC E9).
func recorded(r provider.Ref, p progress) (ids []string) {
	if all := idsOf(r); r.UID != "" && r.ProviderID != "" && len(all) == 1 && all[0] == r.ID {
		ids = all
	}
	if p.Instance != "" && !slices.Contains(ids, p.Instance) {
		ids = append(ids, p.Instance)
	}
	return ids
}

// known asks for an instance by its id without filters, which names another's as well. None is one that EC2 does not know
// yet, or no longer: it shows a terminated one for an hour.
func (d *driver) known(ctx context.Context, id string) ([]types.Instance, error) {
	out, err := d.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if refusal(err) == "InvalidInstanceID.NotFound" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return d.told(out)
}

// untagged reports whether nothing says yet whose an instance is.
func untagged(i types.Instance) bool { return tagOf(i, tagUID) == "" }

// fresh reports whether what r records may be so new that EC2 does not know its id everywhere.
func fresh(r provider.Ref) bool { return r.Fresh(time.Now(), horizon) }
