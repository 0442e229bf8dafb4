// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"strconv"
	"time"
)

// Settings is a ClusterAutoscalerSpec with every field resolved.
type Settings struct {
	MaxNodesTotal int64 // 0: no limit
	Cores         Bounds
	Memory        Bounds // bytes
	GPUs          []GPULimit

	ScaleDownEnabled            bool
	DelayAfterAdd               time.Duration
	DelayAfterDelete            time.Duration // 0: the next scan may delete again
	DelayAfterFailure           time.Duration
	UnneededTime                time.Duration
	UtilizationThreshold        float64
	CordonNodeBeforeTerminating bool

	NewPodScaleUpDelay   time.Duration
	MaxPodGracePeriod    time.Duration
	MaxNodeProvisionTime time.Duration
	PodPriorityThreshold int32

	BalanceSimilarNodeGroups bool
	// IgnorePlatformLabels adds the platforms' own labels to the ignored ones. It follows from the field being there,
	// whatever its value (SPEC B103).
	IgnorePlatformLabels        bool
	BalancingIgnoredLabels      []string
	IgnoreDaemonSetsUtilization bool
	SkipNodesWithLocalStorage   bool

	Expanders               []Expander // in order; at least one
	EnforceNodeGroupMinSize bool
	StartupTaints           []string // keys
	LogVerbosity            int32
}

// Bounds is a closed interval.
type Bounds struct{ Min, Max int64 }

const (
	gib = 1 << 30
	// Without limits of its own a cluster may have this much (SPEC B92, B93).
	maxCores  = 320_000
	maxMemory = 6_400_000 * gib
)

// Effective resolves s against the defaults of SPEC B91–B109. ScaleDown without enabled drops its other fields (B95);
// no scaleDown at all means enabled (S47). A value that Validate refuses counts as left out. Lists are shared with s.
func Effective(s ClusterAutoscalerSpec) Settings {
	limits := or(s.ResourceLimits, ResourceLimits{})
	down := or(s.ScaleDown, ScaleDown{Enabled: true})
	if !down.Enabled {
		down = ScaleDown{}
	}
	e := Settings{
		MaxNodesTotal: int64(or(limits.MaxNodesTotal, 0)),
		Cores:         bounds(limits.Cores, 1, maxCores),
		Memory:        bounds(limits.Memory, gib, maxMemory),
		GPUs:          limits.GPUs,

		ScaleDownEnabled:            down.Enabled,
		DelayAfterAdd:               duration(down.DelayAfterAdd, 10*time.Minute),
		DelayAfterDelete:            duration(down.DelayAfterDelete, 0),
		DelayAfterFailure:           duration(down.DelayAfterFailure, 3*time.Minute),
		UnneededTime:                duration(down.UnneededTime, 10*time.Minute),
		UtilizationThreshold:        threshold(down.UtilizationThreshold, 0.5),
		CordonNodeBeforeTerminating: down.CordonNodeBeforeTerminating != Disabled,

		NewPodScaleUpDelay:   duration(or(s.ScaleUp, ScaleUp{}).NewPodScaleUpDelay, 0),
		MaxPodGracePeriod:    time.Duration(or(s.MaxPodGracePeriod, 600)) * time.Second,
		MaxNodeProvisionTime: duration(s.MaxNodeProvisionTime, 15*time.Minute),
		PodPriorityThreshold: or(s.PodPriorityThreshold, -10),

		BalanceSimilarNodeGroups:    or(s.BalanceSimilarNodeGroups, false),
		IgnorePlatformLabels:        s.BalanceSimilarNodeGroups != nil,
		BalancingIgnoredLabels:      s.BalancingIgnoredLabels,
		IgnoreDaemonSetsUtilization: or(s.IgnoreDaemonsetsUtilization, false),
		SkipNodesWithLocalStorage:   or(s.SkipNodesWithLocalStorage, true),

		Expanders:               s.Expanders,
		EnforceNodeGroupMinSize: s.EnforceNodeGroupMinSize == Enabled,
		StartupTaints:           s.StartupTaints,
		LogVerbosity:            or(s.LogVerbosity, 1),
	}
	if len(e.Expanders) == 0 {
		e.Expanders = []Expander{Price, LeastWaste} // SPEC B106: least waste, but where every set has a price that decides
	}
	return e
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func bounds(r *Range, unit, highest int64) Bounds {
	if r == nil {
		return Bounds{Max: highest}
	}
	return Bounds{Min: int64(r.Min) * unit, Max: int64(r.Max) * unit}
}

func duration(p *string, otherwise time.Duration) time.Duration {
	if p == nil || !isDuration(*p) {
		return otherwise
	}
	d, err := time.ParseDuration(*p)
	if err != nil {
		return otherwise
	}
	return d
}

func threshold(p *string, otherwise float64) float64 {
	if p == nil || !isFraction(*p) {
		return otherwise
	}
	f, err := strconv.ParseFloat(*p, 64)
	if err != nil {
		return otherwise
	}
	return f
}
