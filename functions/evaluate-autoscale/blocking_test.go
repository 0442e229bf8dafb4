// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
)

// The rules in their order: the first decisive one wins (SPEC C67–C75).
func TestWhichPodsBlock(t *testing.T) {
	t.Parallel()
	annotated := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
	}
	of := func(version, kind string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "x", Controller: new(true)}}
		}
	}
	volume := func(v corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: v}} }
	}
	local := volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	system := func(age time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Namespace, p.CreationTimestamp = metav1.NamespaceSystem, metav1.NewTime(epoch.Add(-age))
		}
	}
	for _, tt := range []struct {
		name  string
		made  []func(*corev1.Pod)
		keeps bool // local storage
		want  string
	}{
		{"of a ReplicaSet", nil, false, ""},
		{"of a Job", []func(*corev1.Pod){of("batch/v1", "Job")}, false, ""},
		{"of a StatefulSet", []func(*corev1.Pod){of("apps/v1", "StatefulSet")}, false, ""},
		{"of a ReplicationController", []func(*corev1.Pod){of("v1", "ReplicationController")}, false, ""},
		{"of something else", []func(*corev1.Pod){of("argoproj.io/v1alpha1", "Workflow")}, false, "NotReplicated"},
		{"of a Job of another group", []func(*corev1.Pod){of("batch.volcano.sh/v1alpha1", "Job")}, false, "NotReplicated"},
		{"of a StatefulSet of another group", []func(*corev1.Pod){of("apps.kruise.io/v1beta1", "StatefulSet")}, false, "NotReplicated"},
		{"of a ReplicaSet of another group", []func(*corev1.Pod){of("example.com/v1", "ReplicaSet")}, false, "NotReplicated"},
		{"of nobody", []func(*corev1.Pod){func(p *corev1.Pod) { p.OwnerReferences = nil }}, false, "NotReplicated"},
		{"of nobody, but safe", []func(*corev1.Pod){func(p *corev1.Pod) { p.OwnerReferences = nil }, annotated(safeAnnotation, "true")}, false, ""},
		{"safe beats local storage", []func(*corev1.Pod){local, annotated(safeAnnotation, "true")}, false, ""},
		{"not safe", []func(*corev1.Pod){annotated(safeAnnotation, "false")}, false, "NotSafeToEvictAnnotation"},
		{"on completion", []func(*corev1.Pod){annotated(safeAnnotation, "on-completion")}, false, onCompletion},
		{"emptyDir", []func(*corev1.Pod){local}, false, "LocalStorageRequested"},
		{"emptyDir, where it may", []func(*corev1.Pod){local}, true, ""},
		{"emptyDir that is named", []func(*corev1.Pod){local, annotated(volumesAnnotation, "other,scratch")}, false, ""},
		{"emptyDir in memory", []func(*corev1.Pod){volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})}, false, ""},
		{"hostPath", []func(*corev1.Pod){volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}})}, false, "LocalStorageRequested"},
		{"young in kube-system", []func(*corev1.Pod){system(59 * time.Minute)}, false, "UnmovableKubeSystemPod"},
		{"an hour old in kube-system", []func(*corev1.Pod){system(time.Hour)}, false, ""},
		{"young in kube-system, with a budget", []func(*corev1.Pod){system(time.Minute), func(p *corev1.Pod) { p.Labels = map[string]string{"app": "dns"} }}, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
			of("apps/v1", "ReplicaSet")(p)
			for _, f := range tt.made {
				f(p)
			}
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "dns"}}
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "dns"}}
			sc := &scan{settings: autoscaling.Settings{SkipNodesWithLocalStorage: !tt.keeps}, guards: guardsOf([]*policyv1.PodDisruptionBudget{b})}
			sc.Now = epoch
			if got := sc.blocks(p); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A Pod that is not ready costs no budget that guards ready ones only: one that crashes again and again does not keep its Node
// (SPEC C75).
func TestUnreadyPodCostsNoBudget(t *testing.T) {
	t.Parallel()
	always := new(policyv1.AlwaysAllow)
	for _, tt := range []struct {
		name            string
		policy          *policyv1.UnhealthyPodEvictionPolicyType
		ready           corev1.ConditionStatus
		healthy, wanted int32
		more            int // budgets that cover it, too
		charged         int
	}{
		{"not ready, always allowed", always, corev1.ConditionFalse, 0, 2, 0, 0},
		{"ready, always allowed", always, corev1.ConditionTrue, 0, 2, 0, 1},
		{"not ready, enough others are", nil, corev1.ConditionFalse, 2, 2, 0, 0},
		{"not ready, nor enough others", nil, corev1.ConditionFalse, 1, 2, 0, 1},
		{"not ready, nobody counted yet", nil, corev1.ConditionFalse, 0, 0, 0, 1},
		{"of two budgets none is evicted", always, corev1.ConditionFalse, 0, 2, 1, 2},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
		p.Status.Phase, p.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: tt.ready}}
		var all []*policyv1.PodDisruptionBudget
		for range 1 + tt.more {
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}
			b.Spec.Selector, b.Spec.UnhealthyPodEvictionPolicy = &metav1.LabelSelector{}, tt.policy
			b.Status.CurrentHealthy, b.Status.DesiredHealthy = tt.healthy, tt.wanted
			all = append(all, b)
		}
		sc := &scan{guards: guardsOf(all)}
		if got := len(sc.charged(p)); got != tt.charged {
			t.Errorf("%s: %d budgets are asked, want %d", tt.name, got, tt.charged)
		}
	}
}
