// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// mostBeside is how many replicas the second set's MachineAutoscaler allows.
const mostBeside = 3

// By what the autoscaler chooses between two sets: by name, evenly, as people prefer, or by chance.
const (
	byName = iota
	evenly
	preferred
	byChance
	numChoices
)

// spoiltExpander is one that nobody knows.
const spoiltExpander autoscaling.Expander = "?"

// mostBeside is how many replicas the second set may have.
func (p *Play) mostBeside() int {
	if p.Scaled {
		return mostBeside
	}
	return p.Neighbor
}

// scaledUp has a MachineAutoscaler want the second set too, and chooses how the autoscaler chooses between the two.
func (p *Play) scaledUp() (all []plan.Object) {
	if !p.Scaled {
		return nil
	}
	p.beside.choice = p.pick(KindWorld, numChoices)
	p.tracef("the autoscaler chooses between the sets %s", [...]string{"by name", "evenly", "as people prefer", "by chance"}[p.beside.choice])
	if p.beside.choice == preferred {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapPriority}}
		cm.Data = map[string]string{"priorities": "10: [\".*\"]\n50: [\".*" + neighborName + "\"]\n"}
		all = append(all, cm)
	}
	return append(all, autoscalerOf(neighborName, neighborName, mostBeside))
}

// choose writes it into the settings.
func (p *Play) choose(s *autoscaling.ClusterAutoscalerSpec) {
	s.BalanceSimilarNodeGroups, s.Expanders = nil, nil
	switch p.beside.choice {
	case evenly:
		s.BalanceSimilarNodeGroups = new(true)
	case preferred:
		s.Expanders = []autoscaling.Expander{autoscaling.Priority}
	case byChance:
		s.Expanders = []autoscaling.Expander{autoscaling.Random}
	}
}

// grows counts what the autoscaler wants of the second set.
func (n *neighbor) grows(from, to int) {
	n.ordered += max(0, to-from)
	n.most = max(n.most, to)
}

// many is how many Pods there are when the story has most of them.
func (p *Play) many() int {
	if p.Scaled {
		return mostReplicas + 2
	}
	return 3
}

// theOther is the other one of two sets that the autoscaler chooses between, as q has read it, and how many replicas it has, or is to have
// by the autoscaler's record.
func (p *Play) theOther(q *proc, s autoscaling.State, set string) (other *machine.MachineSet, replicas int) {
	name := setName
	if other = q.set; set == setName {
		other, name = q.beside, neighborName
	}
	if !p.Scaled || other == nil {
		return nil, 0
	}
	r := s.Groups["MachineSet/"+machine.Namespace+"/"+name].Resize
	switch {
	case r != nil && r.SetUID == other.UID && r.Plan != other.Annotations[machine.AnnotationLastPlan]:
		return other, int(r.To)
	case stopped(other): // it has what it has
		return other, len(q.readOf(other))
	}
	return other, int(*other.Spec.Replicas)
}

// stopped reports whether a set is not resized now.
func stopped(set *machine.MachineSet) bool {
	return machine.IsPausedSet(set) || set.DeletionTimestamp != nil
}

// remember keeps of a plan that goes on record what is enough by what its maker has read. Nobody counts on Nodes that are still to come to
// the other set if that is stopped or failed, or if it is not known what they can hold.
func (p *Play) remember(q *proc, plan string, s autoscaling.State, set string) {
	other, replicas := p.theOther(q, s, set)
	p.enough[plan], p.besides[plan] = p.mostFor(q), replicas
	if other == nil {
		return
	}
	until := s.Groups["MachineSet/"+machine.Namespace+"/"+other.Name].BackoffUntil
	if _, sized := other.Annotations[machine.AnnotationVCPU]; sized && !stopped(other) && (until == nil || !q.now().Before(until.Time)) {
		return
	}
	for _, m := range q.readOf(other) {
		if n := p.nodeOf(q, m); p.useless(q, m) || n != nil && machine.NodeReady(n) {
			replicas--
		}
	}
	p.enough[plan] += max(0, replicas)
}

// readOf are the Machines of a set that stay, as q last read them.
func (q *proc) readOf(set *machine.MachineSet) (all []*machine.Machine) {
	for _, m := range q.read {
		if ownerOf(m) == set.UID && m.DeletionTimestamp == nil {
			all = append(all, m)
		}
	}
	return all
}

// wrongLoads says what is wrong with the load of two sets: of each alone it need not be as the Pods want, since a set that is at its minimum
// keeps a Node that no Pod is on.
func (p *Play) wrongLoads(set *machine.MachineSet) string {
	all, room := 0, p.mostNodes()-p.masters()-p.strays()
	grown := true // both sets are
	for i, s := range []*machine.MachineSet{set, p.second()} {
		n, used, most := int(*s.Spec.Replicas), p.used(s), [...]int{mostReplicas, mostBeside}[i]
		if p.Rivals {
			most = mostOf(s)
		}
		if all += n; n < most {
			grown = false
		}
		if n > max(1, used) {
			return fmt.Sprintf("R-L1: %d replicas of %s in the end, on which there are %d pods", n, s.Name, used)
		}
	}
	for _, pod := range p.allPods() {
		if pod.Spec.NodeName == "" && !grown && all < room {
			return fmt.Sprintf("R-L1: pod %s waits", pod.Name)
		}
	}
	return ""
}

// used is how many Nodes of a set have a Pod.
func (p *Play) used(set *machine.MachineSet) int {
	nodes := map[string]bool{}
	for _, pod := range p.allPods() {
		n := memory.Get[*corev1.Node](p.API, "", pod.Spec.NodeName)
		for _, m := range p.machines() {
			if n != nil && ownerOf(m) == set.UID && isNodeOf(m, n) {
				nodes[n.Name] = true
			}
		}
	}
	return len(nodes)
}

// besideWants is how many Machines the second set wants.
func (p *Play) besideWants() int {
	if set := p.second(); p.Scaled && set != nil {
		return int(*set.Spec.Replicas)
	}
	return p.Neighbor
}
