// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"

	"github.com/vmware/govmomi/vim25"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var _ provider.Identified = (*driver)(nil)

// Identity implements [provider.Identified]: the vCenter's own id, which it keeps when its name or address changes. It came
// with the login.
func (d *driver) Identity(ctx context.Context) (id string, err error) {
	err = d.call(ctx, func(_ context.Context, c *vim25.Client) error {
		id = c.ServiceContent.About.InstanceUuid
		return nil
	})
	return id, err
}
