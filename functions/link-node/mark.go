// SPDX-License-Identifier: Apache-2.0

package linknode

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// marked reports whether n carries everything that m wants: the annotation that names m, the labels and annotations
// of m's spec (B2), its taints by key and effect (B3), but for startup taints. What n carries beyond that is nobody's business here.
func marked(m *machine.Machine, n *corev1.Node, c machine.Carried) bool {
	return !unnamed(m, n) && carries(n.Labels, c.Labels) && carries(n.Annotations, wanted(m, c)) && len(missing(m, c, n)) == 0
}

// mark returns n with everything that m wants; labels and annotations of the same key are overwritten (B64, S29). A Node
// that is made anew gets back what the former one carried, once: what people take off it later stays off (E36).
func mark(m *machine.Machine, n *corev1.Node, c machine.Carried) *corev1.Node {
	next := n.DeepCopy()
	if n.Annotations[machine.AnnotationMachine] == "" {
		labels, annotations := machine.KeptNode(m)
		next.Labels, next.Annotations = union(labels, n.Labels), union(annotations, n.Annotations)
		next.Spec.Unschedulable = n.Spec.Unschedulable || machine.WasCordoned(m)
	}
	for k, v := range c.Labels {
		metav1.SetMetaDataLabel(&next.ObjectMeta, k, v)
	}
	for k, v := range wanted(m, c) {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, k, v)
	}
	next.Spec.Taints = append(next.Spec.Taints, missing(m, c, n)...)
	if unnamed(m, n) {
		next.Spec.ProviderID = machine.ProviderID(m)
	}
	return next
}

// union returns everything of both; of one key what is newer.
func union(older, newer map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, older)
	maps.Copy(all, newer)
	return all
}

// unnamed reports whether n is a bare-metal host that nobody told its provider id: no cloud controller does (E34).
func unnamed(m *machine.Machine, n *corev1.Node) bool {
	return n.Spec.ProviderID == "" && machine.BareMetalHost(machine.ProviderID(m)) != ""
}

// wanted returns the annotations for m's Node; the one that names m is ours whatever the spec says.
func wanted(m *machine.Machine, c machine.Carried) map[string]string {
	all := maps.Clone(c.Annotations)
	if all == nil {
		all = map[string]string{}
	}
	all[machine.AnnotationMachine] = m.Namespace + "/" + m.Name
	return all
}

func carries(has, wants map[string]string) bool {
	for k, v := range wants {
		if got, ok := has[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// missing returns the taints that n lacks. Those that are taken off once it has started come with the annotation that names m, and no more.
func missing(m *machine.Machine, c machine.Carried, n *corev1.Node) []corev1.Taint {
	var add []corev1.Taint
	named := n.Annotations[machine.AnnotationMachine] == m.Namespace+"/"+m.Name
	for _, t := range c.Taints {
		same := func(have corev1.Taint) bool { return have.MatchTaint(&t) }
		if !(named && machine.StartupTaint(t.Key)) && !slices.ContainsFunc(n.Spec.Taints, same) && !slices.ContainsFunc(add, same) {
			add = append(add, t)
		}
	}
	return add
}
