// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"fmt"
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

func index(all []*machine.Machine) map[types.UID]*machine.Machine {
	byUID := map[types.UID]*machine.Machine{}
	for _, x := range all {
		byUID[x.UID] = x
	}
	return byUID
}
