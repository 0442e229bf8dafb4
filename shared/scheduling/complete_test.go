// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The Pods of a DaemonSet that says only limits ask for as much: a new Node has that much less for others (SPEC C14).
func TestLimitsAloneAreRequests(t *testing.T) {
	t.Parallel()
	limited := corev1.ResourceRequirements{Limits: resources("1", "1Gi")}
	for name, spec := range map[string]corev1.PodSpec{
		"of a container":      {Containers: []corev1.Container{{Resources: limited}}},
		"of a sidecar":        {InitContainers: []corev1.Container{{RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Resources: limited}}},
		"of the pod":          {Resources: &limited, Containers: []corev1.Container{{}}},
		"half of a container": {Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: resources("2", "1Gi"), Requests: corev1.ResourceList{corev1.ResourceCPU: resources("1", "1")[corev1.ResourceCPU]}}}}},
	} {
		before := (&corev1.Pod{Spec: spec}).DeepCopy()
		ds := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
		pods := Templates{Daemons: []*appsv1.DaemonSet{ds}}.DaemonPods(&corev1.Node{})
		if len(pods) != 1 {
			t.Fatalf("%s: %d pods", name, len(pods))
		}
		if got := Requests(pods[0]); got.Cpu().String() != "1" || got.Memory().String() != "1Gi" {
			t.Errorf("%s: asks for %v", name, got)
		}
		if got := Requests(&corev1.Pod{Spec: spec}); !same(got, Requests(before)) {
			t.Errorf("%s: the template was modified: %v", name, got)
		}
	}
}

// On the network of its host a container's port is the host's; where the template says another one, that is.
func TestPortsOnTheHostsNetwork(t *testing.T) {
	t.Parallel()
	ports := []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 81, HostPort: 9081}}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Ports: ports}}}
	if got := portsOf(&corev1.Pod{Spec: Complete(spec)}); len(got) != 1 || got[0].number != 9081 {
		t.Errorf("on a network of its own: %v", got)
	}
	spec.HostNetwork = true
	if got := portsOf(&corev1.Pod{Spec: Complete(spec)}); len(got) != 2 || got[0].number != 80 || got[1].number != 9081 {
		t.Errorf("on the host's: %v", got)
	}
	if ports[0].HostPort != 0 {
		t.Error("the template was modified")
	}
}
