// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Question asks what would be decided if the cluster had, beside what it has, more Pods and sets, other limits, prices
// or expanders (SPEC W1, D43). What it leaves out is as it is.
type Question struct {
	Pods      []Pods                      `json:"pods,omitempty"`
	Sets      []Set                       `json:"machineSets,omitempty"`
	Limits    *autoscaling.ResourceLimits `json:"limits,omitempty"`
	Expanders []autoscaling.Expander      `json:"expanders,omitempty"`
	Prices    map[string]*float64         `json:"prices,omitempty"` // per hour, by set, group id or instance type
}

// Pods are Count Pods that wait, all alike.
type Pods struct {
	Count    int               `json:"count"`
	Metadata metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec     corev1.PodSpec    `json:"spec"`
}

// Set is a MachineSet that there could be, or what would be different about one that there is.
type Set struct {
	Name        string            `json:"name"`
	MinReplicas *int32            `json:"minReplicas,omitempty"`
	MaxReplicas *int32            `json:"maxReplicas,omitempty"` // which a set that there is not has to have
	CPU         string            `json:"cpu,omitempty"`
	Memory      string            `json:"memory,omitempty"`
	GPUs        string            `json:"gpus,omitempty"`
	MaxPods     string            `json:"maxPods,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"` // of its Nodes
	Taints      []corev1.Taint    `json:"taints,omitempty"`
}

// Bounds of a question: what one answer may cost.
const (
	maxAskedPods  = 100_000
	maxAskedSets  = 500
	maxAskedPairs = 500 * maxAskedSets // of a kind of Pods and a set: some ten seconds
	maxListed     = 50
)

// Reply is what would be decided.
type Reply struct {
	At       time.Time  `json:"at"`
	Resize   []Growth   `json:"resize"`             // sets that would grow
	Remove   []string   `json:"remove,omitempty"`   // Nodes whose removal would begin
	Unneeded int        `json:"unneeded"`           // Nodes that could go now or later
	Pods     Counts     `json:"pods"`               // that wait
	Unplaced []Unplaced `json:"unplaced,omitempty"` // the first fifty kinds and groups
	Cost     float64    `json:"cost"`               // of the Nodes that would be added
	Bound    float64    `json:"lowerBound"`         // that no plan for the same Pods can cost less than, divided among domains alike; 0: none is known
	AboveIt  float64    `json:"aboveLowerBound"`    // how much of the bound the Nodes for Pods cost more
	CostUnit string     `json:"costUnit"`           // "price per hour", or "size" where a price is missing
	Plan     string     `json:"plan"`               // as it would be applied, cut after 32 KiB
}

// Growth is a set that would get Nodes.
type Growth struct {
	Group string  `json:"group"`
	From  int32   `json:"from"`
	To    int32   `json:"to"`
	Max   int32   `json:"max"`
	Each  float64 `json:"costEach"`
}

// Counts says what would become of the Pods that wait.
type Counts struct {
	Waiting  int `json:"waiting"`
	Fit      int `json:"fit"`    // on Nodes that are there or to come
	Helped   int `json:"helped"` // by new Nodes
	Unplaced int `json:"unplaced"`
}

// Unplaced are Pods that nothing would be done for, with the answer of every set.
type Unplaced struct {
	Pod   string `json:"pod"` // one of them
	Count int    `json:"count"`
	Why   string `json:"why"`
}

// Answer decides about a snapshot as if it were as the question says, and tells what would be done. It decides with the
// code that decides in earnest; nothing of the answer is carried out.
func Answer(s snapshot.Snapshot, question json.RawMessage) (json.RawMessage, error) {
	if err := autoscaling.CheckQuantities(question); err != nil {
		return nil, fmt.Errorf("question: %w", err)
	}
	var q Question
	if err := machine.ReadRecord(string(question), &q); err != nil {
		return nil, fmt.Errorf("question: %w", err)
	}
	if err := q.check(); err != nil {
		return nil, fmt.Errorf("question: %w", err)
	}
	changed := map[types.UID]bool{}
	s, ca, err := q.ask(s, changed)
	if err != nil {
		return nil, fmt.Errorf("question: %w", err)
	}
	if kinds := q.kinds(); kinds*len(s.MachineSets) > maxAskedPairs {
		return nil, fmt.Errorf("question: %d kinds of pods and %d machine sets are more than one answer is for", kinds, len(s.MachineSets))
	}
	sc, err := newScan(s, ca)
	if err != nil {
		return nil, fmt.Errorf("not for the question's sake: no question can be answered, as state is not readable: %w", err)
	}
	sc.asking, sc.asked, sc.changed = true, q.Prices, changed
	sc.decide()
	return json.Marshal(sc.reply())
}

func (q Question) check() error {
	total := 0
	for i, p := range q.Pods {
		if p.Count < 1 || p.Count > maxAskedPods {
			return fmt.Errorf("pods[%d]: count %d is not between 1 and %d", i, p.Count, maxAskedPods)
		}
		if err := p.complete(); err != nil {
			return fmt.Errorf("pods[%d]: %w", i, err)
		}
		total += p.Count
	}
	switch {
	case total > maxAskedPods:
		return fmt.Errorf("%d pods are more than %d", total, maxAskedPods)
	case len(q.Sets) > maxAskedSets:
		return fmt.Errorf("%d machine sets are more than %d", len(q.Sets), maxAskedSets)
	}
	for i, m := range q.Sets {
		if m.Name == "" {
			return fmt.Errorf("machineSets[%d]: wants a name", i)
		}
	}
	for key, f := range q.Prices {
		if f == nil || milliCents(*f) == 0 {
			return errors.New("prices: " + key + " has none")
		}
	}
	return nil
}

// kinds returns how many of its Pods differ in more than their number and name.
func (q Question) kinds() int {
	texts := map[string]bool{}
	for _, p := range q.Pods {
		p.Count, p.Metadata.Name = 0, ""
		text, _ := json.Marshal(p) // it was read from JSON
		texts[string(text)] = true
	}
	return len(texts)
}

// ask returns the snapshot as the question would have it, with the settings; changed gets the sets that it gives another size.
func (q Question) ask(s snapshot.Snapshot, changed map[types.UID]bool) (snapshot.Snapshot, *autoscaling.ClusterAutoscaler, error) {
	s = s.Clone()
	ca := &autoscaling.ClusterAutoscaler{}
	if found := clusterAutoscaler(s); found != nil {
		ca = found.DeepCopy()
	}
	ca.Name = autoscaling.Name
	ca.Spec.ResourceLimits = q.limits(ca.Spec.ResourceLimits)
	if q.Expanders != nil {
		ca.Spec.Expanders = q.Expanders
	}
	if errs := ca.Validate(); len(errs) > 0 {
		return s, nil, errs.ToAggregate()
	}
	s.Add(ca)
	for i, m := range q.Sets {
		if err := m.put(&s, changed); err != nil {
			return s, nil, fmt.Errorf("machineSets[%d]: %w", i, err)
		}
	}
	for i, p := range q.Pods {
		s.Pods = append(s.Pods, p.all(i, s.Now)...)
	}
	slices.SortStableFunc(s.Pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return s, ca, nil
}

// limits returns limits with those that the question has in their place.
func (q Question) limits(found *autoscaling.ResourceLimits) *autoscaling.ResourceLimits {
	if q.Limits == nil || found == nil {
		return cmp.Or(q.Limits, found)
	}
	next := *found
	next.MaxNodesTotal, next.Cores, next.Memory = cmp.Or(q.Limits.MaxNodesTotal, found.MaxNodesTotal), cmp.Or(q.Limits.Cores, found.Cores), cmp.Or(q.Limits.Memory, found.Memory)
	if q.Limits.GPUs != nil {
		next.GPUs = q.Limits.GPUs
	}
	return &next
}

// put puts the set into a snapshot, with a MachineAutoscaler if it has none.
func (m Set) put(s *snapshot.Snapshot, changed map[types.UID]bool) error {
	set := &machine.MachineSet{}
	set.Namespace, set.Name, set.UID = machine.Namespace, m.Name, types.UID("simulated-"+m.Name)
	own := map[string]string{"set": m.Name} // nobody makes Machines for a set without a selector
	set.Spec.Replicas, set.Spec.Template.Labels, set.Spec.Selector.MatchLabels = new(int32), own, own
	if found := s.MachineSet(machine.Namespace, m.Name); found != nil {
		set = found.DeepCopy()
	}
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	a := set.Annotations
	least, most, err := m.bounds(a)
	if err != nil {
		return err
	}
	a[machine.AnnotationMinSize], a[machine.AnnotationMaxSize] = strconv.Itoa(int(least)), strconv.Itoa(int(most))
	for key, value := range map[string]string{
		machine.CapacityCPU: m.CPU, machine.CapacityMemory: m.Memory, machine.CapacityGPUCount: m.GPUs, machine.CapacityMaxPods: m.MaxPods,
	} {
		if value != "" {
			a[key], changed[set.UID] = value, true
		}
	}
	if changed[set.UID] && !scheduling.FromZero(set) {
		return errors.New("cpu and memory together say how large its Nodes are")
	}
	if m.Labels != nil {
		if set.Spec.Template.Spec.Labels == nil {
			set.Spec.Template.Spec.Labels = map[string]string{}
		}
		maps.Copy(set.Spec.Template.Spec.Labels, m.Labels)
	}
	if m.Taints != nil {
		set.Spec.Template.Spec.Taints = m.Taints
	}
	s.Add(set)
	if ownerOf(*s, set) == nil {
		ma := &autoscaling.MachineAutoscaler{Spec: autoscaling.MachineAutoscalerSpec{
			MinReplicas: least, MaxReplicas: most,
			ScaleTargetRef: autoscaling.ScaleTargetRef{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: m.Name},
		}}
		ma.Namespace, ma.Name, ma.Finalizers = machine.Namespace, m.Name, []string{autoscaling.Finalizer}
		s.Add(ma)
	}
	return nil
}

// bounds returns the bounds that the question gives the set; what it leaves out is as annotations say.
func (m Set) bounds(a map[string]string) (least, most int32, err error) {
	least, _ = number(a[machine.AnnotationMinSize])
	most, _ = number(a[machine.AnnotationMaxSize])
	if m.MinReplicas != nil {
		least = *m.MinReplicas
	}
	if m.MaxReplicas != nil {
		most = *m.MaxReplicas
	}
	if least < 0 || most < 1 || least > most {
		return 0, 0, fmt.Errorf("wants minReplicas %d ≤ maxReplicas %d", least, most)
	}
	return least, most, nil
}

// all returns the Pods, as the scheduler would have left them an hour ago.
func (p Pods) all(i int, now time.Time) []*corev1.Pod {
	out := make([]*corev1.Pod, p.Count)
	name, namespace := cmp.Or(p.Metadata.Name, fmt.Sprintf("simulated-%d", i)), cmp.Or(p.Metadata.Namespace, metav1.NamespaceDefault)
	status := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}}
	if len(p.Spec.SchedulingGates) > 0 {
		status.Conditions[0].Reason = corev1.PodReasonSchedulingGated
	}
	spec := unclaimed(scheduling.Complete(p.Spec)) // once: containers times Pods may be more than there is room for
	for k := range out {
		pod := &corev1.Pod{ObjectMeta: p.Metadata, Spec: spec, Status: status}
		pod.Namespace, pod.Name = namespace, fmt.Sprintf("%s-%06d", name, k)
		pod.UID, pod.CreationTimestamp = types.UID("simulated-"+namespace+"/"+pod.Name), metav1.NewTime(now.Add(-time.Hour))
		pod.Spec.NodeName, pod.DeletionTimestamp = "", nil
		out[k] = pod
	}
	return out
}

// reply tells what the scan decided.
func (sc *scan) reply() Reply {
	r := Reply{At: sc.Now, Resize: []Growth{}, Unneeded: len(sc.state.Unneeded)}
	price := sc.trueCosts()
	r.CostUnit = price.unit
	forPods := 0.0
	for i, o := range slices.Concat(sc.options, sc.lifted) {
		if o.more == 0 {
			continue
		}
		each := price.of(i)
		r.Resize = append(r.Resize, Growth{Group: o.id, From: o.target - o.more, To: o.target, Max: o.max, Each: each})
		r.Cost += each * float64(o.more)
		if i < len(sc.options) {
			forPods = r.Cost
		}
	}
	for _, x := range sc.state.Removals {
		if removalOf(sc.before.Removals, x.NodeUID) == nil {
			r.Remove = append(r.Remove, x.Node)
		}
	}
	r.Pods.Waiting, r.Pods.Fit = len(sc.waiting), sc.onTheWay
	refusals := sc.refusals()
	for i, shape := range sc.placement.Shapes {
		left := len(shape.Pods) - sc.placement.Fit[i]
		r.Pods.Fit += sc.placement.Fit[i]
		if sc.helped != nil {
			r.Pods.Helped += sc.helped[i]
			left -= sc.helped[i]
		}
		r.Pods.Unplaced += left
		if left > 0 && len(r.Unplaced) < maxListed {
			p := shape.Pods[len(shape.Pods)-1]
			r.Unplaced = append(r.Unplaced, Unplaced{Pod: p.Namespace + "/" + p.Name, Count: left, Why: counted(sc.answers(i, refusals))})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sc.broken)) {
		b := sc.broken[name]
		r.Pods.Unplaced += len(b.pods)
		r.Unplaced = append(r.Unplaced, Unplaced{Pod: b.pods[0].Namespace + "/" + b.pods[0].Name, Count: len(b.pods), Why: b.answer()})
	}
	for _, u := range sc.overlooked() {
		r.Pods.Waiting += u.Count
		r.Pods.Unplaced += u.Count
		r.Unplaced = append(r.Unplaced, u)
	}
	r.Unplaced = r.Unplaced[:min(len(r.Unplaced), maxListed)]
	if forPods > 0 {
		if r.Bound = price.bound(sc); r.Bound > 0 {
			r.AboveIt = max(0, forPods-r.Bound) / r.Bound
		}
	}
	const longest = 32 << 10
	var p plan.Plan
	p.Add(sc.sequences()...)
	text := p.String()
	r.Plan = text[:min(len(text), longest)]
	return r
}

// costs are what Nodes of the options, then those of the groups that grow to their minimum, really cost, whatever the expanders
// made of it.
type costs struct {
	each []int64
	per  float64
	unit string
}

// perHour is the unit of costs that are money.
const perHour = "price per hour"

func (sc *scan) trueCosts() costs {
	all := slices.Concat(sc.options, sc.lifted)
	if each, _ := sc.pricesOf(all); each != nil {
		return costs{each, 1e5, perHour}
	}
	return costs{sc.bySize(all), 1, "size"}
}

func (c costs) of(option int) float64 { return float64(c.each[option]) / c.per }

// bound packs the same Pods at the true costs, and returns what no such packing can cost less than; 0 where that packing serves
// other Pods than the plan, which limits of the cluster cut short.
func (c costs) bound(sc *scan) float64 {
	offers := make([]scheduling.Offer, len(sc.options))
	for i, o := range sc.options {
		offers[i] = o.offer
		offers[i].Price = c.each[i]
	}
	p := sc.world.With(sc.kept).Place(sc.packed, offers)
	for i := range p.Shapes {
		if p.Fit[i]+p.Helped[i] != sc.placement.Fit[i]+sc.helped[i] {
			return 0
		}
	}
	return float64(p.Bound()) / c.per
}
