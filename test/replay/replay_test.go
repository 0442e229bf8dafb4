// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	function "github.com/machine-functions/machine-functions"
	"github.com/machine-functions/machine-functions/shared/cluster/kube"
	functions "github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

const root = "../.."

// spare are rights that no recorded call needs, by words in their line, each with its reason.
var spare = map[string]string{
	"events.events.k8s.io":          "Events are told in the core group; a client library that is newer would use the other",
	"baremetalhosts":                "hosts of bare metal: make test-metal3 plays under these rights",
	"ipam.cluster.x-k8s.io":         "addresses from pools, where vSphere's Machines ask for them",
	"secrets":                       "credentials of clouds that are not simulated: by name, get only (test/e2e, rights)",
	"configmaps. kubemark":          "records of simulated instances: sweep-instances removes what provision-machine makes",
	"get replicasets.apps":          "what a CapacityBuffer may refer to, as it may to the Deployments that are recorded",
	"get statefulsets.apps":         "what a CapacityBuffer may refer to, as it may to the Deployments that are recorded",
	"watch nodes.":                  "the view that is kept of Nodes begins with a list (shared/cluster/kube, view)",
	"watch pods.":                   "the view that is kept of Pods begins with a list (shared/cluster/kube, view)",
	"aws-prices":                    "a price list that whoever has none at hand may leave out",
	"approve signers":               "asked by admission, not by a call: whom one may approve for",
	"update machinesets/finalizers": "asked by admission where OwnerReferencesPermissionEnforcement is on: Machines block their set's deletion",
}

// Every call that any scenario leads to, and every call that was recorded on a real API server, is allowed by config/rbac;
// and nothing is allowed that no call needs (RELIABILITY §4).
func TestRightsAreWhatIsUsed(t *testing.T) {
	t.Parallel()
	recorded := readRecordings(t)
	for _, dir := range folders(t) {
		f, ok := function.Named(dir)
		if !ok {
			continue // the dead-letter sink asks nobody anything
		}
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			rights, err := ReadRights(root, dir)
			if err != nil {
				t.Fatal(err)
			}
			r := NewRecorder()
			play(t, r, f)
			calls := r.Calls()
			if len(calls) < 5 {
				t.Fatalf("the scenarios lead to %d calls only", len(calls))
			}
			for _, c := range recorded {
				if c.Function == dir {
					calls[c] = true
				}
			}
			for c := range calls {
				if !rights.Allow(c) && !foreign(c) {
					t.Errorf("not allowed: %s", c)
				}
			}
			unused := slices.DeleteFunc(rights.Unused(calls), func(right string) bool {
				return slices.ContainsFunc(slices.Collect(maps.Keys(spare)), func(words string) bool { return strings.Contains(right, words) })
			})
			slices.Sort(unused)
			for _, right := range unused {
				t.Errorf("nobody needs: %s", right)
			}
		})
	}
}

func folders(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, "functions"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// foreign reports whether a call is about an object of somebody else's kind, which each deployment grants for itself.
func foreign(c Call) bool {
	plural, _, _ := strings.Cut(c.Resource, "/")
	return c.Group != "metal3.io" && !slices.ContainsFunc(plan.Resources(), func(r plan.Resource) bool { return r.Group.Group == c.Group && r.Plural == plural })
}

// readRecordings reads what was recorded on real API servers (Audit).
func readRecordings(t *testing.T) (calls []Call) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			c, err := parse(line)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			calls = append(calls, c)
		}
	}
	return calls
}

// play asks the recorder everything that f asks in its scenarios, and applies everything that f wants.
func play(t *testing.T, r *Recorder, f functions.Function) {
	t.Helper()
	c, err := kube.New(r.Config(f.Name), kube.Options{FieldManager: f.Name})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "functions", f.Name, "testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		s, _, err := scenario.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		seen, scopes, err := scenario.Observe(f, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, scope := range scopes {
			if _, err := c.Observe(t.Context(), snapshot.Snapshot{}, scope.Objects); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		p := f.Decide(seen)
		for _, sequence := range p.Do {
			p.Notes = append(p.Notes, sequence.Notes...)
			for _, action := range sequence.Do {
				_ = c.Apply(t.Context(), action) // the recorder refuses some, and others are a cloud's affair
			}
		}
		for _, note := range p.Notes {
			if note.Reason != "" {
				_ = c.Tell(t.Context(), note) // a note that is no Event is for the log
			}
		}
	}
}

func TestCallsAreReadAsRBACSees(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"link-node patch machines/status.machine.openshift.io openshift-machine-api",
		"evaluate-autoscale get configmaps. openshift-machine-api machine-disruption",
		"link-node list nodes. -",
	} {
		c, err := parse(line)
		if err != nil || c.String() != line {
			t.Errorf("%q became %q, %v", line, c, err)
		}
	}
	rights := Rights{}
	if rights.Allow(Call{Function: "a", Verb: "get", Resource: "nodes"}) {
		t.Error("without a role something is allowed")
	}
}
