// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// What was read of a kind is there, each object once and no other, whether it was added one by one, replaced or is the whole answer: what is
// not there was not there (R-S12).
func TestEachKindIsHeld(t *testing.T) {
	t.Parallel()
	held := 0
	for _, r := range plan.Resources() {
		of := func(name, version string) plan.Object {
			o := r.New()
			o.SetName(name)
			o.SetResourceVersion(version)
			return o
		}
		in := func(s Snapshot) (all string) {
			for o := range s.Objects() {
				if plan.KindOf(o) != r.Kind {
					t.Errorf("%s: a %s is among them", r.Kind, plan.KindOf(o))
				}
				all += o.GetName() + o.GetResourceVersion() + " "
			}
			return all
		}
		var s Snapshot
		if !s.Add(of("b", "1")) {
			continue // of what functions never read
		}
		held++
		s.Add(of("c", "1"), of("a", "1"), of("b", "2"), of("c", "2"))
		if got := in(s); got != "a1 b2 c2 " {
			t.Errorf("%s: added are %s", r.Kind, got)
		}
		s.Hold(All(r.Kind), []plan.Object{of("b", "3"), of("d", "3")})
		if got := in(s); got != "b3 d3 " {
			t.Errorf("%s: read anew are %s", r.Kind, got)
		}
		s.Hold(One(r.Kind, "", "d"), []plan.Object{of("d", "4")})
		if got := in(s); got != "b3 d4 " {
			t.Errorf("%s: one read anew, they are %s", r.Kind, got)
		}
		s.Drop(One(r.Kind, "", "b"))
		if got := in(s); got != "d4 " {
			t.Errorf("%s: one dropped, left are %s", r.Kind, got)
		}
	}
	if lists := len(new(Snapshot).lists()) - 1; held != lists { // foreign kinds are in the last
		t.Errorf("%d kinds are held in %d lists", held, lists)
	}
}

// What was read again is another version than before, or was not there, and copies know of it no more than of what they were made before (2a.1).
func TestChanged(t *testing.T) {
	t.Parallel()
	of := func(name, version string) plan.Object {
		return &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}
	again := func(name string) Query { return Query{Kind: "MachineSet", Name: name, Again: true} }
	var s Snapshot
	s.Add(of("a", "1"), of("b", "1"))
	first := s
	for _, o := range []plan.Object{of("a", "1"), of("b", "2"), of("c", "1")} {
		s.Hold(again(o.GetName()), []plan.Object{o})
	}
	for _, c := range []struct {
		of      Snapshot
		is      plan.Object
		changed bool
	}{{s, of("a", "1"), false}, {s, of("b", "2"), true}, {s, of("c", "1"), true}, {s, of("d", "1"), false}, {first, of("b", "2"), false}} {
		if c.of.Changed(c.is) != c.changed {
			t.Errorf("%s@%s has changed: %v", c.is.GetName(), c.is.GetResourceVersion(), !c.changed)
		}
	}
}
