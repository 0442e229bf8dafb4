// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
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
	remove = flag.Bool("remove", false, "remove each guard in turn and want the tests to fail")
	quick  = flag.Bool("quick", false, "the simulation only where no other test notices")
	cheap  = flag.Bool("cheap", false, "no simulation: what it alone noticed by the table stays open")
	slow   = flag.Bool("slow", false, "the simulation alone, without those that it was asked about")
	again  = flag.Bool("again", false, "the simulation alone, of those of which it saw none when it was asked last, but for today")
	times  = flag.Float64("times", 0.1, "how much of make test's simulation is played without one guard")
	only   = flag.String("only", ".", "of those whose name matches this")
	rest   = flag.Bool("rest", false, "of those that the table does not have yet")
	within = flag.Duration("within", 24*time.Hour, "begin with no guard later than this")
	share  = flag.String("share", "", "of those that fall to this text, one in sixteen, and without the simulation something else has to notice")
	table  = flag.String("table", "", "write what noticed the removal of each guard to this file")
)

const (
	root   = "../.."
	page   = "docs/guards.md"
	unread = "not asked"
	none   = "none" // and then of how many schedules, and when
	late   = "out of time"
)

// saw reports whether somebody noticed, by a cell of the table.
func saw(cell string) bool { return cell != "" && cell != unread && !strings.HasPrefix(cell, none) }

// Every guard is where the list says, once.
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
		text, err := os.ReadFile(filepath.Join(root, g.File))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), g.Text); n != 1 {
			t.Errorf("%s: stands %d times in %s:\n%s", g.Name, n, g.File, g.Text)
		}
	}
}

// Every rule of docs/RELIABILITY.md §2, and its §4, has a guard, or a reason why none can be taken away; no guard is of a rule that is not there.
func TestEveryRuleHasAGuard(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t)
	for _, rule := range rules {
		guarded := slices.ContainsFunc(All(), func(g Guard) bool { return g.Rule == rule })
		if _, excused := unguarded[rule]; guarded == excused {
			t.Errorf("rule %s has a guard: %v, and none by reason of %q", rule, guarded, unguarded[rule])
		}
	}
	for _, g := range All() {
		if !slices.Contains(rules, g.Rule) {
			t.Errorf("%s: RELIABILITY §2 has no rule %s", g.Name, g.Rule)
		}
	}
	for rule := range unguarded {
		if !slices.Contains(rules, rule) {
			t.Errorf("RELIABILITY §2 has no rule %s", rule)
		}
	}
}

// rulesOf reads the rules: G1 and so on, the numbered ones of a section as 2a.1, and sections without numbers as 2c.
func rulesOf(t *testing.T) (rules []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/RELIABILITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "\n## 2.")
	part, _, found := strings.Cut(part, "\n## 3.")
	if !found {
		t.Fatal("docs/RELIABILITY.md has no section 2 before a section 3")
	}
	global, number := regexp.MustCompile(`^- \*\*(G[0-9]+)`), regexp.MustCompile(`^([0-9]+)\. `)
	for chapter := range strings.SplitSeq(part, "\n### ") {
		name, body, _ := strings.Cut(chapter, " ")
		name = strings.TrimSuffix(name, ".")
		before := len(rules)
		for line := range strings.Lines(body) {
			if m := global.FindStringSubmatch(line); m != nil {
				rules = append(rules, m[1])
			} else if m := number.FindStringSubmatch(line); m != nil {
				rules = append(rules, name+"."+m[1])
			}
		}
		if len(rules) == before && len(name) == len("2c") {
			rules = append(rules, name)
		}
	}
	if len(rules) < 35 {
		t.Fatalf("only %d rules: %v", len(rules), rules)
	}
	return append(rules, "4") // which has no numbers
}

// Every guard was taken away, and something noticed.
func TestEveryGuardIsInTheTable(t *testing.T) {
	t.Parallel()
	rows := read(t, filepath.Join(root, page))
	for _, g := range All() {
		r, told := rows[g.Name]
		switch delete(rows, g.Name); {
		case !told:
			t.Errorf("%s does not tell what noticed that %s was gone: make guards ONLY='^%s$'", page, g.Name, g.Name)
		case r.rule != g.Rule || r.file != g.File:
			t.Errorf("%s: %s tells of rule %s in %s, it is %s in %s", g.Name, page, r.rule, r.file, g.Rule, g.File)
		case !saw(r.simulation) && !saw(r.tests):
			t.Errorf("nothing noticed that %s was gone", g.Name)
		}
	}
	for name := range rows {
		t.Errorf("%s tells of %s, which is no guard", page, name)
	}
}

// played is the code that the simulation runs, but for what only a server of HTTP does.
var played = regexp.MustCompile(`^(functions/(drain-node|evaluate-autoscale|link-node|provision-machine|remediate|scale-machineset|sweep-instances)|shared/(beside|machine|plan|runner|snapshot|provider/metal3))/`)

// row is what noticed that one guard was gone.
type row struct{ rule, file, simulation, tests string }

// read returns the rows of a table by the name of the guard.
func read(t *testing.T, file string) map[string]row {
	t.Helper()
	rows := map[string]row{}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) == 5 && strings.HasPrefix(line, "| ") && cells[0] != "guard" {
			rows[cells[0]] = row{cells[1], cells[2], cells[3], cells[4]}
		}
	}
	return rows
}

// write keeps what is known so far, in the order of the list.
func write(t *testing.T, file string, rows map[string]row) {
	t.Helper()
	var text strings.Builder
	seen, asked := 0, 0
	for _, r := range rows {
		if r.simulation != unread {
			asked++
		}
		if saw(r.simulation) {
			seen++
		}
	}
	fmt.Fprintf(&text, heading, len(rows), seen, asked)
	for _, g := range All() {
		if r, known := rows[g.Name]; known {
			fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", g.Name, g.Rule, g.File, r.simulation, r.tests)
		}
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

const heading = `# Guards

What keeps the functions safe, line by line: each was taken away in turn, and tests failed. ` + "`make guards`" + ` does it again and
writes this page, ` + "`make test`" + ` does so with one in sixteen, others for each commit; test/guards has the list, each with the rule of [RELIABILITY.md](RELIABILITY.md) §2 that asks for it, or 4 for its
§4. The last column is the first scenario or test that failed then, the one before it the invariant that a tenth of ` + "`make test`" + `'s
simulation saw broken, some ten thousand schedules. Where it saw none stands of how many, and when: less than a thousand are random ones
alone, as -again of test/guards asks about those of which it saw none; where nothing stands an older simulation saw none of ten thousand,
and today's was not asked. What none sees is of some limit or input which it does not have, or rarer. It was not asked about what it does not run:
servers, most drivers of clouds; nor about some that scenarios hold.
Of %d guards it saw %d, of the %d that it was asked about.

| guard | rule | where | simulation | other tests |
|---|---|---|---|---|
`

// Without any one of the guards, tests fail: those of the package, or the simulation's.
func TestWithoutEachGuard(t *testing.T) { //nolint:paralleltest // each compiles
	if !*remove {
		t.Skip("make guards")
	}
	known, rows := read(t, filepath.Join(root, page)), map[string]row{}
	if *table != "" {
		rows = known
	}
	begin := time.Now()
	for _, g := range All() { //nolint:paralleltest // each compiles
		_, told := known[g.Name]
		if ok, err := regexp.MatchString(*only, g.Name); err != nil || !ok || *rest && told || time.Since(begin) > *within || !falls(g.Name, *share) {
			continue
		}
		was := known[g.Name].simulation
		if (*slow || *again) && !toAsk(g, was, told) {
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			begin := time.Now()
			simulation, tests := without(t, g, known[g.Name].tests)
			if simulation == unread && told {
				simulation = was
			}
			if *slow || *again {
				tests = known[g.Name].tests
			}
			rows[g.Name] = row{g.Rule, g.File, simulation, tests}
			t.Logf("%+v %v", rows[g.Name], time.Since(begin).Round(time.Second))
			if *cheap && tests == "" {
				delete(rows, g.Name)
				if *share != "" || !saw(was) {
					t.Error("nothing notices that it is gone: make guards ONLY=" + g.Name)
				}
				t.Skip("the simulation was not asked")
			}
			if strings.HasPrefix(simulation, none) && tests == "" {
				t.Error("nothing notices that it is gone")
				delete(rows, g.Name)
			}
			if *table != "" {
				write(t, *table, rows)
			}
		})
	}
}

// toAsk reports whether the simulation is to be asked about a guard, of which it last told this.
func toAsk(g Guard, was string, told bool) bool {
	if *again {
		return told && played.MatchString(g.File) && was != unread && !saw(was) && !strings.HasSuffix(was, today())
	}
	return was == unread && played.MatchString(g.File)
}

// falls reports whether a guard is of a share. Each has the same chance, whatever others there are.
func falls(guard, share string) bool {
	h := fnv.New32a()
	_, _ = io.WriteString(h, share+" "+guard)
	return share == "" || h.Sum32()>>8%16 == 0 // the lowest bits follow the last letters
}

// without compiles and runs the tests without one guard: the cheap ones first, of them the one that noticed last.
func without(t *testing.T, g Guard, last string) (simulation, tests string) {
	t.Helper()
	// A test binary that nobody debugs links in half the time.
	common := []string{"test", "-vet=off", "-failfast", "-ldflags=-s -w", "-overlay=" + gone(t, g)}
	packages := strings.Fields(g.Tests)
	if len(packages) == 0 {
		packages = []string{"./" + filepath.Dir(g.File)}
	}
	short := slices.Concat(common, []string{"-short", "-timeout=6m"})
	alone := *slow || *again
	if !alone && strings.HasPrefix(last, "Test") && !strings.Contains(g.Tests, "-run=") {
		tests = firstFailure(t, slices.Concat(short, []string{"-run=" + exactly(last)}, packages))
	}
	if !alone && (tests == "" || tests == late) {
		tests = firstFailure(t, slices.Concat(short, packages))
	}
	if tests == late { // which says nothing
		t.Log("the tests ran out of time")
		tests = ""
	}
	if *cheap || *quick && tests != "" {
		return unread, tests
	}
	strategies, n := "TestSwarm|TestPriorities|TestSleeper|TestEvery|TestAllSchedules|TestStorm|TestPowerCycle", 100000**times
	if *again { // random ones alone: worlds and scopes take longer to be told than a few of their schedules
		strategies, n = "TestSwarm$|TestPriorities|TestSleeper", 9660**times
	}
	simulation = firstFailure(t, slices.Concat(common, []string{
		"-timeout=5m", "-run=" + strategies,
		"./test/sim", "-args", fmt.Sprintf("-times=%g", *times), "-brief",
	}))
	switch simulation {
	case "":
		simulation = fmt.Sprintf("%s of %.0f, %s", none, n, today())
	case late: // which says nothing
		simulation = unread
	}
	return simulation, tests
}

func today() string { return time.Now().UTC().Format(time.DateOnly) }

// exactly selects one test, or a part of one.
func exactly(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// gone returns the overlay in which a guard is taken away.
func gone(t *testing.T, g Guard) (overlay string) {
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
	changed := filepath.Join(dir, "changed.go")
	overlay = filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{changed: bytes.Replace(text, []byte(g.Text), []byte(g.Gone), 1), overlay: list} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}

// firstFailure runs go and returns the first thing that failed, or "".
func firstFailure(t *testing.T, args []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	name, built := told(string(out), ctx.Err() != nil)
	if !built {
		t.Fatalf("%s\n%s", err, out)
	}
	return name
}

// told returns the first thing that failed by what go said, or that it ran out of time, which it may also have been cut off for.
func told(out string, cut bool) (name string, built bool) {
	for line := range strings.Lines(out) {
		switch trimmed := strings.TrimSpace(line); {
		case strings.Contains(line, "[build failed]"), strings.Contains(line, "[setup failed]"):
			return "", false
		case strings.HasPrefix(trimmed, "violation "):
			return strings.SplitN(strings.TrimPrefix(trimmed, "violation "), ":", 2)[0], true
		case strings.HasPrefix(trimmed, "--- FAIL: "):
			name = strings.Fields(strings.TrimPrefix(trimmed, "--- FAIL: "))[0]
		case strings.HasPrefix(trimmed, "panic: test timed out") && name == "":
			name = late
		case strings.HasPrefix(trimmed, "panic:") && name == "":
			name = "panic"
		}
	}
	switch {
	case name == "" && cut:
		name = late
	case name == "":
		name = "fails"
	}
	return name, true
}

// Who ran out of time has noticed nothing, and neither has what does not compile.
func TestWhatGoSaysIsUnderstood(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		out   string
		cut   bool
		name  string
		built bool
	}{
		{"violation R-S1: 2 instances\n--- FAIL: TestSwarm (1s)\n", false, "R-S1", true},
		{"--- FAIL: TestScenarios (1s)\n    --- FAIL: TestScenarios/a (1s)\nFAIL\n", false, "TestScenarios/a", true},
		{"panic: boom\n\ngoroutine 1 [running]:\n", false, "panic", true},
		{"panic: test timed out after 6m0s\n\nrunning tests:\n\tTestScenarios (6m0s)\nFAIL\tp\t360s\n", false, late, true},
		{"--- FAIL: TestPlan (1s)\npanic: test timed out after 6m0s\n", false, "TestPlan", true},
		{"ok  \tp\t1s\n", true, late, true},
		{"", true, late, true},
		{"exit status 1\nFAIL\tp\t1s\n", false, "fails", true},
		{"FAIL\tp [build failed]\n", false, "", false},
	} {
		if name, built := told(tt.out, tt.cut); name != tt.name || built != tt.built {
			t.Errorf("of %q: %q, built %v, want %q, %v", tt.out, name, built, tt.name, tt.built)
		}
	}
}

// Whatever the text, about a sixteenth of the guards falls to it, and all fall to some.
func TestSharesAreEven(t *testing.T) {
	t.Parallel()
	fell, most := map[string]bool{}, 0
	for i := range 200 {
		n := 0
		for _, g := range All() {
			if falls(g.Name, fmt.Sprintf("%040x", i*i)) {
				fell[g.Name] = true
				n++
			}
		}
		most = max(most, n)
	}
	if most > len(All())/8 {
		t.Errorf("%d of %d guards fell to one text", most, len(All()))
	}
	for _, g := range All() {
		if !fell[g.Name] {
			t.Errorf("%s fell to none", g.Name)
		}
	}
}
