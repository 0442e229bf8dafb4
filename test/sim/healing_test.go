// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	drainnode "github.com/machine-functions/machine-functions/functions/drain-node"
	linknode "github.com/machine-functions/machine-functions/functions/link-node"
	provisionmachine "github.com/machine-functions/machine-functions/functions/provision-machine"
	"github.com/machine-functions/machine-functions/functions/remediate"
	scalemachineset "github.com/machine-functions/machine-functions/functions/scale-machineset"
	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// clinic returns a world with a set whose Machines all run, and a check.
func clinic(t *testing.T, machines int32, check plan.Object) *World {
	t.Helper()
	w := NewWorld(scalemachineset.Function, provisionmachine.Function, linknode.Function, drainnode.Function, remediate.Function)
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machine.NamespaceSystem, UID: "this-cluster"}}
	if err := w.API.Put(system, Set("worker", machines), check); err != nil {
		t.Fatal(err)
	}
	settle(t, w, 20)
	if got := running(w); got != int(machines) {
		t.Fatalf("%d Machines run, want %d: %s", got, machines, state(w))
	}
	return w
}

// check returns a MachineHealthCheck: not Ready for five minutes is sick.
func check(maxUnhealthy string, annotations map[string]string) *machine.MachineHealthCheck {
	h := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "workers", Annotations: annotations}}
	h.Spec.MaxUnhealthy = new(intstr.Parse(maxUnhealthy))
	for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
		h.Spec.UnhealthyConditions = append(h.Spec.UnhealthyConditions, machinev1beta1.UnhealthyCondition{
			Type: corev1.NodeReady, Status: status, Timeout: metav1.Duration{Duration: 5 * time.Minute},
		})
	}
	return h
}

// running counts the Machines with a Node that is Ready.
func running(w *World) int {
	ready := map[string]bool{}
	for _, n := range memory.List[*corev1.Node](w.API) {
		ready[n.Name] = machine.NodeReady(n)
	}
	n := 0
	for _, m := range memory.List[*machine.Machine](w.API) {
		if ref := m.Status.NodeRef; machine.Phase(m) == machine.PhaseRunning && ref != nil && ready[ref.Name] {
			n++
		}
	}
	return n
}

// strike gives the first so many Nodes a Ready condition.
func strike(t *testing.T, w *World, nodes int, status corev1.ConditionStatus) {
	t.Helper()
	for _, n := range memory.List[*corev1.Node](w.API)[:nodes] {
		err := memory.Patch(w.API, "", n.Name, func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(w.Now())}}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// deletions counts the Machines that remediate deleted.
func deletions(w *World) int {
	n := 0
	for _, wr := range w.API.Writes() {
		if wr.Actor == remediate.Function.Name && wr.Verb == "delete" && wr.Resource == "machines" && wr.Err == nil {
			n++
		}
	}
	return n
}

// The recipe of the walk-through, with a check of either group: a kubelet stops, its Node turns NotReady, five minutes
// later the instance goes, another comes, its Node is Ready (S88, S90).
func TestReplacesASickNode(t *testing.T) {
	t.Parallel()
	legacy := &machine.LegacyHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "example"}}
	legacy.Spec.Selector.MatchLabels = map[string]string{machine.LabelMachineSet: "worker"}
	for name, check := range map[string]plan.Object{"machine.openshift.io": check("40%", nil), "healthchecking.openshift.io": legacy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := clinic(t, 3, check)
			before := memory.List[*corev1.Node](w.API)[0]
			strike(t, w, 1, corev1.ConditionUnknown)
			if err := w.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
			shown := len(w.API.Writes())
			run(t, w, 28)
			if waiting := w.API.Writes()[shown:]; len(waiting) != 0 {
				t.Fatalf("waiting is not quiet: %v", waiting)
			}
			run(t, w, 12)
			if got, want := state(w), "machines map[Running:3] nodes 3 instances 3"; got != want || running(w) != 3 || deletions(w) != 1 {
				t.Errorf("%s, %d ready, %d deleted; want %s", got, running(w), deletions(w), want)
			}
			for _, n := range memory.List[*corev1.Node](w.API) {
				if n.UID == before.UID {
					t.Error("the sick Node is still there")
				}
			}
			told := slices.ContainsFunc(w.API.Events(), func(e corev1.Event) bool { return e.Reason == "MachineDeleted" })
			if !told || len(w.Cloud.History()) == 0 {
				t.Error("nobody was told why")
			}
		})
	}
}

// guard is one of the things that hold remediation back in a storm, which strikes half of ten Nodes.
type guard struct {
	maxUnhealthy string
	annotations  map[string]string
	budget       map[string]string      // of the ConfigMap machine-disruption
	status       corev1.ConditionStatus // that the storm gives to Nodes
	recover      int                    // so many Nodes that are Ready again after ten minutes
	most         int                    // Machines that may be deleted in a quarter of an hour
}

// What holds remediation back in a storm does, while three copies of every function run at once and no replacement comes up.
// Each control is the same storm with just that guard lifted: then more is deleted, so the test would notice (R-S10).
func TestStorm(t *testing.T) {
	t.Parallel()
	all := map[string]string{machine.AnnotationMaxInFlight: "100%", machine.AnnotationStormCooldown: "0s"}
	for name, tt := range map[string]struct{ guarded, lifted guard }{
		"maxUnhealthy": {
			guard{maxUnhealthy: "40%", annotations: all, status: corev1.ConditionFalse, most: 0},
			guard{maxUnhealthy: "50%", annotations: all, status: corev1.ConditionFalse},
		},
		"partition": {
			guard{maxUnhealthy: "100%", annotations: all, status: corev1.ConditionUnknown, most: 0},
			guard{maxUnhealthy: "100%", annotations: all, status: corev1.ConditionFalse},
		},
		"in flight": {
			guard{maxUnhealthy: "100%", status: corev1.ConditionFalse, most: 3},
			guard{maxUnhealthy: "100%", annotations: all, status: corev1.ConditionFalse},
		},
		"budget": {
			guard{maxUnhealthy: "100%", annotations: all, status: corev1.ConditionFalse, budget: map[string]string{machine.DisruptionAtMax: "2", machine.DisruptionHour: "2"}, most: 2},
			guard{maxUnhealthy: "100%", annotations: all, status: corev1.ConditionFalse},
		},
		"cool-down": {
			guard{maxUnhealthy: "40%", annotations: map[string]string{machine.AnnotationMaxInFlight: "100%"}, status: corev1.ConditionFalse, recover: 1, most: 0},
			guard{maxUnhealthy: "40%", annotations: all, status: corev1.ConditionFalse, recover: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n := tt.guarded.weather(t); n != tt.guarded.most {
				t.Errorf("%d Machines were deleted, want %d", n, tt.guarded.most)
			}
			if n := tt.lifted.weather(t); n <= tt.guarded.most {
				t.Errorf("control: without the guard %d Machines were deleted, no more than with it", n)
			}
		})
	}
}

// weather plays a storm and returns how many Machines were deleted.
func (g guard) weather(t *testing.T) int {
	t.Helper()
	w := clinic(t, 10, check(g.maxUnhealthy, g.annotations))
	if g.budget != nil {
		meta := metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapDisrupt}
		if err := w.API.Put(&corev1.ConfigMap{ObjectMeta: meta, Data: g.budget}); err != nil {
			t.Fatal(err)
		}
	}
	w.Cloud.Boot = 24 * time.Hour
	strike(t, w, 5, g.status)
	for minute := range 14 {
		for range 6 {
			storm(t.Context(), w)
		}
		if minute == 9 {
			strike(t, w, g.recover, corev1.ConditionTrue)
		}
	}
	return deletions(w)
}

// Machines that never start are not replaced in an endless loop that is paid for: in twelve hours a few attempts, not the
// seventy that the timeout of ten minutes would make. The control forgets the attempts (R-B27).
func TestMachinesThatNeverWork(t *testing.T) {
	t.Parallel()
	attempts := func(forgetful bool) int {
		w := NewWorld(scalemachineset.Function, provisionmachine.Function, linknode.Function, drainnode.Function, remediate.Function)
		w.Cloud.Boot = 1000 * time.Hour
		if err := w.API.Put(Set("worker", 1), check("100%", nil)); err != nil {
			t.Fatal(err)
		}
		for range 12 * 60 {
			w.Pass(50 * time.Second)
			if err := w.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !forgetful {
				continue
			}
			err := memory.Patch(w.API, machine.Namespace, "workers", func(h *machine.MachineHealthCheck) { h.Annotations = nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		return deletions(w)
	}
	if n := attempts(false); n < 3 || n > 8 {
		t.Errorf("%d attempts in twelve hours", n)
	}
	if n := attempts(true); n < 30 {
		t.Errorf("control: %d attempts in twelve hours without the guard", n)
	}
}

// A Node's clock is three hours behind when it says that it is not ready; half a minute later it is. One look would have cost its
// Machine; the control gives the check the memory of an earlier look (RELIABILITY 2f).
func TestTwoLooks(t *testing.T) {
	t.Parallel()
	deleted := func(seen bool) int {
		w := clinic(t, 3, check("40%", nil))
		m := memory.List[*machine.Machine](w.API)[0]
		if seen {
			record := fmt.Sprintf(`{"schema":1,"seen":{%q:{"what":"Ready=False","at":%q}}}`, m.UID, w.Now().Add(-time.Hour).Format(time.RFC3339))
			err := memory.Patch(w.API, machine.Namespace, "workers", func(h *machine.MachineHealthCheck) {
				metav1.SetMetaDataAnnotation(&h.ObjectMeta, machine.AnnotationInFlight, record)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		err := memory.Patch(w.API, "", m.Status.NodeRef.Name, func(n *corev1.Node) {
			n.Status.Conditions[0].Status = corev1.ConditionFalse
			n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(w.Now().Add(-3 * time.Hour))
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			storm(t.Context(), w)
		}
		strike(t, w, 3, corev1.ConditionTrue)
		for range 12 {
			storm(t.Context(), w)
		}
		return deletions(w)
	}
	if n := deleted(false); n != 0 {
		t.Errorf("%d Machines were deleted for one look", n)
	}
	if n := deleted(true); n != 1 {
		t.Errorf("control: %d Machines were deleted, want 1", n)
	}
}

// A Node is well again at the moment when its Machine is claimed: between the claim and the delete the check looks again. The
// control is a Node that does not recover (RELIABILITY 2f).
func TestRecoversInTime(t *testing.T) {
	t.Parallel()
	deleted := func(recovers bool) (claims, deleted int) {
		w := clinic(t, 3, check("40%", nil))
		strike(t, w, 1, corev1.ConditionFalse)
		r := w.Runner(remediate.Function)
		r.Cluster = watched{r.Cluster, func() {
			claims++
			if recovers {
				strike(t, w, 1, corev1.ConditionTrue)
			}
		}}
		for range 36 {
			w.Pass(10 * time.Second)
			if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		return claims, deletions(w)
	}
	if claims, n := deleted(true); claims != 1 || n != 0 {
		t.Errorf("%d claims, %d Machines were deleted", claims, n)
	}
	if claims, n := deleted(false); claims != 1 || n != 1 {
		t.Errorf("control: %d claims, %d Machines were deleted", claims, n)
	}
}

// watched is a cluster that tells when a Machine is claimed.
type watched struct {
	cluster.Cluster
	claimed func()
}

func (c watched) Apply(ctx context.Context, a plan.Action) error {
	err := c.Cluster.Apply(ctx, a)
	if u, is := a.(plan.Update); is && err == nil && u.New.GetAnnotations()[machine.AnnotationRemediatedBy] != "" {
		c.claimed()
	}
	return err
}
