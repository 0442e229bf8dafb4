// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// fresh is a world with nothing but a ClusterAutoscaler of this spec.
func fresh(t testing.TB, spec string) *world {
	t.Helper()
	w := newWorld(t, epoch)
	w.yaml(t, fmt.Sprintf("{apiVersion: autoscaling.openshift.io/v1, kind: ClusterAutoscaler, metadata: {name: default, uid: ca, generation: 1}, spec: %s}", spec))
	return w
}

func (w *world) yaml(t testing.TB, text string) {
	t.Helper()
	o, err := snapshot.Decode([]byte(text))
	w.must(t, err)
	w.must(t, w.Put(o...))
}

// once is one scan.
func (w *world) once(t testing.TB) plan.Plan {
	t.Helper()
	p, err := w.scan(t.Context(), snapshot.Request{})
	w.must(t, err)
	return p
}

// scans is so many scans, ten seconds apart; time goes on after each.
func (w *world) scans(t testing.TB, n int) {
	t.Helper()
	for range n {
		w.once(t)
		w.now = w.now.Add(10 * time.Second)
	}
}

// resources reads pairs of name and quantity.
func resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// notLookedAt is a Pod of a ReplicaSet that the scheduler has not come to.
func notLookedAt(name string, at time.Time, requests corev1.ResourceList) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID, p.CreationTimestamp = "default", name, types.UID("pod-"+name), metav1.NewTime(at)
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "rs", Controller: new(true)}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}}
	p.Status.Phase = corev1.PodPending
	return p
}

// pending is a Pod that the scheduler found no place for.
func pending(name string, at time.Time, requests corev1.ResourceList) *corev1.Pod {
	p := notLookedAt(name, at, requests)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	return p
}

// running is a Pod that runs on a Node.
func running(name, node string, requests corev1.ResourceList) *corev1.Pod {
	p := notLookedAt(name, epoch.Add(-3*time.Hour), requests)
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	return p
}

// midsize are capacity annotations of four cores and 16Gi, with more of them.
func midsize(more ...string) map[string]string {
	out := map[string]string{machine.CapacityCPU: "4", machine.CapacityMemory: "16Gi"}
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

// set makes a MachineSet that is resized from 0 to most.
func (w *world) set(t testing.TB, name string, replicas, most int32, annotations, labels map[string]string) {
	t.Helper()
	ma := &autoscaling.MachineAutoscaler{Spec: autoscaling.MachineAutoscalerSpec{MaxReplicas: most,
		ScaleTargetRef: autoscaling.ScaleTargetRef{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: name}}}
	ma.Namespace, ma.Name = machine.Namespace, name
	s := &machine.MachineSet{}
	s.Namespace, s.Name, s.UID, s.Annotations = machine.Namespace, name, types.UID("set-"+name), annotations
	s.CreationTimestamp = metav1.NewTime(epoch.AddDate(-9, 0, 0)) // whatever a test remembers of it was later
	s.Spec.Replicas = new(replicas)
	s.Spec.Template.Spec.Labels = labels
	selects(s)
	w.must(t, w.Put(ma, s))
}

// selects gives a set the selector of its own template, without which nobody makes Machines for it.
func selects(s *machine.MachineSet) {
	s.Spec.Template.Labels = map[string]string{"set": s.Name}
	s.Spec.Selector = metav1.LabelSelector{MatchLabels: s.Spec.Template.Labels}
}

// member makes a Machine of a set with a Node that is ready since it was made.
func (w *world) member(t testing.TB, set, name string, ready time.Time, capacity corev1.ResourceList, labels map[string]string) {
	t.Helper()
	s := memory.Get[*machine.MachineSet](w.Server, machine.Namespace, set)
	m := &machine.Machine{}
	m.Namespace, m.Name, m.UID, m.CreationTimestamp = machine.Namespace, name, types.UID("machine-"+name), metav1.NewTime(ready.Add(-time.Minute))
	m.Labels = s.Spec.Template.Labels
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s, machineSetKind)}
	m.Status.Phase = new(machine.PhaseRunning)
	m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: name, UID: types.UID("node-" + name)}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), CreationTimestamp: metav1.NewTime(ready), Labels: map[string]string{corev1.LabelHostname: name}}}
	for k, v := range labels {
		n.Labels[k] = v
	}
	n.Status.Capacity, n.Status.Allocatable = capacity, capacity
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ready)}}
	w.must(t, w.Put(m, n))
}

// victimsGo removes the Machines that sets want to lose, with their Nodes.
func (w *world) victimsGo(t testing.TB) {
	t.Helper()
	for _, set := range memory.List[*machine.MachineSet](w.Server) {
		victims, err := machine.Victims(set)
		w.must(t, err)
		for _, v := range victims {
			if m := memory.Get[*machine.Machine](w.Server, set.Namespace, v.Name); m != nil && m.UID == v.UID {
				w.must(t, w.Remove("Node", "", m.Status.NodeRef.Name, memory.Background))
				w.must(t, w.Remove("Machine", m.Namespace, m.Name, memory.Background))
			}
		}
		if len(victims) > 0 {
			w.must(t, memory.Patch(w.Server, set.Namespace, set.Name, func(s *machine.MachineSet) { delete(s.Annotations, machine.AnnotationVictims) }))
		}
	}
}
