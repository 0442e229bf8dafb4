// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"cmp"
	"fmt"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// An instance keeps the id of the cluster in its tag: an Infrastructure that is made, or called otherwise, later on changes
// that of new ones only. What is there is looked for by the id of the time when it was made (S79, S91).

// unclustered reports whether the intent does not say that the instance carries the id under which it was found.
func (l life) unclustered() bool {
	id, _ := l.Records.InstanceCluster(l.m)
	return l.intent != nil && l.cloud.Cluster != "" && id != l.cloud.Cluster
}

// sameCluster reports whether the cloud was asked under the id that the intent's attempt was made with.
func (l life) sameCluster() bool {
	return l.cloud.Cluster == "" || cmp.Or(l.intent.Cluster, l.m.Labels[machine.LabelCluster]) == l.cloud.Cluster
}

// clusterChanged tells, once for all and only in a scan, that Machines have instances of another cluster id than new ones get.
func clusterChanged(s snapshot.Snapshot) []plan.Note {
	name := s.InfrastructureName()
	if name == "" || !s.Request.Scan() {
		return nil
	}
	var first *machine.Machine
	count := 0
	for _, m := range s.Machines {
		if machine.ProviderID(m) == "" || s.ClusterID(m) == name {
			continue
		}
		if count++; first == nil {
			first = m
		}
	}
	if first == nil {
		return nil
	}
	return []plan.Note{plan.Warning(first, "ClusterIDChanged", fmt.Sprintf(
		"new instances are tagged with the Infrastructure's name %s; those of %d machines, of which this is the first, keep another cluster id: %s here",
		name, count, s.ClusterID(first)))}
}
