// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// An instance that its attempt has yet to finish may run already, be a Node, and have Pods, as one on EC2 that waits for its load balancer.
// It is not recorded before the attempt is over, which may have to make another. But its Machine says where it is and what it waits
// for, so that its Node is approved and linked (B83), and it never goes undrained (2e).

// unfinished reports whether in is what an attempt has not come to its end with. What the cloud found no room for is nobody's instance, however
// its attempt ended: where it could not be removed it is what that left. One of another attempt may have run, as where a backup says less.
func (l life) unfinished(in provider.Instance) bool {
	roomless := in.State == provider.StateFailed && in.Code == provider.Exhausted
	return in.State == provider.StateIncomplete || roomless && l.intent != nil && in.Token == l.intent.Token && len(l.intent.Progress) > 0
}

// begun returns the instance that the cloud shows of an attempt and that calls are still to be made for, or nil.
func (l life) begun() *provider.Instance {
	if machine.ProviderID(l.m) != "" {
		return nil
	}
	var mine []*provider.Instance
	for k := range l.cloud.Found {
		if in := &l.cloud.Found[k]; !in.Child && in.ProviderID != "" && in.State == provider.StateIncomplete {
			mine = append(mine, in)
		}
	}
	return l.smallest(mine)
}

// onNetwork returns it if it has an address of its own already: before that nobody can know it as a Node.
func (l life) onNetwork() *provider.Instance {
	in := l.begun()
	if in == nil || !slices.ContainsFunc(in.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP }) {
		return nil
	}
	return in
}

// joins reports whether it is a Node, or may be one whenever its kubelet is up: whoever removes it without a drain may end Pods.
func (l life) joins() bool {
	return l.onNetwork() != nil || l.m.Status.NodeRef != nil && l.begun() != nil
}

// taken reports whether the cloud has refused to finish it for good, or did before it could be seen: it goes with its Machine alone, drained, and
// until then the same attempt goes on. One that was given up because the spec was edited, after no refusal that counts, goes while it is no Node.
func (l life) taken() bool {
	return l.intent.Over() && l.reached() && l.joins() && (l.intent.Failures > 0 && l.intent.Code != "" || l.m.Status.NodeRef != nil)
}

// announce shows where it is, and takes that back when it is there no more: an address may be another's by then.
func (l life) announce() plan.Sequence {
	next := new(*l.m) // no deeper: what follows replaces, and writes into nothing
	in := l.onNetwork()
	switch {
	case in != nil:
		l.shows(next, *in)
		return l.status(next, phase(l.m), "instance "+in.ID+" is not complete")
	case len(l.m.Status.Addresses) > 0:
		next.Status.Addresses = nil
		l.set(next, notThere())
		return l.status(next, phase(l.m), "the instance of the attempt is gone")
	}
	return plan.Sequence{}
}

// stuck says what an instance that was announced waits for, when the answer to the call of this invocation was no clear one: once, however
// the cloud words it.
func (l life) stuck(o plan.Outcome) plan.Sequence {
	told := l.m.Status.ErrorMessage
	if machine.ProviderID(l.m) != "" || len(l.m.Status.Addresses) == 0 || o.Result != plan.Failed || told != nil && plan.Gist(*told) == plan.Gist(o.Message) {
		return plan.Sequence{}
	}
	next := l.m.DeepCopy()
	reason := reasonCreate
	next.Status.ErrorReason, next.Status.ErrorMessage = &reason, &o.Message
	l.set(next, notCreated(o.Message))
	return l.status(next, phase(l.m), "the instance is not complete: "+o.Message)
}

// open reports whether what the attempt of i made may be there, and nobody has recorded it.
func open(i *machine.Intent) bool {
	return i.Unresolved() || i != nil && i.Outcome != machine.OutcomeCreated && len(i.Progress) > 0
}
