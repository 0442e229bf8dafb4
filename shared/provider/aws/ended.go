// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var _ provider.Ended = (*driver)(nil)

// Ended implements [provider.Ended]: EC2 shows a terminated instance for about an hour, with the reason. A launch that fails
// after it was accepted, for want of volumes, of a right to their key, of a Spot price, is told nowhere else.
func (d *driver) Ended(ctx context.Context, r provider.Ref) (reason string, err error) {
	err = d.call(ctx, func(ctx context.Context) error {
		all, err := d.named(ctx, r)
		if err == nil && len(all) > 0 && len(live(all)) == 0 {
			reason = why(all[len(all)-1])
		}
		return err
	})
	return reason, err
}
