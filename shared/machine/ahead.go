// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Skew is by how much the clocks that write records may differ from the API server's: with more, timers mean nothing
	// (RELIABILITY G7).
	Skew = 30 * time.Second
	// LongestClaim is how long a claim runs: longer than every invocation that holds one (RELIABILITY G6).
	LongestClaim = 60 * time.Second
	// LongestPause is the longest that a record makes a cloud, or a set, wait for its next call.
	LongestPause = 10 * time.Minute
)

// TooFar reports whether t is further ahead of now than somebody whose clock is right can have written: longest is what may
// lie ahead at most.
func TooFar(t, now time.Time, longest time.Duration) bool { return t.After(now.Add(longest + Skew)) }

// Past returns t, when something happened, as it counts at now: what a clock that was ahead wrote down happens now, so that it is waited
// for once more, and not until that time comes again. Who counts by it writes it down, or it never ends.
func Past(t metav1.Time, now time.Time) metav1.Time {
	if TooFar(t.Time, now, 0) {
		return metav1.NewTime(now.Truncate(time.Second))
	}
	return t
}

// Stamp writes a time the one way that people and records read it: RFC 3339, UTC, whole seconds.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Bounded returns i as it counts at now, and what was wrong with it, for people; "" if nothing was. A clock that was ahead
// must not end all work until that time comes: its claim ends as one of now does, because its holder may be at work; its
// backoff is over; its calls began now at the latest, so that what they made may surface for one horizon more.
func (i *Intent) Bounded(now time.Time) (next Intent, wrong string) {
	if i == nil {
		return Intent{}, ""
	}
	next = *i
	var all []string
	far := func(name string, t *metav1.Time, longest time.Duration) bool {
		if t == nil || !TooFar(t.Time, now, longest) {
			return false
		}
		all = append(all, fmt.Sprintf("%s %s", name, Stamp(t.Time)))
		return true
	}
	second := now.Truncate(time.Second)
	if far("until", i.Until, LongestClaim) {
		next.Until = new(metav1.NewTime(second.Add(LongestClaim)))
	}
	if far("notBefore", i.NotBefore, LongestPause) {
		next.NotBefore, next.Generation = nil, 0
	}
	if far("startedAt", &i.StartedAt, 0) {
		next.StartedAt = metav1.NewTime(second)
	}
	if far("unanswered", i.Unanswered, 0) {
		next.Unanswered = new(metav1.NewTime(second))
	}
	if len(all) == 0 {
		return *i, ""
	}
	return next, fmt.Sprintf("annotation %s: %s: no clock that is right can have written that at %s", AnnotationIntent, strings.Join(all, ", "),
		Stamp(now))
}

// Bounded returns l as it counts at now, and what was wrong with it, for people; "" if nothing was. A pause that a clock
// which was ahead began is over; the failures that led to it count.
func (l Ledger) Bounded(now time.Time) (next Ledger, wrong string) {
	if l.NextCreateAt == nil || !TooFar(l.NextCreateAt.Time, now, LongestPause) {
		return l, ""
	}
	wrong = fmt.Sprintf("annotation %s: nextCreateAt %s: no clock that is right can have written that at %s", AnnotationLedger,
		Stamp(l.NextCreateAt.Time), Stamp(now))
	l.NextCreateAt = new(metav1.NewTime(now.Truncate(time.Second)))
	return l, wrong
}
