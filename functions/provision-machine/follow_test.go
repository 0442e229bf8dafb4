// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// A cloud that answers no scan for a while is told on all its Machines in the end, about 20 in a scan; one that is asked
// about by itself is told at once (B19). So is a Secret that leads elsewhere.
func TestSilentCloudCostsFewWritesInAScan(t *testing.T) {
	t.Parallel()
	for file, cloud := range map[string]snapshot.Cloud{
		"cloud-that-does-not-answer-proves-nothing": {Account: "kubemark", Err: &snapshot.Refusal{Message: "503 service unavailable"}},
		"secret-that-leads-elsewhere":               {Account: "kubemark", Owner: "project-b"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			fewWritesInAScan(t, file, cloud)
		})
	}
}

// fewWritesInAScan wants that of many Machines as that of a scenario few are written in a scan, to all of which the cloud answers the same.
func fewWritesInAScan(t *testing.T, file string, cloud snapshot.Cloud) {
	t.Helper()
	const machines, period = 1000, 10 * time.Second
	silent, _, err := scenario.Load("testdata/" + file + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	s := snapshot.Snapshot{Now: silent.World.Now, Clouds: map[types.UID]snapshot.Cloud{}}
	for o := range silent.World.Objects() {
		m, is := o.(*machine.Machine)
		if !is {
			s.Add(o)
			continue
		}
		for k := range machines {
			next := m.DeepCopy()
			next.Name, next.UID = fmt.Sprintf("worker-%d", k), types.UID(fmt.Sprintf("m-%d", k))
			s.Add(next)
			s.Clouds[next.UID] = cloud
		}
	}
	told := map[string]bool{}
	for scan := range 2 * machines / 20 { // a turn is at the end of one row and at the beginning of another, at worst
		s.Now = silent.World.Now.Add(time.Duration(scan) * period)
		writes := 0
		for _, a := range Decide(s).Actions() {
			u := a.(plan.UpdateStatus)
			c := machine.FindCondition(u.New.(*machine.Machine).Status.Conditions, machine.ConditionInstanceExists)
			if c == nil || c.Status != corev1.ConditionUnknown || c.Reason != machinev1beta1.ErrorCheckingProviderReason {
				t.Fatalf("%s is told %v", u.New.GetName(), c)
			}
			told[u.New.GetName()] = true
			writes++
		}
		if writes > 60 {
			t.Errorf("scan %d writes %d Machines", scan, writes)
		}
	}
	if len(told) != machines {
		t.Errorf("%d of %d Machines were told", len(told), machines)
	}
	one := s.Machines[7]
	s.Request = snapshot.Request{Kind: "Machine", Namespace: one.Namespace, Name: one.Name}
	for later := range 2 * machines / 20 {
		s.Now = silent.World.Now.Add(time.Duration(later) * period)
		if p := Decide(s); p.Quiet() {
			t.Errorf("%s is not told when it is asked about", one.Name)
		}
	}
}

// An instance that is on its way out is nobody's: it is neither recorded, as the id would stay for ever (R-S16), nor counts as there (2b.7).
func TestWhatIsBeingDeletedIsNoInstance(t *testing.T) {
	t.Parallel()
	const id = "kubemark:///i-1"
	for _, recorded := range []bool{false, true} {
		m := &machine.Machine{}
		m.UID = "m"
		if recorded {
			m.Spec.ProviderID = new(id)
		}
		for state, there := range map[provider.State]bool{provider.StateRunning: true, provider.StateDeleting: false} {
			l := life{m: m, cloud: snapshot.Cloud{Found: []provider.Instance{{ID: "i-1", ProviderID: id, UID: m.UID, State: state}}}}
			if got := l.shown() != nil; got != there {
				t.Errorf("recorded %v, %s: it is there %v", recorded, state, got)
			}
		}
	}
}

// That an instance ended is believed no sooner than at a second reading, also where the cloud itself says so: Failed is final (B21, R-S12).
func TestEndedIsBelievedAtASecondReading(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for after, fails := range map[time.Duration]bool{0: false, believed - time.Second: false, believed: true} {
		m := &machine.Machine{}
		m.Status.Phase = new(machine.PhaseRunning)
		l := life{Snapshot: snapshot.Snapshot{Now: now.Add(after)}, m: m, cloud: snapshot.Cloud{Horizon: time.Hour, Ended: "Server.SpotInstanceTermination"}}
		seq := l.lost(m.DeepCopy(), now)
		if len(seq.Do) != 1 {
			t.Fatalf("%v after the first reading: %v", after, seq)
		}
		if got := phase(seq.Do[0].(plan.UpdateStatus).New.(*machine.Machine)) == machine.PhaseFailed; got != fails {
			t.Errorf("%v after the first reading it fails: %v", after, got)
		}
	}
}

// What is recorded stays the Machine's whatever else carries its tag; of what nobody recorded it is the smallest, the last attempt's while
// others may surface (2b.7).
func TestWhichInstanceIsTheMachines(t *testing.T) {
	t.Parallel()
	m := slowMachine("m", "", machine.PhaseProvisioning)
	m.Spec.ProviderID = nil
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	open := machine.NewIntent(m, 1, "a", []byte(`{}`))
	open.StartedAt.Time = now.Add(-time.Second)
	made := open.Released(machine.OutcomeCreated, now)
	in := func(id string, uid types.UID, token string) provider.Instance {
		return provider.Instance{ID: id, ProviderID: "k:///" + id, UID: uid, Token: token, State: provider.StateRunning, Sole: true}
	}
	many := func(id, token string) provider.Instance {
		one := in(id, m.UID, token)
		one.Sole = false
		return one
	}
	for what, tt := range map[string]struct {
		recorded string
		intent   *machine.Intent
		found    []provider.Instance
		want     string
	}{
		"a host that is no other's, of a lost answer": {"", &open, []provider.Instance{in("i-1", m.UID, open.Token)}, "i-1"},
		"a host that has another id since":            {"k:///i-1", &made, []provider.Instance{in("i-2", m.UID, "")}, "i-2"},
		"another Machine's host":                      {"k:///i-1", &made, []provider.Instance{in("i-2", "other", "")}, ""},
		"two, while others may surface":               {"", &open, []provider.Instance{many("i-1", "former"), many("i-2", open.Token)}, "i-2"},
		"two, and nothing may surface":                {"", &made, []provider.Instance{many("i-1", "former"), many("i-2", made.Token)}, "i-1"},
		"two, and no record":                          {"", nil, []provider.Instance{many("i-1", "former"), many("i-2", "former")}, "i-1"},
	} {
		l := life{m: m.DeepCopy(), intent: tt.intent, cloud: snapshot.Cloud{Account: "a", Horizon: time.Minute, Found: tt.found}}
		l.Now = now
		if tt.recorded != "" {
			l.m.Spec.ProviderID = &tt.recorded
		}
		got := ""
		if shown := l.shown(); shown != nil {
			got = shown.ID
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", what, got, tt.want)
		}
	}
}
