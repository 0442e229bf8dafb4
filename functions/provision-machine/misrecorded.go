// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// Who may repair may change spec.providerID, which is written once otherwise (R-S16). Then the cloud does not show what is
// recorded, and shows what was made for the Machine. That is not recorded here: nobody knows whom the change meant.

// carriers returns the instances that carry the Machine's tag, none of which it records.
func (l life) carriers() (all []provider.Instance) {
	if l.in != nil || machine.ProviderID(l.m) == "" {
		return nil
	}
	for _, in := range l.cloud.Found {
		if !in.Child && in.UID == machine.InstanceUID(l.m) && in.State != provider.StateDeleting {
			all = append(all, in)
		}
	}
	return all
}

func (l life) misrecorded(in provider.Instance) string {
	return fmt.Sprintf("spec.providerID is %s, and instance %s carries this machine's tag", machine.ProviderID(l.m), in.ProviderID)
}

// aliveAllTheSame says which Node shows that an instance of the Machine runs though what is recorded is not found, or "". A Machine that
// failed for it would be drained and deleted by a health check, and its instance with it.
func (l life) aliveAllTheSame() string {
	if n := l.runningNode(); n != nil {
		return "node " + n.Name + " on it is Ready"
	}
	for _, in := range l.carriers() {
		if n := l.aliveOn(in); n != nil {
			return l.misrecorded(in) + ", and node " + n.Name + " on that is Ready"
		}
	}
	return ""
}
