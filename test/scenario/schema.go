// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/plan"
)

// schemas are those of config/crd, by kind.
var schemas = sync.OnceValues(func() (map[plan.Kind]*validate.SchemaValidator, error) {
	_, here, _, _ := runtime.Caller(0)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(here), "..", "..", "config", "crd", "*.*.*_*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no custom resources in config/crd: %w", err)
	}
	all := map[plan.Kind]*validate.SchemaValidator{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd struct {
			Spec struct {
				Group    string `json:"group"`
				Names    struct{ Kind plan.Kind }
				Versions []struct {
					Name   string
					Schema struct {
						OpenAPIV3Schema spec.Schema `json:"openAPIV3Schema"`
					}
				}
			}
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, v := range crd.Spec.Versions {
			if r, known := plan.ResourceOf(crd.Spec.Names.Kind); known && r.Group.Group == crd.Spec.Group && r.Group.Version == v.Name {
				all[r.Kind] = validate.NewSchemaValidator(&v.Schema.OpenAPIV3Schema, nil, "", strfmt.Default)
			}
		}
	}
	return all, nil
})

// Inadmissible returns why an API server would not admit the write of a, by the schema of its kind in config/crd, where it has one there, and by
// what it takes of any object; nothing of what stood there before, which API servers leave alone, nor of the rules in CEL.
func Inadmissible(a plan.Action) ([]string, error) {
	var before, after plan.Object
	switch a := a.(type) {
	case plan.Create:
		after = a.Object
	case plan.Update:
		before, after = a.Old, a.New
	case plan.UpdateStatus:
		before, after = a.Old, a.New
	case plan.Delete, plan.Evict, plan.Approve, plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
		return nil, nil
	}
	all, err := schemas()
	if err != nil {
		return nil, err
	}
	v := all[plan.KindOf(after)]
	faults, err := against(v, after)
	if err != nil || before == nil || len(faults) == 0 {
		return slices.Sorted(maps.Keys(faults)), err
	}
	old, err := against(v, before)
	maps.DeleteFunc(faults, func(fault string, _ bool) bool { return old[fault] })
	return slices.Sorted(maps.Keys(faults)), err
}

// inadmissible returns an error where an API server would not admit a write of p, or an Event.
func inadmissible(p plan.Plan) error {
	told := p.Notes
	for _, seq := range p.Do {
		told = append(told[:len(told):len(told)], seq.Notes...)
		for _, a := range seq.Do {
			faults, err := Inadmissible(a)
			if err == nil && len(faults) > 0 {
				err = fmt.Errorf("no API server admits %.1000q: %.1000s", a, strings.Join(faults, "; "))
			}
			if err != nil {
				return err
			}
		}
	}
	for _, n := range told {
		if err := untellable(n); err != nil {
			return err
		}
	}
	return nil
}

// against returns what there is against o; v is nil where its kind has no schema.
func against(v *validate.SchemaValidator, o plan.Object) (map[string]bool, error) {
	faults := map[string]bool{}
	for _, e := range limits(o) {
		faults[e.Error()] = true
	}
	if v == nil {
		return faults, nil
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	for _, e := range v.Validate(value).Errors {
		faults[e.Error()] = true
	}
	return faults, nil
}
