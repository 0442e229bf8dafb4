// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A vCenter whose certificate the Secret's authority did not sign is not spoken to, and a person must act: the error says
// at which key of which Secret to look, and nobody asks again for a minute.
func TestCertificateIsNotTheSecrets(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	stranger := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(stranger.Close)
	for name, ca := range map[string][]byte{
		"none": nil, "another's": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: stranger.Certificate().Raw}),
	} {
		a := v.account()
		a.Credentials[keyOf(v.host)+".ca"] = ca
		d, w := v.wired(t, a)
		_, listed := d.List(t.Context())
		_, resolved := d.Resolve(t.Context(), v.spec(nil))
		_, found := d.Find(t.Context(), provider.Ref{UID: uuid.NewUUID(), Name: "worker-a"})
		for call, err := range map[string]error{"List": listed, "Resolve": resolved, "Find": found} {
			if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "x509: ") || !strings.Contains(err.Error(), "key "+keyOf(v.host)+".ca in secret machines/vsphere-cloud-credentials") {
				t.Errorf("%s: %s = %v: %v", name, call, provider.CodeOf(err), err)
			}
		}
		if len(w.sent) != 1 {
			t.Errorf("%s: asked %v", name, w.sent)
		}
	}
}

// Where no vCenter is, none is asked, over TLS neither: the SDK dials by itself unless it is told not to (RELIABILITY 4).
func TestAPIServerIsNoVCenter(t *testing.T) {
	v := newVCenter(t)
	host, _, err := net.SplitHostPort(v.host)
	must(t, err)
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	d, w := v.wired(t, v.account())
	_, err = d.List(t.Context())
	if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "API server") {
		t.Errorf("List = %v after %v, want none", err, w.sent)
	}
}

// A spec's sizes are told one by one, and the template by the name that the list has (E28).
func TestSpecStatesSomeOfItsSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]provider.InstanceType{
		`{"kind":"VSphereMachineProviderSpec","template":"/DC0/vm/rhcos","numCPUs":16}`:                      {Name: "rhcos", Arch: arch, MilliCPU: 16000},
		`{"kind":"VSphereMachineProviderSpec","template":"rhcos","memoryMiB":8192}`:                          {Name: "rhcos", Arch: arch, Memory: 8 << 30},
		`{"kind":"VSphereMachineProviderSpec","template":"rhcos","numCPUs":4,"memoryMiB":8192,"diskGiB":50}`: {Name: "rhcos", Arch: arch, MilliCPU: 4000, Memory: 8 << 30, Disk: 50 << 30},
		`{"kind":"VSphereMachineProviderSpec"}`:                                                              {Arch: arch},
	} {
		if got, err := instanceType([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
}
