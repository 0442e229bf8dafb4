// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Which Node is which Machine's, while no link says so, is one rule for everybody (SPEC B5, B62, B63, S87): whoever thinks that a
// Machine has no Node gives up, or removes undrained, what Pods run on.

// A fit is how well a Node fits a Machine, by what both say of themselves.
type fit int

const (
	misfit     fit = iota
	byFirst        // the Machine's first internal address is one of the Node's (B62)
	byAddress      // the Node's first internal address is one of the Machine's (S87)
	byInstance     // both name the same instance (B5)
)

// fitOf returns how well a Node fits who has an instance, "" if none is known, at such addresses. Addresses say nothing where
// both name an instance: they are given again.
func fitOf(providerID string, addresses []corev1.NodeAddress, n *corev1.Node) fit {
	switch {
	case providerID != "" && n.Spec.ProviderID != "":
		if SameID(providerID, n.Spec.ProviderID) {
			return byInstance
		}
	case among(firstIP(said(n)), addresses):
		return byAddress
	case among(firstIP(addresses), said(n)):
		return byFirst
	}
	return misfit
}

// Fits reports whether n may be m's Node, by the instance or the internal address that both name.
func Fits(m *Machine, n *corev1.Node) bool { return fitsBy(m, n) > misfit }

// RunsOn reports whether n may be the Node of an instance that has this providerID, "" if it has none, and these addresses.
func RunsOn(providerID string, addresses []corev1.NodeAddress, n *corev1.Node) bool {
	return fitOf(providerID, addresses, n) > misfit
}

// fitsBy returns how well n fits m. By an address alone no Node fits a Machine whose instance was lost before n was created, unless
// m is linked to that Node, or to one of its name, which may have registered anew (R-B32): addresses are given again, and nobody else
// may have it yet.
func fitsBy(m *Machine, n *corev1.Node) fit {
	how, ref := fitOf(ProviderID(m), m.Status.Addresses, n), m.Status.NodeRef
	if how == misfit || how == byInstance || ref != nil && ref.Name == n.Name {
		return how
	}
	if lost := LostAt(m); lost != nil && n.CreationTimestamp.After(lost.Time) {
		return misfit
	}
	return how
}

// OtherInstance reports whether m and n name different instances (B5).
func OtherInstance(m *Machine, n *corev1.Node) bool {
	return ProviderID(m) != "" && n.Spec.ProviderID != "" && !SameInstance(m, n)
}

// Bears reports whether n has the name that m knows its Node by, or its instance where it never had one, and nothing says that it is of
// another instance. A name alone links nobody, but it speaks against an address alone: hosts that come back exchange addresses, and what a
// cloud once saw of one is not renewed.
func Bears(m *Machine, n *corev1.Node) bool {
	return slices.Contains(namesOf(m), n.Name) && !OtherInstance(m, n) && LostAt(m) == nil
}

// ClaimedByAnother reports whether n is another Machine's than m: it is linked to that one, or fits that one better, or as well
// and that one lives, or it has that one's name, and m only its address. Whoever copies a Machine copies the id of its instance with it
// (R-S3), and addresses are given again.
func ClaimedByAnother(m *Machine, n *corev1.Node, all []*Machine) bool {
	mine := fitsBy(m, n)
	return slices.ContainsFunc(all, func(o *Machine) bool {
		if o.UID == m.UID {
			return false
		}
		theirs := fitsBy(o, n)
		if mine == byInstance && theirs == byInstance && gaveUp(m) != gaveUp(o) {
			return gaveUp(m)
		}
		if mine > misfit && mine < byInstance && Bears(o, n) && !Bears(m, n) {
			return true
		}
		return IsNodeOf(o, n) || theirs > mine || theirs == mine && theirs > misfit && o.DeletionTimestamp == nil
	})
}

// FittingNode returns the Node that fits m best, rather one that is Ready, of those that none of all the Machines claims; or nil.
func FittingNode(m *Machine, nodes []*corev1.Node, all []*Machine) *corev1.Node {
	var found *corev1.Node
	for _, n := range nodes {
		if better(m, n, found) && !ClaimedByAnother(m, n, all) {
			found = n
		}
	}
	return found
}

// better reports whether n fits m better than another Node does, nil if there is none, or as well and only n is Ready.
func better(m *Machine, n, than *corev1.Node) bool {
	how, best := fitsBy(m, n), misfit
	if than != nil {
		best = fitsBy(m, than)
	}
	return how > best || how == best && how > misfit && NodeReady(n) && !NodeReady(than)
}

// Index finds Machines by what a Node says of itself.
type Index struct {
	byID   map[InstanceID][]*Machine
	byIP   map[string][]*Machine
	byNode map[types.UID][]*Machine // those that are linked
	byName map[string][]*Machine    // those that know their Node, or their instance, by it
}

// IndexOf returns the index of all these Machines.
func IndexOf(all []*Machine) Index {
	ix := Index{
		byID: make(map[InstanceID][]*Machine, len(all)), byIP: make(map[string][]*Machine, len(all)),
		byNode: make(map[types.UID][]*Machine, len(all)), byName: make(map[string][]*Machine, len(all)),
	}
	for _, m := range all {
		if id := ProviderID(m); id != "" {
			ix.byID[InstanceOf(id)] = append(ix.byID[InstanceOf(id)], m)
		}
		if ref := m.Status.NodeRef; ref != nil {
			ix.byNode[ref.UID] = append(ix.byNode[ref.UID], m)
		}
		for _, name := range namesOf(m) {
			ix.byName[name] = append(ix.byName[name], m)
		}
		for _, a := range m.Status.Addresses {
			if at := ix.byIP[a.Address]; internal(a) && (len(at) == 0 || at[len(at)-1] != m) {
				ix.byIP[a.Address] = append(at, m)
			}
		}
	}
	return ix
}

// Of returns the Machines that n fits best: those that record its instance; if there are none, those that have its first
// internal address (S87); if there are none, those whose first internal address it has (B62). Addresses are given again, before the
// Machine that had one is gone: see apart. Who is linked to n keeps it from whom it fits by an address alone: that a kubelet tells. Where an
// address speaks for some, and the name of n for others, they are all returned: nobody guesses (B63).
func (ix Index) Of(n *corev1.Node) []*Machine {
	var found []*Machine
	best := misfit
	consider := func(all []*Machine) {
		for _, m := range all {
			switch how := fitsBy(m, n); {
			case how > best:
				found, best = []*Machine{m}, how
			case how == best && how > misfit && !slices.Contains(found, m):
				found = append(found, m)
			}
		}
	}
	consider(ix.byID[InstanceOf(n.Spec.ProviderID)])
	for _, a := range said(n) {
		if best < byInstance && internal(a) {
			consider(ix.byIP[a.Address])
		}
	}
	if best == byInstance {
		return unlessLost(found)
	}
	others := func(m *Machine) bool { return !IsNodeOf(m, n) || OtherInstance(m, n) || LostAt(m) != nil }
	if linked := slices.DeleteFunc(slices.Clone(ix.byNode[n.UID]), others); len(linked) > 0 && len(found) > 0 {
		found = linked
	} else if borne := func(m *Machine) bool { return Bears(m, n) }; len(found) > 0 && !slices.ContainsFunc(found, borne) {
		found = append(found, slices.DeleteFunc(slices.Clone(ix.byName[n.Name]), func(m *Machine) bool { return !borne(m) })...)
	}
	return apart(found, n)
}

// unlessLost leaves out who gave the instance up, where others record it too.
func unlessLost(found []*Machine) []*Machine {
	if others := slices.DeleteFunc(slices.Clone(found), gaveUp); len(others) > 0 {
		return others
	}
	return found
}

// gaveUp reports whether the instance of m was given up before it had a Node, as of a backup from before that was freed: a host is given
// again, and has its id for whom it is given to.
func gaveUp(m *Machine) bool { return LostAt(m) != nil && m.Status.NodeRef == nil }

// Denied returns the Machines of which n has the name and an address, while by what both record it is another instance (B5): a name and an
// address are given again, or somebody writes the instance's id in a way that InstanceOf does not know. Who has another Node is left out.
func (ix Index) Denied(n *corev1.Node) (all []*Machine) {
	for _, a := range said(n) {
		for _, m := range ix.byIP[a.Address] {
			ref := m.Status.NodeRef
			if internal(a) && OtherInstance(m, n) && called(m, n.Name) && (ref == nil || ref.Name == n.Name) && !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	return all
}

// called reports whether m's instance has this name, its own or one that its cloud gave it.
func called(m *Machine, name string) bool { return Called(m.Name, m.Status.Addresses, name) }

// Called reports whether name is an instance's own, or among its addresses, as a cloud names what it made.
func Called(own string, addresses []corev1.NodeAddress, name string) bool {
	return own == name || slices.ContainsFunc(addresses, func(a corev1.NodeAddress) bool { return isName(a) && a.Address == name })
}

// namesOf returns every name that a Node may bear for m, each once: see [Bears]. Its own name is one where no cloud tells another.
func namesOf(m *Machine) (all []string) {
	if ref := m.Status.NodeRef; ref != nil {
		return []string{ref.Name}
	}
	for _, a := range m.Status.Addresses {
		if isName(a) && !slices.Contains(all, a.Address) {
			all = append(all, a.Address)
		}
	}
	if len(all) == 0 {
		return []string{m.Name}
	}
	return all
}

// apart returns those of several Machines at n's address that n can be of. One that is being deleted has for itself what it is linked
// to. It stands back behind one that lives where it has another Node and n came after its deletion; one that never was linked does
// not, as its Node may join late (R-B31), nor where n has the name of its own, which may have registered anew (R-B32).
func apart(all []*Machine, n *corev1.Node) []*Machine {
	deleted := func(m *Machine) bool { return m.DeletionTimestamp != nil }
	if i := slices.IndexFunc(all, func(m *Machine) bool { return deleted(m) && IsNodeOf(m, n) }); i >= 0 {
		return all[i : i+1]
	}
	rest := slices.DeleteFunc(slices.Clone(all), func(m *Machine) bool {
		ref := m.Status.NodeRef
		return deleted(m) && ref != nil && ref.Name != n.Name && n.CreationTimestamp.After(m.DeletionTimestamp.Time)
	})
	if slices.ContainsFunc(rest, func(m *Machine) bool { return !deleted(m) }) {
		return rest
	}
	return all
}

// LostAt returns since when the instance of a Failed Machine is missing, or nil (B18, B21). One that was deleted since still shows what
// it failed of; without that nobody had given the instance up, and its Node may join late (R-B31).
func LostAt(m *Machine) *metav1.Time {
	failed := Phase(m) == PhaseFailed || m.DeletionTimestamp != nil && m.Status.ErrorMessage != nil
	c := FindCondition(m.Status.Conditions, ConditionInstanceExists)
	if !failed || c == nil || c.Status != corev1.ConditionFalse || c.Reason != machinev1beta1.InstanceMissingReason {
		return nil
	}
	return &c.LastTransitionTime
}

// NodesOf returns the Nodes that each Machine fits.
func (ix Index) NodesOf(all []*corev1.Node) map[*Machine][]*corev1.Node {
	nodes := map[*Machine][]*corev1.Node{}
	for _, n := range all {
		for _, m := range ix.Of(n) {
			nodes[m] = append(nodes[m], n)
		}
	}
	return nodes
}

// Candidates are the Nodes that may be one Machine's.
type Candidates struct {
	Nodes  []*corev1.Node
	Best   *corev1.Node // the linked one, else what FittingNode returns
	shared bool         // with another Machine that fits as well
}

// Doubted returns a Node that may be the Machine's, though nobody knows, and that is not known to be silent: what runs on it is not nobody's. Or nil.
func (c Candidates) Doubted() *corev1.Node {
	if c.Best != nil || !c.shared {
		return nil
	}
	if i := slices.IndexFunc(c.Nodes, func(n *corev1.Node) bool { return !NodeUnreachable(n) }); i >= 0 {
		return c.Nodes[i]
	}
	return nil
}

// Only returns the Node that nobody doubts, or nil.
func (c Candidates) Only() *corev1.Node {
	if c.shared || len(c.Nodes) != 1 {
		return nil
	}
	return c.Nodes[0]
}

// CandidatesOf returns, for each Machine that has any, the Node that it is linked to; where that is not there, those that are
// linked to nobody and that it fits best. A Machine that is being deleted stands back behind one that lives and fits as well.
func CandidatesOf(machines []*Machine, nodes []*corev1.Node) map[*Machine]Candidates {
	byName := make(map[string]*corev1.Node, len(nodes))
	for _, n := range nodes {
		byName[n.Name] = n
	}
	all, linked := make(map[*Machine]Candidates, len(machines)), make(map[*corev1.Node]bool, len(nodes))
	for _, m := range machines {
		if m.Status.NodeRef == nil {
			continue
		}
		if n := byName[m.Status.NodeRef.Name]; IsNodeOf(m, n) {
			all[m], linked[n] = Candidates{Nodes: []*corev1.Node{n}, Best: n}, true
		}
	}
	if len(all) == len(machines) { // as nearly always
		return all
	}
	ix := IndexOf(machines)
	for _, n := range nodes {
		if linked[n] {
			continue
		}
		fit := ix.Of(n)
		deleted := func(m *Machine) bool { return m.DeletionTimestamp != nil }
		if living := slices.DeleteFunc(slices.Clone(fit), deleted); len(living) > 0 && !contested(fit, n) {
			fit = living
		}
		for _, m := range fit {
			c := all[m]
			if IsNodeOf(m, c.Best) {
				continue
			}
			if better(m, n, c.Best) && !ClaimedByAnother(m, n, fit) {
				c.Best = n
			}
			all[m] = Candidates{append(c.Nodes, n), c.Best, c.shared || len(fit) > 1}
		}
	}
	return all
}

// contested reports whether the name of n speaks for some of the Machines that it may be of, and its address alone for others.
func contested(fit []*Machine, n *corev1.Node) bool {
	bears := func(m *Machine) bool { return Bears(m, n) }
	other := func(m *Machine) bool { return fitsBy(m, n) < byInstance && !bears(m) }
	return slices.ContainsFunc(fit, bears) && slices.ContainsFunc(fit, other)
}

// mostAddresses is how many addresses of a Node are looked at: its kubelet says what it likes, and could say those of all Machines.
const mostAddresses = 256

// said returns the addresses that n says it has, the first of them if they are very many.
func said(n *corev1.Node) []corev1.NodeAddress {
	return n.Status.Addresses[:min(len(n.Status.Addresses), mostAddresses)]
}

func isName(a corev1.NodeAddress) bool {
	return (a.Type == corev1.NodeHostName || a.Type == corev1.NodeInternalDNS) && a.Address != ""
}

func internal(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP && a.Address != "" }

func firstIP(addresses []corev1.NodeAddress) string {
	if i := slices.IndexFunc(addresses, internal); i >= 0 {
		return addresses[i].Address
	}
	return ""
}

func among(ip string, addresses []corev1.NodeAddress) bool {
	return ip != "" && slices.ContainsFunc(addresses, func(a corev1.NodeAddress) bool { return internal(a) && a.Address == ip })
}
