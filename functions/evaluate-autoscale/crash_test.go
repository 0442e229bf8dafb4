// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// crashing is a port that breaks once, at one write, before or after it took effect. The invocation ends there, as if
// its process were killed.
type crashing struct {
	cluster.Cluster
	mu    sync.Mutex // writes are made by several goroutines
	left  int
	after bool
	seen  func() // by one at a time
}

var errKilled = errors.New("killed")

// Apply counts down to the write that breaks.
func (c *crashing) Apply(ctx context.Context, a plan.Action) error {
	c.mu.Lock()
	c.left--
	breaks := c.left == 0
	c.mu.Unlock()
	if !breaks {
		err := c.Cluster.Apply(ctx, a)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen()
		return err
	}
	if c.after {
		if err := c.Cluster.Apply(ctx, a); err != nil {
			return err
		}
	}
	return errKilled
}

// Wherever the function dies, once, the sets never grow beyond what the Pods need, and end where they would have ended
// (R-B16, R-B17, R-B25).
func TestAnyCrashIsHealed(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			w := newWorld(t, epoch)
			w.load(t, "story.yaml", "job.yaml")
			most := int32(0)
			c := &crashing{Cluster: w.As(Function.Name), left: at, after: after, seen: func() {
				most = max(most, slices.Max(w.replicas("general-purpose-1a", "general-purpose-1b")))
			}}
			w.through(c)
			w.broken = true
			w.comeAndGo(t)
			name := fmt.Sprintf("killed at write %d, after it took effect %v", at, after)
			if got := w.replicas("general-purpose-1a", "general-purpose-1b", "infra-1a"); most > 3 || !slices.Equal(got, []int32{1, 1, 0}) {
				t.Errorf("%s: replicas %v, at most %d", name, got, most)
			}
			for _, n := range memory.List[*corev1.Node](w.Server) {
				if len(n.Spec.Taints) > 0 && !machine.IsControlPlane(n) || n.Spec.Unschedulable {
					t.Errorf("%s: node %s keeps %v", name, n.Name, n.Spec.Taints)
				}
			}
			if c.left > 0 {
				break // it never came to this write
			}
		}
	}
}

// racing is a port through which another scan runs to its end, once, just before one call.
type racing struct {
	cluster.Cluster
	left  int
	other func()
}

func (r *racing) count() {
	if r.left--; r.left == 0 {
		r.other()
	}
}

// Observe counts down to the other scan.
func (r *racing) Observe(ctx context.Context, s snapshot.Snapshot, q []snapshot.Query) (snapshot.Snapshot, error) {
	r.count()
	return r.Cluster.Observe(ctx, s, q)
}

// Apply counts down to the other scan.
func (r *racing) Apply(ctx context.Context, a plan.Action) error {
	r.count()
	return r.Cluster.Apply(ctx, a)
}

// Two scans at the same time, wherever the second one cuts in, bring what one would have brought (R-B16).
func TestConcurrentScansActOnce(t *testing.T) {
	t.Parallel()
	for at := 1; ; at++ {
		w := newWorld(t, epoch)
		w.load(t, "story.yaml", "job.yaml")
		other := w.scan
		r := &racing{Cluster: w.As(Function.Name), left: at, other: func() {
			if _, err := other(t.Context(), snapshot.Request{}); err != nil {
				t.Error(err)
			}
		}}
		w.through(r)
		if _, err := w.scan(t.Context(), snapshot.Request{}); err != nil {
			t.Fatalf("cut in at call %d: %v", at, err)
		}
		if got := w.replicas("general-purpose-1a", "general-purpose-1b"); !slices.Equal(got, []int32{3, 3}) {
			t.Errorf("cut in at call %d: replicas %v", at, got)
		}
		if r.left > 0 {
			return
		}
	}
}

// comeAndGo lets the fifty Pods run for two minutes and everything settle for ten.
func (w *world) comeAndGo(t testing.TB) {
	t.Helper()
	w.run(t, 2*time.Minute)
	for _, p := range memory.List[*corev1.Pod](w.Server) {
		if p.Namespace == "work" {
			w.must(t, memory.Patch(w.Server, p.Namespace, p.Name, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
		}
	}
	w.run(t, 8*time.Minute)
}

// An idle Node with a Pod is drained: the Pod moves, the Node goes, nothing else does (SPEC C61, C63, S68).
func TestIdleNodeWithAPodIsDrained(t *testing.T) {
	t.Parallel()
	w := newWorld(t, epoch)
	w.load(t, "story.yaml")
	pods := w.work(t, 20) // nine on the first Node, nine on the next, two on one that comes
	w.run(t, 12*time.Minute)
	if got := w.replicas("general-purpose-1a", "general-purpose-1b"); !slices.Equal(got, []int32{2, 1}) {
		t.Errorf("while the two have no other place: replicas %v", got)
	}
	for _, p := range pods[:4] { // now there is room beside the first
		w.must(t, memory.Patch(w.Server, p.Namespace, p.Name, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
	}
	w.run(t, 12*time.Minute)
	if got := w.replicas("general-purpose-1a", "general-purpose-1b"); !slices.Equal(got, []int32{1, 1}) {
		t.Errorf("replicas %v", got)
	}
	if !slices.ContainsFunc(w.Events(), func(e corev1.Event) bool { return strings.HasSuffix(e.Message, "removed with drain") }) {
		t.Errorf("no Node was removed with drain: %v", w.ours())
	}
	for _, p := range pods {
		if got := memory.Get[*corev1.Pod](w.Server, p.Namespace, p.Name); got == nil || got.Spec.NodeName == "" {
			t.Errorf("pod %s has no place", p.Name)
		}
	}
}

// work makes some of the Job's Pods.
func (w *world) work(t testing.TB, n int) []*corev1.Pod {
	t.Helper()
	other := newWorld(t, w.now)
	other.load(t, "job.yaml")
	pods := memory.List[*corev1.Pod](other.Server)[:n]
	for _, p := range pods {
		p.ResourceVersion, p.UID = "", ""
		w.must(t, w.Put(p))
	}
	return pods
}

// tainting is a port that sees since when Nodes have their taints. Writes of Nodes take a while, and the first few are lost.
type tainting struct {
	cluster.Cluster
	*world
	takes time.Duration
	lost  int
	since map[string]time.Time
	stood []time.Duration // of the victims, when they were named
}

// Apply notes when a taint stands, and how long those of victims did.
func (p *tainting) Apply(ctx context.Context, a plan.Action) error {
	u, ok := a.(plan.Update)
	if !ok {
		return p.Cluster.Apply(ctx, a)
	}
	n, isNode := u.New.(*corev1.Node)
	if isNode && len(n.Spec.Taints) > 0 {
		if p.lost--; p.lost >= 0 {
			return errKilled
		}
		p.now = p.now.Add(p.takes)
		p.since[n.Name] = p.now
	}
	if set, ok := u.New.(*machine.MachineSet); ok {
		victims, err := machine.Victims(set)
		if err != nil {
			return err
		}
		for _, v := range victims {
			p.stood = append(p.stood, p.now.Sub(p.since[v.Name]))
		}
	}
	return p.Cluster.Apply(ctx, a)
}

// A taint that somebody took off is written anew, and its Node is not empty in the eyes of who wrote it (R-B24).
func TestTaintThatWasTakenOffIsNotTrustedAtOnce(t *testing.T) {
	t.Parallel()
	w := going(t, 0)
	w.must(t, memory.Patch(w.Server, "", "a", func(n *corev1.Node) { n.Spec.Taints = nil }))
	w.once(t)
	if got := w.tainted(); w.replicas("s")[0] != 8 || len(got) != 1 {
		t.Errorf("replicas %v, Nodes with a taint %v", w.replicas("s"), got)
	}
	w.pass(t, 20*time.Second)
	if got := w.replicas("s"); got[0] != 7 {
		t.Errorf("twenty seconds later: replicas %v", got)
	}
}

// mortal is a port whose process is killed once it has written a Node.
type mortal struct {
	cluster.Cluster
	died bool
}

// Observe is of the living.
func (m *mortal) Observe(ctx context.Context, s snapshot.Snapshot, q []snapshot.Query) (snapshot.Snapshot, error) {
	if m.died {
		return s, errKilled
	}
	return m.Cluster.Observe(ctx, s, q)
}

// Apply writes, a Node as the last thing.
func (m *mortal) Apply(ctx context.Context, a plan.Action) error {
	if m.died {
		return errKilled
	}
	u, is := a.(plan.Update)
	_, node := u.New.(*corev1.Node)
	m.died = is && node
	return m.Cluster.Apply(ctx, a)
}

// Who writes a taint anew that somebody took off, and dies before it can say so, leaves nothing behind that calls the taint old (R-B24).
func TestTaintWrittenAnewIsNotOldWhoeverDies(t *testing.T) {
	t.Parallel()
	w := going(t, 0)
	w.must(t, memory.Patch(w.Server, "", "a", func(n *corev1.Node) { n.Spec.Taints = nil }))
	w.through(&mortal{Cluster: w.As(Function.Name)})
	if _, err := w.scan(t.Context(), snapshot.Request{}); !errors.Is(err, errKilled) || len(w.tainted()) != 1 {
		t.Fatal(err, w.tainted())
	}
	w.through(w.As(Function.Name))
	w.now = w.now.Add(time.Second)
	w.once(t)
	if got := w.replicas("s")[0]; got != 8 {
		t.Errorf("a second later: replicas %d", got)
	}
	w.pass(t, 20*time.Second)
	if got := w.replicas("s")[0]; got != 7 {
		t.Errorf("twenty seconds later: replicas %d", got)
	}
}

// However long the API server takes to write taints, and whoever died before, a Node counts as empty only once its taint has stood for
// five seconds: until then the scheduler may bind a Pod that it chose the Node for before (SPEC C63, R-B24).
func TestTaintStandsBeforeItsNodeIsEmpty(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		takes time.Duration
		lost  int
	}{{"at once", 0, 0}, {"slow", 1200 * time.Millisecond, 0}, {"slower", 7 * time.Second, 0}, {"after a crash", 0, 1}, {"after two", 900 * time.Millisecond, 2}} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.pool(t, "s", 6, 9, nil, nil)
		unneeded := map[types.UID]metav1.Time{}
		for i := range 6 {
			w.idler(t, "s", fmt.Sprint("n", i))
			unneeded[types.UID(fmt.Sprint("node-n", i))] = metav1.NewTime(epoch.Add(-3 * time.Hour))
		}
		w.must(t, w.Put(pod("default", "busy", "n0", resources("cpu", "3"))))
		delete(unneeded, "node-n0")
		w.remember(t, autoscaling.State{Unneeded: unneeded})
		p := &tainting{Cluster: w.As(Function.Name), world: w, takes: tt.takes, lost: tt.lost, since: map[string]time.Time{}}
		w.through(p)
		for end := w.now.Add(2 * time.Minute); w.now.Before(end); w.now = w.now.Add(3300 * time.Millisecond) {
			_, _ = w.scan(t.Context(), snapshot.Request{}) // the writes that are lost
		}
		if len(p.stood) < 4 || slices.Min(p.stood) < 5*time.Second {
			t.Errorf("%s: taints of victims stood for %v, want four for five seconds at least", tt.name, p.stood)
		}
	}
}

// mute is a port that gives no answer to writes of replicas, and does not carry them out, as long as it is to.
type mute struct {
	cluster.Cluster
	on, asked bool
}

// Apply looks for another plan on a set.
func (c *mute) Apply(ctx context.Context, a plan.Action) error {
	u, is := a.(plan.Update)
	if s, set := u.New.(*machine.MachineSet); c.on && is && set && s.Annotations[machine.AnnotationLastPlan] != u.Old.GetAnnotations()[machine.AnnotationLastPlan] {
		c.asked = true
		return errKilled
	}
	return c.Cluster.Apply(ctx, a)
}

// A write that names a victim, and that had no answer, is made once more. Although the victim's Node has gone meanwhile it names the same
// one: the set would choose another, which has Pods (R-S5, R-B21).
func TestVictimWhoseNodeIsGoneStaysNamed(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 1m, delayAfterAdd: 0s}}")
	w.set(t, "s", 2, 4, midsize(), nil)
	for _, name := range []string{"a", "b"} {
		w.member(t, "s", name, epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
	}
	w.must(t, w.Put(running("full", "a", resources("cpu", "3500m"))))
	c := &mute{Cluster: w.As(Function.Name), on: true}
	w.through(c)
	scan := func() {
		if _, err := w.scan(t.Context(), snapshot.Request{}); err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		w.now = w.now.Add(10 * time.Second)
	}
	for k := 0; !c.asked && k < 30; k++ {
		scan()
	}
	w.must(t, w.Remove("Node", "", "b", memory.Background))
	scan()
	c.on = false
	scan()
	victims, err := machine.Victims(memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "s"))
	if got := w.replicas("s"); err != nil || got[0] != 1 || len(victims) != 1 || victims[0].Name != "b" {
		t.Errorf("%d replicas, without %v: %v", got, victims, err)
	}
	w.must(t, w.Remove("Machine", machine.Namespace, "b", memory.Background))
	scan()
	if strings.Contains(memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus).Data[autoscaling.StateKey], "machine-b") {
		t.Error("the removal is remembered")
	}
}
