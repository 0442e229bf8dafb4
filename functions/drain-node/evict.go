// SPDX-License-Identifier: Apache-2.0

package drainnode

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// maxEvictions bounds the evictions from one Node in one invocation (RELIABILITY 2e). For a Machine what is left is
	// written, and that event is the next invocation.
	maxEvictions = 10
	// maxEmptied bounds those for a scale-down, ten at a time: only the scan goes on with it, and after two minutes
	// everything is taken back (SPEC C64). A Node has 250 Pods at most, as a rule.
	maxEmptied = 50
	// unreachableGrace is what Pods get on a Node that nobody hears of (B34).
	unreachableGrace = 1
)

// eviction is the Pods of one Node, by what has to happen to them.
type eviction struct {
	untried []plan.Evict  // to be evicted; those whose budget allows none come last
	refused []plan.Evict  // not allowed now, as was asked in this invocation or can be foreseen; the first is what is told
	leaving []*corev1.Pod // on their way out, and waited for
	staying []*corev1.Pod // of DaemonSets, of the kubelet itself, or those that came back: they go with the Node
	back    []*corev1.Pod // of these, the ones that came back
	tried   int           // evictions from the Node that this invocation asked for, also of Pods that are going or gone by now
	most    int           // of those in one invocation
	seen    snapshot.Snapshot
	// exhausted counts, of each Pod that shall leave, the budgets that allow no disruption now.
	exhausted map[*corev1.Pod]int
	// spent counts, of each budget, the Pods that came back and go with the Node.
	spent map[*policyv1.PodDisruptionBudget]int32
}

// evictionOf sorts the Pods on n, which takes none since closed, if that is known. The grace of each Pod is its own, but never more than
// most. Who tolerates a cordon comes back each time that it is evicted, as nothing is as free as a Node that is emptied: to go on would end
// nothing. Such a Pod goes with the Node, as it does by kubectl drain, unless its budget is against that now (R-S8).
func evictionOf(s snapshot.Snapshot, n *corev1.Node, most *int64, closed time.Time) eviction {
	e := eviction{seen: s, exhausted: map[*corev1.Pod]int{}, spent: map[*policyv1.PodDisruptionBudget]int32{}, tried: plan.EvictionsFrom(n.Name, s.Outcomes), most: maxEvictions}
	unreachable := machine.NodeUnreachable(n)
	for _, pod := range s.PodsOn(n.Name) {
		switch {
		case finished(pod):
		case stays(pod):
			e.staying = append(e.staying, pod)
		case pod.DeletionTimestamp != nil:
			if !unreachable || s.Now.Before(secondOf(pod)) {
				e.leaving = append(e.leaving, pod)
			}
		case scheduling.CameThoughCordoned(pod, closed, s.Now) && e.afford(pod):
			e.staying, e.back = append(e.staying, pod), append(e.back, pod)
		default:
			e.add(plan.Evict{Pod: pod, GraceSeconds: grace(pod, unreachable, most), Why: "drain node " + n.Name})
		}
	}
	slices.SortFunc(e.refused, e.compare)
	slices.SortFunc(e.untried, e.compare)
	if e.tried+len(e.untried) > maxEvictions && len(e.untried) > 0 {
		slices.SortStableFunc(e.untried[1:], func(a, b plan.Evict) int {
			return cmp.Or(cmp.Compare(e.exhausted[a.Pod], e.exhausted[b.Pod]), cmp.Compare(turn(s, a.Pod), turn(s, b.Pod)))
		})
	}
	return e
}

// afford reports whether the budgets that an eviction of a Pod which came back would be asked of allow one more disruption each, and takes
// that from them.
func (e *eviction) afford(p *corev1.Pod) bool {
	charged := scheduling.Charged(p, covering(e.seen, p))
	if slices.ContainsFunc(charged, func(b *policyv1.PodDisruptionBudget) bool { return b.Status.DisruptionsAllowed <= e.spent[b] }) {
		return false
	}
	for _, b := range charged {
		e.spent[b]++
	}
	return true
}

// secondOf returns until when a Pod that is on its way out is waited for on a Node that nobody hears of: no longer than one that is evicted
// now, whatever time to end it was given when it was deleted (B34).
func secondOf(p *corev1.Pod) time.Time {
	given := int64(unreachableGrace)
	if g := p.DeletionGracePeriodSeconds; g != nil {
		given = *g
	}
	return p.DeletionTimestamp.Add(time.Duration(2*unreachableGrace-given) * time.Second)
}

// compare puts those first whose budgets allow it, by name. The first of all is asked for in every invocation, so that what
// is told of a drain that waits is told of the same Pod every time, and waiting writes nothing (R-S14).
func (e eviction) compare(a, b plan.Evict) int {
	return cmp.Or(cmp.Compare(e.exhausted[a.Pod], e.exhausted[b.Pod]),
		cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name))
}

// turn orders Pods otherwise in every invocation: what a webhook denies is known only once it was asked for, and those
// that it denies must not hold up the rest (R-L4).
func turn(s snapshot.Snapshot, p *corev1.Pod) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.Invocation + "/" + p.Namespace + "/" + p.Name)) // a hash never fails
	return h.Sum64()
}

// add takes a Pod that shall leave. The API server answers 500 to the eviction of one that several budgets protect,
// for ever: that is not asked for.
func (e *eviction) add(a plan.Evict) {
	e.exhausted[a.Pod] = len(budgetsOf(e.seen, a.Pod, true))
	o, tried := e.seen.Outcome(a)
	switch {
	case o.Result == plan.Blocked, o.Result == plan.Refused, o.Result == plan.Failed, a.Pod.Status.Phase != corev1.PodPending && len(budgetsOf(e.seen, a.Pod, false)) > 1:
		e.refused = append(e.refused, a)
	case !tried:
		e.untried = append(e.untried, a)
	default:
		e.leaving = append(e.leaving, a.Pod)
	}
}

// vain reports whether nothing came yet of the evictions that this invocation asked for.
func (e eviction) vain() bool {
	refused := 0
	for _, a := range e.refused {
		if _, tried := e.seen.Outcome(a); tried {
			refused++
		}
	}
	return refused == e.tried
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func stays(p *corev1.Pod) bool {
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || scheduling.OfDaemonSet(p)
}

func grace(p *corev1.Pod, unreachable bool, most *int64) *int64 {
	own := p.Spec.TerminationGracePeriodSeconds
	switch {
	case unreachable:
		g := int64(unreachableGrace)
		return &g
	case most != nil && own != nil && *own > *most:
		return most
	}
	return nil
}

// now returns the evictions to ask for next, side by side; once there are none, every Pod was asked for or the
// invocation has done its share.
func (e eviction) now() []plan.Sequence {
	return asked(e.untried[:min(len(e.untried), maxEvictions, max(0, e.most-e.tried))])
}

// all returns the evictions of whoever was not asked yet, side by side, however many they are.
func (e eviction) all() []plan.Sequence { return asked(e.untried) }

func asked(evictions []plan.Evict) (all []plan.Sequence) {
	for _, a := range evictions {
		all = append(all, plan.Sequence{Do: []plan.Action{a}})
	}
	return all
}

// obstacle names the first Pod that may not be evicted, the budget that protects it, and apart from that what the API server said. Of
// many it counts those that were asked for and those that are left: the same ones while nothing changes.
func (e eviction) obstacle() (of, words string) {
	if len(e.refused) == 0 {
		return "", ""
	}
	first := e.refused[0]
	o, tried := e.seen.Outcome(first)
	if !tried {
		o.Message = "the API server evicts no pod that several disruption budgets protect"
	}
	name := "pod " + first.Pod.Namespace + "/" + first.Pod.Name
	if more := len(e.refused) - 1; more > 0 {
		name += fmt.Sprintf(" and %d more", more)
	}
	if len(e.untried) > 0 {
		name += fmt.Sprintf(" of %d", len(e.refused)+len(e.untried))
	}
	if budgets := budgetsOf(e.seen, first.Pod, false); len(budgets) > 0 {
		name += ", protected by disruption budget " + strings.Join(budgets, ", ")
	}
	return fmt.Sprintf("cannot evict %s: ", name), o.Message
}

const waitsForPods = "waits for evicted pods to end"

// after says what is not done yet once so many more evictions are accepted, so that the phase and this are one write.
func (e eviction) after(more int) string {
	switch left := len(e.untried) - more; {
	case left > 0:
		return fmt.Sprintf("%d pods are left to evict", left)
	case more+len(e.leaving) > 0:
		return waitsForPods
	}
	return ""
}

// progress says what is not done yet: more to evict, or a Pod that has not ended. One that is overdue is named.
func (e eviction) progress() string {
	if len(e.untried) > 0 || len(e.leaving) == 0 {
		return e.after(0)
	}
	overdue := slices.IndexFunc(e.leaving, func(p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil && e.seen.Now.After(p.DeletionTimestamp.Time)
	})
	if overdue < 0 {
		return waitsForPods
	}
	p := e.leaving[overdue]
	return fmt.Sprintf("waits for pod %s/%s, which should have ended at %s", p.Namespace, p.Name, machine.Stamp(p.DeletionTimestamp.Time))
}

// empty evicts for a scale-down. evaluate-autoscale sees the result, and takes everything back if it takes too long. Who was bound since it
// saw the taint stays: the scheduler chose before it did, and nobody has looked yet at whether that Pod may be moved (R-B24).
func empty(s snapshot.Snapshot, n *corev1.Node, r autoscaling.Removal) []plan.Sequence {
	if handedOver(s, r) {
		return nil
	}
	e := evictionOf(s, n, &r.MaxGrace, r.At.Time)
	e.most = maxEmptied
	e.untried = slices.DeleteFunc(e.untried, func(a plan.Evict) bool { return scheduling.BoundSince(a.Pod, r.At.Time, s.Now) })
	if of, words := e.obstacle(); of != "" && len(e.now()) == 0 {
		return []plan.Sequence{{Notes: []plan.Note{requeued(n, of+words)}}}
	}
	return e.now()
}

// covering returns the disruption budgets that protect p.
func covering(s snapshot.Snapshot, p *corev1.Pod) (all []*policyv1.PodDisruptionBudget) {
	for _, b := range s.DisruptionBudgets {
		sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && b.Namespace == p.Namespace && sel.Matches(labels.Set(p.Labels)) {
			all = append(all, b)
		}
	}
	return all
}

// budgetsOf returns the names of the disruption budgets that protect p; with exhausted only of those that allow no
// disruption now.
func budgetsOf(s snapshot.Snapshot, p *corev1.Pod, exhausted bool) []string {
	var names []string
	for _, b := range covering(s, p) {
		if !exhausted || b.Status.DisruptionsAllowed <= 0 {
			names = append(names, b.Name)
		}
	}
	return names
}

// pods asks for the Pods on n, which takes none since closed; then for the budgets of those that shall leave, or came back, or, where none is
// left, for the volumes.
func pods(s snapshot.Snapshot, n *corev1.Node, closed time.Time) []snapshot.Query {
	on := snapshot.Query{Kind: "Pod", Node: n.Name}
	ask := []snapshot.Query{on}
	if !s.Has(on) {
		return ask
	}
	e := evictionOf(s, n, nil, closed)
	for _, p := range slices.Concat(e.untried, e.refused) {
		ask = append(ask, snapshot.Query{Kind: "PodDisruptionBudget", Namespace: p.Pod.Namespace})
	}
	for _, p := range e.back {
		ask = append(ask, snapshot.Query{Kind: "PodDisruptionBudget", Namespace: p.Namespace})
	}
	if len(e.untried)+len(e.refused) == 0 && len(e.leaving) == 0 && !machine.NodeUnreachable(n) {
		ask = append(ask, volumes(e.staying)...)
	}
	return ask
}
