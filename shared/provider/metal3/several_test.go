// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"testing"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// runs makes a host that of a consumer, with an image that is on it.
func runs(t *testing.T, s *stock, name string, consumer corev1.ObjectReference) {
	t.Helper()
	s.change(t, name, func(h *host) {
		h.Spec.ConsumerRef, h.Spec.Image = &consumer, &metal3v1alpha1.Image{URL: "http://192.0.2.9/a"}
		h.Status.Provisioning.State = metal3v1alpha1.StateProvisioned
	})
}

// RELIABILITY R-B33, 2b.9: a Machine that has come to two hosts is gone when both are, whichever goes last.
func TestOneOfTwoHostsIsStillThere(t *testing.T) {
	t.Parallel()
	for _, clean := range []string{"host-0", "host-1"} {
		s := newStock(2)
		for name := range s.hosts {
			runs(t, s, name, corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Namespace: "machines", Name: worker.Name, UID: worker.UID})
		}
		s.change(t, clean, func(h *host) {
			h.Spec.Image, h.Spec.Online, h.Status.PoweredOn = nil, false, false
			h.Status.Provisioning.State = metal3v1alpha1.StateAvailable
		})
		if err := open(t, s).Delete(t.Context(), worker); err != nil || s.hosts[clean].Spec.ConsumerRef != nil {
			t.Errorf("%s is let go, the other runs: Delete = %v", clean, err)
		}
	}
}

// SPEC E30: of two hosts that another actuator gave to a Machine of this name, the one that is on record is the Machine's. The
// other may be that of the Machine before it.
func TestTheOtherHostOfANameIsLetBe(t *testing.T) {
	t.Parallel()
	s := newStock(2)
	for name := range s.hosts {
		runs(t, s, name, corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Namespace: "machines", Name: worker.Name})
	}
	d, r := open(t, s), worker
	r.ProviderID = providerIDOf(s.hosts["host-1"])
	if found, err := d.Find(t.Context(), r); err != nil || len(found) != 1 || found[0].ProviderID != r.ProviderID {
		t.Errorf("Find = %+v, %v", found, err)
	}
	if err := d.Delete(t.Context(), r); err != nil || s.hosts["host-0"].Spec.Image == nil || s.hosts["host-1"].Spec.Image != nil {
		t.Errorf("Delete = %v, and the hosts are %+v", err, s.hosts)
	}
}

// What would hold a host off that is on its way out comes too late: its next Machine would have to wait for somebody to notice.
func TestAHostOnItsWayOutIsNotHeldOff(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	runs(t, s, "host-0", corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Namespace: "machines", Name: worker.Name, UID: worker.UID})
	s.change(t, "host-0", func(h *host) { h.Spec.Image = nil })
	d, ok := open(t, s).(*driver)
	if !ok {
		t.Fatal("it is no driver of this package")
	}
	for what, err := range map[string]error{"PowerOff": d.PowerOff(t.Context(), worker), "PowerCycle": d.PowerCycle(t.Context(), worker)} {
		if provider.CodeOf(err) != provider.NotFound || s.writes != 0 {
			t.Errorf("%s = %v after %d writes", what, err, s.writes)
		}
	}
}
