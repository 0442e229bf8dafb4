// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// How long something may stay wrong that one function alone can mend, beside the time in which it cannot: of what is written down, each
// wait once, and two scans (R-L3).
const (
	twoScans = time.Minute
	// Lists that are not believed, a cool-down, the unneeded time of settings(), Pods that resist eviction.
	longestLoad = time.Minute + 20*time.Second + 20*time.Second + 2*time.Minute + twoScans
	// Pods that resist eviction, a victim that nobody deletes.
	longestRemoval = 2*time.Minute + 5*time.Minute + twoScans
	// The timeout of checkOf(), a second look, its cool-down after a storm, its power-cycle.
	longestIll = time.Minute + time.Minute + 30*time.Second + time.Minute + twoScans
)

// patience is how long each thing was waited for that is wrong.
type patience struct {
	at    time.Time
	spent map[string]time.Duration
}

// mends holds R-L3 of the autoscaler and of checks: last, which says what is wrong, is not about the same Pods and replicas for long
// while all else is as it is wanted, nor is a removal on record for long then, nor is the same Machine ill on the same Node for long while no other one comes or goes.
func (p *Play) mends(w *patience, last string) {
	passed := p.clock.Sub(w.at)
	w.at = p.clock
	if p.unbounded || p.reset || p.restored {
		return
	}
	load, ill, removal := p.wrongLoad(p.set()), p.ill(), p.onRecord()
	maps.DeleteFunc(w.spent, func(what string, _ time.Duration) bool { return what != load && what != removal && !ill[what] })
	if load != "" && load == last && !p.atWork() && !p.backedOff() && !p.slotsTaken("evaluate-autoscale") {
		if w.spent[load] += passed; w.spent[load] > longestLoad {
			p.violate("R-L3", "nobody scales for %v: %s", w.spent[load], load)
		}
	}
	if removal != "" && removal == last && !p.atWork() {
		if w.spent[removal] += passed; w.spent[removal] > longestRemoval {
			p.violate("R-L3", "nobody ends it for %v: %s", w.spent[removal], removal)
		}
	}
	if !p.othersAreWell(ill) || p.cyclesAny() || p.tooMany() || p.spoils() || p.failing() || p.cutOff() || p.slotsTaken("remediate") {
		return
	}
	for what := range ill {
		if w.spent[what] += passed; w.spent[what] > longestIll {
			p.violate("R-L3", "nobody heals for %v: %s", w.spent[what], what)
		}
	}
}

// backedOff reports whether the autoscaler waits because Nodes that it wanted did not come.
func (p *Play) backedOff() bool {
	cm := memory.Get[*corev1.ConfigMap](p.API, machine.Namespace, machine.ConfigMapStatus)
	if cm == nil {
		return false
	}
	s, err := autoscaling.ParseState(cm.Data[autoscaling.StateKey])
	for _, g := range s.Groups {
		if err == nil && g.BackoffUntil != nil && p.clock.Before(g.BackoffUntil.Time) {
			return true
		}
	}
	return false
}

// failing reports whether the check waits because what came in the place of others never worked (R-B27): 15 minutes, then longer.
func (p *Play) failing() bool {
	h := memory.Get[*machine.MachineHealthCheck](p.API, machine.Namespace, "workers")
	var record struct {
		Failing map[string]struct {
			Count int         `json:"count"`
			At    metav1.Time `json:"at"`
		} `json:"failing"`
	}
	if h == nil || json.Unmarshal([]byte(h.Annotations[machine.AnnotationInFlight]), &record) != nil {
		return false
	}
	for _, f := range record.Failing {
		if p.clock.Before(f.At.Add(15 * time.Minute << max(0, f.Count-1))) {
			return true
		}
	}
	return false
}

// cutOff reports whether the check takes what is ill for a broken network (R-B23): of three Nodes, and of a third of all, nothing is heard.
func (p *Play) cutOff() bool {
	nodes := memory.List[*corev1.Node](p.API)
	all, lost := len(nodes), 0
	for _, n := range nodes {
		if machine.NodeUnreachable(n) {
			lost++
		}
	}
	for _, m := range p.machines() {
		ref := m.Status.NodeRef
		if ref != nil && m.DeletionTimestamp == nil && memory.Get[*corev1.Node](p.API, "", ref.Name) == nil {
			all, lost = all+1, lost+1
		}
	}
	return lost >= 3 && 100*lost >= 33*all
}

// illOf names a Machine that a check has to see to, and the Node on which it is ill; "" for one that is well.
func (p *Play) illOf(m *machine.Machine) string {
	if m.DeletionTimestamp != nil || isMaster(m) || p.neighbors(m) || p.stuck(m) {
		return ""
	}
	var n *corev1.Node
	if ref := m.Status.NodeRef; ref != nil {
		n = memory.Get[*corev1.Node](p.API, "", ref.Name)
	}
	switch {
	case machine.Phase(m) == machine.PhaseFailed:
		return m.Name + " is Failed"
	case n != nil && !machine.NodeReady(n):
		return m.Name + " has a Node that is not Ready: " + string(n.UID)
	case n == nil && m.Status.NodeRef != nil:
		return m.Name + " has lost its Node"
	}
	return ""
}

// ill are the Machines that a check has to see to.
func (p *Play) ill() map[string]bool {
	all := map[string]bool{}
	if p.Level < Healing {
		return all
	}
	for _, m := range p.machines() {
		if what := p.illOf(m); what != "" {
			all[what] = true
		}
	}
	return all
}

// othersAreWell reports whether whoever is not ill runs.
func (p *Play) othersAreWell(ill map[string]bool) bool {
	n := 0
	for _, m := range p.machines() {
		if m.DeletionTimestamp != nil || !ill[p.illOf(m)] && machine.Phase(m) != machine.PhaseRunning && !p.bereaved(m) {
			return false
		}
		if !isMaster(m) && !p.neighbors(m) {
			n++
		}
	}
	set := p.set()
	return set != nil && n == int(*set.Spec.Replicas)
}
