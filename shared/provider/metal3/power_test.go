// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"testing"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// SPEC E36: which hosts can be held off, and when one is off. A host that the operator only ever restarts would be restarted
// again and again.
func TestPower(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*host)
		want   provider.Power
		state  provider.State
	}{
		"it runs":                {func(*host) {}, provider.PowerOn, provider.StateRunning},
		"it was asked to be off": {hold, provider.PowerHeld, provider.StateRunning},
		"it is off":              {func(h *host) { hold(h); h.Status.PoweredOn = false }, provider.PowerHeld, provider.StateStopped},
		"it is paused as it was off": {func(h *host) {
			hold(h)
			h.Annotations[metal3v1alpha1.PausedAnnotation], h.Status.PoweredOn = "", false
		}, provider.PowerHeld, provider.StateRunning},
		"it is detached as it was off": {func(h *host) {
			hold(h)
			h.Annotations[metal3v1alpha1.DetachedAnnotation], h.Status.PoweredOn = "", false
		}, provider.PowerHeld, provider.StateRunning},
		"it lost its power by itself":  {func(h *host) { h.Status.PoweredOn = false }, provider.PowerOn, provider.StateRunning},
		"it is off on purpose":         {func(h *host) { h.Spec.Online, h.Status.PoweredOn = false, false }, "", provider.StateStopped},
		"it shall be off":              {func(h *host) { h.Spec.Online = false }, "", provider.StateRunning},
		"it is only ever restarted":    {func(h *host) { h.Spec.DisablePowerOff = true }, "", provider.StateRunning},
		"nobody can reach its power":   {func(h *host) { h.Spec.BMC.Address = "" }, "", provider.StateRunning},
		"it is still being written":    {func(h *host) { h.Status.Provisioning.State = metal3v1alpha1.StateProvisioning }, "", provider.StatePending},
		"somebody else has it powered": {func(h *host) { h.Annotations = map[string]string{"reboot.metal3.io/other": ""} }, provider.PowerOn, provider.StateRunning},
	} {
		h := free(0)
		h.Spec.Image = &metal3v1alpha1.Image{URL: "http://192.0.2.9/a"}
		h.Status.Provisioning.State = metal3v1alpha1.StateProvisioned
		tt.change(&h)
		if got := power(h); got != tt.want || state(h) != tt.state {
			t.Errorf("%s: power %q of one that is %s, want %q, %s", name, got, state(h), tt.want, tt.state)
		}
	}
}

func hold(h *host) { h.Annotations = map[string]string{annotationHold: hardReboot} }

// Nothing that held a host off stays with it when it is let go: its next Machine would never start.
func TestReleasedHostIsNotHeldOff(t *testing.T) {
	t.Parallel()
	s := newStock(0)
	id, claimed := s.untagged()
	s.change(t, "host-99", func(h *host) { hold(h); h.Spec.DisablePowerOff, h.Spec.BMC.Address = true, "" })
	if err := open(t, s).Delete(t.Context(), provider.Ref{UID: "master-uid", Name: "master-0", ProviderID: id}); provider.CodeOf(err) != provider.NotFound || claimed() || len(s.hosts["host-99"].Annotations) != 0 {
		t.Errorf("Delete = %v, left %v", err, s.hosts["host-99"].Annotations)
	}
}

// What held a host off for a Machine that people took it from is nobody's: the next Machine takes it off with its claim, and starts.
func TestClaimedHostIsNotHeldOff(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	s.change(t, "host-0", hold)
	d, spec := open(t, s), specOf(image)
	if _, err := d.Create(t.Context(), chosen(t, d, worker, spec), spec); err != nil {
		t.Fatal(err)
	}
	if h := s.hosts["host-0"]; h.Spec.ConsumerRef == nil || held(h) {
		t.Errorf("consumer %+v, annotations %v", h.Spec.ConsumerRef, h.Annotations)
	}
}
