// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// reasonAmong is said where the scheduler would have taken one Pod alone.
const reasonAmong = "no place among the pods that wait with it"

// among is the cluster as the placement leaves it, with an empty Node of every option behind the others.
type among struct {
	world     *scheduling.World
	first     int // the Node of the first option
	questions map[int]*scheduling.Question
}

// refusedAmong returns why a Pod of a shape, which an empty Node would take, gets no place on a new Node of an option: what the
// scheduler would say of it there, beside the Pods that have a place (SPEC C34, W3). It is found out where it is asked for.
func (sc *scan) refusedAmong(shape, option int) string {
	if sc.among == nil {
		sc.among = sc.lookAmong()
	}
	a := sc.among
	if a.questions[shape] == nil {
		pods := sc.placement.Shapes[shape].Pods
		a.questions[shape] = a.world.Ask(pods[len(pods)-1]) // who has no place comes last
	}
	return cmp.Or(a.questions[shape].Refused(a.first+option), reasonAmong)
}

func (sc *scan) lookAmong() *among {
	nodes := slices.Clone(sc.seen)
	for at, pods := range sc.taken() {
		n := &nodes[at]
		n.Pods, n.Briefs = slices.Concat(n.Pods, pods), nil
	}
	a := &among{first: len(nodes), questions: map[int]*scheduling.Question{}}
	for _, o := range sc.options {
		n := o.template
		n.Node = n.Node.DeepCopy()
		n.Node.Name = "new-" + o.set.Name
		n.Node.Labels[corev1.LabelHostname] = n.Node.Name
		nodes = append(nodes, n)
	}
	a.world = scheduling.NewWorld(nodes, sc.waiting, sc.facts())
	return a
}
