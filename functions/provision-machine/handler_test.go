// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

func TestScenarios(t *testing.T) {
	t.Parallel()
	scenario.Run(t, Function)
}

func TestProperties(t *testing.T) {
	t.Parallel()
	scenario.Properties(t, Function)
}

// Before the first call a cloud is asked for an instance that nobody recorded, unless the Machine is so young that no
// record of it can have been lost (2b.3).
func TestLooksForLostInstances(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for age, looks := range map[time.Duration]bool{
		0: false, time.Minute - time.Second: false, time.Minute: true, time.Hour: true,
		time.Second - time.Minute: false, -time.Hour: true, // made by a clock that was set back since
	} {
		s, _, err := scenario.Load("testdata/claims-then-creates.txtar")
		if err != nil {
			t.Fatal(err)
		}
		m := s.World.Machines[0].DeepCopy()
		m.CreationTimestamp = metav1.NewTime(now.Add(-age))
		one := scenario.Scenario{World: snapshot.Snapshot{Now: now, Request: s.World.Request}}
		for o := range s.World.Objects() {
			if _, is := o.(*machine.Machine); !is {
				one.World.Add(o)
			}
		}
		one.World.Add(m)
		_, asked, err := scenario.Observe(Function, one)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, sc := range asked {
			for _, l := range sc.Lookups {
				found = true
				if l.Open || l.New == looks || !l.Resolve {
					t.Errorf("at %v: %+v", age, l)
				}
			}
		}
		if !found {
			t.Errorf("at %v nothing is asked of the cloud", age)
		}
	}
}

// However young a Machine is, what a call for it may have made is looked for: nothing else says whether there is an instance (2b.3, 2b.4).
func TestLooksForWhatAYoungMachineWasAskedFor(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Load("testdata/lost-answer-is-found.txtar")
	if err != nil {
		t.Fatal(err)
	}
	s.World.Machines[0].CreationTimestamp = metav1.NewTime(s.World.Now.Add(-Young / 2))
	_, asked, err := scenario.Observe(Function, s)
	if err != nil {
		t.Fatal(err)
	}
	looked := false
	for _, sc := range asked {
		for _, l := range sc.Lookups {
			looked = looked || !l.Open && !l.New
		}
	}
	if !looked {
		t.Errorf("nobody looks for the instance: %+v", asked)
	}
}

// An event about a deleted Machine asks a cloud for nothing but the removal, unless nobody knows the addresses of the instance, by which its
// Node may have to be found (B62). Where they cannot be written the instance goes all the same.
func TestRemovalAsksForAddressesThatAreUnknown(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Load("testdata/delete-records-the-addresses-first.txtar")
	if err != nil {
		t.Fatal(err)
	}
	one := func(change func(*machine.Machine)) (*machine.Machine, snapshot.Lookup, bool) {
		m := s.World.Machines[0].DeepCopy()
		change(m)
		l, asks := lookupOf(s.World, m)
		return m, l, asks
	}
	if _, l, asks := one(func(*machine.Machine) {}); l.Open || !asks {
		t.Errorf("nothing is asked about the instance: %+v, %v", l, asks)
	}
	for name, change := range map[string]func(*machine.Machine){
		"addresses": func(m *machine.Machine) { m.Status.Addresses = []corev1.NodeAddress{{Address: "10.0.0.5"}} },
		"node": func(m *machine.Machine) {
			m.Status.NodeRef, m.Status.Conditions[0] = &corev1.ObjectReference{Name: "a", UID: "n"}, machine.NodeDrained("n")
		},
	} {
		if _, l, asks := one(change); !l.Open || !asks {
			t.Errorf("with %s: %+v, %v", name, l, asks)
		}
	}
	seen, _, err := scenario.Observe(Function, s)
	if err != nil {
		t.Fatal(err)
	}
	write := Decide(seen).Actions()
	if len(write) != 1 {
		t.Fatalf("planned %v", write)
	}
	s.World.Nodes, s.World.Outcomes = nil, map[plan.Key]plan.Outcome{write[0].Key(): {Result: plan.Refused, Message: "by a policy"}}
	if seen, _, err = scenario.Observe(Function, s); err != nil {
		t.Fatal(err)
	}
	if next := Decide(seen).Actions(); len(next) != 1 || !strings.HasPrefix(string(next[0].Key()), "delete instance") {
		t.Errorf("after a refusal %v", next)
	}
}
