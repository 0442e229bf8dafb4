// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Buffers of many namespaces together bring no more Pods into a scan than it can plan for: those that go beyond are told, the
// others have their room, and once all are told the scan is quiet (SPEC C83).
func TestBuffersAreBoundedTogether(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.pool(t, "s", 0, 4, nil, nil)
	w.yaml(t, "{apiVersion: v1, kind: PodTemplate, metadata: {name: chunk, namespace: default, uid: template}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1m}}}]}}}")
	for i, n := range []int{10_000, 9_000, 10_000, 1_000} {
		w.yaml(t, fmt.Sprintf("{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: b-%d, namespace: default, uid: buffer-%[1]d}, spec: {podTemplateRef: {name: chunk}, replicas: %d}}", i, n))
	}
	w.once(t)
	var refused []string
	for i := range 4 {
		name := fmt.Sprint("b-", i)
		if strings.Contains(fmt.Sprint(w.Object(bufferKind, "default", name)), "which leaves 1000") {
			refused = append(refused, name)
		}
	}
	if !slices.Equal(refused, []string{"b-2"}) {
		t.Errorf("refused: %v", refused)
	}
	before := len(w.ours())
	w.once(t)
	if again := w.ours()[before:]; len(again) > 0 {
		t.Errorf("told again: %v", again)
	}
}
