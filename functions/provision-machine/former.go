// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A Machine that is made anew from its manifest, as a backup is restored, has another UID than the one in the tag of the
// instance that it records. It takes that instance over, openly, when the Machine of the tag is gone, nobody else records
// the instance, and it is a Node of this cluster: a cluster that was copied leaves the instances of the other alone, though Nodes
// were copied with it.

// foreignTag returns the recorded instance where it carries the tag of another Machine, or nil.
func (l life) foreignTag() *provider.Instance {
	id, uid := machine.ProviderID(l.m), machine.InstanceUID(l.m)
	for k := range l.cloud.Found {
		if in := &l.cloud.Found[k]; machine.SameID(in.ProviderID, id) && !in.Child && in.UID != "" && in.UID != uid {
			return in
		}
	}
	return nil
}

// heirQueries are what has to be known before a Machine takes an instance over.
var heirQueries = []snapshot.Query{snapshot.All("Machine"), snapshot.All("Node")}

// inherit takes over the recorded instance, which carries the tag of a Machine that is gone, or says why not. It is nil
// where the instance is another Machine's: then this one's is missing.
func (l life) inherit() *plan.Sequence {
	in := l.former
	if in == nil {
		return nil
	}
	if in.UID == l.m.UID { // it took another's over since, and was led back
		return l.takeOver(*in, "", fmt.Sprintf("Took over instance %s again, which was made for it", in.ID))
	}
	for _, o := range l.Machines {
		if o.UID == in.UID || machine.SameID(machine.ProviderID(o), in.ProviderID) && l.before(o) {
			return nil
		}
	}
	if !l.hasNode(*in) {
		why := fmt.Sprintf("instance %s carries the tag of a machine with UID %s, which does not exist, and no node of this cluster is on it: it is left alone", in.ID, in.UID)
		if l.marked(*in) {
			why = fmt.Sprintf("instance %s carries the tag of a machine with UID %s, which does not exist, and the mark of another cluster, "+
				"and no node that names it and is older than %s in this cluster is Ready: it is left alone", in.ID, in.UID, provenAfter)
		}
		next := l.m.DeepCopy()
		l.set(next, unknown(why))
		seq := l.status(next, l.underWay(), "the instance may be another cluster's")
		seq.Notes = append(seq.Notes, l.warning("FailedUpdate", why))
		return &seq
	}
	return l.takeOver(*in, in.UID, fmt.Sprintf("Took over instance %s, which was made for a machine with UID %s that is gone", in.ID, in.UID))
}

// takeOver records in, with the tag that it carries if that is another's, as the Machine's.
func (l life) takeOver(in provider.Instance, tag types.UID, told string) *plan.Sequence {
	i := l.intent.Adopted(l.m, l.cloud.Account, in.ID, tag, l.Now).In(l.m, l.cloud.Cluster)
	return &plan.Sequence{
		Do:    []plan.Action{l.withIntent(i, "takes over instance "+in.ID)},
		Notes: []plan.Note{l.normal("Adopt", told)},
	}
}

// before reports whether o has the better claim to the instance that both record, which carries neither's tag: the one that
// is linked to a Node, else the older one. Who copies a Machine copies the instance's id with it, and no status.
func (l life) before(o *machine.Machine) bool {
	mine, theirs := l.m.Status.NodeRef != nil, o.Status.NodeRef != nil
	switch at := o.CreationTimestamp.Time.Compare(l.m.CreationTimestamp.Time); {
	case mine != theirs:
		return theirs
	case at != 0:
		return at < 0
	}
	return o.UID < l.m.UID
}

// provenAfter is how old, in this cluster, a Node that is Ready has to be to prove that its kubelet reports here: the node controller
// makes a copy, which has the status of the other cluster's Node, Unknown after a minute.
const provenAfter = 2 * time.Minute

// marked reports whether in carries the mark of another cluster. Where our own is not known, any is taken for another's.
func (l life) marked(in provider.Instance) bool {
	return in.ClusterUID != "" && in.ClusterUID != l.ClusterUID()
}

// hasNode reports whether a Node proves that in is this cluster's. Where in carries the mark of another, which may live, only one
// does that names it and runs here: a mere object may be a copy. Where it carries ours, one that runs here and names no instance does
// too, as where nobody writes that, if all else fits.
func (l life) hasNode(in provider.Instance) bool {
	marked := l.marked(in)
	ours := in.ClusterUID != "" && !marked
	return slices.ContainsFunc(l.Nodes, func(n *corev1.Node) bool {
		runs := machine.NodeReady(n) && l.Now.Sub(n.CreationTimestamp.Time) > provenAfter
		return machine.SameID(n.Spec.ProviderID, in.ProviderID) && (runs || !marked) || runs && ours && l.looksLike(in, n)
	})
}

// looksLike reports whether n, which names no other instance, has the name and an address of in, and is no other Machine's. One alone says
// little: a copy of a cluster has the same names, and networks apart have the same addresses.
func (l life) looksLike(in provider.Instance, n *corev1.Node) bool {
	return machine.RunsOn(in.ProviderID, in.Addresses, n) && machine.Called(in.Name, in.Addresses, n.Name) &&
		!machine.ClaimedByAnother(l.m, n, l.Machines)
}

// runningNode returns that of the Machine's Nodes which says that it runs: then no answer of a cloud that the instance is not
// there is believed. Other credentials, another project, or another cluster's id lead to a cloud that knows nothing of it.
func (l life) runningNode() *corev1.Node {
	for _, n := range l.nodes() {
		if n.DeletionTimestamp == nil && machine.NodeReady(n) {
			return n
		}
	}
	return nil
}

// doubted reports whether the cloud's word that nothing of a deleted Machine is there may be about something else: no cloud has
// accepted to remove it, the instance was missing before, or nothing says that it was made for this Machine. Whose rights were cut, or
// whose tags were taken off, is not found either while it runs.
func (l life) doubted() bool {
	return machine.ProviderID(l.m) != "" && (l.unproved() || !removed(l.m)) && l.claimant() == nil
}

// reasonRemoved stands in the condition of an instance whose removal its cloud has accepted while a Node on it was Ready: what is not found
// after that is gone. Whatever is said of the instance later takes its place.
const reasonRemoved = "InstanceRemoved"

// removed reports whether a cloud has accepted to remove the instance of m, or has shown it on its way out for long.
func removed(m *machine.Machine) bool {
	c := machine.FindCondition(m.Status.Conditions, machine.ConditionInstanceExists)
	return c != nil && c.Status == corev1.ConditionTrue && (c.Reason == reasonRemoved || c.Reason == string(reasonDelete))
}

// mayBeDoubted reports whether a Node of the instance, linked or not, may be Ready still when the cloud, which removes it, says that it is gone.
func (l life) mayBeDoubted() bool {
	switch ref := l.m.Status.NodeRef; {
	case removed(l.m):
		return false
	case ref == nil: // all Nodes are read when it is gone
		drained := machine.FindCondition(l.m.Status.Conditions, machine.ConditionDrained)
		return drained != nil && drained.Reason == machine.ReasonDrained
	default:
		n := l.Node(ref.Name)
		return n == nil || machine.NodeReady(n)
	}
}

// foreign reports whether n may be the Node of an instance that the Machine only names: no record says that it was made for it, no cloud has
// shown it, nor accepted to remove it, and n was there before the Machine. Whoever names an instance of which its namespace's credentials lead
// nowhere near is told that it is gone, as one of a control plane that an installer made.
func (l life) foreign(n *corev1.Node) bool {
	return l.unproved() && !removed(l.m) && !l.wasShown() && l.claimant() == nil && n.CreationTimestamp.Before(&l.m.CreationTimestamp)
}

// wasShown reports whether a cloud has shown the instance of the Machine where it is, by which it has addresses.
func (l life) wasShown() bool { return len(l.m.Status.Addresses) > 0 }

// mayBeKept reports whether a Node, Ready or not, would stay when the cloud, which removes its instance, says that it is gone.
func (l life) mayBeKept() bool { return slices.ContainsFunc(l.nodes(), l.foreign) }

// foreignKept tells of a Node that stays, as nobody knows that it is the Machine's.
func (l life) foreignKept(n *corev1.Node) plan.Note {
	return l.warning("NodeKept", fmt.Sprintf("node %s stays: it is older than this machine, and nothing says that instance %s was made for it. "+
		"If its host is gone, kubectl delete it; if not, kubectl uncordon it", n.Name, machine.ProviderID(l.m)))
}

// alive returns that of the Machine's Nodes which says that it runs, and for nobody else. The node controller says within a minute what has
// lost its instance.
func (l life) alive() *corev1.Node {
	if n := l.runningNode(); n != nil && !l.passedOn(n) {
		return n
	}
	return nil
}

// kept says that a Node whose instance the cloud does not know stays, with the Machine.
func (l life) kept(n *corev1.Node) plan.Sequence {
	why := fmt.Sprintf("the cloud knows no instance %s, but node %s on it is Ready: neither is removed as long as it is", machine.ProviderID(l.m), n.Name)
	next := l.m.DeepCopy()
	l.set(next, missingCondition(why))
	seq := l.status(next, machine.PhaseDeleting, why)
	seq.Notes = append(seq.Notes, l.warning("FailedDelete", why))
	return seq
}
