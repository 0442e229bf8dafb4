// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// crdSchema is the part of an OpenAPI schema that the tests read.
type crdSchema struct {
	Type        string               `json:"type"`
	Default     any                  `json:"default"`
	Properties  map[string]crdSchema `json:"properties"`
	Items       *crdSchema           `json:"items"`
	Validations []struct {
		Rule string `json:"rule"`
	} `json:"x-kubernetes-validations"`
}

func TestTypesMatchTheCustomResourceDefinitions(t *testing.T) {
	t.Parallel()
	for plural, spec := range map[string]reflect.Type{
		"clusterautoscalers": reflect.TypeFor[ClusterAutoscalerSpec](),
		"machineautoscalers": reflect.TypeFor[MachineAutoscalerSpec](),
	} {
		got := map[string]string{}
		want := map[string]string{}
		typeFields(spec, "spec", got)
		schemaFields(crdSpec(t, plural), "spec", want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-custom resource definition +Go type):\n%s", plural, diff)
		}
	}
}

func TestPatternsAreThoseOfTheCustomResourceDefinition(t *testing.T) {
	t.Parallel()
	s := crdSpec(t, "clusterautoscalers")
	down := s.Properties["scaleDown"].Properties
	for field, at := range map[string]struct {
		schema  crdSchema
		pattern *regexp.Regexp
	}{
		"delayAfterAdd":        {down["delayAfterAdd"], durationPattern},
		"delayAfterDelete":     {down["delayAfterDelete"], durationPattern},
		"delayAfterFailure":    {down["delayAfterFailure"], durationPattern},
		"unneededTime":         {down["unneededTime"], durationPattern},
		"utilizationThreshold": {down["utilizationThreshold"], fractionPattern},
		"maxNodeProvisionTime": {s.Properties["maxNodeProvisionTime"], durationPattern},
		"newPodScaleUpDelay":   {s.Properties["scaleUp"].Properties["newPodScaleUpDelay"], durationPattern},
	} {
		quoted := strings.ReplaceAll(at.pattern.String(), `\`, `\\`)
		if len(at.schema.Validations) != 1 || !strings.Contains(at.schema.Validations[0].Rule, "matches('"+quoted+"')") {
			t.Errorf("%s: rules %+v do not match %s", field, at.schema.Validations, at.pattern)
		}
	}
}

// crdSpec returns the schema of .spec.
func crdSpec(t *testing.T, plural string) crdSchema {
	t.Helper()
	b, err := os.ReadFile("../../config/crd/autoscaling.openshift.io_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema crdSchema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(b, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

// withDefaults does what the API server does to an object when it is written.
func withDefaults(t interface{ Fatal(...any) }, s crdSchema, spec ClusterAutoscalerSpec) ClusterAutoscalerSpec {
	b, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(b, &tree); err != nil {
		t.Fatal(err)
	}
	fill(s, tree)
	if b, err = json.Marshal(tree); err != nil {
		t.Fatal(err)
	}
	var out ClusterAutoscalerSpec
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func fill(s crdSchema, tree map[string]any) {
	for name, p := range s.Properties {
		if _, ok := tree[name]; !ok && p.Default != nil {
			tree[name] = p.Default
		}
		if child, ok := tree[name].(map[string]any); ok {
			fill(p, child)
		}
	}
}

func schemaFields(s crdSchema, at string, out map[string]string) {
	out[at] = s.Type
	if s.Items != nil {
		schemaFields(*s.Items, at+"[]", out)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		schemaFields(s.Properties[name], at+"."+name, out)
	}
}

func typeFields(t reflect.Type, at string, out map[string]string) {
	switch t.Kind() {
	case reflect.Pointer:
		typeFields(t.Elem(), at, out)
	case reflect.Slice:
		out[at] = "array"
		typeFields(t.Elem(), at+"[]", out)
	case reflect.Struct:
		out[at] = "object"
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			typeFields(f.Type, at+"."+name, out)
		}
	case reflect.Bool:
		out[at] = "boolean"
	case reflect.Int32:
		out[at] = "integer"
	case reflect.String:
		out[at] = "string"
	}
}
