// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
)

// says makes the scheduler say why it has no place for a Pod.
func says(p *corev1.Pod, message string) *corev1.Pod {
	p.Status.Conditions[0].Message = message
	return p
}

// A Pod that fits a Node and that the scheduler refuses for what is not read here is told so, in the scheduler's words, once the scheduler
// has looked at it again since the Node has room (SPEC W3). That the cluster grows meanwhile makes no
// difference, and what is remembered goes once it runs.
func TestPodThatFitsAndIsRefusedIsTold(t *testing.T) {
	t.Parallel()
	const message = "0/1 nodes are available: 1 node(s) did not have enough free storage."
	for words, want := range map[string]string{
		message: "pod didn't trigger scale-up: node a has room for it as far as is known here; the scheduler says: " + message,
		"":      "pod didn't trigger scale-up: node a has room for it as far as is known here",
	} {
		w := fresh(t, "{}")
		w.pool(t, "s", 1, 9, nil, nil)
		w.idler(t, "s", "a")
		w.must(t, w.Put(pod("default", "web", "a", resources("cpu", "1")), says(pod("default", "db", "", resources("cpu", "1")), words)))
		w.pass(t, 3*time.Minute)
		w.must(t, w.Put(pending("large", w.now.Add(-time.Minute), resources("cpu", "3500m")))) // brings a Node
		w.pass(t, 3*time.Minute)
		if told := w.told("NotTriggerScaleUp"); len(told) > 0 || w.told("TriggeredScaleUp")["large"] == "" {
			t.Errorf("before the scheduler looked again: %q, %q", told, w.told("TriggeredScaleUp"))
		}
		w.pass(t, 20*time.Second)
		if got := w.told("NotTriggerScaleUp")["db"]; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		w.must(t, w.Put(pod("default", "db", "a", resources("cpu", "1"))))
		w.scans(t, 1)
		if _, known := w.state(t).Held["pod-default-db"]; known {
			t.Error("it is remembered although it runs")
		}
	}
}

// Who is about to be bound is told nothing: a Pod that came lately, one for which a Node got room lately, and one that waits for a Node to
// come. Many are remembered within bounds.
func TestWhoIsAboutToBeBoundIsToldNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(*world)
	}{
		{"who came lately", func(w *world) { w.must(t, w.Put(pending("p", epoch, resources("cpu", "1")))) }},
		{"who has room lately", func(w *world) {
			w.must(t, w.Put(pending("p", epoch.Add(-time.Hour), resources("cpu", "1")), pod("default", "big", "a", resources("cpu", "4"))))
			w.pass(t, 5*time.Minute)
			w.must(t, w.Remove("Pod", "default", "big", memory.Background))
		}},
		{"who waits for a node", func(w *world) {
			w.must(t, w.Put(pod("default", "p", "", resources("cpu", "3")), pod("default", "b", "a", resources("cpu", "2"))))
		}},
	} {
		w := fresh(t, "{}")
		w.pool(t, "s", 1, 2, nil, nil)
		w.idler(t, "s", "a")
		tt.do(w)
		w.pass(t, 7*time.Minute)
		for name, text := range w.told("NotTriggerScaleUp") {
			t.Errorf("%s: %s is told %q", tt.name, name, text)
		}
	}
	w := fresh(t, "{}")
	w.pool(t, "s", 1, 9, nil, nil)
	w.idler(t, "s", "a")
	for i := range mostRefused + 5 {
		w.must(t, w.Put(pending(fmt.Sprint("p-", i), epoch.Add(-time.Hour), resources("cpu", "1m"))))
	}
	w.scans(t, 2)
	if n := len(w.state(t).Held); n < mostRefused || n > mostRefused+1 {
		t.Errorf("%d are remembered", n)
	}
}
