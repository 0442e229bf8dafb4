// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

func TestProperties(t *testing.T) {
	t.Parallel()
	scenario.Properties(t, Function)
}

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// dice makes clusters in every stage of growing and shrinking. Names come from small pools, so that objects meet.
type dice struct{ *rapid.T }

func (d dice) n(label string, low, high int) int { return rapid.IntRange(low, high).Draw(d.T, label) }
func (d dice) rarely(label string) bool          { return d.n(label, 0, 4) == 0 }
func (d dice) ago(label string) metav1.Time {
	return metav1.NewTime(epoch.Add(-time.Duration(d.n(label, 0, 1500)) * time.Second))
}

func anyOf[V any](d dice, label string, from ...V) V {
	return rapid.SampledFrom(from).Draw(d.T, label)
}

func (d dice) cluster(w *world) {
	ca := &autoscaling.ClusterAutoscaler{}
	ca.Name = autoscaling.Name
	ca.Spec.ScaleDown = &autoscaling.ScaleDown{Enabled: !d.rarely("disabled"), DelayAfterAdd: new(anyOf(d, "delay", "0s", "10m")), UnneededTime: new(anyOf(d, "unneeded", "0s", "1m"))}
	ca.Spec.BalanceSimilarNodeGroups = new(anyOf(d, "balance", true, false))
	if d.rarely("limited") {
		ca.Spec.ResourceLimits = &autoscaling.ResourceLimits{MaxNodesTotal: new(int32(d.n("nodes", 1, 9))), Cores: &autoscaling.Range{Min: int32(d.n("cores", 0, 9)), Max: 40}}
	}
	ca.Spec.Expanders = anyOf(d, "expanders", nil, []autoscaling.Expander{autoscaling.Random}, []autoscaling.Expander{autoscaling.Priority, autoscaling.Price})
	ca.Annotations = map[string]string{}
	if d.rarely("headroom") {
		ca.Annotations[autoscaling.HeadroomAnnotation] = "2 of cpu=1"
	}
	if d.rarely("repack") {
		ca.Annotations[autoscaling.RepackAnnotation] = "migration=0.001"
	}
	if d.rarely("soft") {
		ca.Annotations[autoscaling.SoftTaintAnnotation] = "Enabled"
	}
	if d.rarely("enforced") {
		ca.Spec.EnforceNodeGroupMinSize = autoscaling.Enabled
	}
	d.put(w, ca)
	state := autoscaling.State{Schema: 1, Groups: map[string]autoscaling.NodeGroup{}, Unneeded: map[types.UID]metav1.Time{}, Held: map[types.UID]autoscaling.Held{}}
	for i := range d.n("sets", 1, 3) {
		d.set(w, fmt.Sprintf("set-%d", i), &state)
	}
	d.pods(w)
	if !d.rarely("no state") {
		cm := &corev1.ConfigMap{Data: map[string]string{autoscaling.StateKey: state.String()}}
		cm.Namespace, cm.Name = machine.Namespace, machine.ConfigMapStatus
		d.put(w, cm)
	}
}

func (d dice) put(w *world, objects ...plan.Object) {
	if err := w.Put(objects...); err != nil {
		d.Fatal(err)
	}
}

func (d dice) set(w *world, name string, state *autoscaling.State) {
	ma := &autoscaling.MachineAutoscaler{Spec: autoscaling.MachineAutoscalerSpec{
		MinReplicas: int32(d.n("min", 0, 1)), MaxReplicas: int32(d.n("max", 1, 6)),
		ScaleTargetRef: autoscaling.ScaleTargetRef{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: name},
	}}
	ma.Namespace, ma.Name = machine.Namespace, name
	set := &machine.MachineSet{}
	set.Namespace, set.Name, set.UID = machine.Namespace, name, types.UID(name)
	set.Spec.Replicas = new(int32(d.n("replicas", 0, 4)))
	selects(set)
	set.Annotations = map[string]string{machine.AnnotationVCPU: anyOf(d, "cpu", "2", "4"), machine.AnnotationMemoryMb: "8192"}
	if !d.rarely("no price") {
		set.Annotations[machine.AnnotationPrice] = anyOf(d, "price", "0.1", "0.4")
	}
	if d.rarely("retry") {
		set.Annotations[machine.AnnotationRetryScaleUp] = ""
	}
	if d.rarely("schedule") {
		ma.Annotations = map[string]string{autoscaling.ScheduleAnnotation: "0 12 * * * for 1h min=2"}
	}
	if d.rarely("half known") {
		delete(set.Annotations, machine.AnnotationMemoryMb)
	}
	d.put(w, ma, set)
	for i := range d.n("machines", 0, 4) {
		d.machine(w, set, fmt.Sprintf("%s-%d", name, i), state)
	}
	if d.rarely("waves") {
		g := state.Groups[idOf(set)]
		g.Waves = []autoscaling.Wave{{At: d.ago("wave"), To: int32(d.n("to", 0, 5)), Pods: anyOf(d, "marks", "", "AAAA", "B9s4ig", "no text of marks")}}
		g.Useless = []autoscaling.Useless{{Shape: "0123456789", Of: anyOf(d, "of", "other", scheduling.MadeOf(set)), Node: name + "-0", NodeUID: types.UID("node-" + name + "-0"), Times: 1, Until: d.ago("until")}}
		state.Groups[idOf(set)] = g
	}
	if d.rarely("history") {
		version := memory.Get[*machine.MachineSet](w.Server, set.Namespace, name).ResourceVersion
		state.Groups[idOf(set)] = autoscaling.NodeGroup{
			Resize:  &autoscaling.Resize{Plan: "grow-1", SetUID: set.UID, ResourceVersion: anyOf(d, "revision", version, "1"), From: 1, To: int32(d.n("to", 0, 4)), At: d.ago("resize")},
			Request: &autoscaling.Request{At: d.ago("request")}, BackoffUntil: new(metav1.NewTime(epoch.Add(time.Minute))), LastFailure: new(d.ago("failure")), Failures: 1,
		}
	}
}

func (d dice) machine(w *world, set *machine.MachineSet, name string, state *autoscaling.State) {
	m := &machine.Machine{}
	m.Namespace, m.Name, m.UID, m.CreationTimestamp = machine.Namespace, name, types.UID("machine-"+name), d.ago("machine")
	m.Labels = set.Spec.Template.Labels
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: set.Name, UID: set.UID, Controller: new(true)}}
	m.Status.Phase = new(anyOf(d, "phase", machine.PhaseRunning, machine.PhaseProvisioning, machine.PhaseFailed))
	if d.rarely("no node") {
		d.put(w, m)
		return
	}
	m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: name, UID: types.UID("node-" + name)}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), CreationTimestamp: d.ago("node"), Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("20")}
	n.Status.Allocatable = n.Status.Capacity
	ready := corev1.ConditionTrue
	if d.rarely("unready") {
		ready = corev1.ConditionFalse
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: d.ago("ready")}}
	if d.rarely("removal") {
		r := autoscaling.Removal{
			Plan: "down-" + name, Group: idOf(set), Node: name, NodeUID: n.UID, Machine: name, MachineUID: m.UID, At: d.ago("removal"), Drain: !d.rarely("empty"), MaxGrace: 600,
		}
		if !d.rarely("not tainted") {
			n.Spec.Taints = []corev1.Taint{{Key: machine.TaintToBeDeleted, Value: r.Plan, Effect: corev1.TaintEffectNoSchedule}}
			n.Spec.Unschedulable, n.Annotations = true, map[string]string{machine.AnnotationCordonedBy: r.Plan}
		}
		if !d.rarely("stale") {
			state.Removals = append(state.Removals, r)
		}
	}
	if d.rarely("held") {
		state.Held[n.UID] = autoscaling.Held{Reason: digestOf(anyOf(d, "why", whyDisabled, "NotUnderutilized: cpu above 0.50, threshold 0.5")), Since: d.ago("held")}
	}
	if d.rarely("repacked") {
		state.Repack = &autoscaling.Repack{Node: name, NodeUID: n.UID, At: d.ago("repack"), Failed: d.rarely("failed")}
	}
	if d.rarely("idle before") {
		state.Unneeded[n.UID] = d.ago("unneeded")
	}
	d.put(w, m, n)
}

func (d dice) pods(w *world) {
	for i := range d.n("pods", 0, 12) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%02d", i), CreationTimestamp: d.ago("pod"), Labels: map[string]string{"app": anyOf(d, "app", "a", "b")}}}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: anyOf(d, "owner", "ReplicaSet", "ReplicaSet", "ReplicaSet", "DaemonSet", "Other"), Name: "x", UID: "x", Controller: new(true)}}
		p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(anyOf(d, "request", "100m", "1", "3", "9"))}}}}
		if d.rarely("group") {
			p.Annotations = map[string]string{groupAnnotation: anyOf(d, "of", "x", "y"), sizeAnnotation: anyOf(d, "size", "1", "3")}
		}
		if d.rarely("apart") {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}},
			}}}
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		if nodes := memory.List[*corev1.Node](w.Server); len(nodes) > 0 && d.n("bound", 0, 1) == 0 {
			p.Spec.NodeName, p.Status.Conditions = nodes[d.n("node", 0, len(nodes)-1)].Name, nil
		}
		d.put(w, p)
	}
	if d.rarely("budget") {
		d.put(w, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(d.n("allowed", 0, 1))},
		})
	}
}

// Deciding again on the result wants nothing: neither in the same invocation, which the runner checks, nor in the next
// one, at the same time (R-S14).
func TestScanIsQuietOnItsOwnResult(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, epoch)
		dice{rt}.cluster(w)
		before := w.sizes()
		for range 2 {
			if _, err := w.scan(t.Context(), snapshot.Request{}); err != nil {
				rt.Fatal(err)
			}
		}
		if err := w.keeps(before); err != nil {
			rt.Fatal(err)
		}
		written := len(w.ours())
		if _, err := w.scan(t.Context(), snapshot.Request{}); err != nil {
			rt.Fatal(err)
		}
		for _, x := range w.ours()[written:] {
			if x.Resource != "events" {
				rt.Fatalf("a second scan wrote %v", x)
			}
		}
	})
}

func (w *world) sizes() map[string]int32 {
	sizes := map[string]int32{}
	for _, s := range memory.List[*machine.MachineSet](w.Server) {
		sizes[s.Name] = *s.Spec.Replicas
	}
	return sizes
}

// keeps checks what must hold of any decision, whatever it was (R-S4, R-S5, R-S11).
func (w *world) keeps(before map[string]int32) error {
	cm := memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus)
	state, err := stateOf(snapshotOf(cm))
	if err != nil {
		return err
	}
	grown, wanted := false, int64(0)
	for _, s := range memory.List[*machine.MachineSet](w.Server) {
		grown = grown || *s.Spec.Replicas > before[s.Name]
		wanted += int64(*s.Spec.Replicas)
	}
	limit := autoscaling.Effective(memory.Get[*autoscaling.ClusterAutoscaler](w.Server, "", autoscaling.Name).Spec).MaxNodesTotal
	if grown && limit > 0 && wanted > limit {
		return fmt.Errorf("%d Machines are wanted, limit %d", wanted, limit)
	}
	for _, s := range memory.List[*machine.MachineSet](w.Server) {
		least, most, _ := boundsOf(snapshot.Snapshot{MachineAutoscalers: memory.List[*autoscaling.MachineAutoscaler](w.Server)}, s)
		is, was := *s.Spec.Replicas, before[s.Name]
		if is > was && is > most || is < was && is < least {
			return fmt.Errorf("%s went from %d to %d, bounds %d and %d", s.Name, was, is, least, most)
		}
		victims, err := machine.Victims(s)
		if err != nil {
			return err
		}
		// What goes is named, but for Machines that nobody made.
		if is < was && len(victims) != int(was-is) && w.machinesOf(s)-len(victims) > int(is) {
			return fmt.Errorf("%s went from %d to %d with victims %v", s.Name, was, is, victims)
		}
		for _, v := range victims {
			if err := w.emptied(v); err != nil {
				return err
			}
		}
	}
	for _, n := range memory.List[*corev1.Node](w.Server) {
		if _, current := state.RemovalOf(n, machine.TaintToBeDeleted); !current && slices.ContainsFunc(n.Spec.Taints, isRemoval) {
			return fmt.Errorf("node %s carries a taint without a plan", n.Name)
		}
	}
	return nil
}

func (w *world) machinesOf(s *machine.MachineSet) (n int) {
	for _, m := range memory.List[*machine.Machine](w.Server) {
		n += truth(metav1.IsControlledBy(m, s))
	}
	return n
}

// emptied wants no Pod that counts on the Node of a victim.
func (w *world) emptied(v machine.Victim) error {
	for _, p := range memory.List[*corev1.Pod](w.Server) {
		if p.Spec.NodeName == v.Name && !scheduling.OfDaemonSet(p) && !finished(p) {
			return fmt.Errorf("%s is a victim and holds pod %s", v.Name, p.Name)
		}
	}
	return nil
}
