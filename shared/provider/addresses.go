// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// mostAddresses is how many addresses of a guest are told: it says what it likes, and a Machine has room for so many.
const mostAddresses = 256

// InternalIPs returns those of the addresses a guest was heard to have that are its Machine's, each once, in the order and of the first 256. Those that
// move between the cluster's Nodes ([Account].VirtualIPs) are on another one tomorrow, and Nodes are looked for by addresses; what is of one link or host
// alone, of many at once or no address at all leads to nobody (SPEC B80, S87).
func InternalIPs(heard, moving []string) (all []corev1.NodeAddress) {
	seen := map[netip.Addr]bool{} // or nobody's
	for _, text := range moving {
		ip, _ := netip.ParseAddr(text)
		seen[ip.Unmap()] = true
	}
	for _, text := range heard {
		ip, err := netip.ParseAddr(text)
		ip = ip.Unmap()
		odd := err != nil || ip.Zone() != "" || ip.IsUnspecified() || ip.IsMulticast()
		if odd || ip.IsLinkLocalUnicast() || ip.IsLoopback() || seen[ip] {
			continue
		}
		if len(all) == mostAddresses {
			break
		}
		seen[ip] = true
		all = append(all, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip.String()})
	}
	return all
}
