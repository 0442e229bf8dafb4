// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/libvirtd"
)

// Machines that ask for addresses of one range at the same time have one each; when there is none left, that is said, and which.
func TestRangeOfAddresses(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	spec := specOf(uriOf(l), map[string]any{"networkInterfaceAddress": "192.168.126.0/29"}) // of eight the network's own, the daemon's and five or six
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			r := refOf(fmt.Sprintf("worker-%d", i))
			resolved, err := d.Resolve(t.Context(), spec)
			if err == nil {
				_, err = proceed(t.Context(), d, &r, resolved)
			}
			if err != nil {
				t.Errorf("worker-%d: %v", i, err)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, h := range l.Reserved(libvirtd.Network) {
		seen[h.IP] = true
	}
	if len(seen) != 6 || seen["192.168.126.0"] || seen["192.168.126.1"] {
		t.Errorf("reserved %v", seen)
	}
	r, _, err := created(t, d, "worker-late", spec)
	wantError(t, err, provider.Exhausted, "providerSpec.value.networkInterfaceAddress", "192.168.126.0/29", libvirtd.Network)
	removed(t, d, r)
}

// A range may be much larger than the network: an address is one of both.
func TestRangeThatIsLarger(t *testing.T) {
	t.Parallel()
	var n networkXML
	must(t, understand(`<network><name>n</name><ip address='172.16.0.1' prefix='30'><dhcp/></ip><ip address='10.77.0.1' prefix='24'><dhcp/></ip></network>`, &n))
	for text, of := range map[string]string{"10.0.0.0/8": "10.77.0.0/24", "0.0.0.0/0": "172.16.0.2/32", "10.77.0.128/25": "10.77.0.128/25", "172.16.0.0/12": "172.16.0.2/32"} {
		wanted, err := parseRange(text)
		must(t, err)
		a, err := n.free(wanted, "6b0d1a34-0000-4000-8000-000000000001", nil)
		if err != nil || !netip.MustParsePrefix(of).Contains(a) {
			t.Errorf("%s: %s, %v", text, a, err)
		}
	}
	for taken, want := range map[string]string{"172.16.0.2": "10.77.0.0/24", "172.16.0.3": "172.16.0.2/32"} {
		a, err := n.free(netip.MustParsePrefix("0.0.0.0/0"), "a", []string{taken})
		if err != nil || !netip.MustParsePrefix(want).Contains(a) {
			t.Errorf("beside %s: %s, %v", taken, a, err)
		}
	}
	if a, err := n.free(netip.MustParsePrefix("10.0.0.0/9"), "a", nil); err != nil {
		t.Errorf("%s, %v", a, err)
	}
	_, err := n.free(netip.MustParsePrefix("172.16.0.0/16"), "a", []string{"172.16.0.2"})
	wantError(t, err, provider.Exhausted, "172.16.0.0/16")
}

// An address, or a name, that somebody else has is not taken from him.
func TestAddressThatIsTaken(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	l.Reserve(libvirtd.Network, libvirtd.Host{MAC: "52:54:00:00:00:01", Name: "printer", IP: "192.168.126.51"})
	_, _, err := created(t, d, "worker-a", specOf(uriOf(l), map[string]any{"networkInterfaceAddress": "192.168.126.51"}))
	wantError(t, err, provider.Exhausted, "providerSpec.value.networkInterfaceAddress", "192.168.126.51/32")
	_, _, err = created(t, d, "worker-b", specOf(uriOf(l), map[string]any{"networkInterfaceAddress": "192.168.126.52", "networkInterfaceHostname": "printer"}))
	wantError(t, err, provider.Exhausted, "providerSpec.value.networkInterfaceHostname", "printer", "52:54:00:00:00:01")
	if got := l.Reserved(libvirtd.Network); len(got) != 1 {
		t.Errorf("reserved %v", got)
	}
}

func TestSubnets(t *testing.T) {
	t.Parallel()
	var n networkXML
	must(t, understand(`<network><name>n</name><ip address='10.1.0.1' netmask='255.255.240.0'><dhcp/></ip><ip address='10.2.0.1' prefix='24'><dhcp/></ip>
		<ip address='10.3.0.1' netmask='255.255.255.0'/><ip family='ipv6' address='2001:db8::1' prefix='64'><dhcp/></ip><ip address='x' prefix='8'><dhcp/></ip></network>`, &n))
	if got := fmt.Sprint(n.subnets()); got != "[10.1.0.1/20 10.2.0.1/24]" {
		t.Errorf("%s", got)
	}
	for text, want := range map[string]bool{"10.1.15.254": true, "10.1.16.1": false, "10.0.0.0/8": true, "10.3.0.9": false} {
		if err := reservable(n, text); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, bad := range []string{"", "10.0.0.0/33", "2001:db8::1", "a", "10.0.0.1/"} {
		if p, err := parseRange(bad); err == nil {
			t.Errorf("%q is %v", bad, p)
		}
	}
}

// Addresses that are the cluster's own, that the name server knows, and that guests lease now, are given to nobody.
func TestAddressesThatOthersHave(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	a := accountOf(uriOf(l))
	a.VirtualIPs = []string{"192.168.126.3", "192.168.126.4"}
	d := openedFor(t, a)
	l.Name(libvirtd.Network, "192.168.126.5")
	_, in, err := created(t, d, "leases", specOf(uriOf(l), nil))
	must(t, err)
	if fmt.Sprint(in.Addresses[1:]) != "[{InternalIP 192.168.126.2}]" {
		t.Fatalf("it leases %v", in.Addresses)
	}
	for _, last := range []int{2, 3, 4, 5} {
		text := fmt.Sprintf("192.168.126.%d", last)
		_, _, err := created(t, d, fmt.Sprintf("worker-%d", last), specOf(uriOf(l), map[string]any{"networkInterfaceAddress": text}))
		wantError(t, err, provider.Exhausted, "providerSpec.value.networkInterfaceAddress", text, "leases")
	}
	r, _, err := created(t, d, "worker-6", specOf(uriOf(l), map[string]any{"networkInterfaceAddress": "192.168.126.0/29"}))
	if all := l.Reserved(libvirtd.Network); err != nil || len(all) != 1 || all[0].MAC != macOf(r.UID) || all[0].IP != "192.168.126.6" && all[0].IP != "192.168.126.7" {
		t.Errorf("%v, %v", all, err)
	}
}

// An address that moves between the cluster's Nodes is none of a Machine's: its Node is looked for by those.
func TestVirtualAddressesAreNobodys(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	a := accountOf(uriOf(l))
	a.VirtualIPs = []string{"192.168.126.2"}
	d := openedFor(t, a)
	_, in, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	if err != nil || len(in.Addresses) != 1 {
		t.Errorf("%v, %v", in.Addresses, err)
	}
}

// Where a network gives addresses of IPv6 too, and names those first, the others are reserved, and released, where they stand.
func TestNetworkWithIPv6First(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	l.SixFirst(libvirtd.Network)
	d := opened(t, l)
	r, _, err := created(t, d, "worker-a", specOf(uriOf(l), map[string]any{"networkInterfaceAddress": "192.168.126.51"}))
	if all := l.Reserved(libvirtd.Network); err != nil || len(all) != 1 || all[0].IP != "192.168.126.51" {
		t.Errorf("%v, %v", all, err)
	}
	removed(t, d, r)
	if all := l.Reserved(libvirtd.Network); len(all) != 0 {
		t.Errorf("left %v", all)
	}
}

// A name that is too long for DNS takes the reservation with it: the address is reserved without one.
func TestNameThatIsTooLongForDNS(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	for name, want := range map[string]string{"w-" + strings.Repeat("x", 62): "", "w-" + strings.Repeat("x", 61): "w-" + strings.Repeat("x", 61), "a.example.com": "a.example.com"} {
		r, _, err := created(t, d, name, specOf(uriOf(l), map[string]any{"networkInterfaceAddress": "192.168.126.0/24"}))
		if all := l.Reserved(libvirtd.Network); err != nil || len(all) != 1 || all[0].Name != want {
			t.Errorf("%s: %v, %v", name, all, err)
		}
		removed(t, d, r)
	}
}
