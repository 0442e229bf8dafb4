// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Which ordinal a Machine has the ledger tells, asked for one or for many: the label is anybody's (R-S5), an ordinal that was lent is only
// of whoever was adopted into it, and none is below the first: no ledger could keep it.
func TestOrdinalIsWhatTheLedgerTells(t *testing.T) {
	t.Parallel()
	l := NewLedger("set-uid")
	l.Next, l.Active = 8, Ordinals{0, 1, 2}
	own := func(k int) string { return Name("w", l.SetUID, k) }
	l.Adopted = map[int]Member{1: {Name: "foundling", UID: "foundling"}, 4: {Name: "leaver", UID: "leaver"}, 5: {Name: own(5)}, 7: {Name: own(6)}}
	const none = -100
	for name, c := range map[string]struct {
		machine string
		uid     types.UID
		label   string
		want    int // none: of no ordinal
	}{
		"created for an active one":          {own(2), "a", "2", 2},
		"whose label is gone":                {own(2), "a", "", 2},
		"whose label says another":           {own(2), "a", "0", 2},
		"whose label says a lent one":        {own(2), "a", "1", 2},
		"created for a retired one":          {own(3), "a", "3", 3},
		"retired, and its label is gone":     {own(3), "a", "", 3},
		"adopted":                            {"foundling", "foundling", "1", 1},
		"adopted, and its label is gone":     {"foundling", "foundling", "", 1},
		"adopted, and its label says 0":      {"foundling", "foundling", "0", 1},
		"a stranger whose label says a lent": {"stranger", "stranger", "1", none},
		"named as an active lent one":        {own(1), "a", "", none},
		"named and labeled so":               {own(1), "a", "1", none},
		"named as a retired lent one":        {own(4), "a", "", none},
		"let go":                             {own(5), "a", "5", none},
		"let go, and its label is gone":      {own(5), "a", "", none},
		"let go where it was adopted":        {own(6), "a", "7", none},
		"let go, and its label says its own": {own(6), "a", "6", none},
		"not allocated yet":                  {own(9), "a", "9", 9},
		"not allocated, without a label":     {own(9), "a", "", none},
		"before the first":                   {own(-1), "a", "-1", none},
	} {
		m := &Machine{ObjectMeta: metav1.ObjectMeta{Name: c.machine, UID: c.uid, Labels: map[string]string{LabelOrdinal: c.label}}}
		for how, find := range map[string]func() (int, bool){
			"one":  func() (int, bool) { return l.OrdinalOf("w", m) },
			"many": func() (int, bool) { return l.Finder("w")(m) },
		} {
			got, ok := find()
			if !ok {
				got = none
			}
			if got != c.want {
				t.Errorf("%s, asked for %s: %d, want %d", name, how, got, c.want)
			}
		}
	}
}

// Only one whose name alone led to its ordinal was made anew, and only where its label is of a later time than the ledger: who was adopted into
// that ordinal is known by his UID, whatever his label says (2a.7).
func TestWhoWasMadeAnew(t *testing.T) {
	t.Parallel()
	l := NewLedger("set-uid")
	l.Next, l.Adopted = 6, map[int]Member{4: {Name: "leaver", UID: "leaver"}}
	for _, c := range []struct {
		k     int
		label string
		want  bool
	}{
		{3, "6", true},
		{3, "5", false},
		{3, "3", false},
		{3, "", false},
		{3, "later", false},
		{4, "4", false},
		{4, "6", false},
	} {
		m := &Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{LabelOrdinal: c.label}}}
		if got := l.MadeAnew(m, c.k); got != c.want {
			t.Errorf("ordinal %d, label %q: %v, want %v", c.k, c.label, got, c.want)
		}
	}
}

// A victim is the Machine of that name, and of that UID where one is known: another one is not removed in its place.
func TestVictimIsNoOtherMachine(t *testing.T) {
	t.Parallel()
	m := &Machine{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	for _, c := range []struct {
		victim Victim
		want   bool
	}{
		{Victim{Name: "a", UID: "1"}, true},
		{Victim{Name: "a"}, true}, // not created yet when it was named
		{Victim{Name: "a", UID: "2"}, false},
		{Victim{Name: "b"}, false},
		{Victim{Name: "b", UID: "1"}, false},
	} {
		if got := c.victim.Is(m); got != c.want {
			t.Errorf("%+v is %s of UID %s: %v", c.victim, m.Name, m.UID, got)
		}
	}
}
