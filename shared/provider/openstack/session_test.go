// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"net/http"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Clouds keep the credentials of their instances at link-local addresses: no clouds.yaml and no catalog leads there.
func TestNoCloudIsAskedAtALinkLocalAddress(t *testing.T) {
	t.Parallel()
	wire, err := dial(&cloud{})
	if err != nil {
		t.Fatal(err)
	}
	transport, ok := wire.(*http.Transport)
	if !ok {
		t.Fatalf("dial = %T", wire)
	}
	_, err = transport.DialContext(t.Context(), "tcp", "169.254.169.254:80")
	if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "link-local") {
		t.Errorf("169.254.169.254: %v", err)
	}
}
