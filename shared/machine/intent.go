// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const intentSchema = 1

// Attempt outcomes, which are what became of its latest call. An attempt with none is unresolved: an instance of it may
// still surface until the driver's Horizon has passed since StartedAt (RELIABILITY 2b.4).
const (
	OutcomeCreated = "created" // the providerID is recorded
	OutcomePartial = "partial" // the same attempt goes on from where Progress says, also after a refusal that may pass
	OutcomeRefused = "refused" // the cloud gave a definite, well-formed no
)

// Intent is provision-machine's claim on a Machine and the frozen request to the cloud, kept in AnnotationIntent.
// It is written before the first call of an attempt, and again with what became of it.
type Intent struct {
	Schema  int    `json:"schema"`
	Attempt int    `json:"attempt"` // counts from 1
	Token   string `json:"token"`   // idempotency token of this attempt
	Account string `json:"account"` // key of the cloud account that the attempt went to

	StartedAt metav1.Time `json:"startedAt"` // of the attempt's latest call
	// Unanswered is when the latest call of the attempt began that nobody knows the answer of; nil if there is none. What a
	// later call is answered tells nothing about it. A record of before there was this field is one whose Outcome tells.
	Unanswered *metav1.Time `json:"unanswered,omitempty"`

	Holder    string       `json:"holder,omitempty"`    // the invocation whose claim runs
	Until     *metav1.Time `json:"until,omitempty"`     // end of that claim
	NotBefore *metav1.Time `json:"notBefore,omitempty"` // no call earlier: backoff
	// Generation is the Machine's that NotBefore is for; 0 if it holds for any spec.
	Generation int64 `json:"generation,omitempty"`

	Outcome  string `json:"outcome,omitempty"`
	Failures int    `json:"failures,omitempty"` // refusals in a row
	Code     string `json:"code,omitempty"`     // of the refusal
	Message  string `json:"message,omitempty"`  // of the refusal, in the cloud's words
	Instance string `json:"instance,omitempty"` // the cloud's id, with OutcomeCreated

	Request  json.RawMessage `json:"request,omitempty"`  // the resolved spec: identical for every call of the attempt
	Progress []byte          `json:"progress,omitempty"` // the driver's own: ids of children and tasks
}

// ParseIntent reads the intent of m; nil if it has none, which means that no call to a cloud was ever made for m.
func ParseIntent(m *Machine) (*Intent, error) {
	text, ok := m.Annotations[AnnotationIntent]
	if !ok {
		return nil, nil
	}
	var i Intent
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&i); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", AnnotationIntent, err)
	}
	if i.Schema != intentSchema || i.Attempt < 1 || i.Token == "" {
		return nil, fmt.Errorf("annotation %s: schema %d attempt %d is not ours to read", AnnotationIntent, i.Schema, i.Attempt)
	}
	return &i, nil
}

// NewIntent returns the intent of attempt n of m, not yet claimed.
func NewIntent(m *Machine, n int, account string, request json.RawMessage) Intent {
	return Intent{Schema: intentSchema, Attempt: n, Token: Token(m.UID, n, account), Account: account, Request: request}
}

// String returns the intent as it is stored.
func (i Intent) String() string {
	b, err := json.Marshal(i)
	if err != nil { // Request comes from a driver or from ParseIntent: valid JSON
		return ""
	}
	return string(b)
}

// Claimed returns the intent with a running claim of holder for one more call. If the latest one has no outcome, its
// answer was lost, or its claim was left by a process that may have sent it.
func (i Intent) Claimed(holder string, now time.Time, d time.Duration) Intent {
	if i.Outcome == "" && !i.StartedAt.IsZero() {
		i.Unanswered = new(i.StartedAt)
	}
	until := metav1.NewTime(now.Add(d).Truncate(time.Second))
	i.Holder, i.Until, i.StartedAt = holder, &until, metav1.NewTime(now.Truncate(time.Second))
	i.NotBefore, i.Generation, i.Outcome, i.Code, i.Message = nil, 0, "", "", ""
	return i
}

// Held returns the intent with a running claim of holder for something else than an attempt: the outcome stays.
func (i Intent) Held(holder string, now time.Time, d time.Duration) Intent {
	until := metav1.NewTime(now.Add(d).Truncate(time.Second))
	i.Holder, i.Until, i.NotBefore, i.Generation = holder, &until, nil, 0
	return i
}

// Released returns the intent with the claim ended and outcome recorded; the empty outcome leaves it unresolved. The
// instance that was created is what every call of the attempt led to.
func (i Intent) Released(outcome string, notBefore time.Time) Intent {
	if outcome == OutcomeCreated {
		i.Unanswered = nil
	}
	i.Holder, i.Until, i.Outcome, i.NotBefore, i.Generation = "", nil, outcome, nil, 0
	if !notBefore.IsZero() {
		t := metav1.NewTime(notBefore.Truncate(time.Second))
		i.NotBefore = &t
	}
	return i
}

// ClaimedByOther reports whether a claim of somebody else still runs at now.
func (i *Intent) ClaimedByOther(holder string, now time.Time) bool {
	return i != nil && i.Until != nil && i.Holder != holder && now.Before(i.Until.Time)
}

// Edited reports whether the spec of m changed since the refusal that i waits out: what was refused is no longer wanted.
func (i *Intent) Edited(m *Machine) bool {
	return i != nil && i.Generation != 0 && i.Generation != m.Generation
}

// Called reports whether a cloud may have been asked to create under i, or before it. A spec that could never be
// resolved was never sent anywhere.
func (i *Intent) Called() bool { return i != nil && len(i.Request) > 0 }

// Unresolved reports whether an instance of the attempt may exist that nobody has recorded: one of its calls is
// unanswered, be it the latest or one before it.
func (i *Intent) Unresolved() bool { return i != nil && (i.Outcome == "" || i.Unanswered != nil) }

// Over reports whether no call of the attempt can have led to anything that the next call could go on with, or repeat: it
// was refused, or never sent. Then the next call is another attempt's.
func (i *Intent) Over() bool {
	return i != nil && !i.Unresolved() && (i.Outcome == OutcomeRefused || i.Outcome == OutcomePartial && len(i.Progress) == 0)
}

// SurfacesUntil returns when an unresolved attempt can no longer produce an instance: the horizon after its latest call
// that is unanswered.
func (i *Intent) SurfacesUntil(horizon time.Duration) time.Time {
	if i.Outcome != "" && i.Unanswered != nil {
		return i.Unanswered.Add(horizon)
	}
	return i.StartedAt.Add(horizon)
}
