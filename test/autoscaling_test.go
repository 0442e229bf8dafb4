// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var scalingRow = regexp.MustCompile(`(?m)^\| ([SBCDW]\d+) \| (.*) \|$`)

// Every row about autoscaling says in docs/autoscaling.md what proves it, and that exists, or why it does not apply.
func TestRowsOfAutoscalingAreProved(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/autoscaling.md")
	if err != nil {
		t.Fatal(err)
	}
	proofs := map[string]string{}
	for _, m := range scalingRow.FindAllStringSubmatch(string(text), -1) {
		if proofs[m[1]] != "" {
			t.Errorf("row %s stands there twice", m[1])
		}
		proofs[m[1]] = m[2]
	}
	rows := []string{"D29"}
	for _, r := range []struct {
		prefix   string
		from, to int
	}{{"C", 1, 87}, {"B", 84, 113}, {"S", 80, 83}, {"W", 1, 3}, {"W", 5, 7}, {"W", 9, 10}, {"W", 12, 13}, {"W", 15, 15}, {"D", 42, 49}} {
		for i := r.from; i <= r.to; i++ {
			rows = append(rows, fmt.Sprint(r.prefix, i))
		}
	}
	for _, row := range rows {
		named := proof.FindAllStringSubmatch(proofs[row], -1)
		if len(named) == 0 && !strings.HasPrefix(proofs[row], "does not apply, because ") {
			t.Errorf("row %s has neither a proof nor a reason why it does not apply", row)
		}
		for _, p := range named {
			if why := unproved(p[1]); why != "" {
				t.Errorf("row %s: %s", row, why)
			}
		}
		delete(proofs, row)
	}
	for row := range proofs {
		t.Errorf("row %s is none of those to prove", row)
	}
}
