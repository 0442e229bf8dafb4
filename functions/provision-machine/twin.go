// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// twins returns the instances that carry the Machine's UID beside mine, which is the recorded one.
func (l life) twins(mine provider.Instance) []provider.Instance {
	var all []provider.Instance
	for _, in := range l.cloud.Found {
		if !in.Child && in.ID != mine.ID && in.UID == l.m.UID && in.State != provider.StateDeleting {
			all = append(all, in)
		}
	}
	return all
}

// doubled reports whether there are such: then their Nodes are looked at.
func (l life) doubled() bool {
	return l.m.DeletionTimestamp == nil && l.in != nil && slices.ContainsFunc(l.twins(*l.in), func(in provider.Instance) bool { return !l.leftBehind(in) })
}

// leftBehind reports whether in was the Machine's before people led spec.providerID to another.
func (l life) leftBehind(in provider.Instance) bool {
	return l.intent.LeftBehind(l.m, in.ID, in.ProviderID, in.UID)
}

// twin removes such an instance, one in each look: what a lost answer left behind (2b.7). One that a Node runs on is told of,
// and kept: somebody copied an instance with its tags, and nobody drains what is no Machine's (R-S7, 2b.10). So is one that people led the
// Machine away from: they may need what is on it.
func (l life) twin(mine provider.Instance) plan.Sequence {
	var seq plan.Sequence
	tell := func(format string, args ...any) {
		seq.Notes = append(seq.Notes, l.warning("DuplicateInstance", fmt.Sprintf(format, args...)))
	}
	for _, in := range l.twins(mine) {
		if l.leftBehind(in) {
			tell("instance %s carries this machine's tag too, and was its own before spec.providerID was changed to that of %s: it is left alone as long as the machine is there", in.ID, mine.ID)
			continue
		}
		a := plan.DeleteInstance{Account: l.cloud.Account, Cluster: l.cloud.Cluster, Why: "duplicate of " + mine.ID}
		a.Ref = provider.Ref{Name: l.m.Name, ID: in.ID}
		o, tried := l.Outcome(a)
		n := l.inUseBy(in)
		switch {
		case tried && !o.Result.Achieves(a):
			tell("instance %s, a duplicate of %s, is not removed: %s", in.ID, mine.ID, cmp.Or(o.Message, o.Code.String()))
		case tried:
		case n != nil:
			tell("instance %s carries this machine's tag too, and is no duplicate of %s to be removed: node %s runs on it", in.ID, mine.ID, n.Name)
		case len(seq.Do) == 0:
			seq.Do = []plan.Action{a}
			tell("instance %s is removed: it carries this machine's tag too, and %s is on record", in.ID, mine.ID)
		}
	}
	return seq
}

// aliveOn returns the Node that runs on an instance, or nil.
func (l life) aliveOn(in provider.Instance) *corev1.Node {
	return l.nodeOn(in, machine.NodeReady)
}

// inUseBy returns the Node that runs on an instance, or may in a moment, or nil.
func (l life) inUseBy(in provider.Instance) *corev1.Node {
	return l.nodeOn(in, func(n *corev1.Node) bool { return machine.NodeReady(n) || machine.NodeMayRestart(n, l.Now) })
}

func (l life) nodeOn(in provider.Instance, runs func(*corev1.Node) bool) *corev1.Node {
	for _, n := range l.Nodes {
		if machine.RunsOn(in.ProviderID, in.Addresses, n) && runs(n) {
			return n
		}
	}
	return nil
}
