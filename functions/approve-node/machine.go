// SPDX-License-Identifier: Apache-2.0

package approvenode

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// A Node asks for its first certificate after its Machine was made, and soon after its instance was (B80). The clocks may
	// differ a little where the two come from another cluster's storage.
	earliest = -10 * time.Second
	latest   = 2 * time.Hour
	// linkedLately is how long a Machine's events are looked at after its last change: a kubelet asks at once.
	linkedLately = 10 * time.Minute
	// Hosts that nobody gave names are all called alike: of more than manyAlike it is not asked for each request which of them
	// await a Node, and fewMachines are named.
	manyAlike   = 100
	fewMachines = 5
)

// known are the Machines by what a Node says of itself.
type known struct {
	snapshot.Snapshot
	byDNS, byNode map[string][]*machine.Machine
	serving       map[string][]*machine.Machine // those that have a Node, by their addresses and names
}

func indexOf(s snapshot.Snapshot) known {
	k := known{s, map[string][]*machine.Machine{}, map[string][]*machine.Machine{}, map[string][]*machine.Machine{}}
	for _, m := range s.Machines {
		for dns := range internalNames(m) {
			k.byDNS[dns] = append(k.byDNS[dns], m)
		}
		if ref := m.Status.NodeRef; ref != nil {
			k.byNode[ref.Name] = append(k.byNode[ref.Name], m)
			if !lives(m) { // its addresses are given again
				continue
			}
			for _, a := range m.Status.Addresses {
				at := plain(a.Address)
				k.serving[at] = append(k.serving[at], m)
			}
		}
	}
	return k
}

// another returns a Machine beside m that serves under an address or name, or nil.
func (k known) another(m *machine.Machine, address string) *machine.Machine {
	all := k.serving[plain(address)]
	if i := slices.IndexFunc(all, func(o *machine.Machine) bool { return o != m }); i >= 0 {
		return all[i]
	}
	return nil
}

// internalNames returns the names that the provider gave to m's instance.
func internalNames(m *machine.Machine) map[string]bool {
	names := map[string]bool{}
	for _, a := range m.Status.Addresses {
		if a.Type == corev1.NodeInternalDNS {
			names[a.Address] = true
		}
	}
	return names
}

// awaited reports whether a request may wait for what just became known of m: its name, or its Node. What settled
// earlier is found by the sweep.
func awaited(m *machine.Machine, now time.Time) bool {
	switch {
	case m.DeletionTimestamp != nil:
		return false
	case m.Status.NodeRef == nil:
		return len(internalNames(m)) > 0 && machine.Phase(m) != machine.PhaseFailed && !now.After(until(m))
	}
	return m.Status.LastUpdated != nil && now.Sub(m.Status.LastUpdated.Time) < linkedLately
}

// clientOf returns the Machine that a new Node is of: the only one that its provider says has the Node's name and whose
// Node may ask now (B80); a cloud gives a name again, and no other that lives may be linked to a Node of it. It says why
// the Node may not join; then the Machine is the one to tell it of, if there is one.
func clientOf(k known, c claim) (m *machine.Machine, why string) {
	fit := k.byDNS[c.node]
	if len(fit) > manyAlike {
		return single(fit, "has the internal DNS name "+c.node)
	}
	if awaiting := slices.DeleteFunc(slices.Clone(fit), func(m *machine.Machine) bool { return c.objection(m) != "" }); len(awaiting) > 0 {
		fit = awaiting
	}
	m, why = single(fit, "has the internal DNS name "+c.node)
	if m == nil {
		return nil, why
	}
	switch why = c.objection(m); {
	case why != "":
	case k.Node(c.node) != nil:
		why = "a node of that name exists"
	case slices.ContainsFunc(k.byNode[c.node], lives):
		why = "another machine is linked to a node of that name, which is not there now"
	}
	return m, why
}

// lives reports whether the Node of m may come back, under its name and addresses, which are nobody else's until then: while
// its host is power-cycled, say. Machines of several namespaces may be called alike, and a tenant's cloud calls an instance
// as it likes.
func lives(m *machine.Machine) bool { return m.DeletionTimestamp == nil && machine.LostAt(m) == nil }

// objection says why no Node of m may join with such a request, if so.
func (c claim) objection(m *machine.Machine) string {
	from, made := m.CreationTimestamp.Add(earliest), c.CreationTimestamp.Time
	switch {
	case m.DeletionTimestamp != nil:
		return "the machine is being deleted"
	case m.Status.NodeRef != nil:
		return "the machine has its node already"
	case machine.Phase(m) == machine.PhaseFailed:
		return "the machine is Failed, which is final"
	case made.Before(from), made.After(until(m)):
		return fmt.Sprintf("it was made at %s, and the machine's node may ask from %s to %s",
			machine.Stamp(made), machine.Stamp(from), machine.Stamp(until(m)))
	}
	return ""
}

// until returns when it is too late for the Node of m to ask for the first time. A Machine may wait for hours until there is
// room for its instance: what counts is when that was last asked for, which provision-machine alone writes.
func until(m *machine.Machine) time.Time {
	begun := m.CreationTimestamp.Time
	if i, _ := machine.ParseIntent(m); i.Own(m) && i.StartedAt.After(begun) {
		begun = i.StartedAt.Time
	}
	return begun.Add(latest)
}

// servingOf returns the Machine that a Node is linked to, if that has all the addresses that the Node wants to serve
// under, and no other Machine with a Node has one of them (B81).
func servingOf(k known, c claim) (m *machine.Machine, why string) {
	n := k.Node(c.node)
	if n == nil {
		return nil, "there is no such node"
	}
	linked := slices.DeleteFunc(slices.Clone(k.byNode[c.node]), func(m *machine.Machine) bool { return !machine.IsNodeOf(m, n) })
	m, why = single(linked, "is linked to it")
	if m == nil {
		return nil, why
	}
	for _, dns := range c.DNSNames {
		if !slices.ContainsFunc(m.Status.Addresses, func(a corev1.NodeAddress) bool { return named(a) && a.Address == dns }) {
			return m, fmt.Sprintf("%q is no name of the machine", dns)
		}
	}
	for _, ip := range c.IPAddresses {
		if !slices.ContainsFunc(m.Status.Addresses, func(a corev1.NodeAddress) bool {
			known := slices.Clone(ip)
			return !named(a) && known.UnmarshalText([]byte(a.Address)) == nil && known.Equal(ip)
		}) {
			return m, fmt.Sprintf("%v is no address of the machine", ip)
		}
	}
	for _, address := range c.addresses() { // on vSphere a guest tells its own, other clouds may be a tenant's
		if ofServices(address) {
			return m, fmt.Sprintf("%q is what a Service is called, and no node", address)
		}
		if o := k.another(m, address); o != nil {
			return m, fmt.Sprintf("%s is an address of machine %s/%s too", address, o.Namespace, o.Name)
		}
	}
	return m, ""
}

// single returns the only one of the Machines that fit.
func single(fit []*machine.Machine, what string) (*machine.Machine, string) {
	switch len(fit) {
	case 0:
		return nil, "no machine " + what
	case 1:
		return fit[0], ""
	}
	var names []string
	for _, m := range fit {
		names = append(names, m.Name)
	}
	return nil, "more than one machine " + what + ": " + plan.Few(names, fewMachines)
}

// named reports whether an address is a name.
func named(a corev1.NodeAddress) bool {
	return a.Type == corev1.NodeHostName || a.Type == corev1.NodeInternalDNS || a.Type == corev1.NodeExternalDNS
}
