// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// custom reports whether a kind is a custom resource.
func custom(r plan.Resource) bool { return strings.HasSuffix(r.Group.Group, ".openshift.io") }

// counted reports whether the server counts the generations of a kind.
func counted(k plan.Kind) bool {
	switch k {
	case "Node", "Namespace", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode", "VolumeAttachment",
		"CertificateSigningRequest":
		return false
	default:
		return true
	}
}

// begin fills in defaults that functions rely on, and the status that the server itself gives to a new object.
func begin(o plan.Object) {
	withDefaults(o)
	switch o := o.(type) {
	case *corev1.Pod:
		o.Status.Phase = corev1.PodPending
	case *corev1.PersistentVolume:
		o.Status.Phase = corev1.VolumePending
	case *corev1.PersistentVolumeClaim:
		o.Status.Phase = corev1.ClaimPending
	}
}

// dated says when the conditions of a signing request came, where that is not said: as the server does.
func (s *Server) dated(o *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	for i := range o.Status.Conditions {
		c := &o.Status.Conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = metav1.NewTime(s.now())
		}
		if c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = c.LastUpdateTime
		}
	}
	return o
}

func withDefaults(o plan.Object) {
	switch o := o.(type) {
	case *machine.MachineHealthCheck:
		fill(&o.Spec.MaxUnhealthy, intstr.FromString("100%"))
		fill(&o.Spec.NodeStartupTimeout, metav1.Duration{Duration: 10 * time.Minute})
	case *corev1.Pod:
		fill(&o.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	}
}

func fill[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}
