// SPDX-License-Identifier: Apache-2.0

package providerspec_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/providerspec"
	"github.com/machine-functions/machine-functions/test/admission"
)

// Every rule of a policy has a case in the table, about which Go says the same words; and whatever Go says in a case, a
// policy can say. That the policies do say it is seen on a real API server in test/e2e.
func TestPoliciesSayTheSame(t *testing.T) {
	t.Parallel()
	for _, table := range admission.Tables(t, "testdata") {
		t.Run(table.Provider, func(t *testing.T) {
			t.Parallel()
			var errs, warnings []string
			for _, c := range table.Cases {
				found, strange := providerspec.Validate(providerspec.Default(c.Spec, c.Subject()), c.Subject())
				for _, e := range found {
					errs = append(errs, e.Error())
				}
				warnings = append(warnings, strange...)
			}
			// What has a default is missing only where the defaults are.
			for _, e := range bare(t, table) {
				errs = append(errs, e.Error())
			}
			patterns := messagesOf(t, table.Provider, "-rules")
			types := firstMessage(t)
			patterns[types] = patternOf(t, types)
			compare(t, patterns, errs)
			compare(t, messagesOf(t, table.Provider, "-warnings"), warnings)
		})
	}
}

// bare returns what is wrong with a spec that says nothing and gets no defaults.
func bare(t *testing.T, table admission.Table) field.ErrorList {
	t.Helper()
	spec, err := json.Marshal(map[string]any{"kind": providerspec.KindOf(table.Good)})
	if err != nil {
		t.Fatal(err)
	}
	errs, _ := providerspec.Validate(spec, admission.Subject)
	return errs
}

// compare holds that every pattern has its text and every text its pattern.
func compare(t *testing.T, patterns map[string]*regexp.Regexp, texts []string) {
	t.Helper()
	said := map[string]bool{}
	for _, text := range texts {
		found := false
		for expression, pattern := range patterns {
			if pattern.MatchString(text) {
				said[expression], found = true, true
			}
		}
		if !found {
			t.Errorf("no policy says %q", text)
		}
	}
	for expression := range patterns {
		if !said[expression] {
			t.Errorf("no case makes Go say %s", expression)
		}
	}
}

// An API server says no message that has line breaks or is longer than 5 kB, as one is that quotes such a value: it says the rule's
// message then, or, where that has none, its expression, of which nobody learns which field is wrong and why.
func TestWhatCannotBeQuotedIsSaidWithout(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../config/policy/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %q, %v", files, err)
	}
	for _, file := range append(files, "../../config/policy/common/refusing.yaml") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range regexp.MustCompile(`(?m)^ *- (?:op|expression): `).Split(string(b), -1) {
			_, said, quotes := strings.Cut(rule, "messageExpression: ")
			said, _, _ = strings.Cut(said, "reason: ")
			if quotes && regexp.MustCompile(`\\?"'\s*\+|variables\.unknown`).MatchString(said) && !strings.Contains(rule, "  message: ") {
				t.Errorf("%s: no message beside %s", filepath.Base(file), said)
			}
		}
	}
}

// messagesOf returns what one of a provider's policies says, as patterns by their expression.
func messagesOf(t *testing.T, provider, policy string) map[string]*regexp.Regexp {
	t.Helper()
	b, err := os.ReadFile("../../config/policy/" + provider + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	patterns := map[string]*regexp.Regexp{}
	for _, doc := range bytes.Split(b, []byte("\n---\n")) {
		var p struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Validations []struct{ MessageExpression string }
			}
		}
		if err := yaml.Unmarshal(doc, &p); err != nil {
			t.Fatal(err)
		}
		if p.Kind != "ValidatingAdmissionPolicy" || p.Metadata.Name != provider+policy+".machine-functions" {
			continue
		}
		for _, v := range p.Spec.Validations {
			patterns[v.MessageExpression] = patternOf(t, v.MessageExpression)
		}
	}
	if len(patterns) == 0 {
		t.Fatalf("%s%s says nothing", provider, policy)
	}
	return patterns
}

// firstMessage returns what every policy says first, about values of another type.
func firstMessage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../config/policy/common/refusing.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var patches []struct {
		Path  string
		Value any
	}
	if err := yaml.Unmarshal(b, &patches); err != nil {
		t.Fatal(err)
	}
	for _, p := range patches {
		if rule, ok := p.Value.(map[string]any); ok && p.Path == "/spec/validations/0" {
			message, _ := rule["messageExpression"].(string)
			return message
		}
	}
	t.Fatal("refusing.yaml says nothing")
	return ""
}

var (
	// A sum of CEL, cut at its plus signs: words in quotes, or what stands between them, up to three brackets deep.
	summand = regexp.MustCompile(`'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\[[^\]]*\]|\{[^}]*\}|[^'"(\[{+]+|\+`)
	escaped = regexp.MustCompile(`\\(.)`)
)

// patternOf returns what matches the sum's words, with anything between them.
func patternOf(t *testing.T, sum string) *regexp.Regexp {
	t.Helper()
	var b strings.Builder
	for _, s := range summand.FindAllString(sum, -1) {
		switch s = strings.TrimSpace(s); {
		case s == "" || s == "+":
		case s[0] == '\'' || s[0] == '"':
			b.WriteString(regexp.QuoteMeta(escaped.ReplaceAllString(s[1:len(s)-1], "$1")))
		default:
			b.WriteString(".*")
		}
	}
	p, err := regexp.Compile("(?s)^" + b.String() + "$")
	if err != nil || !strings.Contains(sum, "variables.at") {
		t.Fatalf("%s: %v", sum, err)
	}
	return p
}
