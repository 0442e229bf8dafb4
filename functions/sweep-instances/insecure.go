// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// sweepEvery is how often the tick comes: one falls into the beginning of each hour, and no record of the last one is needed.
const sweepEvery = 5 * time.Minute

// firstOfHour reports whether this is the first sweep of an hour: in it people are told again of what lasts.
func (w sweep) firstOfHour() bool { return w.Now.Sub(w.Now.Truncate(time.Hour)) < sweepEvery }

// insecure tells, in the first sweep of an hour, the MachineSets, and the Machines without one, whose cloud need not prove who
// it is: at most maxTold of them. The metric tells all accounts at any time.
func (w sweep) insecure() plan.Sequence {
	if !w.firstOfHour() {
		return plan.Sequence{}
	}
	var notes []plan.Note
	for _, m := range w.Machines {
		intent, err := w.Records.Intent(m)
		if err != nil || intent == nil {
			continue
		}
		why := w.Accounts[intent.Account].Insecure
		note := plan.Warning(setOf(m), "InsecureTLS", why+": whoever is between sees the credentials and answers for the cloud")
		if why != "" && len(notes) < maxTold && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return plan.Sequence{Notes: notes}
}

// setOf returns what a person looks at for m: its MachineSet by name and UID, or m itself.
func setOf(m *machine.Machine) plan.Object {
	set := machine.OwningSet(m)
	if set == nil {
		return m
	}
	return &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: set.Name, UID: set.UID}}
}
