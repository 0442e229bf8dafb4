// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What is done at most for groups that were left out: the fewer are planned for again the more work a plan is. Work is counted, never
// timed: the same cluster has the same plan on any machine. The plans before and after the tries do not count here: what these
// do for priorities and for prices has bounds of its own.
const (
	mostWork   = 20_000_000 // steps of the packings, until no other try begins
	leastTries = 4          // whatever they take
	stepsOfPod = 20         // to find out which Pods are packed, and which of them are alike
)

// putBack plans for groups that were left out beside whoever has a place, the most important first, then by name, and keeps those
// that tear nobody apart. Of more than can be tried the first half of the tries are for the first, the others in turn. What the
// plan then costs is looked at again with all effort, unless that tears a group apart, or the plan is but a try, which has a part of the work.
func (sc *scan) putBack(options []*option, out []tornGroup, try bool) (served map[*group][]*corev1.Pod) {
	slices.SortFunc(out, func(a, b tornGroup) int { return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.name, b.name)) })
	sc.trying = true
	back, start, turned := backers{out: out, size: 1}, sc.work, false
	most := mostWork
	if try {
		most /= 4
	}
	for k := 0; len(back.out) > 0 && (k < leastTries || sc.work-start < most); k++ {
		if !turned && k >= leastTries/2 && sc.work-start >= most/2 {
			back, turned = backers{out: sc.fromTurn(back.out), size: 1}, true
		}
		sc.try(options, &back)
	}
	sc.trying = try
	for {
		served = sc.attempt(options)
		torn := sc.torn()
		if len(torn) == 0 {
			return served
		}
		if !sc.trying {
			sc.trying = true
			continue
		}
		for _, t := range torn {
			sc.leaveOut(t)
		}
	}
}

// backers are groups that are still to be put back: many at once as long as they have a place, so that it takes few tries, then
// fewer until it is clear which one has none.
type backers struct {
	out  []tornGroup
	size int         // how many are next
	bad  int         // so many at once tear somebody apart; 0: not known of any
	torn []tornGroup // by these
}

// try plans for the next groups beside whoever has a place.
func (sc *scan) try(options []*option, back *backers) {
	next := back.out[:min(back.size, len(back.out))]
	was := make([]broken, len(next))
	for i, t := range next {
		was[i] = sc.broken[t.name]
		delete(sc.broken, t.name)
	}
	sc.attempt(options)
	if torn := sc.torn(); len(torn) > 0 {
		for i, t := range next {
			sc.broken[t.name] = was[i]
		}
		back.bad, back.torn, back.size = len(next), torn, len(next)/2
	} else {
		back.out, back.size, back.bad = back.out[len(next):], 2*len(next), max(0, back.bad-len(next))
		if back.bad > 0 {
			back.size = back.bad / 2
		}
	}
	if back.bad == 1 {
		sc.refuse(back.out[0], back.torn)
		back.out, back.size, back.bad = back.out[1:], 1, 0
	}
}

// refuse leaves a group out that tears somebody apart.
func (sc *scan) refuse(t tornGroup, torn []tornGroup) {
	t.pods = sc.broken[t.name].pods
	delete(sc.broken, t.name)
	t.why = fmt.Sprintf("pod group %s has no place beside other pod groups: %s", t.name, torn[0].limit)
	if i := slices.IndexFunc(torn, func(x tornGroup) bool { return x.name == t.name }); i >= 0 {
		t.why = torn[i].why
		sc.leaveOut(torn[i])
	}
	sc.leaveOut(t)
}

// goldenSection is the golden section of 2^64: its multiples, of which each carry is dropped, lie as evenly as can be however many there are.
const goldenSection = 0x9e3779b97f4a7c15

// fromTurn returns a list from where this minute's turn begins, a golden section of it further each minute: everyone has a turn however
// few are tried in one, and in not much more turns than it takes.
func (sc *scan) fromTurn(list []tornGroup) []tornGroup {
	minute := uint64(sc.Now.Unix()) / uint64(turn/time.Second) //nolint:gosec // no time before 1970
	from, _ := bits.Mul64(minute*goldenSection, uint64(len(list)))
	return slices.Concat(list[from:], list[:from])
}
