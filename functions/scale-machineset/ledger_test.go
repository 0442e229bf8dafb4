// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// The Machines of a large set that was deleted with --cascade=orphan come back to the next one as far as its ledger can
// remember them; the rest is told of, and nobody is made or removed for them (R-S4, R-S5, 2a.1).
func TestOrphansOfALargeSetAreAdoptedAsFarAsTheyFit(t *testing.T) {
	t.Parallel()
	const most = 262_144 // bytes, of all annotations of an object
	set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "general-purpose-1a", Namespace: machine.Namespace, UID: "3f0b7d1e-8a52-4c66-9d0e-5b1f7c2a9e44"}}
	set.Spec.Replicas = new(int32(5_000))
	var m members
	for k := range 3_000 {
		uid := types.UID(fmt.Sprintf("0c8a6b1e-2f43-4d75-8e96-%012d", k))
		m.orphans = append(m.orphans, &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: machine.Name(set.Name, "former", k), UID: uid}})
	}
	c := decide(snapshot.Snapshot{}, set, machine.NewLedger(set.UID), m)
	if size := len(c.ledger.String()); len(c.ledger.Adopted) != maxAdopted || len(c.ledger.Active) != maxAdopted || size > most {
		t.Fatalf("%d adopted, %d active, %d bytes", len(c.ledger.Adopted), len(c.ledger.Active), size)
	}
	if again := decide(snapshot.Snapshot{}, set, c.ledger, members{orphans: m.orphans, byUID: index(m.orphans)}); again.why != "" {
		t.Errorf("it goes on: %s", again.why)
	}
	if crowded(set, c.ledger, m) == "" {
		t.Error("nobody is told of the rest")
	}
}

// So they do where their names are as long as names can be: a ledger that is too large for an annotation is refused for ever.
func TestOrphansWithLongNamesAreAdoptedAsFarAsTheyFit(t *testing.T) {
	t.Parallel()
	set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "general-purpose-1a", Namespace: machine.Namespace, UID: "3f0b7d1e-8a52-4c66-9d0e-5b1f7c2a9e44"}}
	set.Spec.Replicas = new(int32(2_000))
	var m members
	for k := range 2_000 {
		uid := types.UID(fmt.Sprintf("0c8a6b1e-2f43-4d75-8e96-%012d", k))
		x := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%0253d", k), UID: uid}}
		if m.orphans = append(m.orphans, x); k%2 == 0 { // and some stand at an ordinal by their label
			x.Name = machine.Name(set.Name, set.UID, k/2)
		}
	}
	l := machine.NewLedger(set.UID)
	for range 3 {
		c := decide(snapshot.Snapshot{}, set, l, members{orphans: m.orphans, byUID: index(m.orphans)})
		if size := len(c.ledger.String()); size > 220_000 || len(c.ledger.Adopted) < 500 && c.why != "" {
			t.Fatalf("%d adopted, %d bytes: %s", len(c.ledger.Adopted), size, c.why)
		}
		l = c.ledger
	}
	if crowded(set, l, m) == "" {
		t.Error("nobody is told of the rest")
	}
}

// Nor are more written down that stand at an ordinal by their names than have room.
func TestOrphansAtTheirOrdinalsAreWrittenDownAsFarAsTheyFit(t *testing.T) {
	t.Parallel()
	set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", 60), Namespace: machine.Namespace, UID: "3f0b7d1e-8a52-4c66-9d0e-5b1f7c2a9e44"}}
	set.Spec.Replicas = new(int32(2_000))
	l := machine.NewLedger(set.UID)
	var m members
	for k := range 2_000 {
		x := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: machine.Name(set.Name, set.UID, k), UID: types.UID(fmt.Sprintf("0c8a6b1e-2f43-4d75-8e96-%012d", k))}}
		m.orphans, l.Active, l.Next = append(m.orphans, x), append(l.Active, k), k+1
	}
	m.byUID = index(m.orphans)
	c := decide(snapshot.Snapshot{}, set, l, m)
	if size := len(c.ledger.String()); size > 220_000 || len(c.ledger.Adopted) < 1_400 {
		t.Errorf("%d written down, %d bytes", len(c.ledger.Adopted), size)
	}
}

// A Machine that was adopted and is gone makes room for one that waits, though nothing else is to be written: what is told of the set
// says so, and it would neither grow nor shrink for ever.
func TestWhatIsGoneMakesRoom(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]int{"many": 0, "long names": 253} {
		set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "worker", Namespace: machine.Namespace, UID: "set-1"}}
		var m members
		for k := range maxAdopted {
			m.orphans = append(m.orphans, &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a%0*d", max(1, long-1), k), UID: types.UID(fmt.Sprintf("0c8a6b1e-2f43-4d75-8e96-%012d", k))}})
		}
		l := machine.NewLedger(set.UID)
		adopt(&l, m.orphans)
		n := len(l.Adopted)
		m.owned = m.orphans[:n]
		stranger := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "stranger", UID: "stranger"}}
		m.orphans = []*machine.Machine{stranger}
		set.Spec.Replicas = new(int32(n))
		seen := func() snapshot.Snapshot {
			m.byUID = index(append(m.owned[:len(m.owned):len(m.owned)], m.orphans...))
			return snapshot.Snapshot{}
		}
		if crowded(set, l, m) == "" {
			t.Fatalf("%s: there is room beside %d", name, n)
		}
		m.owned[0] = m.owned[0].DeepCopy()
		m.owned[0].DeletionTimestamp = new(metav1.Now())
		l = decide(seen(), set, l, m).ledger // it is on its way out
		m.owned = m.owned[1:]
		for range 3 {
			l = decide(seen(), set, l, m).ledger
		}
		if _, ok := l.OrdinalOf(set.Name, stranger); !ok {
			t.Errorf("%s: the stranger still waits beside %d: %s", name, len(l.Adopted), crowded(set, l, m))
		}
	}
}

func index(all []*machine.Machine) map[types.UID]*machine.Machine {
	byUID := map[types.UID]*machine.Machine{}
	for _, x := range all {
		byUID[x.UID] = x
	}
	return byUID
}
