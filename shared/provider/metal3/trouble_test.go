// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A host that is not deprovisioned, because its BMC does not answer or because people keep the operator from it, says why, so
// that the Machine can (R-L2, SPEC E33).
func TestReleaseThatDoesNotMoveSaysWhy(t *testing.T) {
	t.Parallel()
	annotated := func(key string) func(*host) {
		return func(h *host) { h.Annotations[key] = "" }
	}
	for _, tt := range []struct {
		name, want string
		freeze     func(*host)
	}{
		{"dead BMC", "failed to reach the BMC", func(h *host) {
			h.Status.ErrorType, h.Status.ErrorMessage = metal3v1alpha1.PowerManagementError, "failed to reach the BMC"
		}},
		{"paused", metal3v1alpha1.PausedAnnotation, annotated(metal3v1alpha1.PausedAnnotation)},
		{"detached", metal3v1alpha1.DetachedAnnotation, annotated(metal3v1alpha1.DetachedAnnotation)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStock(1)
				d := open(t, s)
				spec := specOf(image)
				if _, err := d.Create(t.Context(), chosen(t, d, worker, spec), spec); err != nil {
					t.Fatal(err)
				}
				follow(t, d, provider.StateRunning)
				if err := d.Delete(t.Context(), worker); err != nil {
					t.Fatal(err)
				}
				s.change(t, "host-0", func(h *host) {
					h.Status.Provisioning.State = metal3v1alpha1.StateDeprovisioning
					s.moves[h.Name] = time.Now().Add(1000 * time.Hour)
					tt.freeze(h)
				})
				found, err := d.Find(t.Context(), worker)
				if err != nil || len(found) != 1 || !found[0].Going() || !strings.Contains(found[0].Message, tt.want) {
					t.Errorf("found %+v, %v", found, err)
				}
			})
		})
	}
}
