// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	provenRow = regexp.MustCompile(`(?m)^\| ([SB0-9a-e.]+) \| (.*) \|$`)
	proof     = regexp.MustCompile("`([^`]+)`")
)

// rowsToProve are the rows that docs/rows.md has to name.
func rowsToProve() (rows []string) {
	for _, r := range []struct {
		prefix   string
		from, to int
	}{
		{"S", 1, 30}, {"S", 44, 54}, {"S", 61, 65}, {"S", 73, 78}, {"S", 85, 94}, {"B", 1, 46}, {"B", 62, 69}, {"B", 83, 83},
		{"2a.", 1, 10}, {"2b.", 1, 11},
	} {
		for i := r.from; i <= r.to; i++ {
			rows = append(rows, fmt.Sprint(r.prefix, i))
		}
	}
	return append(rows, "2e")
}

// Every row of docs/rows.md names what proves it, and that exists.
func TestRowsAreProved(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/rows.md")
	if err != nil {
		t.Fatal(err)
	}
	proofs := map[string]string{}
	for _, m := range provenRow.FindAllStringSubmatch(string(text), -1) {
		proofs[m[1]] = m[2]
	}
	for _, row := range rowsToProve() {
		named := proof.FindAllStringSubmatch(proofs[row], -1)
		if len(named) == 0 && proofs[row] != "–" {
			t.Errorf("row %s has no proof", row)
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

// unproved says what is wrong with a proof: a file, a file with a test in it, a field of an API in passing, or a
// scenario.
func unproved(name string) string {
	file, test, _ := strings.Cut(name, ":")
	if !strings.Contains(name, "/") {
		return ""
	}
	if path.Ext(file) == "" {
		function, scenario := path.Split(file)
		file = "functions/" + function + "testdata/" + scenario + ".txtar"
	}
	text, err := os.ReadFile("../" + file)
	switch {
	case err != nil:
		return err.Error()
	case test != "" && !strings.Contains(string(text), "func "+test+"("):
		return file + " has no " + test
	}
	return ""
}
