// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// How a guest learns its addresses: what keyConfigured says.
const (
	byUserData      = "user data"     // Ignition and its kernel arguments
	byCustomization = "customization" // the vCenter tells the tools in the guest
)

// configure sets sizes, names and user data. Repeating it changes nothing.
func (d *driver) configure(ctx context.Context, c *vim25.Client, r provider.Ref, req request, m clone) (reference, error) {
	data, err := d.userData(ctx, req.Spec.UserDataSecret.Name)
	if err != nil {
		return reference{}, err
	}
	s := req.Spec
	spec := types.VirtualMachineConfigSpec{
		NumCPUs: int32(min(s.NumCPUs, 1<<20)), MemoryMB: s.MemoryMiB, // in range
		Flags:       &types.VirtualMachineFlagInfo{DiskUuidEnabled: types.NewBool(true)}, // volumes are found by it
		ExtraConfig: guestinfo(r.Name, s.Network.Devices, data),
	}
	if len(s.TagIDs) > 0 { // attached next
		note, err := noted(keyTags, s.TagIDs)
		if err != nil {
			return reference{}, err
		}
		spec.ExtraConfig = append(spec.ExtraConfig, note)
	}
	// The template's number need not divide the CPUs: who gives none has one socket, as in OpenShift.
	if n := int32(min(cmp.Or(s.NumCoresPerSocket, s.NumCPUs), 1<<20)); n > 0 { // in range
		spec.NumCoresPerSocket = &n
	}
	return reconfigure(ctx, c, m, spec)
}

// userData reads what the guest gets at its first start.
func (d *driver) userData(ctx context.Context, secret string) ([]byte, error) {
	values, _, err := d.account.Guest(ctx, secret, corev1.MaxSecretSize)
	return plain(values[provider.KeyUserData]), err
}

// plain returns user data for Ignition as Ignition reads it, however often somebody has encoded it; OpenShift does so.
func plain(data []byte) []byte {
	for d := data; len(d) > 0; {
		if ignition(d) {
			return d
		}
		next, err := base64.StdEncoding.DecodeString(string(d))
		if err != nil {
			break
		}
		d = next
	}
	return data
}

// Settings with user data, and how they are coded.
const (
	ofIgnition  = "guestinfo.ignition.config.data"
	ofCloudInit = "guestinfo.userdata"
	aboutGuest  = "guestinfo.metadata"
	coding      = ".encoding"
)

// guestinfo is what the guest reads of its settings (SPEC E24). Ignition knows its addresses by kernel arguments;
// other user data is for cloud-init, and addresses come by customization. Of the other kind there is none, whatever a template has that was
// made of an instance: it would be another Machine's.
func guestinfo(name string, cards []providerspec.VSphereDevice, data []byte) []types.BaseOptionValue {
	encode := base64.StdEncoding.EncodeToString
	arguments := "" // in place of those of a template that was made of an instance
	if ignition(data) && static(cards) {
		arguments = kernelArguments(cards)
	}
	all := []types.BaseOptionValue{
		option("guestinfo.hostname", name), option("stealclock.enable", "TRUE"), option("guestinfo.afterburn.initrd.network-kargs", arguments),
	}
	if !ignition(data) {
		how := byUserData
		if static(cards) {
			how = byCustomization
		}
		metadata := fmt.Sprintf("instance-id: %q\nlocal-hostname: %q\n", name, name)
		return append(all,
			option(ofCloudInit, encode(data)), option(ofCloudInit+coding, "base64"),
			option(aboutGuest, encode([]byte(metadata))), option(aboutGuest+coding, "base64"),
			option(ofIgnition, ""), option(ofIgnition+coding, ""), option(keyConfigured, how))
	}
	return append(all,
		option(ofIgnition, encode(data)), option(ofIgnition+coding, "base64"),
		option(ofCloudInit, ""), option(ofCloudInit+coding, ""), option(aboutGuest, ""), option(aboutGuest+coding, ""), option(keyConfigured, byUserData))
}

// ignition reports whether user data is for Ignition.
func ignition(data []byte) bool {
	var config struct {
		Ignition *struct{} `json:"ignition"`
	}
	return json.Unmarshal(data, &config) == nil && config.Ignition != nil
}

func static(cards []providerspec.VSphereDevice) bool {
	for _, d := range cards {
		if len(d.IPAddrs) > 0 {
			return true
		}
	}
	return false
}

// checkDevice refuses addresses that no guest could take.
func checkDevice(d providerspec.VSphereDevice) error {
	for _, p := range d.AddressesFromPools {
		if p.Name == "" || p.Resource == "" {
			return fmt.Errorf("addressesFromPools: %q: must have a resource and a name", p.Name)
		}
	}
	for _, a := range d.IPAddrs {
		if _, err := netip.ParsePrefix(a); err != nil {
			return fmt.Errorf("ipAddrs: %q must be an address with its prefix length", a)
		}
	}
	if _, err := parseAddress(d.Gateway); err != nil && d.Gateway != "" {
		return fmt.Errorf("gateway: %w", err)
	}
	for _, n := range d.Nameservers {
		if _, err := parseAddress(n); err != nil && n != "" {
			return fmt.Errorf("nameservers: %w", err)
		}
	}
	return nil
}

// zone is the name of a network card, as far as guests and kernel arguments take one for a single word.
var zone = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// parseAddress reads an address that a guest is told. A zone of any text is none, though netip takes it: it would be arguments of
// its own to the guest's kernel.
func parseAddress(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q is no address", text)
	}
	if !zone.MatchString(a.Zone()) {
		return netip.Addr{}, fmt.Errorf("%q is no address: its zone must be letters, digits, '.', '_' and '-'", text)
	}
	return a, nil
}

// nameservers returns the addresses of a card's nameservers as netip writes them.
func nameservers(d providerspec.VSphereDevice) (all []string) {
	for _, n := range d.Nameservers {
		if a, err := parseAddress(n); err == nil { // checkDevice refused others
			all = append(all, a.String())
		}
	}
	return all
}

// kernelArguments are ip= and nameserver= as dracut reads them.
func kernelArguments(cards []providerspec.VSphereDevice) string {
	var args []string
	for _, d := range cards {
		for _, a := range d.IPAddrs {
			p, err := netip.ParsePrefix(a)
			if err != nil { // checkDevice refused it
				continue
			}
			address, gateway, mask := p.Addr().String(), "", netmask(p)
			if g := gatewayOf(d, p.Addr().Is4()); g.IsValid() { // a card may have both families
				gateway = g.String()
			}
			if p.Addr().Is6() {
				address, mask = "["+address+"]", fmt.Sprint(p.Bits())
				if gateway != "" {
					gateway = "[" + gateway + "]"
				}
			}
			args = append(args, fmt.Sprintf("ip=%s::%s:%s:::none", address, gateway, mask))
		}
		for _, n := range nameservers(d) {
			args = append(args, "nameserver="+n)
		}
	}
	return strings.Join(args, " ")
}

// gatewayOf returns the first gateway of a card in a family, if there is one: a spec names one, and each pool adds its own after a space.
func gatewayOf(d providerspec.VSphereDevice, four bool) netip.Addr {
	for text := range strings.FieldsSeq(d.Gateway) {
		if g, err := parseAddress(text); err == nil && g.Is4() == four {
			return g
		}
	}
	return netip.Addr{}
}

func netmask(p netip.Prefix) string {
	bits := ^uint32(0) << (32 - max(0, min(32, p.Bits())))
	return netip.AddrFrom4([4]byte{byte(bits >> 24), byte(bits >> 16), byte(bits >> 8), byte(bits)}).String()
}

// customize tells the tools in the guest its name and addresses.
func customize(ctx context.Context, c *vim25.Client, r provider.Ref, req request, m clone) (reference, error) {
	spec := types.CustomizationSpec{
		Identity: &types.CustomizationLinuxPrep{HostName: &types.CustomizationFixedName{Name: r.Name}, Domain: "localdomain"},
	}
	for _, d := range req.Spec.Network.Devices {
		spec.NicSettingMap = append(spec.NicSettingMap, types.CustomizationAdapterMapping{Adapter: adapter(d)})
		spec.GlobalIPSettings.DnsServerList = append(spec.GlobalIPSettings.DnsServerList, nameservers(d)...)
	}
	task, err := object.NewVirtualMachine(c, m.Ref).Customize(ctx, spec)
	return refOf(task), err
}

func adapter(d providerspec.VSphereDevice) types.CustomizationIPSettings {
	s := types.CustomizationIPSettings{Ip: &types.CustomizationDhcpIpGenerator{}, DnsServerList: nameservers(d)}
	var six types.CustomizationIPSettingsIpV6AddressSpec
	for _, a := range d.IPAddrs {
		p, err := netip.ParsePrefix(a)
		switch {
		case err != nil: // checkDevice refused it
		case p.Addr().Is6():
			six.Ip = append(six.Ip, &types.CustomizationFixedIpV6{IpAddress: p.Addr().String(), SubnetMask: int32(p.Bits())}) // at most 128
		case s.SubnetMask == "": // a card is told one address of this family: the first
			s.Ip, s.SubnetMask = &types.CustomizationFixedIp{IpAddress: p.Addr().String()}, netmask(p)
		}
	}
	if g := gatewayOf(d, false); g.IsValid() {
		six.Gateway = []string{g.String()}
	}
	if g := gatewayOf(d, true); g.IsValid() {
		s.Gateway = []string{g.String()}
	}
	if len(six.Ip) > 0 {
		s.IpV6Spec = &six
	}
	return s
}
