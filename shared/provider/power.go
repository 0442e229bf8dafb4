// SPDX-License-Identifier: Apache-2.0

package provider

import "context"

// PowerCycler is implemented by drivers that can power an instance off and on again (SPEC D17).
type PowerCycler interface {
	// PowerCycle powers the instance with r's id or UID tag off and on, and does not wait until it runs: the same
	// instance, with its id, addresses and disks. NotFound means that there is none. Repeating it does it again, so
	// whoever calls claims first.
	PowerCycle(ctx context.Context, r Ref) error
}

// PowerSwitch is implemented by drivers that can hold an instance off. Where the cloud cannot say that an instance is
// gone, nothing but its power proves that its Node does nothing any more (SPEC E36). Both calls are about the instance
// with r's id or UID tag, and do not wait; repeating them changes nothing; NotFound means that there is no such instance.
type PowerSwitch interface {
	// PowerOff cuts the instance's power and holds it off until PowerOn. The instance says PowerHeld at once, and is
	// StateStopped when it is off.
	PowerOff(ctx context.Context, r Ref) error
	// PowerOn lets the instance have power again. One that was never held off stays as it is.
	PowerOn(ctx context.Context, r Ref) error
}

// Power is what a [PowerSwitch] can do about one instance now. The zero Power is nothing: at best it is cycled in one call.
type Power string

// What a PowerSwitch can do.
const (
	PowerOn   Power = "on"   // it can be held off
	PowerHeld Power = "held" // it is, until PowerOn
)
