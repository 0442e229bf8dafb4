// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/machine-functions/machine-functions/shared/provider"
	driver "github.com/machine-functions/machine-functions/shared/provider/libvirt"
)

// patient is a driver on a machine that is busy with something else, where qemu may take longer to start than a call lasts: what was cut
// off is asked again, as the runner does.
type patient struct {
	provider.Driver
	provider.PowerCycler
	provider.PowerSwitch
	provider.Identified
}

func patientProvider() provider.Provider {
	p := driver.Provider()
	open := p.Open
	p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
		d, err := open(ctx, a)
		if err != nil {
			return nil, err
		}
		return patient{d, d.(provider.PowerCycler), d.(provider.PowerSwitch), d.(provider.Identified)}, nil
	}
	return p
}

// Create implements [provider.Driver].
func (p patient) Create(ctx context.Context, r provider.Ref, resolved json.RawMessage) (provider.Instance, error) {
	for {
		in, err := p.Driver.Create(ctx, r, resolved)
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return in, err
		}
		if len(in.Progress) > 0 {
			r.Progress = in.Progress
		}
	}
}
