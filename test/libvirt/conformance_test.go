// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	sdk "github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/provider/drivertest"
)

var reservation = regexp.MustCompile(`<host `)

func newReader(b []byte) io.Reader { return bytes.NewReader(b) }

// TestConformanceOnTheTestDriver is the suite on libvirt's own test driver, which has everything but the contents of volumes: user data
// comes from one that is there.
func TestConformanceOnTheTestDriver(t *testing.T) { //nolint:paralleltest // the suite counts what there is
	const pool, network = "default-pool", "default"
	uri := "test+unix:///default?socket=" + filepath.Join(folder(t), socket)
	a := connect(t, "test:///default")
	p, err := a.StoragePoolLookupByName(pool)
	must(t, err)
	for name, format := range map[string]string{"rhcos-ocp43": "qcow2", "worker.ign": "raw"} {
		_, err := a.StorageVolCreateXML(p, fmt.Sprintf("<volume><name>%s</name><capacity unit='MiB'>1</capacity><target><format type='%s'/></target></volume>", name, format), 0)
		must(t, err)
	}
	of := map[string]any{"ignition": nil, "ignKey": "worker.ign", "volume": map[string]any{"poolName": pool, "baseVolumeID": "rhcos-ocp43", "volumeSize": "16Mi"}, "networkInterfaceName": network, "networkInterfaceAddress": "192.168.122.0/24", "autostart": true}
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		h := harness(t, uri, of)
		h.Children = func() int { return a.ours(t, pool, network, "rhcos-ocp43", "worker.ign") }
		h.Untagged = func() (string, func() bool) {
			return a.untagged(t, "<domain type='test'><name>%s</name><uuid>%s</uuid><memory unit='MiB'>64</memory><os><type arch='i686'>hvm</type></os><devices><interface type='network'><mac address='52:54:00:00:00:07'/><source network='default'/></interface></devices></domain>")
		}
		return h
	})
}

// TestConformanceOnQEMU is the suite on virtual machines, which boot from their volume and ask for an address.
func TestConformanceOnQEMU(t *testing.T) { //nolint:paralleltest // the suite counts what there is
	folder(t)
	const uri = "qemu+tls://127.0.0.1/system"
	a := connect(t, "qemu:///system")
	a.prepare(t)
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		h := harness(t, uri, map[string]any{"networkInterfaceAddress": "192.168.126.0/24"})
		h.Children = func() int { return a.ours(t, "ocp43", "ocp43", "rhcos-ocp43") }
		h.Exhaust = func(exhausted bool) { // of a network a host has one
			n, err := a.NetworkLookupByName("ocp43")
			must(t, err)
			if exhausted {
				must(t, a.NetworkDestroy(n))
				return
			}
			must(t, a.NetworkCreate(n))
		}
		h.Hang = func(hang bool) {
			signal(t, map[bool]syscall.Signal{true: syscall.SIGSTOP, false: syscall.SIGCONT}[hang])
		}
		h.Untagged = func() (string, func() bool) {
			return a.untagged(t, "<domain type='qemu'><name>%s</name><uuid>%s</uuid><memory unit='MiB'>64</memory><os><type arch='x86_64'>hvm</type></os></domain>")
		}
		return h
	})
}

func harness(t *testing.T, uri string, of map[string]any) drivertest.Harness {
	t.Helper()
	with := func(name string, value any) []byte {
		changes := map[string]any{}
		for k, v := range of {
			changes[k] = v
		}
		changes[name] = value
		return spec(t, uri, changes)
	}
	return drivertest.Harness{
		Provider: patientProvider(), Account: account(t, uri), Spec: spec(t, uri, of),
		Invalid: []drivertest.Bad{{Spec: with("domainVcpu", "four"), Names: []string{"providerSpec.value.domainVcpu", "four"}}},
		Missing: &drivertest.Bad{Spec: with("networkInterfaceName", "nowhere"), Names: []string{"providerSpec.value.networkInterfaceName", "nowhere", "not found"}},

		Patience: time.Minute, Pace: 50 * time.Millisecond,
		OnePerMachine: true, UniqueNames: true, TokensReused: true, OwnNames: true,
	}
}

// untagged makes an instance as another system would.
func (a *admin) untagged(t *testing.T, text string) (providerID string, exists func() bool) {
	t.Helper()
	id := string(uuid.NewUUID())
	d, err := a.DomainDefineXML(fmt.Sprintf(text, "somebody-elses-"+id[:8], id))
	must(t, err)
	must(t, a.DomainCreate(d))
	t.Cleanup(func() { _, _ = a.DomainDestroy(d), a.DomainUndefine(d) })
	return "libvirt:///" + id, func() bool {
		_, err := a.DomainLookupByUUID(d.UUID)
		return !sdk.IsNotFound(err)
	}
}
