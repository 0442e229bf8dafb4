// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ActiveCapacity is the provisioning strategy of CapacityBuffers whose room is kept free by Nodes that run; the default.
const ActiveCapacity = "buffer.x-k8s.io/active-capacity"

// Conditions of a CapacityBuffer (SPEC C83).
const (
	BufferReady        = "ReadyForProvisioning" // it is understood, and what it refers to is there
	BufferProvisioning = "Provisioning"         // its room is there, or Nodes for it are on their way
	BufferLimited      = "LimitedByQuotas"      // it is smaller than it says, because quotas would not admit its Pods
)

// CapacityBuffer is what autoscaling.x-k8s.io/v1beta1 says of one: room that is kept free for Pods like those of a template,
// or of a workload that can be scaled (SPEC C83).
type CapacityBuffer struct {
	Spec struct {
		ProvisioningStrategy string `json:"provisioningStrategy,omitempty"`
		PodTemplateRef       *struct {
			Name string `json:"name"`
		} `json:"podTemplateRef,omitempty"`
		ScalableRef *struct {
			APIGroup string `json:"apiGroup,omitempty"`
			Kind     string `json:"kind"`
			Name     string `json:"name"`
		} `json:"scalableRef,omitempty"`
		Replicas   *int32          `json:"replicas,omitempty"`
		Percentage *int32          `json:"percentage,omitempty"`
		Limits     json.RawMessage `json:"limits,omitempty"` // Amounts, read last: what cannot be read there hides nothing else
	} `json:"spec"`
	Status CapacityBufferStatus `json:"status,omitzero"`
}

// CapacityBufferStatus says what became of it.
type CapacityBufferStatus struct {
	PodTemplateRef *struct {
		Name string `json:"name"`
	} `json:"podTemplateRef,omitempty"`
	Replicas              *int32             `json:"replicas,omitempty"`
	PodTemplateGeneration *int64             `json:"podTemplateGeneration,omitempty"`
	ProvisioningStrategy  *string            `json:"provisioningStrategy,omitempty"`
	Conditions            []metav1.Condition `json:"conditions,omitempty"`
}

// ParseCapacityBuffer reads one from the content of its object.
func ParseCapacityBuffer(content map[string]any) (b CapacityBuffer, err error) {
	text, err := json.Marshal(content)
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	return b, err
}

// Ours reports whether the buffer is of the strategy that is provided here. Others are left alone.
func (b CapacityBuffer) Ours() bool {
	return b.Spec.ProvisioningStrategy == "" || b.Spec.ProvisioningStrategy == ActiveCapacity
}

// Count returns for how many Pods room is kept: as many as the larger of replicas and percentage says, a percentage of the
// workload's replicas being one at least, as far as the limits allow; with limits alone, as many as they allow.
func (b CapacityBuffer) Count(scaled int32, each corev1.ResourceList) (int, error) {
	var limits Amounts
	if len(b.Spec.Limits) > 0 {
		if err := json.Unmarshal(b.Spec.Limits, &limits); err != nil {
			return 0, fmt.Errorf("limits: %w", err)
		}
	}
	most, limited := int64(maxHeadroom), false
	for name, limit := range limits {
		if q, asks := each[name]; asks && q.Sign() > 0 {
			most, limited = min(most, int64(min(maxHeadroom, limit.AsApproximateFloat64()/q.AsApproximateFloat64()+1e-9))), true
		}
	}
	wanted := int64(-1)
	if b.Spec.Replicas != nil {
		wanted = int64(*b.Spec.Replicas)
	}
	if p := b.Spec.Percentage; p != nil {
		if b.Spec.ScalableRef == nil {
			return 0, errors.New("a percentage needs a scalableRef")
		}
		wanted = max(wanted, 1, int64(math.Ceil(float64(*p)*float64(scaled)/100)))
	}
	switch {
	case wanted < 0 && !limited:
		return 0, errors.New("neither replicas, nor percentage, nor limits of what the pods ask for")
	case wanted < 0:
		wanted = most
	case wanted > maxHeadroom:
		return 0, fmt.Errorf("room for more than %d pods", maxHeadroom)
	}
	return int(max(0, min(wanted, most))), nil
}
