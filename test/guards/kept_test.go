// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// guardsOfKept are the guards that schedules name which test/sim keeps, and how many each.
func guardsOfKept(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "test/sim/kept_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]int{}
	for _, m := range regexp.MustCompile(`\bguard:\s+"([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		named[m[1]]++
	}
	if len(named) == 0 {
		t.Fatal("no kept schedule names a guard")
	}
	return named
}

// Guards that kept schedules name are some, and docs/without-a-leader.md says how often one is named.
func TestKeptSchedulesNameGuards(t *testing.T) {
	t.Parallel()
	all := 0
	for name, n := range guardsOfKept(t) {
		all += n
		if !slices.ContainsFunc(All(), func(g Guard) bool { return g.Name == name }) {
			t.Errorf("a kept schedule names %s, which is no guard", name)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/without-a-leader.md"))
	if says := fmt.Sprintf("Of those kept %d name the guard", all); err != nil || !strings.Contains(string(text), says) {
		t.Errorf("docs/without-a-leader.md does not say %q: %v", says, err)
	}
}

// What is kept of a fault shows it still: each schedule that names a guard fails without it.
func TestKeptSchedulesWithoutEachGuard(t *testing.T) { //nolint:paralleltest // each compiles
	if !*remove {
		t.Skip("make guards")
	}
	named := guardsOfKept(t)
	for _, g := range All() { //nolint:paralleltest // each compiles
		if ok, err := regexp.MatchString(*only, g.Name); err != nil || !ok || named[g.Name] == 0 || !falls(g.Name, *share) {
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			//nolint:gosec // what is run are this repository's tests
			cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-ldflags=-s -w", "-overlay="+gone(t, g), "-timeout=5m",
				"-run=^TestKeptSchedules$/^"+g.Name+"(#[0-9]+)?$", "./test/sim", "-args", "-brief")
			cmd.Dir = root
			out, _ := cmd.CombinedOutput() // it fails
			if n := strings.Count(string(out), " again: "); n != named[g.Name] {
				t.Errorf("without %s %d of %d kept schedules fail:\n%s", g.Name, n, named[g.Name], out)
			}
		})
	}
}
