// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var (
	_ provider.PowerCycler = (*driver)(nil)
	_ provider.PowerSwitch = (*driver)(nil)
)

// PowerCycle implements [provider.PowerCycler]. What it cures is for a test to say: the history has it.
func (d *driver) PowerCycle(ctx context.Context, r provider.Ref) error {
	return d.power(ctx, OpPowerCycle, r, func(t *thing, now time.Time) {
		t.override = ""
		d.cloud.record(t, Cycled, now)
	})
}

// PowerOff implements [provider.PowerSwitch].
func (d *driver) PowerOff(ctx context.Context, r provider.Ref) error {
	return d.power(ctx, OpPowerOff, r, func(t *thing, now time.Time) {
		if t.held.IsZero() {
			t.held = now
		}
	})
}

// PowerOn implements [provider.PowerSwitch]. It counts as a cycle.
func (d *driver) PowerOn(ctx context.Context, r provider.Ref) error {
	return d.power(ctx, OpPowerOn, r, func(t *thing, now time.Time) {
		if !t.held.IsZero() {
			t.held, t.override = time.Time{}, ""
			d.cloud.record(t, Cycled, now)
		}
	})
}

// power does something to the power of the instances that r means.
func (d *driver) power(ctx context.Context, op Op, r provider.Ref, do func(*thing, time.Time)) error {
	_, err := call(ctx, d, Call{Op: op, Ref: r}, func() (struct{}, error) {
		there := false
		for _, t := range d.cloud.all {
			if !t.Child && t.removed.IsZero() && d.means(r, t) {
				there = true
				do(t, d.cloud.now())
			}
		}
		if !there {
			return struct{}{}, provider.Errorf(provider.NotFound, "%s %s: nothing is there", op, r.Name)
		}
		return struct{}{}, nil
	})
	return err
}
