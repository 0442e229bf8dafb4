// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// exists returns the condition of an instance that is there. Of one that its cloud calls by another name than the Machine
// records, as when a host was restored from a backup, it says so: the record is written once (R-S16), and the Node goes by it.
func (l life) exists(in provider.Instance) machine.Condition {
	id := machine.ProviderID(l.m)
	if id == "" || machine.SameID(in.ProviderID, id) {
		return machine.True(machine.ConditionInstanceExists, "", "")
	}
	return machine.True(machine.ConditionInstanceExists, string(reasonUnsupported),
		fmt.Sprintf("the cloud made the instance anew: it is %s there, and stays %s here; delete the Machine to have one with a new name", in.ProviderID, id))
}

// renamed tells once of an instance that has another name by now.
func (l life) renamed(in provider.Instance) []plan.Note {
	c, had := l.exists(in), machine.FindCondition(l.m.Status.Conditions, machine.ConditionInstanceExists)
	if c.Message == "" || had != nil && had.Message == c.Message {
		return nil
	}
	return []plan.Note{l.warning("FailedUpdate", c.Message)}
}
