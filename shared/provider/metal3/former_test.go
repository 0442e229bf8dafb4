// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"slices"
	"testing"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// SPEC E33: a claim that is over is of no host any more, also when another actuator gave the host to a Machine of the same name since,
// and says no UID. The sweep removes by such an id.
func TestHostOfAFormerClaimIsLetBe(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	runs(t, s, "host-0", corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Namespace: "machines", Name: worker.Name})
	d, orphan := open(t, s), provider.Ref{ID: "host-0/former-uid", Name: worker.Name}
	if found, err := d.Find(t.Context(), orphan); err != nil || len(found) != 0 {
		t.Errorf("Find = %+v, %v", found, err)
	}
	if err := d.Delete(t.Context(), orphan); provider.CodeOf(err) != provider.NotFound || s.writes != 0 {
		t.Errorf("Delete = %v after %d writes", err, s.writes)
	}
}

// SPEC E30: a claim that names no namespace is of a Machine beside the host. Nobody gets a second host for that.
func TestClaimWithoutANamespaceIsOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newStock(2)
	runs(t, s, "host-0", corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Name: worker.Name})
	if in, err := open(t, s).Create(t.Context(), worker, specOf(image)); err != nil || in.ProviderID != providerIDOf(s.hosts["host-0"]) || s.writes != 0 {
		t.Errorf("Create = %+v, %v after %d writes", in, err, s.writes)
	}
}

// A provider id of another form, which people may write, names no host.
func TestProviderIDOfAnotherFormNamesNoHost(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	runs(t, s, "host-0", corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Namespace: "machines", Name: worker.Name})
	d := open(t, s)
	for _, id := range []string{"baremetalhost:///host-0", "baremetalhost:///", "baremetalhost:///machines/host-0/uid-host-0/more", "aws:///machines/host-0/uid-host-0"} {
		for _, r := range []provider.Ref{{UID: worker.UID, Name: worker.Name, ProviderID: id}, {Name: worker.Name, ProviderID: id}} {
			if found, err := d.Find(t.Context(), r); err != nil || len(found) != 0 {
				t.Errorf("%+v: Find = %+v, %v", r, found, err)
			}
		}
	}
}

// A host is off before its Machine is gone, also where people delete the host: what runs on one that an installer deployed would run on
// beside what takes its place. The operator switches such a host off and deletes it then, whatever comes of that (SPEC E33).
func TestHostThatIsSwitchedOffToBeDeletedIsStillThere(t *testing.T) {
	t.Parallel()
	s := newStock(0)
	id, claimed := s.untagged()
	s.change(t, "host-99", func(h *host) {
		h.DeletionTimestamp, h.Spec.Online = new(metav1.Now()), false
		h.Status.Provisioning.State = metal3v1alpha1.StatePoweringOffBeforeDelete
	})
	d, master := open(t, s), provider.Ref{UID: "master-uid", Name: "master-0", ProviderID: id}
	if err := d.Delete(t.Context(), master); err != nil || !claimed() {
		t.Errorf("while it is switched off: Delete = %v, still claimed: %v", err, claimed())
	}
	if found, err := d.Find(t.Context(), master); err != nil || len(found) != 1 || !found[0].Going() {
		t.Errorf("while it is switched off: Find = %+v, %v", found, err)
	}
	s.change(t, "host-99", func(h *host) { h.Status.Provisioning.State = metal3v1alpha1.StateDeleting })
	if err := d.Delete(t.Context(), master); provider.CodeOf(err) != provider.NotFound || claimed() {
		t.Errorf("while it is deleted: Delete = %v, still claimed: %v", err, claimed())
	}
}

// The last step of a release may be refused as the first one: who waits for the host is told why.
func TestLastStepOfAReleaseThatIsRefusedIsTold(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	runs(t, s, "host-0", corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Namespace: "machines", Name: worker.Name, UID: worker.UID})
	s.change(t, "host-0", func(h *host) {
		h.Spec.Image, h.Spec.Online, h.Status.Provisioning.State = nil, false, metal3v1alpha1.StateAvailable
	})
	s.refuses = map[string]error{"host-0": provider.Errorf(provider.Denied, "told so")}
	if err := open(t, s).Delete(t.Context(), worker); provider.CodeOf(err) != provider.Denied {
		t.Errorf("Delete = %v", err)
	}
}

// What other functions go by: whose attempt a host is, whether it can be held off, and how it is reached. Of what was not found at the
// inspection nothing is told, and nothing is the matter with a host that runs.
func TestWhatIsToldOfAHost(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	runs(t, s, "host-0", corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Namespace: "machines", Name: worker.Name, UID: worker.UID})
	s.change(t, "host-0", func(h *host) {
		h.Annotations = map[string]string{annotationToken: worker.Token}
		h.Status.HardwareDetails = &metal3v1alpha1.HardwareDetails{NIC: []metal3v1alpha1.NIC{{Name: "eth0"}, {IP: "192.0.2.1"}}}
	})
	found, err := open(t, s).Find(t.Context(), worker)
	if err != nil || len(found) != 1 {
		t.Fatalf("Find = %+v, %v", found, err)
	}
	in, want := found[0], []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
	if in.Token != worker.Token || in.Power != provider.PowerOn || in.Message != "" || !slices.Equal(in.Addresses, want) {
		t.Errorf("it is %+v", in)
	}
	s.change(t, "host-0", func(h *host) { h.Status.HardwareDetails = &metal3v1alpha1.HardwareDetails{Hostname: "a.lab"} })
	found, err = open(t, s).Find(t.Context(), worker)
	if want := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "a.lab"}, {Type: corev1.NodeInternalDNS, Address: "a.lab"}}; err != nil || len(found) != 1 || !slices.Equal(found[0].Addresses, want) {
		t.Errorf("Find = %+v, %v", found, err)
	}
}

// SPEC E30: what older operators call ready is free as well.
func TestReadyHostIsFree(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	s.change(t, "host-0", func(h *host) { h.Status.Provisioning.State = metal3v1alpha1.StateReady })
	if in, err := open(t, s).Create(t.Context(), worker, specOf(image)); err != nil || in.State != provider.StateIncomplete {
		t.Errorf("Create = %+v, %v", in, err)
	}
}
