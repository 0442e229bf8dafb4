// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// Labels that most Machines of a set lose, five at least, are not believed at once, as a list is not that lost most of what it held
// (RELIABILITY G8): one command takes them off all Machines, and the next one puts them back.
const (
	fewestLetGo = 5
	letGoPause  = time.Minute
)

// hold makes the next creation wait where so many Machines were let go that another one for each would be half of the set twice. It is for a
// commit that lets one go; a pause that is begun is made no longer, but for labels from then on: no Machine that runs ends it.
func hold(now time.Time, set *machine.MachineSet, l machine.Ledger, m members, want int, why *causes) machine.Ledger {
	n := letGo(set, l, m)
	if len(l.Active) >= want || n < fewestLetGo || 2*n <= want {
		return l
	}
	l.Failures, l.FailedTemplate = 0, ""
	if l.NextCreateAt == nil || !now.Before(l.NextCreateAt.Time) {
		l.NextCreateAt = new(metav1.NewTime(now.Add(letGoPause)))
	}
	why.add(fmt.Sprintf("%d of %d are let go: create nothing before %s", n, want, machine.Stamp(l.NextCreateAt.Time)))
	return l
}

// letGo counts the Machines that the set lets go, and those that it let go before which are there and nobody's: events come one by one, and so
// do labels.
func letGo(set *machine.MachineSet, l machine.Ledger, m members) int {
	n, ordinalOf := len(m.released), l.Finder(set.Name)
	for _, x := range m.free {
		if x.Namespace != set.Namespace || x.DeletionTimestamp != nil || m.byUID[x.UID] != nil {
			continue
		}
		if k, ok := ordinalOf(x); ok && l.Retired(k) {
			n++
		}
	}
	return n
}
