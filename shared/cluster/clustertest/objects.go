// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

const (
	finalizer = machine.Finalizer
	app       = "app"
)

func (h Harness) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: h.Namespace, Name: name}
}

func (h Harness) machine(name string) *machine.Machine {
	m := &machine.Machine{ObjectMeta: h.meta(name)}
	m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"kind":"KubemarkMachineProviderSpec"}`)}
	return m
}

func (h Harness) machineSet(name string) *machine.MachineSet {
	labels := map[string]string{machine.LabelMachineSet: name}
	set := &machine.MachineSet{ObjectMeta: h.meta(name)}
	set.Spec.Selector.MatchLabels = labels
	set.Spec.Template.Labels = labels
	return set
}

func (h Harness) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: h.meta(name), Data: map[string]string{"key": "value"}}
}

// node returns a Node whose name no other test uses.
func (h Harness) node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.Namespace + "-" + name}}
}

// pod returns a Pod that no scheduler looks at; an empty node leaves it unbound.
func (h Harness) pod(name, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: h.meta(name)}
	p.Labels = map[string]string{app: "web"}
	p.Spec.NodeName = node
	p.Spec.SchedulerName = "none"
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/main:1"}}
	return p
}

// budget returns a PodDisruptionBudget over all Pods of pod.
func (h Harness) budget(name string, minAvailable int) *policyv1.PodDisruptionBudget {
	available := intstr.FromInt(minAvailable)
	b := &policyv1.PodDisruptionBudget{ObjectMeta: h.meta(name)}
	b.Spec.MinAvailable = &available
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{app: "web"}}
	return b
}

// owned makes o belong to owner.
func owned[T plan.Object](o T, owners ...plan.Object) T {
	var refs []metav1.OwnerReference
	for i, owner := range owners {
		r, _ := plan.ResourceOf(plan.KindOf(owner))
		first := i == 0
		refs = append(refs, metav1.OwnerReference{
			APIVersion: r.Group.String(), Kind: string(r.Kind), Name: owner.GetName(), UID: owner.GetUID(), Controller: &first,
		})
	}
	o.SetOwnerReferences(refs)
	return o
}
