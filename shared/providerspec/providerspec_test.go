// SPDX-License-Identifier: Apache-2.0

package providerspec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/provider/kubemark"
	"github.com/machine-functions/machine-functions/shared/providerspec"
	"github.com/machine-functions/machine-functions/test/admission"
)

// The same table is judged by the policies in test/e2e.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, table := range admission.Tables(t, "testdata") {
		if len(table.Cases) < 12 {
			t.Errorf("%s has only %d cases", table.Provider, len(table.Cases))
		}
		for _, c := range table.Cases {
			t.Run(table.Provider+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				raw := providerspec.Default(c.Spec, c.Subject())
				found, warnings := providerspec.Validate(raw, c.Subject())
				var errs []string
				for _, e := range found {
					errs = append(errs, e.Error())
				}
				missing, more := admission.Match(c.Errors, errs)
				for _, m := range missing {
					t.Errorf("does not say %q", m)
				}
				for _, m := range more {
					t.Errorf("says %q", m)
				}
				missing, more = admission.Match(c.Warnings, warnings)
				for _, m := range missing {
					t.Errorf("does not warn %q", m)
				}
				for _, m := range more {
					t.Errorf("warns %q", m)
				}
			})
		}
	}
}

// The simulated cloud has rules of its own; whatever is refused here it refuses too, so no Machine fails late.
func TestKubemarkAgrees(t *testing.T) {
	t.Parallel()
	cloud := kubemark.Provider(nil)
	for _, table := range admission.Tables(t, "testdata") {
		for _, c := range table.Cases {
			if table.Provider != "kubemark" {
				continue
			}
			if _, err := cloud.InstanceType(c.Spec); (err != nil) != (len(c.Errors) > 0) {
				t.Errorf("%s: want %q, the cloud says %v", c.Name, c.Errors, err)
			}
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, table := range admission.Tables(t, "testdata") {
		for _, d := range table.Defaults {
			t.Run(table.Provider+"/"+d.Name, func(t *testing.T) {
				t.Parallel()
				got := providerspec.Default(d.Spec, d.Subject())
				if diff := cmp.Diff(parsed(t, d.Want), parsed(t, got)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if again := providerspec.Default(got, d.Subject()); !bytes.Equal(again, got) {
					t.Errorf("defaulted again, %s became %s", got, again)
				}
			})
		}
	}
}

// What cannot be read is named where it stands, with what stands there, in words that nobody has to know Go for.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ spec, want string }{
		{`{"kind":"AWSMachineProviderConfig","tags":5}`, `tags: Invalid value: "5": must be a list`},
		{`{"kind":"AWSMachineProviderConfig","tags":[{"name":"a"},5]}`, `tags[1]: Invalid value: "5": must be an object`},
		{`{"kind":"AWSMachineProviderConfig","tags":[{"name":5}]}`, `tags[0].name: Invalid value: "5": must be a string`},
		{`{"kind":"AWSMachineProviderConfig","ami":{"filters":[{"values":["a",{}]}]}}`, `ami.filters[0].values[1]: Invalid value: "{}": must be a string`},
		{`{"kind":"AWSMachineProviderConfig","blockDevices":[{"ebs":{"volumeSize":"5"}}]}`, `blockDevices[0].ebs.volumeSize: Invalid value: "5": must be an integer`},
		{`{"kind":"AWSMachineProviderConfig","publicIp":"yes"}`, `publicIp: Invalid value: "yes": must be a boolean`},
		{`{"kind":"AzureMachineProviderSpec","tags":{"team":["a"]}}`, `tags[team]: Invalid value: "[\"a\"]": must be a string`},
		{`{"kind":"AzureMachineProviderSpec","spotVMOptions":{"maxPrice":"x"}}`, `spotVMOptions.maxPrice: Invalid value: "x": must be a quantity such as 12Gi`},
		{`{"kind":"LibvirtMachineProviderConfig","volume":{"volumeSize":{}}}`, `volume.volumeSize: Invalid value: "{}": must be a quantity such as 12Gi`},
		{`{"kind":"LibvirtMachineProviderConfig","domainVcpu":99999999999999999999}`, `domainVcpu: Invalid value: "99999999999999999999": must be an integer`},
		{`{"kind":"KubemarkMachineProviderSpec","vanishAfter":{}}`, `vanishAfter: Invalid value: "{}": must be a duration such as 5m`},
		{`{"kind":"KubemarkMachineProviderSpec","metadata":[]}`, `metadata: Invalid value: "[]": must be an object`},
		{`{"kind":"KubemarkMachineProviderSpec","flavors":"4c12g30d"}`, `flavors: Forbidden: unknown field`},
	} {
		errs, _ := providerspec.Validate(json.RawMessage(tt.spec), admission.Subject)
		if len(errs) != 1 || errs[0].Error() != "providerSpec.value."+tt.want {
			t.Errorf("%s\n says %v\nwant %s", tt.spec, errs, tt.want)
		}
	}
}

func TestUnknownKindsAreLeftToTheirDriver(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{``, `null`, `[]`, `{}`, `{"kind":5}`, `{"kind":"MemoryMachineProviderSpec","type":5}`, `{"KIND":"AWSMachineProviderConfig"}`} {
		errs, warnings := providerspec.Validate(json.RawMessage(raw), admission.Subject)
		if len(errs)+len(warnings) > 0 {
			t.Errorf("%s: %v %v", raw, errs, warnings)
		}
		if got := providerspec.Default(json.RawMessage(raw), admission.Subject); string(got) != raw {
			t.Errorf("%s became %s", raw, got)
		}
		if kind := providerspec.KindOf(json.RawMessage(raw)); providerspec.Known(kind) {
			t.Errorf("%s is known", raw)
		}
	}
}

// What is larger or deeper than any spec is refused by its size alone.
func TestHugeSpecsAreRefused(t *testing.T) {
	t.Parallel()
	const head = `{"kind":"KubemarkMachineProviderSpec","flavor":"4c12g30d"`
	nested := func(n int) string { return head + `,"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}" }
	for name, c := range map[string]struct{ spec, says string }{
		"64 kB and a byte":   {head + strings.Repeat(" ", 64<<10-len(head)) + "}", "65536"},
		"64 levels":          {nested(64), "64 deep"},
		"9,000 levels":       {nested(9_000), "64 deep"},
		"as deep as may be":  {nested(63), "unknown field"},
		"brackets in a text": {head + `,"x":"` + strings.Repeat(`[\"{`, 100) + `"}`, "unknown field"},
	} {
		errs, _ := providerspec.Validate(json.RawMessage(c.spec), admission.Subject)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, errs, c.says)
		}
	}
}

// What is said of a spec is short, whatever and however much of it is wrong or strange: it stands in the status of each Machine and in the log.
func TestHugeSpecsAreToldInShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 30_000)
	var fields strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&fields, `,"x%d":1`, i)
	}
	for name, spec := range map[string]string{
		"a long value":         `{"kind":"KubemarkMachineProviderSpec","flavor":"` + long + `"}`,
		"a long name":          `{"kind":"KubemarkMachineProviderSpec","` + long + `":1}`,
		"many unknown fields":  `{"kind":"AWSMachineProviderConfig"` + fields.String() + `}`,
		"a long unknown field": `{"kind":"AWSMachineProviderConfig","` + long + `":1}`,
		"a long version":       `{"kind":"AWSMachineProviderConfig","apiVersion":"` + long + `"}`,
	} {
		errs, warnings := providerspec.Validate(json.RawMessage(spec), admission.Subject)
		if said := providerspec.Brief(errs); said == "" || len(said) > 1024 || !utf8.ValidString(said) {
			t.Errorf("%s: %d bytes are said: %.100s", name, len(said), said)
		}
		few := providerspec.Few(warnings)
		if len(few) > 11 || len(warnings) > 0 && few[0] == "" {
			t.Errorf("%s: %d warnings of %d", name, len(few), len(warnings))
		}
		for _, w := range few {
			if len(w) > 1024 || !utf8.ValidString(w) {
				t.Errorf("%s: a warning of %d bytes", name, len(w))
			}
		}
		if more := len(warnings) - 10; more > 0 && few[len(few)-1] != fmt.Sprintf("providerSpec.value: %d more", more) {
			t.Errorf("%s: of %d warnings the last says %q", name, len(warnings), few[len(few)-1])
		}
	}
}

// FuzzValidate: up to 64 kB of anything is judged at once, whatever it is, and defaults settle after one pass.
func FuzzValidate(f *testing.F) {
	for _, table := range admission.Tables(f, "testdata") {
		for _, c := range table.Cases {
			f.Add([]byte(c.Spec))
		}
	}
	f.Add([]byte(`{"kind":"AWSMachineProviderConfig","tags":[` + strings.Repeat(`{},`, 20000) + `{}]}`))
	for _, q := range []string{`"1e999999999"`, `1e999999999`, `"-1E-99"`, `"` + strings.Repeat("9", 60000) + `E"`} {
		f.Add([]byte(`{"kind":"KubemarkMachineProviderSpec","numCores":` + q + `}`))
	}
	f.Add([]byte(`{"kind":"AzureMachineProviderSpec","dataDisks":` + strings.Repeat(`[`, 30000)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 64<<10 {
			return
		}
		start := time.Now()
		filled := providerspec.Default(raw, admission.Subject)
		errs, _ := providerspec.Validate(filled, admission.Subject)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
		for _, e := range errs {
			if !strings.HasPrefix(e.Field, "providerSpec.value") || strings.HasSuffix(e.Field, ".") || e.Detail == "" && e.Type != field.ErrorTypeDuplicate {
				t.Errorf("%v names no field or says nothing", e)
			}
		}
		if said := providerspec.Brief(errs); len(said) > 1024 {
			t.Errorf("%d bytes are said: %.100s", len(said), said)
		}
		if again := providerspec.Default(filled, admission.Subject); !bytes.Equal(again, filled) {
			t.Errorf("defaulted again, %s became %s", filled, again)
		}
	})
}

func parsed(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
