// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
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
	increased = regexp.MustCompile(`increase\((.+?)\[(\w+)\]\)`)
)

// rule is what these tests look at of an alert.
type rule struct {
	Alert, Expr, For string
	Annotations      map[string]string
}

// clouds are the functions that have drivers of clouds, as function.go lists them.
var clouds = regexp.MustCompile(`(?m)^\s*(\w+)\.Function\.Name:\s*{\w+\.Function, drivers\.Table}`)

// Whoever asks a cloud may be refused.
func TestRefusedCredentialsAreToldOfWhoeverAsksClouds(t *testing.T) {
	t.Parallel()
	ask := clouds.FindAllStringSubmatch(text(t, filepath.Join("..", "function.go")), -1)
	if len(ask) < 2 {
		t.Fatalf("%d functions ask clouds", len(ask))
	}
	for _, r := range alerts(t) {
		for _, f := range ask {
			if r.Alert == "CloudCredentialsRefused" && !strings.Contains(strings.ReplaceAll(r.Expr, "_", ""), "machines"+f[1]+"cloudcallstotal") {
				t.Errorf("%s does not look at %s", r.Alert, f[1])
			}
		}
	}
}

// Whom the clock wakes is missed where it does nothing: its Trigger may not be Ready, which no other alert tells. approve-node is optional.
func TestEveryFunctionIsMissed(t *testing.T) {
	t.Parallel()
	for _, r := range alerts(t) {
		if r.Alert != "MachineFunctionSilent" {
			continue
		}
		for _, name := range load(t, os.DirFS("..")).functions() {
			own := `label_replace(vector(1), "function", "` + name + `", "", "")`
			if counted := "machines_" + strings.ReplaceAll(name, "-", "_") + "_invocations_total"; name != "approve-node" && (!strings.Contains(r.Expr, own) || !strings.Contains(r.Expr, counted)) {
				t.Errorf("nobody misses %s: %s", name, r.Expr)
			}
		}
		return
	}
	t.Error("no alert tells of a function that does nothing")
}

func alerts(t *testing.T) (all []rule) {
	t.Helper()
	var rules struct {
		Spec struct{ Groups []struct{ Rules []rule } }
	}
	if err := yaml.Unmarshal([]byte(text(t, filepath.Join("..", "config", "monitoring", "alerts.yaml"))), &rules); err != nil {
		t.Fatal(err)
	}
	for _, group := range rules.Spec.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// A count that begins has no increase, and a process may count but once before it is gone. An alert about something that happened, rather than
// lasts, says so too of a count that was not there before.
func TestAlertsSeeTheFirstOfACount(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, r := range alerts(t) {
		for _, of := range increased.FindAllStringSubmatch(r.Expr, -1) {
			if r.For != "" {
				continue
			}
			looked++
			if first := of[1] + " unless " + of[1] + " offset " + of[2]; !strings.Contains(r.Expr, first) {
				t.Errorf("%s does not see a first count: %q lacks %q", r.Alert, r.Expr, first)
			}
		}
	}
	if looked < 3 {
		t.Errorf("looked at %d alerts only", looked)
	}
}

// What an alert says of itself is there when it fires: its expression keeps every label that its words name. Dead letters are told apart by
// the answer, which says whom to look for: 401 is a sender's token (docs/authentication.md).
func TestAlertsKeepWhatTheyName(t *testing.T) {
	t.Parallel()
	told := set{}
	for _, r := range alerts(t) {
		kept := labelKept.FindStringSubmatch(r.Expr)
		for _, words := range r.Annotations {
			for _, label := range labelTold.FindAllStringSubmatch(words, -1) {
				if told[r.Alert+" "+label[1]] = true; kept == nil || !slices.Contains(strings.Split(kept[1], ", "), label[1]) {
					t.Errorf("%s tells the label %s, its expression keeps %q", r.Alert, label[1], kept)
				}
			}
		}
	}
	if !told["DeadLetters code"] {
		t.Errorf("DeadLetters does not tell the answer: %q", told.sorted())
	}
}

// What dead-letter counts may lack a word: whoever reaches it may post anything. The alert has words without it.
func TestDeadLettersMayLackAWord(t *testing.T) {
	t.Parallel()
	for _, r := range alerts(t) {
		for name, words := range r.Annotations {
			for _, label := range labelTold.FindAllString(words, -1) {
				if r.Alert == "DeadLetters" && !strings.Contains(words, "{{ if "+label+" }}") {
					t.Errorf("%s has a hole where %s is empty: %s", name, label, words)
				}
			}
		}
	}
}
