// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var _ provider.Identified = (*driver)(nil)

// Identity implements [provider.Identified]: the id of the project, which came with the token; in a cloud of several regions, each of
// which shows its own instances alone, with the region.
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
