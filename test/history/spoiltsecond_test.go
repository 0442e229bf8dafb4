// SPDX-License-Identifier: Apache-2.0

package history

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

// beside puts a second set of two Machines there.
func beside(c *sim.Config) { c.Neighbor = 2 }

// moves has people move Machines from one set to the other.
func moves(c *sim.Config) { beside(c); c.Moves = true }

// takesTheFree takes Machines without an owner for the second set's.
func takesTheFree(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return machines(s, func(m *machine.Machine) {
			if len(m.OwnerReferences) == 0 {
				m.Labels[machine.LabelMachineSet] = "worker-b"
			}
		})
	})
}

// selectsAll has checks select every Machine.
func selectsAll(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, h := range s.HealthChecks {
			c := h.DeepCopy()
			c.Spec.Selector = metav1.LabelSelector{}
			next.HealthChecks[i] = c
		}
		return next
	})
}

// blindToLabels does not see to which set the labels of a Machine say that it belongs.
func blindToLabels(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return machines(s, func(m *machine.Machine) { delete(m.Labels, machine.LabelMachineSet) })
	})
}

// takesForDeleted takes every Machine for one that is told to go.
func takesForDeleted(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return machines(s, func(m *machine.Machine) { m.DeletionTimestamp = new(metav1.NewTime(s.Now)) })
	})
}

// makesTwins makes a second Machine beside each.
var makesTwins = ofMachines(alive, func(_ snapshot.Snapshot, m *machine.Machine) plan.Action {
	twin := m.DeepCopy()
	twin.ObjectMeta = metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name + "-twin", Labels: m.Labels, OwnerReferences: m.OwnerReferences, Finalizers: m.Finalizers}
	return plan.Create{Object: twin, Why: "a mistake"}
})

// overlooksSecond sees one set where there are two.
func overlooksSecond(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		next.MachineSets = slices.DeleteFunc(next.MachineSets, func(set *machine.MachineSet) bool { return set.Name != "worker" })
		return next
	})
}

// apart puts the second set, and a check, in a namespace of their own, by the names of the first ones.
func apart(c *sim.Config) { beside(c); c.Apart = true }

// sizesByName knows how large a set is to be by its name, whatever its namespace.
func sizesByName(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		most := map[string]int32{}
		for _, set := range s.MachineSets {
			most[set.Name] = max(most[set.Name], *set.Spec.Replicas)
		}
		return sets(s, func(set *machine.MachineSet) { set.Spec.Replicas = new(most[set.Name]) })
	})
}

// checksByName knows what a check wants by its name, whatever its namespace.
func checksByName(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, h := range s.HealthChecks {
			at := slices.IndexFunc(s.HealthChecks, func(o *machine.MachineHealthCheck) bool { return o.Name == h.Name && o.Namespace != h.Namespace })
			if at < 0 || h.Namespace == machine.Namespace {
				continue
			}
			c := h.DeepCopy()
			c.Spec = *s.HealthChecks[at].Spec.DeepCopy()
			next.HealthChecks[i] = c
		}
		return next
	})
}

// twoClusters has another cluster with the same id in the account.
func twoClusters(c *sim.Config) { c.Shared = true }

// marksNobody sees no cluster's mark.
func marksNobody(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		next.Accounts = maps.Clone(s.Accounts)
		for key, a := range next.Accounts {
			a.Instances = slices.Clone(a.Instances)
			for k := range a.Instances {
				a.Instances[k].ClusterUID = ""
			}
			next.Accounts[key] = a
		}
		return next
	})
}
