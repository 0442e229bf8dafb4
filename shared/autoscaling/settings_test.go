// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// defaults are SPEC B91–B109, S47, S48.
func defaults() Settings {
	return Settings{
		Cores:                       Bounds{Max: 320_000},
		Memory:                      Bounds{Max: 6_400_000 << 30},
		ScaleDownEnabled:            true,
		DelayAfterAdd:               10 * time.Minute,
		DelayAfterFailure:           3 * time.Minute,
		UnneededTime:                10 * time.Minute,
		UtilizationThreshold:        0.5,
		CordonNodeBeforeTerminating: true,
		MaxPodGracePeriod:           600 * time.Second,
		MaxNodeProvisionTime:        15 * time.Minute,
		PodPriorityThreshold:        -10,
		SkipNodesWithLocalStorage:   true,
		Expanders:                   []Expander{Price, LeastWaste},
		LogVerbosity:                1,
	}
}

func TestEffective(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		spec string
		want func(*Settings)
	}{
		{"nothing said", `{}`, func(*Settings) {}},
		{
			"the walk-through's object", `
balanceSimilarNodeGroups: true
podPriorityThreshold: -10
resourceLimits: {maxNodesTotal: 12, cores: {min: 20, max: 48}, memory: {min: 80, max: 156}}
scaleDown: {enabled: true, delayAfterAdd: 5m, delayAfterDelete: 5m, delayAfterFailure: 5m, unneededTime: 60s}`,
			func(s *Settings) {
				s.BalanceSimilarNodeGroups, s.IgnorePlatformLabels = true, true
				s.MaxNodesTotal = 12
				s.Cores = Bounds{20, 48}
				s.Memory = Bounds{80 << 30, 156 << 30}
				s.DelayAfterAdd, s.DelayAfterDelete, s.DelayAfterFailure = 5*time.Minute, 5*time.Minute, 5*time.Minute
				s.UnneededTime = time.Minute
			},
		},
		{
			"scale-down turned off drops its other fields", `
scaleDown: {enabled: false, delayAfterAdd: 1m, delayAfterDelete: 1m, delayAfterFailure: 1m, unneededTime: 1m,
  utilizationThreshold: "0.9", cordonNodeBeforeTerminating: Disabled}`,
			func(s *Settings) { s.ScaleDownEnabled = false },
		},
		{
			"balancing turned off still ignores the platforms' labels", `balanceSimilarNodeGroups: false`,
			func(s *Settings) { s.IgnorePlatformLabels = true },
		},
		{
			"everything else", `
resourceLimits: {gpus: [{type: nvidia-t4, min: 1, max: 4}]}
scaleDown: {enabled: true, utilizationThreshold: ".75", cordonNodeBeforeTerminating: Disabled}
scaleUp: {newPodScaleUpDelay: 10s}
maxPodGracePeriod: 0
maxNodeProvisionTime: 1h30m
podPriorityThreshold: 0
balancingIgnoredLabels: [rack]
ignoreDaemonsetsUtilization: true
skipNodesWithLocalStorage: false
expanders: [Priority, Random]
enforceNodeGroupMinSize: Enabled
startupTaints: [example.com/booting]
logVerbosity: 0`,
			func(s *Settings) {
				s.GPUs = []GPULimit{{Type: "nvidia-t4", Min: 1, Max: 4}}
				s.UtilizationThreshold, s.CordonNodeBeforeTerminating = 0.75, false
				s.NewPodScaleUpDelay = 10 * time.Second
				s.MaxPodGracePeriod, s.MaxNodeProvisionTime = 0, 90*time.Minute
				s.PodPriorityThreshold = 0
				s.BalancingIgnoredLabels = []string{"rack"}
				s.IgnoreDaemonSetsUtilization, s.SkipNodesWithLocalStorage = true, false
				s.Expanders = []Expander{Priority, Random}
				s.EnforceNodeGroupMinSize = true
				s.StartupTaints = []string{"example.com/booting"}
				s.LogVerbosity = 0
			},
		},
		{
			"what cannot be read counts as left out", `
scaleDown: {enabled: true, delayAfterAdd: soon, unneededTime: -5m, utilizationThreshold: "1.5"}
maxNodeProvisionTime: 9999999999h`,
			func(*Settings) {},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := defaults()
			tt.want(&want)
			if diff := cmp.Diff(want, Effective(parse(t, tt.spec))); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

// The defaults that the API server fills in are those of Effective: applied once or twice they change nothing.
func TestDefaultsAreIdempotent(t *testing.T) {
	t.Parallel()
	schema := crdSpec(t, "clusterautoscalers")
	rapid.Check(t, func(t *rapid.T) {
		spec := specs().Draw(t, "spec")
		want := Effective(spec)
		once := withDefaults(t, schema, spec)
		if diff := cmp.Diff(want, Effective(once), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("after the server's defaults (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(once, withDefaults(t, schema, once), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("defaults applied twice (-once +twice):\n%s", diff)
		}
	})
}

func TestWhatValidateAcceptsIsSane(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ca := ClusterAutoscaler{Spec: specs().Draw(t, "spec")}
		ca.Name = Name
		if errs := ca.Validate(); len(errs) > 0 {
			t.Skip(errs)
		}
		s := Effective(ca.Spec)
		for _, d := range []time.Duration{
			s.DelayAfterAdd, s.DelayAfterDelete, s.DelayAfterFailure, s.UnneededTime,
			s.NewPodScaleUpDelay, s.MaxPodGracePeriod, s.MaxNodeProvisionTime,
		} {
			if d < 0 {
				t.Errorf("negative duration in %+v", s)
			}
		}
		if s.UtilizationThreshold <= 0 || s.UtilizationThreshold >= 1 {
			t.Errorf("utilization threshold %v", s.UtilizationThreshold)
		}
		for _, b := range []Bounds{s.Cores, s.Memory} {
			if b.Min < 0 || b.Max < b.Min {
				t.Errorf("bounds %+v", b)
			}
		}
		if len(s.Expanders) < 1 || len(s.Expanders) > 4 || s.MaxNodesTotal < 0 || s.LogVerbosity < 0 {
			t.Errorf("settings %+v", s)
		}
	})
}

func TestDeepCopySharesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := specs().Draw(t, "spec")
		want, err := yaml.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		c := spec.DeepCopy()
		if diff := cmp.Diff(spec, c); diff != "" {
			t.Fatalf("copy differs (-original +copy):\n%s", diff)
		}
		scramble(reflect.ValueOf(&c).Elem())
		got, err := yaml.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Fatalf("changing the copy changed the original (-before +after):\n%s", diff)
		}
	})
}

// specs generates specs from values that are worth trying, most of them good.
func specs() *rapid.Generator[ClusterAutoscalerSpec] {
	low := rapid.SampledFrom([]int32{0, 0, 1, 1, 2, 2, 3, 4, 48, 600, 1 << 30, -1})
	high := rapid.SampledFrom([]int32{48, 48, 156, 156, 320_000, 1 << 30, 1 << 30, 0})
	text := rapid.SampledFrom([]string{"0", "0s", "10m", "1h30m", "1.5h", "5µs", "60s", "5m", "3m", "-5m"})
	fraction := rapid.SampledFrom([]string{"0.5", ".9", "0.01", "0.999", "1.0"})
	return rapid.MakeCustom[ClusterAutoscalerSpec](rapid.MakeConfig{
		Kinds: map[reflect.Kind]*rapid.Generator[any]{
			reflect.Int32:  low.AsAny(),
			reflect.String: text.AsAny(),
		},
		Types: map[reflect.Type]*rapid.Generator[any]{
			reflect.TypeFor[Toggle](): rapid.SampledFrom([]Toggle{"", Enabled, Disabled}).AsAny(),
		},
		Fields: map[reflect.Type]map[string]*rapid.Generator[any]{
			reflect.TypeFor[Range]():     {"Max": high.AsAny()},
			reflect.TypeFor[ScaleDown](): {"UtilizationThreshold": rapid.Ptr(fraction, true).AsAny()},
			reflect.TypeFor[ClusterAutoscalerSpec](): {
				"Expanders": rapid.SliceOfNDistinct(rapid.SampledFrom([]Expander{LeastWaste, Priority, Random, Price}), 0, 4, rapid.ID).AsAny(),
			},
			reflect.TypeFor[ResourceLimits](): {"GPUs": rapid.SliceOfN(rapid.Custom(func(t *rapid.T) GPULimit {
				return GPULimit{Type: text.Draw(t, "type"), Min: low.Draw(t, "min"), Max: high.Draw(t, "max")}
			}), 0, 2).AsAny()},
		},
	})
}

func parse(t *testing.T, spec string) ClusterAutoscalerSpec {
	t.Helper()
	var s ClusterAutoscalerSpec
	if err := yaml.UnmarshalStrict([]byte(spec), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// scramble changes everything reachable from v through pointers and lists.
func scramble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scramble(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			scramble(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			scramble(v.Field(i))
		}
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int32:
		v.SetInt(v.Int() + 1)
	case reflect.String:
		v.SetString(v.String() + "x")
	}
}
