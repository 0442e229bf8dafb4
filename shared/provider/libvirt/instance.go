// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/digitalocean/go-libvirt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// providerID returns what a domain is called. Nobody writes it on a Node: kubelets on libvirt are told none, and are linked by their
// addresses (SPEC E45, S87).
func providerID(id libvirt.UUID) string { return scheme + idOf(id) }

// words are what virsh calls the states of a domain.
var words = map[libvirt.DomainState]string{
	libvirt.DomainNostate: "no state", libvirt.DomainRunning: "running", libvirt.DomainBlocked: "idle", libvirt.DomainPaused: "paused",
	libvirt.DomainShutdown: "in shutdown", libvirt.DomainShutoff: "shut off", libvirt.DomainCrashed: "crashed", libvirt.DomainPmsuspended: "pmsuspended",
}

// status is the providerStatus of a Machine.
type status struct {
	InstanceID    string `json:"instanceID"`
	InstanceState string `json:"instanceState"`
}

// list returns the cluster's instances, and the volumes that are left of others. The volumes are read first: each is made after its
// domain, so none is seen without it that has one.
func (d *driver) list(l *daemon) ([]provider.Instance, error) {
	volumes, err := d.volumes(l)
	if err != nil {
		return nil, err
	}
	domains, err := d.marked(l)
	if err != nil {
		return nil, err
	}
	all, err := d.instances(l, domains)
	for _, v := range volumes {
		if !slices.ContainsFunc(domains, v.of) {
			all = append(all, v.instance())
		}
	}
	return all, err
}

// of reports whether a volume is m's.
func (v leftover) of(m domain) bool {
	return m.Mark.UID == v.uid() && m.Mark.Token == v.Name.Token && !m.copied()
}

// instance returns the machine layer's view of a volume that was left.
func (v leftover) instance() provider.Instance {
	return provider.Instance{ID: v.id(), UID: v.uid(), ClusterUID: types.UID(v.Name.Mark), Token: v.Name.Token, Name: v.Vol.Name, Child: true}
}

// instances returns the machine layer's view of domains.
func (d *driver) instances(l *daemon, all []domain) ([]provider.Instance, error) {
	if len(all) == 0 {
		return nil, nil
	}
	instances := make([]provider.Instance, len(all))
	g := beside.New(together)
	for i, m := range all {
		g.Go(func() (err error) {
			instances[i], err = d.instance(l, m)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return instances, nil
}

// instance returns the machine layer's view of m.
func (d *driver) instance(l *daemon, m domain) (provider.Instance, error) {
	i := provider.Instance{
		ID: idOf(m.Ref.UUID), ProviderID: providerID(m.Ref.UUID), UID: m.Mark.UID, ClusterUID: types.UID(m.Mark.Of), Sole: m.Mark.UID != "", Token: m.Mark.Token, Name: m.Ref.Name,
		State: m.state(), Power: m.power(), CloudState: words[m.State], Created: m.Mark.created(), Message: m.Garbled,
	}
	i.Again = i.State == provider.StateDeleting
	if i.CloudState == "" {
		i.CloudState = fmt.Sprintf("state %d", m.State)
	}
	i.Status, _ = json.Marshal(status{i.ID, i.CloudState}) // two strings
	if m.copied() {                                        // nobody's: at most it is told of
		i.UID, i.Sole, i.Token = "", false, ""
		i.Message = fmt.Sprintf("it carries a copy of the mark of Machine UID %s", m.Mark.UID)
	}
	i.Addresses = names(m)
	if !m.active() {
		return i, nil
	}
	ips, err := l.ips(m, d.account.VirtualIPs)
	i.Addresses = append(i.Addresses, ips...)
	return i, err
}

// state tells a domain that was switched off from one that has yet to be started. Only Create can go on with the latter.
func (m domain) state() provider.State {
	switch {
	case m.Deleting && m.Mark.Cluster != "" && !m.copied():
		return provider.StateDeleting
	case m.State == libvirt.DomainRunning || m.State == libvirt.DomainBlocked:
		return provider.StateRunning
	case m.State == libvirt.DomainNostate, m.Starting && m.Launched:
		return provider.StatePending
	case m.Starting:
		return provider.StateIncomplete
	case m.Launched || m.Mark.Cluster == "" || m.copied() || m.active():
		return provider.StateStopped
	}
	return provider.StateIncomplete
}

// power returns whether a domain is held off, or can be.
func (m domain) power() provider.Power {
	switch {
	case m.Held:
		return provider.PowerHeld
	case m.state() == provider.StateRunning:
		return provider.PowerOn
	}
	return ""
}

// names are those that a domain's Node may have: they are there from the beginning (SPEC B80).
func names(m domain) []corev1.NodeAddress {
	all := []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: m.Ref.Name}}
	if h := m.Mark.Hostname; h != "" && h != m.Ref.Name {
		all = append(all, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: h})
	}
	return all
}

// ips are the addresses that the network gave to the domain's cards, or, where it gives none, under which the host hears them.
func (l *daemon) ips(m domain, moving []string) ([]corev1.NodeAddress, error) {
	for _, source := range []libvirt.DomainInterfaceAddressesSource{libvirt.DomainInterfaceAddressesSrcLease, libvirt.DomainInterfaceAddressesSrcArp} {
		cards, err := l.DomainInterfaceAddresses(m.Ref, uint32(source), 0)
		if _, refused := answered(err); refused { // it was switched off just now, or this daemon cannot tell
			continue
		}
		if err != nil {
			return nil, err
		}
		var heard []string
		for _, card := range cards {
			for _, a := range card.Addrs {
				heard = append(heard, strings.TrimSpace(a.Addr))
			}
		}
		if all := provider.InternalIPs(heard, moving); len(all) > 0 {
			return all, nil
		}
	}
	return nil, nil
}
