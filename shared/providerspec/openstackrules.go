// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// check holds rules of our own (SPEC B79), among them that of the filter trap (E15).
func (s *OpenStack) check(f *findings, of Subject) {
	f.need(at("cloudName"), s.CloudName, "must name an entry of clouds.yaml")
	f.secret(at("cloudsSecret"), s.CloudsSecret, of)
	f.secret(at("userDataSecret"), s.UserDataSecret, of)
	f.need(at("flavor"), s.Flavor, "must name a flavor")
	if s.RootVolume == nil || s.RootVolume.SourceUUID == "" {
		f.need(at("image"), s.Image, "must name the image to boot")
	} else if s.Image != "" && s.Image != s.RootVolume.SourceUUID {
		f.warn(at("image"), "%q has no effect beside rootVolume.sourceUUID", s.Image)
	}
	if len(s.Networks)+len(s.Ports) == 0 {
		f.fail(field.Required(at("networks"), "give networks or ports"))
	}
	for i, n := range s.Networks {
		n.check(f, at("networks").Index(i))
	}
	s.checkPorts(f)
	for i, g := range s.SecurityGroups {
		if g.UUID == "" && g.Name == "" && !g.Filter.Selects() {
			f.fail(field.Required(at("securityGroups").Index(i).Child("filter"), "an empty filter selects every security group; give uuid, name or filter"))
		}
	}
	s.checkDisks(f)
	s.checkTags(f)
	if s.FloatingIP != "" {
		f.warn(at("floatingIP"), "is deprecated; attach a floating IP to a port yourself")
	}
}

// check: a filter that says nothing must not mean every network; only with subnets it means theirs.
func (n OpenStackNetwork) check(f *findings, p *field.Path) {
	if n.UUID == "" && !n.Filter.Selects() && len(n.Subnets) == 0 {
		f.fail(field.Required(p.Child("filter"), "an empty filter selects every network; give uuid, filter or subnets"))
	}
	for i, s := range n.Subnets {
		p := p.Child("subnets").Index(i)
		if s.UUID == "" && !s.Filter.Selects() {
			f.fail(field.Required(p.Child("filter"), "an empty filter selects every subnet; give uuid or filter"))
		}
		if s.PortSecurity != nil {
			f.warn(p.Child("portSecurity"), "has no effect; give it in the network")
		}
	}
	if n.FixedIP != "" {
		f.warn(p.Child("fixedIp"), "%q has no effect; give the address in ports", n.FixedIP)
	}
}

func (s *OpenStack) checkPorts(f *findings) {
	for i, port := range s.Ports {
		p := at("ports").Index(i)
		f.need(p.Child("networkID"), port.NetworkID, "must be the id of a network")
		for j, ip := range port.FixedIPs {
			f.need(p.Child("fixedIPs").Index(j).Child("subnetID"), ip.SubnetID, "must be the id of a subnet")
		}
	}
}

func (s *OpenStack) checkDisks(f *findings) {
	if s.RootVolume != nil {
		f.atLeast(at("rootVolume", "diskSize"), s.RootVolume.DiskSize, 1)
	}
	names := unique[string]{"root": true} // what the root volume is called
	for i, d := range s.AdditionalBlockDevices {
		p := at("additionalBlockDevices").Index(i)
		f.need(p.Child("name"), d.Name, "must be given")
		names.add(f, p.Child("name"), d.Name)
		f.atLeast(p.Child("sizeGiB"), d.SizeGiB, 1)
		f.need(p.Child("storage", "type"), d.Storage.Type, "must be Local or Volume")
		f.oneOf(p.Child("storage", "type"), d.Storage.Type, "Local", "Volume")
		if d.Storage.Type == "Local" && d.Storage.Volume != nil {
			f.fail(field.Forbidden(p.Child("storage", "volume"), `type is "Local"`))
		}
	}
}

// mostTags are what Nova takes, less the four by which the driver knows the instance.
const mostTags = 50 - 4

// checkTags holds what Nova allows in the tags of an instance.
func (s *OpenStack) checkTags(f *findings) {
	f.atMost(at("tags"), len(s.Tags), mostTags)
	for i, t := range s.Tags {
		if t == "" || len([]rune(t)) > 60 || strings.ContainsAny(t, ",/") {
			f.fail(field.Invalid(at("tags").Index(i), t, "must be 1 to 60 characters without ',' or '/'"))
		}
	}
}
