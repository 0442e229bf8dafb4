// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// running is a Pod as a kubelet leaves it behind.
func running(name, node, cpu string) *corev1.Pod {
	requests := func() corev1.ResourceList { return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)} }
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "ns", Labels: map[string]string{"app": "web"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		Annotations:     map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true", "example.com/network-status": "large"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}},
	}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "nginx", Env: []corev1.EnvVar{{Name: "a"}}, Resources: corev1.ResourceRequirements{Requests: requests()}}}
	p.Spec.Volumes = []corev1.Volume{
		{Name: "kube-api-access-" + name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", ImageID: "sha256", AllocatedResources: requests(), Resources: &corev1.ResourceRequirements{Requests: requests()}}}
	return p
}

func TestTrimSharesWhatIsEqual(t *testing.T) {
	t.Parallel()
	var c snapshot.Commons
	a, b, other := running("a", "n1", "1"), running("b", "n2", "1"), running("c", "n1", "2")
	for _, p := range []*corev1.Pod{a, b, other} {
		c.Trim(p)
	}
	if &a.Spec.Containers[0] != &b.Spec.Containers[0] || &a.Spec.Volumes[0] != &b.Spec.Volumes[0] || &a.OwnerReferences[0] != &b.OwnerReferences[0] {
		t.Error("equal pods share nothing")
	}
	if a.Spec.NodeName != "n1" || b.Spec.NodeName != "n2" {
		t.Errorf("on nodes %s, %s", a.Spec.NodeName, b.Spec.NodeName)
	}
	if cpu := other.Spec.Containers[0].Resources.Requests.Cpu(); cpu.Value() != 2 {
		t.Errorf("another pod asks for %v", cpu)
	}
	if len(a.Annotations) != 1 || a.ManagedFields != nil || a.Spec.Containers[0].Image != "" || len(a.Spec.Volumes) != 1 || a.Status.PodIP != "" {
		t.Errorf("is not trimmed: %v", a)
	}
	if len(a.Status.Conditions) != 2 || len(a.Status.ContainerStatuses) != 0 {
		t.Errorf("status %v", a.Status)
	}
}

// Whoever may make a Pod must not take an annotation off another's: the API server lets any byte be in a value, a zero as well.
func TestTrimSharesNothingThatReadsAlike(t *testing.T) {
	t.Parallel()
	var c snapshot.Commons
	const first, second = "cluster-autoscaler.kubernetes.io/enable-ds-eviction", "cluster-autoscaler.kubernetes.io/safe-to-evict"
	crafted, victim := running("a", "n1", "1"), running("b", "n2", "1")
	crafted.Annotations = map[string]string{first: "x\x00" + second + "\x00false"}
	victim.Annotations = map[string]string{first: "x", second: "false"}
	c.Trim(crafted)
	c.Trim(victim)
	if victim.Annotations[second] != "false" {
		t.Errorf("the other pod has %q", victim.Annotations)
	}
}

func TestTrimKeepsAResizeThatIsUnderWay(t *testing.T) {
	t.Parallel()
	var c snapshot.Commons
	p := running("a", "n1", "1")
	p.Status.ContainerStatuses[0].AllocatedResources[corev1.ResourceCPU] = resource.MustParse("3")
	c.Trim(p)
	if st := p.Status.ContainerStatuses; len(st) != 1 || st[0].AllocatedResources.Cpu().Value() != 3 || st[0].Resources.Requests.Cpu().Value() != 1 || st[0].ImageID != "" {
		t.Errorf("status %v", st)
	}
}

// Of a Pod without a place is kept what the scheduler says, within bounds: the Pod is told of it where nothing else says why (SPEC W3).
func TestTrimKeepsTheSchedulersWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind       corev1.PodConditionType
		status     corev1.ConditionStatus
		says, want string
	}{
		{corev1.PodScheduled, corev1.ConditionFalse, "no storage", "no storage"},
		{corev1.PodScheduled, corev1.ConditionFalse, strings.Repeat("n", 399) + "ä…", strings.Repeat("n", 399)},
		{corev1.PodScheduled, corev1.ConditionTrue, "bound", ""},
		{corev1.PodReady, corev1.ConditionFalse, "containers with unready status", ""},
	} {
		var c snapshot.Commons
		p := running("a", "", "1")
		p.Status.Conditions = []corev1.PodCondition{{Type: tt.kind, Status: tt.status, Message: tt.says}}
		c.Trim(p)
		if got := p.Status.Conditions[0].Message; got != tt.want {
			t.Errorf("%s %s: kept %q, want %q", tt.kind, tt.status, got, tt.want)
		}
	}
}

func TestTrimOfANode(t *testing.T) {
	t.Parallel()
	var c snapshot.Commons
	node := func() *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"k8s.ovn.org/x": "large", "machine.openshift.io/scale-down-reason": "why"}}}
		n.Spec.Taints = []corev1.Taint{{Key: "a"}}
		n.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), Message: "posting"}}
		return n
	}
	n, other := node(), node()
	c.Trim(n)
	c.Trim(other)
	if len(n.Annotations) != 1 || n.Status.Images != nil || len(n.Spec.Taints) != 1 || n.Status.Conditions[0].Message != "" {
		t.Errorf("node %v", n)
	}
	if n.Status.Allocatable.Cpu().Value() != 4 || n.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("status %v", n.Status)
	}
}

func TestHoldReplacesAKindAlone(t *testing.T) {
	t.Parallel()
	var s snapshot.Snapshot
	s.Add(running("old", "n", "1"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	s.Hold(snapshot.All("Pod"), nil)
	if len(s.Pods) != 0 || len(s.Nodes) != 1 {
		t.Errorf("pods %v, nodes %v", s.Pods, s.Nodes)
	}
	q := snapshot.Query{Kind: "Pod", Namespace: "ns"}
	s.Hold(q, nil)
	s.Add(running("b", "n", "1"))
	elsewhere := running("a", "n", "1")
	elsewhere.Namespace = "elsewhere"
	s.Add(elsewhere)
	s.Hold(q, nil)
	if len(s.Pods) != 1 || s.Pods[0] != elsewhere {
		t.Errorf("pods %v", s.Pods)
	}
}
