// SPDX-License-Identifier: Apache-2.0

// Package plan is what a function wants: a short list of side effects, as data.
package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Plan is what one decision wants done. The zero Plan is quiet.
type Plan struct {
	Do    []Sequence // independent of each other; carried out in any order
	Notes []Note     // told whatever becomes of Do
}

// Sequence is carried out in order and abandoned at its first failure. It writes each object at most once: what
// depends on the outcome of a write is decided in the next round.
type Sequence struct {
	Do    []Action
	Notes []Note // told once all of Do succeeded, or a deletion at its end got no clear answer
}

// Quiet reports whether p wants nothing done. Notes alone are quiet.
func (p Plan) Quiet() bool { return len(p.Do) == 0 }

// Then adds a sequence of actions to p. Without actions it changes nothing.
func (p *Plan) Then(actions ...Action) {
	if len(actions) > 0 {
		p.Do = append(p.Do, Sequence{Do: actions})
	}
}

// Add adds sequences to p, leaving out those without an action; their notes are kept.
func (p *Plan) Add(sequences ...Sequence) {
	for _, s := range sequences {
		if len(s.Do) == 0 {
			p.Notes = append(p.Notes, s.Notes...)
			continue
		}
		p.Do = append(p.Do, s)
	}
}

// Actions returns all actions of p in order.
func (p Plan) Actions() []Action {
	var all []Action
	for _, s := range p.Do {
		all = append(all, s.Do...)
	}
	return all
}

// String renders the plan as dry runs, logs and golden files show it: one action a line, the fields it changes
// below it, notes last.
func (p Plan) String() string {
	var b strings.Builder
	for _, s := range p.Do {
		for i, a := range s.Do {
			if i > 0 {
				b.WriteString("  then ")
			}
			fmt.Fprintln(&b, a)
		}
		for _, n := range s.Notes {
			fmt.Fprintf(&b, "  tell %v\n", n)
		}
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "tell %v\n", n)
	}
	return b.String()
}

// Note tells people something: a Kubernetes Event if it has an Object, else a log line. A note of a
// plan, unlike that of a sequence, is dropped by the runner when the same was told within five minutes.
type Note struct {
	Object  Ref
	Type    string // corev1.EventTypeNormal or corev1.EventTypeWarning
	Reason  string
	Message string
	Source  string // component shown by kubectl describe; empty: the function's name
}

// Ref names the object of a Note.
type Ref struct {
	Kind      Kind
	Namespace string
	Name      string
	UID       types.UID
}

// RefOf returns the Ref of o.
func RefOf(o Object) Ref {
	return Ref{Kind: KindOf(o), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
}

// Normal returns a note of type Normal about o.
func Normal(o Object, reason, message string) Note {
	return Note{Object: RefOf(o), Type: corev1.EventTypeNormal, Reason: reason, Message: message}
}

// Warning returns a note of type Warning about o.
func Warning(o Object, reason, message string) Note {
	return Note{Object: RefOf(o), Type: corev1.EventTypeWarning, Reason: reason, Message: message}
}

// Log returns a note that is a log line.
func Log(message string) Note { return Note{Type: corev1.EventTypeNormal, Message: message} }

// From returns n told by source.
func (n Note) From(source string) Note {
	n.Source = source
	return n
}

// String returns one line.
func (n Note) String() string {
	if n.Object.Kind == "" {
		return "log: " + n.Message
	}
	s := fmt.Sprintf("%s %s %s: %s", n.Type, n.Reason, Name(n.Object.Kind, n.Object.Namespace, n.Object.Name), n.Message)
	if n.Source != "" {
		s += " [" + n.Source + "]"
	}
	return s
}

// Key identifies one action within one invocation: the same wish about the same revision has the same key.
type Key string

// Outcome is what an action of this invocation answered. A refusal by the cloud is an outcome, not an error.
type Outcome struct {
	Result     Result
	Code       provider.Code // of a cloud's error
	Message    string
	RetryAfter time.Duration
	Instance   provider.Instance // of a successful CreateInstance; of a refused one the Progress, if that changed
	Asked      time.Time         // of a DeleteInstance: the API server's time, or a little before it, when the cloud was asked
}

// Result classifies an Outcome.
type Result int

// Results. Done is what the action promised; the others say why it was not.
const (
	Done     Result = iota
	Conflict        // the object changed meanwhile: decide anew
	Exists          // Create found an object of that name
	Gone            // the object, or the instance, is not there
	Refused         // a definite, well-formed no; Code and Message say which
	Blocked         // an eviction that a disruption budget does not allow now; RetryAfter says when again
	Failed          // anything else: it may or may not have happened
	Unsent          // the cloud was not asked, as Code and Message say: proves nothing; RetryAfter says when again
)

// Achieves reports whether r is what a wanted: it was done, or what was to be removed is not there. What follows on a in its
// sequence is carried out then alone: a claim on an object that is gone is no claim.
func (r Result) Achieves(a Action) bool {
	if r != Gone {
		return r == Done
	}
	switch a.(type) {
	case Delete, Evict, DeleteInstance:
		return true
	case Approve, Create, CreateInstance, PowerCycle, Update, UpdateInstance, UpdateStatus:
	}
	return false
}

var resultNames = [...]string{"Done", "Conflict", "Exists", "Gone", "Refused", "Blocked", "Failed", "Unsent"}

// String returns the result's name.
func (r Result) String() string {
	if r < 0 || int(r) >= len(resultNames) {
		return fmt.Sprintf("Result(%d)", int(r))
	}
	return resultNames[r]
}

// MarshalText writes the name.
func (r Result) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a result's name.
func (r *Result) UnmarshalText(text []byte) error {
	i := slices.Index(resultNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("result %q is none of %v", text, resultNames)
	}
	*r = Result(i)
	return nil
}
