// SPDX-License-Identifier: Apache-2.0

// Package function says what a deployable function is: a name, what it reads, a pure decision.
package function

import (
	"encoding/json"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Function is one deployable function. Package runner gives it eyes and hands.
type Function struct {
	// Name is its folder, Knative service, trigger, log key, metric label and field manager.
	Name string
	// Reads returns what must be known, given what is known. It is asked again with the answers until it asks nothing
	// new, at most five times. It must be pure; its first question follows from the Request alone.
	Reads func(snapshot.Snapshot) snapshot.Scope
	// Watches are the kinds of which Reads asks for all objects, in clusters where these are too many to be listed each
	// time: the list is kept, and brought up to date with what has changed. It is as fresh as any other answer, trimmed
	// as snapshot.Commons does. The function needs the right to watch them.
	Watches []plan.Kind
	// Decide returns what to do. It is pure and total: no error, no clock, no context. A bad object is a decision
	// about that object. Deciding again on the result of its plan wants nothing.
	Decide func(snapshot.Snapshot) plan.Plan
	// Answer, of functions that can be asked what they would do, answers a question about a snapshot that was read for a
	// request of the kind Question. Its error is about a question that makes no sense. Nothing of it is ever applied.
	Answer func(s snapshot.Snapshot, question json.RawMessage) (json.RawMessage, error)
}

// Question is the kind of request that a question is read for: by it Reads knows that nothing will be done.
const Question plan.Kind = "Question"
