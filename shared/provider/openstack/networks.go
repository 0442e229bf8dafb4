// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// noNetwork begins the message for which operators grep where the network is the cause (SPEC S24).
func noNetwork(err error) error {
	if _, ok := errors.AsType[*refusal](err); ok {
		return err // the cloud did not say what there is
	}
	return provider.Errorf(provider.CodeOf(err), "No network was found or provided: %w. Check the machine's configuration", err)
}

// networks turns the entries for networks into ports: one for a network, with an address of each of its subnets that the
// entry names. An entry without uuid and filter means the networks of its subnets: a port for each (SPEC E15).
func (r *resolver) networks(ctx context.Context) error {
	if err := r.securityGroups(ctx); err != nil {
		return err
	}
	for i, n := range r.spec.Networks {
		join := r.joinSubnets
		if n.UUID != "" || n.Filter.Selects() {
			join = r.joinNetwork
		}
		if err := join(ctx, i, n); err != nil {
			return err
		}
	}
	return nil
}

// joinNetwork makes the port of an entry that says which network it means.
func (r *resolver) joinNetwork(ctx context.Context, i int, n providerspec.OpenStackNetwork) error {
	q := networkQuery(i, n)
	all, err := r.list(ctx, "networks", q)
	if err != nil {
		return err
	}
	network, err := one(all, q.String(), "network")
	if err != nil {
		return noNetwork(err)
	}
	var subnets []named
	tags := n.PortTags
	for j, s := range n.Subnets {
		q := subnetQuery(i, j, s)
		q.add("network", "network_id", network.ID)
		found, err := r.subnets(ctx, q)
		if err != nil {
			return err
		}
		subnets, tags = append(subnets, found...), slices.Concat(tags, s.PortTags)
	}
	r.join(n, network, subnets, tags)
	return nil
}

// joinSubnets makes the ports of an entry that says its subnets alone. All that one filter matches are of one network.
func (r *resolver) joinSubnets(ctx context.Context, i int, n providerspec.OpenStackNetwork) error {
	for j, s := range n.Subnets {
		q := subnetQuery(i, j, s)
		all, err := r.subnets(ctx, q)
		if err != nil {
			return err
		}
		found, err := pages[named](ctx, r.caller, r.network, "list networks", "networks", "networks", url.Values{"id": {all[0].Network}})
		if err != nil {
			return err
		}
		network, err := one(found, q.String(), "network that is visible")
		if err != nil {
			return noNetwork(err)
		}
		for _, subnet := range all {
			r.join(n, network, []named{subnet}, slices.Concat(n.PortTags, s.PortTags))
		}
	}
	return nil
}

// subnets returns what a filter matches, sorted: one at least, all of one network.
func (r *resolver) subnets(ctx context.Context, q *query) ([]named, error) {
	all, err := r.list(ctx, "subnets", q)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, noNetwork(provider.Errorf(provider.NotFound, "%s matches no subnet", q))
	}
	for _, other := range all[1:] {
		if other.Network != all[0].Network {
			return nil, noNetwork(provider.Errorf(provider.NotFound, "%s matches subnets of several networks, and must match those of one: %s", q, names(all)))
		}
	}
	slices.SortFunc(all, func(a, b named) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// join makes a port. Whatever of the cluster's own addresses moves to this instance may be sent from it.
func (r *resolver) join(n providerspec.OpenStackNetwork, network named, subnets []named, tags []string) {
	p := wantedPort{Trunk: r.spec.Trunk, Own: r.own(network), Tags: tags, Body: portBody{
		Network: network.ID, VNICType: n.VNICType, Profile: profile(n.Profile), Security: n.PortSecurity,
	}}
	for _, subnet := range subnets {
		p.Body.FixedIPs = append(p.Body.FixedIPs, fixedIP{Subnet: subnet.ID})
	}
	if !n.NoAllowedAddressPairs {
		for _, ip := range r.virtualIPs {
			p.Body.Pairs = append(p.Body.Pairs, addressPair{Address: ip})
		}
	}
	r.protect(&p.Body, network, nil)
	r.wanted.Ports = append(r.wanted.Ports, p)
}

// profile gives Neutron what its drivers read, of the texts that a spec has: a list of capabilities, a flag.
func profile(texts map[string]string) map[string]any {
	if texts == nil {
		return nil
	}
	all := map[string]any{}
	for name, text := range texts {
		switch {
		case name == "capabilities":
			all[name] = strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(`[]", `, c) })
		case name == "trusted" && (text == "true" || text == "false"):
			all[name] = text == "true"
		default:
			all[name] = text
		}
	}
	return all
}

// protect gives a port its security groups. One without port security must not name any. Where it is the network that has none, a
// spec says so by an empty list; elsewhere that means those of the instance.
func (r *resolver) protect(p *portBody, network named, groups *[]string) {
	switch {
	case p.Security != nil && !*p.Security:
		p.SecurityGroups, p.Pairs = &[]string{}, nil
	case groups != nil && len(*groups) == 0 && p.Security == nil && network.Secured != nil && !*network.Secured:
		p.SecurityGroups = groups
	case groups != nil && len(*groups) > 0:
		p.SecurityGroups = groups
	case len(r.groups) > 0:
		p.SecurityGroups = &r.groups
	}
}

// own reports whether a network is the project's own: only there may a tenant choose MAC addresses, by Neutron's rules.
func (r *resolver) own(network named) bool { return r.project != "" && network.Project == r.project }

// securityGroups finds the groups: all that a filter matches.
func (r *resolver) securityGroups(ctx context.Context) error {
	for i, g := range r.spec.SecurityGroups {
		q := groupQuery(i, g)
		all, err := r.list(ctx, "security-groups", q)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return provider.Errorf(provider.NotFound, "No security group was found: %s matches no security group", q)
		}
		for _, found := range all {
			if !slices.Contains(r.groups, found.ID) {
				r.groups = append(r.groups, found.ID)
			}
		}
	}
	slices.Sort(r.groups)
	return nil
}

// ports turns the ports of the spec, whose ids it gives itself.
func (r *resolver) ports(ctx context.Context) error {
	for i, s := range r.spec.Ports {
		q := newQuery("ports[%d]", i)
		q.add("networkID", "id", s.NetworkID)
		all, err := r.list(ctx, "networks", q)
		if err != nil {
			return err
		}
		network, err := one(all, q.String(), "network")
		if err != nil {
			return noNetwork(err)
		}
		p := wantedPort{Suffix: s.NameSuffix, Trunk: r.spec.Trunk, Own: r.own(network), Tags: s.Tags, Body: portBody{
			Network: network.ID, Description: s.Description, AdminStateUp: s.AdminStateUp, MAC: s.MACAddress,
			VNICType: s.VNICType, Profile: profile(s.Profile), Security: s.PortSecurity,
		}}
		if s.Trunk != nil {
			p.Trunk = *s.Trunk
		}
		for _, ip := range s.FixedIPs {
			p.Body.FixedIPs = append(p.Body.FixedIPs, fixedIP{ip.SubnetID, ip.IPAddress})
		}
		for _, pair := range s.AllowedAddressPairs {
			p.Body.Pairs = append(p.Body.Pairs, addressPair{pair.IPAddress, pair.MACAddress})
		}
		r.protect(&p.Body, network, s.SecurityGroups)
		r.wanted.Ports = append(r.wanted.Ports, p)
	}
	return nil
}
