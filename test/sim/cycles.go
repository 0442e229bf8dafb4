// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

const (
	// hostBoots is how long a host takes from its power to its Node where people power-cycle: longer than the timeouts of checkOf(), but
	// not than its Machine may take to start.
	hostBoots = 3 * time.Minute
	// instanceBoots is the same where one call cycles an instance: its Machine says nothing of that meanwhile.
	instanceBoots = 30 * time.Second
	// heldOffFor is how long an instance takes until it is off, where it can be held off.
	heldOffFor = 5 * time.Second
)

// cycles is what is known of power-cycles.
type cycles struct {
	booting map[string]time.Time // by provider id: until when it boots, by the cloud's clock
	wishes  map[types.UID]wish   // by Machine: people's last one
	minds   map[types.UID]int    // by Machine: how often people and checks changed their mind about one
	done    map[types.UID]int    // and how often its power went
}

// wish is one of a person to power-cycle a Machine's host.
type wish struct {
	at  time.Time
	ill bool // somebody may have seen that it was not well by then, or was about to do something about it
}

func (c cycles) clone() cycles {
	return cycles{copied(c.booting), copied(c.wishes), copied(c.minds), copied(c.done)}
}

// holdsPower chooses whether the power of a cloud's instances can be held off. That of hosts always can.
func (p *Play) holdsPower() {
	if p.Cycles && p.pick(KindWorld, 2) == 1 {
		p.Cloud.Hold = heldOffFor
	}
}

// switches reports whether power is held off for a power-cycle, which is done once however often answers are lost.
func (p *Play) switches() bool { return p.hosts != nil || p.Cloud.Hold > 0 }

// cycle has people wish for a power-cycle of a Machine's host, or at times take back that somebody did.
func (p *Play) cycle(m *machine.Machine) {
	_, wished := m.Annotations[machine.AnnotationExternalRepair]
	if wished && p.pick(KindWhich, 4) < 2 {
		return
	}
	p.minds[m.UID]++
	if wished {
		p.tracef("people take back that %s is power-cycled", m.Name)
		if !machine.Restarting(m) { // nothing tells any more why its host is off
			delete(p.wishes, m.UID)
		}
		p.change(m, func(o *machine.Machine) { delete(o.Annotations, machine.AnnotationExternalRepair) })
		return
	}
	p.tracef("people wish for a power-cycle of %s", m.Name)
	var n *corev1.Node
	if m.Status.NodeRef != nil {
		n = memory.Get[*corev1.Node](p.API, "", m.Status.NodeRef.Name)
	}
	well := machine.Phase(m) == machine.PhaseRunning && isNodeOf(m, n) && machine.NodeReady(n) && m.Annotations[machine.AnnotationRemediatedBy] == ""
	p.wishes[m.UID] = wish{p.clock, !well || p.ailed[machine.ProviderID(m)]}
	p.change(m, func(o *machine.Machine) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, machine.AnnotationExternalRepair, "")
	})
}

// poweredOff counts that the power of a Machine's instance went (E36).
func (p *Play) poweredOff(uid types.UID, name string) {
	if p.done[uid]++; p.Cycles && p.switches() && p.done[uid] > p.minds[uid] && !p.unbounded && !p.reset && !p.restored {
		p.violate("E36", "the power of %s goes %d times, %d times somebody asked for it", name, p.done[uid], p.minds[uid])
	}
}

// poweredOn has an instance boot.
func (p *Play) poweredOn(id string) {
	if !p.Cycles {
		return
	}
	p.ailed[id] = true
	p.booting[id] = p.elsewhere().Add(instanceBoots)
	if p.switches() {
		p.booting[id] = p.elsewhere().Add(hostBoots)
	}
}

// boots reports whether an instance has power, but its kubelet does not run yet.
func (p *Play) boots(id string) bool {
	until, is := p.booting[id]
	return is && p.elsewhere().Before(until)
}

// restarts reports whether anything is being power-cycled.
func (p *Play) restarts() bool {
	for id := range p.booting {
		if p.boots(id) {
			return true
		}
	}
	return false
}

// watchWish counts what a function wishes, or takes back.
func (p *Play) watchWish(old, now *machine.Machine) {
	_, had := old.Annotations[machine.AnnotationExternalRepair]
	_, has := now.Annotations[machine.AnnotationExternalRepair]
	claim := now.Annotations[machine.AnnotationRemediatedBy]
	if had != has || strings.Contains(claim, " power-cycle ") && claim != old.Annotations[machine.AnnotationRemediatedBy] {
		p.minds[now.UID]++
	}
}

// watchWelcome holds that a power-cycle is over no sooner than the host has booted, or its Node was read as one of which something is
// heard (E36): a check goes by that.
func (p *Play) watchWelcome(q *proc, old, now *machine.Machine) {
	if !cycling(old) || cycling(now) {
		return
	}
	delete(p.wishes, now.UID)
	n := p.nodeOf(q, now)
	if p.Functions[q.fn].Name == "provision-machine" && p.switches() && p.boots(machine.ProviderID(now)) && (n == nil || machine.NodeUnreachable(n)) {
		p.violate("E36", "%s calls the power-cycle of %s over, which boots", q, now.Name)
	}
}

// cycledByPeople reports whether a Machine that was well is being power-cycled because people wish so, and not for longer than a Machine
// may take to start: no check may take that for an illness.
func (p *Play) cycledByPeople(m *machine.Machine) bool {
	w, is := p.wishes[m.UID]
	return is && !w.ill && cycling(m) && p.clock.Before(w.at.Add(mayStartFor)) && machine.Phase(m) != machine.PhaseFailed && !p.reset && !p.restored
}

// cycling reports whether somebody wishes for a power-cycle of m's host, or it has begun.
func cycling(m *machine.Machine) bool {
	_, wished := m.Annotations[machine.AnnotationExternalRepair]
	return wished || machine.Restarting(m)
}

// cyclesAny reports whether a Machine is not well because it is power-cycled.
func (p *Play) cyclesAny() bool {
	return p.Cycles && (p.restarts() || slices.ContainsFunc(p.machines(), cycling))
}
