// SPDX-License-Identifier: Apache-2.0

package linknode

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// index finds Machines by what a Node knows of itself.
type index struct {
	byID, byIP map[string][]*machine.Machine
}

func indexOf(all []*machine.Machine) index {
	ix := index{byID: map[string][]*machine.Machine{}, byIP: map[string][]*machine.Machine{}}
	for _, m := range all {
		if id := machine.ProviderID(m); id != "" {
			ix.byID[id] = append(ix.byID[id], m)
		}
		for ip := range internalIPs(m.Status.Addresses) {
			ix.byIP[ip] = append(ix.byIP[ip], m)
		}
	}
	return ix
}

// of returns the Machines that fit n: those that record its providerID; if there are none, those that have its first
// internal address (B62, S87) and do not record another instance, because addresses are used again.
func (ix index) of(n *corev1.Node) []*machine.Machine {
	if ms := ix.byID[n.Spec.ProviderID]; len(ms) > 0 { // an empty providerID is no key
		return ms
	}
	var fit []*machine.Machine
	for _, a := range n.Status.Addresses {
		if a.Type != corev1.NodeInternalIP {
			continue
		}
		for _, m := range ix.byIP[a.Address] {
			if !contradict(m, n) {
				fit = append(fit, m)
			}
		}
		break
	}
	return fit
}

// contradict reports whether m and n name different instances (B5).
func contradict(m *machine.Machine, n *corev1.Node) bool {
	return machine.ProviderID(m) != "" && n.Spec.ProviderID != "" && !machine.SameInstance(m, n)
}

func internalIPs(addresses []corev1.NodeAddress) map[string]bool {
	ips := map[string]bool{}
	for _, a := range addresses {
		if a.Type == corev1.NodeInternalIP && a.Address != "" {
			ips[a.Address] = true
		}
	}
	return ips
}
