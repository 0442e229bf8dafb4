// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Whatever stands in a Machine for what was chosen and resolved: a step is made or refused, and no host of somebody else is touched.
func FuzzCreate(f *testing.F) {
	f.Add([]byte(nil), []byte(specOf(image)))
	f.Add([]byte(`{"host":"host-0","uid":"uid-host-0","version":"1"}`), []byte(specOf(image)))
	f.Add([]byte(`{"host":"host-1","uid":"uid-host-1","version":"2"}`), []byte(specOf(image)))
	f.Add([]byte(`{"host":"../host-0","uid":7}`), []byte(specOf(image+`, "hostSelector": {"matchExpressions": [{"key": "a", "operator": "in"}]}`)))
	f.Add([]byte(`null`), []byte(`null`))
	f.Add([]byte(`[`), []byte(specOf(image+`, "userData": {"name": "a", "namespace": "other"}`)))
	f.Fuzz(func(t *testing.T, progress, resolved []byte) {
		s := newStock(2)
		s.change(t, "host-1", func(h *host) { h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Metal3Machine", Name: "theirs"} })
		version := s.hosts["host-1"].ResourceVersion
		r := worker
		r.Progress = progress
		in, err := open(t, s).Create(t.Context(), r, resolved)
		claimed := s.hosts["host-0"].Spec.ConsumerRef
		switch {
		case s.hosts["host-1"].ResourceVersion != version:
			t.Errorf("host-1 was written to: %+v", s.hosts["host-1"].Spec)
		case err != nil && (claimed != nil || in.ID != ""):
			t.Errorf("%v, and yet %+v", err, in)
		case err == nil && in.State == provider.StateIncomplete && (claimed != nil || !json.Valid(in.Progress)):
			t.Errorf("the first step is %+v, the host is of %+v", in, claimed)
		case err == nil && in.State != provider.StateIncomplete && (claimed == nil || claimed.UID != worker.UID || in.UID != worker.UID):
			t.Errorf("the instance is %+v, the host is of %+v", in, claimed)
		}
	})
}
