// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"testing"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Nothing of a Machine is left on a host that is let go: the next one would start with it, or with its secret (2b.9).
func TestAHostThatIsLetGoCarriesNothing(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*host){
		"a way to deploy": func(h *host) {
			h.Spec.UserData, h.Spec.CustomDeploy = nil, &metal3v1alpha1.CustomDeploy{Method: "install"}
		},
		"user data": func(h *host) { h.Spec.UserData = &corev1.SecretReference{Name: "worker-user-data"} },
	} {
		s := newStock(1)
		d, spec := open(t, s), specOf(image)
		if _, err := d.Create(t.Context(), chosen(t, d, worker, spec), spec); err != nil {
			t.Fatal(err)
		}
		s.change(t, "host-0", func(h *host) { leave(h); h.Spec.Image, h.Spec.Online = nil, false })
		err := d.Delete(t.Context(), worker)
		if h := s.hosts["host-0"]; err != nil && provider.CodeOf(err) != provider.NotFound || h.Spec.CustomDeploy != nil || h.Spec.UserData != nil {
			t.Errorf("%s: %v; the host is %+v", name, err, h.Spec)
		}
	}
}
