// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RELIABILITY 2e: what was drained is so as long as the Machine is linked to no other Node.
func TestDrainedIsOfOneNode(t *testing.T) {
	t.Parallel()
	node := func(uid types.UID) *corev1.ObjectReference {
		return &corev1.ObjectReference{Kind: "Node", Name: "n", UID: uid}
	}
	for name, tt := range map[string]struct {
		said            Condition
		linked          *corev1.ObjectReference
		drained, noNode bool
	}{
		"not drained":                       {False(ConditionDrained, "", ReasonDrained, ""), nil, false, false},
		"no node":                           {True(ConditionDrained, ReasonNoNode, ""), nil, true, true},
		"no node, linked since":             {True(ConditionDrained, ReasonNoNode, ""), node("a"), false, false},
		"node gone":                         {NodeGone("a"), node("a"), true, true},
		"node gone, link gone":              {NodeGone("a"), nil, true, true},
		"node gone, linked to another":      {NodeGone("a"), node("b"), false, false},
		"drained":                           {NodeDrained("a"), node("a"), true, false},
		"drained, link gone":                {NodeDrained("a"), nil, true, false},
		"drained, linked to another":        {NodeDrained("a"), node("b"), false, false},
		"drained by an earlier version":     {True(ConditionDrained, ReasonDrained, ""), node("b"), true, false},
		"its time was over, linked or not":  {True(ConditionDrained, "DrainTimedOut", "pod x"), node("b"), true, false},
		"nobody waited, and nobody is told": {True(ConditionDrained, "Skipped", ""), nil, true, false},
	} {
		m := &Machine{}
		m.Status.NodeRef, m.Status.Conditions = tt.linked, []Condition{tt.said}
		if Drained(m) != tt.drained || FoundNoNode(m) != tt.noNode {
			t.Errorf("%s: drained %v, for it had no node %v", name, Drained(m), FoundNoNode(m))
		}
	}
	if Drained(&Machine{}) || FoundNoNode(&Machine{}) || SeveralNodes(&Machine{}) {
		t.Error("a Machine of which nothing is said is drained")
	}
}

// Several Nodes fitted a Machine only as long as that is said.
func TestSeveralNodesUntilOneIsLeft(t *testing.T) {
	t.Parallel()
	m, now := &Machine{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, several := range []bool{true, false} {
		c := True(ConditionSoleNode, "", "")
		if several {
			c = False(ConditionSoleNode, "", "AmbiguousNode", "")
		}
		if m.Status.Conditions = SetCondition(m.Status.Conditions, c, now); SeveralNodes(m) != several {
			t.Errorf("%+v: several %v", c, SeveralNodes(m))
		}
	}
}

// Whose tag an instance carries a Machine's own intent says; a copy's, one that cannot be read, and one without a tag say nothing: by another's
// tag another's instance would be found, and removed.
func TestTagIsOfTheOwnIntent(t *testing.T) {
	t.Parallel()
	m := &Machine{}
	m.UID = "new"
	taken := (*Intent)(nil).Adopted(m, "cloud", "i-1", "old", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	copied := taken
	copied.Token = Token("another", copied.Attempt, copied.Account)
	unmade := taken
	unmade.Outcome = ""
	newer := taken
	newer.Schema++
	for name, tt := range map[string]struct {
		text string
		want types.UID
	}{
		"taken over":    {taken.String(), "old"},
		"copied":        {copied.String(), "new"},
		"not made":      {unmade.String(), "new"},
		"newer":         {newer.String(), "new"},
		"without a tag": {`{"tag":"",` + NewIntent(m, 1, "cloud", nil).Released(OutcomeCreated, time.Time{}).String()[1:], "new"},
		"none":          {"", "new"},
	} {
		m.Annotations = map[string]string{AnnotationIntent: tt.text}
		if got := InstanceUID(m); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
