// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
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
