// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// An endpoint whose certificate the Secret's authorities did not sign is not spoken to, and a person must act: the error
// says at which key of which Secret to look.
func TestCertificateIsNotTheSecrets(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(&ec2.Cloud{})
	t.Cleanup(s.Close)
	a := region{s}.account()
	d, err := open(a, nil)
	must(t, err)
	_, listed := d.List(t.Context())
	_, resolved := d.Resolve(t.Context(), spec(nil))
	for call, err := range map[string]error{"List": listed, "Resolve": resolved} {
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "x509: ") || !strings.Contains(err.Error(), "key aws_ca_bundle in secret machines/aws-cloud-credentials") {
			t.Errorf("%s = %v: %v", call, provider.CodeOf(err), err)
		}
	}
	a.Credentials["aws_ca_bundle"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	d, err = open(a, nil)
	must(t, err)
	_, err = d.List(t.Context())
	must(t, err)
}
