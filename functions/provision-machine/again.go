// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

const (
	// scanEvery is the period of the scan.
	scanEvery = 10 * time.Second
	// slot is how long a turn at what has failed lasts: a scan that is late, or lost, does not cost it.
	slot = 2 * scanEvery
	// promptFor is how long what fails is taken up again by every scan.
	promptFor = 2 * slot
	// rarest is how many turns there are at most in a row: about five minutes, as after refusals, and never ten.
	rarest = 15
)

// again reports whether this scan takes up what has failed since then, to try it or to tell of it in other words: every
// scan at first, then those of every second slot, every fourth and so on, as long as it has failed already, each Machine's in its
// turn. One that passed since the scan before this one is now, as far as the process knows of that: each process asks at most once
// more for it in a row (R-L2). An event never does: it may be that of our own last write (R-S14, R-L4).
func (l life) again(since time.Time) bool {
	if !l.Request.Scan() {
		return false
	}
	turns := 1
	for turns < rarest && l.Now.Sub(since) >= time.Duration(turns)*promptFor {
		turns = min(rarest, 2*turns)
	}
	now := slotAt(l.Now, slot)
	first := now
	if !l.Before.IsZero() {
		first = min(now, max(slotAt(l.Before, slot)+1, now-2*turns)) // two rows have a turn for sure
	}
	for at := first; at <= now; at++ {
		if l.isTurn(at, turns) {
			return true
		}
	}
	return false
}

// inTurn reports whether now is m's of so many turns in a row that last so long each. In each row it is another one: however far
// apart scans are, each Machine has its turn some time (R-L2).
func (l life) inTurn(turns int, lasts time.Duration) bool {
	return l.isTurn(slotAt(l.Now, lasts), turns)
}

// slotAt counts the slots until t that last so long each.
func slotAt(t time.Time, lasts time.Duration) int { return int(t.Unix() / int64(lasts.Seconds())) }

func (l life) isTurn(at, turns int) bool {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, at/turns, l.m.UID) // a hash never fails, and spreads what comes first
	return int(h.Sum32())%turns == at%turns
}

// postponed reports whether the cloud, which did not delete the instance before, is not asked again yet. One that could not be asked refused
// nothing: the first scan for which it answers goes on.
func (l life) postponed() bool {
	since, failed := l.failing()
	return failed && !l.again(since) && !(unasked(l.m) && l.Request.Scan())
}

// silent begins what is said of a deleted Machine whose cloud cannot be asked.
const silent = "the cloud cannot be asked: "

// unasked reports whether that is what is said of m.
func unasked(m *machine.Machine) bool {
	return m.Status.ErrorMessage != nil && strings.HasPrefix(*m.Status.ErrorMessage, silent)
}

// takenUp reports whether it is asked again by this scan: by itself if it is the list that does not come.
func (l life) takenUp() bool {
	since, failed := l.failing()
	return failed && l.again(since)
}

// failing reports whether the removal of the instance failed before, and since when it does.
func (l life) failing() (since time.Time, failed bool) {
	r := l.m.Status.ErrorReason
	c := machine.FindCondition(l.m.Status.Conditions, machine.ConditionInstanceExists)
	if r == nil || *r != reasonDelete || c == nil || c.Status != corev1.ConditionUnknown && machine.LostAt(l.m) == nil {
		return time.Time{}, false
	}
	since = c.LastTransitionTime.Time
	if deleted := l.m.DeletionTimestamp; deleted != nil && since.Before(deleted.Time) {
		since = deleted.Time
	}
	return since, true
}

// keepWords takes back what next says of an instance in a cloud's words if the same failure stands there in others. A cloud
// may word each answer anew, with a port or an id of its own: that never is a change; where more differs, it is told by a scan
// whose turn it is.
func (l life) keepWords(next *machine.Machine) {
	have := machine.FindCondition(l.m.Status.Conditions, machine.ConditionInstanceExists)
	want := machine.FindCondition(next.Status.Conditions, machine.ConditionInstanceExists)
	was, is := l.m.Status.ErrorReason, next.Status.ErrorReason
	switch {
	case have == nil || want == nil || have.Status != want.Status || have.Reason != want.Reason:
	case (was == nil) != (is == nil) || was != nil && *was != *is:
	case unasked(l.m) && !unasked(next): // it was asked, and refuses: that is asked for less and less often
	case l.sameGist(next) || !l.again(have.LastTransitionTime.Time):
		next.Status.Conditions, next.Status.ErrorMessage = l.m.Status.Conditions, l.m.Status.ErrorMessage
	}
}

// sameGist reports whether next says of its instance what the Machine says already, but for ports, ids and the like.
func (l life) sameGist(next *machine.Machine) bool {
	told := func(m *machine.Machine) string {
		c := machine.FindCondition(m.Status.Conditions, machine.ConditionInstanceExists)
		text := plan.Gist(c.Message) + "\n"
		if e := m.Status.ErrorMessage; e != nil {
			text += plan.Gist(*e)
		}
		return text
	}
	return told(l.m) == told(next)
}
