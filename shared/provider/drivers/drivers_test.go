// SPDX-License-Identifier: Apache-2.0

package drivers

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A cloud that offers no TLS 1.2 is asked nothing, whatever its certificate; one that does is asked (RELIABILITY §4).
func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	table, err := Table(&rest.Config{Host: "http://127.0.0.1:1"}) // which nobody asks
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"aws", "openstack", "ovirt", "vsphere"} {
		p := table[slices.IndexFunc(table, func(p provider.Provider) bool { return p.Name == name })]
		for version, ok := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true} {
			t.Run(name+" "+tls.VersionName(version), func(t *testing.T) {
				t.Parallel()
				var asked atomic.Int32
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					asked.Add(1)
					w.WriteHeader(http.StatusTeapot)
				}))
				s.Config.ErrorLog = log.New(io.Discard, "", 0)
				s.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: version} //nolint:gosec // the point
				s.StartTLS()
				t.Cleanup(s.Close)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				d, err := p.Open(ctx, accountAt(t, name, s))
				if err != nil {
					t.Fatal(err)
				}
				_, err = d.List(ctx)
				if old := strings.Contains(fmt.Sprint(err), "protocol version"); err == nil || old == ok || asked.Load() > 0 != ok {
					t.Errorf("asked %d times: %v", asked.Load(), err)
				}
			})
		}
	}
}

// accountAt returns an account whose cloud is a server, and proves it.
func accountAt(t *testing.T, name string, s *httptest.Server) provider.Account {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	a := provider.Account{ClusterID: "c", Region: "east", Namespace: "n", Secret: "s"}
	switch name {
	case "aws":
		a.Credentials = map[string][]byte{"aws_access_key_id": []byte("a"), "aws_secret_access_key": []byte("b"), "aws_endpoint_url": []byte(s.URL), "aws_ca_bundle": ca}
	case "libvirt": // whose keys are read, and kept by nobody
		a.Region = "qemu+tls://" + s.Listener.Addr().String() + "/system"
		a.Credentials = map[string][]byte{"uris": []byte(a.Region), "ca.crt": ca, "canary": []byte("b")}
	case "azure": // whose hosts nobody chooses
		id := []byte("2f9bb1a5-7e40-4d0c-8f0e-5a1e6a1f2b3c")
		a.Credentials = map[string][]byte{"azure_subscription_id": id, "azure_tenant_id": id, "azure_client_id": id, "azure_client_secret": []byte("b"), "azure_resourcegroup": []byte("g")}
	case "openstack":
		a.Region = "openstack"
		a.Credentials = map[string][]byte{"cacert": ca, "clouds.yaml": []byte("clouds: {openstack: {auth: {auth_url: '" + s.URL + "', username: a, password: b, project_name: c}}}")}
	case "ovirt":
		a.Region = ""
		a.Credentials = map[string][]byte{"ovirt_url": []byte(s.URL + "/ovirt-engine/api"), "ovirt_username": []byte("a"), "ovirt_password": []byte("b"), "ovirt_ca_bundle": ca}
	case "vsphere":
		a.Region = host + ":" + port
		a.Credentials = map[string][]byte{host + ".username": []byte("a"), host + ".password": []byte("b"), host + ".port": []byte(port), host + ".ca": ca}
	}
	return a
}
