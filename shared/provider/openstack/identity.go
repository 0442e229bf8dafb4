// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var _ provider.Identified = (*driver)(nil)

// Identity implements [provider.Identified]: the id of the project, which came with the token, with the region, as each shows its own
// instances alone. So it is in a cloud of one region too, which may get another.
func (d *driver) Identity(ctx context.Context) (string, error) {
	_, cancel, c, err := d.connect(ctx)
	defer cancel()
	if err != nil {
		return "", err
	}
	if c.region != "" && c.project != "" {
		return c.project + ":" + c.region, nil
	}
	return c.project, nil
}
