// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	ours "github.com/machine-functions/machine-functions/shared/scheduling"
)

// Each case is a Pod and a Node. Each filter decides in at least these parts of all cases: as the only one that says no,
// and as one that had something to look at and says yes. With SEED=n it is differences that one looks for.
const (
	cases    = 100_000
	leastNo  = 0.02
	leastYes = 0.20
)

// difference is a case that shared/scheduling and the scheduler do not see alike; empty if they do.
type difference struct{ kind, text string }

// compare asks both about a Pod and all Nodes of a situation that the scheduler looks at.
func (s *scheduler) compare(ctx context.Context, x *situation, w *ours.World, p *corev1.Pod, each func(answer)) (d difference, err error) {
	theirs, err := s.ask(ctx, p)
	if err != nil {
		return d, err
	}
	q := w.Ask(p)
	for i, n := range x.Nodes {
		a := theirs[n.Name]
		why := q.Refused(i)
		if a.yes != (why == "") {
			return difference{"verdict", fmt.Sprintf("%s on %s: the scheduler says %v %q, we say %q", p.Name, n.Name, a.no, a.reasons, why)}, nil
		}
		if !a.yes && !named(a.reasons, why) {
			return difference{"reason", fmt.Sprintf("%s on %s: the scheduler has the reasons %q, we say %q", p.Name, n.Name, a.reasons, why)}, nil
		}
		each(a)
	}
	return d, nil
}

// alike are reasons of one filter, which gives the first that it comes to.
var alike = [][]string{
	{ours.ReasonNear, ours.ReasonFar, ours.ReasonBarred},
	{ours.ReasonDisk, ours.ReasonExclusive},
	{ours.ReasonSpread, ours.ReasonSpreadLabel},
}

// named reports whether the reason that we give is one of the scheduler's. Ours names the taint as well; of several that
// one filter has, or of several claims that are in no state to be used, it may name another one.
func named(reasons []string, why string) bool {
	if strings.HasPrefix(why, "node(s) had untolerated taint") {
		why = "node(s) had untolerated taint(s)"
	}
	for _, family := range alike {
		if slices.Contains(family, why) {
			return slices.ContainsFunc(reasons, func(r string) bool { return slices.Contains(family, r) })
		}
	}
	return ofClaims(why) && slices.ContainsFunc(reasons, ofClaims) || slices.Contains(reasons, why)
}

// ofClaims reports whether a reason says that a claim is in no state to be used.
func ofClaims(why string) bool {
	return slices.ContainsFunc([]string{ours.ReasonUnbound, "waiting for ephemeral", "persistentvolume", "PersistentVolume"}, func(begin string) bool {
		return strings.HasPrefix(why, begin)
	})
}

// firstSeed is where the random situations begin.
func firstSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("SEED")
	if text == "" {
		return 1
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestVerdictsAreTheSchedulers(t *testing.T) {
	t.Parallel()
	s := newScheduler(t)
	total, yes := 0, 0
	no, admitted := map[string]int{}, map[string]int{}
	count := func(a answer) {
		total++
		if a.yes {
			yes++
		}
		if len(a.no) == 1 {
			no[a.no[0]]++
		}
		for _, name := range a.asked {
			if !slices.Contains(a.no, name) {
				admitted[name]++
			}
		}
	}
	for seed := firstSeed(t); total < cases; seed++ {
		x := throw(seed)
		if d := s.all(t, x, count); d.text != "" {
			small := x.shrunk(func(y *situation) bool { return s.all(t, y, func(answer) {}).kind == d.kind })
			t.Fatalf("SEED=%d: %s\nin the smallest such situation: %s\n%s", seed, d.text, s.all(t, small, func(answer) {}).text, small)
		}
	}
	t.Logf("%d cases, yes in %d", total, yes)
	for _, name := range filters {
		n, y := float64(no[name])/float64(total), float64(admitted[name])/float64(total)
		t.Logf("%-20s the only no in %4.1f %%, yes in %4.1f %%", name, 100*n, 100*y)
		if os.Getenv("SEED") == "" && (n < leastNo || y < leastYes) {
			t.Errorf("%s decides too rarely", name)
		}
	}
}

// all compares every waiting Pod of a situation and returns the first difference.
func (s *scheduler) all(t *testing.T, x *situation, each func(answer)) difference {
	t.Helper()
	if err := s.look(x); err != nil {
		t.Fatal(err)
	}
	w := x.world()
	for _, p := range x.Waiting {
		d, err := s.compare(klog.NewContext(t.Context(), klog.Logger{}), x, w, p, each)
		if err != nil {
			t.Fatalf("%v\n%s", err, x)
		}
		if d.text != "" {
			return d
		}
	}
	return difference{}
}
