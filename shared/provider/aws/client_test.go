// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"encoding/pem"
	"net/http"
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

// No endpoint leads to where [throttle.Dialer] asks nobody, here the API server's address: without its rules a server of the test's
// own would be reached (RELIABILITY §4).
func TestNoEndpointIsTheAPIServer(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	a := provider.Account{Region: "r", ClusterID: "c", Namespace: "n", Secret: "s", Credentials: map[string][]byte{
		"aws_access_key_id": []byte("AKIAEXAMPLE"), "aws_secret_access_key": []byte("secret"), "aws_endpoint_url": []byte(s.URL),
	}}
	d, err := open(a, nil)
	must(t, err)
	if _, err = d.List(t.Context()); provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "API server") {
		t.Errorf("%v: %v", provider.CodeOf(err), err)
	}
}

// What an editor, or echo, put around a key is no part of it.
func TestWhiteSpaceAroundKeys(t *testing.T) {
	t.Parallel()
	keys := map[string][]byte{
		"aws_access_key_id": []byte("AKIAEXAMPLE\n"), "aws_secret_access_key": []byte(" secret\r\n"),
		"aws_session_token": []byte("token\n"), "aws_endpoint_url": []byte("https://ec2.test\n"),
	}
	a := provider.Account{Region: "r", Namespace: "n", Secret: "s", Credentials: keys}
	c, err := connect(a)
	must(t, err)
	got, err := c.keys.Retrieve(t.Context())
	must(t, err)
	if got.AccessKeyID != "AKIAEXAMPLE" || got.SecretAccessKey != "secret" || got.SessionToken != "token" || *c.endpoint != "https://ec2.test" {
		t.Errorf("read as %+v, %q", got, *c.endpoint)
	}
	keys["aws_secret_access_key"] = []byte("\n")
	if _, err := connect(a); provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "has no key aws_secret_access_key") {
		t.Errorf("of an empty key: %v", err)
	}
}

// What stands before the host of an endpoint, or after its path, may be secret, and messages tell the endpoint.
func TestEndpointHoldsNoSecret(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"https://admin:canary@cloud.test/", "https://canary@cloud.test", "https://cloud.test/?token=canary", "https://cloud.test/#canary"} {
		_, err := connect(provider.Account{Region: "r", Namespace: "n", Secret: "s", Credentials: map[string][]byte{
			"aws_access_key_id": []byte("AKIAEXAMPLE"), "aws_secret_access_key": []byte("secret"), "aws_endpoint_url": []byte(endpoint),
		}})
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "key aws_endpoint_url") || strings.Contains(err.Error(), "canary") {
			t.Errorf("of %s: %v", endpoint, err)
		}
	}
}
