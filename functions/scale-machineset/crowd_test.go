// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"fmt"
	"testing"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// unlabeled are so many Machines of a set, of which the last alone says by its label at which ordinal it stands.
func unlabeled(set *machine.MachineSet, machines int) members {
	var all []*machine.Machine
	for k := range machines {
		m := member(set, k)
		if k < machines-1 {
			delete(m.Labels, machine.LabelOrdinal)
		}
		all = append(all, m)
	}
	return membersOf(set, all...)
}

// A ledger that is rebuilt finds Machines that lost their labels by their names, once it knows how far it went (2a.7).
func TestRebuiltLedgerKnowsMachinesByTheirNames(t *testing.T) {
	t.Parallel()
	set := workers(50)
	l := rebuild(snapshot.Snapshot{Now: at, Invocation: "me"}, set, unlabeled(set, 50))
	if len(l.Active) != 50 || l.Next != 50 || len(l.Adopted) > 0 {
		t.Errorf("%s", l)
	}
}

// BenchmarkBeyond looks whether the ledger of a large set went backwards, whose Machines lost their labels: in one pass over them.
func BenchmarkBeyond(b *testing.B) {
	for _, size := range []int{1000, 4000} {
		b.Run(fmt.Sprintf("machines=%d", size), func(b *testing.B) {
			set := workers(int32(size))
			l, m := ledgerOf(set, size), unlabeled(set, size)
			for b.Loop() {
				if beyond(l, set, m.owned) {
					b.Fatal("it did not")
				}
			}
		})
	}
}

// BenchmarkRebuild makes the ledger of thousands of Machines anew that lost their labels as well.
func BenchmarkRebuild(b *testing.B) {
	for _, size := range []int{1000, 4000} {
		b.Run(fmt.Sprintf("machines=%d", size), func(b *testing.B) {
			set := workers(int32(size))
			m := unlabeled(set, size)
			for b.Loop() {
				if l := rebuild(snapshot.Snapshot{Now: at, Invocation: "me"}, set, m); len(l.Active) != size {
					b.Fatal(len(l.Active))
				}
			}
		})
	}
}
