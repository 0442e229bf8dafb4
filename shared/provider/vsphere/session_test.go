// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
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
