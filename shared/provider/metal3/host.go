// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"cmp"
	"strings"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// How a host says whose it is.
const (
	consumerKind    = "Machine"
	consumerGroup   = "machine.openshift.io/"
	consumerVersion = consumerGroup + "v1beta1"

	annotationCluster = machine.LabelCluster
	annotationMark    = "machine.openshift.io/cluster-uid"
	annotationToken   = "machine.openshift.io/provision-token"
)

// isMachine reports whether a consumer is a Machine, of whichever version.
func isMachine(ref *corev1.ObjectReference) bool {
	return ref != nil && ref.Kind == consumerKind && strings.HasPrefix(ref.APIVersion, consumerGroup)
}

// isOurs reports whether a consumer is a Machine of ours, with that UID.
func isOurs(ref *corev1.ObjectReference, uid string) bool {
	return isMachine(ref) && string(ref.UID) == uid
}

// id names a claim of a host, not the host: what was claimed by another Machine meanwhile is another instance.
func id(h host) string { return h.Name + "/" + string(h.Spec.ConsumerRef.UID) }

func (d *driver) instances(hosts []host) []provider.Instance {
	var all []provider.Instance
	for _, h := range hosts {
		all = append(all, d.instance(h))
	}
	return all
}

// instance returns a host as an instance (SPEC E34); type, region and zone it has none (S54).
func (d *driver) instance(h host) provider.Instance {
	in := provider.Instance{
		ID: h.Name, ProviderID: providerIDOf(h), State: state(h), CloudState: string(h.Status.Provisioning.State),
		ClusterUID: types.UID(h.Annotations[annotationMark]), Token: h.Annotations[annotationToken], Message: trouble(h), Addresses: addresses(h),
		Power: power(h), Created: h.Status.OperationHistory.Provision.Start.Time,
	}
	in.Again = in.State == provider.StateDeleting && !busy(h)
	in.CloudState = cmp.Or(in.CloudState, string(metal3v1alpha1.StateRegistering))
	if ref := h.Spec.ConsumerRef; ref != nil {
		in.Name = ref.Name
		if d.ours(h) {
			in.ID, in.UID, in.Sole = id(h), ref.UID, true // a claim is its Machine's, also when the host was made anew
		}
	}
	return in
}

// state is where a claimed host is on its way (SPEC E32, E33, E35). An error is no end: the operator tries again. Nobody looks whether a
// host that is left alone is off since it is held: its status may be of before.
func state(h host) provider.State {
	if h.DeletionTimestamp != nil || !deployed(h) {
		return provider.StateDeleting
	}
	switch h.Status.Provisioning.State { //nolint:exhaustive // every other state is one on the way
	case metal3v1alpha1.StateProvisioned, metal3v1alpha1.StateExternallyProvisioned:
		if !h.Status.PoweredOn && (!h.Spec.Online || held(h)) && !(held(h) && unattended(h) != "") {
			return provider.StateStopped
		}
		return provider.StateRunning
	case metal3v1alpha1.StateUnmanaged:
		return provider.StateRunning
	case metal3v1alpha1.StateRegistering: // again: the operator lost its provisioner's record
		if written(h) {
			return provider.StateRunning
		}
	case metal3v1alpha1.StateDeprovisioning:
		if written(h) {
			return provider.StateDeleting
		}
	case metal3v1alpha1.StateDeleting, metal3v1alpha1.StatePoweringOffBeforeDelete:
		return provider.StateDeleting
	}
	return provider.StatePending
}

// written reports whether something was on the host's disks as a whole. Where writing it failed the operator cleans the host, which
// takes minutes, and writes it again: that is no end (SPEC E35).
func written(h host) bool {
	p := h.Status.Provisioning
	return p.Image.URL != "" || p.CustomDeploy != nil
}

// trouble is why a host does not get on, in the operator's words, or because people told the operator to leave it alone.
func trouble(h host) string { return cmp.Or(h.Status.ErrorMessage, unattended(h)) }

// unattended says that people told the operator to leave a host alone; empty if nobody did.
func unattended(h host) string {
	if _, paused := h.Annotations[metal3v1alpha1.PausedAnnotation]; paused {
		return "the host is paused: nothing happens to it while annotation " + metal3v1alpha1.PausedAnnotation + " is there"
	}
	if _, detached := h.Annotations[metal3v1alpha1.DetachedAnnotation]; detached {
		return "the host is detached: nothing happens to it while annotation " + metal3v1alpha1.DetachedAnnotation + " is there"
	}
	return ""
}

// deployed reports whether something is, or shall be, on the host's disks.
func deployed(h host) bool {
	return h.Spec.Image != nil || h.Spec.CustomDeploy != nil || h.Spec.ExternallyProvisioned ||
		h.Status.Provisioning.State == metal3v1alpha1.StateUnmanaged
}

// addresses returns what inspection found.
func addresses(h host) []corev1.NodeAddress {
	var all []corev1.NodeAddress
	found := h.Status.HardwareDetails
	if found == nil {
		return nil
	}
	for _, nic := range found.NIC {
		if nic.IP != "" {
			all = append(all, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: nic.IP})
		}
	}
	if found.Hostname != "" {
		all = append(all,
			corev1.NodeAddress{Type: corev1.NodeHostName, Address: found.Hostname},
			corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: found.Hostname})
	}
	return all
}
