// SPDX-License-Identifier: Apache-2.0

package history

import (
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

// cycles lets people have things power-cycled.
func cycles(c *sim.Config) { c.Cycles = true }

func cycling(m *machine.Machine) bool {
	_, wished := m.Annotations[machine.AnnotationExternalRepair]
	return wished || machine.Restarting(m)
}

// readMachines changes what a function reads of Machines.
func readMachines(f function.Function, change func(*machine.Machine)) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, m := range s.Machines {
			c := m.DeepCopy()
			change(c)
			next.Machines[i] = c
		}
		return next
	})
}

// blindToPower sees nothing of what people wish, or is under way, about the power of hosts.
func blindToPower(f function.Function) function.Function {
	return readMachines(f, func(m *machine.Machine) {
		delete(m.Annotations, machine.AnnotationExternalRepair)
		delete(m.Annotations, machine.AnnotationPoweredOff)
	})
}

// forgetsPower takes a power-cycle whose host is on again for one of another wish.
func forgetsPower(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, m := range s.Machines {
			if poweredAgain(s, m) {
				next.Machines[i] = m.DeepCopy()
				next.Machines[i].Annotations[machine.AnnotationPoweredOff] = "somebody power-cycle once"
			}
		}
		return next
	})
}

// poweredAgain reports whether m's host was off for a power-cycle, and is on.
func poweredAgain(s snapshot.Snapshot, m *machine.Machine) bool {
	_, off := m.Annotations[machine.AnnotationPoweredOff]
	found := s.Clouds[m.UID].Found
	return off && len(found) > 0 && found[0].Power == provider.PowerOn
}

// welcomesAtOnce ends a power-cycle as soon as the host is on.
func welcomesAtOnce(f function.Function) function.Function {
	return planned(f, func(s snapshot.Snapshot, p plan.Plan) plan.Plan {
		for _, m := range s.Machines {
			if poweredAgain(s, m) {
				next := m.DeepCopy()
				machine.ForgetNode(next)
				delete(next.Annotations, machine.AnnotationExternalRepair)
				p.Add(plan.Sequence{Do: []plan.Action{plan.Update{Old: m, New: next}}})
			}
		}
		return p
	})
}

// keepsPower never ends a power-cycle.
func keepsPower(f function.Function) function.Function {
	return without(f, func(a plan.Action) bool {
		old, now, is := updated[*machine.Machine](a)
		return is && cycling(old) && !cycling(now)
	})
}
