// SPDX-License-Identifier: Apache-2.0

// Package libvirt tests the driver against a real libvirt daemon: make test-libvirt.
package libvirt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/provider"
	driver "github.com/machine-functions/machine-functions/shared/provider/libvirt"
)

// Variable names the folder of a daemon that inside.sh started; tests are skipped without it.
const Variable = "LIBVIRT_STATE"

const (
	userData = `{"ignition": {"version": "3.2.0"}}`
	socket   = "run/libvirt/libvirt-sock"
)

// folder returns where the daemon keeps everything, or skips the test.
func folder(t *testing.T) string {
	t.Helper()
	state := os.Getenv(Variable)
	if _, err := os.Stat(filepath.Join(state, socket)); state == "" || err != nil {
		t.Skip(Variable + " names no folder of a daemon that runs: make test-libvirt starts one")
	}
	return state
}

// admin is the administrator's connection. libvirt's test driver forgets everything when nobody is connected.
type admin struct {
	*sdk.Libvirt
	conn net.Conn
}

// Dial implements the SDK's dialer.
func (a admin) Dial() (net.Conn, error) { return a.conn, nil }

func connect(t *testing.T, uri string) *admin {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", filepath.Join(folder(t), socket))
	must(t, err)
	a := &admin{conn: conn}
	a.Libvirt = sdk.NewWithDialer(admin{conn: conn})
	must(t, a.ConnectToURI(sdk.ConnectURI(uri)))
	t.Cleanup(func() { _ = conn.Close() })
	return a
}

// account is what the runner would open for a spec.
func account(t *testing.T, uri string) provider.Account {
	t.Helper()
	a := provider.Account{
		Kind: driver.Kind, ClusterID: "ocp43-abcde", Region: uri, Namespace: "openshift-machine-api", Secret: driver.Secret,
		Credentials: provider.Credentials{"uris": []byte(uri)},
		UserData: func(_ context.Context, name string) (map[string][]byte, string, error) {
			if name != "worker-user-data" {
				return nil, "", errors.New("not found")
			}
			return map[string][]byte{"userData": []byte(userData)}, "1", nil
		},
	}
	for key, file := range map[string]string{"ca.crt": "cacert.pem", "tls.crt": "clientcert.pem", "tls.key": "clientkey.pem"} {
		text, err := os.ReadFile(filepath.Join(folder(t), "pki", file))
		must(t, err)
		a.Credentials[key] = text
	}
	return a
}

// spec is a providerSpec with some fields changed; nil takes one away.
func spec(t *testing.T, uri string, changes map[string]any) json.RawMessage {
	t.Helper()
	s := map[string]any{
		"apiVersion": "libvirtproviderconfig.openshift.io/v1beta1", "kind": driver.Kind, "uri": uri, "domainMemory": 64, "domainVcpu": 1,
		"ignition":             map[string]any{"userDataSecret": "worker-user-data"},
		"volume":               map[string]any{"poolName": "ocp43", "baseVolumeID": "rhcos-ocp43"},
		"networkInterfaceName": "ocp43",
	}
	for name, value := range changes {
		s[name] = value
	}
	raw, err := json.Marshal(s)
	must(t, err)
	return raw
}

// ours are the volumes that the administrator did not make, and the addresses that are reserved.
func (a *admin) ours(t *testing.T, pool, network string, theirs ...string) (n int) {
	t.Helper()
	p, err := a.StoragePoolLookupByName(pool)
	must(t, err)
	vols, _, err := a.StoragePoolListAllVolumes(p, 1, 0)
	must(t, err)
	n = len(vols)
	for _, v := range vols {
		for _, name := range theirs {
			if v.Name == name {
				n--
			}
		}
	}
	net, err := a.NetworkLookupByName(network)
	must(t, err)
	text, err := a.NetworkGetXMLDesc(net, 0)
	must(t, err)
	return n + len(reservation.FindAllString(text, -1))
}

var preparing sync.Mutex

// prepare makes on qemu what an administrator makes: a pool with a volume that boots, and a network with DHCP.
func (a *admin) prepare(t *testing.T) {
	t.Helper()
	preparing.Lock()
	defer preparing.Unlock()
	if _, err := a.StoragePoolLookupByName("ocp43"); err == nil {
		return
	}
	pool, err := a.StoragePoolDefineXML(fmt.Sprintf("<pool type='dir'><name>ocp43</name><target><path>%s/pool</path></target></pool>", folder(t)), 0)
	must(t, err)
	must(t, a.StoragePoolCreate(pool, 0))
	image, err := os.ReadFile("/usr/lib/ipxe/ipxe.iso")
	must(t, err)
	base, err := a.StorageVolCreateXML(pool, fmt.Sprintf("<volume><name>rhcos-ocp43</name><capacity unit='bytes'>%d</capacity><target><format type='raw'/></target></volume>", len(image)), 0)
	must(t, err)
	must(t, a.StorageVolUpload(base, newReader(image), 0, uint64(len(image)), 0))
	net, err := a.NetworkDefineXML("<network><name>ocp43</name><forward mode='open'/><bridge name='virbr43' stp='off' delay='0'/><ip address='192.168.126.1' netmask='255.255.255.0'><dhcp><range start='192.168.126.2' end='192.168.126.254'/></dhcp></ip></network>")
	must(t, err)
	must(t, a.NetworkCreate(net))
}

// signal sends the daemon a signal.
func signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder(t), "libvirtd.pid"))
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(t, err)
	must(t, syscall.Kill(pid, s))
}

func eventually(t *testing.T, what string, within time.Duration, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !cond(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
