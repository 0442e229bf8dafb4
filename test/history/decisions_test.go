// SPDX-License-Identifier: Apache-2.0

package history

import (
	"path/filepath"
	"strings"
	"testing"

	approvenode "github.com/machine-functions/machine-functions/functions/approve-node"
	drainnode "github.com/machine-functions/machine-functions/functions/drain-node"
	evaluateautoscale "github.com/machine-functions/machine-functions/functions/evaluate-autoscale"
	provisionmachine "github.com/machine-functions/machine-functions/functions/provision-machine"
	"github.com/machine-functions/machine-functions/functions/remediate"
	scalemachineset "github.com/machine-functions/machine-functions/functions/scale-machineset"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// decision is one row of RELIABILITY §1.3 whose mistake shows in a single decision: in the world of a scenario the naive
// implementation wants what it must not, ours does not.
type decision struct {
	id, what string
	function function.Function
	scenario string // in testdata here, or in that of the function
	naive    func(function.Function) function.Function
	harms    func(plan string) bool
}

// wants is harm that a plan says, wantsNot harm by what it leaves out.
func wants(text string) func(string) bool {
	return func(plan string) bool { return strings.Contains(plan, text) }
}

func wantsNot(text string) func(string) bool {
	return func(plan string) bool { return !strings.Contains(plan, text) }
}

var decisions = []decision{
	{"R-B06", "only the first item of a list is looked at, and it is a terminated one", provisionmachine.Function, "first-of-the-list-is-terminated", firstOnly, wants("create instance")},
	{"R-B07", "the cloud answers 503 after it created: taken for a refusal", provisionmachine.Function, "unclear-answer-keeps-the-attempt-open", refusing, wants(`"outcome":"refused"`)},
	{"R-B08", "an error of the lookup is taken for absence", provisionmachine.Function, "cloud-that-does-not-answer-proves-nothing", errorIsAbsence, wants("reason: InstanceMissing")},
	{"R-B08", "a proxy's 404 is taken for the cloud's", provisionmachine.Function, "proxy-that-knows-no-such-page", notFoundIsAbsence, wants("reason: InstanceMissing")},
	{"R-B08", "of several instances that match one is taken", provisionmachine.Function, "several-found-wait-for-the-horizon", firstOnly, wants("spec.providerID")},
	{"R-B09", "the task that makes the instance is forgotten: another one is begun", provisionmachine.Function, "next-step-of-the-same-attempt", withoutProgress, wants("(attempt 2)")},
	{"R-B11", "an accepted removal is taken for a removal", provisionmachine.Function, "delete-that-is-accepted-takes-back-the-error", acceptedIsGone, wants("metadata.finalizers")},
	{"R-B12", "ports of a refused attempt are left, each attempt makes more", provisionmachine.Function, "refused-midway-is-cleaned-up-first", withoutProgress, wants("create instance")},
	{"R-B16", "Nodes that are coming are not counted: the same Pod asks for another one", evaluateautoscale.Function, "upcoming-node-absorbs-the-pod", withoutUpcoming, wants("spec.replicas: 2 → 3")},
	{"R-B17", "what was asked for is in memory, which a crash empties", evaluateautoscale.Function, "group-in-backoff-does-not-grow", forgetfulScaler, wants("spec.replicas")},
	{"R-B18", "a set that is being deleted scales up", scalemachineset.Function, "deleted-set-does-nothing", undying, wants("create machine")},
	{"R-B19", "a removal is decided by a count of before it", evaluateautoscale.Function, "minimum-raised-meanwhile-stops-the-commit", staleBounds, wants("spec.replicas: 2 → 1")},
	{"R-B20", "the number goes down after a failed provisioning: a healthy Machine goes", evaluateautoscale.Function, "late-machine-goes-with-its-target", withoutVictims, func(plan string) bool {
		return strings.Contains(plan, "spec.replicas: 3 → 2") && !strings.Contains(plan, "scale-down-victims")
	}},
	{"R-B21", "marking a Machine and lowering the number are two writes: the number alone is seen", scalemachineset.Function, "down-takes-the-victim", unmarked, wants("retire ordinal 1")},
	{"R-B22", "a placeholder counts as a Machine: a real one goes for it", scalemachineset.Function, "down-prefers-what-was-never-created", placeholders, wants("retire ordinal 0")},
	{"R-B23", "an empty list of Pods is believed: all Nodes are idle", evaluateautoscale.Function, "sudden-emptiness-is-not-believed", believing, wants("update node/b")},
	{"R-B24", "a Pod is bound between list and taint, and its Node goes", evaluateautoscale.Function, "pod-on-the-empty-node-ends-the-plan", listedBefore, wants("spec.replicas: 2 → 1")},
	{"R-B25", "taints of a scale-down that a restart forgot stay for ever", evaluateautoscale.Function, "stale-taint-is-dropped", tidiesNothing, wantsNot("spec.taints")},
	{"R-B26", "Machines under repair count as healthy", remediate.Function, "who-is-repaired-is-not-well", repairIsHealth, wants(`"machine":"worker-b"`)},
	{"R-B27", "Machines that can never work are replaced without a pause", scalemachineset.Function, "creation-waits-for-the-pause", impatient, wants("allocate")},
	{"R-B28", "two of the control plane at once", remediate.Function, "budget-one-master", alone, wants(`"machine":"worker-a"`)},
	{"R-B29", "the instance goes while a volume is attached", drainnode.Function, "volumes-attached", ignoresVolumes, wants("status.conditions.Drained.status: True")},
	{"R-B31", "a Node joins after its Machine's deletion began, and is not looked for", provisionmachine.Function, "delete-waits-for-a-node-that-joined-late", neverJoined, wants("delete instance")},
	{"R-B32", "a Node is another's by the time that it is deleted by its name", provisionmachine.Function, "node-of-the-same-name-stays", byName, wants("delete node/")},
	{"R-B34", "without a cloud that answers nothing can be deleted", provisionmachine.Function, "machine-that-never-called-a-cloud-goes-at-once", askingFirst, wantsNot("metadata.finalizers")},
	{"R-B37", "that the instance is there was seen once, and is believed for good: its Node stays", provisionmachine.Function, "node-goes-after-its-instance", neverGone, wantsNot("delete node/")},
	{"R-B37", "whoever asks for a certificate of a Node gets it", approvenode.Function, "no-machine-of-that-name", approving, wants("approve certificatesigningrequest")},
}

func TestHistoricDecisions(t *testing.T) {
	t.Parallel()
	for _, d := range decisions {
		t.Run(d.id, func(t *testing.T) {
			t.Parallel()
			if plan := d.plan(t, d.naive(d.function)); !d.harms(plan) {
				t.Errorf("%s: the naive implementation does no harm:\n%s", d.what, plan)
			}
			if plan := d.plan(t, d.function); d.harms(plan) {
				t.Errorf("%s:\n%s", d.what, plan)
			}
		})
	}
}

// plan returns what f wants in the world of the scenario.
func (d decision) plan(t *testing.T, f function.Function) string {
	t.Helper()
	files, err := filepath.Glob("../../functions/" + f.Name + "/testdata/" + d.scenario + ".txtar")
	if err != nil || len(files) == 0 {
		files = []string{"testdata/" + d.scenario + ".txtar"}
	}
	s, _, err := scenario.Load(files[0])
	if err != nil {
		t.Fatal(err)
	}
	seen, _, err := scenario.Observe(f, s)
	if err != nil {
		t.Fatal(err)
	}
	return f.Decide(seen).String()
}
