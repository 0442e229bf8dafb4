// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// No clouds.yaml and no catalog leads to where [throttle.Dialer] asks nobody, here the API server's address: without its rules a
// server of the test's own would be reached (RELIABILITY §4).
func TestNoCloudIsAskedAtTheAPIServer(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	wire, err := dial(&cloud{})
	if err != nil {
		t.Fatal(err)
	}
	transport, ok := wire.(*http.Transport)
	if !ok {
		t.Fatalf("dial = %T", wire)
	}
	_, err = transport.DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "API server") {
		t.Errorf("%v: %v", s.Listener.Addr(), err)
	}
}
