// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// elsewhere reports whether the providerSpec, or its credentials, lead to another account than the one where the Machine's
// instance is, or may be: what that account does not show says nothing about this Machine.
func (l life) elsewhere() bool {
	return l.abroad() || l.another() && !l.moved()
}

// another reports whether they lead to another account than that of the Machine's attempt, which may go on there.
func (l life) another() bool {
	return l.intent.Called() && !l.intent.Over() && !l.intent.Outdated(l.m) && l.cloud.Account != "" && l.cloud.Account != l.intent.Account
}

// moved reports whether the instance is there all the same: another Secret has credentials for the same of the cloud's accounts,
// as after the former one was taken away.
func (l life) moved() bool {
	uid, id := machine.InstanceUID(l.m), machine.ProviderID(l.m)
	return l.another() && slices.ContainsFunc(l.cloud.Found, func(in provider.Instance) bool {
		return !in.Child && in.UID == uid && (id == "" || machine.SameID(in.ProviderID, id))
	})
}

// readdressed returns an intent of the account where the instance was found.
func (l life) readdressed(i machine.Intent) machine.Intent {
	i.Account = l.cloud.Account
	i.Token = machine.Token(l.m.UID, i.Attempt, i.Account)
	return i
}

// abroad reports whether the credentials lead to another of the cloud's accounts than on record, though nobody changed the
// providerSpec: somebody changed the Secret. What is found there all the same has moved with them. An attempt without an instance, whose
// providerSpec people led to another account since, is for another to judge.
func (l life) abroad() bool {
	i, was := l.intent, l.m.Annotations[machine.AnnotationCloudAccount]
	if was == "" || l.cloud.Owner == "" || machine.SameOwner(was, l.cloud.Owner) || l.in != nil || l.former != nil {
		return false
	}
	return machine.ProviderID(l.m) != "" || unrecorded(l.Snapshot, l.m) || i.Called() && (!i.Over() || len(i.Progress) > 0) && i.Account == l.cloud.Account
}

// owned notes on next in which of the cloud's accounts its instance is, or will be; nothing where the cloud cannot tell.
func (l life) owned(next *machine.Machine) {
	if l.cloud.Owner == "" {
		delete(next.Annotations, machine.AnnotationCloudAccount)
		return
	}
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, machine.AnnotationCloudAccount, l.cloud.Owner)
}

// misled says so; nothing else happens until the providerSpec, or the Secret, leads back.
func (l life) misled() plan.Sequence {
	if l.abroad() {
		return l.misledBySecret()
	}
	message := fmt.Sprintf("spec.providerSpec: leads to account %s, but the instance is in %s", l.cloud.Account, l.intent.Account)
	next := l.m.DeepCopy()
	reason := reasonUnsupported
	next.Status.ErrorReason, next.Status.ErrorMessage = &reason, &message
	l.set(next, unknown(message))
	seq := l.status(next, phase(l.m), string(reason))
	seq.Notes = append(seq.Notes, l.warning("FailedUpdate", message))
	return seq
}

// misledBySecret says so in the condition, of which a scan writes a few at a time: all Machines of the Secret have it.
func (l life) misledBySecret() plan.Sequence {
	if l.Request.Scan() && !l.turn() {
		return plan.Sequence{}
	}
	message := fmt.Sprintf("the credentials lead to account %s of the cloud, but the instance is in account %s: give the Secret credentials of that one, "+
		"or, where it is gone for good, take annotation %s off", l.cloud.Owner, l.m.Annotations[machine.AnnotationCloudAccount], machine.AnnotationCloudAccount)
	next := l.m.DeepCopy()
	l.set(next, unknown(message))
	seq := l.status(next, phase(l.m), message)
	seq.Notes = append(seq.Notes, l.warning("FailedUpdate", message))
	return seq
}
