// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// retyped makes set a, whose Machine n is an m1.small while its next one is of another type, and set b.
func retyped(t *testing.T, w *world, next string, a map[string]string) {
	t.Helper()
	w.set(t, "a", 1, 9, a, nil)
	w.set(t, "b", 0, 9, midsize(machine.CapacityCPU, "8", machine.CapacityMemory, "32Gi", machine.AnnotationPrice, "0.5"), nil)
	w.member(t, "a", "n", epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), map[string]string{corev1.LabelInstanceTypeStable: "m1.small"})
	w.must(t, memory.Patch(w.Server, machine.Namespace, "n", func(m *machine.Machine) {
		machine.SetWord(m, machine.LabelInstanceType, "m1.small")
		m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"image":"old","flavor":"m1.small","zone":"1"}`)}
	}))
	w.must(t, memory.Patch(w.Server, machine.Namespace, "a", func(s *machine.MachineSet) {
		s.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"image":"new","flavor":"` + next + `"}`)}
	}))
}

// A set that was given another type of instance is priced as that, not as the Machines that it made before; of another image it is what
// it was (SPEC B106, C13).
func TestNextNodeHasThePriceOfItsType(t *testing.T) {
	t.Parallel()
	large, same := midsize(machine.CapacityCPU, "16", machine.CapacityMemory, "64Gi"), midsize()
	for _, tt := range []struct {
		next     string
		capacity map[string]string
		cores    string
		want     []int32
	}{
		{"m1.huge", large, "7", []int32{1, 1}},
		{"m1.tiny", large, "7", []int32{2, 0}},
		{"m1.huge", same, "3", []int32{1, 1}},
		{"m1.tiny", same, "3", []int32{2, 0}},
		{"m1.small", same, "3", []int32{2, 0}},
		{"m1.nobody-knows", same, "3", []int32{2, 0}}, // prices are left out
	} {
		w := fresh(t, "{expanders: [Price]}")
		retyped(t, w, tt.next, tt.capacity)
		w.yaml(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-autoscaler-prices, namespace: openshift-machine-api}, data: {prices: "{m1.small: 0.1, m1.huge: 2, m1.tiny: 0.05}"}}`)
		w.must(t, w.Put(running("here", "n", resources("cpu", "3")), pending("p", epoch.Add(-time.Minute), resources("cpu", tt.cores))))
		p := w.once(t).String()
		if got := w.replicas("a", "b"); !slices.Equal(got, tt.want) {
			t.Errorf("%s, %s cores: replicas %v, want %v\n%s", tt.next, tt.cores, got, tt.want, p)
		}
	}
}

// What a Node costs that came before its set was given another type is not known: it is not replaced for what the next one costs, and
// none is by it (SPEC W10).
func TestNodeOfAnotherTypeIsNotReplaced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		next string
		cpu  string
		want int32
	}{{"m1.huge", "16", 0}, {"m1.huge", "4", 0}, {"m1.small", "4", 1}} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.must(t, memory.Patch(w.Server, "", "default", func(ca *autoscaling.ClusterAutoscaler) {
			ca.Annotations = map[string]string{autoscaling.RepackAnnotation: "migration=0.01"}
		}))
		retyped(t, w, tt.next, midsize(machine.CapacityCPU, tt.cpu, machine.AnnotationPrice, "2"))
		w.must(t, w.Put(running("web", "n", resources("cpu", "3500m"))))
		w.scans(t, 6)
		if got := w.replicas("b")[0]; got != tt.want {
			t.Errorf("the next Node is an %s of %s cores: %d cheaper Nodes for the Pod of an m1.small, want %d", tt.next, tt.cpu, got, tt.want)
		}
	}
}

// A cloud without types of instances, vSphere for one: Machines have no such label, Nodes have one, which the table prices. An empty
// field that is filled in is no other type.
func TestFieldThatIsFilledInIsNoOtherType(t *testing.T) {
	t.Parallel()
	for _, snap := range []string{"", "golden"} {
		w := fresh(t, "{expanders: [Price]}")
		w.set(t, "a", 1, 9, midsize(), nil)
		w.set(t, "b", 0, 9, midsize(machine.CapacityCPU, "3500m", machine.CapacityMemory, "14Gi", machine.AnnotationPrice, "0.5"), nil)
		w.member(t, "a", "n", epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), map[string]string{corev1.LabelInstanceTypeStable: "vsphere-vm.cpu-4.mem-16gb"})
		w.must(t, memory.Patch(w.Server, machine.Namespace, "n", func(m *machine.Machine) {
			m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"snapshot":"","template":"rhcos"}`)}
		}))
		w.must(t, memory.Patch(w.Server, machine.Namespace, "a", func(s *machine.MachineSet) {
			s.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"snapshot":"` + snap + `","template":"rhcos"}`)}
		}))
		w.yaml(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-autoscaler-prices, namespace: openshift-machine-api}, data: {prices: "{vsphere-vm.cpu-4.mem-16gb: 0.1}"}}`)
		w.must(t, w.Put(running("here", "n", resources("cpu", "3")), pending("p", epoch.Add(-time.Minute), resources("cpu", "3"))))
		p := w.once(t).String()
		if got := w.replicas("a", "b"); !slices.Equal(got, []int32{2, 0}) {
			t.Errorf("snapshot %q: replicas %v, want [2 0]\n%s", snap, got, p)
		}
	}
}
