// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// Whatever stands in the capacity annotations of a set, its Nodes are of positive amounts, or of none that is known; and that
// takes no time.
func FuzzCapacity(f *testing.F) {
	f.Add("4", "16Gi", "110", "1", "a=b,c", "k=v:NoSchedule,k:NoExecute")
	f.Add("1e-99999999", "1e99999999", "0.5", "-1", "=", ":")
	f.Add("500m", "", "1E9", "9223372036854775807", "a=b=c", "k")
	f.Fuzz(func(t *testing.T, cpu, memory, pods, gpus, ofLabels, ofTaints string) {
		for _, keys := range [][4]string{
			{machine.CapacityCPU, machine.CapacityMemory, machine.CapacityMaxPods, machine.CapacityGPUCount},
			{machine.AnnotationVCPU, machine.AnnotationMemoryMb, machine.AnnotationMaxPods, machine.AnnotationGPU},
		} {
			set := aSet(map[string]string{
				keys[0]: cpu, keys[1]: memory, keys[2]: pods, keys[3]: gpus, machine.CapacityLabels: ofLabels, machine.CapacityTaints: ofTaints,
			})
			n, ok := Templates{Now: noon}.Of(set, nil)
			if ok != FromZero(set) {
				t.Errorf("a template %t, from zero %t", ok, !ok)
			}
			if !ok {
				continue
			}
			for name, q := range n.Status.Allocatable {
				if v := Amount(name, q); q.Sign() <= 0 || v <= 0 {
					t.Errorf("%s of %s is %d", &q, name, v)
				}
			}
		}
	})
}

// As many taints as an annotation has room for are read in no time: else one set would hold up the scan for all. Of the same key and effect
// the last one counts.
func TestManyTaintsTakeNoTime(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("a=1:NoSchedule,a=2:NoExecute,")
	for i := 0; text.Len() < 250_000; i++ {
		fmt.Fprintf(&text, "%x.:N,", i)
	}
	text.WriteString("a=3:NoSchedule")
	set := aSet(map[string]string{machine.CapacityCPU: "4", machine.CapacityMemory: "16Gi", machine.CapacityTaints: text.String()})
	begin := time.Now()
	n, ok := Templates{Now: noon}.Of(set, nil)
	if took := time.Since(begin); took > time.Second { // it takes some milliseconds, or as many seconds
		t.Errorf("it took %v", took)
	}
	var as []string
	for _, x := range n.Spec.Taints {
		if x.Key == "a" {
			as = append(as, x.Value)
		}
	}
	if !ok || len(n.Spec.Taints) < 25_000 || !slices.Equal(as, []string{"3", "2"}) {
		t.Errorf("%t, %d taints, those of key a are %q", ok, len(n.Spec.Taints), as)
	}
	begin = time.Now()
	if own := (Templates{Now: noon}).OwnTaints(set, n.Node); own != 0 || time.Since(begin) > time.Second {
		t.Errorf("%d of its taints the set does not say, after %v", own, time.Since(begin))
	}
}

// A selector that makes no sense selects nothing; one that does agrees with what it is made of.
func FuzzSelector(f *testing.F) {
	f.Add("app", "web", "tier", "In", "a", "b")
	f.Add("", "", "a/b/c", "Exists", "", "x")
	f.Add("app", "web", "app", "DoesNotExist", "", "")
	f.Add("app", "web", "app", "Gt", "1", "2")
	f.Fuzz(func(t *testing.T, key, value, of, operator, one, other string) {
		s := &metav1.LabelSelector{
			MatchLabels:      map[string]string{key: value},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: of, Operator: metav1.LabelSelectorOperator(operator), Values: []string{one, other}}},
		}
		selector := selectorOf(s)
		has := labels.Set{key: value, of: one}
		if !selector.Matches(has) {
			return
		}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Labels: has}}
		if m := (matcher{namespaces: []string{"n"}, selector: selector}); !m.pod(p) || m.String() == "" {
			t.Errorf("%v does not select %v", m, has)
		}
		if has[key] != value || operator != string(metav1.LabelSelectorOpIn) && operator != string(metav1.LabelSelectorOpExists) {
			t.Errorf("%v selects %v", s, has)
		}
	})
}
