// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// unknownTo begins the record of a providerSpec that the cloud tells no capacity of.
const unknownTo = "unknown:"

// wantsCapacity reports whether the cloud is asked for the capacity of a set: whenever the set itself changed; in a scan unless
// what stands there is a person's word: the event about a change may have been lost, or the cloud did not answer then, and prices
// change by themselves (E4). What a cloud said lately will do, so that scans cost it no calls.
func wantsCapacity(s snapshot.Snapshot, set *machine.MachineSet) bool {
	return set.DeletionTimestamp == nil && !machine.IsPausedSet(set) && (s.Request.Is("MachineSet") || ours(set) || outdated(s, set))
}

// ours reports whether the capacity of a set is what its cloud told.
func ours(set *machine.MachineSet) bool {
	of := set.Annotations[machine.AnnotationCapacityOf]
	return of != "" && !strings.HasPrefix(of, unknownTo)
}

// contradicted reports whether the cloud says something else of the providerSpec than it did when the set's capacity was written.
// Another process may have written that with a later answer than the one that is known here: only a fresh one decides, or the two
// would write in turns.
func contradicted(s snapshot.Snapshot, set *machine.MachineSet) bool {
	t := s.Clouds[set.UID].Type
	return t != nil && wantsCapacity(s, set) && !outdated(s, set) && !maps.Equal(told(s, set, *t), set.Annotations)
}

// outdated reports whether nobody has asked the cloud about the capacity of the set's present providerSpec. A set without a
// record whose sizes are not all there has them from a person.
func outdated(s snapshot.Snapshot, set *machine.MachineSet) bool {
	was, recorded := set.Annotations[machine.AnnotationCapacityOf]
	whole := !slices.ContainsFunc(sizes, func(key string) bool { _, known := set.Annotations[key]; return !known })
	of, unknown := strings.CutPrefix(was, unknownTo)
	if _, known := set.Annotations[machine.AnnotationVCPU]; !known {
		return true
	}
	if !recorded {
		return whole
	}
	return !whole && !unknown || of != specOf(s, set)
}

// sizes are the annotations that a cloud's answer always has.
var sizes = []string{machine.AnnotationVCPU, machine.AnnotationMemoryMb, machine.AnnotationGPU}

// specOf returns a digest of what the set asks of its cloud: it decides which instance type is meant, and whose.
func specOf(s snapshot.Snapshot, set *machine.MachineSet) string {
	spec, _ := s.FilledSpec(set)
	sum := sha256.Sum256(spec)
	return hex.EncodeToString(sum[:8])
}

// annotateCapacity writes what the cloud says about the set's instance type, so that evaluate-autoscale can plan
// from zero without asking a cloud (C15, E4, E13).
func annotateCapacity(s snapshot.Snapshot, set *machine.MachineSet) plan.Sequence {
	c, asked := s.Clouds[set.UID]
	problem := cmp.Or(c.Err, c.Refused)
	switch {
	case !asked, !wantsCapacity(s, set):
		return plan.Sequence{}
	case problem == nil && c.Type == nil:
		return untold(s, set)
	case problem != nil && s.Request.Scan() && !outdated(s, set): // it was told, and stays
		return plan.Sequence{}
	case problem != nil:
		var seq plan.Sequence
		if c.Err == nil && problem.Code == provider.NotFound {
			seq = untold(s, set)
		}
		n := plan.Warning(set, "FailedUpdate", "capacity is unknown: "+problem.Message)
		seq.Notes = append(seq.Notes, n.From(cmp.Or(c.Source, name)))
		return seq
	}
	var seq plan.Sequence
	if a := told(s, set, *c.Type); !maps.Equal(a, set.Annotations) && (c.Fresh || outdated(s, set)) {
		next := set.DeepCopy()
		next.Annotations = a
		seq.Do = []plan.Action{plan.Update{Old: set, New: next, Why: "capacity of " + c.Type.Name}}
	}
	if c.Type.Problem != "" && (len(seq.Do) > 0 || !s.Request.Scan() || firstWith(s, c) == set) {
		seq.Notes = []plan.Note{plan.Warning(set, "FailedUpdate", c.Type.Problem).From(cmp.Or(c.Source, name))}
	}
	return seq
}

// firstWith returns the first set whose cloud has the problem of c: it is every set's of the account, and a scan would tell it of
// each.
func firstWith(s snapshot.Snapshot, c snapshot.Cloud) *machine.MachineSet {
	for _, set := range s.MachineSets {
		if its := s.Clouds[set.UID]; its.Account == c.Account && its.Type != nil && its.Type.Problem == c.Type.Problem {
			return set
		}
	}
	return nil
}

// told returns the annotations of a set whose instance type is t.
func told(s snapshot.Snapshot, set *machine.MachineSet, t provider.InstanceType) map[string]string {
	said := capacity(t)
	next := map[string]string{}
	maps.Copy(next, set.Annotations)
	delete(next, machine.AnnotationGPUType) // nobody else writes it
	maps.Copy(next, said)
	next[machine.AnnotationCapacityOf] = specOf(s, set)
	if anotherType(set.Annotations, next) { // what was said of the former one is not true of this one
		for _, key := range []string{machine.AnnotationArch, machine.AnnotationPrice} {
			if _, known := said[key]; !known {
				delete(next, key)
			}
		}
	}
	follow(next, set.Annotations)
	return next
}

// untold is a set of whose instances the cloud tells no capacity. That of a former providerSpec goes; a person's word stays, and
// the record keeps the next scan from asking again.
func untold(s snapshot.Snapshot, set *machine.MachineSet) plan.Sequence {
	next := set.DeepCopy()
	switch {
	case !outdated(s, set), !ours(set) && set.Annotations[machine.AnnotationVCPU] == "":
		return plan.Sequence{}
	case ours(set):
		for _, key := range append([]string{machine.AnnotationArch, machine.AnnotationGPUType, machine.AnnotationPrice, machine.AnnotationCapacityOf}, sizes...) {
			delete(next.Annotations, key)
		}
		follow(next.Annotations, set.Annotations)
	default:
		next.Annotations[machine.AnnotationCapacityOf] = unknownTo + specOf(s, set)
	}
	return plan.Sequence{Do: []plan.Action{plan.Update{Old: set, New: next, Why: "the cloud tells no capacity of what it asks for"}}}
}

// follow keeps copies of sizes under the new keys true to next's sizes, where was has the same under both: they were copied
// for a MachineAutoscaler, and are read first.
func follow(next, was map[string]string) {
	same := machine.CopiedCapacity(was)
	maps.DeleteFunc(same, func(key, value string) bool { return was[key] != value })
	if len(same) == 0 { // as in most sets
		return
	}
	copies := machine.CopiedCapacity(next)
	for key := range same {
		if copied, ok := copies[key]; ok {
			next[key] = copied
		} else {
			delete(next, key)
		}
	}
}

// anotherType reports whether the sizes in old are of another instance type than those in next. Where they are the same, or
// none were known, an architecture or a price that the cloud does not tell may be a person's word, which stays.
func anotherType(old, next map[string]string) bool {
	return slices.ContainsFunc(sizes, func(key string) bool {
		was, known := old[key]
		return known && was != next[key]
	})
}

func capacity(t provider.InstanceType) map[string]string {
	a := map[string]string{
		machine.AnnotationVCPU:     strconv.FormatInt((t.MilliCPU+999)/1000, 10),
		machine.AnnotationMemoryMb: strconv.FormatInt(t.Memory>>20, 10),
		machine.AnnotationGPU:      strconv.FormatInt(t.GPU, 10),
	}
	if t.Arch != "" {
		a[machine.AnnotationArch] = t.Arch
	}
	if t.GPU > 0 && t.GPUType != "" {
		a[machine.AnnotationGPUType] = t.GPUType
	}
	if t.PriceHour > 0 {
		a[machine.AnnotationPrice] = strconv.FormatFloat(t.PriceHour, 'f', -1, 64)
	}
	return a
}
