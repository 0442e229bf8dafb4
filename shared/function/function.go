// SPDX-License-Identifier: Apache-2.0

// Package function says what a deployable function is: a name, what it reads, a pure decision.
package function

import (
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Function is one deployable function. Package runner gives it eyes and hands.
type Function struct {
	// Name is its folder, Knative service, trigger, log key, metric label and field manager.
	Name string
	// Reads returns what must be known, given what is known. It is asked again with the answers until it asks nothing
	// new, at most four times. It must be pure; its first question follows from the Request alone.
	Reads func(snapshot.Snapshot) snapshot.Scope
	// Decide returns what to do. It is pure and total: no error, no clock, no context. A bad object is a decision
	// about that object. Deciding again on the result of its plan wants nothing.
	Decide func(snapshot.Snapshot) plan.Plan
}
