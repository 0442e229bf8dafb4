// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	remove = flag.Bool("remove", false, "remove each guard in turn and want the tests to fail; takes long")
	quick  = flag.Bool("quick", false, "other tests only where the simulation does not notice")
	only   = flag.String("only", ".", "of those whose name matches this")
	table  = flag.String("table", "", "write what noticed the removal of each guard to this file")
)

const root = "../.."

// Every guard is where the list says, once, and every rule of RELIABILITY §2 has one.
func TestGuardsAreInPlace(t *testing.T) {
	t.Parallel()
	all := All()
	if len(all) < 40 {
		t.Errorf("%d guards, at least 40 are wanted", len(all))
	}
	names := map[string]bool{}
	for _, g := range all {
		if names[g.Name] {
			t.Errorf("%s is there twice", g.Name)
		}
		names[g.Name] = true
		if !slices.Contains(Rules, g.Rule) {
			t.Errorf("%s: no rule %s", g.Name, g.Rule)
		}
		text, err := os.ReadFile(filepath.Join(root, g.File))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), g.Text); n != 1 {
			t.Errorf("%s: stands %d times in %s:\n%s", g.Name, n, g.File, g.Text)
		}
	}
	for _, rule := range Rules {
		if !slices.ContainsFunc(all, func(g Guard) bool { return g.Rule == rule }) {
			t.Errorf("rule %s has no guard", rule)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/guards.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		known := func(g Guard) bool {
			return len(cells) > 3 && "| "+g.Name == cells[0] && g.Rule == cells[1] && g.File == cells[2]
		}
		if strings.HasPrefix(line, "| ") && cells[0] != "| guard" && !slices.ContainsFunc(all, known) {
			t.Errorf("docs/guards.md tells of what is no guard: %s", line)
		}
	}
}

// Without any one of the guards, tests fail: the simulation's, or those of the package.
func TestWithoutEachGuard(t *testing.T) { //nolint:paralleltest // each compiles
	if !*remove {
		t.Skip("make guards")
	}
	var rows []string
	for _, g := range All() {
		if ok, err := regexp.MatchString(*only, g.Name); err != nil || !ok {
			continue
		}
		t.Run(g.Name, func(t *testing.T) { //nolint:paralleltest // each compiles
			begin := time.Now()
			simulation, tests := without(t, g)
			row := fmt.Sprintf("| %s | %s | %s | %s | %s |", g.Name, g.Rule, g.File, simulation, tests)
			t.Logf("%s %v", row, time.Since(begin).Round(time.Second))
			rows = append(rows, row)
			write(t, rows)
			if simulation == "" && tests == "" {
				t.Error("nothing notices that it is gone")
			}
		})
	}
}

// write keeps what is known so far.
func write(t *testing.T, rows []string) {
	t.Helper()
	if *table == "" {
		return
	}
	if err := os.WriteFile(*table, []byte(heading+strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

const heading = `# Guards

What keeps the functions safe, line by line: each was taken away in turn, and tests failed. ` + "`make guards`" + ` does it again and
writes this page; test/guards has the list. The fourth column is the first invariant that the simulation saw broken, or the
test of it that failed; the fifth what else failed, scenarios mostly.

| guard | rule | where | simulation | other tests |
|---|---|---|---|---|
`

// without compiles and runs the tests without one guard.
func without(t *testing.T, g Guard) (simulation, tests string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, g.File))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{changed: bytes.Replace(text, []byte(g.Text), []byte(g.Gone), 1), overlay: list} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packages := strings.Fields(g.Tests)
	if len(packages) == 0 {
		packages = []string{"./" + filepath.Dir(g.File)}
	}
	simulation = firstFailure(t, []string{
		"test", "-count=1", "-vet=off", "-failfast", "-overlay=" + overlay, "-timeout=5m",
		"-run=TestSwarm|TestPriorities|TestSleeper|TestEveryCall|TestAllSchedules|TestStorm|TestPowerCycle", "./test/sim", "-args", "-times=0.15", "-brief",
	})
	if *quick && simulation != "" {
		return simulation, "not asked"
	}
	tests = firstFailure(t, append([]string{"test", "-short", "-count=1", "-vet=off", "-overlay=" + overlay, "-timeout=3m"}, packages...))
	return simulation, tests
}

// firstFailure runs go and returns the first thing that failed, or "".
func firstFailure(t *testing.T, args []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	name := ""
	for line := range strings.Lines(string(out)) {
		switch trimmed := strings.TrimSpace(line); {
		case strings.Contains(line, "[build failed]"), strings.Contains(line, "[setup failed]"):
			t.Fatalf("%s\n%s", err, out)
		case strings.HasPrefix(trimmed, "violation "):
			return strings.SplitN(strings.TrimPrefix(trimmed, "violation "), ":", 2)[0]
		case strings.HasPrefix(trimmed, "--- FAIL: "):
			name = strings.Fields(strings.TrimPrefix(trimmed, "--- FAIL: "))[0]
		case strings.HasPrefix(trimmed, "panic:") && name == "":
			name = "panic"
		}
	}
	if name == "" {
		name = "fails"
	}
	return name
}
