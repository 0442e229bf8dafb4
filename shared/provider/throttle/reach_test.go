// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"cmp"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// errReached stands for a connection: no test makes one, not even without the rules.
var errReached = errors.New("connected")

// asked returns what Dialer's rules say of an address, in the form in which a dialer asks them.
func asked(t *testing.T, address string) error {
	t.Helper()
	d := Dialer(time.Second)
	rules := d.Control
	d.Control = func(network, address string, c syscall.RawConn) error {
		return cmp.Or(rules(network, address, c), errReached)
	}
	_, err := d.DialContext(t.Context(), "tcp", address)
	return err
}

// Where nothing answers, whoever asks waits no longer than it says.
func TestDialerEndsInTime(t *testing.T) {
	t.Parallel()
	if d := Dialer(3 * time.Second); d.Timeout != 3*time.Second {
		t.Errorf("it waits for %v", d.Timeout)
	}
}

func TestLinkLocalAddressesAreNoClouds(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"169.254.169.254:80", "[fe80::a9fe:a9fe]:443", "[fe80::a9fe:a9fe%lo]:443", "[::ffff:169.254.169.254]:80", "[64:ff9b::a9fe:a9fe]:80",
		"[64:ff9b::a9fe:a9fe%lo]:80", "[64:ff9b:1::a9fe:a9fe]:80", "[64:ff9b:1:a9fe:a9:fe00::]:80", "[64:ff9b:1:a9:fe:a9fe::]:80",
		"[64:ff9b:1:0:a9:fea9:fe00:0]:80", "[2002:a9fe:a9fe::1]:80", "[::169.254.169.254]:80", "[::ffff:0:a9fe:a9fe]:80",
	} {
		err := asked(t, address)
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "link-local") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// RELIABILITY §4: what clouds tell their instances is not all at link-local addresses.
func TestWhereInstancesAskIsNoCloud(t *testing.T) {
	t.Parallel()
	for address, cloud := range map[string]string{
		"168.63.129.16:80": "Azure", "[::ffff:168.63.129.16]:32526": "Azure", "[fd00:ec2::254]:80": "EC2", "[fd00:ec2::23]:80": "EC2",
		"[fd00:ec2::254%lo]:80": "EC2", "192.0.0.192:80": "Oracle Cloud", "[fd00:c1::a9fe:a9fe]:80": "Oracle Cloud", "[2002:c000:c0::]:80": "Oracle Cloud",
		"[fd20:ce::254]:80": "Google Cloud", "100.100.100.200:80": "Alibaba Cloud", "[64:ff9b::a83f:8110]:80": "Azure",
		"[fd00:100::100:200]:80": "Alibaba Cloud", "[fd00:42::42]:80": "Scaleway", "[fd00:a9fe:a9fe::1]:80": "Akamai",
	} {
		err := asked(t, address)
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "what "+cloud+" answers its instances at") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAPIServerIsNoCloud(t *testing.T) { //nolint:paralleltest // the environment is the process's
	for host, addresses := range map[string][]string{
		"10.96.0.1":        {"10.96.0.1:443", "[::ffff:10.96.0.1]:443", "[64:ff9b::a60:1]:443", "[2002:a60:1::]:443", "[64:ff9b:1::a60:1%lo]:443"},
		"fd00:10:96:0::01": {"[fd00:10:96::1]:443"},
		"::ffff:10.96.0.1": {"10.96.0.1:443"},
	} {
		t.Setenv("KUBERNETES_SERVICE_HOST", host)
		for _, address := range addresses {
			err := asked(t, address)
			if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "API server") {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
}

// A connection to no address in particular is one to the function's own container.
func TestUnspecifiedAddressIsNoCloud(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:80", "[::]:80", "[::ffff:0.0.0.0]:80"} {
		err := asked(t, address)
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "no address of a host") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// An address of IPv4 in the form of IPv6, with a zone, is connected to all the same, and nothing can read it: no rule would be asked.
func TestAddressesThatCannotBeReadAreNoClouds(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	for _, address := range []string{"[::ffff:127.0.0.1%lo]:80", "[::ffff:169.254.169.254%25x]:80", "[::ffff:168.63.129.16%1]:80", "[::ffff:0.0.0.0%lo]:80"} {
		err := asked(t, address)
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "is no address with a port") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := refuse("unix", "/run/libvirt.sock", nil); provider.CodeOf(err) != provider.Denied {
		t.Errorf("a file: %v", err)
	}
}

// What is no cluster's nor an instance's own is connected to, in those forms too; also where nobody can read where the API server is.
func TestCloudsAreReached(t *testing.T) { //nolint:paralleltest // the environment is the process's
	for _, host := range []string{"", "10.96.0.1", "kubernetes.default.svc"} { //nolint:paralleltest // as above
		t.Run(host, func(t *testing.T) { reachClouds(t, host) })
	}
}

func reachClouds(t *testing.T, host string) {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	for _, address := range []string{
		"192.0.2.1:443", "127.0.0.1:443", "[::1]:443", "[2001:db8::1]:443", "[64:ff9b::c000:201]:443", "[64:ff9b:1:c000:2:100::]:443", "[64:ff9b:1::c000:201]:443",
		"[2002:c000:201::]:443", "[fd00:c1::1]:443", "[fd00:42::43]:443", "[fd00:a9fe:a9fe::2]:443", "[fdab:cdef:1::10]:443",
		"10.0.0.5:443", "172.16.3.4:5000", "192.168.1.10:443", "100.64.0.10:443",
	} {
		if err := asked(t, address); !errors.Is(err, errReached) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// The network policy of those that act on clouds leaves out what the dialer refuses, also by NAT64: a process that was broken into dials as
// it likes.
func TestNetworkPolicyRefusesAsTheDialer(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../config/network/egress.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var excepted []netip.Prefix
	for document := range strings.SplitSeq(string(b), "\n---\n") {
		var p networkingv1.NetworkPolicy
		if err := yaml.UnmarshalStrict([]byte(document), &p); err != nil {
			t.Fatal(err)
		}
		for _, rule := range p.Spec.Egress {
			for _, to := range rule.To {
				for _, e := range to.IPBlock.Except {
					excepted = append(excepted, netip.MustParsePrefix(e))
				}
			}
		}
	}
	within := func(p netip.Prefix) bool {
		return slices.ContainsFunc(excepted, func(e netip.Prefix) bool { return e.Bits() <= p.Bits() && e.Contains(p.Addr()) })
	}
	for p, cloud := range instancesOnly {
		if !within(p) {
			t.Errorf("config/network/egress.yaml lets ask %s, what %s answers its instances at", p, cloud)
		}
		if p.Addr().Is4() {
			at := netip.MustParseAddr("64:ff9b::").As16()
			four := p.Addr().As4()
			copy(at[12:], four[:])
			if by64 := netip.PrefixFrom(netip.AddrFrom16(at), 96+p.Bits()); !within(by64) {
				t.Errorf("config/network/egress.yaml lets ask %s, which is %s", by64, p)
			}
		}
	}
}
