// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(now.Add(time.Duration(seconds) * time.Second))
}

func TestNodeStages(t *testing.T) { //nolint:paralleltest // the stages are shared
	tests := []struct {
		name  string
		node  *corev1.Node
		stage string
		delay time.Duration
	}{
		{"a new node registers as not ready", node(nil, nil), "node-register", 0},
		{"a registered node becomes ready after one second", node(ready(corev1.ConditionFalse, 0), nil), "node-ready", time.Second},
		{
			"a node may take longer, counted from its registration",
			node(ready(corev1.ConditionFalse, -4), map[string]string{"machine-functions.dev/ready-after-seconds": "10"}),
			"node-ready", 6 * time.Second,
		},
		{"a node that was given up is ready at once", node(ready(corev1.ConditionUnknown, -60), nil), "node-ready", -59 * time.Second},
		{"a ready node is left alone", node(ready(corev1.ConditionTrue, -60), nil), "", 0},
		{"a ready node can be told to be unready", unready(node(ready(corev1.ConditionTrue, -60), nil)), "node-unready", 0},
		{"a node that nobody heard of can be unready next", unready(node(ready(corev1.ConditionUnknown, -60), nil)), "node-unready", 0},
		{"an unready node stays so", unready(node(ready(corev1.ConditionFalse, -60), nil)), "", 0},
	}
	stages := lifecycleOf(t, "Node")
	for _, test := range tests { //nolint:paralleltest // the stages are shared
		t.Run(test.name, func(t *testing.T) {
			checkStage(t, stages, &lifecycle.Event{Labels: test.node.Labels, Annotations: test.node.Annotations, Data: test.node}, test.stage, test.delay)
		})
	}
}

func TestPodStages(t *testing.T) { //nolint:paralleltest // the stages are shared
	running := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: new(at(-10)), Conditions: podReady(corev1.ConditionTrue)}
	lost := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: new(at(-10)), Conditions: podReady(corev1.ConditionFalse)}
	tests := []struct {
		name   string
		status corev1.PodStatus
		change func(*corev1.Pod)
		stage  string
		delay  time.Duration
	}{
		{"a bound pod runs", corev1.PodStatus{Phase: corev1.PodPending}, nil, "pod-run", 0},
		{"a running pod is left alone", running, nil, "", 0},
		{"a Job's pod completes two seconds after its start", running, ofJob, "pod-complete", -8 * time.Second},
		{"a Job's pod that sleeps completes when it wakes", running, sleeping("30"), "pod-complete", 20 * time.Second},
		{"the annotation goes before the command", running, annotated(sleeping("30"), "run-seconds", "12"), "pod-complete", 2 * time.Second},
		{"any pod with the annotation completes", running, annotated(nil, "run-seconds", "12"), "pod-complete", 2 * time.Second},
		{"a pod that was marked not ready recovers first", lost, annotated(nil, "run-seconds", "1"), "pod-recover", 0},
		{"a deleted pod ends a second later", running, deleted, "pod-terminate", time.Second},
		{"a deleted pod may take its time", running, annotated(deleted, "terminate-seconds", "7"), "pod-terminate", 7 * time.Second},
		{"a deleted pod ends within its grace period", running, annotated(deleted, "terminate-seconds", "99"), "pod-terminate", 30 * time.Second},
		{"a succeeded pod is left alone", corev1.PodStatus{Phase: corev1.PodSucceeded}, ofJob, "", 0},
	}
	stages := lifecycleOf(t, "Pod")
	for _, test := range tests { //nolint:paralleltest // the stages are shared
		t.Run(test.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}, Status: test.status}
			if test.change != nil {
				test.change(pod)
			}
			checkStage(t, stages, &lifecycle.Event{Annotations: pod.Annotations, Data: pod}, test.stage, test.delay)
		})
	}
}

func checkStage(t *testing.T, stages lifecycle.Lifecycle, event *lifecycle.Event, want string, delay time.Duration) {
	t.Helper()
	matches, err := stages.ListAllPossible(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	if len(matches) > 1 {
		t.Fatalf("%d stages match: kwok would choose by chance", len(matches))
	}
	if len(matches) == 0 {
		if want != "" {
			t.Fatalf("no stage matches, want %s", want)
		}
		return
	}
	if got := matches[0].Name(); got != want {
		t.Fatalf("stage is %s, want %q", got, want)
	}
	if got, _, err := matches[0].Delay(t.Context(), event, now); err != nil || got != delay {
		t.Fatalf("delay is %v (%v), want %v", got, err, delay)
	}
}

func lifecycleOf(t *testing.T, kind string) lifecycle.Lifecycle {
	t.Helper()
	stages, err := loadStages()
	if err != nil {
		t.Fatal(err)
	}
	result, err := lifecycle.NewLifecycle(stages[internalversion.StageResourceRef{APIGroup: "v1", Kind: kind}])
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func node(conditions []corev1.NodeCondition, annotations map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Status: corev1.NodeStatus{Conditions: conditions}}
}

func unready(n *corev1.Node) *corev1.Node {
	n.Labels = map[string]string{"machine-functions.dev/kubelet": "unready"}
	return n
}

func ready(status corev1.ConditionStatus, since int) []corev1.NodeCondition {
	return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: at(since)}}
}

func podReady(status corev1.ConditionStatus) []corev1.PodCondition {
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
}

func ofJob(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "work"}} }

func sleeping(seconds string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		ofJob(p)
		p.Spec.Containers[0].Command = []string{"sleep", seconds}
	}
}

func deleted(p *corev1.Pod) {
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(at(30)), new(int64(30))
}

func annotated(change func(*corev1.Pod), key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if change != nil {
			change(p)
		}
		p.Annotations = map[string]string{"machine-functions.dev/" + key: value}
	}
}
