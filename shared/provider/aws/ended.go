// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var _ provider.Ended = (*driver)(nil)

// Ended implements [provider.Ended]: EC2 shows a terminated instance for about an hour, with the reason. A launch that fails
// after it was accepted, for want of volumes, of a right to their key, of a Spot price, is told nowhere else.
func (d *driver) Ended(ctx context.Context, r provider.Ref) (reason string, err error) {
	err = d.call(ctx, func(ctx context.Context) error {
		all, err := d.named(ctx, r)
		for _, i := range all {
			if slices.Contains(idsOf(r), aws.ToString(i.InstanceId)) && len(live([]types.Instance{i})) == 0 {
				reason = why(i)
			}
		}
		return err
	})
	return reason, err
}
