// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	classictypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	networktypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// balanced wants every load balancer of a spec to be there: an instance that cannot join is one for nothing. Who may not
// ask for the classic ones may still join them.
func (d *driver) balanced(ctx context.Context, s providerspec.AWS) error {
	for i, b := range s.LoadBalancers {
		var err error
		if b.Type == "network" {
			_, err = d.targets(ctx, b.Name)
		} else {
			err = d.classicBalancer(ctx, b.Name)
		}
		if err != nil {
			return d.about(at("loadBalancers").Index(i).Child("name"), err)
		}
	}
	return nil
}

func (d *driver) classicBalancer(ctx context.Context, name string) error {
	found, err := d.classic.DescribeLoadBalancers(ctx, &elb.DescribeLoadBalancersInput{LoadBalancerNames: []string{name}})
	switch code := refusal(err); {
	case code == "LoadBalancerNotFound", err == nil && len(found.LoadBalancerDescriptions) == 0:
		return provider.Errorf(provider.NotFound, "there is no classic load balancer %q; create it, or name another", name)
	case err != nil && codeOf(code, 0) == provider.Denied:
		return nil
	case err != nil:
		return fmt.Errorf("load balancer %q: %w", name, err)
	}
	return nil
}

// join registers an instance with its load balancers. Repeating it changes nothing.
func (d *driver) join(ctx context.Context, i types.Instance) error {
	for b := range strings.FieldsSeq(tagOf(i, tagBalancers)) {
		kind, name, _ := strings.Cut(b, ":")
		if kind != "network" {
			_, err := d.classic.RegisterInstancesWithLoadBalancer(ctx, &elb.RegisterInstancesWithLoadBalancerInput{
				LoadBalancerName: &name, Instances: []classictypes.Instance{{InstanceId: i.InstanceId}},
			})
			if err != nil {
				return d.about(at("loadBalancers"), fmt.Errorf("join %q: %w", name, err))
			}
			continue
		}
		groups, err := d.targets(ctx, name)
		if err != nil {
			return d.about(at("loadBalancers"), err)
		}
		for _, g := range groups {
			_, err := d.network.RegisterTargets(ctx, &elbv2.RegisterTargetsInput{TargetGroupArn: g.TargetGroupArn, Targets: []networktypes.TargetDescription{target(g, i)}})
			if err != nil {
				return d.about(at("loadBalancers"), fmt.Errorf("join %q: %w", name, err))
			}
		}
	}
	return nil
}

// leaves are the network load balancers that the tags of an instance name: those that it was made for, and those of a
// Machine that was taken over.
func leaves(i types.Instance) (names []string) {
	for b := range strings.FieldsSeq(tagOf(i, tagBalancers)) {
		if name, network := strings.CutPrefix(b, "network:"); network {
			names = append(names, name)
		}
	}
	for _, t := range i.Tags {
		if name, network := strings.CutPrefix(aws.ToString(t.Key), tagBalancer); network {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// balancerName is what a network load balancer may be called. Of any other name EC2 does not even say that there is none.
var balancerName = regexp.MustCompile(`^[a-zA-Z0-9-]{1,32}$`)

// left are the tags that name the network load balancers of a spec one by one, for an instance that another system made
// and let join them. One that was made for a spec shows them too.
func left(s providerspec.AWS) map[string]string {
	all := map[string]string{}
	for _, b := range s.LoadBalancers {
		if b.Type == "network" && balancerName.MatchString(b.Name) {
			all[tagBalancer+b.Name] = b.Type
		}
	}
	return all
}

// leave takes an instance out of the target groups of its network load balancers, so that they send nothing to who has
// its address next (SPEC E10). Classic ones notice by themselves. One that is gone holds nobody.
func (d *driver) leave(ctx context.Context, i types.Instance) error {
	for _, name := range leaves(i) {
		groups, err := d.targets(ctx, name)
		if provider.CodeOf(err) == provider.NotFound {
			continue
		}
		if err != nil {
			return err
		}
		for _, g := range groups {
			_, err := d.network.DeregisterTargets(ctx, &elbv2.DeregisterTargetsInput{TargetGroupArn: g.TargetGroupArn, Targets: []networktypes.TargetDescription{target(g, i)}})
			if code := refusal(err); err != nil && code != "TargetGroupNotFound" && code != "InvalidTarget" {
				return fmt.Errorf("leave %q: %w", name, err)
			}
		}
	}
	return nil
}

// targets returns the target groups of a network load balancer.
func (d *driver) targets(ctx context.Context, name string) ([]networktypes.TargetGroup, error) {
	found, err := d.network.DescribeLoadBalancers(ctx, &elbv2.DescribeLoadBalancersInput{Names: []string{name}})
	if err == nil && found.LoadBalancers == nil {
		return nil, unlisted("load balancer", name)
	}
	if refusal(err) == "LoadBalancerNotFound" || err == nil && len(found.LoadBalancers) == 0 {
		return nil, provider.Errorf(provider.NotFound, "there is no network load balancer %q; create it, or name another", name)
	}
	if err != nil {
		return nil, fmt.Errorf("load balancer %q: %w", name, err)
	}
	var all []networktypes.TargetGroup
	in := &elbv2.DescribeTargetGroupsInput{LoadBalancerArn: found.LoadBalancers[0].LoadBalancerArn}
	for pages := elbv2.NewDescribeTargetGroupsPaginator(d.network, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("target groups of %q: %w", name, err)
		}
		if page.TargetGroups == nil {
			return nil, unlisted("target groups of", name)
		}
		all = append(all, page.TargetGroups...)
	}
	return all, nil
}

// unlisted is an answer without the list that was asked for. It is none: a proxy sends such, and nobody knows of what.
func unlisted(what, name string) error {
	return provider.Errorf(provider.Unknown, "%s %q: the answer lists none", what, name)
}

// target names an instance as its group wants it.
func target(g networktypes.TargetGroup, i types.Instance) networktypes.TargetDescription {
	if g.TargetType == networktypes.TargetTypeEnumIp {
		return networktypes.TargetDescription{Id: aws.String(aws.ToString(i.PrivateIpAddress))}
	}
	return networktypes.TargetDescription{Id: i.InstanceId}
}
