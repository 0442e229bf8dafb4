// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// progress names the host that was allocated, and the instance that has yet to join its load balancers. No list may show
// them yet (SPEC E9).
type progress struct {
	Instance string `json:"instance,omitempty"`
	Host     string `json:"host,omitempty"`
}

// create makes the instance, and lets it join its load balancers once it runs.
func (d *driver) create(ctx context.Context, r provider.Ref, req request) (provider.Instance, error) {
	p, err := provider.ProgressOf[progress](r)
	if err != nil {
		return provider.Instance{}, err
	}
	if dynamic(req.Spec) && p.Host == "" && p.Instance == "" {
		host, err := d.allocate(ctx, r, req)
		if err != nil {
			return provider.Instance{}, err
		}
		return provider.Incomplete(r, progress{Host: host}) // recorded before it is used
	}
	req.Host = p.Host
	made, err := d.made(ctx, r, req, p.Instance)
	if err != nil {
		return provider.Instance{}, err
	}
	if untagged(*made) { // what is new, or an answer that a token repeats, may lack them
		made.Tags = d.tags(r, req)
	}
	if tagOf(*made, tagBalancers) == "" || tagOf(*made, tagJoined) != "" {
		return d.launched(ctx, *made), nil
	}
	if p.Instance != "" && made.State != nil && made.State.Name == types.InstanceStateNameRunning {
		return d.joined(ctx, *made)
	}
	return provider.Incomplete(r, progress{Instance: aws.ToString(made.InstanceId), Host: p.Host})
}

// made returns the instance of an attempt: the recorded one as it is now, or what the token stands for.
func (d *driver) made(ctx context.Context, r provider.Ref, req request, id string) (*types.Instance, error) {
	if id != "" {
		found, err := d.describe(ctx, has("instance-id", id))
		if err != nil {
			return nil, err
		}
		found = meant(found, func(i types.Instance) bool { return aws.ToString(i.InstanceId) == id })
		if all := live(found); len(all) > 0 {
			return &all[0], nil
		}
		if len(found) > 0 {
			return nil, provider.Errorf(provider.Exhausted, "instance %s ended before it was ready: %s", id, why(found[0]))
		} // not shown yet: the token tells
	}
	data, _, err := d.userData(ctx, req.Spec.UserDataSecret.Name)
	if err != nil {
		return nil, err
	}
	out, err := d.ec2.RunInstances(ctx, d.run(r, req, data))
	switch {
	case refusal(err) == otherParameters:
		return d.other(ctx, r, req)
	case err != nil:
		return nil, err
	case len(out.Instances) != 1:
		return nil, provider.Errorf(provider.Unknown, "EC2 answered with %d instances, one was asked for", len(out.Instances))
	}
	return &out.Instances[0], nil
}

// other is an attempt that was made with other parameters: its user data was changed since. What it made is the
// Machine's all the same. This call made nothing; what an earlier one made may have yet to show, or be forgotten by now.
func (d *driver) other(ctx context.Context, r provider.Ref, req request) (*types.Instance, error) {
	token := clientToken(r, req.Zone)
	found, err := d.describe(ctx, d.ours(), has("client-token", token))
	if err != nil { // no refusal of the attempt, which made something
		return nil, provider.Errorf(provider.Unknown, "look for what this attempt made: %v", d.coded(err))
	}
	found = meant(found, func(i types.Instance) bool {
		told := aws.ToString(i.ClientToken)
		return told == token || told == "" && tagOf(i, tagUID) == string(r.UID)
	})
	if all := live(found); len(all) > 0 {
		return &all[0], nil
	}
	if len(found) > 0 {
		return nil, provider.Errorf(provider.Exhausted, "the instance %s of this attempt ended: %s", aws.ToString(found[0].InstanceId), why(found[0]))
	}
	return nil, provider.Errorf(provider.Exhausted, "an instance was asked for with this attempt's token and other parameters, such as user data: it has yet to show, or has long ended")
}

// meant looks at an answer once more: a cloud of this protocol may leave out a filter that it does not know, without a word.
func meant(found []types.Instance, is func(types.Instance) bool) []types.Instance {
	return slices.DeleteFunc(found, func(i types.Instance) bool { return !is(i) })
}

// joined lets a running instance join its load balancers, and notes that it did. Whatever is refused then is no refusal of
// the attempt, which would have its instance removed and another one made, time and again.
func (d *driver) joined(ctx context.Context, i types.Instance) (provider.Instance, error) {
	waits := func(err error) (provider.Instance, error) {
		if e, ok := errors.AsType[*provider.Error](err); ok && e.Code != provider.Throttled {
			err = provider.ErrorAfter(provider.Unknown, e.RetryAfter, "instance %s runs and waits: %w", aws.ToString(i.InstanceId), err)
		}
		return provider.Instance{}, err
	}
	if err := d.join(ctx, i); err != nil {
		return waits(err)
	}
	note := types.Tag{Key: aws.String(tagJoined), Value: aws.String("true")}
	if _, err := d.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{aws.ToString(i.InstanceId)}, Tags: []types.Tag{note}}); err != nil {
		return waits(fmt.Errorf("note that it has joined its load balancers, for which ec2:CreateTags is needed: %w", d.coded(err)))
	}
	i.Tags = append(i.Tags, note)
	return d.launched(ctx, i), nil
}

// launched is the view of an instance that is there: a read that fails would refuse the attempt that made it, so the
// names that the network gives are left to the next list.
func (d *driver) launched(ctx context.Context, i types.Instance) provider.Instance {
	suffixes, err := d.suffixes(ctx, aws.ToString(i.VpcId))
	if err != nil {
		suffixes = nil
	}
	return d.view(i, suffixes)
}
