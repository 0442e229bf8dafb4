// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func asking(name, cpu string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": "web"}}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	return p
}

// A World of Pods that were looked at already is the one that looks at each itself.
func TestBriefsSayWhatPodsSay(t *testing.T) {
	t.Parallel()
	a, keepsAway, withClaim, resized, early := asking("a", "1"), asking("b", "1"), asking("c", "1"), asking("d", "1"), asking("e", "1")
	b := a.DeepCopy()
	b.Name, b.Spec.Containers = "a2", a.Spec.Containers // as trimmed Pods share them
	keepsAway.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, TopologyKey: corev1.LabelHostname},
	}}}
	withClaim.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	resized.Spec.Containers = a.Spec.Containers
	resized.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")},
		Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}}
	early.Spec.Containers = a.Spec.Containers
	early.Spec.InitContainers = asking("", "5").Spec.Containers
	node := Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelHostname: "n"}}}, Pods: []*corev1.Pod{a, b, keepsAway, withClaim, resized, early}}
	var looked Briefs
	briefed := node
	for _, p := range node.Pods {
		briefed.Briefs = append(briefed.Briefs, looked.Of(p))
	}
	want, got := NewWorld([]Node{node}, nil, nil), NewWorld([]Node{briefed}, nil, nil)
	if got.used[0] != want.used[0] || want.used[0][0] != 12_000 || got.used[0][podsAxis] != 6 {
		t.Errorf("used %v, want %v", got.used, want.used)
	}
	if len(got.far) != 1 || len(want.far) != 1 || !slices.Equal(got.claims["ns/data"], want.claims["ns/data"]) || len(got.claims) != 1 {
		t.Errorf("apart %v, claims %v, want %v, %v", got.far, got.claims, want.far, want.claims)
	}
	briefed.Pods = briefed.Pods[:2] // no longer the Pods that were looked at
	if got := NewWorld([]Node{briefed}, nil, nil).used[0]; got[0] != 2000 {
		t.Errorf("used %v", got)
	}
}

// What is shared decides about items only where all of it is.
func TestMoverTellsPodsApartThatShareContainers(t *testing.T) {
	t.Parallel()
	a := asking("a", "1")
	same, tolerant, elsewhere, urgent, own := *a, *a, *a, *a, *a
	same.Name = "same"
	tolerant.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	elsewhere.Namespace = "elsewhere"
	urgent.Spec.Priority = new(int32(5))
	own.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	other := own
	other.Name = "other"
	pods := []*corev1.Pod{a, &same, &tolerant, &elsewhere, &urgent, &own, &other}
	node := Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, Pods: pods}
	m := NewWorld([]Node{node}, nil, nil).NewMover(map[int][]*corev1.Pod{0: pods}, nil)
	var items []int
	for _, p := range pods {
		items = append(items, m.known[p])
	}
	if diff := cmp.Diff([]int{0, 0, 1, 2, 3, 4, 5}, items); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}
