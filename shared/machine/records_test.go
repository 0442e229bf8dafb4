// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func TestOrdinalsSurviveTheirText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var want Ordinals
		for _, k := range rapid.SliceOf(rapid.IntRange(0, 50)).Draw(t, "ordinals") {
			want = want.With(k)
		}
		text, err := want.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var got Ordinals
		if err := got.UnmarshalText(text); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v became %q became %v", want, text, got)
		}
	})
}

func TestOrdinalsAreASet(t *testing.T) {
	t.Parallel()
	o := Ordinals{}.With(3).With(1).With(3)
	if fmt.Sprint(o) != "[1 3]" || !o.Has(3) || o.Has(2) || fmt.Sprint(o.Without(1)) != "[3]" || fmt.Sprint(o) != "[1 3]" {
		t.Errorf("got %v", o)
	}
}

func TestParseLedgerRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON":                    "x",
		"an unknown field":           `{"schema":1,"setUID":"s","next":1,"active":"0","x":1}`,
		"a newer schema":             `{"schema":2,"setUID":"s","next":1,"active":"0"}`,
		"no schema":                  `{"setUID":"s","next":1,"active":"0"}`,
		"a schema below the first":   `{"schema":-1,"setUID":"s","next":1,"active":"0"}`,
		"an ordinal beyond next":     `{"schema":1,"setUID":"s","next":1,"active":"0-1"}`,
		"an adopted one beyond next": `{"schema":1,"setUID":"s","next":2,"active":"0","adopted":{"2":{"name":"a","uid":"u"}}}`,
		"more than a set can have":   `{"schema":1,"setUID":"s","next":9000000000000000000,"active":"0"}`,
		"one more":                   `{"schema":1,"setUID":"s","next":1000000001,"active":"0"}`,
		"descending ordinals":        `{"schema":1,"setUID":"s","next":9,"active":"3,1"}`,
		"a range from its end":       `{"schema":1,"setUID":"s","next":9,"active":"5-3"}`,
		"fewer ordinals than none":   `{"schema":1,"setUID":"s","next":-1,"active":""}`,
		"an adopted one before them": `{"schema":1,"setUID":"s","next":2,"active":"0","adopted":{"-1":{"name":"a","uid":"u"}}}`,
		"fewer failures than none":   `{"schema":1,"setUID":"s","next":1,"active":"0","failures":-1,"nextCreateAt":"2026-01-01T00:00:00Z"}`,
		"a range that is a bomb":     `{"schema":1,"setUID":"s","next":9999999999,"active":"0-999999999"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if l, err := ParseLedger(text); err == nil {
				t.Errorf("accepted as %v", l)
			}
		})
	}
}

// Two ordinals of a set never have the same name in practice, and a name says which set it is of.
func TestName(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^general-purpose-1a-[bcdfghjklmnpqrstvwxz2456789]{5}$`)
	for k := range 100 {
		name := Name("general-purpose-1a", "uid", k)
		if !form.MatchString(name) || name != Name("general-purpose-1a", "uid", k) || SetName(name) != "general-purpose-1a" {
			t.Errorf("ordinal %d: %q of set %q", k, name, SetName(name))
		}
	}
	if Name("w", "uid-1", 0) == Name("w", "uid-2", 0) {
		t.Error("a recreated set reuses the names of the old one")
	}
}

// What is generated is at most as long as a label's value (SPEC S15).
func TestLongNamesAreCut(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]int{57: 63, 58: 63, 63: 63, 253: 63, 56: 62} {
		set := strings.Repeat("s", length)
		name := Name(set, "uid", 7)
		if len(name) != want || length <= 57 && name[:length+1] != set+"-" {
			t.Errorf("set of %d characters: %q has %d, want %d", length, name, len(name), want)
		}
		l := Ledger{Schema: ledgerSchema, SetUID: "uid", Next: 8, Active: Ordinals{7}}
		if k, ok := l.OrdinalOf(set, &Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}); !ok || k != 7 {
			t.Errorf("set of %d characters: %q is at ordinal %d, %v", length, name, k, ok)
		}
	}
}

// However long the history of a set, or what a typing error makes of it, to look for one Machine costs the same. What is active
// is found, whatever its label says; so is what was retired lately (R-L4, R-S5).
func TestLongHistoryIsNotSearched(t *testing.T) {
	t.Parallel()
	const next = maxNext
	l, err := ParseLedger(fmt.Sprintf(`{"schema":1,"setUID":"uid","next":%d,"active":"3,%d"}`, next, next-1))
	if err != nil {
		t.Fatal(err)
	}
	finder := l.Finder("worker")
	for name, tt := range map[string]struct {
		machine, label string
		at             int
		found          bool
	}{
		"active":                               {Name("worker", "uid", 3), "", 3, true},
		"active, label of another":             {Name("worker", "uid", 3), "9", 3, true},
		"latest":                               {Name("worker", "uid", next-1), "x", next - 1, true},
		"retired lately":                       {Name("worker", "uid", next-9), "", next - 9, true},
		"retired long ago":                     {Name("worker", "uid", 9), "9", 9, true},
		"retired long ago, without a label":    {Name("worker", "uid", 9), "", 0, false},
		"of another name":                      {"worker-orphan", "", 0, false},
		"label beyond what a set can have":     {Name("worker", "uid", next), fmt.Sprint(next), 0, false},
		"label that only a forger would write": {Name("worker", "uid", next+1), fmt.Sprint(next + 1), 0, false},
	} {
		m := &Machine{ObjectMeta: metav1.ObjectMeta{Name: tt.machine, UID: "m", Labels: map[string]string{LabelOrdinal: tt.label}}}
		for by, find := range map[string]func(*Machine) (int, bool){"OrdinalOf": func(m *Machine) (int, bool) { return l.OrdinalOf("worker", m) }, "Finder": finder} {
			if k, found := find(m); found != tt.found || found && k != tt.at {
				t.Errorf("%s: %s says ordinal %d, %v", name, by, k, found)
			}
		}
	}
	fresh := NewLedger("uid")
	forged := &Machine{ObjectMeta: metav1.ObjectMeta{Name: Name("worker", "uid", maxLabelled), Labels: map[string]string{LabelOrdinal: fmt.Sprint(maxLabelled)}}}
	if k, ok := fresh.OrdinalOf("worker", forged); ok {
		t.Errorf("a label uses up the ordinals: %d", k)
	}
}

func TestTokensDifferByAttempt(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, uid := range []types.UID{"a", "b"} {
		for attempt := range 50 {
			token := Token(uid, attempt, "zone")
			if seen[token] || len(token) != 32 {
				t.Fatalf("token %q of attempt %d", token, attempt)
			}
			seen[token] = true
		}
	}
}

// Tokens are on record, and clouds know them: another version makes the same ones.
func TestTokensStayAsTheyAre(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Token("a", 1, "zone"):                       "ooon3etl96n0ftrqbeepjjsl55767266",
		Token("b", 12, strings.Repeat("zone", 100)): "4pcrdceikcqbrrhetqhdj6lfc6nisapl",
	} {
		if got != want {
			t.Errorf("%s, was %s", got, want)
		}
	}
}

func TestIntentSurvivesItsText(t *testing.T) {
	t.Parallel()
	m := &Machine{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want := NewIntent(m, 1, "kubemark", []byte(`{"a":1}`)).Claimed("me", now, time.Minute)
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, AnnotationIntent, want.String())
	got, err := ParseIntent(m)
	if err != nil || got.String() != want.String() {
		t.Fatalf("%v: got %v, want %v", err, got, want)
	}
	if !got.ClaimedByOther("you", now) || got.ClaimedByOther("me", now) || got.ClaimedByOther("you", now.Add(time.Hour)) || !got.Unresolved() {
		t.Error("the claim is not what it was")
	}
	if done := got.Released(OutcomeCreated, time.Time{}); done.Unresolved() || done.Until != nil {
		t.Errorf("released: %v", done)
	}
}

// Which schema it is decides, not whether its fields are known (RELIABILITY G9).
func TestParseIntentRefuses(t *testing.T) {
	t.Parallel()
	const today = `{"schema":1,"attempt":1,"token":"t","account":"a","startedAt":"2026-01-01T00:00:00Z"}`
	read := func(text string) error {
		_, err := ParseIntent(&Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationIntent: text}}})
		return err
	}
	if err := read(today); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"a newer schema, with the fields of today": {`"schema":1`, `"schema":2`},
		"no schema":                {`"schema":1,`, ``},
		"no attempt yet":           {`"attempt":1`, `"attempt":0`},
		"no token":                 {`"token":"t"`, `"token":""`},
		"fewer failures than none": {`"attempt":1`, `"attempt":1,"failures":-1`},
	} {
		if text := strings.Replace(today, change[0], change[1], 1); read(text) == nil {
			t.Errorf("%s: %s was read", name, text)
		}
	}
}

// Whatever somebody wrote for a count, one more can be read again.
func TestFailuresStayACount(t *testing.T) {
	t.Parallel()
	l, err := ParseLedger(`{"schema":1,"setUID":"s","next":1,"active":"0","failures":9223372036854775807,"nextCreateAt":"2026-01-01T00:00:00Z"}`)
	if err != nil {
		t.Fatal(err)
	}
	l.Failures++
	if _, err := ParseLedger(l.String()); err != nil {
		t.Error(err)
	}
	text := `{"schema":1,"attempt":1,"token":"t","account":"a","startedAt":"2026-01-01T00:00:00Z","failures":9223372036854775807}`
	m := &Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationIntent: text}}}
	i, err := ParseIntent(m)
	if err != nil {
		t.Fatal(err)
	}
	i.Failures++
	m.Annotations[AnnotationIntent] = i.String()
	if _, err := ParseIntent(m); err != nil {
		t.Error(err)
	}
}

func TestRecordsAreReadOnce(t *testing.T) {
	t.Parallel()
	m := &Machine{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	known := NewRecords()
	if i, err := known.Intent(m); i != nil || err != nil || known.Read() != 0 {
		t.Errorf("without an intent: %v, %v, %d read", i, err, known.Read())
	}
	m.Annotations = map[string]string{AnnotationIntent: NewIntent(m, 1, "account", nil).String()}
	first, err := known.Intent(m)
	if again, _ := known.Intent(m.DeepCopy()); err != nil || first == nil || again != first {
		t.Errorf("read %p, then %p, %v", first, again, err)
	}
	if afresh, err := (*Records)(nil).Intent(m); err != nil || afresh == first || afresh.String() != first.String() {
		t.Errorf("without a memory: %v, %v", afresh, err)
	}
	m.Annotations[AnnotationIntent] = NewIntent(m, 2, "account", nil).String()
	if next, err := known.Intent(m); err != nil || next.Attempt != 2 {
		t.Errorf("the next intent: %v, %v", next, err)
	}
	m.Annotations[AnnotationIntent] = ""
	set := &MachineSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationLedger: `{"schema":2}`}}}
	for range 2 {
		if i, err := known.Intent(m); i != nil || err == nil {
			t.Errorf("an intent that cannot be read: %v, %v", i, err)
		}
		if _, err := known.Ledger(set); !errors.Is(err, ErrNewer) {
			t.Errorf("a newer ledger: %v", err)
		}
		if s, err := known.Sweep(&corev1.ConfigMap{}); err != nil || s.Schema != sweepSchema {
			t.Errorf("no state: %v, %v", s, err)
		}
	}
	if known.Read() != 5 {
		t.Errorf("%d texts were read, want 5", known.Read())
	}
}

// What a later call is answered resolves no call before it (RELIABILITY 2b.4).
func TestUnansweredCallIsRemembered(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return now.Add(d) }
	first := NewIntent(&Machine{ObjectMeta: metav1.ObjectMeta{UID: "u"}}, 1, "kubemark", []byte(`{}`)).Claimed("me", now, time.Minute)
	refused := first.Released(OutcomeRefused, time.Time{})
	if refused.Unresolved() || !refused.Over() {
		t.Errorf("refused: %v", refused)
	}
	lost := first.Released("", time.Time{}).Claimed("me", at(10*time.Second), time.Minute)
	for _, outcome := range []string{OutcomeRefused, OutcomePartial} {
		later := lost.Released(outcome, time.Time{})
		if !later.Unresolved() || later.Over() || !later.SurfacesUntil(time.Minute).Equal(at(time.Minute)) {
			t.Errorf("%s after a lost answer: %v until %v", outcome, later, later.SurfacesUntil(time.Minute))
		}
		again := later.Claimed("me", at(20*time.Second), time.Minute).Released(outcome, time.Time{})
		if !again.SurfacesUntil(time.Minute).Equal(at(time.Minute)) {
			t.Errorf("the answered call before it counts as lost: %v", again)
		}
	}
	twice := lost.Released("", time.Time{}).Claimed("me", at(20*time.Second), time.Minute).Released(OutcomeRefused, time.Time{})
	if until := twice.SurfacesUntil(time.Minute); !until.Equal(at(70 * time.Second)) {
		t.Errorf("of two calls without an answer the latter may surface until %v", until)
	}
	if until := lost.SurfacesUntil(time.Minute); !until.Equal(at(70 * time.Second)) {
		t.Errorf("a call under way may surface until %v", until)
	}
	if done := lost.Released(OutcomeCreated, time.Time{}); done.Unresolved() {
		t.Errorf("created: %v", done)
	}
}

// An edit ends an attempt that was refused midway, but none of which something may be there that nobody knows (RELIABILITY 2b.4).
func TestEditEndsNoAttemptThatMayHaveMadeSomething(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &Machine{ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: 2}}
	refused := NewIntent(m, 1, "kubemark", []byte(`{}`)).Claimed("me", now, time.Minute)
	refused = refused.Released(OutcomePartial, time.Time{})
	refused.Generation = 1
	if !refused.Outdated(m) {
		t.Errorf("what was refused midway goes on after an edit: %v", refused)
	}
	lost := refused
	lost.Unanswered = new(metav1.NewTime(now))
	if lost.Outdated(m) {
		t.Errorf("an edit ends an attempt of which a call has no answer: %v", lost)
	}
	linked := m.DeepCopy()
	linked.Status.NodeRef = &corev1.ObjectReference{Name: "n"}
	if refused.Outdated(linked) {
		t.Errorf("an edit ends an attempt whose instance is a Node: %v", refused)
	}
	gone := m.DeepCopy()
	gone.DeletionTimestamp = new(metav1.NewTime(now))
	if refused.Outdated(gone) {
		t.Errorf("a deletion ends an attempt: %v", refused)
	}
}

func TestSetConditionKeepsTheTransitionOfAnEqualStatus(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cs := SetCondition(nil, True(ConditionDrained, "", "a"), t0)
	cs = SetCondition(cs, True(ConditionDrained, "", "b"), t0.Add(time.Hour))
	if c := FindCondition(cs, ConditionDrained); c.Message != "b" || !c.LastTransitionTime.Time.Equal(t0) {
		t.Errorf("got %+v", c)
	}
	cs = SetCondition(cs, False(ConditionDrained, "Warning", "X", ""), t0.Add(time.Hour))
	if c := FindCondition(cs, ConditionDrained); !c.LastTransitionTime.Time.Equal(t0.Add(time.Hour)) || c.Status != corev1.ConditionFalse {
		t.Errorf("got %+v", c)
	}
}

// What could be read in two ways is not read at all: whoever forges a record may count on it that two readers differ.
func TestRecordsAreReadInOneWay(t *testing.T) {
	t.Parallel()
	for name, ledger := range map[string]string{
		"a field twice":              `{"schema":1,"setUID":"s","next":2,"active":"0-1","active":""}`,
		"a field in capitals":        `{"schema":1,"setUID":"s","next":2,"Active":"0-1"}`,
		"something behind it":        `{"schema":1,"setUID":"s","next":2,"active":"0-1"}{}`,
		"a field of nobody":          `{"schema":1,"setUID":"s","next":2,"active":"0-1","x":1}`,
		"a field of a Machine twice": `{"schema":1,"setUID":"s","next":2,"active":"0-1","adopted":{"0":{"name":"a","uid":"u","uid":"v"}}}`,
		"an ordinal twice":           `{"schema":1,"setUID":"s","next":2,"active":"0-1","adopted":{"0":{"name":"a","uid":"u"},"0":{"name":"b","uid":"v"}}}`,
	} {
		if l, err := ParseLedger(ledger); err == nil {
			t.Errorf("%s: read %v", name, l)
		}
	}
	state := func(text string) error { _, err := ParseSweepState(text); return err }
	budget := func(text string) error {
		_, err := ParseDisruptions(&corev1.ConfigMap{Data: map[string]string{DisruptionKey: text}})
		return err
	}
	victims := func(text string) error {
		_, err := Victims(&MachineSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationVictims: text}}})
		return err
	}
	for _, of := range []struct {
		read  func(string) error
		usual string
		not   []string
	}{
		{state, `{"schema":1,"sightings":{"a/b":"2026-01-01T00:00:00Z"}}`, []string{
			`{"schema":1,"sightings":{"a/b":"2026-01-01T00:00:00Z"},"sightings":{}}`, `{"schema":1,"sightings":{"a/b":"2026-01-01T00:00:00Z","a/b":"2025-01-01T00:00:00Z"}}`,
			`{"schema":1,"SIGHTINGS":{"a/b":"2026-01-01T00:00:00Z"}}`, `{"schema":1,"x":1}`, `{"schema":1}{}`, `{"schema":2}`,
		}},
		{budget, `{"schema":1,"slots":[{"namespace":"n","machine":"m","uid":"u","by":"b","at":"2026-01-01T00:00:00Z"}]}`, []string{
			`{"schema":1,"slots":[{"namespace":"n","machine":"m","uid":"u","by":"b","at":"2026-01-01T00:00:00Z"}],"slots":[]}`,
			`{"schema":1,"slots":[{"namespace":"n","machine":"m","uid":"u","uid":"v","by":"b","at":"2026-01-01T00:00:00Z"}]}`,
			`{"schema":1,"Slots":[]}`, `{"schema":1,"x":1}`, `{"schema":1}{}`, `{"schema":2}`,
		}},
		{victims, `[{"name":"a","uid":"u","plan":"p"}]`, []string{
			`[{"name":"a","uid":"u","plan":"p","name":"b"}]`, `[{"Name":"a","uid":"u","plan":"p"}]`, `[{"name":"a","uid":"u","plan":"p","x":1}]`, `[{"name":"a","uid":"u","plan":"p"}][]`,
		}},
	} {
		if err := of.read(of.usual); err != nil {
			t.Errorf("%s: %v", of.usual, err)
		}
		for _, text := range of.not {
			if of.read(text) == nil {
				t.Errorf("%s was read", text)
			}
		}
	}
	const intent = `{"schema":1,"attempt":1,"token":"t","account":"a","startedAt":"2026-01-01T00:00:00Z","outcome":"refused","outcome":""}`
	m := &Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationIntent: intent}}}
	if i, err := ParseIntent(m); err == nil {
		t.Errorf("an intent with two outcomes: read %v", i)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(`{"schema":1,"setUID":"s","next":2,"active":"0-1"}`)
	f.Add(`{"schema":1,"attempt":1,"token":"oihuu5dj3kupkj3p5k82l21em1487h6s","account":"a","startedAt":"2026-01-01T00:00:00Z"}`)
	f.Add(`{"schema":1,"slots":[{"namespace":"n","machine":"m","uid":"u","by":"b","at":"2026-01-01T00:00:00Z"}]}`)
	f.Add(`{"schema":1,"accounts":{"a":{"namespace":"n","clusterID":"c","spec":{}}},"sightings":{"a/b":"2026-01-01T00:00:00Z"}}`)
	f.Add(`[{"name":"a","uid":"u","plan":"p"}]`)
	f.Add(`{"schema":2}`)
	f.Add(`{"schema":1,"setUID":"s","next":-1,"active":"5-1,3"}`)
	f.Add(`{"schema":1,"schema":2}`)
	f.Add(`{"setUID":"s","next":1,"active":"0"}`)
	f.Add(`{"schema":1,"setUID":"s","next":9,"active":"3,1"}`)
	f.Add(`{"schema":1,"setUID":"s","next":1,"active":"0-1"}`)
	f.Add(`{"schema":1,"setUID":"s","next":2,"active":"0","adopted":{"2":{"name":"a","uid":"u"}}}`)
	f.Add(`{"schema":2,"attempt":1,"token":"t","account":"a","startedAt":"2026-01-01T00:00:00Z"}`)
	f.Add(`{"schema":1,"attempt":0,"token":"t","account":"a","startedAt":"2026-01-01T00:00:00Z"}`)
	f.Add(`{"schema":1,"attempt":1,"token":"","account":"a","startedAt":"2026-01-01T00:00:00Z"}`)
	f.Add(`{"schema":1,"setUID":"s","next":1,"active":"0","failures":-1,"nextCreateAt":"2026-01-01T00:00:00Z"}`)
	f.Add(`{"schema":1,"attempt":1,"token":"t","account":"a","startedAt":"2026-01-01T00:00:00Z","failures":-9223372036854775808}`)
	f.Add(`{"schema":1,"attempt":1,"token":"t","request":` + strings.Repeat("[", 20000))
	f.Fuzz(func(t *testing.T, text string) {
		if l, err := ParseLedger(text); err == nil {
			strange := func(k int) bool { return k < 0 || k >= l.Next }
			if l.Schema != 1 || slices.ContainsFunc(l.Active, strange) || !slices.IsSorted(l.Active) || slices.ContainsFunc(slices.Collect(maps.Keys(l.Adopted)), strange) {
				t.Errorf("ledger %q was read: %+v", text, l)
			}
			if again, err := ParseLedger(l.String()); err != nil || again.String() != l.String() || l.Failures < 0 {
				t.Errorf("ledger %q became %q: %v", text, l, err)
			}
		}
		m := &Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationIntent: text, AnnotationVictims: text}}}
		if d, err := ParseDisruptions(&corev1.ConfigMap{Data: map[string]string{DisruptionKey: text}}); err == nil {
			if again, err := ParseDisruptions(d.In(nil)); err != nil || len(again.Slots) != len(d.Slots) {
				t.Errorf("disruptions %q became %v: %v", text, again, err)
			}
		}
		if i, err := ParseIntent(m); err == nil && i != nil {
			m.Annotations[AnnotationIntent] = i.String()
			if again, err := ParseIntent(m); err != nil || again == nil || again.String() != i.String() || i.Failures < 0 || i.Schema != 1 || i.Attempt < 1 || i.Token == "" {
				t.Errorf("intent %q became %q, then %v: %v", text, i, again, err)
			}
		}
		if s, err := ParseSweepState(text); err == nil {
			if again, err := ParseSweepState(s.String()); err != nil || again.String() != s.String() {
				t.Errorf("state %q became %q: %v", text, s, err)
			}
		}
		set := &MachineSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationVictims: text}}}
		if _, err := Victims(set); err != nil && !strings.Contains(err.Error(), AnnotationVictims) {
			t.Errorf("victims %q: %v does not say where they stand", text, err)
		}
	})
}

// What a Machine's own record says was made for it, or taken over, was its own before people led spec.providerID elsewhere (R-S16). A copied
// record says so of another Machine, and one that is not over of nothing.
func TestLeftBehindIsWhatItsOwnRecordSays(t *testing.T) {
	t.Parallel()
	m := &Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", UID: "uid-0"}}
	m.Spec.ProviderID = new("x:///i-9")
	made := NewIntent(m, 1, "a", nil)
	made.Outcome, made.Instance = OutcomeCreated, "i-1"
	over, copied := made, made
	over.Instance, over.Tag = "i-9", "uid-gone"
	copied.Token = Token("uid-other", 1, "a")
	open := made
	open.Outcome = ""
	for name, c := range map[string]struct {
		intent         *Intent
		id, providerID string
		tag            types.UID
		want           bool
	}{
		"made for it":               {&made, "i-1", "x:///i-1", m.UID, true},
		"what it records":           {&made, "i-1", "x:///i-9", m.UID, false},
		"of a lost answer":          {&made, "i-2", "x:///i-2", m.UID, false},
		"only belongs to one":       {&made, "i-1", "", m.UID, false},
		"by a copied record":        {&copied, "i-1", "x:///i-1", m.UID, false},
		"by one that is not over":   {&open, "i-1", "x:///i-1", m.UID, false},
		"without a record":          {nil, "i-1", "x:///i-1", m.UID, false},
		"its own, another's served": {&over, "i-1", "x:///i-1", m.UID, true},
		"another's beside that":     {&over, "i-2", "x:///i-2", "uid-gone", false},
	} {
		if got := c.intent.LeftBehind(m, c.id, c.providerID, c.tag); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	m.Spec.ProviderID = nil
	if made.LeftBehind(m, "i-1", "x:///i-1", m.UID) {
		t.Error("a Machine that records nothing was led nowhere")
	}
}
