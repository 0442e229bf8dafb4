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

// networks turns the entries for networks into ports: one for a network, or one for each of its subnets. An entry
// without uuid and filter means the networks of its subnets (SPEC E15).
func (r *resolver) networks(ctx context.Context) error {
	if err := r.securityGroups(ctx); err != nil {
		return err
	}
	for i, n := range r.spec.Networks {
		var network named
		if n.UUID != "" || n.Filter.Selects() {
			q := networkQuery(i, n)
			all, err := r.list(ctx, "networks", q)
			if err != nil {
				return err
			}
			if network, err = one(all, q.String(), "network"); err != nil {
				return noNetwork(err)
			}
		}
		if len(n.Subnets) == 0 {
			r.joinNetwork(n, network, nil, providerspec.OpenStackSubnet{})
		}
		for j, s := range n.Subnets {
			if err := r.joinSubnets(ctx, n, network, subnetQuery(i, j, s), s); err != nil {
				return err
			}
		}
	}
	return nil
}

// joinSubnets makes a port for each subnet that a filter matches: all are of one network.
func (r *resolver) joinSubnets(ctx context.Context, n providerspec.OpenStackNetwork, network named, q *query, s providerspec.OpenStackSubnet) error {
	if network.ID != "" {
		q.add("network", "network_id", network.ID)
	}
	all, err := r.list(ctx, "subnets", q)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return noNetwork(provider.Errorf(provider.NotFound, "%s matches no subnet", q))
	}
	for _, other := range all[1:] {
		if other.Network != all[0].Network {
			return noNetwork(provider.Errorf(provider.NotFound, "%s matches subnets of several networks, and must match those of one: %s", q, names(all)))
		}
	}
	if network.ID == "" {
		found, err := pages[named](ctx, r.caller, r.network, "list networks", "networks", "networks", url.Values{"id": {all[0].Network}})
		if err != nil {
			return err
		}
		if network, err = one(found, q.String(), "network that is visible"); err != nil {
			return noNetwork(err)
		}
	}
	slices.SortFunc(all, func(a, b named) int { return strings.Compare(a.ID, b.ID) })
	for _, subnet := range all {
		r.joinNetwork(n, network, &subnet, s)
	}
	return nil
}

func (r *resolver) joinNetwork(n providerspec.OpenStackNetwork, network named, subnet *named, s providerspec.OpenStackSubnet) {
	p := wantedPort{Trunk: r.spec.Trunk, Own: r.own(network), Tags: slices.Concat(n.PortTags, s.PortTags), Body: portBody{
		Network: network.ID, VNICType: n.VNICType, Profile: n.Profile, Security: n.PortSecurity,
	}}
	if s.PortSecurity != nil {
		p.Body.Security = s.PortSecurity
	}
	if subnet != nil {
		p.Body.FixedIPs = []fixedIP{{Subnet: subnet.ID}}
	}
	r.protect(&p.Body, nil)
	r.wanted.Ports = append(r.wanted.Ports, p)
}

// protect gives a port its security groups. One without port security must not name any.
func (r *resolver) protect(p *portBody, groups *[]string) {
	switch {
	case p.Security != nil && !*p.Security:
		p.SecurityGroups, p.Pairs = &[]string{}, nil
	case groups != nil:
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
			Project: first(s.ProjectID, s.TenantID), VNICType: s.VNICType, Profile: s.Profile, Security: s.PortSecurity,
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
		r.protect(&p.Body, s.SecurityGroups)
		r.wanted.Ports = append(r.wanted.Ports, p)
	}
	return nil
}
