// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// What is believed a minute later is what was seen then, not what is left of that: a list that goes on losing is in doubt anew (RELIABILITY G8, R-B23).
func TestListThatGoesOnLosingIsNotBelieved(t *testing.T) {
	t.Parallel()
	sc := &scan{}
	sc.Now = epoch
	sc.state.Seen = autoscaling.Seen{Nodes: 20, Pods: 400}
	look := func(after time.Duration, nodes, pods int) bool {
		sc.Now = epoch.Add(after)
		sc.Nodes, sc.Pods = make([]*corev1.Node, nodes), make([]*corev1.Pod, pods)
		return sc.doubtful()
	}
	if !look(0, 20, 190) {
		t.Error("190 Pods of 400 are believed at once")
	}
	if !look(time.Minute, 20, 0) {
		t.Error("no Pods at all, after 190 of 400 a minute ago, are believed at once")
	}
	if look(2*time.Minute, 20, 0) {
		t.Error("what is the same a minute later is not believed")
	}
}

// A third of the Nodes, and three at least, is an outage: to scale-down as to who repairs Machines (RELIABILITY 2d, 2f).
func TestThirdOfTheNodesIsAnOutage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		unready, nodes int
		want           bool
	}{{2, 2, false}, {3, 8, true}, {3, 9, true}, {3, 10, false}, {4, 12, true}, {4, 13, false}} {
		sc := &scan{unready: tt.unready}
		sc.Nodes = make([]*corev1.Node, tt.nodes)
		if got := sc.tooManyUnready(); got != tt.want {
			t.Errorf("%d of %d Nodes are unready: an outage is %v", tt.unready, tt.nodes, got)
		}
	}
}

// Of the Nodes above a group's minimum a removal that is committed takes none: the target was lowered with it (RELIABILITY 2d).
func TestCommittedRemovalsAreNoLongerAboveTheMinimum(t *testing.T) {
	t.Parallel()
	sc := &scan{machines: map[types.UID]*machine.Machine{"a": {}, "b": {}}}
	sc.Records = machine.NewRecords()
	g := &group{id: "g", set: &machine.MachineSet{}, target: 3, min: 2}
	for _, committed := range []*metav1.Time{nil, {}} {
		sc.state.Removals = []autoscaling.Removal{{Group: "g", Node: "a", MachineUID: "a", Committed: committed}, {Group: "g", Node: "b", MachineUID: "b"}}
		if got, want := sc.tooMany(sc.state.Removals[1], g), committed == nil; got != want {
			t.Errorf("one Node above the minimum, one removal before this one, committed %v: the minimum keeps the Node is %v", committed != nil, got)
		}
	}
}
