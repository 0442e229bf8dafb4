// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

// edits has people change objects by hand too.
func edits(c *sim.Config) { c.Edits = true }

// deaf does not hear who has the say over Machines and their sets.
func deaf(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := sets(s, func(set *machine.MachineSet) { set.Spec.AuthoritativeAPI = "" })
		for i, m := range s.Machines {
			c := m.DeepCopy()
			c.Spec.AuthoritativeAPI = ""
			next.Machines[i] = c
		}
		return next
	})
}

// masters gives the control plane Machines too.
func masters(c *sim.Config) { c.Masters = true }

// blindToMasters takes every Node for a worker.
func blindToMasters(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, n := range s.Nodes {
			c := n.DeepCopy()
			delete(c.Labels, machine.LabelMaster)
			next.Nodes[i] = c
		}
		return next
	})
}

// early lets people's hooks hold Machines before they are drained.
func early(c *sim.Config) { c.Early = true }

// drainsHeld sees no hook that is before a drain.
func drainsHeld(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return machines(s, func(m *machine.Machine) { m.Spec.LifecycleHooks.PreDrain = nil })
	})
}

// small allows two Nodes beside the control plane's.
func small(c *sim.Config) { c.Nodes = 5 }

// boundless does not see how many Nodes there may be.
func boundless(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, a := range s.ClusterAutoscalers {
			c := a.DeepCopy()
			c.Spec.ResourceLimits = nil
			next.ClusterAutoscalers[i] = c
		}
		return next
	})
}

// deletesPaused deletes the instances of paused Machines.
var deletesPaused = ofInstances(func(_ snapshot.Snapshot, m *machine.Machine) bool {
	return machine.IsPaused(m) && m.Spec.ProviderID != nil
})

// evictsAnybody evicts every Pod that runs.
var evictsAnybody = rogue(func(s snapshot.Snapshot) (all []plan.Action) {
	for _, p := range s.Pods {
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			all = append(all, plan.Evict{Pod: p, Why: "a mistake"})
		}
	}
	return all
}, "Pod")

// unchecks lets people take the check away.
func unchecks(c *sim.Config) { c.Unchecks = true }

// healsUnasked deletes Machines where no check is.
var healsUnasked = ofMachines(func(s snapshot.Snapshot, m *machine.Machine) bool {
	return len(s.HealthChecks) == 0 && alive(s, m)
}, deleteMachine)

// shorts lets lists lack most of what there is.
func shorts(c *sim.Config) { c.Shorts = true }

// believesLists does not know how much lists held the last time.
func believesLists(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, cm := range s.ConfigMaps {
			state, err := autoscaling.ParseState(cm.Data[autoscaling.StateKey])
			if cm.Name != machine.ConfigMapStatus || err != nil {
				continue
			}
			c := cm.DeepCopy()
			state.Seen = autoscaling.Seen{}
			c.Data[autoscaling.StateKey] = state.String()
			next.ConfigMaps[i] = c
		}
		return next
	})
}

// budget allows one disruption at once, hourly one within an hour.
func budget(c *sim.Config) { c.Budget, c.Hourly = 1, 3 }
func hourly(c *sim.Config) { c.Budget, c.Hourly = 2, 1 }

// unlimited does not see how many disruptions people allow.
func unlimited(f function.Function) function.Function {
	return disruptions(f, func(data map[string]string) {
		delete(data, machine.DisruptionAtMax)
		delete(data, machine.DisruptionHour)
	})
}

// forgetsSlots stores no slot.
func forgetsSlots(f function.Function) function.Function {
	return written(func(_, now *corev1.ConfigMap) {
		if now.Name == machine.ConfigMapDisrupt {
			now.Data[machine.DisruptionKey] = ""
		}
	})(f)
}

// disruptions changes what the record of disruptions is read as.
func disruptions(f function.Function, change func(map[string]string)) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, cm := range s.ConfigMaps {
			if cm.Name == machine.ConfigMapDisrupt {
				c := cm.DeepCopy()
				change(c.Data)
				next.ConfigMaps[i] = c
			}
		}
		return next
	})
}

// rivals has two MachineAutoscalers want one set.
func rivals(c *sim.Config) { c.Rivals = true }

// forgetsOwners does not see which MachineAutoscaler has a set.
func forgetsOwners(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return sets(s, func(set *machine.MachineSet) { delete(set.Annotations, machine.AnnotationAutoscaler) })
	})
}

// volumes gives every Pod a volume.
func volumes(c *sim.Config) { c.Volumes = true }

// keeps lets a policy keep something.
func keeps(c *sim.Config) { c.Keeps = true }

// deniedBy reports whether a Machine says that a policy denied something.
func deniedBy(m *machine.Machine) bool {
	return slices.ContainsFunc(m.Status.Conditions, func(c machine.Condition) bool { return strings.Contains(c.Message, "webhook denied") })
}

// mute says nothing of what a policy denied.
func mute(f function.Function) function.Function {
	return planned(without(f, func(a plan.Action) bool {
		u, _ := a.(plan.UpdateStatus)
		m, is := u.New.(*machine.Machine)
		return is && deniedBy(m)
	}), func(_ snapshot.Snapshot, p plan.Plan) plan.Plan {
		p.Notes = nil
		for i := range p.Do {
			p.Do[i].Notes = nil
		}
		return p
	})
}

// waitsForPolicies does nothing while a policy denies what is wanted of one Machine.
func waitsForPolicies(f function.Function) function.Function {
	return planned(f, func(s snapshot.Snapshot, p plan.Plan) plan.Plan {
		if slices.ContainsFunc(s.Machines, deniedBy) {
			return plan.Plan{}
		}
		return p
	})
}
