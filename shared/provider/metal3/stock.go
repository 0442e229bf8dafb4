// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var _ provider.Stocked = (*driver)(nil)

// Stock implements [provider.Stocked]: a host is free if Create would claim it. One that is taken stays so until it was
// cleaned and let go.
func (d *driver) Stock(ctx context.Context, spec json.RawMessage) (provider.Stock, error) {
	s, err := parse(spec, d.namespace)
	if err != nil {
		return provider.Stock{}, err
	}
	all, err := d.hosts.List(ctx, d.namespace)
	if err != nil {
		return provider.Stock{}, provider.Coded(err)
	}
	var stock provider.Stock
	for _, h := range all {
		if ref := h.Spec.ConsumerRef; isMachine(ref) {
			stock.Taken = append(stock.Taken, ref.Name)
		} else if why(h, s.HostSelector) == "" {
			stock.Free++
		}
	}
	slices.Sort(stock.Taken)
	return stock, nil
}
