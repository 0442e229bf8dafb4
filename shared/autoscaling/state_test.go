// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func TestStateIsReadBackAsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.Custom(func(t *rapid.T) metav1.Time {
			return metav1.NewTime(time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"), 0).UTC())
		})
		want := rapid.MakeCustom[State](rapid.MakeConfig{
			Types: map[reflect.Type]*rapid.Generator[any]{
				reflect.TypeFor[metav1.Time]():  times.AsAny(),
				reflect.TypeFor[*metav1.Time](): rapid.Ptr(times, true).AsAny(),
			},
		}).Draw(t, "state")
		for id, g := range want.Groups { // what can be counted
			g.Failures = max(0, min(g.Failures, mostCounted))
			for i := range g.Useless {
				g.Useless[i].Times = max(1, min(g.Useless[i].Times, mostCounted))
			}
			want.Groups[id] = g
		}
		got, err := ParseState(want.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Fatalf("state (-written +read):\n%s", diff)
		}
	})
}

// Whatever somebody wrote for a count, one more can be read again.
func TestCountsOfAStateStayCounts(t *testing.T) {
	t.Parallel()
	s, err := ParseState(`{"schema": 1, "groups": {"b": {"failures": 9223372036854775807, "useless": [{"shape": "s", "of": "o", "node": "n", "nodeUID": "u",
		"reason": "r", "times": 9223372036854775807, "until": "2026-01-01T00:00:00Z"}]}}}`)
	if err != nil {
		t.Fatal(err)
	}
	g := s.Groups["b"]
	g.Failures++
	g.Useless[0].Times++
	s.Groups["b"] = g
	if _, err := ParseState(s.String()); err != nil {
		t.Error(err)
	}
}

func TestParseStateRefusesWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"newer schema":             `{"schema": 4}`,
		"no schema":                `{}`,
		"unknown field":            `{"schema": 1, "plans": []}`,
		"not JSON":                 `schema: 1`,
		"wrong time":               `{"schema": 1, "lastScaleUp": "soon"}`,
		"fewer failures than none": `{"schema": 1, "groups": {"a": {}, "b": {"failures": -1}}}`,
		"useless no times":         `{"schema": 1, "groups": {"b": {"useless": [{"shape": "s", "of": "o", "node": "n", "nodeUID": "u", "reason": "r", "times": 0, "until": "2026-01-01T00:00:00Z"}]}}}`,
		"useless fewer times":      `{"schema": 1, "groups": {"b": {"useless": [{"shape": "s", "of": "o", "node": "n", "nodeUID": "u", "reason": "r", "times": -1, "until": "2026-01-01T00:00:00Z"}]}}}`,
		"a field twice":            `{"schema": 1, "removals": [], "removals": []}`,
	} {
		if s, err := ParseState(text); err == nil {
			t.Errorf("%s: read %+v", name, s)
		}
	}
	if s, err := ParseState(""); err != nil || s.Schema != stateSchema {
		t.Errorf("no text: state %+v, error %v", s, err)
	}
}

// Who knows schema 1 alone meets a newer one while a removal is fresh, not a field that it does not know: it leaves that state alone
// (RELIABILITY G9), and can read what is written before and after.
func TestStateWithAFreshRemovalIsOfANewerSchema(t *testing.T) {
	t.Parallel()
	for fresh, want := range map[bool]int{false: 1, true: 2} {
		for _, was := range []int{1, 2} {
			text := State{Schema: was, Removals: []Removal{{Plan: "a"}, {Plan: "b", Fresh: fresh}}}.String()
			if s, err := ParseState(text); err != nil || s.Schema != want || s.Removals[1].Fresh != fresh || NewerState(text) {
				t.Errorf("fresh %t: schema %d, error %v, want %d", fresh, s.Schema, err, want)
			}
		}
	}
	if !NewerState(`{"schema": 4}`) {
		t.Error("schema 4 is not newer")
	}
}

// So does who does not know that it is told what is left of a list (RELIABILITY G9).
func TestStateThatSaysWhatIsLeftIsOfANewerSchema(t *testing.T) {
	t.Parallel()
	for _, fresh := range []bool{false, true} {
		state := State{Removals: []Removal{{Plan: "a", Fresh: fresh}}, Seen: Seen{Pods: 40, Left: &Left{Pods: 3}}}
		if s, err := ParseState(state.String()); err != nil || s.Schema != 3 || s.Seen.Left == nil || NewerState(state.String()) {
			t.Errorf("fresh %t: schema %d, error %v, want 3", fresh, s.Schema, err)
		}
	}
}

func FuzzParseState(f *testing.F) {
	f.Add(`{"schema": 1, "removals": [{"plan": "a", "node": "n"}]}`)
	f.Add(`{"schema": 1, "unneeded": {"u": "2026-01-01T00:00:00Z"}, "seen": {"nodes": 3}}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseState(text)
		if err != nil {
			return
		}
		if again, err := ParseState(s.String()); err != nil || again.String() != s.String() {
			t.Errorf("read %q, wrote %q, read again %q: %v", text, s, again, err)
		}
	})
}

func TestRemovalOfIsThePlanInTheTaint(t *testing.T) {
	t.Parallel()
	s := State{Removals: []Removal{{Plan: "a", NodeUID: "1"}, {Plan: "b", NodeUID: "2", Drain: true}}}
	node := func(uid, key, value string) *corev1.Node {
		n := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "other"}, {Key: key, Value: value}}}}
		n.UID = types.UID(uid)
		return n
	}
	tests := []struct {
		name string
		node *corev1.Node
		want bool
	}{
		{"the plan of this Node", node("2", "gone", "b"), true},
		{"the plan of another Node", node("1", "gone", "b"), false},
		{"a plan of before", node("2", "gone", "z"), false},
		{"another taint", node("2", "going", "b"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if r, ok := s.RemovalOf(tt.node, "gone"); ok != tt.want || ok && !r.Drain {
				t.Errorf("got %+v, %v", r, ok)
			}
		})
	}
}

// A group that nobody here named, as in a state that people wrote, is in no namespace.
func TestNamespaceOfARemoval(t *testing.T) {
	t.Parallel()
	for group, want := range map[string]string{"MachineSet/machines/a": "machines", "a": "", "": "", "MachineSet/machines/a/b": "", "MachineSet/a": ""} {
		if got := (Removal{Group: group}).Namespace(); got != want {
			t.Errorf("%q: %q, want %q", group, got, want)
		}
	}
}

// The cluster last grew when its last growth was decided, of which the set alone knows until the next write (SPEC C53).
func TestScaledUp(t *testing.T) {
	t.Parallel()
	at := func(minute int) *metav1.Time {
		return new(metav1.NewTime(time.Date(2026, 1, 1, 12, minute, 0, 0, time.UTC)))
	}
	s := State{LastScaleUp: at(1), Groups: map[string]NodeGroup{
		"grown":  {Resize: &Resize{From: 1, To: 2, At: *at(3)}},
		"before": {Resize: &Resize{From: 1, To: 2, At: *at(2)}},
		"shrunk": {Resize: &Resize{From: 2, To: 1, At: *at(4)}},
		"none":   {},
	}}
	if got := s.ScaledUp(); !got.Equal(at(3)) {
		t.Errorf("grown at %v, want %v", got, at(3))
	}
	if got := (State{}).ScaledUp(); got != nil {
		t.Errorf("a cluster that never grew did at %v", got)
	}
}
