// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// request is a spec whose filters have become ids. Nothing in it changes for an attempt: a token counts for one request
// only.
type request struct {
	Spec    providerspec.AWS `json:"spec"`
	Subnet  string           `json:"subnet,omitempty"`
	Zone    string           `json:"zone,omitempty"`
	Groups  []string         `json:"groups,omitempty"`
	Root    string           `json:"root,omitempty"` // the image's root device
	Version string           `json:"userDataVersion,omitempty"`
	Mark    string           `json:"clusterUID,omitempty"` // an attempt that was begun without goes on so: a token counts for the same tags only
	Host    string           `json:"-"`                    // that was allocated for the attempt
}

// resolve looks up everything that s selects by filters, and what only the cloud knows.
func (d *driver) resolve(ctx context.Context, s providerspec.AWS) (request, error) {
	req := request{Spec: s, Zone: s.Placement.AvailabilityZone, Mark: string(d.account.ClusterUID)}
	if err := d.subnet(ctx, &req); err != nil {
		return req, err
	}
	if err := d.groups(ctx, &req); err != nil {
		return req, err
	}
	if err := d.image(ctx, &req); err != nil {
		return req, err
	}
	if err := d.balanced(ctx, s); err != nil {
		return req, err
	}
	_, version, err := d.userData(ctx, s.UserDataSecret.Name)
	req.Version = version
	return req, err
}

// subnet chooses the subnet: of several that the filters select, the first by id in the zone that is asked for.
func (d *driver) subnet(ctx context.Context, req *request) error {
	ref, p := req.Spec.Subnet, at("subnet")
	in := &ec2.DescribeSubnetsInput{Filters: filters(ref.Filters)}
	switch {
	case ref.ID != "":
		in.Filters = []types.Filter{has("subnet-id", ref.ID)}
	case len(ref.Filters) == 0:
		return nil // the cloud's default
	}
	var found []types.Subnet
	for pages := ec2.NewDescribeSubnetsPaginator(d.ec2, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return d.about(p, err)
		}
		found = append(found, page.Subnets...)
	}
	if len(found) == 0 {
		return nothing(p, ref, "subnet")
	}
	if zone := req.Spec.Placement.AvailabilityZone; zone != "" {
		found = slices.DeleteFunc(found, func(s types.Subnet) bool { return aws.ToString(s.AvailabilityZone) != zone })
		if len(found) == 0 {
			return provider.Errorf(provider.Invalid, "%s: %s is not in %s: %q", p, shown(ref), at("placement", "availabilityZone"), zone)
		}
	}
	first := slices.MinFunc(found, func(a, b types.Subnet) int { return cmp.Compare(aws.ToString(a.SubnetId), aws.ToString(b.SubnetId)) })
	req.Subnet, req.Zone = aws.ToString(first.SubnetId), aws.ToString(first.AvailabilityZone)
	return nil
}

// groups collects the security groups. Filters may select several.
func (d *driver) groups(ctx context.Context, req *request) error {
	for i, ref := range req.Spec.SecurityGroups {
		p := at("securityGroups").Index(i)
		if ref.ID != "" {
			req.Groups = append(req.Groups, ref.ID)
			continue
		}
		if len(ref.Filters) == 0 {
			return provider.Errorf(provider.Invalid, "%s: must have an id or filters", p)
		}
		before := len(req.Groups)
		in := &ec2.DescribeSecurityGroupsInput{Filters: filters(ref.Filters)}
		for pages := ec2.NewDescribeSecurityGroupsPaginator(d.ec2, in); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return d.about(p, err)
			}
			for _, g := range page.SecurityGroups {
				req.Groups = append(req.Groups, aws.ToString(g.GroupId))
			}
		}
		if len(req.Groups) == before {
			return nothing(p, ref, "security group")
		}
	}
	slices.Sort(req.Groups)
	req.Groups = slices.Compact(req.Groups)
	return nil
}

// image learns the name of the root disk, which a spec leaves open.
func (d *driver) image(ctx context.Context, req *request) error {
	ref, p := req.Spec.AMI, at("ami", "id")
	out, err := d.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{Filters: []types.Filter{has("image-id", ref.ID)}})
	if err != nil {
		return d.about(p, err)
	}
	if len(out.Images) == 0 {
		return nothing(p, ref, "image")
	}
	i := out.Images[0]
	if i.State != types.ImageStateAvailable && i.State != "" {
		return provider.Errorf(provider.Exhausted, "%s: %q is %s", p, ref.ID, i.State)
	}
	req.Root = aws.ToString(i.RootDeviceName)
	return nil
}

// mostUserData is what EC2 takes, before it is encoded
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-add-user-data.html).
const mostUserData = 16 << 10

// userData reads what the guest gets at its first start, if the spec names a Secret.
func (d *driver) userData(ctx context.Context, secret string) ([]byte, string, error) {
	values, version, err := d.account.Guest(ctx, secret, mostUserData)
	return values[provider.KeyUserData], version, err
}

// about says which field an error is about. That EC2 does not let anybody in with these credentials is about none: it is
// the same whatever was asked, and told once.
func (d *driver) about(p *field.Path, err error) error {
	strangers := refusal(err) != "UnauthorizedOperation"
	err = d.coded(err)
	if strangers && provider.CodeOf(err) == provider.Denied {
		return err
	}
	if e, ok := err.(*provider.Error); ok { //nolint:errorlint // coded returns no other
		return provider.ErrorAfter(e.Code, e.RetryAfter, "%s: %w", p, err)
	}
	return err
}

// nothing is what a selection without result means: the cloud's side may be mended (SPEC S22).
func nothing(p *field.Path, ref providerspec.AWSReference, what string) error {
	return provider.Errorf(provider.NotFound, "%s: no %s was found for %s; create it, or select another", p, what, shown(ref))
}

// shown is a selection in words.
func shown(ref providerspec.AWSReference) string {
	if ref.ID != "" {
		return fmt.Sprintf("%q", ref.ID)
	}
	var all []string
	for _, f := range ref.Filters {
		all = append(all, fmt.Sprintf("%s=%s", f.Name, strings.Join(f.Values, ",")))
	}
	return fmt.Sprintf("filters %q", strings.Join(all, " "))
}

func filters(all []providerspec.AWSFilter) []types.Filter {
	var out []types.Filter
	for _, f := range all {
		out = append(out, has(f.Name, f.Values...))
	}
	return out
}

// has filters by one of values.
func has(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}
