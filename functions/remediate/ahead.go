// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// bounded returns r as it counts at now: nothing of it happened later. A clock that was ahead, and was set back, must not hold up
// what waits for a second look, a step or a cool-down until that time comes again (RELIABILITY G7). Templates are where they
// are looked for, in a record that former versions read. r is not modified.
func (r record) bounded(now time.Time) record {
	at := func(t metav1.Time) metav1.Time { return machine.Past(t, now) }
	seen := map[types.UID]sighting{}
	maps.Copy(seen, r.Seen)
	r.InFlight, r.Seen, r.Failing = slices.Clone(r.InFlight), seen, maps.Clone(r.Failing)
	for i := range r.InFlight {
		r.InFlight[i].At = at(r.InFlight[i].At)
	}
	for uid, s := range r.Seen {
		s.At = at(s.At)
		r.Seen[uid] = s
	}
	for set, f := range r.Failing {
		if _, known := r.Seen[ofSet(set)]; f.Of != "" && !known {
			r.Seen[ofSet(set)] = sighting{What: f.Of}
		}
		r.Failing[set] = failure{Count: f.Count, At: at(f.At)}
	}
	if r.Storm != nil {
		s := storm{Since: at(r.Storm.Since)}
		if r.Storm.Over != nil {
			s.Over = new(at(*r.Storm.Over))
		}
		r.Storm = &s
	}
	return r
}
