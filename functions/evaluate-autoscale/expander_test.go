// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A table of prices names an instance type as its cloud does, or as the label of its Machines, where that is another word.
func TestPriceOfATypeThatIsNoLabel(t *testing.T) {
	t.Parallel()
	const flavor = "SCS-4V:16:100"
	m := &machine.Machine{}
	machine.SetWord(m, machine.LabelInstanceType, flavor)
	g := &group{set: &machine.MachineSet{}, members: []member{{machine: m}}}
	for _, name := range []string{flavor, "SCS-4V-16-100"} {
		if got := priceOf(g, map[string]*float64{name: new(0.2)}); got != milliCents(0.2) {
			t.Errorf("%s costs %d", name, got)
		}
	}
	if got := priceOf(g, map[string]*float64{"SCS-8V:32": new(0.2)}); got != 0 {
		t.Errorf("a price of another type is taken: %d", got)
	}
	for price, want := range map[string]float64{"": 0.2, "none": 0.2, "-1": 0.2, "0": 0, "0.0": 0, "0.1": 0.1} {
		g.set.Annotations = map[string]string{machine.AnnotationPrice: price}
		if got := priceOf(g, map[string]*float64{flavor: new(0.2)}); got != milliCents(want) {
			t.Errorf("the set says %q, the table 0.2: %d", price, got)
		}
	}
}

// Whatever is ranked and priced: a better rank is always cheaper, whatever it costs as far as there is room, within a rank the
// cheaper one is, and no price overflows when as many Nodes as there may be are added up.
func TestRanksComeBeforePrices(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ranks, highest int64
		strict         bool // a better rank is cheaper even if its price is higher
	}{{20, 1, true}, {11, 3, true}, {7, 50, true}, {3, 5000, true}, {2, 1_000_000, true}, {11, 100_000, false}, {30, 100_000_000_000, false}} {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(1, 30).Draw(t, "options")
			draw := func(label string, low, high int64) []int64 {
				return rapid.SliceOfN(rapid.Int64Range(low, high), n, n).Draw(t, label)
			}
			above, base := ranks([][]int64{draw("above", 1, tt.ranks)}, n), draw("base", 1, tt.highest)
			below := ranks([][]int64{draw("below", 0, 3)}, n)
			options := make([]*option, n)
			for i := range options {
				options[i] = &option{}
			}
			combine(options, above, base, below)
			for i := range n {
				a := options[i].offer.Price
				if a < 1 || a*maxUpcoming < a {
					t.Fatalf("price %d", a)
				}
				for k := range n {
					b := options[k].offer.Price
					sameRank := above[i] == above[k]
					switch {
					case sameRank && base[i] < base[k] && a > b, sameRank && base[i] == base[k] && below[i] < below[k] && a > b:
						t.Fatalf("%d costs %d, %d costs %d: the order of prices is lost", i, a, k, b)
					case above[i] < above[k] && above[k] <= mostRanks && (tt.strict || base[i] < base[k]) && a >= b:
						t.Fatalf("rank %d costs %d, rank %d costs %d", above[i], a, above[k], b)
					}
				}
			}
		})
	}
}

// A priority holds however much larger the Nodes are that it prefers, and however many priorities there are (SPEC B113).
func TestPriorityHoldsWhateverTheSize(t *testing.T) {
	t.Parallel()
	large := midsize(machine.CapacityCPU, "96", machine.CapacityMemory, "1Ti", machine.CapacityGPUCount, "8")
	for _, names := range [][]string{{"own", "a"}, {"own", "a", "b", "c", "d", "e", "f", "g"}} {
		w := fresh(t, "{expanders: [Priority]}")
		priorities := &corev1.ConfigMap{Data: map[string]string{prioritiesKey: ""}}
		priorities.Namespace, priorities.Name = machine.Namespace, machine.ConfigMapPriority
		for i, name := range names {
			capacity := midsize(machine.CapacityCPU, "2")
			if i == 0 {
				capacity = large
			}
			w.set(t, name, 0, 9, capacity, nil)
			priorities.Data[prioritiesKey] += fmt.Sprintf("%d: [\"/%s$\"]\n", 100-i, name)
		}
		w.must(t, w.Put(priorities, pod("default", "p", "", resources("cpu", "500m"))))
		w.scans(t, 3)
		if got := w.replicas(names...); got[0] != 1 {
			t.Errorf("of %v the first is preferred: replicas %v", names, got)
		}
	}
}

// Every set is drawn at some time, and always the same one on the same state (SPEC C28).
func TestRandomDrawsEverySet(t *testing.T) {
	t.Parallel()
	options := []*option{{group: &group{id: "a"}}, {group: &group{id: "b"}}, {group: &group{id: "c"}}}
	first := map[int]int{}
	for i := range 60 {
		sc := &scan{}
		sc.before.LastScaleUp = new(metav1.NewTime(epoch.Add(time.Duration(i) * time.Minute)))
		got := sc.byChance(options)
		if again := sc.byChance(options); !slices.Equal(got, again) {
			t.Fatalf("drawn %v, then %v", got, again)
		}
		first[slices.Index(got, slices.Min(got))]++
	}
	for i := range options {
		if first[i] < 5 {
			t.Errorf("set %d came first %d times of 60: %v", i, first[i], first)
		}
	}
}

// The packing keeps so many ranks apart, and no more: that a lower priority may be used before a higher one is not kept quiet
// (SPEC B113).
func TestTooManyPrioritiesAreTold(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]struct {
		told   bool
		higher int32
	}{mostRanks + 1: {false, 1}, mostRanks + 4: {true, 0}} {
		w := fresh(t, "{expanders: [Priority]}")
		priorities := ""
		for i := range n {
			size, labels := "8", map[string]string{}
			if i >= n-2 {
				labels["pool"] = "here"
			}
			if i == n-1 {
				size = "4"
			}
			w.set(t, fmt.Sprintf("s-%02d", i), 0, 4, map[string]string{machine.CapacityCPU: size, machine.CapacityMemory: "16Gi"}, labels)
			priorities += fmt.Sprintf(`%d: [s-%02d]\n`, 100-i, i)
		}
		w.yaml(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-autoscaler-priority-expander, namespace: openshift-machine-api, uid: p}, data: {priorities: "`+priorities+`"}}`)
		p := pending("p", epoch.Add(-time.Minute), resources("cpu", "1"))
		p.Spec.NodeSelector = map[string]string{"pool": "here"}
		w.must(t, w.Put(p))
		if told := strings.Contains(w.once(t).String(), "are kept apart"); told != want.told {
			t.Errorf("%d priorities: told %v", n, told)
		}
		if got := w.replicas(fmt.Sprintf("s-%02d", n-2)); got[0] != want.higher {
			t.Errorf("%d priorities: %d Nodes of the higher one", n, got)
		}
	}
}

// A few lines that repeat themselves would take the memory of the function in each scan (2c): neither priorities, nor prices, nor a status.
func TestFilesThatExpandHaveNoSay(t *testing.T) {
	t.Parallel()
	text := "1: [&a \"" + strings.Repeat("e", 20000) + "\"" + strings.Repeat(",*a", 5000) + "]\n"
	if all, err := parsePriorities(text); !errors.Is(err, provider.ErrExpands) || len(all) > 0 {
		t.Errorf("%d priorities: %v", len(all), err)
	}
	sc := &scan{Snapshot: snapshot.Snapshot{ConfigMaps: []*corev1.ConfigMap{{
		ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapPrices}, Data: map[string]string{pricesKey: text},
	}}}}
	if table := sc.priceTable(); table != nil || len(sc.notes) != 1 || !strings.Contains(sc.notes[0].Message, provider.ErrExpands.Error()) {
		t.Errorf("%v, %v", table, sc.notes)
	}
}

// What cannot be a price prices nothing: a set that says it is not the cheapest of all (SPEC B106).
func TestPricesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, perHour := range []float64{-1, -1e-9, 1e6, 1e300, math.Inf(1), math.NaN()} {
		if got := milliCents(perHour); got != 0 {
			t.Errorf("%g per hour: %d", perHour, got)
		}
	}
}

// A ConfigMap of priorities that names no group has no say: the plan is the cheapest, and is told so (SPEC B113).
func TestPrioritiesOfNoGroupHaveNoSay(t *testing.T) {
	t.Parallel()
	for of, says := range map[string]bool{"other": false, "s": true} {
		w := fresh(t, "{expanders: [Priority]}")
		w.pool(t, "s", 0, 4, nil, nil)
		w.yaml(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-autoscaler-priority-expander, namespace: openshift-machine-api, uid: p}, data: {priorities: "50: [`+of+`$]\n"}}`)
		w.must(t, w.Put(pod("default", "waits", "", resources("cpu", "3"))))
		if told := strings.Contains(w.once(t).String(), "come cheaper"); told == says || w.replicas("s")[0] != 1 {
			t.Errorf("priorities of %q: told that nothing comes cheaper: %t, replicas %v", of, told, w.replicas("s"))
		}
	}
}
