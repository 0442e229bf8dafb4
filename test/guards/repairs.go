// SPDX-License-Identifier: Apache-2.0

package guards

// repairs are the guards of what replaces sick Machines, and of the budget of the cluster.
var repairs = []Guard{
	{"sick-only-unchanged", "G3", heal + "repair.go", `IfUnchanged: true, `, ``, ""},
	{"paused-machine-is-not-remediated", "2f", heal + "admit.go", `	case machine.IsPaused(t.m):`, `	case false:`, ""},
	{"set-that-adopted-what-is-in-flight", "2f", heal + "settle.go", `f.Set = replacing(f, t)`, `_ = replacing(f, t)`, ""},
	{"as-many-in-flight", "2f", heal + "admit.go", `	case !c.room(t):
		return fmt.Sprintf(heldFlight, c.name())
`, "", ""},
	{"another-node-of-the-instance-is-ready", "2f", heal + "limits.go", `(m))]; best != nil && other != nil {`, `(m))]; best != nil && other == best {`, ""},
	{"slot-of-the-budget", "G8", heal + "repair.go", ` || !d.budget.lets(t) {`, ` {`, ""},
	{"taken-away-needs-no-slot", "2f", heal + "budget.go", `	if spent(t) {
		return true
	}
	next, ok :=`, `	next, ok :=`, "./functions/remediate -run=TestScenarios"},
	{"taken-away-foresees-no-slot", "2f", heal + "budget.go", `	if spent(t) {
		return true
	}
	b.foreseen, ok`, `	b.foreseen, ok`, "./functions/remediate -run=TestScenarios"},
	{"taken-away-goes-without-a-slot", "2f", heal + "budget.go", `return spent(t) || b.stored`, `return b.stored`, "./functions/remediate -run=TestScenarios"},
	{"master-that-is-taken-away-needs-its-slot", "2f", heal + "budget.go", `return t.leaves && !t.controlPlane() }`, `return t.leaves }`, "./functions/remediate -run=TestScenarios"},
	{"taken-away-is-said-in-a-hurry", "2f", heal + "health.go", ` && u.Timeout.Duration < shortTimeout
}`, `
}`, "./functions/remediate -run=TestScenarios"},
	{"budget-at-once", "G8", words + "disruption.go", `	if len(atOnce) >= l.AtOnce || len(lately) >= l.PerHour {`, `	if len(lately) >= l.PerHour {`, "./shared/machine -run=TestEachLimit"},
	{"budget-per-hour", "G8", words + "disruption.go", `len(atOnce) >= l.AtOnce || len(lately) >= l.PerHour {`, `len(atOnce) >= l.AtOnce {`, "./shared/machine -run=TestEachLimit"},
	{"claim-before-remediation", "2f", heal + "repair.go", `		case t.m.Annotations[machine.AnnotationRemediatedBy] != claim:
			all = append(all, c.take(t, claim, does))
`, "", ""},
	{"record-before-remediation", "G4", heal + "handler.go", `			all = append(all, c.commit())
			continue
`, `			all = append(all, c.commit())
			c.record = c.next
`, ""},
	{"still-sick", "2f", heal + "repair.go", `		if t == nil || !t.sick(d.Now) ||`, `		if t == nil ||`, ""},
	{"partition-is-no-illness", "2f", heal + "limits.go", `	case c.network.partitioned():`, `	case false:`, ""},
	{"in-flight-is-held-too", "2f", heal + "repair.go", ` || d.held[f.UID] != ""`, ``, ""},
	{"check-of-its-namespace", "2f", heal + "check.go", `		if m.Namespace == h.Namespace && `, `		if `, ""},
	{"successor-of-its-namespace", "2f", heal + "controlplane.go", `		return m.Namespace == namespace && m`, `		return namespace != "?" && m`, ""},
	{"too-many-unhealthy", "2f", heal + "limits.go", `	case c.sum.unhealthy() > c.sum.most:`, `	case false:`, ""},
	{"storm-cools-down", "2f", heal + "limits.go", `	case s != nil && s.Over != nil:`, `	case false:`, ""},
	{"node-gone-is-seen-twice", "2f", heal + "health.go", `due: since.Add(looksApart), sight: reasonNotFound`, `due: since.Add(-looksApart), sight: reasonNotFound`, ""},
	{"hopeless-spec-is-not-replaced", "2f", heal + "health.go", `reason: reasonInvalid, message: "the spec can never work, a replacement would not help"}`, `reason: reasonInvalid, due: updated, message: "the spec can never work, a replacement would not help"}`, ""},
	{"set-is-whole-by-its-machines", "2f", heal + "settle.go", `c.readyOf(set)+c.sickOf(set)`, `int(set.Status.ReadyReplicas)+c.sickOf(set)`, ""},
	{"whole-by-its-own-machines", "2f", heal + "settle.go", `		if m.DeletionTimestamp == nil && machine.Controls(set, m) && ready`, `		if m.DeletionTimestamp == nil && ready`, ""},
	{"whole-by-its-own-namespace", "2f", words + "owner.go", `m.Namespace == set.Namespace && `, ``, "./functions/remediate"},
	{"who-goes-makes-no-set-whole", "2f", heal + "settle.go", `		if m.DeletionTimestamp == nil && machine`, `		if machine`, ""},
	{"sick-of-its-own-set", "2f", heal + "settle.go", `machine.Controls(set, t.m) && (t`, `(t`, ""},
	{"sick-and-ready-counts-once", "2f", heal + "settle.go", ` && !ready(t.n) {`, ` {`, ""},
	{"slot-of-who-still-drains", "G8", heal + "decision.go", `slot.By == name && m.DeletionTimestamp == nil && `, `slot.By == name && `, ""},
	{"slot-of-who-is-in-flight", "G8", heal + "decision.go", ` && d.claimed[m.UID] == nil &&
`, ` &&
`, ""},
	{"slot-of-an-idle-check", "G8", heal + "decision.go", `		!slices.ContainsFunc(d.idle, func(c *check) bool { return c.standsBehind(m.UID) })
}

// claim`, `		slot.UID != ""
}

// claim`, ""},
	{"successor-stays", "2f", heal + "controlplane.go", `m.DeletionTimestamp == nil && !m.CreationTimestamp`, `!m.CreationTimestamp`, ""},
	{"successor-is-ready", "2f", heal + "controlplane.go", ` && ready(t.n) && `, ` && `, ""},
	{"successor-is-of-the-control-plane", "2f", heal + "controlplane.go", `ready(t.n) && t.controlPlane()`, `ready(t.n)`, ""},
	{"nodes-of-the-deleted-are-no-partition", "2f", heal + "limits.go", `		if m.DeletionTimestamp == nil && m.Status`, `		if m.Status`, ""},
	{"not-ready-for-no-time-is-no-illness", "2f", heal + "understand.go", `	case u.Timeout.Duration == 0 && u.Type == corev1.NodeReady:`, `	case false:`, ""},
	{"slot-is-taken-once", "G8", words + "disruption.go", `		if mine && s.current(now) {
			if !over(s) {
				return d, true
			}
			again = true
		}
`, "", "./shared/machine"},
	{"power-cycle-needs-no-set", "2f", heal + "admit.go", ` && c.does(f, t) == stepReplace`, ``, ""},
	{"one-master-in-flight", "2f", heal + "admit.go", `	case t.controlPlane() && len(d.masters()) > 0:
		return d.masters()[0].holds()
`, "", ""},
	{"late-wish-ends-no-flight", "2f", heal + "settle.go", `(t == nil || !t.sick(c.Now) || t.excused(c.Now) == "" || c.binds(f, t))`, `(t == nil || t.excused(c.Now) == "" || c.binds(f, t))`, "./functions/remediate -run=TestScenarios"},
	{"hopeless-are-not-waited-for", "2f", heal + "settle.go", `(t.sick(c.Now) || t.reason == reasonInvalid)`, `t.sick(c.Now)`, "./functions/remediate -run=TestScenarios"},
	{"set-without-a-number", "2f", heal + "settle.go", `(set.Spec.Replicas == nil || c`, `(c`, "./functions/remediate -run=TestScenarios"},
	{"sightings-have-room", "2f", heal + "settle.go", ` || len(seen) >= maxSightings`, ``, "./functions/remediate -run=TestSightings"},
	{"request-of-another-check-stays", "2f", heal + "external.go", `		if claimantOf(r) != by || m`, `		if m`, "./functions/remediate -run=TestScenarios"},
	{"no-pods-from-a-template", "4", heal + "external.go", `	case !plan.Foreign(e.template) || !plan.Foreign(e.request):`, `	case false:`, "./functions/remediate -run=TestTemplates"},
	{"template-of-the-checks-namespace", "4", heal + "external.go", `ref.Namespace != "" && ref.Namespace != h.Namespace`, `ref.Namespace == "none"`, "./functions/remediate -run=TestTemplates"},
	{"slots-of-others-stand", "G8", heal + "decision.go", `	return slot.By == name && m.D`, `	return m.D`, "./functions/remediate -run=TestSlots"},
	{"condition-without-a-time", "G7", heal + "health.go", `unknown := since.IsZero() || machine`, `unknown := machine`, "./functions/remediate -run=TestScenarios"},
	{"sick-keep-their-claim", "2f", heal + "repair.go", `!is || t.reason != "" && !kept || `, `!is || t.m == nil || `, "./functions/remediate -run=TestScenarios"},
	{"request-while-it-recovers", "2f", heal + "external.go", ` || t.recovering || `, ` || `, "./functions/remediate -run=TestScenarios"},
	{"moment-is-no-storm", "2f", heal + "limits.go", `s.waiting - s.young }`, `s.waiting }`, "./functions/remediate -run=TestScenarios"},
	{"paused-check-binds-what-it-has-in-flight", "2f", heal + "decision.go", `c.name() == by && c.standsBehind(m.UID)`, `c.name() == by`, "./functions/remediate -run=TestScenarios"},
	{"master-that-no-check-selects-is-remembered", "2f", heal + "controlplane.go", `d.looks(m.Namespace)`, `slices.ContainsFunc(d.checks, func(c *check) bool { return c.target(m.UID) != nil })`, "./functions/remediate -run=TestMasterBeyond"},
	{"master-of-a-paused-check", "2f", heal + "controlplane.go", `	for _, c := range d.idle {`, `	for _, c := range d.idle[:0] {`, "./functions/remediate -run=TestScenarios"},
	{"paused-check-holds-for-half-an-hour", "2f", heal + "controlplane.go", ` && (!c.late(f) || c.binds(f, t))`, ``, "./functions/remediate -run=TestScenarios"},
	{"successor-ends-what-a-paused-check-holds", "2f", heal + "controlplane.go", ` && c.wanted(f, t) && `, ` && `, "./functions/remediate -run=TestScenarios"},
	{"verdict-where-another-api-rules", "2f", heal + "status.go", `	if machine.IsPaused(m) || machine.FindCondition`, `	if machine.FindCondition`, "./functions/remediate -run=TestScenarios"},
	{"who-goes-does-not-work", "2f", heal + "settle.go", `t.n != nil && t.reason == "" && t.m.DeletionTimestamp == nil`, `t.n != nil && t.reason == ""`, "./functions/remediate -run=TestScenarios"},
	{"verdict-stays-on-who-goes", "2f", heal + "status.go", `	if m.DeletionTimestamp != nil || machine.IsPaused(m) || unknown`, `	if machine.IsPaused(m) || unknown`, "./functions/remediate -run=TestScenarios"},
	{"silent-soon-never-worked", "2f", heal + "check.go", ` || c.silentSoon(t))`, `)`, "./functions/remediate -run=TestScenarios"},
	{"slot-that-was-given-back-needs-room", "G8", words + "disruption.go", `		return d, len(atOnce) < l.AtOnce`, `		return d, true`, "./shared/machine -run=TestSlotThat"},
	{"master-gone-for-long", "2f", heal + "settle.go", ` || c.binds(f, t):`, `:`, "./functions/remediate -run=TestScenarios"},
	{"master-of-a-paused-check-gone-for-long", "2f", heal + "controlplane.go", `(!c.late(f) || c.binds(f, t))`, `!c.late(f)`, "./functions/remediate -run=TestScenarios"},
	{"master-that-goes-binds", "2f", heal + "controlplane.go", `m.UID != f.UID || m.DeletionTimestamp != nil`, `m.UID != f.UID`, "./functions/remediate -run=TestScenarios"},
	{"master-by-its-uid-binds", "2f", heal + "controlplane.go", `m == nil || m.UID != f.UID || `, `m == nil || `, "./functions/remediate -run=TestScenarios"},
	{"master-that-was-tried-binds", "2f", heal + "controlplane.go", `(c.out(f) || t != nil && !c.tried(t).IsZero())`, `c.out(f)`, "./functions/remediate -run=TestScenarios"},
	{"untried-master-is-let-go", "2f", heal + "controlplane.go", `t != nil && !c.tried(t).IsZero()`, `t != nil`, "./functions/remediate -run=TestScenarios"},
	{"workers-are-not-bound", "2f", heal + "controlplane.go", `	return f.ControlPlane && (c.out(f)`, `	return (c.out(f)`, "./functions/remediate -run=TestScenarios"},
	{"master-gone-holds-who-is-in-flight", "2f", heal + "admit.go", `		case t.controlPlane() && d.masterOut(c, f) != "":`, `		case false:`, "./functions/remediate -run=TestScenarios"},
	{"master-tried-in-vain-holds-who-is-in-flight", "2f", heal + "controlplane.go", `!tried && other.binds(other.remediation, other.target(other.UID))`, `!tried && false`, "./functions/remediate -run=TestMaster"},
	{"masters-tried-in-vain-hold-each-other-not", "2f", heal + "controlplane.go", `!tried && other.binds`, `(!tried || true) && other.binds`, "./functions/remediate -run=TestMaster"},
	{"kept-master-that-was-tried-binds", "2f", heal + "settle.go", ` == "" || c.binds(f, t))`, ` == "")`, "./functions/remediate -run=TestMaster"},
	{"kept-master-is-not-escalated", "2f", heal + "settle.go", ` && t.excused(c.Now) == "" && c.began`, ` && c.began`, "./functions/remediate -run=TestMaster"},
	{"kept-master-is-not-begun", "2f", heal + "admit.go", `	case excuse != "":`, `	case false:`, "./functions/remediate -run=TestScenarios"},
	{"kept-master-is-not-power-cycled", "2f", heal + "repair.go", `!free && !kept {`, `!free {`, "./functions/remediate -run=TestMaster"},
	{"kept-master-that-binds-keeps-its-claim", "2f", heal + "repair.go", `		if free && !d.recovering(m) {`, `		if !d.recovering(m) {`, "./functions/remediate -run=TestMaster"},
	{"master-that-is-there-holds-nobody-in-flight", "2f", heal + "controlplane.go", `!tried && other.binds(other.remediation, other.target(other.UID))`, `!tried`, "./functions/remediate -run=TestScenarios"},
	{"overdue-master-takes-no-place", "2f", heal + "admit.go", `	return c.flying() < limit`, `	return len(c.next.InFlight) < limit`, "./functions/remediate -run=TestScenarios"},
	{"overdue-master-is-not-missing-to-workers", "2f", heal + "limits.go", `c.target(f.UID) == nil && !c.overdue(f)`, `c.target(f.UID) == nil`, "./functions/remediate -run=TestScenarios"},
	{"overdue-is-told", "2f", heal + "status.go", `	notes = append(notes, c.tellOverdue(flying)...)
`, "", "./functions/remediate -run=TestScenarios"},
	{"first-word-by-another-clock", "2f", heal + "health.go", `n.CreationTimestamp.Add(firstWord))`, `n.CreationTimestamp.Time)`, "./functions/remediate -run=TestScenarios"},
	{"silent-after-an-older-node-worked", "2f", heal + "check.go", ` && (!late || since.Before(t.m.CreationTimestamp.Add(c.startup())))`, ` && (!late || true)`, "./functions/remediate -run=TestScenarios"},
	{"what-is-repaired-works", "2f", heal + "settle.go", ` || repaired(t)) &&`, ` || false && repaired(t)) &&`, "./test/sim -short -run=TestPowerCycleFirst"},
	{"who-is-ill-does-not-work", "2f", heal + "settle.go", `t.n != nil && t.reason == "" && `, `t.n != nil && `, "./functions/remediate -run=TestScenarios"},
	{"who-starts-is-not-ill", "2f", heal + "settle.go", ` && (t.sick(c.Now) || t.reason == reasonInvalid) && !ready(t.n) {`, ` && !ready(t.n) {`, "./functions/remediate -run=TestScenarios"},
	{"power-cycle-of-a-master-is-not-begun-anew", "2f", heal + "controlplane.go", `	case wished || c.Now`, `	case false && wished || c.Now`, "./functions/remediate -run=TestScenarios"},
	{"power-cycle-of-a-master-has-half-an-hour", "2f", heal + "controlplane.go", `wished || c.Now.Before(last.Add(releaseAfter)):`, `wished:`, "./functions/remediate -run=TestScenarios"},
	{"try-by-a-clock-that-was-ahead", "G7", heal + "controlplane.go", `	case machine.TooFar(last, c.Now, 0):`, `	case false:`, "./functions/remediate -run=TestScenarios"},
	{"machines-that-start-are-no-outage", "2f", heal + "limits.go", `m.Status.NodeRef != nil && net.nodeOf(m) == nil {`, `net.nodeOf(m) == nil {`, "./functions/remediate -run=TestScenarios"},
	{"set-without-a-number-is-missing-nobody", "2f", heal + "settle.go", `	if set == nil || set.Spec.Replicas == nil {`, `	if set == nil {`, "./functions/remediate -run=TestScenarios"},
	{"template-of-a-kind", "4", heal + "external.go", `!plan.Foreign(e.template) || `, ``, "./functions/remediate -run=TestTemplates"},
	{"request-of-a-kind", "4", heal + "external.go", ` || !plan.Foreign(e.request):`, `:`, "./functions/remediate -run=TestTemplates"},
	{"copy-of-a-machine-has-no-node-of-its-instance", "2f", heal + "limits.go", `(m))]; best != nil && other != nil {`, `(m))]; other != nil {`, "./functions/remediate -run=TestAnotherNode"},
	{"no-id-is-no-instance", "2f", heal + "limits.go", ` && !ready(best) && id != "" {`, ` && !ready(best) {`, "./functions/remediate -run=TestAnotherNode"},
	{"ready-node-speaks-for-itself", "2f", heal + "limits.go", `best != nil && !ready(best) && id`, `best != nil && id`, "./functions/remediate -run=TestAnotherNode"},
	{"slot-ends-though-its-machine-drains", "2f", words + "disruption.go", `!s.current(now) || over(s) {`, `over(s) {`, "./shared/machine -run=TestSlotHoldsUp"},
	{"hour-of-a-slot-ends", "2f", words + "disruption.go", ` || ahead || !now.Before(s.At.Add(time.Hour)) {`, ` || ahead {`, "./shared/machine -run=TestSlotHoldsUp"},
	{"slot-of-another-function-is-none", "G8", words + "disruption.go", `mine := s.UID == want.UID && s.By == want.By`, `mine := s.UID == want.UID`, "./shared/machine -run=TestSlotOfAnother"},
	{"slot-of-another-function-is-not-held", "G8", words + "disruption.go", `s.UID == uid && s.By == by && s.current(now)`, `s.UID == uid && s.current(now)`, "./shared/machine -run=TestSlotOfAnother"},
	{"machine-of-two-slots-counts-once", "2f", words + "disruption.go", `		if s.UID == want.UID {
			continue
		}
`, ``, "./shared/machine -run=TestSlotOfAnother"},
	{"master-waits-for-one-that-people-delete", "2f", heal + "admit.go", `	case t.controlPlane() && d.masterGoes(t.m.Namespace) != "":`, `	case false:`, "./functions/remediate -run=TestScenarios"},
	{"master-in-flight-waits-for-one-that-people-delete", "2f", heal + "controlplane.go", `	return d.masterGoes(c.h.Namespace)
}`, `	return ""
}`, "./functions/remediate -run=TestScenarios"},
	{"sick-machine-of-a-set-of-another-api-stays", "2f", heal + "admit.go", `	if why := machine.Unserved(set); why != "" {`, `	if why := machine.Unserved(set); false {`, "./functions/remediate -run=TestScenarios"},
	{"sick-machine-of-a-newer-ledger-stays", "G9", heal + "admit.go", `; errors.Is(err, machine.ErrNewer) {`, `; errors.Is(err, nil) && false {`, "./functions/remediate -run=TestScenarios"},
	{"check-made-anew-ended-nothing", "2f", heal + "controlplane.go", `		return !c.newer && !at.IsZero() && !at.Before(c.h.CreationTimestamp.Time)`, `		return !c.newer && !at.IsZero()`, "./functions/remediate -run=TestScenarios"},
	{"master-waits-for-a-record-that-is-not-read", "G9", heal + "controlplane.go", `func(c *check) bool { return c.newer }); i >= 0 {`, `func(c *check) bool { return c.newer }); i >= 0 && false {`, "./functions/remediate -run=TestScenarios"},
	{"record-that-is-not-read-ended-nothing", "G9", heal + "controlplane.go", `		return !c.newer && !at.IsZero()`, `		return !at.IsZero()`, "./functions/remediate -run=TestScenarios"},
	{"preserved-is-not-power-cycled", "2f", heal + "repair.go", `t.reason != "" && !kept ||`, `t.reason != "" ||`, "./functions/remediate -run=TestScenarios"},
	{"preserved-is-not-remediated-by-others", "2f", heal + "external.go", `(t.excused(c.Now) == "" || machine`, `(true || machine`, "./functions/remediate -run=TestScenarios"},
	{"who-people-delete-of-the-control-plane-is-remembered", "2f", heal + "admit.go", `	d.remember()
`, ``, "./functions/remediate -run=TestScenarios"},
	{"who-has-a-successor-is-not-remembered", "2f", heal + "controlplane.go", `t.controlPlane() && d.looks(m.Namespace) && !d.network.succeeded(d.Snapshot, m.Namespace, m.DeletionTimestamp.Time) {
			d.budget`, `t.controlPlane() && d.looks(m.Namespace) {
			d.budget`, "./functions/remediate -run=TestScenarios"},
	{"slot-ahead-counts-from-now", "G7", words + "disruption.go", `d.Slots[i].At, changed = metav1.NewTime(now.Truncate(time.Second)), true`, `changed = changed || i < 0`, "./functions/remediate -run=TestScenarios"},
	{"slot-ahead-of-the-gone-is-dropped", "G7", words + "disruption.go", `TooFar(s.At.Time, now, 0) && !over(s) {`, `TooFar(s.At.Time, now, 0) {`, "./functions/remediate -run=TestScenarios"},
	{"never-begun-is-no-failure", "2f", heal + "vain.go", `			c.discount(t)`, ``, "./functions/remediate -run=TestScenarios"},
	{"slot-of-who-goes-is-as-old-as-its-deletion", "2f", heal + "budget.go", `		slot.At = *t.m.DeletionTimestamp
`, ``, "./functions/remediate -run=TestScenarios"},
	{"slot-that-counts-no-more-is-taken-now", "2f", "shared/machine/disruption.go", ` || !want.current(now) {`, ` {`, "./shared/machine -run=TestSlotIsAsOldAsItSays"},
	{"slot-of-a-clock-ahead-is-taken-now", "G7", "shared/machine/disruption.go", `want.At.IsZero() || TooFar(want.At.Time, now, 0) ||`, `want.At.IsZero() ||`, "./shared/machine -run=TestSlotIsAsOldAsItSays"},
	{"requests-of-a-check-that-is-gone-are-withdrawn", "2f", heal + "handler.go", `	for _, gone := range d.bereft() {`, `	for _, gone := range d.bereft()[:0] {`, "./functions/remediate -run=TestScenarios"},
	{"request-of-a-paused-check-stays", "2f", heal + "external.go", `by != "" && d.named(by) == nil {`, `by != "" {`, "./functions/remediate -run=TestScenarios"},
	{"request-of-a-person-stays", "2f", heal + "external.go", `by != "" && d.named(by) == nil {`, `d.named(by) == nil {`, "./functions/remediate -run=TestScenarios"},
	{"request-of-a-check-that-is-gone-stands-in", "2f", heal + "external.go", `gone := d.named(by) == nil`, `gone := d.named(by) == nil && false`, "./functions/remediate -run=TestScenarios"},
	{"checks-that-are-gone-leave-nothing-behind", "2f", heal + "reads.go", `		if !checks && looksBehind(s) {`, `		if false && looksBehind(s) {`, "./functions/remediate -run=TestScenarios"},
	{"who-has-no-checks-pays-little", "2f", heal + "reads.go", ` && looksBehind(s) {`, ` {`, "./functions/remediate -run=TestScenarios"},
	{"lost-instances-are-no-partition", "2f", heal + "limits.go", `		if machine.LostAt(m) != nil {
			continue`, `		if false {
			continue`, ""},
	{"nodes-of-lost-instances-are-no-partition", "2f", heal + "limits.go", `			lost[best] = true`, `			lost[best] = false`, ""},
	{"power-cycled-by-people-starts-over", "2f", heal + "health.go", `(wished || machine.Restarting(m)) && claimantOf`, `(wished && false) && claimantOf`, "./functions/remediate -run=TestScenarios"},
	{"steps-of-the-check-keep-their-times", "2f", heal + "health.go", ` && claimantOf(m) != c.name()`, ``, "./functions/remediate -run=TestScenarios"},
	{"mended-template-replaces-what-failed-for-ever", "2f", heal + "health.go", ` && !c.outlived(m): // its`, `: // its`, "./functions/remediate -run=TestScenarios"},
	{"failures-end-with-their-template", "2f", heal + "settle.go", ` && !c.another(set) {`, ` {`, "./functions/remediate -run=TestScenarios"},
	{"who-reads-the-set-tells-what-failed-for-ever", "2f", heal + "status.go", `(v.reason == reasonStartup || v.reason == reasonInvalid) && !d.whole`, `v.reason == reasonStartup && !d.whole`, "./functions/remediate -run=TestScenarios"},
	{"set-made-anew-outlives-nothing", "2f", heal + "template.go", `		if s.UID != set {`, `		if false {`, "./functions/remediate -run=TestScenarios"},
	{"first-look-at-a-template-mends-nothing", "2f", heal + "template.go", `		case !known:`, `		case !known && false:`, "./functions/remediate -run=TestScenarios"},
	{"what-was-made-since-the-mend-stays", "2f", heal + "template.go", `m.CreationTimestamp.Time.Before(c.template(owner.UID).At.Time)`, `c.template(owner.UID).At.After(time.Time{})`, "./functions/remediate -run=TestScenarios"},
	{"mend-is-remembered-for-who-starts", "2f", heal + "template.go", `(!known || t.n != nil || t.m.Status.NodeRef != nil)`, `(!known || true)`, "./functions/remediate -run=TestScenarios"},
	{"former-versions-read-the-failures", "G9", heal + "ahead.go", `failure{Count: f.Count, At: at(f.At)}`, `failure{Count: f.Count, At: at(f.At), Of: f.Of}`, "./functions/remediate -run=TestFormerVersionsReadTheRecord"},
	{"wish-that-nobody-carries-out-ends", "2f", heal + "health.go", `cmp.Or(c.startup(), cycledFor)`, `cmp.Or(c.startup(), 1000*cycledFor)`, "./functions/remediate -run=TestScenarios"},
	{"what-runs-though-it-failed-is-not-drained", "2f", heal + "health.go", `v.runs = machine.LostAt(m) != nil && ready(n); v.runs {`, `v.runs = false; v.runs {`, "./functions/remediate -run=TestScenarios"},
	{"what-runs-though-it-failed-is-judged-by-its-node", "2f", heal + "health.go", `ill := c.conditions(m, n); ill.reason != ""`, `ill := c.conditions(m, n); ill.reason == "none"`, "./functions/remediate -run=TestScenarios"},
	{"no-room-holds-nothing-that-is-taken-away", "2f", heal + "vain.go", ` && !t.leaves &&`, ` &&`, "./functions/remediate -run=TestScenarios"},
	{"taken-away-is-what-may-be", "2f", heal + "health.go", `	return may && u.Type == terminating`, `	return (may || true) && u.Type == terminating`, "./functions/remediate -run=TestScenarios"},
	{"taken-away-is-what-terminates", "2f", heal + "health.go", `may && u.Type == terminating && u.Status`, `may && u.Status`, "./functions/remediate -run=TestScenarios"},
	{"no-room-holds-what-is-heard-of", "2f", heal + "vain.go", `t.heard() && c.vain(t)
`, `t.heard() && c.vain(t) && false
`, "./functions/remediate -run=TestScenarios"},
	{"no-room-loses-nothing-with-the-silent", "2f", heal + "vain.go", ` && t.heard() && c.vain(t)
`, ` && c.vain(t)
`, "./functions/remediate -run=TestScenarios"},
	{"room-of-its-own-namespace", "2f", heal + "vain.go", `refused[setID{m.Namespace, set.UID}] = true`, `refused[setID{machine.Namespace, set.UID}] = true`, "./functions/remediate -run=TestScenarios"},
	{"no-room-is-of-now", "2f", heal + "vain.go", ` && machine.Phase(m) != machine.PhaseFailed {`, ` {`, "./functions/remediate -run=TestScenarios"},
	{"no-room-for-who-goes-is-over", "2f", heal + "vain.go", `			m.DeletionTimestamp == nil && machine`, `			machine`, "./functions/remediate -run=TestScenarios"},
	{"next-try-shows-itself-first", "2f", heal + "vain.go", ` || failing && slices`, ` || failing && false && slices`, "./functions/remediate -run=TestScenarios"},
	{"try-that-goes-is-no-answer", "2f", heal + "vain.go", ` || former.m.DeletionTimestamp != nil && former.m.Status.NodeRef == nil)`, `)`, "./functions/remediate -run=TestScenarios"},
	{"try-of-what-worked-tells-nothing", "2f", heal + "vain.go", ` || failing && slices`, ` || (failing || true) && slices`, "./functions/remediate -run=TestScenarios"},
	{"who-waits-in-vain-gives-way", "2f", heal + "vain.go", `		case c.inVain(f, t):`, `		case false:`, "./functions/remediate -run=TestScenarios"},
	{"who-goes-gives-no-way", "2f", heal + "vain.go", `t == nil || !t.sick(c.Now) || c.began`, `t == nil || c.began`, "./functions/remediate -run=TestScenarios"},
	{"who-is-claimed-gives-no-way", "2f", heal + "vain.go", ` || c.began(f, t) || c.binds(f, t):`, ` || c.binds(f, t):`, "./functions/remediate -run=TestScenarios"},
	{"master-gives-no-way", "2f", heal + "vain.go", ` || c.began(f, t) || c.binds(f, t):`, ` || c.began(f, t):`, "./functions/remediate -run=TestScenarios"},
	{"step-that-is-never-begun-gives-way", "2f", heal + "vain.go", `		case c.missed(f, t):`, `		case false:`, "./functions/remediate -run=TestScenarios"},
	{"step-that-is-held-was-not-missed", "2f", heal + "settle.go", ` && c.barred(f, t) == "" &&`, ` &&`, "./functions/remediate -run=TestScenarios"},
	{"step-that-was-held-was-not-missed", "2f", heal + "settle.go", ` && !toldHeld(t) && c.barred`, ` && c.barred`, "./functions/remediate -run=TestScenarios"},
	{"who-flew-goes-behind", "2f", heal + "admit.go", `			return 1
		}
		return 0`, `			return 0
		}
		return 0`, "./functions/remediate -run=TestScenarios"},
	{"what-did-not-help-is-not-begun-anew", "2f", heal + "admit.go", `Step: step, Control`, `Step: 0 * step, Control`, "./functions/remediate -run=TestScenarios"},
	{"of-steps-alike-the-last-was-tried", "2f", heal + "admit.go", `for i, s := range slices.Backward(c.policy.steps) {`, `for i, s := range c.policy.steps {`, "./functions/remediate -run=TestScenarios"},
	{"step-has-its-time-before-the-next", "2f", heal + "admit.go", `		case !c.Now.Before(tried.Add(cmp.Or(s.timeout, releaseAfter))):`, `		case true:`, "./functions/remediate -run=TestScenarios"},
	{"step-that-is-forgotten-goes-on", "2f", heal + "admit.go", `return i, tried`, `return i, c.Now`, "./functions/remediate -run=TestScenarios"},
	{"last-step-that-is-forgotten-goes-on", "2f", heal + "admit.go", `tried.Add(cmp.Or(s.timeout, releaseAfter))`, `tried.Add(s.timeout)`, "./functions/remediate -run=TestScenarios"},
	{"step-of-another-check-does-not-go-on", "2f", heal + "admit.go", `		case by == c.name() && !tried`, `		case by != "" && !tried`, "./functions/remediate -run=TestScenarios"},
	{"step-of-a-clock-ahead-does-not-go-on", "G7", heal + "admit.go", ` && !tried.After(c.Now):`, `:`, "./functions/remediate -run=TestScenarios"},
	{"who-recovers-keeps-its-claim", "2f", heal + "repair.go", `		if free && !d.recovering(m) {`, `		if true {`, "./functions/remediate -run=TestScenarios"},
	{"vanished-do-not-wait-three-by-three", "2f", heal + "admit.go", `	case t.vanished():`, `	case t.vanished() && false:`, "./functions/remediate -run=TestScenarios"},
	{"three-of-what-may-run", "2f", heal + "admit.go", `	case t.vanished():`, `	case t.vanished() || true:`, "./functions/remediate -run=TestScenarios"},
	{"late-drain-asks-everybody", "2e", drain + "handler.go", `if now = e.all(); len(now) == 0 {`, `if now = nil; len(now) == 0 {`, "./functions/drain-node -run=TestScenarios"},
	{"late-drain-without-answers-ends", "2e", drain + "handler.go", `if d.overdue(inVain) {`, `if false {`, "./functions/drain-node -run=TestLateDrain"},
}
