// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ledgerSchema is the version written; a higher one found belongs to a newer revision (RELIABILITY G9).
const ledgerSchema = 1

const (
	// maxOrdinals bounds what one ledger may hold active, and how many of the latest ordinals are searched for a Machine
	// whose label does not tell: a forged range exhausts no memory, a long history no time.
	maxOrdinals = 100_000
	// maxNext bounds what one ledger may have allocated: a Machine in each second of thirty years. An int has 32 bits on
	// some machines.
	maxNext = 1_000_000_000
	// maxLabelled bounds the ordinals that nothing but a label tells, so that no label uses up those of its set.
	maxLabelled = maxNext / 2
)

// Ledger is the committed decision of scale-machineset about one MachineSet, kept in AnnotationLedger: which
// ordinals shall have a Machine. It is written by compare-and-swap on the set, together with spec.replicas.
// A retired ordinal never becomes active again (R-S17).
type Ledger struct {
	Schema int       `json:"schema"`
	SetUID types.UID `json:"setUID"`
	Next   int       `json:"next"`
	Active Ordinals  `json:"active"`
	// Adopted are the Machines at ordinals that they were not created for; each stays until it is gone, also when its
	// ordinal is retired, because nothing else says which Machine has to go. One without a UID was let go for its labels: it stands
	// nowhere as long as it is the set's, so that it does not go should they come back.
	Adopted      map[int]Member `json:"adopted,omitempty"`
	Failures     int            `json:"failures,omitempty"`
	NextCreateAt *metav1.Time   `json:"nextCreateAt,omitempty"`
	// FailedTemplate is a digest of the template that the failures are of; with another one they are over.
	FailedTemplate string `json:"failedTemplate,omitempty"`
	// Rebuilt is the invocation that rebuilt the ledger from the Machines it saw; it creates and deletes nothing.
	Rebuilt string `json:"rebuilt,omitempty"`
}

// Member is a Machine that was not created for its ordinal but adopted into it.
type Member struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// LetGo reports that the Machine was let go for its labels, from the ordinal that it is remembered at.
func (m Member) LetGo() bool { return m.UID == "" }

// NewLedger returns the empty ledger of a set.
func NewLedger(setUID types.UID) Ledger {
	return Ledger{Schema: ledgerSchema, SetUID: setUID}
}

// ParseLedger reads a ledger. It refuses unknown fields, a newer schema, more ordinals than a set ever has, and active ones
// that were never allocated, so that what it returns can be executed. A newer schema, whatever its fields, is ErrNewer.
func ParseLedger(text string) (Ledger, error) {
	var l Ledger
	if err := ReadSchema(text, &l, &l.Schema, ledgerSchema); err != nil {
		return Ledger{}, fmt.Errorf("parse ledger: %w", err)
	}
	switch {
	case l.Failures < 0: // how long to wait after them follows from how many they are
		return Ledger{}, fmt.Errorf("parse ledger: %d failures", l.Failures)
	case l.Next > maxNext:
		return Ledger{}, fmt.Errorf("parse ledger: next %d, at most %d can be", l.Next, maxNext)
	case l.Next < 0, len(l.Active) > 0 && l.Active[len(l.Active)-1] >= l.Next:
		return Ledger{}, fmt.Errorf("parse ledger: active %v beyond next %d", l.Active, l.Next)
	}
	for k := range l.Adopted {
		if k < 0 || k >= l.Next {
			return Ledger{}, fmt.Errorf("parse ledger: adopted ordinal %d beyond next %d", k, l.Next)
		}
	}
	l.Failures = min(l.Failures, mostCounted)
	return l, nil
}

// String returns the ledger as it is stored.
func (l Ledger) String() string {
	b, err := json.Marshal(l)
	if err != nil { // no field of Ledger can fail to marshal
		return ""
	}
	return string(b)
}

// Name returns the name of the Machine that ordinal k of the set stands for.
func (l Ledger) Name(set string, k int) string {
	if m, ok := l.Adopted[k]; ok {
		return m.Name
	}
	return Name(set, l.SetUID, k)
}

// Retired reports whether k was allocated and is not active any more: nothing stands there again.
func (l Ledger) Retired(k int) bool { return k < l.Next && !l.Active.Has(k) }

// MadeAnew reports that m has but the name of the Machine that k, an ordinal which is not active, stood for: its label says one that
// was not allocated yet. The ledger is from before m was released and adopted anew (RELIABILITY 2a.7).
func (l Ledger) MadeAnew(m *Machine, k int) bool {
	_, adopted := l.Adopted[k]
	at, err := strconv.Atoi(m.Labels[LabelOrdinal])
	return !adopted && err == nil && at >= l.Next
}

// OrdinalOf returns the ordinal of the named set that m was created for or adopted into, and whether it has one. It follows
// from the ledger and m's name; the label merely says where to look first, because anybody may have changed it (R-S5). Of
// an ordinal that the ledger has not allocated yet nothing but the label knows; one that was retired a hundred thousand
// Machines ago is found by the label alone. An ordinal that a Machine was adopted into is nobody's by name: a ledger that
// was rebuilt may have lent it.
func (l Ledger) OrdinalOf(set string, m *Machine) (int, bool) {
	k, err := strconv.Atoi(m.Labels[LabelOrdinal])
	if a, ok := l.Adopted[k]; ok && err == nil && a.UID == m.UID {
		return k, true
	}
	for k, a := range l.Adopted {
		if a.UID == m.UID {
			return k, true
		}
	}
	for _, a := range l.Adopted {
		if a.LetGo() && a.Name == m.Name {
			return 0, false
		}
	}
	if err == nil && l.tells(set, m, k) {
		return k, true
	}
	return l.named(set, m.Name)
}

// Finder returns OrdinalOf for many Machines: what it has to search for it searches once.
func (l Ledger) Finder(set string) func(*Machine) (int, bool) {
	byUID, letGo := map[types.UID]int{}, map[string]bool{}
	for k, a := range l.Adopted {
		if a.LetGo() {
			letGo[a.Name] = true
		} else {
			byUID[a.UID] = k
		}
	}
	var byName map[string]int
	return func(m *Machine) (int, bool) {
		if k, ok := byUID[m.UID]; ok {
			return k, true
		}
		if letGo[m.Name] {
			return 0, false
		}
		if k, err := strconv.Atoi(m.Labels[LabelOrdinal]); err == nil && l.tells(set, m, k) {
			return k, true
		}
		if byName == nil {
			byName = map[string]int{}
			name := func(k int) {
				if !l.lent(k) {
					byName[Name(set, l.SetUID, k)] = k
				}
			}
			for k := l.Next - 1; k >= l.searched(); k-- {
				name(k)
			}
			for _, k := range slices.Backward(l.Active) {
				name(k)
			}
		}
		k, ok := byName[m.Name]
		return k, ok
	}
}

// named returns the ordinal that a Machine of this name was created for: an active one before a retired one.
func (l Ledger) named(set, name string) (int, bool) {
	suffix, ok := strings.CutPrefix(name, nameBase(set))
	if !ok || len(suffix) != nameSuffix {
		return 0, false
	}
	for _, k := range l.Active {
		if suffixOf(l.SetUID, k) == suffix && !l.lent(k) {
			return k, true
		}
	}
	for k := l.searched(); k < l.Next; k++ {
		if suffixOf(l.SetUID, k) == suffix && !l.lent(k) {
			return k, true
		}
	}
	return 0, false
}

// tells reports whether m, whose label says ordinal k, was created for it.
func (l Ledger) tells(set string, m *Machine, k int) bool {
	return k >= 0 && k < max(l.Next, maxLabelled) && !l.lent(k) && m.Name == Name(set, l.SetUID, k)
}

// lent reports whether a Machine was adopted into ordinal k.
func (l Ledger) lent(k int) bool {
	_, ok := l.Adopted[k]
	return ok
}

// searched returns the first of the ordinals that are searched for a Machine's name, beside the active ones.
func (l Ledger) searched() int { return max(0, l.Next-maxOrdinals) }

// Ordinals is a sorted set of ordinals; its text form is ranges: "0-3,7".
type Ordinals []int

// Has reports whether k is in the set.
func (o Ordinals) Has(k int) bool {
	_, ok := slices.BinarySearch(o, k)
	return ok
}

// With returns the set with k added; the input is not modified.
func (o Ordinals) With(k int) Ordinals {
	i, ok := slices.BinarySearch(o, k)
	if ok {
		return o
	}
	return slices.Insert(slices.Clone(o), i, k)
}

// Without returns the set without k; the input is not modified.
func (o Ordinals) Without(k int) Ordinals {
	return slices.DeleteFunc(slices.Clone(o), func(x int) bool { return x == k })
}

// MarshalText writes ranges.
func (o Ordinals) MarshalText() ([]byte, error) {
	var parts []string
	for i := 0; i < len(o); {
		j := i
		for j+1 < len(o) && o[j+1] == o[j]+1 {
			j++
		}
		part := strconv.Itoa(o[i])
		if j > i {
			part += "-" + strconv.Itoa(o[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return []byte(strings.Join(parts, ",")), nil
}

// UnmarshalText reads ranges; they must be ascending, without overlap, and hold at most 100,000 ordinals.
func (o *Ordinals) UnmarshalText(text []byte) error {
	*o = nil
	if len(text) == 0 {
		return nil
	}
	last := -1
	for part := range strings.SplitSeq(string(text), ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			return fmt.Errorf("ordinals %q: %w", text, err)
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(to); err != nil {
				return fmt.Errorf("ordinals %q: %w", text, err)
			}
		}
		if a <= last || b < a || b-a+len(*o) >= maxOrdinals {
			return fmt.Errorf("ordinals %q: not ascending, or too many", text)
		}
		for k := a; k <= b; k++ {
			*o = append(*o, k)
		}
		last = b
	}
	return nil
}

// Victim is a Machine that evaluate-autoscale wants removed with the next commit of the set's ledger. One that was not
// created yet has no UID: it is whoever gets the name, which an ordinal lends once (R-S17).
type Victim struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	Plan string    `json:"plan"`
}

// Is reports whether m is meant.
func (v Victim) Is(m *Machine) bool { return v.Name == m.Name && (v.UID == m.UID || v.UID == "") }

// Victims reads AnnotationVictims of a set. Unreadable text, and fields that only a newer version knows, are an error, never an empty
// list: with it there are none.
func Victims(set *MachineSet) ([]Victim, error) {
	text, ok := set.Annotations[AnnotationVictims]
	if !ok {
		return nil, nil
	}
	var v []Victim
	if err := ReadRecord(text, &v); err != nil {
		return nil, fmt.Errorf("annotations[%s]: %.80q: %w", AnnotationVictims, text, err)
	}
	return v, nil
}
