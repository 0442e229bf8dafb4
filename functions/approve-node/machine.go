// SPDX-License-Identifier: Apache-2.0

package approvenode

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// A Node asks for its first certificate after its Machine was made, and soon (B80). The clocks may differ a little
	// where the two come from another cluster's storage.
	earliest = -10 * time.Second
	latest   = 2 * time.Hour
)

// clientOf returns the Machine that a new Node is of: the only one that its provider says has the Node's name (B80). It
// says why the Node may not join; then the Machine is the one to tell it of, if there is one.
func clientOf(s snapshot.Snapshot, c claim) (m *machine.Machine, why string) {
	m, why = single(s, "has the internal DNS name "+c.node, func(m *machine.Machine) bool {
		return slices.Contains(m.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: c.node})
	})
	if m == nil {
		return nil, why
	}
	switch asked := c.CreationTimestamp.Sub(m.CreationTimestamp.Time); {
	case m.DeletionTimestamp != nil:
		return m, "the machine is being deleted"
	case m.Status.NodeRef != nil:
		return m, "the machine has its node already"
	case s.Node(c.node) != nil:
		return m, "a node of that name exists"
	case asked < earliest, asked > latest:
		return m, fmt.Sprintf("it was made at %s, which is not between %v before and %v after the machine was", stamp(c.CreationTimestamp.Time), -earliest, latest)
	}
	return m, ""
}

// servingOf returns the Machine that a Node is linked to, if that has all the addresses that the Node wants to serve
// under (B81).
func servingOf(s snapshot.Snapshot, c claim) (m *machine.Machine, why string) {
	n := s.Node(c.node)
	if n == nil {
		return nil, "there is no such node"
	}
	m, why = single(s, "is linked to it", func(m *machine.Machine) bool { return machine.IsNodeOf(m, n) })
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
	return m, ""
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// named reports whether an address is a name.
func named(a corev1.NodeAddress) bool {
	return a.Type == corev1.NodeHostName || a.Type == corev1.NodeInternalDNS || a.Type == corev1.NodeExternalDNS
}

// single returns the Machine that fits, if it is the only one.
func single(s snapshot.Snapshot, what string, fits func(*machine.Machine) bool) (*machine.Machine, string) {
	var found []*machine.Machine
	var names []string
	for _, m := range s.Machines {
		if fits(m) {
			found = append(found, m)
			names = append(names, m.Name)
		}
	}
	switch len(found) {
	case 0:
		return nil, "no machine " + what
	case 1:
		return found[0], ""
	}
	return nil, "more than one machine " + what + ": " + strings.Join(names, ", ")
}
