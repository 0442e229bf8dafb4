// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Poison decides each scenario of a folder, in which f writes a Machine or a MachineSet, once more, with one that cannot be copied. It stands
// for whatever a function of ours may panic over: somebody is told of it, and what is decided about others is decided still (2c, R-L4).
func Poison(t *testing.T, f function.Function, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, file := range files {
		s, _, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		seen, _, err := Observe(f, s)
		if err != nil {
			t.Fatal(err)
		}
		before := f.Decide(seen)
		if o := spoil(before); o != nil {
			seen.Survive, seen.Poison = func(plan.Object, any) { told++ }, map[plan.Ref]bool{}
			after := f.Decide(seen)
			seen.Poison[plan.RefOf(o)] = true
			if lookups := f.Reads(seen).Lookups; slices.ContainsFunc(lookups, func(l snapshot.Lookup) bool { return l.UID == o.GetUID() }) {
				t.Errorf("%s: after a panic over %s it is asked about once more", file, plan.NameOf(o))
			}
			for _, q := range before.Do {
				for _, a := range q.Do {
					if !about(q, o) && !slices.ContainsFunc(after.Actions(), func(b plan.Action) bool { return b.Key() == a.Key() }) {
						t.Errorf("%s: with %s that cannot be copied nobody does %q", file, plan.NameOf(o), a.Key())
					}
				}
			}
		}
	}
	if told < 10 {
		t.Errorf("in %d scenarios %d times somebody was told of a Machine or a MachineSet that cannot be copied", len(files), told)
	}
}

// dreadful is what nobody can copy.
type dreadful struct{ runtime.Object }

func (dreadful) DeepCopyObject() runtime.Object { panic("dreadful") }

// spoil makes the first Machine or MachineSet that p writes one that cannot be copied, and returns it; nil if there is none.
func spoil(p plan.Plan) plan.Object {
	for _, a := range p.Actions() {
		var old plan.Object
		switch a := a.(type) { //nolint:gochecksumtype // others write neither
		case plan.Update:
			old = a.Old
		case plan.UpdateStatus:
			old = a.Old
		default:
			continue
		}
		switch o := old.(type) {
		case *machine.Machine:
			o.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte("{}"), Object: dreadful{}}
			return o
		case *machine.MachineSet:
			o.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte("{}"), Object: dreadful{}}
			return o
		}
	}
	return nil
}

// about reports whether a sequence does something to o.
func about(q plan.Sequence, o plan.Object) bool {
	return slices.ContainsFunc(q.Do, func(a plan.Action) bool { return strings.Contains(string(a.Key()), plan.NameOf(o)) })
}
