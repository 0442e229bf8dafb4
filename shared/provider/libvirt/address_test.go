// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"fmt"
	"sync"
	"testing"

	"github.com/digitalocean/go-libvirt"

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

// Of what a daemon says of cards only addresses that others reach are told, each once.
func TestAddressesOfCards(t *testing.T) {
	t.Parallel()
	got := addresses([]libvirt.DomainInterface{
		{Name: "lo", Addrs: []libvirt.DomainIPAddr{{Addr: "127.0.0.1"}, {Addr: "::1"}}},
		{Name: "vnet0", Addrs: []libvirt.DomainIPAddr{{Addr: "192.168.126.7"}, {Addr: "fe80::1"}, {Addr: "2001:DB8::7"}, {Addr: "0.0.0.0"}, {Addr: "fe80::1%eth0"}, {Addr: "nonsense"}}},
		{Name: "vnet1", Addrs: []libvirt.DomainIPAddr{{Addr: "192.168.126.7"}, {Addr: "::ffff:192.168.126.8"}}},
	})
	if fmt.Sprint(got) != "[{InternalIP 192.168.126.7} {InternalIP 2001:db8::7} {InternalIP 192.168.126.8}]" {
		t.Errorf("%v", got)
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
