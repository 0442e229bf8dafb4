// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What a guest says of itself is believed as far as it is an address that leads to it alone, once, and of no more than a host has (SPEC B80, S87).
func TestInternalIPs(t *testing.T) {
	t.Parallel()
	heard := []string{
		"10.0.0.7", "10.0.0.5", "fe80::1", "FD00:0::7", "10.0.0.7", "::ffff:10.0.0.7", "fd00::5", "fd00::8%kubernetes.default.svc", "0.0.0.0", "127.0.0.1", "::1", "224.0.0.1", "x", "",
	}
	want := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.7"}, {Type: corev1.NodeInternalIP, Address: "fd00::7"}}
	if diff := cmp.Diff(want, provider.InternalIPs(heard, []string{"::ffff:10.0.0.5", "FD00::5", "nonsense"})); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	for n := range 10_000 {
		heard = append(heard, fmt.Sprintf("10.%d.%d.1", 1+n/256, n%256))
	}
	if got := provider.InternalIPs(heard, nil); len(got) != 256 {
		t.Errorf("%d addresses", len(got))
	}
}
