// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// DaemonPods returns the Pods that DaemonSets would run on the Node.
func (t Templates) DaemonPods(n *corev1.Node) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, ds := range t.Daemons {
		if ds.DeletionTimestamp != nil {
			continue
		}
		p := &corev1.Pod{ObjectMeta: *ds.Spec.Template.ObjectMeta.DeepCopy(), Spec: Complete(ds.Spec.Template.Spec)}
		t.admitted(ds, p)
		p.Namespace, p.Name = ds.Namespace, ds.Name
		p.Spec.Tolerations = append(slices.Clone(p.Spec.Tolerations), daemonTolerations(p)...)
		d := demand{pod: p, affinity: nodeAffinityOf(p)}
		if d.admits(n) == fine {
			pods = append(pods, p)
		}
	}
	return pods
}

// madeFromGeneration is the label of a DaemonSet's Pod that says which of its templates it was made from.
const madeFromGeneration = "pod-template-generation"

// admitted makes p, which is to be made from the template of ds, ask for what its youngest Pod does: what a LimitRange, a class or a
// webhook made of that template is nowhere else to be read. Nothing is known of a template that none was made from yet.
func (t Templates) admitted(ds *appsv1.DaemonSet, p *corev1.Pod) {
	as := t.Youngest[ds.UID]
	if as == nil || as.Labels[madeFromGeneration] != ds.Annotations[appsv1.DeprecatedTemplateGeneration] {
		return
	}
	p.Spec.Containers, p.Spec.InitContainers = as.Spec.Containers, as.Spec.InitContainers
	p.Spec.Overhead, p.Spec.Resources = as.Spec.Overhead, as.Spec.Resources
}

// daemonTolerations are those that the DaemonSet controller adds to every Pod.
func daemonTolerations(p *corev1.Pod) []corev1.Toleration {
	tolerate := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	}
	all := []corev1.Toleration{
		tolerate(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute),
		tolerate(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute),
		tolerate(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule),
		tolerate(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule),
		tolerate(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule),
		tolerate(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule),
	}
	if p.Spec.HostNetwork {
		all = append(all, tolerate(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule))
	}
	return all
}
