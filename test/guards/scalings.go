// SPDX-License-Identifier: Apache-2.0

package guards

// scalings keep what runs where it runs until its Node is empty, and decide nothing twice (RELIABILITY 2d).
var scalings = []Guard{
	{"state-before-deeds", "G4", autoscale + "scan.go", `		sc.do = append([]plan.Action{commit}, sc.do...)`, `		sc.do = append(sc.do, commit)`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"set-of-another-api-is-no-group", "2d", autoscale + "group.go", `paused || machine.IsPausedSet(set)`, `paused`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"plan-of-this-revision", "2d", autoscale + "resize.go", `	return n.Resize != nil && n.Resize.Plan != g.set.Annotations[machine.AnnotationLastPlan]`, `	return n.Resize != nil`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"newer-state-is-left-alone", "G9", autoscale + "stopped.go", `	if autoscaling.NewerState(cm.Data[autoscaling.StateKey]) || tells(`, `	if tells(`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"lists-that-lost-half", "G8", autoscale + "doubt.go", `	return seen.Doubt != nil`, `	return false`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"lists-that-go-on-losing", "G8", autoscale + "doubt.go", `	case seen.Doubt == nil, seen.Left != nil && (`, `	case seen.Doubt == nil, false && (`, "./functions/evaluate-autoscale -run=TestList"},
	{"newer-ledger-shrinks-nothing", "G9", autoscale + "group.go", `	return sc.newerLedger(g) || g.surplus()`, `	return g.surplus()`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"newer-ledger-calls-off-the-drain", "G9", autoscale + "removal.go", `	case sc.newerLedger(g):`, `	case false:`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"newer-ledger-keeps-its-nodes", "G9", autoscale + "room.go", `	case sc.newerLedger(c.group):`, `	case false:`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"newer-ledger-takes-no-place", "G9", autoscale + "scaledown.go", `sc.least(c, r) != "" || sc.newerLedger(c.group)`, `sc.least(c, r) != ""`, "./functions/evaluate-autoscale -run=TestNodeThatANewerLedger"},
	{"newer-ledger-is-not-repacked", "G9", autoscale + "repack.go", `	return !sc.newerLedger(c.group) && `, `	return `, "./functions/evaluate-autoscale -run=TestNodeThatANewerLedger"},
	{"newer-ledger-grows-once-in-vain", "G9", autoscale + "explain.go", `	case sc.newerLedger(g) && inVain(n):`, `	case false:`, "./functions/evaluate-autoscale -run=TestNewerLedger"},
	{"machines-in-vain-are-not-followed-by-more", "G9", autoscale + "explain.go", ` || n.LastFailure != nil && len(n.FailedUIDs) > 0`, ``, "./functions/evaluate-autoscale -run=TestNewerLedger"},
	{"machines-in-vain-are-not-forgotten", "G9", autoscale + "request.go", ` && !(sc.newerLedger(g) && inVain(n))`, ``, "./functions/evaluate-autoscale -run=TestNewerLedger"},
	{"choice-is-not-awaited-for-ever", "2d", autoscale + "removal.go", `	case !sc.Now.Before(chosenBy(r)) && sc.undecided(g):`, `	case false:`, "./functions/evaluate-autoscale -run=TestEmptied"},
	{"pods-end-before-the-choice-is-awaited", "2d", autoscale + "removal.go", `		until = until.Add(time.Duration(r.MaxGrace) * time.Second)
`, ``, "./functions/evaluate-autoscale -run=TestDrain"},
	{"nobody-is-emptied-before-the-choice", "2d", autoscale + "room.go", `	case !r.chosen(sc, c.group):`, `	case false:`, "./functions/evaluate-autoscale -run=TestEmptied"},
	{"who-is-chosen-is-on-the-way-out", "2d", autoscale + "resize.go", ` || sc.retired[m.UID] || `, ` || `, "./functions/evaluate-autoscale -run=TestSetGrows"},
	{"who-is-chosen-is-taken-off-once", "2d", autoscale + "removal.go", ` || r.Committed != nil || sc.retired[m.UID]`, ` || r.Committed != nil`, "./functions/evaluate-autoscale -run=TestEmptiedNodeWhose"},
	{"who-is-chosen-is-given-back-in-the-end", "2d", autoscale + "removal.go", `	case !sc.Now.Before(chosenBy(r)) && sc.retired[n.UID]:`, `	case false:`, "./functions/evaluate-autoscale -run=TestEmptiedNodeWhose"},
	{"who-is-chosen-is-no-place", "2d", autoscale + "look.go", ` || sc.retired[n.UID]`, ``, "./functions/evaluate-autoscale -run=TestSetGrows"},
	{"who-is-chosen-keeps-its-slot", "G8", autoscale + "budget.go", ` && !sc.retired[m.UID]`, ``, "./functions/evaluate-autoscale -run=TestNoMoreAre"},
	{"chosen-by-the-ledger-of-the-set", "2d", autoscale + "retired.go", ` || l.SetUID != g.set.UID`, ``, "./functions/evaluate-autoscale -run=TestSetGrows"},
	{"nobody-is-chosen-by-a-ledger-of-long-ago", "2d", autoscale + "retired.go", `		if ok && k >= l.Next {`, `		if false {`, "./functions/evaluate-autoscale -run=TestSetGrows"},
	{"who-was-let-go-is-taken-off-no-target", "2d", autoscale + "removal.go", `	case !g.has(r.MachineUID):`, `	case false:`, "./functions/evaluate-autoscale -run=TestNodeOfA"},
	{"members-of-its-own-namespace", "2d", autoscale + "group.go", `g == nil || g.set.Namespace != m.Namespace {`, `g == nil {`, "./functions/evaluate-autoscale -run=TestMachineOfAnother"},
	{"who-is-let-go-is-not-chosen", "2d", autoscale + "retired.go", `selector.Matches(labels.Set(m.machine.Labels)) && `, `selector.Matches(labels.Set(g.set.Spec.Selector.MatchLabels)) && `, "./functions/evaluate-autoscale -run=TestSetGrows"},
	{"who-is-made-anew-is-not-chosen", "2d", autoscale + "retired.go", ` && !l.MadeAnew(m.machine, k) {`, ` {`, "./functions/evaluate-autoscale -run=TestSetGrows"},
	{"no-commit-on-lists-in-doubt", "G8", autoscale + "removal.go", ` && !sc.doubt && !`, ` && !`, "./functions/evaluate-autoscale -run=TestScenarios|Doubt|Believed|Lists"},
	{"nobody-is-given-up-in-doubt", "G8", autoscale + "lost.go", `	if sc.doubt {`, `	if false {`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"plan-of-a-minute", "2d", autoscale + "resize.go", ` && sc.Now.Before(r.At.Add(resizeTTL))`, ``, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"node-that-goes-keeps-its-taint", "2d", autoscale + "removal.go", `current || sc.deleting(n) || `, `current || `, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"slot-of-whoever-goes", "G8", autoscale + "budget.go", ` && !sc.isVictim(m) &&`, ` &&`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"slot-of-whoever-is-to-go", "G8", autoscale + "budget.go", ` || sc.budget.wanted[s.UID] {`, ` {`, "./functions/evaluate-autoscale -run=TestNoMoreAre"},
	{"bounds-of-its-namespace", "2d", autoscale + "machineautoscaler.go", ` && set.Namespace == machine.Namespace`, ``, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"scaling-times-from-the-future-are-over", "G7", autoscale + "scan.go", `state: bounded(state, s.Now),`, `state: bounded(state, s.Now.AddDate(99, 0, 0)),`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"unmade-goes-by-its-name", "2d", autoscale + "lost.go", `append(victims, unmade[:min(never, len(unmade))]...)`, `append(victims, unmade[:0]...)`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"pods-again-after-the-taint", "2d", autoscale + "removal.go", `!sc.Now.Before(r.At.Add(settleTime)) && len(sc.remaining(n)) == 0 && `, `len(sc.remaining(n)) == 0 && `, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"taint-is-seen-before-it-is-old", "2d", autoscale + "removal.go", `			r.Fresh, r.At = false, *sc.now()`, `			r.Fresh = false`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"taint-written-now-is-not-old", "2d", autoscale + "removal.go", `old && sc.wrote(n)`, `old && false`, "./functions/evaluate-autoscale -run=TestScenarios|TestTaint"},
	{"empty-before-it-goes", "2d", autoscale + "removal.go", ` && len(sc.remaining(n)) == 0 && !sc`, ` && !sc`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"minimum-at-the-commit", "2d", autoscale + "removal.go", `	sc.giveBackKept()
`, ``, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"minimum-waits-for-the-choice", "2d", autoscale + "removal.go", `	return before >= g.target-g.min && !sc.undecided(g)`, `	return before >= g.target-g.min`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"needed-node-is-given-back", "2d", autoscale + "removal.go", `	sc.giveBackNeeded()
`, ``, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"no-more-given-back-than-needed", "2d", autoscale + "look.go", `, Last: sc.going[n.UID]}`, `}`, "./functions/evaluate-autoscale -run=TestAsMany"},
	{"unready-nodes-stop-scale-down", "2d", autoscale + "scaledown.go", `	case sc.tooManyUnready():`, `	case false:`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"outage-takes-removals-back", "2d", autoscale + "removal.go", `	case sc.tooManyUnready(): // whoever`, `	case false: // whoever`, "./functions/evaluate-autoscale -run=TestScenarios|TestOutage"},
	{"stale-taints-go", "2d", autoscale + "removal.go", `	sc.dropStaleTaints()
}`, `}`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"one-change-of-a-set", "2d", autoscale + "removal.go", `	if pendingResize(g, sc.state.Groups[g.id]) || sc.undecided(g) {`, `	if sc.undecided(g) {`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"what-people-let-go-is-chosen-first", "2d", autoscale + "removal.go", ` || sc.undecided(g) {
		return // one`, ` {
		return // one`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"growth-is-not-taken-back", "2d", autoscale + "lost.go", `		if sc.allotted(g) >= g.target {`, `		if true {`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"never-made-wait-for-a-choice", "2d", autoscale + "group.go", ` || sc.allotted(g) > g.target`, ``, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"orphans-wait-for-no-choice", "2d", autoscale + "group.go", `			n -= truth(sc.orphaned(g, l, k))`, `			n -= truth(k < 0)`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"orphans-are-made", "2d", autoscale + "lost.go", ` && !sc.orphaned(g, l, k) {`, ` {`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"gpus-before-their-label", "2d", autoscale + "limits.go", `	if t == "" && g != nil {`, `	if false {`, "./functions/evaluate-autoscale -run=TestScenarios|TestGPU"},
	{"failures-have-room", "2d", autoscale + "request.go", `n.Reason = clip(reason)`, `n.Reason = reason`, "./functions/evaluate-autoscale -run=Failures"},
	{"waves-have-room", "2d", autoscale + "wave.go", `	if len(waves) > maxWaves {`, `	if false {`, "./functions/evaluate-autoscale -run=Waves"},
	{"marks-have-room", "2d", autoscale + "wave.go", `len(sc.counted)+len(marks) < maxMarked && `, ``, "./functions/evaluate-autoscale -run=Marks"},
	{"no-minimum-while-backed-off", "2d", autoscale + "minimum.go", ` || sc.backedOff(g) || pendingResize`, ` || pendingResize`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"memory-is-in-objects", "G10", autoscale + "scaledown.go", `	sc.state.Unneeded = timers
	if`, `	sc.state.Unneeded = nil
	if`, "./functions/evaluate-autoscale -run=TestScenarios"},
}
