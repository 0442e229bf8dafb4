// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"fmt"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// crowd is a check that may have all of so many Machines in flight, three in ten of which are sick, with a budget of an hour that is full.
func crowd(machines int) snapshot.Snapshot {
	s := snapshot.Snapshot{Now: time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)}.Answered(snapshot.All("Machine"))
	h := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "all"}}
	h.Annotations = map[string]string{machine.AnnotationMaxInFlight: "100%"}
	h.Spec.UnhealthyConditions = []machinev1beta1.UnhealthyCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Timeout: metav1.Duration{Duration: 5 * time.Minute}}}
	s.HealthChecks = []*machine.MachineHealthCheck{h}
	slots := machine.Disruptions{Schema: 1}
	for i := range machines {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: fmt.Sprintf("worker-%05d", i), UID: types.UID(fmt.Sprint("machine-", i))}}
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: "worker", UID: "set-1", Controller: new(true)}}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name, UID: types.UID(m.Name), CreationTimestamp: metav1.NewTime(s.Now.Add(-time.Hour))}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.Now.Add(-10 * time.Minute))}}
		m.Status.NodeRef = &corev1.ObjectReference{Name: n.Name, UID: n.UID}
		if i < machines*3/10 {
			n.Status.Conditions[0].Status = corev1.ConditionFalse
			m.Status.Conditions = []machine.Condition{machine.False(machine.ConditionHealthy, "", reasonNode, "node "+n.Name+" has Ready=False since 2026-01-01T09:50:00Z")}
		}
		s.Machines, s.Nodes = append(s.Machines, m), append(s.Nodes, n)
		slots.Slots = append(slots.Slots, machine.Slot{Namespace: m.Namespace, Machine: m.Name, UID: types.UID(fmt.Sprint("former-", i)), By: name, At: metav1.NewTime(s.Now.Add(-40 * time.Minute))})
	}
	slots.Slots = slots.Slots[:min(machines, 1000)]
	cm := slots.In(nil)
	cm.Data[machine.DisruptionAtMax], cm.Data[machine.DisruptionHour] = "100%", "10000"
	s.ConfigMaps = []*corev1.ConfigMap{cm}
	return s
}

// BenchmarkStorm is one decision about thousands of Machines of which hundreds are sick at once, all of which may be in flight.
func BenchmarkStorm(b *testing.B) {
	for _, size := range []int{1000, 4000} {
		b.Run(fmt.Sprintf("machines=%d", size), func(b *testing.B) {
			s := crowd(size)
			for b.Loop() {
				p := Decide(s)
				for _, a := range p.Actions() {
					if u, ok := a.(plan.Update); ok {
						if r, err := parseRecord(u.New.GetAnnotations()[machine.AnnotationInFlight]); err != nil || len(r.InFlight) != size*3/10 {
							b.Fatal(err, len(r.InFlight))
						}
					}
				}
			}
		})
	}
}
