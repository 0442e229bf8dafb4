// SPDX-License-Identifier: Apache-2.0

// Package scenario runs golden scenarios: objects in, plan out, as text.
package scenario

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var update = flag.Bool("update", false, "rewrite the plan section of golden scenarios")

// Scenario is one story: what the world looks like when a function is woken.
type Scenario struct {
	Story    string // what must happen, with the reason
	World    snapshot.Snapshot
	Clouds   map[string]snapshot.Cloud // by Machine or MachineSet name
	Accounts map[string]snapshot.Account
	Plan     string // golden
}

// Run checks every testdata/*.txtar of the calling package against f. With -update it rewrites their plans.
func Run(t *testing.T, f function.Function) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			check(t, f, file)
		})
	}
}

func check(t *testing.T, f function.Function, file string) {
	t.Helper()
	s, archive, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	seen, _, err := Observe(f, s)
	if err != nil {
		t.Fatal(err)
	}
	before := fingerprint(seen)
	decided := f.Decide(seen)
	if why := inadmissible(decided); why != nil {
		t.Error(why)
	}
	got := decided.String()
	if again := f.Decide(seen).String(); again != got {
		t.Errorf("not deterministic (-first +second):\n%s", cmp.Diff(got, again))
	}
	if fingerprint(seen) != before {
		t.Error("Decide modified its snapshot")
	}
	switch {
	case *update:
		if err := rewrite(file, archive, got); err != nil {
			t.Fatal(err)
		}
	case got != s.Plan:
		t.Errorf("%s\nplan (-want +got):\n%s", s.Story, cmp.Diff(s.Plan, got))
	}
}

// Load reads a scenario with its shared bases.
func Load(file string) (Scenario, *txtar.Archive, error) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		return Scenario{}, nil, err
	}
	s := Scenario{Story: strings.TrimSpace(string(a.Comment))}
	s.World.Invocation, s.World.Served = "this-invocation", []string{machine.Namespace}
	for _, section := range a.Files {
		if err := s.read(filepath.Dir(file), section); err != nil {
			return s, a, fmt.Errorf("%s: section %s: %w", file, section.Name, err)
		}
	}
	if s.World.Now.IsZero() || s.Story == "" {
		return s, a, fmt.Errorf("%s: a scenario needs a story and a section now", file)
	}
	return s, a, nil
}

func (s *Scenario) read(dir string, section txtar.File) (err error) {
	text := section.Data
	if base, ok := strings.CutPrefix(section.Name, "base: "); ok {
		if text, err = os.ReadFile(filepath.Join(dir, base)); err != nil {
			return err
		}
		section.Name = "cluster"
	}
	switch section.Name {
	case "now":
		s.World.Now, err = time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	case "before":
		s.World.Before, err = time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	case "served":
		s.World.Served = strings.Fields(string(text))
	case "request":
		s.World.Request, err = request(strings.TrimSpace(string(text)))
	case "cluster":
		var objects []plan.Object
		if objects, err = snapshot.Decode(text); err == nil {
			s.World.Add(objects...)
		}
	case "clouds":
		s.Clouds, err = snapshot.DecodeClouds(text)
	case "accounts":
		s.Accounts, err = snapshot.DecodeAccounts(text)
	case "outcomes":
		s.World.Outcomes, err = snapshot.DecodeOutcomes(text)
	case "plan":
		s.Plan = string(text)
	default:
		err = fmt.Errorf("unknown section")
	}
	return err
}

func request(text string) (snapshot.Request, error) {
	kind, name, ok := strings.Cut(text, " ")
	r, known := plan.ResourceOf(plan.Kind(kind))
	if !ok || !known {
		return snapshot.Request{}, fmt.Errorf("%q is not \"Kind [namespace/]name\"", text)
	}
	out := snapshot.Request{APIVersion: r.Group.String(), Kind: kind, Name: name}
	if ns, n, ok := strings.Cut(name, "/"); ok {
		out.Namespace, out.Name = ns, n
	}
	return out, nil
}

// Observe asks f what it reads, as the runner does, and returns what it gets to see of the scenario's world, with what
// it asked for in each reading.
func Observe(f function.Function, s Scenario) (snapshot.Snapshot, []snapshot.Scope, error) {
	var asked []snapshot.Scope
	seen := snapshot.Snapshot{Now: s.World.Now, Before: s.World.Before, Request: s.World.Request, Invocation: s.World.Invocation, Outcomes: s.World.Outcomes, Served: s.World.Served}
	seen.Records = machine.NewRecords() // as the runner does: whoever changes one decides otherwise the next time
	for range 5 {
		missing := seen.Missing(f.Reads(seen))
		if missing.Empty() {
			return seen, asked, nil
		}
		if missing.Scan {
			s.World.Request = snapshot.Request{}
			scan, more, err := Observe(f, s)
			return scan, append(asked, more...), err
		}
		asked = append(asked, missing)
		for _, q := range missing.Objects {
			for o := range s.World.Objects() {
				if q.Selects(o) {
					seen.Add(o)
				}
			}
		}
		seen = seen.Answered(missing.Objects...)
		s.look(&seen, missing)
	}
	if rest := seen.Missing(f.Reads(seen)); !rest.Empty() {
		return seen, asked, fmt.Errorf("%s still asks after five readings: %+v", f.Name, rest)
	}
	return seen, asked, nil
}

// look answers for the clouds: what the scenario says, else a healthy cloud with tokens that has nothing.
func (s Scenario) look(seen *snapshot.Snapshot, sc snapshot.Scope) {
	if seen.Clouds == nil {
		seen.Clouds, seen.Accounts = map[types.UID]snapshot.Cloud{}, map[string]snapshot.Account{}
	}
	names := map[types.UID]string{}
	specs := map[types.UID][]byte{}
	for _, m := range seen.Machines {
		names[m.UID] = m.Name
		if v := m.Spec.ProviderSpec.Value; v != nil {
			specs[m.UID] = v.Raw
		}
	}
	for _, m := range seen.MachineSets {
		names[m.UID] = m.Name
	}
	for _, l := range sc.Lookups {
		c, told := s.Clouds[names[l.UID]]
		if !told {
			c.Horizon, c.Tokens = 20*time.Second, true
		}
		if c.Account == "" && (c.Err == nil || c.Err.Code != provider.Invalid) { // a spec that nobody can read leads to none
			c.Account = "kubemark"
		}
		if c.Source == "" {
			c.Source = "kubemark_controller"
		}
		if l.Resolve && c.Resolved == nil && c.Refused == nil {
			c.Resolved = specs[l.UID]
		}
		c.Fresh = l.Fresh
		seen.Clouds[l.UID] = c
	}
	for _, a := range sc.Accounts {
		seen.Accounts[a.Key] = s.Accounts[a.Key]
	}
}

func rewrite(file string, a *txtar.Archive, got string) error {
	for i := range a.Files {
		if a.Files[i].Name == "plan" {
			a.Files[i].Data = []byte(got)
			return os.WriteFile(file, txtar.Format(a), 0o644)
		}
	}
	a.Files = append(a.Files, txtar.File{Name: "plan", Data: []byte(got)})
	return os.WriteFile(file, txtar.Format(a), 0o644)
}

// fingerprint is the snapshot as text, to see that nobody wrote into it.
func fingerprint(s snapshot.Snapshot) string {
	var b strings.Builder
	for o := range s.Objects() {
		j, err := json.Marshal(o)
		if err != nil {
			return err.Error()
		}
		b.Write(j)
	}
	fmt.Fprintf(&b, "%v", s.Clouds)
	return b.String()
}
