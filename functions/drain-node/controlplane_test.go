// SPDX-License-Identifier: Apache-2.0

package drainnode

import (
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// unreadableSlot returns what is seen of a control-plane Machine that wants the slot while its record is text.
func unreadableSlot(tb testing.TB) func(text string) snapshot.Snapshot {
	tb.Helper()
	s, _, err := scenario.Load("testdata/master-slot-unreadable.txtar")
	if err != nil {
		tb.Fatal(err)
	}
	seen, _, err := scenario.Observe(Function, s)
	if err != nil {
		tb.Fatal(err)
	}
	return func(text string) snapshot.Snapshot {
		world := seen.Clone()
		for i, cm := range world.ConfigMaps {
			if cm.Name == machine.ConfigMapDisrupt {
				world.ConfigMaps[i] = cm.DeepCopy()
				world.ConfigMaps[i].Data = map[string]string{slotKey: text}
			}
		}
		return world
	}
}

// disrupts reports whether a plan takes the slot, or does something to a Node.
func disrupts(p plan.Plan) bool {
	for _, a := range p.Actions() {
		if _, status := a.(plan.UpdateStatus); !status {
			return true
		}
	}
	return false
}

func TestSlotsAreReadInOneWay(t *testing.T) {
	t.Parallel()
	world := unreadableSlot(t)
	const gone = `"namespace":"openshift-machine-api","name":"master-9","uid":"machine-m9"`
	for name, tt := range map[string]struct {
		text   string
		broken bool
	}{
		"of a machine that is gone": {`{"schema":1,` + gone + `}`, false},
		"nobody's":                  {"", false},
		"a field twice":             {`{"schema":1,` + gone + `,"uid":"machine-m1"}`, true},
		"a field in capitals":       {`{"schema":1,` + gone + `,"UID":"machine-m1"}`, true},
		"a field of nobody":         {`{"schema":1,` + gone + `,"x":1}`, true},
		"something behind it":       {`{"schema":1,` + gone + `}{}`, true},
		"another schema":            {`{"schema":2,` + gone + `}`, true},
		"without a uid":             {`{"schema":1,"namespace":"openshift-machine-api","name":"master-1"}`, true},
		"without a name":            {`{"schema":1,"namespace":"openshift-machine-api","uid":"machine-m1"}`, true},
		"without a namespace":       {`{"schema":1,"name":"master-1","uid":"machine-m1"}`, true},
		"null":                      {`null`, true},
	} {
		p := Decide(world(tt.text))
		if disrupts(p) == tt.broken || tt.broken && !strings.Contains(p.String(), "nobody disrupts the control plane") {
			t.Errorf("%s: %v", name, p)
		}
	}
}

// Whatever stands in the record of the slot: who does not understand all of it disrupts nothing, and says why; what is
// understood says the same when it is written again.
func FuzzSlot(f *testing.F) {
	world := unreadableSlot(f)
	f.Add(`{"schema":1,"namespace":"openshift-machine-api","name":"master-0","uid":"machine-m0"}`)
	f.Add(`{"schema":1,"namespace":"openshift-machine-api","name":"master-9","uid":"machine-m9"}`)
	f.Add(`{"schema":1,"schema":2,"uid":"machine-m0"}`)
	f.Add(`{"schema":1e0,"name":null}`)
	f.Add(`[` + strings.Repeat("[", 20000))
	f.Fuzz(func(t *testing.T, text string) {
		s := world(text)
		held, err := slotOf(s)
		p := Decide(s)
		switch {
		case err != nil && (disrupts(p) || !strings.Contains(p.String(), machine.ConfigMapDisrupt)):
			t.Errorf("%q cannot be read, %v:\n%v", text, err, p)
		case err == nil && text != "" && (held.Schema != slotSchema || held.Namespace == "" || held.Name == "" || held.UID == ""):
			t.Errorf("%q was read as %+v", text, held)
		}
	})
}
