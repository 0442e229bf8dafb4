// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var ofDaemonSet = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "ds", UID: "ds", Controller: new(true)}}

var ready = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Snapshot returns the objects of a cluster in the workload's situation.
func (w *Workload) Snapshot() snapshot.Snapshot {
	s := snapshot.Snapshot{Now: noon}
	ca := &autoscaling.ClusterAutoscaler{}
	ca.Name = autoscaling.Name
	ca.Spec.BalanceSimilarNodeGroups = new(true)
	ca.Spec.ScaleDown = &autoscaling.ScaleDown{Enabled: true}
	s.Add(ca)
	exist := map[string]int{}
	for i, n := range w.NodesWithPods() {
		group := w.Nodes[i].Group
		exist[group]++
		n.UID, n.CreationTimestamp = types.UID("node-"+n.Name), metav1.NewTime(noon.Add(-time.Hour))
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
		m := &machine.Machine{}
		m.Namespace, m.Name, m.UID, m.CreationTimestamp = machine.Namespace, n.Name, types.UID("machine-"+n.Name), n.CreationTimestamp
		m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: group, UID: types.UID("set-" + group), Controller: new(true)}}
		m.Status.NodeRef = &corev1.ObjectReference{Name: n.Name, UID: n.UID}
		s.Add(n.Node, m)
		for k, p := range n.Pods {
			p.Spec.NodeName, p.Status.Phase, p.Status.Conditions = n.Name, corev1.PodRunning, ready
			if p.Namespace == "system" {
				p.Name = fmt.Sprintf("%s-%d-on-%s", p.Name, k, n.Name)
				p.OwnerReferences = ofDaemonSet
			}
			s.Add(p)
		}
	}
	for _, p := range w.Waiting() {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		s.Add(p)
	}
	for i := range w.Apps {
		if b := w.Apps[i].budget(); b != nil {
			s.Add(b)
		}
	}
	for _, ds := range w.daemons() {
		s.Add(ds)
	}
	for i := range w.Groups {
		w.Groups[i].addTo(&s, exist[w.Groups[i].Name])
	}
	return s
}

// budget returns the disruption budget of an app; nil if it has none. All its Pods are healthy.
func (a *app) budget() *policyv1.PodDisruptionBudget {
	if a.PDBMaxUnavailable == nil {
		return nil
	}
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: a.Name}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.Name}}
	b.Spec.MaxUnavailable = new(intstr.FromInt32(*a.PDBMaxUnavailable))
	for _, r := range a.Running {
		b.Status.ExpectedPods += int32(r[1])
	}
	b.Status.CurrentHealthy = b.Status.ExpectedPods
	b.Status.DisruptionsAllowed = min(*a.PDBMaxUnavailable, b.Status.ExpectedPods)
	b.Status.DesiredHealthy = b.Status.ExpectedPods - b.Status.DisruptionsAllowed
	return b
}

// addTo adds the MachineSet of a group with its MachineAutoscaler.
func (g *group) addTo(s *snapshot.Snapshot, replicas int) {
	ma := &autoscaling.MachineAutoscaler{Spec: autoscaling.MachineAutoscalerSpec{
		MaxReplicas: int32(g.Max), ScaleTargetRef: autoscaling.ScaleTargetRef{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: g.Name},
	}}
	ma.Namespace, ma.Name, ma.Finalizers = machine.Namespace, g.Name, []string{autoscaling.Finalizer}
	ma.Status.LastTargetRef = &ma.Spec.ScaleTargetRef
	ma.Status.Conditions = []metav1.Condition{{Type: "Applied", Status: metav1.ConditionTrue, Reason: "SuccessfulUpdate"}}
	set := &machine.MachineSet{}
	set.Namespace, set.Name, set.UID, set.ResourceVersion = machine.Namespace, g.Name, types.UID("set-"+g.Name), "1"
	set.Spec.Replicas = new(int32(replicas))
	set.Spec.Template.Spec.Labels = g.Labels
	for _, t := range g.Taints {
		set.Spec.Template.Spec.Taints = append(set.Spec.Template.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	cpu := requests(g.CPU, g.Mem, 0)[corev1.ResourceCPU]
	set.Annotations = map[string]string{
		machine.AnnotationAutoscaler: machine.Namespace + "/" + g.Name, machine.AnnotationMinSize: "0", machine.AnnotationMaxSize: strconv.Itoa(g.Max),
		machine.CapacityCPU: cpu.String(), machine.CapacityMemory: strconv.FormatInt(g.Mem<<20, 10), machine.CapacityMaxPods: strconv.FormatInt(g.Pods, 10),
		machine.CapacityGPUCount: strconv.FormatInt(g.GPU, 10), machine.AnnotationPrice: strconv.FormatFloat(g.Price, 'f', -1, 64),
	}
	s.Add(ma, set)
}
