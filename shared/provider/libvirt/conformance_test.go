// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider/drivertest"
	"github.com/machine-functions/machine-functions/test/libvirtd"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]map[string]any{
		"Ignition": nil,
		"cloud-init with a reserved address": {
			"ignition": nil, "cloudInit": map[string]any{"userDataSecret": "cloud-init", "sshAccess": true},
			"networkInterfaceAddress": "192.168.126.0/24", "autostart": true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drivertest.Run(t, func(t *testing.T) drivertest.Harness {
				t.Helper()
				return harness(t, newDaemon(t), change)
			})
		})
	}
}

func harness(t *testing.T, l *libvirtd.Daemon, change map[string]any) drivertest.Harness {
	t.Helper()
	uri := uriOf(l)
	return drivertest.Harness{
		Provider: Provider(), Account: accountOf(uri), Spec: specOf(uri, change), Invalid: invalid(l),
		Missing: &drivertest.Bad{
			Spec:  specOf(uri, map[string]any{"volume": map[string]any{"baseVolumeID": "rhcos-nowhere"}}),
			Names: []string{"providerSpec.value.volume.baseVolumeID", "rhcos-nowhere", "not found"},
		},
		Pace:    5 * time.Millisecond,
		Exhaust: l.Full,
		Hang: func(hang bool) {
			l.Strike(nil)
			if hang {
				l.Strike(func(string) libvirtd.Fault { return libvirtd.Hung })
			}
		},
		Writes:   l.Writes,
		Children: l.Children,
		Untagged: func() (string, func() bool) {
			id := string(uuid.NewUUID())
			must(t, l.Define(fmt.Sprintf(`<domain type='kvm'><name>somebody-elses-%s</name><uuid>%s</uuid><memory unit='MiB'>1024</memory><devices>
				<interface type='network'><mac address='52:54:00:00:00:07'/><source network='%s'/></interface></devices></domain>`, id[:8], id, libvirtd.Network)))
			return scheme + id, func() bool {
				for _, m := range l.Domains() {
					if m.UUID == id {
						return true
					}
				}
				return false
			}
		},
		OnePerMachine: true, UniqueNames: true, TokensReused: true,
		OwnNames: true, // there are no types (SPEC E45)
	}
}

func invalid(l *libvirtd.Daemon) []drivertest.Bad {
	l.AddPool("ceph", "rbd")
	uri := uriOf(l)
	with := func(key string, value any) []byte { return specOf(uri, map[string]any{key: value}) }
	return []drivertest.Bad{
		{Spec: with("domainVcpu", "four"), Names: []string{"providerSpec.value.domainVcpu", "four"}},
		{Spec: with("domainMemory", int64(1)<<60), Names: []string{"providerSpec.value.domainMemory", "1152921504606846976"}},
		{Spec: with("domainVcpu", 100000), Names: []string{"providerSpec.value.domainVcpu", "100000"}},
		{Spec: with("volume", map[string]any{"baseVolumeID": ""}), Names: []string{"providerSpec.value.volume.baseVolumeID"}},
		{Spec: with("volume", map[string]any{"poolName": "ceph"}), Names: []string{"providerSpec.value.volume.poolName", "ceph", "rbd"}},
		{Spec: with("networkUUID", "8b1e7c4e"), Names: []string{"providerSpec.value.networkUUID", "8b1e7c4e"}},
		{Spec: with("networkInterfaceAddress", "2001:db8::/64"), Names: []string{"providerSpec.value.networkInterfaceAddress", "2001:db8::/64", "IPv4"}},
	}
}
