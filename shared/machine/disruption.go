// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Keys of the ConfigMap of name ConfigMapDisrupt. The first is written by compare-and-swap by whoever automates the
// deletion of Machines; the others are people's: numbers, or percentages of all Machines, rounded up.
const (
	DisruptionKey   = "deletions"
	DisruptionAtMax = "max-at-once"
	DisruptionHour  = "max-per-hour"
)

const (
	disruptionSchema = 1
	// SlotFor is how long a slot counts as a disruption under way, even if its Machine still drains (RELIABILITY 2f).
	SlotFor = 30 * time.Minute
)

// Disruptions is the budget of the whole cluster: which Machines automation deleted lately, or has permission to
// (RELIABILITY G8).
type Disruptions struct {
	Schema int    `json:"schema"`
	Slots  []Slot `json:"slots,omitempty"`
}

// Slot is a function's permission to disrupt one Machine. That another has one too says nothing: it gives back its own alone.
type Slot struct {
	Namespace    string      `json:"namespace"`
	Machine      string      `json:"machine"`
	UID          types.UID   `json:"uid"`
	By           string      `json:"by"` // the function that took it
	At           metav1.Time `json:"at"`
	ControlPlane bool        `json:"controlPlane,omitempty"`
}

// DisruptionLimits is how much the budget allows. Of the control plane it is always one Machine at once (R-S10).
type DisruptionLimits struct{ AtOnce, PerHour int }

// ParseDisruptions reads the budget of a ConfigMap, which may be nil: nothing was disrupted yet. It refuses unknown
// fields; a newer schema, whatever its fields, is ErrNewer.
func ParseDisruptions(cm *corev1.ConfigMap) (Disruptions, error) {
	if cm == nil || cm.Data[DisruptionKey] == "" {
		return Disruptions{Schema: disruptionSchema}, nil
	}
	var d Disruptions
	if err := ReadSchema(cm.Data[DisruptionKey], &d, &d.Schema, disruptionSchema); err != nil {
		return Disruptions{}, fmt.Errorf("configmap %s key %s: %w", cm.Name, DisruptionKey, err)
	}
	return d, nil
}

// BesideHealing returns what whoever saves Machines may take of the limits: a quarter of each, rounded down, but one of two or three, is kept for
// those that are ill, else who wants slots all the time leaves none to health checks.
func (l DisruptionLimits) BesideHealing() DisruptionLimits {
	return DisruptionLimits{AtOnce: besideHealing(l.AtOnce), PerHour: besideHealing(l.PerHour)}
}

func besideHealing(limit int) int {
	if limit < 2 { // or nothing would ever be saved
		return limit
	}
	return limit - max(1, limit/4)
}

// ParseDisruptionLimits reads the limits for a cluster of so many Machines. Unless the ConfigMap says otherwise a tenth
// of them, at least five, may be disrupted at once, and half of them, at least twenty and at most a thousand, within an
// hour.
func ParseDisruptionLimits(cm *corev1.ConfigMap, machines int) (DisruptionLimits, error) {
	l := DisruptionLimits{AtOnce: max(5, machines/10), PerHour: min(max(20, machines/2), 1000)}
	if cm == nil {
		return l, nil
	}
	var wrong []error
	limit := func(key string, usual int) int {
		text, ok := cm.Data[key]
		if !ok {
			return usual
		}
		n, err := ParseShare(strings.TrimSpace(text), machines)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("configmap %s key %s: %w", cm.Name, key, err))
		}
		return n
	}
	l = DisruptionLimits{AtOnce: limit(DisruptionAtMax, l.AtOnce), PerHour: limit(DisruptionHour, l.PerHour)}
	return l, errors.Join(wrong...)
}

// ParseShare reads a number, or a percentage of so many, rounded up.
func ParseShare(text string, of int) (int, error) {
	share := intstr.Parse(text)
	n, err := intstr.GetScaledValueFromIntOrPercent(&share, of, true)
	if err == nil && n < 0 {
		err = fmt.Errorf("%q is less than nothing", text)
	}
	return n, err
}

// Bounded returns d with no slot that counts still taken later than now, and whether one was: it was taken by a clock that was ahead, and would hold
// others up until that time comes again, and for its half hour beyond (RELIABILITY G7). What is over, Take drops. d is not modified.
func (d Disruptions) Bounded(now time.Time, over func(Slot) bool) (bounded Disruptions, changed bool) {
	d.Slots = slices.Clone(d.Slots)
	for i, s := range d.Slots {
		if TooFar(s.At.Time, now, 0) && !over(s) {
			d.Slots[i].At, changed = metav1.NewTime(now.Truncate(time.Second)), true
		}
	}
	return d, changed
}

// Holds reports whether a function has a slot for the Machine of this UID that is not used up.
func (d Disruptions) Holds(by string, uid types.UID, now time.Time) bool {
	return slices.ContainsFunc(d.Slots, func(s Slot) bool { return s.UID == uid && s.By == by && s.current(now) })
}

// Take returns d with the slot want added, taken now, or when it says, if such a slot counts still, and without what is older than an hour. It reports false, and
// returns d, if the limits do not allow that. Who knows that the Machine of a slot is gone, or is not disrupted after
// all, says so by over: then it counts for its hour only. A Machine whose slot is over keeps it, if there is room for it
// once more: it may have gone to another meanwhile. However many functions have a slot for a Machine, it counts once.
func (d Disruptions) Take(want Slot, l DisruptionLimits, now time.Time, over func(Slot) bool) (Disruptions, bool) {
	if want.At.IsZero() || TooFar(want.At.Time, now, 0) || !want.current(now) {
		want.At = metav1.NewTime(now.Truncate(time.Second))
	}
	next := Disruptions{Schema: disruptionSchema}
	atOnce, lately, again := map[types.UID]bool{}, map[types.UID]bool{}, false // of other Machines
	for _, s := range d.Slots {
		mine := s.UID == want.UID && s.By == want.By
		if mine && s.current(now) {
			if !over(s) {
				return d, true
			}
			again = true
		}
		ahead := TooFar(s.At.Time, now, 0) && over(s) // taken by a clock that was ahead: its hour would never end (RELIABILITY G7)
		if mine || ahead || !now.Before(s.At.Add(time.Hour)) {
			continue
		}
		next.Slots = append(next.Slots, s)
		if s.UID == want.UID {
			continue
		}
		lately[s.UID] = true
		if !s.current(now) || over(s) {
			continue
		}
		if s.ControlPlane && want.ControlPlane {
			return d, false
		}
		atOnce[s.UID] = true
	}
	if again {
		return d, len(atOnce) < l.AtOnce
	}
	if len(atOnce) >= l.AtOnce || len(lately) >= l.PerHour {
		return d, false
	}
	next.Slots = append(next.Slots, want)
	return next, true
}

// HourSpent reports whether the limit of an hour leaves no slot for want, however many there may be at once, and until when: the zero time
// where it never leaves one.
func (d Disruptions) HourSpent(want Slot, l DisruptionLimits, now time.Time, over func(Slot) bool) (until time.Time, spent bool) {
	l.AtOnce = math.MaxInt
	if _, ok := d.Take(want, l, now, over); ok {
		return time.Time{}, false
	}
	last := map[types.UID]time.Time{} // of other Machines: when they count no more
	for _, s := range d.Slots {
		ahead := TooFar(s.At.Time, now, 0) && over(s)
		if end := s.At.Add(time.Hour); s.UID != want.UID && !ahead && end.After(now) && end.After(last[s.UID]) {
			last[s.UID] = end
		}
	}
	ends := slices.SortedFunc(maps.Values(last), time.Time.Compare)
	if i := len(ends) - l.PerHour; i >= 0 && i < len(ends) {
		until = ends[i]
	}
	return until, true
}

// Without returns d without some of its slots: of what they were taken for nothing was done. d is not modified.
func (d Disruptions) Without(some func(Slot) bool) Disruptions {
	d.Slots = slices.DeleteFunc(slices.Clone(d.Slots), some)
	return d
}

// In returns cm, or a new ConfigMap if it is nil, with the budget in its place. cm is not modified.
func (d Disruptions) In(cm *corev1.ConfigMap) *corev1.ConfigMap {
	next := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: ConfigMapDisrupt}}
	if cm != nil {
		next = cm.DeepCopy()
	}
	if next.Data == nil {
		next.Data = map[string]string{}
	}
	text, err := json.Marshal(d)
	if err != nil { // strings, times and a number always marshal
		return next
	}
	next.Data[DisruptionKey] = string(text)
	return next
}

func (s Slot) current(now time.Time) bool { return now.Before(s.At.Add(SlotFor)) }
