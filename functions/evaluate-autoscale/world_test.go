// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// world is an API server in memory, with stand-ins for everybody else: a scheduler, Machines that come and go, a drain.
type world struct {
	*memory.Server
	now  time.Time
	scan func(context.Context, snapshot.Request) (plan.Plan, error)
	born int

	broken bool // calls may fail
}

func newWorld(t testing.TB, now time.Time) *world {
	t.Helper()
	w := &world{now: now}
	w.Server = memory.New(func() time.Time { return w.now })
	w.through(w.As(Function.Name))
	return w
}

// through makes the function see and act through a port.
func (w *world) through(c cluster.Cluster) {
	w.scan = (&runner.Runner{Function: Function, Cluster: c, Log: slog.New(slog.DiscardHandler)}).Handle
}

func (w *world) load(t testing.TB, files ...string) {
	t.Helper()
	for _, f := range files {
		text, err := os.ReadFile("testdata/" + f)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := snapshot.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Put(objects...); err != nil {
			t.Fatal(err)
		}
	}
}

// run lets time pass in steps of a scan.
func (w *world) run(t testing.TB, d time.Duration) {
	t.Helper()
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(10 * time.Second) {
		if _, err := w.scan(t.Context(), snapshot.Request{}); err != nil && !w.broken {
			t.Fatalf("%s: %v", w.now, err)
		}
		w.machines(t)
		w.drain(t)
		w.schedule(t)
	}
}

// machines makes Machines for replicas, Nodes for Machines that are half a minute old, and removes victims.
func (w *world) machines(t testing.TB) {
	t.Helper()
	for _, set := range memory.List[*machine.MachineSet](w.Server) {
		victims, err := machine.Victims(set)
		if err != nil {
			t.Fatal(err)
		}
		var mine []*machine.Machine
		for _, m := range memory.List[*machine.Machine](w.Server) {
			switch {
			case !metav1.IsControlledBy(m, set):
			case slices.ContainsFunc(victims, func(v machine.Victim) bool { return v.UID == m.UID }):
				w.must(t, w.Remove("Node", "", m.Status.NodeRef.Name, memory.Background))
				w.must(t, w.Remove("Machine", m.Namespace, m.Name, memory.Background))
			default:
				mine = append(mine, m)
			}
		}
		for n := len(mine); n < int(*set.Spec.Replicas); n++ {
			w.born++
			m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprintf("%s-%05d", set.Name, w.born), Labels: set.Spec.Template.Labels}}
			m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, machineSetKind)}
			w.must(t, w.Put(m))
		}
		if len(victims) > 0 {
			w.must(t, memory.Patch(w.Server, set.Namespace, set.Name, func(s *machine.MachineSet) { delete(s.Annotations, machine.AnnotationVictims) }))
		}
		w.nodes(t, set, mine)
	}
}

var machineSetKind = schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineSet"}

func (w *world) nodes(t testing.TB, set *machine.MachineSet, mine []*machine.Machine) {
	t.Helper()
	for _, m := range mine {
		if m.Status.NodeRef != nil || w.now.Before(m.CreationTimestamp.Add(30*time.Second)) {
			continue
		}
		example := memory.List[*corev1.Node](w.Server)[len(memory.List[*corev1.Node](w.Server))-1]
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name, UID: types.UID("node-" + m.Name), Labels: map[string]string{corev1.LabelHostname: m.Name}}, Status: *example.Status.DeepCopy()}
		for k, v := range set.Spec.Template.Spec.Labels {
			n.Labels[k] = v
		}
		n.Labels[corev1.LabelArchStable], n.Labels[corev1.LabelOSStable], n.Labels["node-role.kubernetes.io/worker"] = "amd64", "linux", ""
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now)}}
		w.must(t, w.Put(n))
		w.must(t, memory.Patch(w.Server, m.Namespace, m.Name, func(m *machine.Machine) {
			m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: n.Name, UID: n.UID}
		}))
	}
}

// drain evicts what has to leave a Node that is to be emptied; its owner makes it anew at once.
func (w *world) drain(t testing.TB) {
	t.Helper()
	cm := memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus)
	state, err := stateOf(snapshotOf(cm))
	w.must(t, err)
	for _, n := range memory.List[*corev1.Node](w.Server) {
		if r, ok := state.RemovalOf(n, machine.TaintToBeDeleted); !ok || !r.Drain || w.now.Before(r.At.Add(settleTime)) {
			continue
		}
		for _, p := range memory.List[*corev1.Pod](w.Server) {
			if p.Spec.NodeName != n.Name || scheduling.OfDaemonSet(p) {
				continue
			}
			w.must(t, w.Remove("Pod", p.Namespace, p.Name, memory.Force))
			p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
			p.UID, p.ResourceVersion = "", ""
			w.must(t, w.Put(p))
		}
	}
}

func snapshotOf(cm *corev1.ConfigMap) (s snapshot.Snapshot) {
	if cm != nil {
		s.Add(cm)
	}
	return s
}

// schedule binds Pods to the first Node that has cpu for them, and says so where there is none.
func (w *world) schedule(t testing.TB) {
	t.Helper()
	free := map[string]int64{}
	nodes := memory.List[*corev1.Node](w.Server)
	pods := memory.List[*corev1.Pod](w.Server)
	for _, n := range nodes {
		free[n.Name] = n.Status.Allocatable.Cpu().MilliValue() - 592 // the agents
	}
	for _, p := range pods {
		if !scheduling.OfDaemonSet(p) && !finished(p) {
			free[p.Spec.NodeName] -= p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
	}
	for _, p := range pods {
		if p.Spec.NodeName != "" || finished(p) {
			continue
		}
		cpu := p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		i := slices.IndexFunc(nodes, func(n *corev1.Node) bool {
			_, general := n.Labels["node-role.kubernetes.io/general-use"]
			return general && !n.Spec.Unschedulable && len(n.Spec.Taints) == 0 && free[n.Name] >= cpu
		})
		w.must(t, memory.Patch(w.Server, p.Namespace, p.Name, func(p *corev1.Pod) {
			if i < 0 {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
				return
			}
			free[nodes[i].Name] -= cpu
			p.Spec.NodeName, p.Status.Conditions, p.Status.Phase = nodes[i].Name, nil, corev1.PodRunning
		}))
	}
}

func (w *world) must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) replicas(sets ...string) (all []int32) {
	for _, s := range sets {
		all = append(all, *memory.Get[*machine.MachineSet](w.Server, machine.Namespace, s).Spec.Replicas)
	}
	return all
}

// ours returns what the function wrote so far.
func (w *world) ours() (all []memory.Write) {
	for _, x := range w.Writes() {
		if x.Actor == Function.Name {
			all = append(all, x)
		}
	}
	return all
}

// The story of the walk-through (SPEC S38–S43): fifty Pods bring two Nodes to each of two sets, all of them run and
// end, and the sets go back to one Node each. Nothing else changes size, and in between nothing is decided twice.
func TestFiftyPodsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	w.load(t, "story.yaml", "job.yaml")
	sets := []string{"general-purpose-1a", "general-purpose-1b", "infra-1a"}
	w.run(t, 2*time.Minute)
	if got := w.replicas(sets...); !slices.Equal(got, []int32{3, 3, 0}) {
		t.Fatalf("two minutes after the Job: replicas %v", got)
	}
	for _, p := range memory.List[*corev1.Pod](w.Server) {
		if p.Spec.NodeName == "" {
			t.Errorf("pod %s still waits", p.Name)
		}
	}
	for _, p := range memory.List[*corev1.Pod](w.Server) {
		if p.Namespace == "work" {
			w.must(t, memory.Patch(w.Server, p.Namespace, p.Name, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
		}
	}
	w.run(t, 12*time.Minute)
	if got := w.replicas(sets...); !slices.Equal(got, []int32{1, 1, 0}) {
		t.Fatalf("twelve minutes after its end: replicas %v", got)
	}
	if n := len(memory.List[*corev1.Node](w.Server)); n != 6 {
		t.Errorf("%d Nodes are left", n)
	}
	before := len(w.ours())
	w.run(t, time.Minute)
	if got := w.ours()[before:]; len(got) > 0 {
		t.Errorf("a converged cluster was written to: %v", got)
	}
	resizes := 0
	for _, x := range w.ours() {
		if x.Resource == "machinesets" && x.Err == nil {
			resizes++
		}
	}
	if resizes > 2+4 {
		t.Errorf("%d writes of sets: %v", resizes, w.ours())
	}
}

// What one scan decided, the next one does not decide again, however it would pack the same Pods: with spread, hosts kept
// apart, ports and company, another packing beside the Nodes that are to come may leave other Pods over (R-B16).
func TestNextScanAddsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, epoch)
	w.load(t, "../../../test/e2e/testdata/packing.yaml")
	for _, p := range memory.List[*corev1.Pod](w.Server) {
		w.must(t, memory.Patch(w.Server, p.Namespace, p.Name, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		}))
	}
	w.now = w.now.Add(5 * time.Second)
	sets := []string{"zone-a", "zone-b", "zone-c", "fpga", "tainted"}
	for range 3 {
		if _, err := w.scan(t.Context(), snapshot.Request{}); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(10 * time.Second)
	}
	grown := 0
	for _, x := range w.ours() {
		if x.Resource == "machinesets" && x.Err == nil {
			grown++
		}
	}
	// one write of bounds and one of replicas
	if used := len(slices.DeleteFunc(w.replicas(sets...), func(n int32) bool { return n == 0 })); grown != len(sets)+used {
		t.Errorf("%d writes of sets, %d of them have Nodes: %v", grown, used, w.replicas(sets...))
	}
}
