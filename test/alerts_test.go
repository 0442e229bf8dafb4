// SPDX-License-Identifier: Apache-2.0

package test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var (
	labelTold = regexp.MustCompile(`\$labels\.(\w+)`)
	labelKept = regexp.MustCompile(`by \(([\w, ]+)\)`)
)

// What an alert says of itself is there when it fires: its expression keeps every label that its words name. Dead letters are told apart by
// the answer, which says whom to look for: 401 is a sender's token (docs/authentication.md).
func TestAlertsKeepWhatTheyName(t *testing.T) {
	t.Parallel()
	var rules struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr string
					Annotations map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text(t, filepath.Join("..", "config", "monitoring", "alerts.yaml"))), &rules); err != nil {
		t.Fatal(err)
	}
	told := set{}
	for _, group := range rules.Spec.Groups {
		for _, rule := range group.Rules {
			kept := labelKept.FindStringSubmatch(rule.Expr)
			for _, words := range rule.Annotations {
				for _, label := range labelTold.FindAllStringSubmatch(words, -1) {
					if told[rule.Alert+" "+label[1]] = true; kept == nil || !slices.Contains(strings.Split(kept[1], ", "), label[1]) {
						t.Errorf("%s tells the label %s, its expression keeps %q", rule.Alert, label[1], kept)
					}
				}
			}
		}
	}
	if !told["DeadLetters code"] {
		t.Errorf("DeadLetters does not tell the answer: %q", told.sorted())
	}
}
