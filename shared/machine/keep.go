// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// passing are annotations that say what is being done with a Node: of one that comes back it is not true any more.
var passing = []string{AnnotationCordonedBy, AnnotationScaleDownReason}

// maxKept bounds what is kept of a Node's labels, and of its annotations, in bytes: all annotations of an object have 256 KiB, and quotes
// take two bytes where they are kept. Where others take most of that, unkept is left beside what is kept.
const (
	maxKept = 1 << 16
	unkept  = 1 << 14
)

// KeepNode writes on m what n carries, and that people cordoned it, for the Node that will take n's place (SPEC E36). It returns the keys of what m has no room for, which is
// what is longest.
func KeepNode(m *Machine, n *corev1.Node) (left []string, err error) {
	annotations := maps.Clone(n.Annotations)
	maps.DeleteFunc(annotations, func(k, _ string) bool { return slices.Contains(passing, k) })
	room := 1<<18 - unkept
	for k, v := range m.Annotations {
		room -= len(k) + len(v)
	}
	for key, values := range map[string]map[string]string{AnnotationNodeLabels: n.Labels, AnnotationNodeAnnotations: annotations} {
		kept, gone := within(values, min(maxKept, room/2))
		left = append(left, gone...)
		text, err := json.Marshal(kept)
		if err != nil {
			return nil, fmt.Errorf("keep what node %s carries: %w", n.Name, err)
		}
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, string(text))
	}
	delete(m.Annotations, AnnotationNodeCordoned)
	if _, lent := n.Annotations[AnnotationCordonedBy]; n.Spec.Unschedulable && !lent {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, AnnotationNodeCordoned, "")
	}
	slices.Sort(left)
	return left, nil
}

// within returns the part of values that has room in an annotation of so many bytes, and the keys of the rest, which has the longest values.
func within(values map[string]string, room int) (kept map[string]string, left []string) {
	size := func(key string) int {
		text, _ := json.Marshal(map[string]string{key: values[key]}) // of texts it never fails
		return len(text)
	}
	keys := slices.Sorted(maps.Keys(values))
	slices.SortStableFunc(keys, func(a, b string) int { return len(values[a]) - len(values[b]) })
	kept = map[string]string{}
	for _, key := range keys {
		if room -= size(key); room < 0 {
			left = append(left, key)
			continue
		}
		kept[key] = values[key]
	}
	return kept, left
}

// KeptNode returns what m's Node carried before it was removed; nothing of what cannot be read.
func KeptNode(m *Machine) (labels, annotations map[string]string) {
	for key, into := range map[string]*map[string]string{AnnotationNodeLabels: &labels, AnnotationNodeAnnotations: &annotations} {
		if json.Unmarshal([]byte(m.Annotations[key]), into) != nil {
			*into = nil
		}
	}
	return labels, annotations
}

// WasCordoned reports whether people had cordoned m's Node before it was removed.
func WasCordoned(m *Machine) bool {
	_, was := m.Annotations[AnnotationNodeCordoned]
	return was
}

// ForgetNode takes off m what KeepNode wrote, and that its host was off.
func ForgetNode(m *Machine) {
	for _, key := range []string{AnnotationPoweredOff, AnnotationNodeLabels, AnnotationNodeAnnotations, AnnotationNodeCordoned} {
		delete(m.Annotations, key)
	}
}

// Restarting reports whether m's Node was taken away with the host's power, or is about to be.
func Restarting(m *Machine) bool {
	_, off := m.Annotations[AnnotationPoweredOff]
	_, kept := m.Annotations[AnnotationNodeLabels]
	return off || kept
}
