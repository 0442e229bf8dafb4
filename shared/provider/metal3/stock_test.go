// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"slices"
	"testing"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// SPEC E37: what Create would claim is free; what a Machine has is taken, also while it is cleaned, and whatever its labels
// say by now; what others have is neither.
func TestStock(t *testing.T) {
	t.Parallel()
	s := newStock(6)
	d := open(t, s)
	spec := specOf(image + `, "hostSelector": {"matchLabels": {"role": "worker"}}`)
	if _, err := d.Create(t.Context(), chosen(t, d, worker, spec), spec); err != nil {
		t.Fatal(err)
	}
	var free []string
	for name, h := range s.hosts {
		if h.Spec.ConsumerRef == nil {
			free = append(free, name)
		} else {
			s.change(t, name, func(h *host) { h.Labels = nil })
		}
	}
	slices.Sort(free)
	s.change(t, free[0], func(h *host) { h.Labels["role"] = "storage" })
	s.change(t, free[1], func(h *host) { h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Metal3Machine", Name: "foreign"} })
	s.change(t, free[2], func(h *host) { h.Status.Provisioning.State = metal3v1alpha1.StateInspecting })
	want := provider.Stock{Free: 2, Taken: []string{worker.Name}}
	for _, removing := range []bool{false, true} {
		if removing {
			if err := d.Delete(t.Context(), worker); err != nil {
				t.Fatal(err)
			}
		}
		got, err := d.(provider.Stocked).Stock(t.Context(), spec)
		if err != nil || got.Free != want.Free || !slices.Equal(got.Taken, want.Taken) {
			t.Errorf("removing %v: stock %+v, %v, want %+v", removing, got, err, want)
		}
	}
	if _, err := d.(provider.Stocked).Stock(t.Context(), specOf(`"imagge": {}`)); provider.CodeOf(err) != provider.Invalid {
		t.Errorf("a spec that cannot be read: %v", err)
	}
}
