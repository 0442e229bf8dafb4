// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// idle is a world in which Node b has been idle for two minutes, and says so.
func idle(t testing.TB) *world {
	t.Helper()
	w := newWorld(t, epoch)
	w.load(t, "small.yaml")
	w.must(t, w.Remove("Pod", "default", "web-b", memory.Force))
	w.must(t, memory.Patch(w.Server, "", "default", func(ca *autoscaling.ClusterAutoscaler) {
		ca.Annotations = map[string]string{autoscaling.SoftTaintAnnotation: "Enabled"}
	}))
	w.pass(t, 2*time.Minute)
	if n := memory.Get[*corev1.Node](w.Server, "", "b"); len(n.Spec.Taints) != 1 || n.Annotations[machine.AnnotationScaleDownReason] == "" {
		t.Fatalf("Node b has %v %v", n.Spec.Taints, n.Annotations)
	}
	return w
}

// When nothing may scale any more, nothing stays behind on Nodes, and then nothing is written or read any more (SPEC C60, W2,
// S81).
func TestNothingStaysBehind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		stop func(w *world)
		why  string
	}{
		{"without ClusterAutoscaler", func(w *world) { w.must(t, w.Remove("ClusterAutoscaler", "", "default", memory.Background)) }, whyNoSettings},
		{"without MachineAutoscaler", func(w *world) {
			w.must(t, w.Remove("MachineAutoscaler", machine.Namespace, "worker", memory.Background))
		}, whyNoGroups},
		{"with settings that are not valid", func(w *world) { w.invalidate(t) }, whyInvalid},
	} {
		w := idle(t)
		for i := range 50 {
			n := memory.Get[*corev1.Node](w.Server, "", "a").DeepCopy()
			n.Name, n.UID, n.ResourceVersion = fmt.Sprintf("by-hand-%02d", i), "", ""
			w.must(t, w.Put(n))
		}
		tt.stop(w)
		w.pass(t, time.Minute)
		for _, n := range memory.List[*corev1.Node](w.Server) {
			if reason := n.Annotations[machine.AnnotationScaleDownReason]; len(n.Spec.Taints) > 0 || reason != "" {
				t.Fatalf("%s Node %s keeps %v %q", tt.name, n.Name, n.Spec.Taints, reason)
			}
		}
		if got, want := w.status(), "autoscalerStatus: Stopped\nmessage: \""+tt.why+"\"\n"; !strings.HasSuffix(got, want) {
			t.Errorf("%s the status says\n%s", tt.name, got)
		}
		before := len(w.ours())
		if p := w.pass(t, time.Minute); !p.Quiet() || len(w.ours()) > before {
			t.Errorf("%s it is not at rest: %v", tt.name, w.ours()[before:])
		}
	}
}

func (w *world) invalidate(t testing.TB) {
	t.Helper()
	w.must(t, memory.Patch(w.Server, "", "default", func(ca *autoscaling.ClusterAutoscaler) { ca.Spec.Expanders = []autoscaling.Expander{"?"} }))
}

// status returns what people are told of it as a whole.
func (w *world) status() string {
	return memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus).Data[autoscaling.StatusKey]
}

// The status says why nothing is scaled for as long as that is why, and that something is once it is again (SPEC C77, B112).
func TestStatusFollowsWhatStopsScaling(t *testing.T) {
	t.Parallel()
	w := idle(t)
	ca := memory.Get[*autoscaling.ClusterAutoscaler](w.Server, "", "default").DeepCopy()
	w.invalidate(t)
	w.pass(t, time.Minute)
	was := w.status()
	w.pass(t, time.Minute)
	if got := w.status(); got != was || !strings.Contains(got, whyInvalid) {
		t.Errorf("for two minutes the settings are not valid:\n%s\n%s", was, got)
	}
	w.must(t, w.Remove("ClusterAutoscaler", "", "default", memory.Background))
	w.pass(t, time.Minute)
	if got := w.status(); strings.Contains(got, whyInvalid) || !strings.Contains(got, whyNoSettings) {
		t.Errorf("then they are gone:\n%s", got)
	}
	before := len(w.ours())
	if w.pass(t, time.Minute); len(w.ours()) > before {
		t.Errorf("it is not at rest: %v", w.ours()[before:])
	}
	ca.ResourceVersion, ca.UID = "", "again"
	w.must(t, w.Put(ca))
	w.pass(t, time.Minute)
	if got := w.status(); !strings.Contains(got, "autoscalerStatus: Running\n") || strings.Contains(got, "message") {
		t.Errorf("then they are back:\n%s", got)
	}
}

// What was measured before the settings were taken away counts for nothing when they come back (SPEC C58, B112).
func TestTimersDoNotOutliveTheSettings(t *testing.T) {
	t.Parallel()
	w := idle(t)
	ca := memory.Get[*autoscaling.ClusterAutoscaler](w.Server, "", "default").DeepCopy()
	w.must(t, w.Remove("ClusterAutoscaler", "", "default", memory.Background))
	w.pass(t, 10*time.Second)
	w.now = w.now.Add(6 * time.Hour) // in which a Pod ran there
	ca.ResourceVersion, ca.UID = "", "again"
	w.must(t, w.Put(ca))
	w.pass(t, 9*time.Minute)
	if got := w.replicas("worker"); got[0] != 2 {
		t.Errorf("a Node was removed within nine minutes: replicas %v", got)
	}
	w.pass(t, 3*time.Minute)
	if got := w.replicas("worker"); got[0] != 1 {
		t.Errorf("twelve minutes later: replicas %v", got)
	}
}

// What was measured counts for nothing while the cluster is unhealthy, and no Node says that it does (SPEC C3, C60, W2).
func TestUnhealthyClusterTellsNoTimes(t *testing.T) {
	t.Parallel()
	w := idle(t)
	for i := range 4 {
		n := memory.Get[*corev1.Node](w.Server, "", "a").DeepCopy()
		n.Name, n.UID, n.ResourceVersion = fmt.Sprint("down-", i), "", ""
		n.Status.Conditions[0].Status = corev1.ConditionUnknown
		w.must(t, w.Put(n))
	}
	w.pass(t, 2*time.Minute)
	if n := memory.Get[*corev1.Node](w.Server, "", "b"); len(n.Spec.Taints) > 0 || n.Annotations[machine.AnnotationScaleDownReason] != whyUnhealthy {
		t.Errorf("Node b has %v %q", n.Spec.Taints, n.Annotations[machine.AnnotationScaleDownReason])
	}
	if n := memory.Get[*corev1.Node](w.Server, "", "a"); n.Annotations[machine.AnnotationScaleDownReason] != "NotUnderutilized: cpu above 0.60, threshold 0.5" {
		t.Errorf("Node a, which nobody timed, says %q", n.Annotations[machine.AnnotationScaleDownReason])
	}
	before := len(w.ours())
	w.pass(t, time.Minute)
	if again := w.ours()[before:]; len(again) > 0 {
		t.Errorf("it is not at rest: %v", again)
	}
	for i := range 4 {
		w.must(t, w.Remove("Node", "", fmt.Sprint("down-", i), memory.Background))
	}
	w.pass(t, 2*time.Minute)
	if n := memory.Get[*corev1.Node](w.Server, "", "b"); !strings.HasPrefix(n.Annotations[machine.AnnotationScaleDownReason], "NotUnneededLongEnough: unneeded since ") {
		t.Errorf("healthy again, Node b says %q", n.Annotations[machine.AnnotationScaleDownReason])
	}
}

// Nodes that were asked for are on their way, also where those that the set has are not well meanwhile (SPEC C77).
func TestGrowthOfAnIllSetIsInProgress(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "s", 4, 20, midsize(), nil)
	big := resources("cpu", "4", "memory", "16Gi", "pods", "110")
	for i := range 4 {
		w.member(t, "s", fmt.Sprint("s-", i), epoch.Add(-time.Hour), big, nil)
		w.must(t, w.Put(running(fmt.Sprint("r", i), fmt.Sprint("s-", i), resources("cpu", "3500m")), pending(fmt.Sprint("p", i), epoch.Add(-time.Minute), resources("cpu", "3500m"))))
	}
	w.scans(t, 2)
	for i := range 4 {
		w.must(t, memory.Patch(w.Server, "", fmt.Sprint("s-", i), func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(w.now)}}
		}))
	}
	w.scans(t, 2)
	if s := w.status(); !strings.Contains(s, `scaleUp: {"status":"InProgress"`) || !strings.Contains(s, `health: {"status":"Unhealthy"`) {
		t.Errorf("four Nodes are on their way:\n%s", s)
	}
}

// A state that nobody can read stops everything, and is told: in a Warning and in the status, until it can be read again. The state
// itself is left as it is (RELIABILITY G9).
func TestUnreadableStateIsTold(t *testing.T) {
	t.Parallel()
	w := idle(t)
	var whole, torn string
	w.must(t, memory.Patch(w.Server, machine.Namespace, machine.ConfigMapStatus, func(cm *corev1.ConfigMap) {
		whole = cm.Data[autoscaling.StateKey]
		torn = strings.Replace(whole, `"schema": 1`, `"schema": 1,,`, 1)
		cm.Data[autoscaling.StateKey] = torn
	}))
	w.pass(t, time.Minute)
	if got := w.status(); !strings.Contains(got, "autoscalerStatus: Stopped\nmessage: \"state is not readable") {
		t.Errorf("the status says\n%s", got)
	}
	warned := func(e corev1.Event) bool {
		return e.Type == corev1.EventTypeWarning && e.Reason == "StateUnreadable" && e.InvolvedObject.Name == machine.ConfigMapStatus
	}
	if !slices.ContainsFunc(w.Events(), warned) {
		t.Error("nobody is warned")
	}
	if got := memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus).Data[autoscaling.StateKey]; got != torn {
		t.Errorf("the state is\n%s", got)
	}
	before := len(w.ours())
	if w.pass(t, time.Minute); len(w.ours()) > before {
		t.Errorf("it is not at rest: %v", w.ours()[before:])
	}
	w.must(t, memory.Patch(w.Server, machine.Namespace, machine.ConfigMapStatus, func(cm *corev1.ConfigMap) { cm.Data[autoscaling.StateKey] = whole }))
	w.pass(t, time.Minute)
	if got := w.status(); !strings.Contains(got, "autoscalerStatus: Running\n") || strings.Contains(got, "message") {
		t.Errorf("it can be read again, the status says\n%s", got)
	}
}

// Wherever the function dies after what lets it scale was taken away, no Node keeps the taint or the cordon of a scale-down that was
// called off (R-S11, R-B25).
func TestNoTaintOutlivesWhatLetItScale(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(w *world){
		"without ClusterAutoscaler":        func(w *world) { w.must(t, w.Remove("ClusterAutoscaler", "", "default", memory.Background)) },
		"without MachineAutoscaler":        func(w *world) { w.must(t, w.Remove("MachineAutoscaler", machine.Namespace, "s", memory.Background)) },
		"with settings that are not valid": func(w *world) { w.invalidate(t) },
	} {
		for at := 1; ; at++ {
			w := going(t, 2)
			stop(w)
			c := &crashing{Cluster: w.As(Function.Name), left: at, seen: func() {}}
			w.through(c)
			for range 12 {
				_, _ = w.scan(t.Context(), snapshot.Request{}) // one of them is killed
				w.now = w.now.Add(10 * time.Second)
			}
			for _, n := range memory.List[*corev1.Node](w.Server) {
				if _, found := (mine{}).givenBack(n); found {
					t.Errorf("%s, killed at write %d: Node %s keeps %v", name, at, n.Name, n.Spec.Taints)
				}
			}
			if c.left > 0 {
				break // it never came to this write
			}
		}
	}
}
