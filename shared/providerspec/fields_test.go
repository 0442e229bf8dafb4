// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1alpha1 "github.com/openshift/api/machine/v1alpha1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var providers = map[string]string{
	"aws": "AWSMachineProviderConfig", "azure": "AzureMachineProviderSpec", "vsphere": "VSphereMachineProviderSpec",
	"openstack": "OpenstackProviderSpec", "baremetal": "BareMetalMachineProviderSpec", "ovirt": "OvirtMachineProviderSpec",
	"libvirt": "LibvirtMachineProviderConfig", "kubemark": "KubemarkMachineProviderSpec",
}

// Manifests written for OpenShift work unchanged: every field of its types is a field here, of the same type of JSON.
func TestFieldsAreThoseOfOpenShift(t *testing.T) {
	t.Parallel()
	for kind, theirs := range map[string]reflect.Type{
		"AWSMachineProviderConfig":   reflect.TypeFor[machinev1beta1.AWSMachineProviderConfig](),
		"AzureMachineProviderSpec":   reflect.TypeFor[machinev1beta1.AzureMachineProviderSpec](),
		"VSphereMachineProviderSpec": reflect.TypeFor[machinev1beta1.VSphereMachineProviderSpec](),
		"OpenstackProviderSpec":      reflect.TypeFor[machinev1alpha1.OpenstackProviderSpec](),
	} {
		want, got := map[string]string{}, map[string]string{}
		paths(theirs, "", want)
		paths(structOf(kind), "", got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-OpenShift +ours):\n%s", kind, diff)
		}
	}
}

// deepest is how many objects, lists and maps the policies look into, one inside the other.
const deepest = 8

// The policies know the same fields, however deep inside, of the same types, and the same versions of the API.
func TestFieldsAreThoseOfThePolicies(t *testing.T) {
	t.Parallel()
	for name, kind := range providers {
		policies := variablesOf(t, name)
		want, got := map[string]map[string]string{}, map[string]map[string]string{}
		schemaOf(structOf(kind), "spec", structOf(kind).Name(), want)
		schema := strings.ReplaceAll(policies[name+"-rules"]["schema"], "'", `"`)
		if err := json.Unmarshal([]byte(schema), &got); err != nil {
			t.Errorf("%s: schema: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: fields (-struct +policy):\n%s", name, diff)
		}
		if d := depth(want, "spec"); d > deepest {
			t.Errorf("%s: values stand %d deep, the policies look only %d deep", name, d, deepest)
		}
		k, _ := kindOf(kind)
		if versions := policies[name+"-warnings"]["validation"]; !cmp.Equal(keys(quotedIn(k.versions)), keys(quoted(versions))) {
			t.Errorf("%s: versions are %v, the policy has %s", name, k.versions, versions)
		}
	}
}

func depth(schema map[string]map[string]string, typ string) int {
	deep := 0
	for strings.HasPrefix(typ, "[]") || strings.HasPrefix(typ, "{}") {
		typ, deep = typ[2:], deep+1
	}
	inside := 0
	for _, field := range schema[typ] {
		inside = max(inside, 1+depth(schema, field))
	}
	return deep + inside
}

// What CEL reads as a quantity it must be able to read in no time.
func TestPoliciesGuardQuantities(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../config/policy/common/judging.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "matches('"+quantityPattern.String()+"')") {
		t.Errorf("judging.yaml does not match %s", quantityPattern)
	}
	if !strings.Contains(string(b), "name: level"+strconv.Itoa(deepest)) || strings.Contains(string(b), "name: level"+strconv.Itoa(deepest+1)) {
		t.Errorf("judging.yaml does not look %d deep", deepest)
	}
}

func structOf(kind string) reflect.Type {
	k, _ := kindOf(kind)
	return reflect.TypeOf(k.empty()).Elem()
}

// paths lists every field below t with the type that it has in JSON.
func paths(t reflect.Type, prefix string, into map[string]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			paths(f.Type, prefix, into)
			continue
		}
		typ, inner := typeOf(f.Type)
		if name == "metadata" {
			typ, inner = "object", nil // nobody reads it
		}
		into[prefix+name] = typ
		if inner != nil {
			paths(inner, prefix+name+".", into)
		}
	}
}

func typeOf(t reflect.Type) (typ string, inner reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[resource.Quantity]() || t == reflect.TypeFor[Quantity]():
		return "quantity", nil
	case t == reflect.TypeFor[metav1.Duration]() || t.Kind() == reflect.String:
		return "string", nil
	case t.Kind() == reflect.Bool:
		return "boolean", nil
	case t.Kind() == reflect.Struct:
		return "object", t
	case t.Kind() == reflect.Map:
		return "object", nil
	case t.Kind() == reflect.Slice:
		element, inner := typeOf(t.Elem())
		return "list of " + element, inner
	}
	return "integer", nil
}

// variablesOf reads the variables of a file's policies, by policy and name. The first validation is among them.
func variablesOf(t *testing.T, name string) map[string]map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../config/policy", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]string{}
	for _, doc := range bytes.Split(b, []byte("\n---\n")) {
		var p struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Variables   []struct{ Name, Expression string }
				Validations []struct{ Expression string }
			}
		}
		if err := yaml.Unmarshal(doc, &p); err != nil {
			t.Fatal(err)
		}
		if p.Kind != "ValidatingAdmissionPolicy" || len(p.Spec.Validations) == 0 {
			continue
		}
		variables := map[string]string{"validation": p.Spec.Validations[0].Expression}
		for _, v := range p.Spec.Variables {
			variables[v.Name] = v.Expression
		}
		all[strings.TrimSuffix(p.Metadata.Name, ".machine-functions")] = variables
	}
	return all
}

// quoted returns the words between single quotes.
func quoted(expression string) map[string]string {
	words := map[string]string{}
	for _, m := range regexp.MustCompile(`'([^']+)'`).FindAllStringSubmatch(expression, -1) {
		words[m[1]] = ""
	}
	return words
}

func quotedIn(words []string) map[string]string {
	return quoted("'" + strings.Join(words, "' '") + "'")
}

func keys(m map[string]string) map[string]bool {
	set := map[string]bool{}
	for k := range maps.Keys(m) {
		set[k] = true
	}
	return set
}

// schemaOf writes down what fields each object below t has, in the words of the policies. A type is called as here,
// without the provider.
func schemaOf(t reflect.Type, name, provider string, into map[string]map[string]string) {
	if into[name] != nil {
		return
	}
	into[name] = map[string]string{}
	for field, typ := range fieldsOf(t) {
		into[name][field] = schemaType(typ, provider, into)
	}
}

func schemaType(t reflect.Type, provider string, into map[string]map[string]string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[Quantity]():
		return "quantity"
	case t == reflect.TypeFor[metav1.Duration]():
		return "duration"
	case t.Kind() == reflect.Struct:
		name := strings.TrimPrefix(t.Name(), provider)
		schemaOf(t, name, provider, into)
		return name
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Interface:
		return "object"
	case t.Kind() == reflect.Map:
		return "{}" + schemaType(t.Elem(), provider, into)
	case t.Kind() == reflect.Slice:
		return "[]" + schemaType(t.Elem(), provider, into)
	case t.Kind() == reflect.Bool:
		return "boolean"
	case t.Kind() == reflect.String:
		return "string"
	}
	return "integer"
}
