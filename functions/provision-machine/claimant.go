// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// claimant returns another Machine that records the same instance, where nothing proves that it is this one's: the
// instance carries no tag of it, as an installer's does not. Whoever copies a Machine copies the id of its instance with it,
// and a cloud that is asked to remove what carries no tag goes by that id alone (R-S3). Of several that are deleted the one
// with the best claim removes it, once it is drained; while one lives nobody does.
func (l life) claimant() *machine.Machine {
	if !l.unproved() || l.tagged() {
		return nil
	}
	for _, o := range l.claims.to(machine.ProviderID(l.m), l.Machines) {
		if o.UID != l.m.UID && machine.SameID(machine.ProviderID(o), machine.ProviderID(l.m)) && (o.DeletionTimestamp == nil || l.before(o)) {
			return o
		}
	}
	return nil
}

// claims are the Machines of one decision by the instance that they record, once somebody asks: thousands of which no record proves whose
// their instances are, as of a cluster that another system served, may go at once.
type claims struct {
	by map[machine.InstanceID][]*machine.Machine
}

// to returns those of all that may record this instance.
func (c *claims) to(providerID string, all []*machine.Machine) []*machine.Machine {
	if c == nil {
		return all
	}
	if c.by == nil {
		c.by = make(map[machine.InstanceID][]*machine.Machine, len(all))
		for _, m := range all {
			id := machine.InstanceOf(machine.ProviderID(m))
			c.by[id] = append(c.by[id], m)
		}
	}
	return c.by[machine.InstanceOf(providerID)]
}

// passedOn reports whether n runs for another Machine by now, as that one's record proves, or the cloud says where a backup had no record
// of it: a host that was freed has its id with whom it is given to next, and its kubelet finds the Node that it had. Whose instance was
// lost, or is gone, had the host before. A Node that names no instance is also left to another one that is linked to it, and has an instance of
// its own: it is Ready without ours.
func (l life) passedOn(n *corev1.Node) bool {
	return machine.NodeReady(n) && slices.ContainsFunc(l.Machines, func(o *machine.Machine) bool {
		if o.UID == l.m.UID || !machine.HasFinalizer(o) || machine.LostAt(o) != nil {
			return false
		}
		apart := machine.ProviderID(o) != "" && !machine.SameID(machine.ProviderID(o), machine.ProviderID(l.m)) && o.DeletionTimestamp == nil
		return machine.SameInstance(o, n) && l.madeFor(o) || machine.ProviderID(o) == "" && l.shownAt(o, n) ||
			apart && n.Spec.ProviderID == "" && machine.IsNodeOf(o, n)
	})
}

// madeFor reports whether o's record says that its instance was made for it, or cannot be read, as one that a newer version wrote: then a Node is
// as good as proved to be o's, since to delete it wrongly takes its Pods, and to leave it wrongly takes a word of people.
func (l life) madeFor(o *machine.Machine) bool {
	i, err := intentOf(l.Snapshot, o)
	return err != nil || i.Made(o)
}

// shownAt reports whether the cloud shows an instance that carries the tag of o where n runs.
func (l life) shownAt(o *machine.Machine, n *corev1.Node) bool {
	return slices.ContainsFunc(l.Clouds[o.UID].Found, func(in provider.Instance) bool {
		return in.UID == o.UID && !in.Child && machine.SameID(in.ProviderID, n.Spec.ProviderID)
	})
}

// unproved reports whether no record says that the recorded instance was made for the Machine: then the others are read
// before it is removed.
func (l life) unproved() bool { return machine.ProviderID(l.m) != "" && !l.intent.Made(l.m) }

// tagged reports whether the cloud shows the recorded instance with the Machine's own tag.
func (l life) tagged() bool {
	for _, in := range l.cloud.Found {
		if in.UID == l.m.UID && machine.SameID(in.ProviderID, machine.ProviderID(l.m)) && !in.Child {
			return true
		}
	}
	return false
}

// claimQuery is what has to be known before an instance that is not proved to be the Machine's is removed.
var claimQuery = snapshot.All("Machine")

// ownRef names to a cloud what carries the Machine's own tag, and nothing that it merely records.
func (l life) ownRef() provider.Ref { return provider.Ref{UID: l.m.UID, Name: l.m.Name} }

// ended returns what is told when the finalizer goes.
func (l life) ended() []plan.Note {
	switch o := l.claimant(); {
	case o != nil:
		return []plan.Note{l.warning("InstanceKept", fmt.Sprintf("instance %s stays: machine %s/%s records it too", machine.ProviderID(l.m), o.Namespace, o.Name))}
	case l.former != nil:
		return []plan.Note{l.warning("InstanceKept", fmt.Sprintf("instance %s stays: it carries the tag of a machine with UID %s", machine.ProviderID(l.m), l.former.UID))}
	case l.intent.Called(), machine.ProviderID(l.m) != "":
		return []plan.Note{l.normal("Delete", l.deleted())}
	}
	return nil
}

// cordoned tells of a Node that stays, as it runs for another Machine, with the cordon of this one's drain: nothing on it tells that from a cordon of
// people, so nobody but them takes it back.
func (l life) cordoned(n *corev1.Node) []plan.Note {
	if !n.Spec.Unschedulable || n.DeletionTimestamp != nil {
		return nil
	}
	return []plan.Note{l.warning("NodeKept", fmt.Sprintf("node %s stays, as it is another machine's too, and is still cordoned, as for the drain of this one: unless somebody else wants that, kubectl uncordon it", n.Name))}
}

// deleted says what became of what was made for the Machine: of a call that was refused, or not answered, nobody knows that it made anything,
// and an instance that was missing already is not what was deleted.
func (l life) deleted() string {
	switch {
	case machine.ProviderID(l.m) == "":
		return "Nothing is left of what was asked for " + l.m.Name
	case machine.LostAt(l.m) != nil:
		return "Nothing is left of " + l.instance() + ", which was missing before"
	}
	return "Deleted " + l.instance()
}
