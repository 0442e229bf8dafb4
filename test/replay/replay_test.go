// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	function "github.com/machine-functions/machine-functions"
	"github.com/machine-functions/machine-functions/shared/cluster/kube"
	functions "github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
	"github.com/machine-functions/machine-functions/test/sim"
)

const root = "../.."

// spare are rights that no recorded call needs, as whole lines "function right", each with its reason. A right that is like one of
// them, but of another function, another verb or without a name, is not among them.
var spare = map[string]string{
	`[a-z-]+ (create|get|patch) events\.events\.k8s\.io( openshift-machine-api)?`: "Events are told in the core group; a client library that is newer would use the other",
	`(provision-machine|sweep-instances) (get|list|patch) baremetalhosts\.metal3\.io openshift-machine-api`: "hosts of bare metal: " +
		"make test-metal3 plays under these rights",
	`provision-machine (create|get|list|patch) ipaddressclaims\.ipam\.cluster\.x-k8s\.io openshift-machine-api`: "addresses from pools, where vSphere's Machines ask for them",
	`provision-machine get ipaddresses\.ipam\.cluster\.x-k8s\.io openshift-machine-api`:                         "what a claim got",
	`sweep-instances (list|patch) ipaddressclaims\.ipam\.cluster\.x-k8s\.io openshift-machine-api`:              "addresses go with the instance",
	`(provision-machine|sweep-instances) get secrets\. openshift-machine-api (aws-cloud-|azure-cloud-|libvirt-|openstack-cloud-|ovirt-|vsphere-cloud-)credentials`: "credentials " +
		"of clouds that are not simulated: by name, get only (test/e2e, rights)",
	`provision-machine get secrets\. openshift-machine-api worker-user-data(-managed)?`: "user data, where a spec names it",
	`sweep-instances (update|delete) configmaps\. kubemark`:                             "records of simulated instances: sweep-instances removes what provision-machine makes",
	`provision-machine get configmaps\. openshift-machine-api aws-prices`:               "a price list that whoever has none at hand may leave out",
	`evaluate-autoscale get (replicasets|statefulsets)\.apps`:                           "what a CapacityBuffer may refer to, as it may to the Deployments that are recorded",
	`evaluate-autoscale watch (nodes|pods)\.`:                                           "the view that is kept of both begins with a list (shared/cluster/kube, view)",
	`approve-node approve signers\.certificates\.k8s\.io  kubernetes\.io/kube(-apiserver-client-kubelet|let-serving)`: "asked by admission, not by " +
		"a call: whom one may approve for",
	`scale-machineset update machinesets/finalizers\.machine\.openshift\.io openshift-machine-api`: "asked by admission where OwnerReferencesPermissionEnforcement " +
		"is on: Machines block their set's deletion",
}

// spareAs returns the pattern of a right of a function that no recorded call needs; empty if it is no such right.
func spareAs(function, right string) string {
	for pattern := range spare {
		if regexp.MustCompile("^" + pattern + "$").MatchString(function + " " + right) {
			return pattern
		}
	}
	return ""
}

// isSpare reports whether a right of a function is one that no recorded call needs.
func isSpare(function, right string) bool { return spareAs(function, right) != "" }

// Every call that any scenario leads to, every call of simulated schedules, and every call that was recorded on a real API server, is
// allowed by config/rbac; and nothing is allowed that no call needs (RELIABILITY §4).
func TestRightsAreWhatIsUsed(t *testing.T) {
	t.Parallel()
	recorded := append(readRecordings(t), simulated(t)...)
	var mu sync.Mutex
	excused := map[string]bool{}
	t.Cleanup(func() { // after the functions, which run at the same time
		for pattern, why := range spare {
			if !excused[pattern] && !t.Failed() {
				t.Errorf("nothing is spare any more as %s: %s", pattern, why)
			}
		}
	})
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
				if !rights.Allow(c) && !c.Foreign() {
					t.Errorf("not allowed: %s", c)
				}
			}
			unused := slices.DeleteFunc(rights.Unused(calls), func(right string) bool {
				pattern := spareAs(dir, right)
				mu.Lock()
				defer mu.Unlock()
				excused[pattern] = true
				return pattern != ""
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

// simulated plays schedules of all functions together under faults (test/sim), whose own tests hold all of theirs to these rights.
func simulated(t *testing.T) []Call {
	t.Helper()
	again := NewAgain()
	sim.Asked = again.Asked
	for seed := range uint64(60) {
		c := sim.Config{Level: sim.Scaling, Steps: 100}
		if err := sim.NewPlay(c, &sim.Script{Strategy: sim.NewSwarm(seed)}).Run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	sim.Asked = nil
	calls := slices.Collect(maps.Keys(again.Calls()))
	asking := map[string]bool{}
	for _, c := range calls {
		asking[c.Function] = true
	}
	if len(asking) != 7 || len(calls) < 80 {
		t.Errorf("%d functions made %d kinds of calls in schedules", len(asking), len(calls))
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

// Beside what is spare, its neighbors are not.
func TestSpareIsExact(t *testing.T) {
	t.Parallel()
	for right, want := range map[string]bool{
		"provision-machine get secrets. openshift-machine-api aws-cloud-credentials":  true,
		"link-node get secrets. openshift-machine-api aws-cloud-credentials":          false,
		"provision-machine list secrets. openshift-machine-api":                       false,
		"provision-machine get secrets. openshift-machine-api":                        false,
		"sweep-instances delete baremetalhosts.metal3.io openshift-machine-api":       false,
		"remediate patch baremetalhosts.metal3.io openshift-machine-api":              false,
		"remediate create events.events.k8s.io openshift-machine-api":                 true,
		"remediate delete events.events.k8s.io openshift-machine-api":                 false,
		"evaluate-autoscale watch pods.":                                              true,
		"evaluate-autoscale watch secrets.":                                           false,
		"sweep-instances get secrets. openshift-machine-api worker-user-data-managed": false,
	} {
		function, line, _ := strings.Cut(right, " ")
		if got := isSpare(function, line); got != want {
			t.Errorf("%s: %v", right, got)
		}
	}
}

// What simulates a cloud is not installed where there is a real one: no account of another namespace, no other namespace.
func TestNobodySimulatesAnInstanceByDefault(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"config/namespace.yaml", "config/rbac/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, folder))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "kubemark") {
				t.Errorf("%s is about simulated instances", file)
			}
		}
	}
	rights, err := ReadRights(root, "provision-machine")
	if err != nil || !rights.Allow(Call{Function: "provision-machine", Verb: "create", Resource: "configmaps", Namespace: "kubemark"}) {
		t.Errorf("with the overlay: %v, %v", rights["kubemark"], err)
	}
}

// Somebody else's is what has a group that we ask nothing else of: a Secret that no right names is no such thing.
func TestForeign(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"remediate create powercycles.example.com openshift-machine-api":              true,
		"provision-machine get secrets. openshift-machine-api nobodys":                false,
		"evaluate-autoscale create events. work":                                      false,
		"evaluate-autoscale get replicationcontrollers. work":                         false,
		"provision-machine get baremetalhosts.metal3.io openshift-machine-api":        false,
		"evaluate-autoscale list capacitybuffers.autoscaling.x-k8s.io -":              true, // config/overlays/capacity-buffers grants it
		"drain-node list machineconfigs.machine.openshift.io openshift-machine-api":   false,
		"remediate get metal3remediationtemplates.infrastructure.cluster.x-k8s.io ns": true,
	} {
		if c, err := parse(line); err != nil || c.Foreign() != want {
			t.Errorf("%s: foreign %v, %v", line, c.Foreign(), err)
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
