// SPDX-License-Identifier: Apache-2.0

package linknode

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// index finds Machines by what a Node knows of itself.
type index struct {
	byID, byIP, byFirstIP map[string][]*machine.Machine
}

func indexOf(all []*machine.Machine) index {
	ix := index{byID: map[string][]*machine.Machine{}, byIP: map[string][]*machine.Machine{}, byFirstIP: map[string][]*machine.Machine{}}
	for _, m := range all {
		if id := machine.ProviderID(m); id != "" {
			ix.byID[id] = append(ix.byID[id], m)
		}
		for i, ip := range internalIPs(m.Status.Addresses) {
			ix.byIP[ip] = append(ix.byIP[ip], m)
			if i == 0 {
				ix.byFirstIP[ip] = append(ix.byFirstIP[ip], m)
			}
		}
	}
	return ix
}

// of returns the Machines that fit n: those that record its providerID; if there are none, those that have its first
// internal address (S87); if there are none, those whose first internal address it has (B62).
func (ix index) of(n *corev1.Node) []*machine.Machine {
	if ms := ix.byID[n.Spec.ProviderID]; len(ms) > 0 { // an empty providerID is no key
		return ms
	}
	ips := internalIPs(n.Status.Addresses)
	if fit := fitting(n, ix.byIP, ips[:min(1, len(ips))]); len(fit) > 0 {
		return fit
	}
	return fitting(n, ix.byFirstIP, ips)
}

// nodesOf returns the Nodes that each Machine fits.
func (ix index) nodesOf(all []*corev1.Node) map[*machine.Machine][]*corev1.Node {
	nodes := map[*machine.Machine][]*corev1.Node{}
	for _, n := range all {
		for _, m := range ix.of(n) {
			nodes[m] = append(nodes[m], n)
		}
	}
	return nodes
}

// fitting returns the Machines at these addresses that do not record another instance, because addresses are used
// again.
func fitting(n *corev1.Node, at map[string][]*machine.Machine, ips []string) []*machine.Machine {
	var fit []*machine.Machine
	for _, ip := range ips {
		for _, m := range at[ip] {
			if !contradict(m, n) && !slices.Contains(fit, m) {
				fit = append(fit, m)
			}
		}
	}
	return fit
}

// contradict reports whether m and n name different instances (B5).
func contradict(m *machine.Machine, n *corev1.Node) bool {
	return machine.ProviderID(m) != "" && n.Spec.ProviderID != "" && !machine.SameInstance(m, n)
}

func internalIPs(addresses []corev1.NodeAddress) []string {
	var ips []string
	for _, a := range addresses {
		if a.Type == corev1.NodeInternalIP && a.Address != "" && !slices.Contains(ips, a.Address) {
			ips = append(ips, a.Address)
		}
	}
	return ips
}
