// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/base64"
	"net/netip"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// request is a spec whose names have become ids. Nothing in it changes for an attempt.
type request struct {
	Spec      providerspec.Azure `json:"spec"`
	Subnet    string             `json:"subnet,omitempty"`
	IPv6      bool               `json:"ipv6,omitempty"` // the subnet has both families
	Group     string             `json:"securityGroup,omitempty"`
	AppGroups []string           `json:"applicationSecurityGroups,omitempty"`
	Pools     []string           `json:"backendAddressPools,omitempty"`
	NATRule   string             `json:"inboundNatRule,omitempty"`
	Set       string             `json:"availabilitySet,omitempty"`
	Identity  string             `json:"managedIdentity,omitempty"`
	Key       string             `json:"sshPublicKey,omitempty"`
	Version   string             `json:"userDataVersion,omitempty"`
	Mark      string             `json:"clusterUID,omitempty"` // an attempt that was begun without goes on so
}

const detach = "Detach"

// resolve judges what only Azure's driver can, and looks up what the spec names.
func (d *driver) resolve(ctx context.Context, s providerspec.Azure) (request, error) {
	req := request{Spec: s, Mark: string(d.account.ClusterUID)}
	if err := judge(s); err != nil {
		return req, err
	}
	if err := taggable(s); err != nil {
		return req, err
	}
	key, err := sshKeyOf(s.SSHPublicKey)
	if err != nil {
		return req, err
	}
	req.Key = key
	if err := d.place(ctx, &req); err != nil {
		return req, err
	}
	if err := d.balance(ctx, &req); err != nil {
		return req, err
	}
	_, req.Version, err = d.userData(ctx, s.UserDataSecret.Name)
	return req, err
}

// judge refuses what cannot be honored: nothing in a spec is passed over in silence.
func judge(s providerspec.Azure) error {
	for _, part := range []struct {
		at    *field.Path
		value string
	}{
		{at("vnet"), s.Vnet}, {at("subnet"), s.Subnet}, {at("networkResourceGroup"), s.NetworkResourceGroup}, {at("securityGroup"), s.SecurityGroup},
		{at("publicLoadBalancer"), s.PublicLoadBalancer}, {at("internalLoadBalancer"), s.InternalLoadBalancer}, {at("availabilitySet"), s.AvailabilitySet},
	} {
		if part.value != "" && !names.MatchString(part.value) {
			return provider.Errorf(provider.Invalid, "%s: %q is no name of a resource", part.at, part.value)
		}
	}
	if p := s.SecurityProfile; p != nil && p.Settings.SecurityType == "" && p.Settings.ConfidentialVM.Wanted() { // OpenShift takes it, and protects nothing
		return provider.Errorf(provider.Invalid, "%s: must be ConfidentialVM, because confidentialVM.uefiSettings are enabled", at("securityProfile", "settings", "securityType"))
	}
	i, confidential := s.Image, s.OSDisk.ManagedDisk.SecurityProfile
	switch system := s.OSDisk.OSType; {
	case s.Vnet == "" || s.Subnet == "":
		return provider.Errorf(provider.Invalid, "%s: must be given, with %s", at("subnet"), at("vnet"))
	case system != "" && system != "Linux":
		return provider.Errorf(provider.Invalid, "%s: %q is not served: instances of Linux are", at("osDisk", "osType"), system)
	case i.Type == "ID" && i.ResourceID == "":
		return provider.Errorf(provider.Invalid, "%s: %q goes with %s", at("image", "type"), i.Type, at("image", "resourceID"))
	case strings.HasPrefix(i.Type, "Marketplace") && i.ResourceID != "":
		return provider.Errorf(provider.Invalid, "%s: %q does not go with %s", at("image", "type"), i.Type, at("image", "resourceID"))
	case i.ResourceID != "" && !ids.MatchString(i.ResourceID):
		return provider.Errorf(provider.Invalid, "%s: %q is no id of a resource", at("image", "resourceID"), i.ResourceID)
	case s.ManagedIdentity != "" && !names.MatchString(s.ManagedIdentity) && !ids.MatchString(s.ManagedIdentity):
		return provider.Errorf(provider.Invalid, "%s: %q is no name, or id, of an identity", at("managedIdentity"), s.ManagedIdentity)
	case s.Zone != "" && s.AvailabilitySet != "":
		return provider.Errorf(provider.Invalid, "%s: %q does not go with %s %q", at("availabilitySet"), s.AvailabilitySet, at("zone"), s.Zone)
	case s.NatRule != nil && s.PublicLoadBalancer == "":
		return provider.Errorf(provider.Invalid, "%s: %d is a rule of %s, which is not given", at("natRule"), *s.NatRule, at("publicLoadBalancer"))
	case s.SpotVMOptions != nil && s.CapacityReservationGroupID != "":
		return provider.Errorf(provider.Invalid, "%s: %q does not go with %s", at("capacityReservationGroupID"), s.CapacityReservationGroupID, at("spotVMOptions"))
	case s.SpotVMOptions != nil && s.AvailabilitySet != "":
		return provider.Errorf(provider.Invalid, "%s: %q does not go with %s", at("availabilitySet"), s.AvailabilitySet, at("spotVMOptions"))
	case confidential.DiskEncryptionSet.ID != "" && confidential.SecurityEncryptionType == "":
		return provider.Errorf(provider.Invalid, "%s: %q goes with securityEncryptionType",
			at("osDisk", "managedDisk", "securityProfile", "diskEncryptionSet", "id"), confidential.DiskEncryptionSet.ID)
	}
	for k, disk := range s.DataDisks {
		if strings.EqualFold(disk.NameSuffix, systemSuffix) {
			return provider.Errorf(provider.Invalid, "%s: %q is that of the disk which it boots from", at("dataDisks").Index(k).Child("nameSuffix"), disk.NameSuffix)
		}
	}
	for k, name := range s.ApplicationSecurityGroups {
		if !names.MatchString(name) {
			return provider.Errorf(provider.Invalid, "%s: %q is no name of a resource", at("applicationSecurityGroups").Index(k), name)
		}
	}
	return nil
}

// place finds where the instance is: subnet, security groups, availability set, identity.
func (d *driver) place(ctx context.Context, req *request) error {
	s := req.Spec
	networks := strings.ToLower(s.NetworkResourceGroup)
	if networks == "" {
		networks = d.network
	}
	req.Subnet = d.idIn(networks, networkKind, s.Vnet+"/subnets/"+s.Subnet)
	sub, err := get[subnet](ctx, d.client, req.Subnet, nil)
	if err != nil {
		return d.missing(at("subnet"), "subnet", s.Subnet, networks, err)
	}
	for _, prefix := range append(sub.Properties.Prefixes, sub.Properties.Prefix) {
		p, err := netip.ParsePrefix(prefix)
		req.IPv6 = req.IPv6 || err == nil && p.Addr().Is6()
	}
	if s.SecurityGroup != "" {
		req.Group = d.id(groupKind, s.SecurityGroup)
		if err := d.exists(ctx, at("securityGroup"), "security group", req.Group); err != nil {
			return err
		}
	}
	for k, name := range s.ApplicationSecurityGroups {
		id := d.id(appGroupKind, name)
		if err := d.exists(ctx, at("applicationSecurityGroups").Index(k), "application security group", id); err != nil {
			return err
		}
		req.AppGroups = append(req.AppGroups, id)
	}
	if s.AvailabilitySet != "" {
		req.Set = d.id(setKind, s.AvailabilitySet)
		if err := d.exists(ctx, at("availabilitySet"), "availability set", req.Set); err != nil {
			return err
		}
	}
	if id := s.ManagedIdentity; id != "" {
		if !strings.Contains(id, "/") {
			id = d.id(identityKind, id)
		}
		req.Identity = id
	}
	return nil
}

// balance finds the pools of the load balancers that the instance joins: the first of each, as with OpenShift.
func (d *driver) balance(ctx context.Context, req *request) error {
	for _, b := range []struct {
		at   *field.Path
		name string
		nat  *int64
	}{
		{at("publicLoadBalancer"), req.Spec.PublicLoadBalancer, req.Spec.NatRule},
		{at("internalLoadBalancer"), req.Spec.InternalLoadBalancer, nil},
	} {
		if b.name == "" {
			continue
		}
		found, err := get[balancer](ctx, d.client, d.id(balancerKind, b.name), nil)
		if err != nil {
			return d.missing(b.at, "load balancer", b.name, d.group, err)
		}
		if len(found.Properties.Pools) == 0 {
			return provider.Errorf(provider.NotFound, "%s: load balancer %q has no backend pool; give it one", b.at, b.name)
		}
		req.Pools = append(req.Pools, found.Properties.Pools[0].ID)
		rules := found.Properties.NATRules
		switch {
		case b.nat == nil:
		case *b.nat < 0 || *b.nat >= int64(len(rules)):
			return provider.Errorf(provider.NotFound, "%s: load balancer %q has no inbound NAT rule %d, it has %d", at("natRule"), b.name, *b.nat, len(rules))
		default:
			req.NATRule = rules[*b.nat].ID
		}
	}
	return nil
}

// exists wants a resource that a spec names.
func (d *driver) exists(ctx context.Context, p *field.Path, what, id string) error {
	_, err := get[named](ctx, d.client, id, nil)
	return d.missing(p, what, nameOf(id), d.group, err)
}

// missing says what a spec names and what is not there: the cloud's side may be mended (SPEC S22).
func (d *driver) missing(p *field.Path, what, name, group string, err error) error {
	if err == nil {
		return nil
	}
	if gone(err) || provider.CodeOf(d.coded(err)) == provider.NotFound {
		return provider.Errorf(provider.NotFound, "%s: there is no %s %q in resource group %s; create it, or name another", p, what, name, group)
	}
	return d.about(p, err)
}

var authorizedKey = regexp.MustCompile(`^ssh-(rsa|ed25519) [A-Za-z0-9+/=]{16,}( .*)?$`)

// sshKeyOf reads the key of a spec, which OpenShift has in base64.
func sshKeyOf(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	key := strings.TrimSpace(string(decoded))
	if err != nil || !authorizedKey.MatchString(key) {
		return "", provider.Errorf(provider.Invalid, "%s: must be the line of a public key of RSA or ED25519, as in authorized_keys, in base64", at("sshPublicKey"))
	}
	return key, nil
}

// mostUserData is what Azure takes, before it is encoded
// (https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update#osprofile).
const mostUserData = 65535

// userData reads what the guest gets at its first start, if the spec names a Secret.
func (d *driver) userData(ctx context.Context, secret string) ([]byte, string, error) {
	values, version, err := d.account.Guest(ctx, secret, mostUserData)
	return values[provider.KeyUserData], version, err
}
