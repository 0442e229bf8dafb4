// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestCapacityBufferCounts(t *testing.T) {
	t.Parallel()
	each := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourceEphemeralStorage: resource.MustParse("0"),
	}
	ref := map[string]any{"kind": "Deployment", "name": "web"}
	for _, tt := range []struct {
		name   string
		spec   map[string]any
		scaled int32
		want   int
		wrong  bool
	}{
		{name: "replicas", spec: map[string]any{"replicas": 3}, want: 3},
		{name: "none wanted", spec: map[string]any{"replicas": 0}, want: 0},
		{name: "percentage, rounded up", spec: map[string]any{"percentage": 20, "scalableRef": ref}, scaled: 11, want: 3},
		{name: "percentage of nothing is one", spec: map[string]any{"percentage": 20, "scalableRef": ref}, want: 1},
		{name: "the larger of both", spec: map[string]any{"percentage": 50, "replicas": 2, "scalableRef": ref}, scaled: 10, want: 5},
		{name: "limits alone", spec: map[string]any{"limits": map[string]any{"cpu": "2", "memory": "3Gi"}}, want: 3},
		{name: "limits cut", spec: map[string]any{"replicas": 9, "limits": map[string]any{"cpu": "2100m"}}, want: 4},
		{name: "limits of something else", spec: map[string]any{"limits": map[string]any{"nvidia.com/gpu": "2"}}, wrong: true},
		{name: "limits of what nothing is asked of", spec: map[string]any{"limits": map[string]any{"ephemeral-storage": "2Gi"}}, wrong: true},
		{name: "limits of nothing of it", spec: map[string]any{"replicas": 3, "limits": map[string]any{"ephemeral-storage": "0"}}, want: 3},
		{name: "nothing said", spec: map[string]any{}, wrong: true},
		{name: "percentage of a template", spec: map[string]any{"percentage": 20}, wrong: true},
		{name: "limits that nobody can read", spec: map[string]any{"replicas": 3, "limits": map[string]any{"cpu": "much"}}, wrong: true},
		{name: "as many as may be", spec: map[string]any{"replicas": 10_000, "provisioningStrategy": ActiveCapacity}, want: 10_000},
		{name: "too many", spec: map[string]any{"replicas": 10_001}, wrong: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, err := ParseCapacityBuffer(map[string]any{"spec": tt.spec})
			if err != nil || !b.Ours() {
				t.Fatalf("ours %v, error %v", b.Ours(), err)
			}
			got, err := b.Count(tt.scaled, each)
			if got != tt.want || (err != nil) != tt.wrong {
				t.Errorf("%d, error %v, want %d", got, err, tt.want)
			}
		})
	}
}

func TestCapacityBufferIsRead(t *testing.T) {
	t.Parallel()
	if _, err := ParseCapacityBuffer(map[string]any{"spec": map[string]any{"replicas": "three"}}); err == nil {
		t.Error("no error")
	}
	b, err := ParseCapacityBuffer(map[string]any{"spec": map[string]any{"provisioningStrategy": "example.com/standby"}})
	if err != nil || b.Ours() {
		t.Errorf("ours %v, error %v", b.Ours(), err)
	}
}
