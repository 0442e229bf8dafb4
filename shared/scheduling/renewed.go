// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// A set can be changed while its Machines stay as they are: the next one follows from what the set says now (SPEC C13, C14).

// memoryLost is the part of an instance's memory that a Node may lack beside what the set says: firmware and kernel keep some.
const memoryLost = 0.2

// outdated reports that the next Machine of a Node's set will have another size: its cloud is asked for something else, and
// what is known about that is not what the Node has.
func (t Templates) outdated(set *machine.MachineSet, n Node) bool {
	switch {
	case t.Changed[set.UID]:
		return true
	case n.Machine == nil:
		return false
	}
	next, ok := Capacity(set.Annotations)
	if !ok || asksTheSame(set, n.Machine) {
		return false
	}
	has := n.Status.Capacity
	if next.Cpu().Cmp(*has.Cpu()) != 0 || !near(Amount(corev1.ResourceMemory, *next.Memory()), Amount(corev1.ResourceMemory, *has.Memory()), memoryLost) {
		return true
	}
	for name, q := range next {
		other, ok := has[name]
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage:
		default:
			if !ok || q.Cmp(other) != 0 {
				return true
			}
		}
	}
	return false
}

// asksTheSame reports whether a Machine asks its cloud for everything that its set asks for now. It may ask for more, which
// was filled in when it was admitted.
func asksTheSame(set *machine.MachineSet, m *machine.Machine) bool {
	var now, was any
	a, b := raw(set.Spec.Template.Spec.ProviderSpec.Value), raw(m.Spec.ProviderSpec.Value)
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return json.Unmarshal(a, &now) != nil || json.Unmarshal(b, &was) != nil || within(now, was)
}

// NextType returns of which type of instance a set's next Machine is, in its cloud's words, given one that it made: what the set says
// now in the place where the Machine says its type; else that. It is empty where the cloud has no types.
func NextType(set *machine.MachineSet, m *machine.Machine) string {
	word := machine.Word(m, machine.LabelInstanceType)
	if word == "" { // its cloud has none
		return ""
	}
	var now, was any
	a, b := raw(set.Spec.Template.Spec.ProviderSpec.Value), raw(m.Spec.ProviderSpec.Value)
	if bytes.Equal(a, b) || json.Unmarshal(a, &now) != nil || json.Unmarshal(b, &was) != nil {
		return word
	}
	return cmp.Or(inPlaceOf(word, now, was), word)
}

// inPlaceOf returns another word that stands in now where one stands in was.
func inPlaceOf(word string, now, was any) string {
	switch was := was.(type) {
	case string:
		if next, _ := now.(string); was == word && next != word {
			return next
		}
	case map[string]any:
		next, _ := now.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(was)) {
			if other := inPlaceOf(word, next[k], was[k]); other != "" {
				return other
			}
		}
	}
	return ""
}

// Stands reports whether a Node is of the type and the size of its set's next one, as far as that is known.
func (t Templates) Stands(set *machine.MachineSet, n Node) bool {
	return !t.outdated(set, n) && (n.Machine == nil || NextType(set, n.Machine) == machine.Word(n.Machine, machine.LabelInstanceType))
}

// within reports whether whatever a says b says as well.
func within(a, b any) bool {
	from, ok := a.(map[string]any)
	to, is := b.(map[string]any)
	if !ok || !is {
		return reflect.DeepEqual(a, b)
	}
	for k, v := range from {
		if other, there := to[k]; !there || !within(v, other) {
			return false
		}
	}
	return true
}

// renewed returns a Node with the labels and taints that its set's next one will carry, where the set says others now than
// its Machine does.
func renewed(set *machine.MachineSet, n Node) Node {
	if n.Machine == nil {
		return n
	}
	was, _ := machine.CarriedBy(n.Machine).Fit()
	is, _ := machine.CarriedByTemplate(set).Fit()
	if maps.Equal(was.Labels, is.Labels) && slices.EqualFunc(was.Taints, is.Taints, func(a, b corev1.Taint) bool { return a.Value == b.Value && a.MatchTaint(&b) }) {
		return n
	}
	next := *n.Node
	next.Labels = maps.Clone(n.Labels)
	maps.DeleteFunc(next.Labels, func(k, v string) bool { return is.Labels[k] != v && was.Labels[k] == v })
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	maps.Copy(next.Labels, is.Labels)
	next.Spec.Taints = slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool {
		same := func(x corev1.Taint) bool { return x.MatchTaint(&t) }
		return slices.ContainsFunc(was.Taints, same) || slices.ContainsFunc(is.Taints, same)
	})
	next.Spec.Taints = append(next.Spec.Taints, is.Taints...)
	n.Node = &next
	return n
}
