// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The next Pod of a DaemonSet asks for what its youngest does, which admission made of the same template; of another template it says
// nothing. All else is the template's (SPEC C14).
func TestDaemonPodsAskForWhatTheYoungestDoes(t *testing.T) {
	t.Parallel()
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "agent", UID: "ds", Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "2"}}}
	ds.Spec.Template.Labels = map[string]string{"app": "agent"}
	ds.Spec.Template.Spec = aPod("x", "100m", "1Gi").Spec
	large := aPod("agent-a", "2", "3Gi", func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "agent", "pod-template-generation": "2"}
		p.Spec.NodeName, p.Spec.NodeSelector = "a", map[string]string{"of": "a"}
		p.Spec.InitContainers = []corev1.Container{{RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Resources: corev1.ResourceRequirements{Requests: resources("1", "1Gi")}}}
		p.Spec.Overhead = resources("500m", "1Gi")
	})
	former := large.DeepCopy()
	former.Labels["pod-template-generation"] = "1"
	asWhole := large.DeepCopy()
	asWhole.Spec.Resources = &corev1.ResourceRequirements{Requests: resources("4", "4Gi")}
	for name, tt := range map[string]struct {
		youngest    *corev1.Pod
		cpu, memory string
	}{
		"none is there":            {nil, "100m", "1Gi"},
		"one of this template":     {large, "3500m", "5Gi"},
		"one of a former template": {former, "100m", "1Gi"},
		"of the Pod as a whole":    {asWhole, "4500m", "5Gi"},
	} {
		templates := Templates{Daemons: []*appsv1.DaemonSet{ds}}
		if tt.youngest != nil {
			templates.Youngest = map[types.UID]*corev1.Pod{"ds": tt.youngest}
		}
		pods := templates.DaemonPods(&corev1.Node{})
		if len(pods) != 1 || len(pods[0].Labels) != 1 || pods[0].Spec.NodeName != "" {
			t.Fatalf("%s: %v", name, pods)
		}
		if got := Requests(pods[0]); got.Cpu().String() != tt.cpu || got.Memory().String() != tt.memory {
			t.Errorf("%s: asks for %v", name, got)
		}
	}
}
