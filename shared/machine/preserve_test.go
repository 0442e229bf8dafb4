// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How long people keep a sick Machine counts from when it began to be sick, whoever asks, and ends.
func TestSickMachineIsKeptSinceItIsSick(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(hours int) metav1.Time { return metav1.NewTime(made.Add(time.Duration(hours) * time.Hour)) }
	node := func(status corev1.ConditionStatus, since metav1.Time) *corev1.Node {
		n := &corev1.Node{}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: since}}
		return n
	}
	failed := machinev1beta1.MachineStatus{Phase: new(PhaseFailed), LastUpdated: new(at(1))}
	told := machinev1beta1.MachineStatus{Conditions: []Condition{{Type: ConditionHealthy, Status: corev1.ConditionFalse, LastTransitionTime: at(2)}}}
	for name, c := range map[string]struct {
		status machinev1beta1.MachineStatus
		node   *corev1.Node
		want   metav1.Time
	}{
		"failed":                             {status: failed, node: node(corev1.ConditionFalse, at(3)), want: at(1)},
		"failed, nobody says when":           {status: machinev1beta1.MachineStatus{Phase: new(PhaseFailed)}, want: at(0)},
		"node not ready":                     {status: told, node: node(corev1.ConditionUnknown, at(3)), want: at(3)},
		"node not ready, nobody says when":   {node: node(corev1.ConditionUnknown, metav1.Time{}), want: at(0)},
		"sick by its check":                  {status: told, node: node(corev1.ConditionTrue, at(1)), want: at(2)},
		"sick by its check, without a node":  {status: told, want: at(2)},
		"a node that never said how it does": {node: &corev1.Node{}, want: at(0)},
	} {
		m := &Machine{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0)}, Status: c.status}
		since := SickSince(m, c.node)
		if !since.Equal(c.want.Time) {
			t.Errorf("%s: sick since %v, want %v", name, since, c.want)
		}
		for text, kept := range map[string]bool{"": true, "2h": true, "1h": false, "false": false, "2026-01-03T00:00:00Z": true, "2026-01-01T00:00:00Z": false} {
			m.Annotations = map[string]string{AnnotationPreserve: text}
			if got := Kept(m, since, since.Add(90*time.Minute)); got != kept {
				t.Errorf("%s: with %q it is kept: %v", name, text, got)
			}
			m.Annotations[AnnotationSkipRepair] = ""
			if !Kept(m, since, since.Add(1000*time.Hour)) {
				t.Errorf("%s: skipped, and taken away", name)
			}
		}
	}
}
