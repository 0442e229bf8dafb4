// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"regexp"
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
	rows := rowsOf([]span{{"C", 1, 87}, {"B", 84, 113}, {"S", 80, 83}, {"W", 1, 3}, {"W", 5, 7}, {"W", 9, 10}, {"W", 12, 13}, {"W", 15, 15}, {"D", 42, 49}}...)
	checkProofs(t, proofs, append(rows, "D29"), "does not apply, because ")
}
