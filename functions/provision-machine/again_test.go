// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// reset is what a network says of the n-th call: the local port differs, or everything does.
func reset(n int, anew bool) string {
	if anew {
		return "gateway " + string(rune('a'+n%26)) + string(rune('a'+n/26%26)) + " is not there"
	}
	return fmt.Sprintf("read tcp 10.0.0.1:%d->1.2.3.4:443: read: connection reset by peer", 40000+n)
}

// A cloud that cannot be asked, in words that differ from call to call, is told of once where they differ by a port, seldom
// where they differ altogether, and never by the event about what was written: that would be written for ever (R-S14, B19).
func TestCloudThatCannotBeAskedIsQuiet(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Load("testdata/claims-then-creates.txtar")
	if err != nil {
		t.Fatal(err)
	}
	began, event := s.World.Now, s.World.Request
	for _, anew := range []bool{false, true} {
		m := s.World.Machines[0].DeepCopy()
		m.Status.Phase = new(machine.PhaseProvisioning)
		writes := 0
		for n := range 360 { // one hour, an event after each scan
			for k, r := range []snapshot.Request{{}, event} {
				w := aloneIn(s, m)
				w.World.Now, w.World.Request = began.Add(time.Duration(n)*scanPeriod), r
				w.World.Clouds = map[types.UID]snapshot.Cloud{m.UID: {Err: &snapshot.Refusal{Message: reset(2*n+k, anew)}}}
				var wrote int
				m, wrote = written(m, Decide(w.World))
				writes += wrote
			}
		}
		if most := map[bool]int{false: 1, true: 40}[anew]; writes < 1 || writes > most {
			t.Errorf("other words altogether %v: %d status writes in an hour, want at most %d", anew, writes, most)
		}
		if c := machine.FindCondition(m.Status.Conditions, machine.ConditionInstanceExists); anew && began.Add(time.Hour).Sub(c.LastTransitionTime.Time) < 50*time.Minute {
			t.Errorf("when it began is lost: %v", c.LastTransitionTime)
		}
	}
}

// A cloud that refuses to delete is asked less and less often, not at all by events about our own writes, and what it says
// is written as seldom; that it deletes at last is seen after as long as it refused, or in two rows of turns (R-S14, R-L2).
func TestRefusedDeletionIsAskedForSeldom(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"delete-that-is-refused-is-shown", "delete-that-is-refused-keeps-when-the-instance-was-lost"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			refusedForAnHour(t, file)
		})
	}
}

func refusedForAnHour(t *testing.T, file string) {
	t.Helper()
	s, _, err := scenario.Load("testdata/" + file + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	began, event := s.World.Now, s.World.Request
	const hour = 360
	for _, anew := range []bool{false, true} {
		m, writes, calls, last := s.World.Machines[0].DeepCopy(), 0, 0, 0
		for n := range hour {
			for k, r := range []snapshot.Request{{}, event} {
				w := aloneIn(s, m)
				w.World.Now, w.World.Request, w.World.Outcomes = began.Add(time.Duration(n)*scanPeriod), r, nil
				if n > 0 {
					w.World.Before = w.World.Now.Add(-scanPeriod)
				}
				seen, _, err := scenario.Observe(Function, w)
				if err != nil {
					t.Fatal(err)
				}
				actions := Decide(seen).Actions()
				if len(actions) == 0 {
					continue
				}
				if n-last > max(int(2*rarest*slot/scanEvery), n/2+1) {
					t.Errorf("nothing is tried from scan %d to %d", last, n)
				}
				calls, last = calls+1, n
				w.World.Outcomes = map[plan.Key]plan.Outcome{actions[0].(plan.DeleteInstance).Key(): {Result: plan.Refused, Code: provider.Denied, Message: reset(2*n+k, anew)}}
				var wrote int
				m, wrote = statusWrites(t, w)
				writes += wrote
			}
		}
		if calls < 12 || calls > 40 {
			t.Errorf("%d calls in an hour, want 12 to 40", calls)
		}
		if most := map[bool]int{false: 1, true: calls}[anew]; writes < 1 || writes > most {
			t.Errorf("other words altogether %v: %d status writes, want at most %d", anew, writes, most)
		}
	}
}

// However far apart scans are, no Machine's turn is missed for longer than two rows and a scan, where one process knows of them (R-L2);
// as often as one is late or lost, none has more turns than two scans of each row.
func TestNoTurnIsMissed(t *testing.T) {
	t.Parallel()
	const row = rarest * slot
	began := time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)
	for _, period := range []time.Duration{5 * time.Second, 10 * time.Second, 31 * time.Second, 33 * time.Second, time.Minute, 10 * time.Minute, 2 * time.Hour} {
		for k := range 100 {
			m := &machine.Machine{}
			m.UID = types.UID(fmt.Sprint("uid-", k))
			before, last, turns := time.Time{}, began, 0
			now := began
			for n := range 1000 {
				if l := (life{Snapshot: snapshot.Snapshot{Now: now, Before: before}, m: m}); l.again(began.Add(-time.Hour)) {
					last = now
					turns++
				}
				if gap := now.Sub(last); gap > 2*row+2*period {
					t.Fatalf("a scan every %v: %s waits for %v", period, m.UID, gap)
				}
				before, now = now, now.Add(period+time.Duration(n*n%7-3)*period/10)
			}
			if most := int(now.Sub(began)/row+1) * int(slot/min(period, slot)+1); turns > most {
				t.Errorf("a scan every %v: %s has %d turns, want at most %d", period, m.UID, turns, most)
			}
		}
	}
}

// However far apart scans are, as regular as they may be, each Machine has its turn, also where none knows of another (R-L2).
func TestEachMachineHasItsTurn(t *testing.T) {
	t.Parallel()
	for _, period := range []time.Duration{10 * time.Second, 20 * time.Second, 31 * time.Second, 40 * time.Second, time.Minute} {
		for k := range 300 {
			m := &machine.Machine{}
			m.UID = types.UID(fmt.Sprint("uid-", k))
			began, last, longest := time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC), 0, 0
			for n := range 2000 {
				if l := (life{Snapshot: snapshot.Snapshot{Now: began.Add(time.Duration(n) * period)}, m: m}); l.again(began.Add(-time.Hour)) {
					last = n
				}
				longest = max(longest, n-last)
			}
			if gap := time.Duration(longest) * period; gap > max(15*time.Minute, 200*period) {
				t.Errorf("a scan every %v: %s waits for %v", period, m.UID, gap)
			}
		}
	}
}

// A removal that failed because the cloud could not be asked is taken up by the first scan for which it can, however long it could not; one
// that the cloud then refuses is again asked for seldom (R-L2, R-S14).
func TestRemovalAfterASilenceIsNotLate(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Load("testdata/delete-that-is-refused-is-shown.txtar")
	if err != nil {
		t.Fatal(err)
	}
	began := s.World.Now
	for silent := 1; silent < 100; silent++ {
		m := s.World.Machines[0].DeepCopy()
		for n := range silent {
			w := aloneIn(s, m)
			w.World.Now, w.World.Request, w.World.Outcomes = began.Add(time.Duration(n)*scanPeriod), snapshot.Request{}, nil
			w.World.Clouds = map[types.UID]snapshot.Cloud{m.UID: {Account: "kubemark", Err: &snapshot.Refusal{Message: "503 service unavailable"}}}
			m, _ = written(m, Decide(w.World))
		}
		refused := 0
		for n := silent; n < silent+20; n++ {
			w := aloneIn(s, m)
			w.World.Now, w.World.Request, w.World.Outcomes = began.Add(time.Duration(n)*scanPeriod), snapshot.Request{}, nil
			w.World.Before = w.World.Now.Add(-scanPeriod)
			seen, _, err := scenario.Observe(Function, w)
			if err != nil {
				t.Fatal(err)
			}
			actions := Decide(seen).Actions()
			if n == silent && len(actions) == 0 {
				t.Fatalf("the cloud did not answer for %d scans, and the first one for which it does removes nothing", silent)
			}
			if len(actions) == 0 {
				continue
			}
			refused++
			w.World.Outcomes = map[plan.Key]plan.Outcome{actions[0].(plan.DeleteInstance).Key(): {Result: plan.Refused, Code: provider.Denied, Message: "missing permission"}}
			m, _ = statusWrites(t, w)
		}
		if silent > 24 && refused > 6 {
			t.Errorf("after %d silent scans a cloud that refuses is asked by %d of 20", silent, refused)
		}
	}
}

// A cloud that refused to remove something, and then says that nothing is left, does not fail any more: a Machine that still waits for what
// may surface is asked for by the first scan after that, whatever the turns (R-L2).
func TestRemovalAfterARefusalIsNotLate(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Load("testdata/delete-that-is-refused-is-shown.txtar")
	if err != nil {
		t.Fatal(err)
	}
	began := s.World.Now
	for horizon := 50 * time.Second; horizon < 4*time.Minute; horizon += scanPeriod {
		m := s.World.Machines[0].DeepCopy()
		m.Spec.ProviderID = nil
		m.Annotations[machine.AnnotationIntent] = strings.Replace(m.Annotations[machine.AnnotationIntent], `,"outcome":"created","instance":"i-1"`, "", 1)
		i, err := machine.ParseIntent(m)
		if err != nil {
			t.Fatal(err)
		}
		until := i.SurfacesUntil(horizon)
		port := provider.Instance{ID: "port-1", UID: m.UID, Child: true, State: provider.StateRunning}
		asked, last := 0, began
		for now := began; now.Before(until.Add(scanPeriod)); now = now.Add(scanPeriod) {
			w := aloneIn(s, m)
			w.World.Now, w.World.Request, w.World.Outcomes = now, snapshot.Request{}, map[plan.Key]plan.Outcome{}
			cloud := snapshot.Cloud{Account: "kubemark", Horizon: horizon}
			if asked <= 1 {
				cloud.Found = []provider.Instance{port}
			}
			w.World.Clouds = map[types.UID]snapshot.Cloud{m.UID: cloud}
			if actions := Decide(w.World).Actions(); len(actions) > 0 {
				if d, is := actions[0].(plan.DeleteInstance); is {
					asked, last = asked+1, now
					w.World.Outcomes[d.Key()] = plan.Outcome{Result: plan.Refused, Code: provider.Unknown, Message: "503"}
					if asked > 1 {
						w.World.Outcomes[d.Key()] = plan.Outcome{Result: plan.Gone, Code: provider.NotFound}
					}
				}
			}
			m, _ = written(m, Decide(w.World))
		}
		if asked <= 1 || last.Before(until) {
			t.Errorf("Horizon %v: asked %d times, the last time %v before nothing can surface any more", horizon, asked, until.Sub(last))
		}
	}
}
