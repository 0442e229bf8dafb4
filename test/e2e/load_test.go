// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// usualLoad is how many Machines TestLoad makes unless LOAD says otherwise.
const usualLoad = 50

// TestLoad brings a set up and back to none through the real API server, real Knative Eventing and simulated instances:
// none is leaked, none is made twice, a converged system writes nothing, and one life costs what docs/calls.md promises
// (R-S1, R-S2, R-S14, R-L1). LOAD=<number of Machines> makes it large; with LOAD_REPORT=<file> it writes what it saw.
func TestLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the whole system")
	}
	n := usualLoad
	if text := os.Getenv("LOAD"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			t.Fatalf("LOAD=%s: want the number of Machines", text)
		}
	}
	y := startYard(t)
	y.set(t, "load", 0, "4c12g30d", "")
	y.shows(t, "get machineset load"+inMachines+" -o jsonpath={.metadata.annotations}", "machine.openshift.io/vCPU")
	before := y.spent(t)

	began := time.Now()
	y.do(t, fmt.Sprintf("scale machineset load%s --replicas=%d", inMachines, n))
	y.counts(t, "Machines that run", n, "get machines"+inMachines+` -o jsonpath={range.items[?(@.status.phase=="Running")]}.{end}`)
	up, ages := time.Since(began), y.ages(t)
	if instances := y.history(t); len(instances) != n {
		t.Errorf("%d Machines have instances, want %d", len(instances), n)
	}
	idle := y.quiet(t)

	began = time.Now()
	y.do(t, "scale machineset load"+inMachines+" --replicas=0")
	y.counts(t, "Machines that are left", 0, "get machines"+inMachines+" -o jsonpath={range.items[*]}.{end}")
	down := time.Since(began)
	y.counts(t, "Nodes that are left", 0, "get nodes -l example.com/set=load -o jsonpath={range.items[*]}.{end}")
	await(t, "all instances are history", func() string {
		return y.do(t, "get configmaps -n kubemark -l kubemark.machine-functions.dev/live=true -o jsonpath={.items[*].metadata.name}")
	})
	y.onceEach(t, n)

	lives := y.spent(t).since(before)
	lives.limits(t, n)
	text := fmt.Sprintf("%d Machines: up in %v, down in %v; from creation to Running %v in the middle, %v at most\n\n%s\nOne idle scan:\n%s",
		n, up.Round(time.Second), down.Round(time.Second), ages[len(ages)/2], ages[len(ages)-1], lives.table(n), idle)
	t.Log("\n" + text)
	if file := os.Getenv("LOAD_REPORT"); file != "" {
		if err := os.WriteFile(file, []byte(y.circumstances(t)+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// patience is how long a load may stand still; with a thousand Machines on two cores a step takes longer than with fifty.
const patience = 5 * time.Minute

// counts waits until a command prints so many dots, for as long as their number changes. It looks a tenth of the time, not
// to be the load itself.
func (y yard) counts(t *testing.T, what string, want int, command string) {
	t.Helper()
	last, changed, told := -1, time.Now(), time.Now()
	for {
		asked := time.Now()
		got := len(y.do(t, command))
		took := time.Since(asked)
		if got == want {
			return
		}
		if got != last {
			last, changed = got, time.Now()
		}
		if time.Since(changed) > patience {
			t.Fatalf("%s: %d for %v, want %d\n%s", what, got, patience, want, y.do(t, "get machinesets,machines,nodes -A"))
		}
		if time.Since(told) > time.Minute {
			told = time.Now()
			t.Logf("%s: %d of %d", what, got, want)
		}
		time.Sleep(max(2*time.Second, 9*took))
	}
}

// ages returns how long each Machine took from its creation to its latest phase, sorted.
func (y yard) ages(t *testing.T) (ages []time.Duration) {
	t.Helper()
	out := y.must(t, "get", "machines", "-n", "openshift-machine-api", "-o", `jsonpath={range .items[*]}{.metadata.creationTimestamp} {.status.lastUpdated}{"\n"}{end}`)
	for line := range strings.Lines(out) {
		var at [2]time.Time
		for i, text := range strings.Fields(line) {
			var err error
			if at[i], err = time.Parse(time.RFC3339, text); err != nil {
				t.Fatal(err)
			}
		}
		ages = append(ages, at[1].Sub(at[0]))
	}
	slices.Sort(ages)
	return ages
}

// onceEach holds that every Machine had one instance, and that none is left.
func (y yard) onceEach(t *testing.T, n int) {
	t.Helper()
	all := y.history(t)
	if len(all) != n {
		t.Errorf("%d Machines ever had instances, want %d", len(all), n)
	}
	for uid, records := range all {
		if len(records) != 1 {
			t.Errorf("Machine %s had the instances %v", uid, records)
		}
		for id, live := range records {
			if live {
				t.Errorf("instance %s of Machine %s is leaked", id, uid)
			}
		}
	}
}

// history returns what the cloud has on record: by Machine the instances, and which of them live.
func (y yard) history(t *testing.T) map[string]map[string]bool {
	t.Helper()
	const fields = `jsonpath={range .items[*]}{.metadata.labels.kubemark\.machine-functions\.dev/machine-uid} {.metadata.name} {.metadata.labels.kubemark\.machine-functions\.dev/live}{"\n"}{end}`
	out := y.must(t, "get", "configmaps", "-n", "kubemark", "-l", "kubemark.machine-functions.dev/machine-uid", "-o", fields)
	of := map[string]map[string]bool{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) != 3 {
			t.Fatalf("record %q", line)
		}
		if of[f[0]] == nil {
			of[f[0]] = map[string]bool{}
		}
		of[f[0]][f[1]] = f[2] == "true"
	}
	return of
}

// quiet waits until no function writes an object during three scans, and returns what that time cost.
func (y yard) quiet(t *testing.T) string {
	t.Helper()
	const scans = 3
	var cost spending
	await(t, "a converged system writes nothing", func() string {
		before := y.spent(t)
		time.Sleep(scans * 10 * time.Second)
		cost = y.spent(t).since(before)
		if n := cost.sum(isRequest); n > 0 {
			return fmt.Sprintf("%d writes:\n%s", n, cost.table(scans))
		}
		return ""
	})
	if n := cost.sum(isCall); n > scans+1 { // the ticks are not ours to count
		t.Errorf("%d calls to the cloud in %d scans, want one bulk list in each:\n%s", n, scans, cost.table(scans))
	}
	return cost.table(scans)
}

// circumstances say what was measured where.
func (y yard) circumstances(t *testing.T) string {
	t.Helper()
	commit, err := exec.CommandContext(t.Context(), "git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		t.Fatal(err)
	}
	server := y.do(t, "version -o yaml")
	_, server, _ = strings.Cut(server, "serverVersion:")
	_, server, _ = strings.Cut(server, "gitVersion: ")
	server, _, _ = strings.Cut(server, "\n")
	return fmt.Sprintf("# TestLoad of test/e2e, %s\ncommit %s, %s, Kubernetes %s, %d cores for everything: control plane, eventing, %d functions, cloud\n\n",
		time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(commit)), runtime.Version(), strings.TrimSpace(server), runtime.NumCPU(), len(y.Processes)-1)
}

// table shows what each life, or each scan, cost.
func (s spending) table(lives int) string {
	var text strings.Builder
	for _, what := range slices.SortedFunc(maps.Keys(s), func(a, b item) int {
		return cmp.Or(cmp.Compare(a.metric, b.metric), cmp.Compare(a.function, b.function), cmp.Compare(a.labels, b.labels))
	}) {
		if s[what] > 0 {
			fmt.Fprintf(&text, "%-18s %-12s %-44s %9d %9.3f each\n", what.function, what.metric, what.labels, s[what], float64(s[what])/float64(lives))
		}
	}
	each := func(counts func(item) bool) float64 { return float64(s.sum(counts)) / float64(lives) }
	fmt.Fprintf(&text, "in all: %.3f writes of objects and %.3f that came too late, %.3f calls to the cloud of which %.3f about one Machine, %.3f Events\n",
		each(isWrite), each(isRequest)-each(isWrite), each(isCall), each(isOwnCall), each(isEvent))
	return text.String()
}
