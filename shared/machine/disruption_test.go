// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// However often whoever asks, also for what was given back before, no more Machines are disrupted at once, nor within an hour, than the limits say, and of the
// control plane one. Two functions ask: each knows of its own slots alone when they are given back (RELIABILITY G8, R-S10).
func TestDisruptionsNeverExceedTheirLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limits := DisruptionLimits{AtOnce: rapid.IntRange(0, 4).Draw(t, "at once"), PerHour: rapid.IntRange(0, 8).Draw(t, "per hour")}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		type whose struct {
			by  string
			uid types.UID
		}
		gone, back := map[types.UID]bool{}, map[whose]bool{}
		over := func(s Slot) bool { return gone[s.UID] || back[whose{s.By, s.UID}] }
		var d Disruptions
		var taken []Slot
		for range 60 {
			now = now.Add(time.Duration(rapid.IntRange(0, 8).Draw(t, "minutes")) * time.Minute)
			uid := types.UID(fmt.Sprint(rapid.IntRange(0, 8).Draw(t, "machine")))
			me := whose{rapid.SampledFrom([]string{"remediate", "evaluate-autoscale"}).Draw(t, "by"), uid}
			known := func(s Slot) bool { return gone[s.UID] || s.By == me.by && over(s) }
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				gone[uid] = true
			case 1:
				back[me] = true
				continue
			}
			if gone[uid] {
				continue
			}
			held := d.Holds(me.by, uid, now)
			next, ok := d.Take(Slot{UID: uid, By: me.by, ControlPlane: uid < "3"}, limits, now, known)
			if after := next.Holds(me.by, uid, now); ok != after && !back[me] || held && !ok && !back[me] {
				t.Fatalf("taken %v, held %v before and %v after", ok, held, after)
			}
			d, back[me] = next, back[me] && !ok
			if ok && !held {
				taken = append(taken, d.Slots[len(d.Slots)-1])
			}
			checkLimits(t, taken, limits, now, over)
		}
	})
}

// Each limit ends what the other still allows.
func TestEachLimitOfDisruptionsEnds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		limits DisruptionLimits
		over   bool // what was disrupted is
	}{{DisruptionLimits{AtOnce: 2, PerHour: 9}, false}, {DisruptionLimits{AtOnce: 9, PerHour: 2}, true}} {
		var d Disruptions
		for i, want := range []bool{true, true, false} {
			var ok bool
			if d, ok = d.Take(Slot{UID: types.UID(fmt.Sprint(i))}, tt.limits, now, func(Slot) bool { return tt.over }); ok != want {
				t.Errorf("%+v: after %d one more may be disrupted: %v", tt.limits, i, ok)
			}
		}
	}
}

// Of an hour that is spent it is known when the next slot comes free: as soon as Take has one, and no sooner (G8).
func TestHourThatIsSpentEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
		slot := rapid.Custom(func(t *rapid.T) Slot {
			age := rapid.OneOf(rapid.IntRange(0, 70), rapid.Just(-3000)) // the last by a clock that was ahead
			at := now.Add(-time.Duration(age.Draw(t, "age")) * time.Minute)
			return Slot{UID: types.UID(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "machine")), By: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "by"), At: metav1.NewTime(at)}
		})
		d := Disruptions{Slots: rapid.SliceOfN(slot, 0, 12).Draw(t, "slots")}
		limits, want := DisruptionLimits{AtOnce: rapid.IntRange(0, 3).Draw(t, "at once"), PerHour: rapid.IntRange(0, 4).Draw(t, "per hour")}, Slot{UID: "a", By: "x"}
		over := func(s Slot) bool { return s.UID > "c" }
		until, spent := d.HourSpent(want, limits, now, over)
		hour := DisruptionLimits{AtOnce: 100, PerHour: limits.PerHour}
		_, fits := d.Take(want, hour, now, over)
		switch {
		case spent == fits:
			t.Fatalf("spent: %v, though there is a slot: %v", spent, fits)
		case !spent || limits.PerHour == 0:
			if !until.IsZero() {
				t.Fatalf("until %s", until)
			}
			return
		}
		_, sooner := d.Take(want, hour, until.Add(-time.Second), over)
		if _, then := d.Take(want, hour, until, over); sooner || !then || !until.After(now) {
			t.Fatalf("a slot comes free at %s: %v, a second before: %v", until, then, sooner)
		}
	})
}

// Whoever has a slot keeps it, though others have all that there are and whatever of the hour is spent; what was given back is its own again only
// where there is room (G8). Workers hold up no control plane.
func TestSlotIsKept(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	back := map[types.UID]bool{}
	over := func(s Slot) bool { return back[s.UID] }
	var d Disruptions
	for _, s := range []Slot{{UID: "a"}, {UID: "b"}} {
		d, _ = d.Take(s, DisruptionLimits{AtOnce: 2, PerHour: 2}, now, over)
	}
	for name, tt := range map[string]struct {
		want  Slot
		limit DisruptionLimits
		back  types.UID
		ok    bool
	}{
		"its own":                             {Slot{UID: "a"}, DisruptionLimits{AtOnce: 1, PerHour: 1}, "", true},
		"given back, and others have all":     {Slot{UID: "a"}, DisruptionLimits{AtOnce: 1, PerHour: 9}, "a", false},
		"given back, and the hour is spent":   {Slot{UID: "a"}, DisruptionLimits{AtOnce: 2, PerHour: 2}, "a", true},
		"of the control plane beside workers": {Slot{UID: "c", ControlPlane: true}, DisruptionLimits{AtOnce: 3, PerHour: 9}, "", true},
	} {
		back = map[types.UID]bool{tt.back: true}
		next, ok := d.Take(tt.want, tt.limit, now.Add(time.Minute), over)
		if ok != tt.ok || tt.want.UID == "a" && fmt.Sprint(next) != fmt.Sprint(d) {
			t.Errorf("%s: %v, %+v", name, ok, next)
		}
	}
}

// What holds up one more: who is disrupted for half an hour, what was begun for an hour, the control plane only itself (RELIABILITY 2f).
// Beyond that a slot that nobody gives back would keep every sick Machine there is.
func TestSlotHoldsUpOthersForItsTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		ago      time.Duration
		over, cp bool // of the slot that there is
		limits   DisruptionLimits
		want     Slot
		ok       bool
		kept     int
	}{
		"disrupted":                {29 * time.Minute, false, false, DisruptionLimits{AtOnce: 1, PerHour: 9}, Slot{UID: "b"}, false, 1},
		"disrupted for too long":   {30 * time.Minute, false, false, DisruptionLimits{AtOnce: 1, PerHour: 9}, Slot{UID: "b"}, true, 2},
		"over":                     {time.Minute, true, false, DisruptionLimits{AtOnce: 1, PerHour: 9}, Slot{UID: "b"}, true, 2},
		"begun within the hour":    {59 * time.Minute, true, false, DisruptionLimits{AtOnce: 9, PerHour: 1}, Slot{UID: "b"}, false, 1},
		"begun before":             {time.Hour, true, false, DisruptionLimits{AtOnce: 9, PerHour: 1}, Slot{UID: "b"}, true, 1},
		"its own, of before":       {30 * time.Minute, false, false, DisruptionLimits{AtOnce: 9, PerHour: 1}, Slot{UID: "a"}, true, 1},
		"a worker":                 {time.Minute, false, false, DisruptionLimits{AtOnce: 2, PerHour: 9}, Slot{UID: "b", ControlPlane: true}, true, 2},
		"of the control plane":     {time.Minute, false, true, DisruptionLimits{AtOnce: 2, PerHour: 9}, Slot{UID: "b"}, true, 2},
		"one of the control plane": {time.Minute, false, true, DisruptionLimits{AtOnce: 2, PerHour: 9}, Slot{UID: "b", ControlPlane: true}, false, 1},
	} {
		d := Disruptions{Schema: disruptionSchema, Slots: []Slot{{UID: "a", At: metav1.NewTime(now.Add(-tt.ago)), ControlPlane: tt.cp}}}
		next, ok := d.Take(tt.want, tt.limits, now, func(Slot) bool { return tt.over })
		if ok != tt.ok || len(next.Slots) != tt.kept {
			t.Errorf("%s: one more may be %v, want %v; %d slots, want %d", name, ok, tt.ok, len(next.Slots), tt.kept)
		}
	}
}

// Who writes limits before anybody was disrupted stops nothing, and none at all is a limit too.
func TestLimitsComeBeforeDisruptions(t *testing.T) {
	t.Parallel()
	cm := &corev1.ConfigMap{Data: map[string]string{DisruptionAtMax: "0", DisruptionHour: "0%"}}
	if d, err := ParseDisruptions(cm); err != nil || len(d.Slots) > 0 {
		t.Errorf("%+v, %v", d, err)
	}
	if l, err := ParseDisruptionLimits(cm, 10); err != nil || l != (DisruptionLimits{}) {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := ParseShare("-1", 10); err == nil {
		t.Error("less than nothing is allowed")
	}
}

// checkLimits counts what was taken, independently of how the budget stores it.
func checkLimits(t *rapid.T, taken []Slot, limits DisruptionLimits, now time.Time, over func(Slot) bool) {
	atOnce, masters, hour := map[types.UID]bool{}, map[types.UID]bool{}, map[types.UID]bool{}
	for _, s := range taken {
		if now.Before(s.At.Add(time.Hour)) {
			hour[s.UID] = true
		}
		if now.Before(s.At.Add(30*time.Minute)) && !over(s) {
			atOnce[s.UID] = true
			if s.ControlPlane {
				masters[s.UID] = true
			}
		}
	}
	if len(atOnce) > limits.AtOnce || len(hour) > limits.PerHour || len(masters) > 1 {
		t.Fatalf("%d at once, %d within an hour, %d of the control plane; limits %+v", len(atOnce), len(hour), len(masters), limits)
	}
}

func TestDisruptionsSurviveTheirConfigMap(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	none := func(Slot) bool { return false }
	cm := &corev1.ConfigMap{Data: map[string]string{"control-plane": "held", DisruptionAtMax: " 50% ", DisruptionHour: "3"}}
	limits, err := ParseDisruptionLimits(cm, 5)
	if err != nil || limits != (DisruptionLimits{AtOnce: 3, PerHour: 3}) {
		t.Fatalf("limits %+v, %v", limits, err)
	}
	want, ok := Disruptions{}.Take(Slot{Namespace: Namespace, Machine: "a", UID: "1", By: "me"}, limits, now, none)
	stored := want.In(cm)
	got, err := ParseDisruptions(stored)
	if !ok || err != nil || fmt.Sprint(got) != fmt.Sprint(want) || stored.Data["control-plane"] != "held" || cm.Data[DisruptionKey] != "" {
		t.Errorf("%v became %v: %v, %v", want, got, stored.Data, err)
	}
	fresh := want.In(nil)
	if fresh.Name != ConfigMapDisrupt || fresh.Namespace != Namespace {
		t.Errorf("got %v", fresh.ObjectMeta)
	}
	for _, machines := range []int{0, 100, 100_000} {
		if l, err := ParseDisruptionLimits(nil, machines); err != nil || l.AtOnce < 5 || l.PerHour < 20 || l.PerHour > 1000 {
			t.Errorf("%d machines: %+v, %v", machines, l, err)
		}
	}
	for _, text := range []string{"x", `{"schema":2}`, `{}`, `{"schema":1,"x":1}`} {
		if d, err := ParseDisruptions(&corev1.ConfigMap{Data: map[string]string{DisruptionKey: text}}); err == nil {
			t.Errorf("%s was read as %v", text, d)
		}
	}
	for _, text := range []string{"many", "-1", "", "1.5"} {
		if l, err := ParseDisruptionLimits(&corev1.ConfigMap{Data: map[string]string{DisruptionAtMax: text}}, 5); err == nil {
			t.Errorf("%q was read as %+v", text, l)
		}
	}
}

// A slot of a clock that was ahead holds one place while its Machine is disrupted, and none for the rest of its hour, which may begin
// in years (RELIABILITY G7).
func TestSlotsOfAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := Disruptions{Slots: []Slot{{UID: "a", At: metav1.NewTime(now.AddDate(5, 0, 0))}}}
	limits := DisruptionLimits{AtOnce: 1, PerHour: 1}
	if _, ok := d.Take(Slot{UID: "b"}, limits, now, func(Slot) bool { return false }); ok {
		t.Error("two are disrupted at once")
	}
	next, ok := d.Take(Slot{UID: "b"}, limits, now, func(Slot) bool { return true })
	if !ok || len(next.Slots) != 1 || next.Slots[0].UID != "b" {
		t.Errorf("%v, %v: want the slot of b alone", next, ok)
	}
}

// Who has a slot asks again in each round, and has it, at its time: also where no other is left.
func TestSlotIsTakenOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	l, want := DisruptionLimits{AtOnce: 1, PerHour: 1}, Slot{Machine: "worker-a", UID: "machine-a", ControlPlane: true}
	none := func(Slot) bool { return false }
	d, ok := Disruptions{}.Take(want, l, now, none)
	if !ok {
		t.Fatal("there is none")
	}
	again, ok := d.Take(want, l, now.Add(time.Minute), none)
	if !ok || len(again.Slots) != 1 || again.Slots[0] != d.Slots[0] {
		t.Errorf("asked for once more: %v, %+v, was %+v", ok, again, d)
	}
}

// A slot that another function took is none: whether that gave it back it alone knows, and then its place may be another Machine's. Who
// takes one of his own for the same Machine takes no second place (RELIABILITY 2f).
func TestSlotOfAnotherFunctionIsNone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	d := Disruptions{Slots: []Slot{{UID: "a", By: "evaluate-autoscale", At: metav1.NewTime(now)}}}
	limits, nothing := DisruptionLimits{AtOnce: 1, PerHour: 2}, func(Slot) bool { return false }
	want := Slot{UID: "a", By: "remediate"}
	both, ok := d.Take(want, limits, now, nothing)
	if !ok || len(both.Slots) != 2 || d.Holds("remediate", "a", now) || !both.Holds("remediate", "a", now) {
		t.Errorf("beside the other's: %v, %+v", ok, both)
	}
	mine := func(s Slot) bool { return s.By == "evaluate-autoscale" && s.UID == "a" } // given back
	if _, ok = both.Take(Slot{UID: "b", By: "evaluate-autoscale"}, limits, now, mine); ok {
		t.Error("b is disrupted while remediate disrupts a")
	}
	if d, ok = d.Take(Slot{UID: "b", By: "evaluate-autoscale"}, limits, now, mine); !ok {
		t.Fatal("what was given back is no place")
	}
	if _, ok = d.Take(want, limits, now, nothing); ok {
		t.Error("a is disrupted by the slot of who gave it back to b")
	}
}

// Who asks again for a slot that was given back has it if there is still room: another one may have taken it (RELIABILITY 2f).
func TestSlotThatWasGivenBack(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	d := Disruptions{Slots: []Slot{{UID: "back", At: metav1.NewTime(now)}, {UID: "other", At: metav1.NewTime(now)}}}
	for _, tt := range []struct {
		atOnce int
		want   bool
	}{{1, false}, {2, true}} {
		over := func(s Slot) bool { return s.UID == "back" }
		if _, ok := d.Take(Slot{UID: "back"}, DisruptionLimits{AtOnce: tt.atOnce, PerHour: 9}, now, over); ok != tt.want {
			t.Errorf("one of %d is disrupted: one more may be %v, want %v", tt.atOnce, ok, tt.want)
		}
	}
}

// A slot is as old as what it says: the deletion of a Machine that somebody else deleted. One that would not count any more, and one of a
// clock that was ahead, is taken now.
func TestSlotIsAsOldAsItSays(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ says, want time.Time }{
		{time.Time{}, now},
		{now.Add(-time.Minute), now.Add(-time.Minute)},
		{now.Add(-29 * time.Minute), now.Add(-29 * time.Minute)},
		{now.Add(-30 * time.Minute), now},
		{now.Add(time.Hour), now},
	} {
		d, ok := Disruptions{}.Take(Slot{UID: "a", By: "b", At: metav1.NewTime(tt.says)}, DisruptionLimits{1, 1}, now, func(Slot) bool { return false })
		if !ok || len(d.Slots) != 1 || !d.Slots[0].At.Time.Equal(tt.want) {
			t.Errorf("at %v: %v, %v, want %v", tt.says, d.Slots, ok, tt.want)
		}
	}
}

// A quarter of each limit is for those that are ill, one at least, but where there is only one: else nothing would ever be saved (G8).
func TestHealingHasItsPartOfTheLimits(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{0: 0, 1: 1, 2: 1, 3: 2, 4: 3, 5: 4, 8: 6, 20: 15} {
		if got := (DisruptionLimits{AtOnce: limit, PerHour: limit}).BesideHealing(); got.AtOnce != want || got.PerHour != want {
			t.Errorf("of %d there are %+v beside healing, want %d", limit, got, want)
		}
	}
}
