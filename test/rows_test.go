// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	provenRow = regexp.MustCompile(`(?m)^\| ([SBCDEW]\d+|2[abe][.\d]*|2f\.[a-z-]+) \| (.*) \|$`)
	proof     = regexp.MustCompile("`([^`]+)`")
	// A row of a table, an entry of a list, a paragraph, or what is set in bold.
	definedRow = regexp.MustCompile(`(?m)(?:^\| |^\d+\. |\*\*|^)((?:R-)?[SBCDEWL]\d+)(?: \||\*\*| —)`)
	citedRow   = regexp.MustCompile(`\b(?:R-)?[SBCDEW]\d+\b`)
)

// rowsToProve are the rows that docs/rows.md, or docs/healing.md, has to name.
func rowsToProve() []string {
	rows := rowsOf([]span{
		{"S", 1, 79}, {"S", 84, 94}, {"B", 1, 83}, {"D", 12, 20}, {"W", 19, 19}, {"C", 52, 52},
		{"E", 1, 40}, {"E", 43, 45}, {"E", 47, 47},
		{"2a.", 1, 10}, {"2b.", 1, 11},
	}...)
	for _, guard := range []string{"ledger", "two-looks", "partition", "re-check", "budget", "claim", "control-plane", "never-worked", "not-ours", "quiet"} {
		rows = append(rows, "2f."+guard)
	}
	return append(rows, "2e")
}

// Every row of docs/rows.md and docs/healing.md names what proves it, and that exists.
func TestRowsAreProved(t *testing.T) {
	t.Parallel()
	proofs := map[string]string{}
	for _, doc := range []string{"rows", "healing"} {
		text, err := os.ReadFile("../docs/" + doc + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range provenRow.FindAllStringSubmatch(string(text), -1) {
			proofs[m[1]] = m[2]
		}
	}
	checkProofs(t, proofs, rowsToProve(), "–")
}

// checkProofs wants every row proved by something that exists, or excused by how its entry begins, and no other row.
func checkProofs(t *testing.T, proofs map[string]string, rows []string, excuse string) {
	t.Helper()
	for _, row := range rows {
		named := proof.FindAllStringSubmatch(proofs[row], -1)
		if len(named) == 0 && !strings.HasPrefix(proofs[row], excuse) {
			t.Errorf("row %s has no proof, and does not begin with %q", row, excuse)
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

// span is consecutive rows.
type span struct {
	prefix   string
	from, to int
}

// rowsOf names the rows of some spans.
func rowsOf(spans ...span) (rows []string) {
	for _, s := range spans {
		for i := s.from; i <= s.to; i++ {
			rows = append(rows, fmt.Sprint(s.prefix, i))
		}
	}
	return rows
}

// What a scenario cites is a row of the specification, or a rule.
func TestCitedRowsExist(t *testing.T) {
	t.Parallel()
	var known strings.Builder
	for _, doc := range []string{"SPEC", "RELIABILITY"} {
		text, err := os.ReadFile("../docs/" + doc + ".md")
		if err != nil {
			t.Fatal(err)
		}
		known.Write(text)
	}
	rows := map[string]bool{}
	for _, m := range definedRow.FindAllStringSubmatch(known.String(), -1) {
		rows[m[1]] = true
	}
	scenarios, err := filepath.Glob("../functions/*/testdata/*.txtar")
	if err != nil || len(scenarios) == 0 {
		t.Fatal(err)
	}
	for _, file := range scenarios {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		story, _, _ := strings.Cut(string(text), "\n-- ")
		for _, m := range citedRow.FindAllString(story, -1) {
			if !rows[m] {
				t.Errorf("%s cites %s, which is no row", file, m)
			}
		}
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
