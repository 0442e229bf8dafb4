// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

	Outcome string `json:"outcome,omitempty"`
	// Failures are refusals, and answers that were none, in a row, steps between them included: a step that is made and refused in turns is tried
	// ever more seldom. What a cloud puts off for at least as long as that would is not counted.
	Failures int    `json:"failures,omitempty"`
	Code     string `json:"code,omitempty"`     // of the refusal
	Message  string `json:"message,omitempty"`  // of the refusal, in the cloud's words
	Instance string `json:"instance,omitempty"` // the cloud's id, with OutcomeCreated
	// Tag is the UID in the tag of an instance that was made for another Machine, which is gone, and that this one records:
	// it was made anew from that one's manifest, as a backup is restored. Empty: the tag is the Machine's own UID.
	Tag types.UID `json:"tag,omitempty"`
	// Cluster is the id of the cluster in the tag of what the attempt makes, or of what was taken over. Empty: it is the
	// Machine's cluster label.
	Cluster string `json:"cluster,omitempty"`

	Request  json.RawMessage `json:"request,omitempty"`  // the resolved spec: identical for every call of the attempt
	Progress []byte          `json:"progress,omitempty"` // the driver's own: ids of children and tasks
}

// ParseIntent reads the intent of m; nil if it has none, which means that no call to a cloud was ever made for m. A newer schema, whatever its
// fields, is ErrNewer.
func ParseIntent(m *Machine) (*Intent, error) {
	text, ok := m.Annotations[AnnotationIntent]
	if !ok {
		return nil, nil
	}
	var i Intent
	if err := ReadSchema(text, &i, &i.Schema, intentSchema); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", AnnotationIntent, err)
	}
	if i.Attempt < 1 || i.Token == "" {
		return nil, fmt.Errorf("annotation %s: attempt %d with token %q is not ours to read", AnnotationIntent, i.Attempt, i.Token)
	}
	if i.Failures < 0 { // how long to wait after them follows from how many they are
		return nil, fmt.Errorf("annotation %s: %d failures", AnnotationIntent, i.Failures)
	}
	i.Failures = min(i.Failures, mostCounted)
	return &i, nil
}

// NewIntent returns the intent of attempt n of m, not yet claimed.
func NewIntent(m *Machine, n int, account string, request json.RawMessage) Intent {
	return Intent{Schema: intentSchema, Attempt: n, Token: Token(m.UID, n, account), Account: account, Request: request}
}

// Own reports whether i was written for m itself: a copy of a Machine, and one that is restored under another UID, has the
// intent of the Machine that it was made from.
func (i *Intent) Own(m *Machine) bool {
	return i != nil && i.Token == Token(m.UID, i.Attempt, i.Account)
}

// Made reports whether i says of m itself that the recorded instance was made for it, or that it took it over: then its tag
// proves whose it is.
func (i *Intent) Made(m *Machine) bool { return i.Own(m) && i.Outcome == OutcomeCreated }

// LeftBehind reports whether an instance, of which these are the cloud's id, the providerID and the UID in its tag, was m's before people led
// spec.providerID to another: i says of m itself that it was made for it, or taken over. An answer that was lost leaves no such, as id and
// providerID are written in one write. Once m took over what carries another tag, what carries its own UID was made for it before.
func (i *Intent) LeftBehind(m *Machine, id, providerID string, tag types.UID) bool {
	another := i.Made(m) && ProviderID(m) != "" && providerID != "" && !SameID(ProviderID(m), providerID)
	return another && (id == i.Instance || i.Tag != "" && tag == m.UID)
}

// mostAhead is how many attempts later than the one on record the one that made an instance is looked for.
const mostAhead = 100

// Onward returns i as the record of the attempt of m that token is of, where that is a later one: after a backup the latest on record is not
// the latest that was made. What the one on record left carries another token then, and is known by that. For any other token it is i: no
// attempt returns (R-S17).
func (i Intent) Onward(m *Machine, token string) Intent {
	if token == "" || token == i.Token || !i.Own(m) {
		return i
	}
	for ahead := 1; ahead <= mostAhead; ahead++ {
		if Token(m.UID, i.Attempt+ahead, i.Account) == token {
			i.Attempt, i.Token = i.Attempt+ahead, token
			return i
		}
	}
	return i
}

// Adopted returns the intent of m for an instance of account that carries another UID than m's.
func (i *Intent) Adopted(m *Machine, account, instance string, tag types.UID, now time.Time) Intent {
	next := Intent{Schema: intentSchema, Attempt: 1, StartedAt: metav1.NewTime(now.Truncate(time.Second))}
	if i != nil {
		next = *i
	}
	next.Account, next.Token = account, Token(m.UID, next.Attempt, account)
	next = next.Released(OutcomeCreated, time.Time{})
	next.Instance, next.Tag, next.Failures, next.Code, next.Message = instance, tag, 0, "", ""
	return next
}

// InstanceUID returns the UID in the tag of m's instance: its own, but for one that was taken over.
func InstanceUID(m *Machine) types.UID {
	if !strings.Contains(m.Annotations[AnnotationIntent], `g":"`) { // nearly every Machine's has no tag; quotes are many, and to begin with one takes time
		return m.UID
	}
	if i, err := ParseIntent(m); err == nil && i.Tag != "" && i.Made(m) {
		return i.Tag
	}
	return m.UID
}

// In returns the intent for what carries the id of that cluster.
func (i Intent) In(m *Machine, cluster string) Intent {
	i.Cluster = cluster
	if cluster == m.Labels[LabelCluster] {
		i.Cluster = ""
	}
	return i
}

// InstanceCluster returns the id of the cluster in the tag of m's instance, or of what may become it: the recorded one,
// else m's label. Empty where there is nothing of m: what is made next gets the cluster's present id. told is false where
// nobody recorded it.
func (r *Records) InstanceCluster(m *Machine) (id string, told bool) {
	label := m.Labels[LabelCluster]
	i, err := r.Intent(m)
	switch has := ProviderID(m) != "" || len(m.Status.Addresses) > 0; {
	case err != nil:
		return label, false
	case has, i.Called() && (!i.Over() || m.DeletionTimestamp != nil):
		if i != nil && i.Cluster != "" {
			return i.Cluster, true
		}
		return label, i.Called()
	}
	return "", true
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

// Outdated reports whether i is an attempt that was refused midway and could go on, but whose request says what is no longer
// wanted: somebody edited the spec since. A deletion counts as an edit of its own, and ends no attempt. Nor does an edit end one whose
// instance is a Node already: what was made would go, and its Pods with it, undrained.
func (i *Intent) Outdated(m *Machine) bool {
	return i.Edited(m) && m.DeletionTimestamp == nil && i.Outcome == OutcomePartial && !i.Unresolved() && m.Status.NodeRef == nil
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
