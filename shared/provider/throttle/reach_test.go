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
	for _, address := range []string{"169.254.169.254:80", "[fe80::a9fe:a9fe]:443", "[::ffff:169.254.169.254]:80"} {
		_, err := Dialer(time.Second).DialContext(t.Context(), "tcp", address)
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "link-local") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestWireServerIsNoCloud(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"168.63.129.16:80", "[::ffff:168.63.129.16]:32526"} {
		_, err := Dialer(time.Second).DialContext(t.Context(), "tcp", address)
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "Azure") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
