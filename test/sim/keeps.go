// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

const (
	// keptFor is for how many rounds of calm a policy lasts, if it refuses anything.
	keptFor = 40
	// releasedAfter is longer than a check holds up others for a Machine.
	releasedAfter = 40 * time.Minute
	// keptQuietly is how many rounds are written in at most, after something was.
	keptQuietly = 4
	// oftenRefused is how often something is refused before somebody has to have said so.
	oftenRefused = 3
)

// keptWords are those of the policy's refusal.
const keptWords = "nobody deletes this before the audit"

var errKept = &cluster.RefusedError{Err: errors.New("admission webhook denied the request: " + keptWords)}

// hold is of an object that a policy of people keeps: nobody may delete it, nor evict it.
type hold struct {
	kind    plan.Kind
	name    string
	refused int  // so often
	told    bool // by an event or a condition
}

// keep has people keep a Machine, a Node or a Pod by a policy, or take that policy back.
func (p *Play) keep(what int) {
	if p.kept != nil {
		p.tracef("people take back the policy that keeps %s %s", p.kept.kind, p.kept.name)
		p.kept = nil
		return
	}
	var all []plan.Object
	switch what {
	case 0:
		ill := p.ill() // which somebody may soon want to delete
		for _, m := range p.first() {
			if len(ill) == 0 || ill[p.illOf(m)] || p.steps%2 == 0 {
				all = append(all, m)
			}
		}
	case 1:
		for _, n := range memory.List[*corev1.Node](p.API) {
			all = append(all, n)
		}
	default:
		for _, pod := range p.allPods() {
			all = append(all, pod)
		}
	}
	if i := p.pick(KindWhich, len(all)); i < len(all) {
		p.kept = &hold{kind: plan.KindOf(all[i]), name: all[i].GetName()}
		p.tracef("a policy keeps %s %s", p.kept.kind, p.kept.name)
	}
}

// keeps returns what the policy says to an action.
func (p *Play) keeps(a plan.Action) error {
	var o plan.Object
	switch a := a.(type) {
	case plan.Delete:
		o = a.Object
	case plan.Evict:
		o = a.Pod
	case plan.Create, plan.Update, plan.UpdateStatus, plan.Approve, plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
		return nil
	}
	if p.kept == nil || plan.KindOf(o) != p.kept.kind || o.GetName() != p.kept.name {
		return nil
	}
	p.kept.refused++
	return errKept
}

// hears remembers that people are told of the policy: of a Machine that it keeps on that Machine itself.
func (p *Play) hears(of plan.Ref, message string) {
	if p.kept != nil && strings.Contains(message, keptWords) && (p.kept.kind != "Machine" || of.Kind == "Machine" && of.Name == p.kept.name) {
		p.kept.told = true
	}
}

// stuck reports whether the policy keeps a Machine, its Node or a Pod there, and somebody wanted it gone.
func (p *Play) stuck(m *machine.Machine) bool {
	if p.kept == nil || p.kept.refused == 0 {
		return false
	}
	node := ""
	if m.Status.NodeRef != nil {
		node = m.Status.NodeRef.Name
	}
	switch p.kept.kind {
	case "Machine":
		return m.Name == p.kept.name
	case "Node":
		return node == p.kept.name
	default:
		return slices.ContainsFunc(p.allPods(), func(pod *corev1.Pod) bool { return pod.Name == p.kept.name && pod.Spec.NodeName == node })
	}
}

// ofKept reports whether a Node, or its Machine, is stuck.
func (p *Play) ofKept(n *corev1.Node) bool {
	return p.kept != nil && (p.kept.kind == "Node" && p.kept.name == n.Name ||
		slices.ContainsFunc(p.machines(), func(m *machine.Machine) bool { return p.stuck(m) && hasNode(m, n) }))
}

// unstuck are the Machines that are not stuck, nor wait for their turn because a check has one in flight that is.
func (p *Play) unstuck() []*machine.Machine {
	all := p.machines()
	if p.kept == nil || !slices.ContainsFunc(all, p.stuck) {
		return all
	}
	h := p.check()
	waits := h != nil && slices.ContainsFunc(all, func(m *machine.Machine) bool { return p.stuck(m) && flights(h)[m.UID] })
	return slices.DeleteFunc(slices.Clone(all), func(m *machine.Machine) bool { return p.stuck(m) || waits && p.illOf(m) != "" })
}

// permit has people take the policy back. By then all else is as it is wanted, stays so for longer than a check holds up others, and
// somebody said what is not.
func (p *Play) permit(wrong string) {
	if wrong == "" && p.kept.refused > 0 && p.sleeper() == nil {
		p.clock = p.clock.Add(releasedAfter)
		clear(p.warm) // what a process remembers for a while, it does by a clock that stands still here
		p.saysSo()
		p.kept.refused, p.kept.told = 0, false
		wrong = p.isWrittenOn()
	}
	if _, what, is := strings.Cut(wrong, ": "); is && !p.unbounded && !p.reset && !p.restored && !p.failing() {
		p.violate("R-L3", "what a policy keeps, %s %s, holds up others: %s", p.kept.kind, p.kept.name, what)
	}
	p.saysSo()
	p.tracef("people take back the policy that keeps %s %s", p.kept.kind, p.kept.name)
	p.kept = nil
}

// saysSo holds that people were told of what was refused.
func (p *Play) saysSo() {
	if p.kept.refused >= oftenRefused && !p.kept.told {
		p.violate("R-L2", "%s %s is refused %d times, and nobody says so", p.kept.kind, p.kept.name, p.kept.refused)
	}
}

// isWrittenOn says what is wrong after some rounds in which the policy lasts, in the last of which nothing is written each time (R-S14).
func (p *Play) isWrittenOn() string {
	written := map[string]int{}
	for round := range 2 * keptQuietly {
		before := len(p.API.Writes())
		p.round(quickRounds)
		if now := p.API.Writes()[before:]; round >= keptQuietly {
			for _, w := range now {
				written[w.Resource+" "+w.Name] |= 1 << (round - keptQuietly)
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(written)) {
		if written[what] == 1<<keptQuietly-1 {
			p.violate("R-S14", "while a policy keeps %s %s, %s is written again and again", p.kept.kind, p.kept.name, what)
		}
	}
	return p.wrong()
}

// hearsStatus does the same of what a status says.
func (p *Play) hearsStatus(a plan.UpdateStatus) {
	if m, is := a.New.(*machine.Machine); is && p.kept != nil {
		of := plan.Ref{Kind: "Machine", Namespace: m.Namespace, Name: m.Name}
		for _, c := range m.Status.Conditions {
			p.hears(of, c.Message)
		}
		if m.Status.ErrorMessage != nil {
			p.hears(of, *m.Status.ErrorMessage)
		}
	}
}
