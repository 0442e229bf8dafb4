// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

var clusterAutoscalers = []struct {
	name, object, spec string
	want               []string
}{
	{"nothing said", "default", `{}`, nil},
	{
		"everything said well", "default", `
resourceLimits: {maxNodesTotal: 12, cores: {min: 20, max: 48}, memory: {min: 80, max: 80}, gpus: [{type: t4, min: 0, max: 1}]}
scaleDown: {enabled: true, delayAfterAdd: "0", delayAfterDelete: 0s, delayAfterFailure: 1.5h, unneededTime: 1h2m3s4ms5µs6us7ns,
  utilizationThreshold: "0.999", cordonNodeBeforeTerminating: Enabled}
scaleUp: {newPodScaleUpDelay: 10s}
maxPodGracePeriod: 0
podPriorityThreshold: -2147483648
expanders: [Random, LeastWaste, Priority, Price]
enforceNodeGroupMinSize: Disabled
logVerbosity: 10`, nil,
	},
	{"another name", "mine", `{}`, []string{`metadata.name: Invalid value: "mine": must be "default"`}},
	{
		"limits the wrong way round", "default",
		`resourceLimits: {maxNodesTotal: -1, cores: {min: 48, max: 20}, memory: {min: -1, max: 5}, gpus: [{type: "", min: 3, max: 2}, {type: a, min: 0, max: 0}]}`,
		[]string{
			`spec.resourceLimits.maxNodesTotal: Invalid value: -1: must be at least 0`,
			`spec.resourceLimits.cores.max: Invalid value: 20: must not be less than min 48`,
			`spec.resourceLimits.memory.min: Invalid value: -1: must be at least 0`,
			`spec.resourceLimits.gpus[0].type: Required value: must be the value of the Nodes' accelerator label`,
			`spec.resourceLimits.gpus[0].max: Invalid value: 2: must not be less than min 3`,
			`spec.resourceLimits.gpus[1].max: Invalid value: 0: must be at least 1`,
		},
	},
	{
		"durations that are none", "default",
		`{scaleDown: {enabled: true, delayAfterAdd: -5m, delayAfterDelete: soon, delayAfterFailure: "", unneededTime: "10"}, maxNodeProvisionTime: 9999999999h, scaleUp: {newPodScaleUpDelay: 10 m}}`,
		[]string{
			`spec.scaleDown.delayAfterAdd: Invalid value: "-5m": must be a duration that is not negative, such as 10m or 1h30m`,
			`spec.scaleDown.delayAfterDelete: Invalid value: "soon": must be a duration that is not negative, such as 10m or 1h30m`,
			`spec.scaleDown.delayAfterFailure: Invalid value: "": must be a duration that is not negative, such as 10m or 1h30m`,
			`spec.scaleDown.unneededTime: Invalid value: "10": must be a duration that is not negative, such as 10m or 1h30m`,
			`spec.scaleUp.newPodScaleUpDelay: Invalid value: "10 m": must be a duration that is not negative, such as 10m or 1h30m`,
			`spec.maxNodeProvisionTime: Invalid value: "9999999999h": must be a duration that is not negative, such as 10m or 1h30m`,
		},
	},
	{
		"a threshold of one and a half", "default", `scaleDown: {enabled: true, utilizationThreshold: "1.5"}`,
		[]string{`spec.scaleDown.utilizationThreshold: Invalid value: "1.5": must be a decimal number strictly between 0 and 1, such as 0.5`},
	},
	{
		"a threshold of nothing", "default", `scaleDown: {enabled: true, utilizationThreshold: "0.0"}`,
		[]string{`spec.scaleDown.utilizationThreshold: Invalid value: "0.0": must be a decimal number strictly between 0 and 1, such as 0.5`},
	},
	{
		"words outside their set", "default",
		`{expanders: [MostPods, Random, Random], enforceNodeGroupMinSize: "Yes", scaleDown: {enabled: true, cordonNodeBeforeTerminating: "true"}}`,
		[]string{
			`spec.scaleDown.cordonNodeBeforeTerminating: Unsupported value: "true": supported values: "Enabled", "Disabled"`,
			`spec.enforceNodeGroupMinSize: Unsupported value: "Yes": supported values: "Enabled", "Disabled"`,
			`spec.expanders[0]: Unsupported value: "MostPods": supported values: "LeastWaste", "Priority", "Random", "Price"`,
			`spec.expanders[2]: Duplicate value: "Random"`,
		},
	},
	{
		"numbers below zero", "default", `{maxPodGracePeriod: -1, logVerbosity: -2}`,
		[]string{
			`spec.maxPodGracePeriod: Invalid value: -1: must be at least 0`,
			`spec.logVerbosity: Invalid value: -2: must be at least 0`,
		},
	},
}

func TestValidateClusterAutoscaler(t *testing.T) {
	t.Parallel()
	for _, tt := range clusterAutoscalers {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ca := ClusterAutoscaler{Spec: parse(t, tt.spec)}
			ca.Name = tt.object
			var got []string
			for _, e := range ca.Validate() {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateMachineAutoscaler(t *testing.T) {
	t.Parallel()
	set := ScaleTargetRef{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: "general-purpose-1a"}
	tests := []struct {
		name string
		spec MachineAutoscalerSpec
		want []string
	}{
		{"the walk-through's object", MachineAutoscalerSpec{1, 4, set}, nil},
		{"one size", MachineAutoscalerSpec{1, 1, set}, nil},
		{"down to nothing", MachineAutoscalerSpec{0, 1, set}, nil},
		{
			"min above max", MachineAutoscalerSpec{5, 4, set},
			[]string{`spec.maxReplicas: Invalid value: 4: must not be less than minReplicas 5`},
		},
		{
			"nothing at all", MachineAutoscalerSpec{-1, 0, ScaleTargetRef{}},
			[]string{
				`spec.minReplicas: Invalid value: -1: must be at least 0`,
				`spec.maxReplicas: Invalid value: 0: must be at least 1`,
				`spec.scaleTargetRef.kind: Required value: must name what is scaled`,
				`spec.scaleTargetRef.name: Required value: must name what is scaled`,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ma := MachineAutoscaler{Spec: tt.spec}
			var got []string
			for _, e := range ma.Validate() {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyMachineSetsAreTargets(t *testing.T) {
	t.Parallel()
	for ref, want := range map[ScaleTargetRef]bool{
		{"machine.openshift.io/v1beta1", "MachineSet", "a"}: true,
		{"cluster.x-k8s.io/v1beta1", "MachineSet", "a"}:     false,
		{"machine.openshift.io/v1beta1", "Machine", "a"}:    false,
		{"", "MachineSet", "a"}:                             false,
	} {
		if got := ref.IsMachineSet(); got != want {
			t.Errorf("%+v: got %v, want %v", ref, got, want)
		}
	}
}

func TestSchemeKnowsBothKinds(t *testing.T) {
	t.Parallel()
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, o := range []runtime.Object{&ClusterAutoscaler{}, &ClusterAutoscalerList{}, &MachineAutoscaler{}, &MachineAutoscalerList{}} {
		if _, _, err := s.ObjectKinds(o); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(o, o.DeepCopyObject()); diff != "" {
			t.Errorf("copy differs (-original +copy):\n%s", diff)
		}
	}
}
