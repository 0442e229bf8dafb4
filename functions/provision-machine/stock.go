// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// wantsStock reports whether a set's replicas follow its cloud's stock (E37). Only a scan looks, because no event tells
// of a host that joins or leaves, and because it knows every Machine. A set that people paused is resized by nobody (C16).
func wantsStock(s snapshot.Snapshot, set *machine.MachineSet) bool {
	_, follows := set.Annotations[machine.AnnotationFollowHosts]
	return follows && s.Request.Scan() && machine.MayResize(set)
}

// followStock makes a set as large as its stock: a Machine for each that has a host, and for each host that is free. A
// Machine on its way out counts until its host is clean, so that the one that replaces it waits for that host instead of
// being removed for it. One that records a host counts also while that is in no list: lists are empty for a moment when hosts
// are restored, and a set that shrank would have the disks of the others wiped (R-S12). Where a MachineAutoscaler decides, it
// alone does.
func followStock(s snapshot.Snapshot, set *machine.MachineSet) plan.Sequence {
	c, asked := s.Clouds[set.UID]
	if !asked || !wantsStock(s, set) {
		return plan.Sequence{}
	}
	tell := func(message string) plan.Sequence {
		return plan.Sequence{Notes: []plan.Note{plan.Warning(set, "FailedAutoscaleToHosts", message).From(cmp.Or(c.Source, name))}}
	}
	switch problem := cmp.Or(c.Err, c.Refused); {
	case autoscaled(set):
		return tell("a MachineAutoscaler has the say over replicas: take one of the two annotations away")
	case problem != nil:
		return tell("the hosts are unknown: " + problem.Message)
	case c.Stock == nil:
		return tell("this cloud has no stock of hosts")
	}
	want := hosts(s, set, *c.Stock)
	if set.Spec.Replicas != nil && *set.Spec.Replicas == want {
		return plan.Sequence{}
	}
	next := set.DeepCopy()
	next.Spec.Replicas = &want
	return plan.Sequence{Do: []plan.Action{plan.Update{Old: set, New: next, Why: fmt.Sprintf("as many as there are hosts, %d of them free", c.Stock.Free)}}}
}

// hosts counts what is free and what the set's Machines hold, with those that it is about to adopt: made anew over its Machines, it controls none
// at first, and would give up all.
func hosts(s snapshot.Snapshot, set *machine.MachineSet, stock provider.Stock) int32 {
	all := int32(stock.Free)
	selector, err := machine.SelectorOf(set)
	for _, m := range s.Machines {
		holds := machine.ProviderID(m) != "" && m.DeletionTimestamp == nil || slices.Contains(stock.Taken, m.Name)
		if holds && (machine.Controls(set, m) || err == nil && machine.Adopts(set, selector, m)) {
			all++
		}
	}
	return all
}

// autoscaled reports whether evaluate-autoscale decides about a set's replicas.
func autoscaled(set *machine.MachineSet) bool {
	return slices.ContainsFunc([]string{machine.AnnotationAutoscaler, machine.AnnotationMinSize, machine.AnnotationMaxSize}, func(key string) bool {
		_, has := set.Annotations[key]
		return has
	})
}
