// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// What people are told on a set of what was decided. OpenShift has no Event for a Machine that its set creates, as spec.replicas
// wants; who is taken over or has to go is chosen by the set, and who writes a ledger anew counts what is there.
const (
	eventAdopt   = "Adopt"
	eventRetire  = "Retire"
	eventRebuild = "Rebuild"
)

// maxReasons is how many reasons one line of the log has, or one Event.
const maxReasons = 20

// causes are why a ledger is written.
type causes struct {
	all              []string
	adopted, retired []string // of all, what the set chose: people are told
}

// add is for what follows from what somebody else did or wished.
func (c *causes) add(why string) { c.all = append(c.all, why) }

// adopt is for a Machine that the set takes over.
func (c *causes) adopt(x *machine.Machine) {
	c.add("adopt " + x.Name)
	c.adopted = append(c.adopted, "adopt "+x.Name)
}

// retire is for an ordinal whose Machine has to go.
func (c *causes) retire(k int, why string) {
	c.free(k, why)
	c.retired = append(c.retired, retired(k, why))
}

// free is for an ordinal that retires without a Machine, or whose Machine others took away.
func (c *causes) free(k int, why string) { c.add(retired(k, why)) }

func retired(k int, why string) string { return fmt.Sprintf("retire ordinal %d: %s", k, why) }

// notes returns what the set's people are told once the ledger is written: whoever it chose.
func (c *causes) notes(set *machine.MachineSet) (notes []plan.Note) {
	for some := range slices.Chunk(c.adopted, maxReasons) {
		notes = append(notes, plan.Normal(set, eventAdopt, brief(some)))
	}
	for some := range slices.Chunk(c.retired, maxReasons) {
		notes = append(notes, plan.Normal(set, eventRetire, brief(some)))
	}
	return notes
}

// brief joins reasons; of many it names the first.
func brief(why []string) string {
	if more := len(why) - maxReasons; more > 0 {
		why = append(slices.Clip(why[:maxReasons]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(why, ", ")
}
