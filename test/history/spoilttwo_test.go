// SPDX-License-Identifier: Apache-2.0

package history

import (
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

const secondSet = "worker-b"

// two has the autoscaler choose between two sets.
func two(c *sim.Config) { c.Neighbor, c.Scaled = 1, true }

// twoSmall allows four Nodes of both.
func twoSmall(c *sim.Config) { two(c); c.Nodes = 7 }

// countsFirst counts the Nodes of the first set alone against those that there may be.
func countsFirst(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, a := range s.ClusterAutoscalers {
			c := a.DeepCopy()
			for _, set := range s.MachineSets {
				if set.Name == secondSet && c.Spec.ResourceLimits != nil {
					*c.Spec.ResourceLimits.MaxNodesTotal += *set.Spec.Replicas
				}
			}
			next.ClusterAutoscalers[i] = c
		}
		return next
	})
}

// seesNoneCome does not see what the second set has asked for and has no Machine of yet.
func seesNoneCome(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return sets(s, func(set *machine.MachineSet) {
			there := int32(0)
			for _, m := range s.Machines {
				if m.Labels[machine.LabelMachineSet] == set.Name && m.Status.NodeRef != nil {
					there++
				}
			}
			if set.Name == secondSet {
				*set.Spec.Replicas = min(*set.Spec.Replicas, there)
			}
		})
	})
}

// ofSecond changes what is written of the second set.
func ofSecond(change func(old, now *machine.MachineSet)) mistake {
	return written(func(old, now *machine.MachineSet) {
		if now.Name == secondSet {
			change(old, now)
		}
	})
}

var (
	growsSecond = ofSecond(func(old, now *machine.MachineSet) {
		if *now.Spec.Replicas > *old.Spec.Replicas {
			*now.Spec.Replicas = 3
		}
	})
	growsSecondFar = ofSecond(func(old, now *machine.MachineSet) {
		if *now.Spec.Replicas > *old.Spec.Replicas {
			*now.Spec.Replicas = 4
		}
	})
	secondWithoutVictims = ofSecond(func(_, now *machine.MachineSet) { delete(now.Annotations, machine.AnnotationVictims) })
	// secondOvershoots has all Machines of the second set go where one is too many.
	secondOvershoots = ofSecond(func(old, now *machine.MachineSet) {
		was, _ := machine.ParseLedger(old.Annotations[machine.AnnotationLedger])
		l, err := machine.ParseLedger(now.Annotations[machine.AnnotationLedger])
		if err == nil && l.Rebuilt == "" && len(l.Active) < len(was.Active) {
			l.Active = nil
			now.Annotations[machine.AnnotationLedger] = l.String()
		}
	})
)
