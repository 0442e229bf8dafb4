// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"

	"github.com/machine-functions/machine-functions/shared/plan"
)

// elsewhere reports whether the providerSpec leads to another account than the one where the Machine's instance is, or
// may be: what that account shows, or does not show, says nothing about this Machine.
func (l life) elsewhere() bool {
	return l.intent.Called() && !l.intent.Over() && l.cloud.Account != "" && l.cloud.Account != l.intent.Account
}

// misled says so; nothing else happens until the providerSpec leads back.
func (l life) misled() plan.Sequence {
	message := fmt.Sprintf("spec.providerSpec: leads to account %s, but the instance is in %s", l.cloud.Account, l.intent.Account)
	next := l.m.DeepCopy()
	reason := reasonUnsupported
	next.Status.ErrorReason, next.Status.ErrorMessage = &reason, &message
	l.set(next, unknown(message))
	seq := l.status(next, phase(l.m), string(reason))
	seq.Notes = append(seq.Notes, l.warning("FailedUpdate", message))
	return seq
}
