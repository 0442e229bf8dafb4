// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	ours "github.com/machine-functions/machine-functions/shared/scheduling"
)

// placed is how many Pods are placed; so many in a hundred at most may be refused though the scheduler would take them,
// for a reason that docs/scheduling.md has.
const (
	placed      = 8_000
	mostRefused = 7
)

// TestPlacesAreTheSchedulers places Pods one at a time, on the Nodes of a situation or on one that could be added. A Pod
// that is said to fit fits; one that is said not to, does not, unless its rules are beyond what is planned for.
func TestPlacesAreTheSchedulers(t *testing.T) {
	t.Parallel()
	s := newScheduler(t)
	total, fit, helped, refused := 0, 0, 0, 0
	for seed := firstSeed(t); total < placed; seed++ {
		x := settled(throw(seed))
		for _, p := range x.Waiting {
			y := x.copy()
			y.Waiting = []*corev1.Pod{p}
			v := s.place(t, y)
			if v.wrong != "" {
				small := y.shrunk(func(z *situation) bool { return len(z.Waiting) == 1 && len(z.Nodes) > 0 && s.place(t, z).wrong != "" })
				t.Fatalf("SEED=%d: %s\nin the smallest such situation: %s\n%s", seed, v.wrong, s.place(t, small).wrong, small)
			}
			total++
			fit, helped, refused = fit+v.fit, helped+v.helped, refused+v.refused
		}
	}
	t.Logf("%d Pods: %d fit, %d are helped by a new Node, %d are not planned for", total, fit, helped, refused)
	if 100*refused > mostRefused*total {
		t.Errorf("%d of %d Pods are not planned for", refused, total)
	}
}

// settled returns a situation in which nothing is nominated: what is counts as placed for all Pods where they are
// planned for (SPEC C5). No Pod that waits has a Node yet.
func settled(x *situation) *situation {
	x.Pods = slices.DeleteFunc(x.Pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == "" })
	for _, p := range x.Waiting {
		p.Spec.NodeName = ""
	}
	return x
}

// placing is what became of one Pod.
type placing struct {
	fit, helped, refused int
	wrong                string
}

// place asks both sides where the Pod of a situation can go: to a Node that is there, else to a copy of the first one.
func (s *scheduler) place(t *testing.T, x *situation) (v placing) {
	t.Helper()
	p := x.Waiting[0]
	fresh := x.Nodes[0].DeepCopy()
	fresh.Name = "fresh"
	fresh.Labels[host] = fresh.Name
	got := x.world().Place(x.Waiting, []ours.Offer{{Name: "fresh", Node: ours.Node{Node: fresh}, Price: 1, Limit: 1}})
	v.fit, v.helped = got.Fit[0], got.Helped[0]
	old := s.takers(t, x, p)
	y := x.copy()
	y.Nodes = append(y.Nodes, fresh)
	comes := len(old) == 0 && slices.Contains(s.takers(t, y, p), fresh.Name)
	switch {
	case v.fit > 0 && len(old) == 0, v.helped > 0 && !comes && len(old) == 0:
		v.wrong = fmt.Sprintf("%s: %d fit and %d are helped; the scheduler would take none", p.Name, v.fit, v.helped)
	case v.fit == 0 && len(old) > 0, v.helped == 0 && comes:
		if why := got.Why(0, 0); strings.Contains(why, "planned for") || x.shares(p) {
			v.refused = 1
		} else {
			v.wrong = fmt.Sprintf("%s: %d fit and %d are helped (%q); the scheduler would put it on %v", p.Name, v.fit, v.helped, why, s.takers(t, y, p))
		}
	}
	return v
}

// shares reports whether a Pod has a volume that one that runs has too: attach limits are planned as if it had not.
func (x *situation) shares(p *corev1.Pod) bool {
	claims := func(p *corev1.Pod) (names []string) {
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				names = append(names, p.Namespace+"/"+v.PersistentVolumeClaim.ClaimName)
			}
		}
		return names
	}
	own := claims(p)
	return slices.ContainsFunc(x.Pods, func(q *corev1.Pod) bool {
		return slices.ContainsFunc(claims(q), func(name string) bool { return slices.Contains(own, name) })
	})
}

// takers returns the Nodes of a situation that the scheduler would put a Pod on.
func (s *scheduler) takers(t *testing.T, x *situation, p *corev1.Pod) (names []string) {
	t.Helper()
	if err := s.look(x); err != nil {
		t.Fatal(err)
	}
	all, err := s.ask(klog.NewContext(t.Context(), klog.Logger{}), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range x.Nodes {
		if all[n.Name].yes {
			names = append(names, n.Name)
		}
	}
	return names
}
