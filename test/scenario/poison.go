// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// Poison decides each scenario of a folder, in which f writes a Machine or a MachineSet, once more, with one that cannot be copied. It stands
// for whatever a function of ours may panic over: somebody is told of it, and the decision goes on (2c, R-L4).
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
		if spoil(f.Decide(seen)) {
			seen.Survive = func(plan.Object, any) { told++ }
			f.Decide(seen)
		}
	}
	if told < 10 {
		t.Errorf("in %d scenarios %d times somebody was told of a Machine or a MachineSet that cannot be copied", len(files), told)
	}
}

// dreadful is what nobody can copy.
type dreadful struct{ runtime.Object }

func (dreadful) DeepCopyObject() runtime.Object { panic("dreadful") }

// spoil makes the first Machine or MachineSet that p writes one that cannot be copied, and reports whether there is one.
func spoil(p plan.Plan) bool {
	for _, a := range p.Actions() {
		var old plan.Object
		switch a := a.(type) {
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
			return true
		case *machine.MachineSet:
			o.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte("{}"), Object: dreadful{}}
			return true
		}
	}
	return false
}
