// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// PowerCycle implements [provider.PowerCycler]. EC2 cuts the power of an instance whose system does not end in a few
// minutes (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RebootInstances.html).
func (d *driver) PowerCycle(ctx context.Context, r provider.Ref) error {
	return d.call(ctx, func(ctx context.Context) error {
		found, err := d.named(ctx, r)
		if err != nil {
			return err
		}
		there := live(found)
		if len(there) == 0 {
			return provider.Errorf(provider.NotFound, "power-cycle %s: no instance is there", r.Name)
		}
		ids := []string{aws.ToString(there[0].InstanceId)}
		if s := there[0].State; s != nil && s.Name == types.InstanceStateNameStopped {
			_, err = d.ec2.StartInstances(ctx, &ec2.StartInstancesInput{InstanceIds: ids})
			return err
		}
		_, err = d.ec2.RebootInstances(ctx, &ec2.RebootInstancesInput{InstanceIds: ids})
		return err
	})
}
