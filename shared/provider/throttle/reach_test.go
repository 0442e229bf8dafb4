// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

func TestLinkLocalAddressesAreNoClouds(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"169.254.169.254:80", "[fe80::a9fe:a9fe]:443", "[::ffff:169.254.169.254]:80", "[64:ff9b::a9fe:a9fe]:80"} {
		_, err := Dialer(time.Second).DialContext(t.Context(), "tcp", address)
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
		"[fd20:ce::254]:80": "Google Cloud", "100.100.100.200:80": "Alibaba Cloud", "[64:ff9b::a83f:8110]:80": "Azure",
	} {
		_, err := Dialer(time.Second).DialContext(t.Context(), "tcp", address)
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "what "+cloud+" answers its instances at") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAPIServerIsNoCloud(t *testing.T) {
	for host, addresses := range map[string][]string{
		"10.96.0.1":        {"10.96.0.1:443", "[::ffff:10.96.0.1]:443", "[64:ff9b::a60:1]:443"},
		"fd00:10:96:0::01": {"[fd00:10:96::1]:443"},
	} {
		t.Setenv("KUBERNETES_SERVICE_HOST", host)
		for _, address := range addresses {
			_, err := Dialer(time.Second).DialContext(t.Context(), "tcp", address)
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
		_, err := Dialer(time.Second).DialContext(t.Context(), "tcp", address)
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "no address of a host") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
