// SPDX-License-Identifier: Apache-2.0

package history

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/test/sim"
)

// control is a mistake that one check of the simulation sees: a check that nothing fails proves nothing. Whatever else the mistake
// breaks does not count.
type control struct {
	says    string // of the violation, a regular expression
	level   sim.Level
	world   []byte
	mistake func(function.Function) function.Function
	with    func(*sim.Config)
	how     how
	faults  sim.Strategy // before those of how; nil: none
}

const link, drain, repair, autoscale, sweep = "link-node", "drain-node", "remediate", "evaluate-autoscale", "sweep-instances"

var (
	lost    = sim.Every{Call: "cloud create", End: "takes effect, the answer is lost"}
	killed  = sim.Every{Call: "cloud create", End: "killed after it"}
	full    = sim.Every{Call: "cloud create", End: "no capacity"}
	failing = sim.Every{Call: "cloud create", End: "fails"}
	blind   = sim.Every{Call: "cloud find", End: "fails"}
	unlists = sim.Every{Call: "cloud list", End: "fails"}
)

// together is what any of some strategies chooses.
type together []sim.Strategy

// Pick implements [sim.Strategy].
func (all together) Pick(p *sim.Play, k sim.Kind, n int) int {
	for _, s := range all {
		if v := s.Pick(p, k, n); v > 0 {
			return v
		}
	}
	return 0
}

var controls = []control{
	// of writes of Machines, sets and checks
	{"^R-S4: .* which no committed ledger holds", sim.Machines, nil, of(scale, uncommitted), nil, swarm, nil},
	{"^R-S4: .* were made, .* replicas were asked", sim.Machines, nil, of(scale, churns), nil, story, nil},
	{"^R-S4: .* ordinals are active", sim.Machines, nil, of(scale, generous), nil, story, nil},
	{"^R-S4: .* replicas, at most", sim.Scaling, nil, of(autoscale, beyondBounds), nil, swarm, nil},
	{"^R-S4: .* nodes are allowed", sim.Scaling, nil, of(autoscale, boundless), small, swarm, nil},
	{"^R-S4: .* are enough for the pods$", sim.Scaling, nil, of(autoscale, growsTwice), nil, story, nil},
	{"^R-S4: .* are enough for the pods$", sim.Scaling, nil, of(autoscale, buysForThoseThatAreGone), nil, swarm, nil},
	{"^R-S4: .* are enough for the pods$", sim.Scaling, nil, of(autoscale, buysForThoseThatGo), nil, deletes, nil},
	{"^R-S4: .* less than the minimum", sim.Scaling, nil, of(autoscale, staleBounds), nil, swarm, nil},
	{"^R-S4: .* instances of active ordinals", sim.Machines, nil, of(scale, oneMore), nil, story, nil},
	{"^R-S5: .* go, .* first, of whom", sim.Machines, nil, of(scale, churns), nil, story, nil},
	{"^R-S5: .* go, .* first, of whom", sim.Machines, nil, of(scale, overshoots), nil, swarm, nil},
	{"^R-S5: .* instead of the victim", sim.Scaling, nil, of(scale, unmarked), nil, swarm, nil},
	{"^R-S5: .* less with .* victims", sim.Scaling, nil, of(autoscale, withoutVictims), nil, story, nil},
	{"^R-S6: .* deletes \\S+$", sim.Machines, nil, of(link, deletesMachines), nil, story, nil},
	{"^R-S6: .* the ledger has not retired", sim.Machines, nil, of(scale, deletesMachines), nil, story, nil},
	{"^R-S6: .* the ledger has not retired", sim.Machines, nil, of(scale, mistakesOrdinals), nil, story, nil},
	{"^R-S6: .* no check has in flight", sim.Healing, nil, of(repair, deletesMachines), nil, story, nil},
	{"^R-S6: .* there is no check", sim.Healing, nil, of(repair, healsUnasked), unchecks, story, sim.Uncheck{}},
	{"^R-S6: .* which is well", sim.Healing, nil, of(repair, hypochondriac), nil, story, nil},
	{"^R-S6: .* which is well", sim.Healing, []byte{2}, of(repair, hypochondriac), nil, swarm, nil}, // on hosts
	{"^R-S6: .* which is well", sim.Healing, nil, of(repair, contagious), nil, swarm, nil},
	{"^R-S7: .* evicts .* hook holds", sim.Scaling, nil, of(drain, drainsHeld), early, swarm, sim.Holds{}},
	{"^R-S8: .* deletes pod", sim.Scaling, nil, of(drain, deletesPods), nil, story, nil},
	{"^R-S9: .* deletes node .* while", sim.Machines, nil, of(provision, nodeFirst), nil, story, nil},
	{"^R-S10: .* no slot of the budget", sim.Healing, nil, of(repair, deletesWhatIsInFlight), nil, swarm, nil},
	{"^R-S10: .* of the control plane", sim.Machines, nil, of(drain, blindToMasters), masters, deletes, nil},
	{"^R-S10: .* in flight, at most", sim.Healing, nil, of(repair, hypochondriac, crowds), nil, story, nil},
	{"^R-S10: .* others are not replaced", sim.Healing, nil, of(repair, hypochondriac, forgetsWhoGoes), nil, swarm, nil},
	{"^R-S10: .* others are not replaced", sim.Healing, oneByOne, of(repair, hypochondriac, forgetsWhoIsGone), nil, ailing, nil},
	{"^R-S13: a secret is told: .*update", sim.Machines, nil, of(provision, logsSecrets), nil, story, nil},
	{"^R-S13: a secret is told", sim.Machines, nil, of(provision, tellsSecrets), nil, story, nil},
	{"^R-S13: a secret is told: .*\\[99 97 110 ", sim.Machines, nil, nil, saysBytes, story, nil},
	{"^R-S13: .* stores a secret", sim.Machines, nil, of(provision, storesBriefly), nil, story, nil},
	{"^R-S13: .* stores a secret: update node/", sim.Machines, nil, of(link, storesEncoded), nil, story, nil},
	{"^R-S15: .* while a claim runs", sim.Machines, nil, of(provision, careless), nil, deletes, killed},
	{"^R-S15: .* while an instance may surface", sim.Machines, untokened, of(provision, careless), nil, story, failing},
	{"^R-S15: .* while an instance may surface", sim.Machines, untokened, of(provision, calledBefore), nil, story, failing},
	{"^R-S15: .* while an instance may surface", sim.Machines, untokened, of(provision, answersItself), nil, story, failing},
	{"^R-S15: .*, but .* is there", sim.Machines, nil, of(provision, careless), nil, story, nil},
	{"^R-S16: .* the provider id of", sim.Machines, nil, of(provision, renames), nil, story, nil},
	{"^R-S17: .* attempt .* comes where", sim.Machines, untokened, of(provision, countsAnew), nil, story, failing},
	{"^R-S17: .* attempt .* comes where", sim.Machines, untokened, of(provision, forgetsAttempts), nil, story, together{full, failing}},
	{"^R-S17: .* plan .* returns", sim.Scaling, nil, of(autoscale, replans), nil, story, nil},
	{"^R-S17: .* the retired ordinal", sim.Machines, nil, of(scale, revives), nil, swarm, nil},
	{"^R-S17: .* next goes back", sim.Machines, newest, of(scale, forgetsRetired), nil, story, nil},
	{"^2a.1: .* that nobody can read", sim.Machines, nil, of(scale, writesNonsense), nil, story, nil},
	{"^2a.2: .* without a finalizer", sim.Machines, nil, of(scale, withoutFinalizer), nil, story, nil},
	{"^2a.7: .* creates .* rebuilt", sim.Machines, nil, of(scale, createsAfterRebuild), nil, swarm, nil},
	{"^2a.7: .* deletes .* rebuilt", sim.Machines, nil, of(scale, deletesAfterRebuild), nil, swarm, nil},
	{"^2a.10: ", sim.Machines, nil, of(scale, revivesSets), nil, swarm, &sim.Condemn{}},
	{"^2b.5: ", sim.Machines, nil, of(provision, changesRequests), nil, story, nil},
	{"^G9: ", sim.Machines, withNewer, of(scale, overwritesNewer), nil, swarm, nil},
	{"^writers: ", sim.Machines, nil, of(link, scales), nil, story, nil},
	{"^B7: .* changes set ", sim.Machines, nil, of(scale, deaf), edits, swarm, nil},
	{"^B7: .* changes \\S+, whose set", sim.Machines, nil, of(scale, restless), edits, story, nil},
	{"^B7: .* creates ", sim.Machines, nil, of(scale, deaf), edits, swarm, nil},
	{"^B7: .* changes \\S+, which", sim.Machines, nil, of(provision, deaf), edits, swarm, nil},
	{"^B7: .* makes ", sim.Machines, bareMetal, of(provision, deaf), edits, swarm, sim.Hands{}},
	{"^B7: .* deletes ", sim.Machines, nil, of(provision, deletesPaused), edits, swarm, nil},
	{"^B7: .* evicts ", sim.Scaling, nil, of(drain, evictsAnybody), edits, swarm, nil},
	// of calls to clouds
	{"^R-S8: .* deletes .* runs there", sim.Scaling, nil, of(drain, ignoresPods), nil, swarm, nil},
	{"^R-S1: .* makes .* beside", sim.Machines, untokened, of(provision, forgetful), nil, story, lost},
	{"^R-S1: .* makes .* beside", sim.Machines, nil, of(provision, believesRecords), nil, restored, nil},
	{"^R-S1: .*, which has ", sim.Machines, nil, of(provision, recordsFirst), nil, story, nil},
	{"^R-S1: .* of one Machine both have Nodes", sim.Machines, bareMetal, of(provision, forgetful), hosts(onlyFree), swarm, nil},
	{"^R-S2: .* which is gone", sim.Machines, nil, of(provision, makesNobodys), nil, story, nil},
	{"^R-S3: .* is taken from .* while", sim.Machines, bareMetal, nil, hosts(releasedAtOnce), story, nil},
	{"^R-S3: .* takes .* from whom", sim.Machines, bareMetal, nil, hosts(allFree), story, nil},
	{"^R-S3: .* deletes .* records", sim.Machines, nil, of(provision, deletesRecorded), nil, story, nil},
	{"^R-S3: .* never a Machine's$", sim.Healing, nil, of(sweep, deletesMasters), nil, story, nil},
	{"^R-S3: .* node .*, which stays$", sim.Machines, nil, of(sweep, deletesNodes), nil, swarm, nil},
	{"^R-S3: .* node .*, which stays$", sim.Machines, nil, of(sweep, deletesUnlinked), nil, swarm, nil},
	{"^R-S3: .* only instance", sim.Machines, nil, of(provision, deletesUnrecorded), nil, story, lost},
	{"^R-S3: .* only instance", sim.Machines, inSteps, of(provision, answersItself, overlooks), nil, swarm, nil},
	{"^R-S3: .* only instance", sim.Machines, inSteps, of(provision, overlooks), nil, swarm, nil},
	{"^R-S7: .* is not drained", sim.Machines, nil, of(provision, deletesUndrained), nil, story, nil},
	{"^R-S7: .* is not drained", sim.Machines, nil, of(provision, takesForDrained), nil, story, nil},
	{"^R-S7: .* is held by a hook", sim.Machines, nil, both(of(link, holds), of(provision, deletesHeld)), nil, story, nil},
	{"^R-S7: .* a volume is attached", sim.Scaling, nil, of(drain, ignoresVolumes), nil, story, nil},
	{"^R-S7: .* a volume is attached", sim.Scaling, nil, of(drain, ignoresVolumes), volumes, deletes, nil},
	{"^R-S12: .* makes .* did not say", sim.Machines, untokened, of(provision, createsBlindly, believesRecords), nil, story, together{lost, blind}},
	{"^R-S12: .* deletes .* did not say", sim.Machines, nil, of(provision, deletesUndrained), nil, story, unlists},
	// of the end
	{"^R-L1: .*the set is gone", sim.Machines, nil, of(scale, deletesSets), nil, story, nil},
	{"^R-L1: .*Machines, .* are wanted", sim.Machines, nil, of(scale, idle), nil, story, nil},
	{"^R-L1: .*is in phase", sim.Machines, nil, of(link, idle), nil, story, nil},
	{"^R-L1: .*has no instance", sim.Machines, nil, of(provision, neverFails), nil, swarm, nil},
	{"^R-L1: .*has no Node$", sim.Machines, nil, of(link, linksOnce), nil, swarm, nil},
	{"^R-L1: .*a Node that is not Ready", sim.Healing, nil, of(repair, idle), nil, story, nil},
	{"^R-L1: .*pod .* waits", sim.Scaling, nil, of(autoscale, idle), nil, swarm, nil},
	{"^R-L1: .*pods in the end", sim.Scaling, nil, of(autoscale, neverShrinks), nil, swarm, nil},
	{"^R-L3: after", sim.Machines, nil, of(link, seldom), nil, swarm, nil},
	{"^R-L3: nobody scales", sim.Scaling, nil, of(autoscale, seldom), nil, swarm, nil},
	{"^R-L3: nobody heals", sim.Healing, nil, of(repair, seldom), nil, swarm, nil},
	{"^R-L2: .*still being deleted", sim.Machines, nil, of(provision, keepsFinalizers), nil, story, nil},
	{"^R-S1: .*is left, .* of that Machine", sim.Machines, untokened, both(of(provision, forgetful, keepsTwins), of(sweep, idle)), nil, story, lost},
	{"^R-S2: .*leftover", sim.Machines, withPorts, both(of(provision, careless), of(sweep, idle)), nil, deletes, nil},
	{"^R-S2: .*instance .* is left$", sim.Machines, nil, both(of(provision, careless), of(sweep, idle)), nil, story, nil},
	{"^R-S2: .*leftover", sim.Machines, nil, of(sweep, idle), nil, restored, nil},
	{"^R-S2: .*node .* is left$", sim.Machines, nil, both(of(provision, ignoresNodes), of(sweep, idle)), nil, story, nil},
	{"^R-S2: .* is nobody's for", sim.Machines, nil, both(of(provision, careless), of(sweep, rarely)), nil, deletes, nil},
	{"^R-S2: .* is nobody's for", sim.Machines, nil, of(sweep, rarely), nil, restored, nil},
	{"^2b.10: .* is Ready$", sim.Machines, nil, of(sweep, ignoresNodes), nil, restored, nil},
	{"^2b.10: .* for a Horizon$", sim.Machines, nil, of(sweep, believesAtOnce), nil, restored, nil},
	{"^R-S11: .*keeps the claim", sim.Healing, nil, of(repair, keepsClaims), nil, swarm, nil},
	{"^R-S11: .*node .* keeps", sim.Scaling, nil, of(autoscale, keepsTaints, taintsAnybody), nil, story, nil},
	{"^R-S11: .*node .* keeps", sim.Scaling, nil, of(autoscale, keepsRemovals, keepsTaints, taintsAnybody), nil, story, nil},
	{"^R-S11: .*removal of node .* on record", sim.Scaling, nil, of(autoscale, keepsRemovals), nil, story, nil},
	{"^R-L3: nobody ends it", sim.Scaling, nil, of(autoscale, keepsRemovals), nil, story, nil},
	{"^R-S14: .* on and on$", sim.Machines, nil, of(link, restless), nil, story, nil},
	// of a second set, which people leave alone
	{"^R-S4: .* neighbor's ledger does not hold", sim.Machines, nil, of(scale, makesTwins), beside, story, nil},
	{"^R-S4: .* were made of the neighbor", sim.Machines, nil, of(scale, takesForDeleted), beside, story, nil},
	{"^R-S4: .* the neighbor's replicas", sim.Machines, nil, of(link, scales), beside, story, nil},
	{"^R-S4: .* the neighbor has", sim.Machines, nil, of(scale, generous), beside, story, nil},
	{"^R-S5: .* retires ordinal .* of the neighbor", sim.Machines, nil, of(scale, takesForDeleted), beside, story, nil},
	{"^R-S6: .* deletes .* of the neighbor", sim.Machines, nil, of(scale, mistakesOrdinals), beside, story, nil},
	{"^R-S6: .* deletes .* of the neighbor", sim.Healing, nil, of(repair, selectsAll), beside, swarm, nil},
	{"^R-S6: .* changes whose", sim.Machines, nil, of(scale, blindToLabels), beside, story, nil},
	{"^R-S6: .* changes whose", sim.Machines, nil, of(scale, takesTheFree), moves, swarm, sim.Shifts{}},
	{"^R-S5: .* retires ordinal .* of the neighbor", sim.Machines, nil, of(scale, takesForDeleted), moves, swarm, sim.Shifts{}},
	{"^R-S8: .* from the neighbor's Node", sim.Scaling, nil, of(drain, evictsAnybody), beside, swarm, nil},
	{"^R-S10: .* of the neighbor in flight", sim.Healing, nil, of(repair, selectsAll, hypochondriac), beside, story, nil},
	{"^R-S11: .* of the neighbor$", sim.Scaling, nil, of(autoscale, taintsAnybody), beside, story, nil},
	{"^R-L1: .* of the neighbor, which wants", sim.Machines, nil, of(scale, overlooksSecond), beside, story, nil},
	// of the budget that checks and the autoscaler share
	{"^R-S10: .* disrupts .* without a slot", sim.Scaling, nil, of(autoscale, forgetsSlots), budget, swarm, nil},
	{"^R-S10: .* disrupts .* at once", sim.Healing, nil, of(repair, unlimited), budget, ailing, nil},
	{"^R-S10: .* disrupts .* at once", sim.Scaling, nil, of(autoscale, unlimited), budget, swarm, nil},
	{"^R-S10: .* disrupts .* within an hour", sim.Scaling, nil, of(autoscale, unlimited), hourly, swarm, nil},
	// of checks that select the control plane
	{"^R-S10: .* disrupts .* of the control plane", sim.Healing, nil, of(repair, forgetsRoles), checked, plagued, nil},
	{"^R-S10: .* disrupts .* of the control plane", sim.Healing, nil, of(repair, forgetsInTime), checked, plagued, nil},
	// of people who have things power-cycled
	{"^R-S6: .* whose host people power-cycle", sim.Healing, nil, of(repair, blindToPower), cycles, cycled, nil},
	{"^E36: .* calls the power-cycle", sim.Healing, []byte{2}, of(provision, welcomesAtOnce), cycles, cycled, nil},
	{"^E36: the power of .* goes", sim.Healing, []byte{2}, of(provision, forgetsPower), cycles, cycled, nil},
	{"^R-S11: .*is power-cycled on", sim.Healing, nil, of(provision, keepsPower), cycles, cycled, nil},
	// of people who make the set one that nobody makes Machines for
	{"^R-S6: .* which nobody replaces", sim.Healing, nil, of(repair, servesAll), unserves, unserved, nil},
	{"^R-S4: .* that nobody makes Machines for", sim.Scaling, nil, of(autoscale, servesAll), unserves, unserved, nil},
	// of a cloud that loses many at once
	{"^R-L1: .*is in phase", sim.Healing, nil, of(repair, saysNothing), losses, losing, nil},
	// of people who spoil a template, and mend it late
	{"^R-S6: .* whose template nobody mended", sim.Healing, nil, of(repair, triesAgain), spoils, spoiling, nil},
	{"^R-L1: .*is in phase", sim.Healing, nil, of(repair, ignoresTemplates), spoils, spoiling, nil},
	// of a policy that keeps something
	{"^R-L2: .* and nobody says so", sim.Healing, nil, of(provision, mute), keeps, kept, nil},
	{"^R-L2: .* and nobody says so", sim.Healing, nil, of(repair, mute), keeps, kept, nil},
	{"^R-S14: while a policy keeps", sim.Healing, nil, of(link, restless), keeps, kept, nil},
	{"^R-L3: what a policy keeps", sim.Healing, nil, of(provision, waitsForPolicies), keeps, kept, nil},
	// of two MachineAutoscalers of one set
	{"^B87: .* gives the set of", sim.Scaling, nil, of(autoscale, forgetsOwners), rivals, story, sim.Uncheck{}},
	// of two sets between which the autoscaler chooses
	{"^R-S4: .* nodes are allowed", sim.Scaling, nil, of(autoscale, countsFirst), twoSmall, loaded, nil},
	{"^R-S4: .* are enough for the pods$", sim.Scaling, nil, of(autoscale, growsSecond), two, loaded, nil},
	{"^R-S4: .* are enough for the pods$", sim.Scaling, nil, of(autoscale, seesNoneCome), two, loaded, nil},
	{"^R-S4: .* replicas, at most", sim.Scaling, nil, of(autoscale, growsSecondFar), two, loaded, nil},
	{"^R-S4: .* ordinals of the neighbor, at most", sim.Scaling, nil, of(scale, oneMore), two, loaded, nil},
	{"^R-S4: .* were made of the neighbor", sim.Scaling, nil, of(scale, takesForDeleted), two, story, nil},
	{"^R-S4: .* the neighbor has", sim.Scaling, nil, of(scale, generous), two, loaded, nil},
	{"^R-S5: .* less with .* victims", sim.Scaling, nil, of(autoscale, secondWithoutVictims), two, story, nil},
	{"^R-S5: .* retires ordinal .* of the neighbor", sim.Scaling, nil, of(scale, secondOvershoots), two, story, nil},
	{"^R-S5: .* instead of the victim", sim.Scaling, nil, of(scale, unmarked), two, loaded, nil},
	{"^R-S6: .* deletes .* of the neighbor", sim.Scaling, nil, of(scale, mistakesOrdinals), two, loaded, nil},
	{"^R-L1: .* replicas of .* in the end", sim.Scaling, nil, of(autoscale, neverShrinks), two, story, nil},
	{"^R-L1: .*pod .* waits", sim.Scaling, nil, of(autoscale, overlooksSecond), two, loaded, nil},
	{"^R-L3: nobody scales", sim.Scaling, nil, of(autoscale, seldom), two, loaded, nil},
	// of a second namespace
	{"^R-S4: .* the neighbor has", sim.Machines, nil, of(scale, sizesByName), apart, story, nil},
	{"^R-S6: .* deletes .* of the neighbor", sim.Healing, nil, of(repair, checksByName), apart, swarm, nil},
	// of another cluster with the same id
	{"^R-S3: .* which another cluster made", sim.Machines, nil, of(sweep, marksNobody), twoClusters, story, nil},
	// of lists that lack most of what there is
	{"^R-S12: .* by a list that lost all Pods", sim.Scaling, nil, of(autoscale, believesLists), shorts, emptied, nil},
	{"^R-S14: in an hour", sim.Machines, nil, of(link, nowAndThen), nil, swarm, nil},
}

// shownBy are the checks that no mistake of a function can fail: they hold the runner, which a guard that is taken away fails
// (docs/guards.md), or small scopes.
var shownBy = map[string]string{
	"G7: x writes although its clock was x off": "guard one-clock",
	"R-S14: x writes on and on: x":              "test/history/controls_test.go TestControlsOfBouts",
	"R-S1: x instances of x":                    "test/history/controls_test.go TestControlsOfBouts",
}

// elsewhereHeld are the invariants that the simulation cannot hold, with their tests, and the guard that each of these misses if it
// is taken away (docs/guards.md): that is its control.
var elsewhereHeld = map[string][]witness{
	"R-L4": {
		{"shared/runner/answered_test.go TestNobodyWaitsBehindThePoisoned", "others-first-each-time"},
		{"shared/runner/alternating_test.go TestAccountsTakeTurns", "accounts-take-turns"},
		{"shared/runner/turns_test.go TestInstancesThatNoListShowsAreAskedForInTurn", "longest-waiting-first"},
	},
	"R-L5": {{"shared/runner/answered_test.go TestEveryRequestIsAnswered", "time-for-a-request"}},
}

type witness struct{ test, guard string }

// mostTries is how many schedules a control may take. The mistakes that show most rarely do in one of some 250.
const mostTries = 3000

func TestControls(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("plays hundreds of schedules")
	}
	for _, c := range controls {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			spoilt := class{level: c.level, world: c.world, naive: c.mistake, with: c.with, how: c.how, faults: c.faults}
			config := sim.Config{Level: c.level, Steps: 300, Only: regexp.MustCompile(c.says)}
			spoilt.spoil(&config)
			tries := uint64(mostTries)
			if c.how == rough {
				config.Steps = 100
			}
			if c.how == story {
				tries = 1
			}
			for seed := range tries {
				if err := spoilt.run(config, seed); err != nil {
					t.Logf("after %d schedules %s: %v", seed+1, c.says, err)
					return
				}
			}
			t.Errorf("nothing fails %s in %d schedules", c.says, tries)
		})
	}
}

var (
	violated = regexp.MustCompile(`violate\("([^"]+)", "([^"]+)"`)
	found    = regexp.MustCompile(`"(R-[SL]\d+)(?:: |", ")([^"]+)"`)
	verb     = regexp.MustCompile(`%\S`)
)

// Every check of the simulation has a control, and every invariant of docs/RELIABILITY.md §3.2 a check.
func TestEveryCheckHasAControl(t *testing.T) {
	t.Parallel()
	held := map[string]bool{}
	files, err := filepath.Glob("../sim/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		checks := violated.FindAllStringSubmatch(string(text), -1)
		if strings.HasSuffix(file, "settle.go") || strings.HasSuffix(file, "scaled.go") || strings.HasSuffix(file, "removals.go") {
			checks = append(checks, found.FindAllStringSubmatch(string(text), -1)...)
		}
		for _, c := range checks {
			held[c[1]] = true
			words := c[1] + ": " + verb.ReplaceAllString(c[2], "x")
			has := slices.ContainsFunc(controls, func(k control) bool { return regexp.MustCompile(k.says).MatchString(words) })
			if _, told := shownBy[words]; has == told {
				t.Errorf("%s: %q has a control: %v, and is told to be shown elsewhere: %v", file, words, has, told)
			}
		}
	}
	if len(held) < 20 {
		t.Errorf("only the checks of %v were found", held)
	}
	text, err := os.ReadFile("../../docs/RELIABILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/without-a-leader.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range regexp.MustCompile(`\*\*(R-[SL]\d+)\*\*`).FindAllStringSubmatch(string(text), -1) {
		row := regexp.MustCompile(`\n\| ` + id[1] + ` \|.*`).FindString(string(page))
		if elsewhere, told := elsewhereHeld[id[1]]; held[id[1]] == told {
			t.Errorf("%s is checked: %v, and told to be at %v", id[1], held[id[1]], elsewhere)
		} else if row == "" {
			t.Errorf("docs/without-a-leader.md does not tell how %s is asserted", id[1])
		}
		for _, w := range elsewhereHeld[id[1]] {
			w.isThere(t, row)
		}
	}
}

// isThere wants the test where w says, a row that tells of both, and the table of guards to say that the test fails without the guard.
func (w witness) isThere(t *testing.T, row string) {
	t.Helper()
	file, name, _ := strings.Cut(w.test, " ")
	if text, err := os.ReadFile("../../" + file); err != nil || !strings.Contains(string(text), "func "+name+"(") {
		t.Errorf("there is no test %s: %v", w.test, err)
	}
	if !strings.Contains(row, name) || !strings.Contains(row, w.guard) {
		t.Errorf("docs/without-a-leader.md does not name %s and %s in %q", name, w.guard, row)
	}
	guards, err := os.ReadFile("../../docs/guards.md")
	if err != nil || !regexp.MustCompile(`\n\| `+w.guard+` \|.*\| `+name+`[/ ]`).Match(guards) {
		t.Errorf("docs/guards.md does not say that %s fails without %s: %v", name, w.guard, err)
	}
}

// Small scopes have checks of their own: who runs alone has to be quiet soon, and nobody has two instances.
func TestControlsOfBouts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mistake mistake
		fn      int
		says    string
	}{
		"writes on and on": {of(link, restless), 2, "^R-S14: .* writes on and on"},
		"two instances":    {of(provision, createsAgain, keepsTwins), 1, "^R-S1: .* instances of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for stage := range 6 {
				b := &sim.Bout{
					Config: sim.Config{Level: sim.Machines, Wrap: c.mistake, Only: regexp.MustCompile(c.says)},
					World:  untokened, Stage: stage, Functions: []int{c.fn, c.fn}, Faults: 1, Switches: 2,
				}
				b.Prepare()
				defer b.Close()
				s := &sim.Script{}
				for range 300 {
					if err := b.Play(s); err != nil {
						t.Logf("stage %d: %v", stage, err)
						return
					}
					if !s.Next() {
						break
					}
				}
			}
			t.Error("nothing fails this check")
		})
	}
}
