// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"cmp"
	"fmt"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// anothers reports whether in carries the mark of another cluster that has the same id: its Machines are in no list here, so that
// nothing says that it is nobody's. Where our own mark is not known, any is taken for another's. What carries none was made by a former
// version, here as far as anybody knows (RELIABILITY 2b.10).
func anothers(s snapshot.Snapshot, in provider.Instance) bool {
	return in.ClusterUID != "" && in.ClusterUID != s.ClusterUID()
}

// neighbors tells, in the first sweep of an hour, what another cluster has in our accounts, and what people can do: at most maxTold by
// name. It is on no record: nothing is ever done about it here.
func (w sweep) neighbors() plan.Sequence {
	if !w.firstOfHour() {
		return plan.Sequence{}
	}
	var notes []plan.Note
	for _, f := range w.others[:min(len(w.others), maxTold)] {
		notes = append(notes, plan.Warning(w.object(), "AnotherCluster", fmt.Sprintf("%s carries the mark of another cluster with our id, whose namespace kube-system has the UID %s (here it is %s), and is left alone: "+
			"give one of the clusters an id of its own; if that cluster is gone, remove this in the cloud, or take the mark off it", f, f.in.ClusterUID, cmp.Or(w.ClusterUID(), "unknown"))))
	}
	if more := len(w.others) - maxTold; more > 0 {
		notes = append(notes, plan.Warning(w.object(), "AnotherCluster", fmt.Sprintf("%d more carry the mark of another cluster with our id", more)))
	}
	return plan.Sequence{Notes: notes}
}
