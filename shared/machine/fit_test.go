// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whose Node n may be, of several that it fits as well (SPEC B62, B63): who is linked to it keeps it, unless by what both record it is
// another instance, or the Machine's own was lost; who gave its instance up stands back, but not who had a Node of it.
func TestWhoseNodeOfSeveral(t *testing.T) {
	t.Parallel()
	n := joined("n", "x", true, "1")
	for _, c := range []struct {
		name     string
		machines []*Machine
		want     string
	}{
		{"linked", []*Machine{linkedTo(at("a", "", "1"), "n"), at("b", "", "1")}, "a"},
		{"linked, of another instance", []*Machine{linkedTo(at("a", "y", "1"), "n"), at("b", "", "1")}, "b"},
		{"linked, and its instance was lost", []*Machine{lost(linkedTo(at("a", "", "1"), "n")), at("b", "", "1")}, "a b"},
		{"linked, its instance was lost, and it goes", []*Machine{deleted(lost(linkedTo(at("a", "", "1"), "n"))), at("b", "", "1")}, "a"},
		{"gave the instance up", []*Machine{lost(at("a", "x")), at("b", "x")}, "b"},
		{"gave the instance up that had a node", []*Machine{lost(linkedTo(at("a", "x"), "m")), at("b", "x")}, "a b"},
	} {
		var got []string
		for _, m := range IndexOf(c.machines).Of(n) {
			got = append(got, m.Name)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: of %v, want %s", c.name, got, c.want)
		}
	}
}

// A Node is nobody's by its address who lost the instance before it came; what came before, registered anew under the linked name, or is
// of a Machine that failed of something else, is drained before its Machine goes (R-B32).
func TestLostInstanceHadItsNode(t *testing.T) {
	t.Parallel()
	n := joined("n", "", true, "1")
	n.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC))
	for name, c := range map[string]struct {
		lost time.Duration // after n came
		edit func(*Machine)
		want bool
	}{
		"before it came":              {-time.Second, func(*Machine) {}, false},
		"after it came":               {time.Second, func(*Machine) {}, true},
		"linked to one of its name":   {-time.Second, func(m *Machine) { m.Status.NodeRef = &corev1.ObjectReference{Name: "n", UID: "before"} }, true},
		"linked to another":           {-time.Second, func(m *Machine) { linkedTo(m, "other") }, false},
		"it was never made":           {-time.Second, func(m *Machine) { m.Status.Conditions[0].Reason = "InstanceNotCreated" }, true},
		"it is there":                 {-time.Second, func(m *Machine) { m.Status.Conditions[0].Status = corev1.ConditionTrue }, true},
		"not Failed":                  {-time.Second, func(m *Machine) { m.Status.Phase = new(PhaseRunning) }, true},
		"deleted since it was Failed": {-time.Second, func(m *Machine) { deleted(m).Status.Phase = new(PhaseDeleting) }, false},
	} {
		m := lost(at("a", "", "1"))
		m.Status.Conditions[0].LastTransitionTime = metav1.NewTime(n.CreationTimestamp.Add(c.lost))
		if c.edit(m); Fits(m, n) != c.want {
			t.Errorf("%s: it fits %v, want %v", name, Fits(m, n), c.want)
		}
	}
}

// A Machine and a Node are of different instances only where both name one, and whose instance a Node names has it before whom it fits by
// an address, though that one gave it up: nobody knows yet what runs there.
func TestUnnamedInstanceIsNoOther(t *testing.T) {
	t.Parallel()
	if OtherInstance(at("a", ""), joined("n", "x", true)) || OtherInstance(at("a", "x"), joined("n", "", true)) || !OtherInstance(at("a", "y"), joined("n", "x", true)) {
		t.Error("who names no instance is of another one")
	}
	a, b := at("a", "", "1"), lost(at("b", "x"))
	if n := joined("n", "x", true, "1"); !ClaimedByAnother(a, n, []*Machine{a, b}) {
		t.Error("a has by its address the Node of the instance that b records")
	}
	if ClaimedByAnother(at("a", ""), joined("n", "", true), []*Machine{at("b", "")}) {
		t.Error("whom it does not fit claims the Node")
	}
}

// What stands on a Node, and in an id, anybody may have written: what names nothing that can be there is no name.
func TestNamesThatNameNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"machines/a": true, "machines/a.b": true, "": false, "a": false, "/a": false, "machines/": false, "machines/a/b": false, "Machines/a": false, "machines/A": false} {
		n := joined("n", "", true)
		n.Annotations = map[string]string{AnnotationMachine: text}
		if _, _, ok := AnnotatedMachine(n); ok != want {
			t.Errorf("%q names a Machine: %v", text, ok)
		}
	}
	for id, want := range map[string]string{"machines/host-0/uid": "machines/host-0", "host-0": "", "/uid": "", "": ""} {
		if got := BareMetalHost(SchemeBareMetal + id); got != want {
			t.Errorf("%q names the host %q, want %q", id, got, want)
		}
	}
}
