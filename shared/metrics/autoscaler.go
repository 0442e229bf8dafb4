// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// unschedulable counts the Pods that the scheduler has found no Node for.
func unschedulable(s snapshot.Snapshot) []point {
	n := 0
	for _, p := range s.Pods {
		if p.Spec.NodeName != "" || p.DeletionTimestamp != nil {
			continue
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
				n++
			}
		}
	}
	return []point{{value: float64(n)}}
}

// status is what the autoscaler tells people of health (SPEC C77).
type status struct {
	ClusterWide struct {
		Health health `json:"health"`
	} `json:"clusterWide"`
	NodeGroups []struct {
		Name   string `json:"name"`
		Health health `json:"health"`
	} `json:"nodeGroups"`
}

type health struct {
	Status string `json:"status"`
}

// statusOf reads the status. What cannot be read tells nothing.
func statusOf(s snapshot.Snapshot) (st status) {
	if cm := s.ConfigMap(machine.Namespace, machine.ConfigMapStatus); cm != nil {
		text := []byte(cm.Data[autoscaling.StatusKey])
		if provider.Expands(text) || yaml.Unmarshal(text, &st) != nil {
			return status{}
		}
	}
	return st
}

func safe(s snapshot.Snapshot) []point {
	h := statusOf(s).ClusterWide.Health
	if h.Status == "" {
		return nil
	}
	return []point{{value: healthiness(h)}}
}

func healthiness(h health) float64 {
	if h.Status == "Healthy" {
		return 1
	}
	return 0
}

// limits are the resources whose limit keeps the cluster from growing, as Pods are told (SPEC C34).
var limits = regexp.MustCompile(`resources: ((?:cpu|memory)(?:, (?:cpu|memory))*)`)

// limitReasons are the reasons that the alerts of OpenShift know (SPEC B71).
var limitReasons = map[string]string{"cpu": "CpuResourceLimit", "memory": "MemoryResourceLimit"}

// skip counts a scan that a limit kept from growing the cluster, once for each limit.
func (m *Metrics) skip(ctx context.Context, notes map[plan.Note]bool) {
	if m.skipped == nil {
		return
	}
	hit := map[string]bool{}
	for n := range notes {
		if n.Reason == "NotTriggerScaleUp" {
			for _, found := range limits.FindAllStringSubmatch(n.Message, -1) {
				for resource := range strings.SplitSeq(found[1], ", ") {
					hit[limitReasons[resource]] = true
				}
			}
		}
	}
	for reason := range hit {
		m.skipped.Add(ctx, 1, with(keyDirection.With("up"), keyReason.With(reason)))
	}
}
