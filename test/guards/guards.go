// SPDX-License-Identifier: Apache-2.0

// Package guards lists what keeps the functions safe, line by line, so that a test can take each of it away.
package guards

// Guard is one thing in the code that a rule of docs/RELIABILITY.md §2 asks for, or §4.
type Guard struct {
	Name  string
	Rule  string // of RELIABILITY §2, or 4: its §4
	File  string
	Text  string // stands in File exactly once
	Gone  string // what stands there without the guard
	Tests string // packages whose tests notice, beside the simulation; empty: that of File
}

const (
	scale     = "functions/scale-machineset/"
	provision = "functions/provision-machine/"
	sweep     = "functions/sweep-instances/"
	drain     = "functions/drain-node/"
	heal      = "functions/remediate/"
	autoscale = "functions/evaluate-autoscale/"
	run       = "shared/runner/"
	words     = "shared/machine/"
)

// All returns every guard.
func All() []Guard {
	var all []Guard
	for _, some := range [][]Guard{port, ledgers, launches, drivers, azure, ends, sweeps, drains, repairs, scalings, moves, inputs, joins, hosts} {
		all = append(all, some...)
	}
	return all
}

// unguarded are the rules that no line could be taken away of, each with the reason.
var unguarded = map[string]string{
	"2b.11": "burning tokens is left out: the sweep finds what surfaces late",
}

var port = []Guard{
	{"version-in-every-patch", "G3", "shared/plan/patch.go", `	meta["resourceVersion"] = before.GetResourceVersion()` + "\n", "", "./shared/cluster/kube ./shared/cluster/memory"},
	{"uid-in-every-delete", "G3", "shared/cluster/kube/apply.go", `Preconditions: &metav1.Preconditions{UID: &uid},`, `Preconditions: &metav1.Preconditions{},`, ""},
	{"version-in-delete", "G3", "shared/cluster/kube/apply.go", `	if a.IfUnchanged {`, `	if false {`, ""},
	{"names-of-events", "G1", "shared/events/events.go", `		if !f.form.MatchString(f.value) {`, `		if false {`, ""},
	{"namespaces-of-events", "G1", "shared/events/events.go", `	if e.Namespace != "" && !slices.Contains(allowed, e.Namespace) {`, `	if false && !slices.Contains(allowed, e.Namespace) {`, ""},
	{"body-limit", "2g", body, `	r.Body = http.MaxBytesReader(w, r.Body, most)` + "\n", "	_, _ = w, most\n", "./shared/events ./functions/dead-letter"},
	{"large-bodies-one-at-a-time", "2g", body, `			return nil, nil, &RetryError{Busy: true, After: time.Second, Err: errors.New("another large question is being read")}` + "\n", "", ""},
	{"unclear-is-delivered-again", "2g", run + "runner.go", `	if inv.unfinished && err == nil && !req.Scan() {`, `	if false {`, ""},
	{"refusals-are-logged-in-short", "4", run + "serve.go", `text[:min(len(text), maxTold)]`, `text`, ""},
	{"questions-have-one-place", "2g", run + "serve.go", `question: make(chan struct{}, 1)}`, `question: make(chan struct{}, maxInvocations)}`, ""},
	{"attributes-said-once", "4", "shared/events/structured.go", `		case said[name]:`, `		case said[name] && false:`, ""},
	{"attributes-in-small-letters", "4", "shared/events/structured.go", `!attributeForm.MatchString(name):`, `name == "":`, ""},
	{"depth-of-events", "4", "shared/events/structured.go", `		if deep > maxDepth {`, `		if deep < 0 {`, ""},
	{"header-limit", "2g", "shared/events/events.go", `n > maxHeader {`, `n < 0 {`, ""},
	{"list-of-errors-is-no-list", "G5", run + "list.go", `		c.Found, c.Err = byUID[l.UID], refusal(err)`, `		c.Found, c.Err = byUID[l.UID], nil`, ""},
	{"failed-find-is-no-absence", "G5", run + "look.go", `		c.Found, c.Err = found, refusal(err)
	}
	if isMachine && !l.Open && m.`, `		c.Found, c.Err = found, nil
	}
	if isMachine && !l.Open && m.`, ""},
	{"inventory-of-errors-is-none", "G5", run + "look.go", `Instances: seen.all, Err: refusal(seen.err)}`, `Instances: seen.all}`, ""},
	{"hidden-is-not-absent", "G5", run + "list.go", `		} else if l.hidden != nil {`, `		} else if false {`, "./functions/provision-machine"},
	{"panic-beside-others", "2g", "shared/beside/beside.go", `			if v := recover(); v != nil {`, `			if v := any(nil); v != nil {`, ""},
	{"panic-of-one-call", "2c", run + "survived.go", `		if v := recover(); v != nil {`, `		if v := any(nil); v != nil {`, "./functions/provision-machine ./functions/sweep-instances"},
	{"panic-proves-nothing", "G5", run + "survived.go", `provider.Errorf(provider.Unknown, "%s: the driver panicked`, `provider.Errorf(provider.Exhausted, "%s: the driver panicked`, ""},
	{"answers-outlast-a-slow-cloud", "G6", run + "look.go", `		if i.waits.took[key] > room {`, `		if key == "" {`, "./functions/provision-machine"},
	{"answers-stand-for-the-same-spec", "G5", run + "wait.go", `		if !told || !l.within(before[l.UID]) {`, `		if !told {`, "./functions/provision-machine"},
	{"only-changes-outlast-a-look", "G5", run + "wait.go", `		c.Later = c.Later || i.unchanged(subjects[l.UID], c.Found)
`, "", "./functions/provision-machine"},
	{"cut-off-is-no-silence", "G6", run + "wait.go", `		case ctx.Err() != nil && (i.rounds > 0 || time.Since(began) < hearFor):`, `		case began.IsZero():`, "./functions/provision-machine"},
	{"cut-off-for-good-is-silence", "G6", run + "turns.go", `	return t.cuts[uid] < mostCuts`, `	return true`, "./functions/provision-machine"},
	{"sweep-keeps-time-to-read-again", "G6", run + "look.go", `		reading = i.reading`, `		reading = 0`, "./functions/sweep-instances"},
	{"unknown-is-no-refusal", "G5", "shared/provider/code.go", `	return c == Invalid ||`, `	return c == Unknown || c == Invalid ||`, "./shared/runner"},
	{"time-for-a-mutation", "G6", run + "apply.go", `		needs = mutationBudget`, `		needs = writeBudget`, ""},
	{"time-for-one-call", "G6", run + "clouds.go", `	callTimeout = 10 * time.Second`, `	callTimeout = 100 * time.Hour`, ""},
	{"scan-keeps-time-for-changes", "G6", run + "wait.go", `	return min(max(left-reading-lookBudget, lookFor), left-writeBudget)`, `	return left`, ""},
	{"cloud-has-lanes-of-its-own", "G6", run + "look.go", `	all := i.lanes(len(visits))`, `	all := i.lanes(1)`, "./functions/provision-machine"},
	{"turn-behind-the-silent", "G6", run + "visit.go", `		single = anyFirst(single, i.order())
`, ``, ""},
	{"silent-is-not-asked-again", "G6", run + "wait.go", `	if why := w.over[call]; why != nil {`, `	if why := w.over[call]; false {`, ""},
	{"gone-is-no-claim", "2b.2", "shared/plan/plan.go", `	if r != Gone {
		return r == Done
	}
`, `	if r == Done || r == Gone {
		return true
	}
`, "./shared/runner"},
	{"one-clock", "G7", run + "observe.go", `skew.Abs() > machine.Skew`, `skew.Abs() > machine.Skew*1000`, ""},
	{"sequence-ends-at-failure", "G4", run + "apply.go", `		if !o.Result.Achieves(a) {
			return outcomes, nil
		}
`, "", ""},
	{"one-event-is-not-waited-for-long", "2c", run + "notes.go", `context.WithTimeout(ctx, wait)`, `context.WithTimeout(ctx, budget)`, "./shared/runner -run=TestWhoeverRecordsNoEvents"},
	{"silent-events-are-asked-once", "2c", run + "notes.go", `		i.deaf.Store(true)`, `		i.deaf.Store(false)`, "./shared/runner -run=TestWhoeverRecordsNoEvents"},
	{"many-states-are-told-later", "2c", run + "notes.go", `!time.Now().Before(end) && `, `end.IsZero() && `, "./shared/runner -run=TestManyStatesAre"},
	{"only-what-was-accepted-is-going", "G5", run + "apply.go", `	if i.deleted.lately(key, i.now, deletedFor) {`, `	if !i.deleted.fresh(key, i.now, deletedFor) {`, "./shared/runner -run=TestOnlyWhatWasAccepted"},
	{"what-was-accepted-is-not-asked-again", "2c", run + "apply.go", `		i.deleted.fresh(key, i.now, deletedFor)
`, "", "./shared/runner -run=TestOnlyWhatWasAccepted"},
	{"many-notes-are-no-square", "2c", run + "notes.go", `	if now.Sub(o.swept).Abs() >= d {`, `	if true {`, "./shared/runner -run=TestOnceOfMany"},
	{"notes-are-forgotten", "2c", run + "notes.go", `		maps.DeleteFunc(o.last, func(`, `		maps.DeleteFunc(map[K]time.Time{}, func(`, "./shared/runner -run=TestOnceOfMany"},
	{"few-accounts-are-kept-open", "2c", run + "clouds.go", `	if len(c.open) < mostOpen {`, `	if true {`, "./shared/runner -run=TestFewAccounts"},
	{"who-is-asked-for-stays-open", "2c", run + "clouds.go", `	o.used = time.Now()
`, "", "./shared/runner -run=TestFewAccounts"},
	{"others-first-each-time", "2c", run + "apply.go", `range anyFirst(all, i.order()) {`, `range all {`, "./shared/runner -run=TestNobodyWaitsBehindThePoisoned"},
	{"longest-waiting-first", "2c", run + "turns.go", `r.last[key(a)].Compare(r.last[key(b)])`, `0 * r.last[key(a)].Compare(r.last[key(b)])`, "./shared/runner -run=TestInstancesThatNoListShowsAreAskedForInTurn"},
	{"time-for-a-request", "G6", run + "runner.go", `	budget = 24 * time.Second`, `	budget = 100 * time.Second`, "./shared/runner -run=TestEveryRequestIsAnswered"},
	{"one-change-of-an-instance", "2c", run + "apply.go", `		if c.mutates && i.mutated[c.of] {`, `		if false && i.mutated[c.of] {`, ""},
	{"fresh-reads-each-round", "G2", run + "observe.go", `		missing := s.Missing(i.Function.Reads(s))
`, `		if i.rounds > 0 && len(i.seen.MachineSets) > 0 {
			old := i.seen
			old.Outcomes = i.outcomes
			s = old
		}
		missing := s.Missing(i.Function.Reads(s))
`, ""},
	{"storage-that-went-back-is-listed-anew", "G2", "shared/cluster/kube/view.go", `	if v.heard = time.Now(); now < v.version {`, `	if v.heard = time.Now(); false {`, ""},
	{"kept-no-longer-than-a-restore", "G2", "shared/cluster/kube/view.go", `	if time.Since(v.heard) >= keptFor {`, `	if false {`, ""},
	{"asked-for-once", "G11", run + "runner.go", `		if o, ok := i.outcomes[a.Key()]; ok {`, `		if o, ok := i.outcomes[a.Key()]; ok && false {`, ""},
}

var ledgers = []Guard{
	{"newer-record-is-left-alone", "G9", words + "record.go", `cmp.Or(newer(text, own), err,`, `cmp.Or(err,`, "./functions/scale-machineset ./shared/machine"},
	{"record-of-another-schema-is-not-read", "G9", words + "record.go", `	if err == nil && *schema == own {`, `	if err == nil {`, "./shared/machine"},
	{"adopted-only-by-the-ledger", "2a.6", scale + "execute.go", `		if !ok || !l.Active.Has(k) {`, `		if !ok {`, ""},
	{"node-of-what-is-gone-only-unchanged", "G3", provision + "terminate.go", `IfUnchanged: true, `, ``, "./functions/provision-machine -run=TestScenarios"},
	{"node-of-what-is-off-only-unchanged", "G3", provision + "restart.go", `IfUnchanged: true, `, ``, "./functions/provision-machine -run=TestScenarios"},
	{"retired-only-unchanged", "G3", scale + "execute.go", `IfUnchanged: true, `, ``, ""},
	{"ledger-of-this-set", "2a.1", scale + "ledger.go", `	case l.SetUID != set.UID:`, `	case false:`, ""},
	{"names-follow-from-the-set", "2a.2", words + "name.go", `sha256.Sum256([]byte(string(uid) + "|" + strconv.Itoa(k)))`, `sha256.Sum256([]byte("|" + strconv.Itoa(k)))`, "./shared/machine ./functions/scale-machineset"},
	{"born-with-a-finalizer", "2a.2", scale + "execute.go", `	if !slices.Contains(m.Finalizers, machine.Finalizer) && !machine.IsPaused(m) { // whoever moves it may have taken that off
		m.Finalizers = append(m.Finalizers, machine.Finalizer)
	}
`, "	m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool { return f == machine.Finalizer })\n", ""},
	{"commit-before-execution", "G4", scale + "handler.go", `			p.Add(commit(set, next))
			return
		}
		work`, `			p.Add(commit(set, next))
			p.Add(execute(s, set, next.ledger, owned)...)
			return
		}
		work`, ""},
	{"all-machines-were-read", "2a.3", scale + "handler.go", ` && complete(s, set) {`, ` {`, ""},
	{"never-created-goes-first", "2a.3", scale + "shrink.go", `	case c.machine == nil:
		return neverCreated`, `	case c.machine == nil:
		return doesNotWork`, ""},
	{"members-on-their-way-out-leave", "2a.3", scale + "ledger.go", `		case x.DeletionTimestamp != nil:
			why.free(k, x.Name+" is being deleted")
			l = countFailure(now, set, l, x)
`, "", ""},
	{"absent-is-not-deleted", "2a.4", scale + "ledger.go", `x == nil && !adopted:`, `x == nil && !adopted && false:`, ""},
	{"retired-stays-retired", "2a.4", scale + "ledger.go", `	for ; len(l.Active) < want; l.Next++ {
`, `	for l.Next = 0; len(l.Active) < want; l.Next++ {
		if l.Active.Has(l.Next) {
			continue
		}
`, ""},
	{"gate-of-the-ledger", "2a.5", provision + "launch.go", `	if why := l.forbidden(); why != "" {`, `	if why := l.forbidden(); why != "" && false {`, ""},
	{"empty-selector-is-nobodys", "2a.6", words + "authority.go", `	case selector.Empty():`, `	case false:`, "./functions/scale-machineset -run=TestScenarios"},
	{"adopted-by-uid", "2a.6", scale + "members.go", `		return m.byUID[adopted.UID]`, `		return m.byName[adopted.Name]`, ""},
	{"adopted-in-its-namespace", "2a.6", words + "authority.go", `return m.Namespace == set.Namespace && m.D`, `return m.D`, "./functions/scale-machineset -run=TestScenarios"},
	{"members-in-its-namespace", "2a.6", scale + "members.go", `controller{m.Namespace, owner.UID}`, `controller{machine.Namespace, owner.UID}`, ""},
	{"rebuilt-by-their-names", "2a.7", scale + "ledger.go", `	ordinalOf = l.Finder(set.Name)
	var strangers`, `	var strangers`, "./functions/scale-machineset -run=TestRebuilt"},
	{"rebuild-creates-nothing", "2a.7", scale + "handler.go", `	if ledger.Rebuilt != s.Invocation {`, `	if ledger.Rebuilt != "nobody" {`, ""},
	{"ledger-from-before-an-adoption", "2a.7", scale + "members.go", `!ok || !l.Active.Has(k) && l.MadeAnew(x, k) {`, `!ok || k < 0 {`, ""},
	{"retired-by-the-ledger-read-again", "2a.1", scale + "reads.go", ` || m.DeletionTimestamp == nil && l.Retired(k)`, ``, "./test/sim -run=TestMachineThatWasAdoptedAnewStays"},
	{"older-list-decides-nothing", "2a.1", scale + "handler.go", `if s.Changed(set) { //`, `if false { //`, "./functions/scale-machineset -run=Meanwhile|ByAnOlderList"},
	{"gone-again-is-not-refused", "2a.4", scale + "execute.go", `		case tried && o.Result == plan.Done && s`, `		case false && s`, "./functions/scale-machineset -run=TestMachineThatIsGone"},
	{"gone-again-was-made", "2a.4", scale + "execute.go", `			created++
			continue
		case tried && o.Result == plan.Exists`, `			continue
		case tried && o.Result == plan.Exists`, "./functions/scale-machineset -run=TestMachineThatIsGone"},
	{"free-again-is-not-taken", "2a.2", scale + "execute.go", `plan.Exists && s.Machine(set.Namespace, a.Object.GetName()) == nil:`, `plan.Exists && false:`, ""},
	{"next-of-its-host-keeps-its-node", "2b.9", provision + "terminate.go", `		if l.passedOn(n) {`, `		if false {`, ""},
	{"ready-node-may-be-anothers", "2b.9", provision + "reads.go", ` || leaving(l.m) && machine.NodeReady(n))`, `)`, ""},
	{"registered-before-it-is-adopted", "2a.6", scale + "ledger.go", `	l = register(set, l, m, &why)`, ``, ""},
	{"adopted-by-a-set-that-is-there", "2a.6", scale + "reads.go", `		return ok && l.Active.Has(k)`, `		return false && ok && k > 0`, "./test/sim -run=TestMachinesOfASetThatIsGoneStayFree"},
	{"lent-ordinal-is-nobodys-by-name", "2a.6", words + "ledger.go", `maxLabelled) && !l.lent(k) &&`, `maxLabelled) &&`, "./functions/scale-machineset"},
	{"nobody-is-made-who-goes-first", "2a.3", scale + "execute.go", `	if len(l.Active)-len(outOfReach(s, set, l, m)) > wanted(set, l) {`, `	if false {`, ""},
	{"paused-set-is-left-alone", "2a.3", scale + "handler.go", `c.Status == corev1.ConditionTrue {`, `c.Status == "never" && corev1.ConditionTrue != "" {`, ""},
	{"slow-start", "2a.4", scale + "execute.go", `len(missing), created+1, max`, `len(missing), max`, ""},
	{"twenty-creations", "2a.4", scale + "execute.go", `const maxCreates = 20`, `const maxCreates = 500`, ""},
	{"ledger-never-goes-back", "2a.7", scale + "ledger.go", `	case beyond(l, set, m.owned):`, `	case false:`, ""},
	{"missing-ledger-is-rebuilt", "2a.7", scale + "ledger.go", `	if !ok && len(m.owned)+len(m.released) == 0 {`, `	if !ok {`, ""},
	{"pause-from-the-future-is-over", "2a.8", words + "ahead.go", `!TooFar(l.NextCreateAt.Time, now, LongestPause) {`, `true {`, "./functions/scale-machineset"},
	{"pause-after-failures", "2a.8", scale + "ledger.go", `	if len(l.Active) >= want || l.NextCreateAt != nil && now.Before(l.NextCreateAt.Time) {`, `	if len(l.Active) >= want {`, ""},
	{"victims-go-first", "2a.9", scale + "shrink.go", `	case c.victim:
		return victim
`, "", ""},
	{"deleted-set-does-nothing", "2a.10", scale + "handler.go", `set.DeletionTimestamp == nil && `, ``, ""},
	{"names-that-are-taken-are-passed-over", "2a.2", scale + "ledger.go", `		taken[name] = true
`, "		_ = name\n", ""},
	{"nobody-goes-for-what-no-set-can-have", "2a.3", scale + "ledger.go", `	if unbounded(set) != "" { // nobody`, `	if false { // nobody`, ""},
	{"nobody-goes-while-others-wait-for-room", "2a.6", scale + "ledger.go", `	compared := len(refused) == len(m.orphans) && len(waiting) == 0`, `	compared := len(refused) == len(m.orphans)`, ""},
	{"rebuilt-behind-every-machine", "2a.7", scale + "ledger.go", `slices.Concat(m.owned, m.released, m.orphans)`, `m.owned`, ""},
	{"who-ran-is-no-failure", "2a.8", scale + "ledger.go", `	if x.Status.NodeRef != nil || x.Status.E`, `	if x.Status.E`, ""},
}

var launches = []Guard{
	{"finalizer-first", "2b.1", provision + "handler.go", `	case !machine.HasFinalizer(m):
		return l.update(withFinalizer(m), "finalizer before anything else")
`, "", ""},
	{"deleted-gets-nothing", "2b.1", provision + "handler.go", `	case m.DeletionTimestamp != nil:
		return l.terminate(err)
`, "", ""},
	{"others-claims-hold", "2b.2", provision + "reads.go", `	return i.ClaimedByOther(s.Invocation, s.Now) || backsOff(`, `	return backsOff(`, ""},
	{"paused-machine-is-left-alone", "2b.1", provision + "handler.go", `	case machine.IsPaused(m):`, `	case false:`, ""},
	{"claim-from-the-future-is-bounded", "G6", words + "ahead.go", `	if far("until", i.Until, LongestClaim) {`, `	if false {`, "./shared/machine ./functions/provision-machine"},
	{"backoff-from-the-future-is-over", "G7", words + "ahead.go", `	if far("notBefore", i.NotBefore, LongestPause) {`, `	if false {`, "./shared/machine ./functions/provision-machine"},
	{"ledger-of-the-owning-set", "2a.5", provision + "launch.go", `	if ledger.SetUID != set.UID {`, `	if false {`, ""},
	{"unknown-horizon-is-not-over", "2b.4", provision + "launch.go", `l.cloud.Account == "" || l.Now`, `l.Now`, ""},
	{"who-is-asked-too-often-says-nothing-of-the-token", "2b.4", provision + "launch.go", `o.Code == provider.Throttled || `, ``, "./functions/provision-machine -run=TestScenarios"},
	{"who-is-denied-learns-nothing-of-the-token", "2b.4", provision + "launch.go", `o.Code == provider.Denied ||`, `false ||`, "./functions/provision-machine -run=TestScenarios"},
	{"latest-call-without-an-answer", "2b.4", words + "intent.go", `	if i.Outcome == "" && !i.S`, `	if i.Outcome == "" && i.Unanswered == nil && !i.S`, "./shared/machine"},
	{"edit-ends-no-attempt-without-an-answer", "2b.4", words + "intent.go", ` && !i.Unresolved() && m.Status.NodeRef == nil`, ` && m.Status.NodeRef == nil`, "./shared/machine"},
	{"find-before-create", "2b.3", provision + "reads.go", `	fresh := intent == nil && young(s, m)`, `	fresh := true`, ""},
	{"ahead-is-not-young", "G7", provision + "reads.go", `	return s.Now.Sub(m.CreationTimestamp.Time).Abs() < Young`, `	return s.Now.Sub(m.CreationTimestamp.Time) < Young`, ""},
	{"error-is-no-absence", "G5", provision + "launch.go", `	case l.cloud.Err != nil:
		return l.unreachable()
`, "", ""},
	{"tags-in-the-same-call", "2b.6", "shared/provider/aws/run.go", `			{ResourceType: types.ResourceTypeInstance, Tags: tags}, {`, `			{`, ""},
	{"leftovers-of-the-failed-go", "2b.8", provision + "handler.go", `		return l.failed()`, `		return l.markUnknown()`, ""},
	{"what-runs-is-no-leftover", "2e", provision + "leftover.go", `	drained := l.in == nil && l.onNetwork() == nil && l.m.Status.NodeRef == nil`, `	drained := true`, ""},
	{"lost-answer-of-a-failed-machine", "2b.8", provision + "leftover.go", `	surfacing := l.Now.Before(l.surfaces())`, `	surfacing := false`, ""},
	{"leftovers-carry-their-token", "2b.8", provision + "leftover.go", `Token: i.Token, Attempt: true,`, `Token: i.Token,`, ""},
	{"leftovers-go-before-the-next-attempt", "2b.8", provision + "launch.go", `	case l.leftover():
		return l.clear()
`, "", "./functions/provision-machine"},
	{"leftovers-answer-for-themselves", "2b.9", "shared/plan/action.go", `	if a.Ref.Attempt {`, `	if false {`, "./functions/provision-machine"},
	{"leftovers-are-told-of-before-the-end", "2b.9", provision + "handler.go", `	case l.cleared(): //`, `	case false: //`, ""},
	{"progress-survives-a-pause", "2b.8", provision + "launch.go", `len(i.Progress) > 0 && passes(o, i.Failures+1) {`, `false {`, ""},
	{"progress-of-what-failed-is-kept", "2b.8", run + "apply.go", `	o.Instance.Progress = instance.Progress
`, ``, "./shared/runner"},
	{"horizon-blocks-the-retry", "2b.4", provision + "launch.go", `	case l.Now.Before(i.SurfacesUntil(l.cloud.Horizon)):
		return l.await() // without tokens a second call could make a second instance
`, "", ""},
	{"same-token-for-a-lost-answer", "2b.4", provision + "launch.go", `	case i.Outcome == machine.OutcomePartial, l.cloud.Tokens:
		next = *i
`, `	case i.Outcome == machine.OutcomePartial:
		next = *i
	case l.cloud.Tokens:
		next = machine.NewIntent(l.m, i.Attempt+1, l.cloud.Account, l.cloud.Resolved)
`, ""},
	{"no-answer-stays-unresolved", "2b.4", provision + "launch.go", `l.withIntent(i.Released("", again), "no`, `l.withIntent(i.Released(machine.OutcomeRefused, again), "no`, ""},
	{"claim-before-the-call", "2b.5", provision + "launch.go", `			claim,
			plan.CreateInstance{Account: next.Account, Cluster: l.cloud.Cluster, Ref: ref, Request: next.Request, Why: why},
`, `			plan.CreateInstance{Account: next.Account, Cluster: l.cloud.Cluster, Ref: ref, Request: next.Request, Why: why},
			claim,
`, ""},
	{"account-is-remembered-first", "2b.10", provision + "launch.go", `	if !l.fresh.remembered(l) {
		return plan.Sequence{} // in the next round
	}
`, "", ""},
	{"account-of-what-is-found-is-remembered", "2b.10", provision + "handler.go", `	if l.rediscovered() && !fresh.remembered(l) {`, `	if false {`, ""},
	{"account-of-a-lost-answer-is-not-empty", "2b.10", provision + "terminate.go", `	if l.mayComeLate() && !l.fresh.remembered(l) {`, `	if false {`, ""},
	{"another-account-is-left-alone", "2b.7", provision + "handler.go", `	if l.elsewhere() {`, `	if false {`, ""},
	{"another-owner-is-left-alone", "2b.7", provision + "elsewhere.go", `	return l.abroad() || l`, `	return l`, ""},
	{"provider-id-is-written-once", "2b.7", provision + "follow.go", `		case recorded && machine.SameID(in.ProviderID, id) && (in.UID == "" || in.UID == machine.InstanceUID(l.m)):
			return in
		case recorded && in.Sole && in.UID == machine.InstanceUID(l.m):
			renamed = in
		case !recorded:
			mine = append(mine, in)
		}
	}
	if recorded {
		return renamed
	}
`, `		default:
			mine = append(mine, in)
		}
	}
	_, _, _ = renamed, id, recorded
`, ""},
	{"what-is-being-deleted-is-no-instance", "2b.7", provision + "follow.go", `		case in.Child, in.State == provider.StateDeleting, !rec`, `		case in.Child, !rec`, ""},
	{"sole-instance-is-followed", "2b.7", provision + "follow.go", `		case recorded && in.Sole && in.UID == machine.InstanceUID(l.m):`, `		case false:`, ""},
	{"twin-goes-by-its-id", "2b.7", provision + "twin.go", `		a.Ref = provider.Ref{Name: l.m.Name, ID: in.ID}`, `		a.Ref = provider.Ref{UID: l.m.UID, Name: l.m.Name, ID: in.ID}`, ""},
	{"smallest-only-after-the-horizon", "2b.7", provision + "follow.go", `	if len(mine) > 1 && l.intent.Unresolved()`, `	if false && l.intent.Unresolved()`, ""},
	{"node-that-runs-is-not-missing", "G5", provision + "follow.go", `alive != "" && !l.Now.Before(due) {`, `alive != "" && false {`, ""},
	{"taken-over-from-nobody-alive", "2b.7", provision + "former.go", `		if o.UID == in.UID || `, `		if `, ""},
	{"copied-cluster-takes-over-nothing", "2b.7", provision + "former.go", `	if !l.hasNode(*in) {`, `	if false {`, ""},
	{"copied-record-names-no-tag", "2b.9", words + "intent.go", `i.Tag != "" && i.Made(m) {`, `i.Tag != "" {`, "./functions/provision-machine"},
	{"instance-keeps-its-cluster-id", "2b.3", words + "intent.go", `			return i.Cluster, true`, `			return label, false`, "./shared/runner"},
	{"cluster-id-of-the-time", "2b.3", "shared/snapshot/snapshot.go", `		if id, _ := s.Records.InstanceCluster(m); id != "" {`, `		if id, _ := s.Records.InstanceCluster(m); id == "" {`, "./shared/runner"},
	{"claim-says-the-cluster-id", "2b.5", provision + "launch.go", `		next = machine.NewIntent(l.m, 1, l.cloud.Account, l.cloud.Resolved).In(l.m, l.cloud.Cluster)`, `		next = machine.NewIntent(l.m, 1, l.cloud.Account, l.cloud.Resolved)`, ""},
	{"name-of-an-instance-without-a-tag", "2b.7", run + "list.go", ` && (in.UID != "" || in.Name == m.Name) {`, ` {`, ""},
	{"not-asked-is-no-absence", "G5", provision + "handler.go", `	case l.cloud.Later: // its turn comes`, `	case false:`, ""},
	{"missing-from-the-future-is-of-now", "G7", provision + "follow.go", `missed(l.m) && !machine.TooFar(c.LastTransitionTime.Time, l.Now, 0) {`, `missed(l.m) {`, ""},
	{"ended-is-believed-at-a-second-reading", "2b.7", provision + "follow.go", `		return since.Add(believed)
`, "		return since\n", ""},
	{"missing-is-believed-late", "2b.7", provision + "follow.go", `	return since.Add(max(l.cloud.Horizon, believed))`, `	return since`, ""},
}

var sweeps = []Guard{
	{"silent-node-keeps-no-instance", "2b.10", sweep + "find.go", ` && machine.NodeReady(n) {`, ` {`, ""},
	{"ghost-names-its-instance", "2b.10", sweep + "ghosts.go", ` && n.Spec.ProviderID != "" && `, ` && `, ""},
	{"ghost-has-no-machine", "2b.10", sweep + "ghosts.go", ` && s.Machine(namespace, name) == nil && `, ` && name != "" && `, ""},
	{"what-goes-is-no-find", "2b.10", sweep + "find.go", `why == "" || in.Going() {`, `why == "" {`, ""},
	{"few-nodes-at-a-time", "G8", sweep + "ghosts.go", `asked > maxDeletes {`, `asked > maxDeletes*1000 {`, ""},
	{"each-sweep-has-other-nodes-first", "2b.10", sweep + "ghosts.go", `cmp.Compare(w.turn(ghostKey(a)), w.turn(ghostKey(b)))`, `cmp.Compare(ghostKey(a), ghostKey(b))`, ""},
	{"what-is-only-told-of-gives-way", "2b.10", sweep + "remember.go", `			x.rank = rankForeign
		}
		all = append(all, x)
	}
	return all
`, `		}
		all = append(all, x)
	}
	return all
`, ""},
	{"ghost-only-unchanged", "G3", sweep + "ghosts.go", `IfUnchanged: true, `, ``, ""},
	{"left-where-no-instance-can-be", "2b.10", sweep + "find.go", ` && machine.OtherRegion(account, i.Account)`, ` && account != i.Account`, ""},
	{"claim-goes-with-its-machine", "2b.10", sweep + "find.go", `in.Child && !in.Sole && `, `in.Child && `, ""},
	{"left-once-the-instance-is-made", "2b.10", sweep + "find.go", `i.Made(m) && machine.ProviderID(m) != "" && `, `i != nil && `, ""},
	{"left-by-an-attempt-that-is-over", "2b.10", sweep + "find.go", ` && i.Own(m) && i.Token != in.Token`, ` && i.Own(m)`, ""},
	{"left-is-no-instance", "2b.10", sweep + "find.go", `in.UID != m.UID || !in.Child || in.Sole`, `in.UID != m.UID || in.Sole`, "./functions/sweep-instances -run=TestLeft"},
	{"left-is-no-claim", "2b.10", sweep + "find.go", `!in.Child || in.Sole || in`, `!in.Child || in`, "./functions/sweep-instances -run=TestLeft"},
	{"ghost-waits-for-every-cloud", "G3", sweep + "ghosts.go", `max(most, a.Horizon)`, `a.Horizon`, "./functions/sweep-instances -run=TestNodesWait"},
	{"account-that-leads-to-another-stays", "2b.10", sweep + "accounts.go", `w.Now) && !needed[key] && `, `w.Now) && `, "./functions/sweep-instances -run=TestAccountThat"},
	{"left-goes-by-its-own-id", "2b.10", sweep + "handler.go", ` && !f.former {`, ` {`, ""},
	{"left-is-no-lost-machine", "2b.10", sweep + "find.go", `!f.foreign && !f.former {`, `!f.foreign {`, ""},
	{"two-sightings", "2b.10", sweep + "find.go", `	return known && old && !w.Now.Before(since.Add(horizon))`, `	return since.IsZero() || known || old`, ""},
	{"old-enough", "2b.10", sweep + "find.go", `w.Now.After(created.Add(horizon)) || `, `true || `, ""},
	{"sighting-from-the-future-is-of-now", "G7", sweep + "ahead.go", `		s.Sightings[key] = machine.Past(since, now)`, `		s.Sightings[key] = since`, ""},
	{"emptiness-from-the-future-is-of-now", "G7", sweep + "ahead.go", `new(machine.Past(*a.EmptySince, now))`, `new(*a.EmptySince)`, ""},
	{"last-look-at-machines", "2b.10", sweep + "accounts.go", `		sc.Objects = append(sc.Objects, lastLook)
`, "", "./test/sim -run=TestWhatComesWhileTheCloudAnswersKeepsItsInstance"},
	{"last-look-at-nodes", "2b.10", sweep + "accounts.go", `		sc.Objects = append(sc.Objects, lastNodes)
`, "", "./test/sim -run=TestWhatComesWhileTheCloudAnswersKeepsItsInstance"},
	{"many-are-only-told-of", "2b.10", sweep + "find.go", `	if len(held) <= max(3, listed/10) {`, `	if true {`, ""},
	{"ready-node-keeps-its-instance", "2b.10", sweep + "handler.go", `		case node != "":`, `		case node == "nowhere":`, ""},
	{"another-recorded-instance", "2b.10", sweep + "find.go", `	case in.ProviderID != "" && machine.ProviderID(m) != "" && !in.Sole:
		return fmt.Sprintf("machine %s records %s", m.Name, machine.ProviderID(m))
`, "", ""},
	{"sole-instance-is-owned", "2b.10", sweep + "find.go", `machine.ProviderID(m) != "" && !in.Sole:`, `machine.ProviderID(m) != "":`, ""},
	{"instance-of-a-machine-that-shows-no-other", "2b.10", sweep + "find.go", `	case o.alone(in):`, `	case false:`, ""},
	{"ready-node-of-the-machine-keeps-its-instance", "2b.10", sweep + "find.go", `former := slices.Contains(owners, n.Annotations[machine.AnnotationMachine]) &&`, `former := false && slices.Contains(owners, n.Annotations[machine.AnnotationMachine]) &&`, ""},
	{"kept-instance-of-the-same-tag", "2b.10", sweep + "handler.go", `	if !f.shared && `, `	if `, ""},
	{"few-at-a-time", "G8", sweep + "handler.go", `len(deletes) < maxDeletes && `, `len(deletes) < maxDeletes*1000 && `, ""},
	{"each-sweep-has-others-first", "2b.10", sweep + "handler.go", `w.Now.Truncate(sweepEvery).Unix()`, `0`, ""},
	{"left-comes-after-instances", "2b.10", sweep + "handler.go", `		if a.former == b.former {`, `		if true {`, ""},
	{"left-has-a-place", "2b.10", sweep + "handler.go", `i >= maxDeletes {`, `i >= maxDeletes*1000 {`, ""},
	{"unlisted-account-has-no-finds", "G5", sweep + "find.go", `		if account.Err != nil {
			continue
		}
`, "", ""},
	{"account-that-its-spec-leads-to", "2b.10", run + "look.go", `	if a.Key() != machine.SweptOf(q.Key, q.ClusterID) {`, `	if false {`, ""},
	{"namespace-that-is-not-served", "2b.10", sweep + "handler.go", `case w.veiled(f.account):`, `case false:`, ""},
	{"same-account-of-that-namespace", "2b.10", sweep + "accounts.go", `mine == "" || theirs == "" || machine.SameOwner(mine, theirs)`, `mine == theirs && key == account`, ""},
	{"nodes-of-that-namespace", "2b.10", sweep + "ghosts.go", `= s.Serves(a.Namespace)`, `= true`, ""},
	{"linked-node-is-no-ghost", "2b.10", sweep + "ghosts.go", ` && !linked[n.UID]`, ` && (linked == nil || true)`, ""},
	{"intent-nobody-can-read-keeps-accounts", "2b.10", sweep + "accounts.go", `		return err != nil || intent`, `		return err == nil && intent`, ""},
	{"machine-without-a-spec-keeps-accounts", "2b.10", sweep + "accounts.go", `err != nil || intent != nil && m.Spec.ProviderSpec.Value == nil`, `err != nil || intent != nil && false`, ""},
	{"foreign-instances-are-left-alone", "2b.10", sweep + "find.go", `foreign: in.UID == "" || doubt != ""})`, `foreign: doubt != ""})`, ""},
}

var drains = []Guard{
	{"one-of-the-control-plane", "2e", drain + "controlplane.go", `	if !machine.IsControlPlane(d.n) {`, `	if true {`, ""},
	{"slot-of-that-very-machine", "2e", drain + "controlplane.go", `holder != nil && holder.UID == held.UID`, `holder != nil`, ""},
	{"removal-of-the-empty-evicts-nobody", "2e", drain + "reads.go", `	return r, ok && r.Drain && `, `	return r, ok && `, ""},
	{"slot-names-its-holder", "2e", drain + "controlplane.go", `	if err == nil && (held.Namespace == "" || held.Name == "" || held.UID == "") {`, `	if false {`, ""},
	{"broken-slot-lets-nobody-go", "2e", drain + "controlplane.go", `	case err != nil:
		return d.barred(`, `	case err != nil && false:
		return d.barred(`, ""},
	{"queue-is-no-part-of-the-drain", "2e", drain + "handler.go", ` && d.waited(have) && c.Reason != have.Reason {`, ` && false {`, ""},
	{"limit-begins-with-a-later-turn", "2e", drain + "limit.go", ` || have.Reason == reasonAgain && d.later`, ``, ""},
	{"queue-of-a-later-node-is-no-new-drain", "2e", drain + "controlplane.go", `	if d.later {`, `	if false {`, ""},
	{"scan-ends-the-drain-of-a-silent-node", "2e", drain + "handler.go", `	if !besideRead(d.Snapshot, d.m, d.n) {`, `	if false {`, ""},
	{"every-node-of-the-instance-is-emptied", "2e", drain + "handler.go", `	if len(d.others) > 0 {`, `	if false {`, ""},
	{"nodes-beside-a-silent-one-are-read", "2e", drain + "reads.go", `		ask = append(ask, beside(s, m, n)...)
`, "", ""},
	{"node-of-a-copy-is-not-drained", "2e", drain + "reads.go", ` && machine.SameInstance(m, other) && !machine.ClaimedByAnother(m, other, s.Machines) {`, ` && machine.SameInstance(m, other) {`, ""},
	{"volumes-are-waited-for", "2e", drain + "handler.go", `	if volumes := strings.Join(attached(d.Snapshot, d.n, e.staying), ", "); volumes != "" {`, `	if volumes := strings.Join(attached(d.Snapshot, d.n, e.staying), ", "); volumes == "never" {`, ""},
	{"pods-are-waited-for", "2e", drain + "handler.go", `	if progress := e.progress(); progress != "" {`, `	if progress := e.progress(); progress == "never" {`, ""},
	{"blocked-pods-block", "2e", drain + "handler.go", `	if of, words := e.obstacle(); of != "" {`, `	if of, words := e.obstacle(); of == "never" {`, ""},
	{"who-drains-is-not-in-the-queue", "2e", drain + "controlplane.go", ` && c.Reason == reasonQueued`, ``, ""},
	{"limit-is-more-than-nothing", "2e", drain + "limit.go", `	if err == nil && limit <= 0 {`, `	if false {`, ""},
	{"second-of-the-unreachable", "2e", drain + "evict.go", `s.Now.Before(secondOf(pod)) {`, `s.Now.Before(secondOf(pod).Add(-time.Hour)) {`, ""},
	{"grace-of-a-pod-is-its-own", "2e", drain + "evict.go", ` && *own > *most:`, `:`, ""},
	{"budget-of-its-namespace", "2e", drain + "evict.go", `err == nil && b.Namespace == p.Namespace && sel`, `err == nil && sel`, ""},
	{"pod-that-never-ran-goes", "2e", drain + "evict.go", `a.Pod.Status.Phase != corev1.PodPending && len`, `len`, ""},
	{"one-drain-of-a-node", "2e", drain + "handler.go", `		if n != nil && draining[n] {`, `		if false {`, ""},
	{"drain-before-a-removal", "2e", drain + "handler.go", `ok && !deleted {`, `ok && (true || deleted) {`, ""},
	{"hooks-before-the-drain", "2e", drain + "handler.go", `	case len(d.m.Spec.LifecycleHooks.PreDrain) > 0:`, `	case false:`, ""},
	{"cordon-before-evictions", "2e", drain + "handler.go", `	if !closed(d.n) {
		return d.cordon()
	}
`, "", ""},
	{"ten-evictions-at-a-time", "2e", drain + "evict.go", `	maxEvictions = 10`, `	maxEvictions = 1000`, ""},
	{"paused-machine-is-not-drained", "2e", drain + "reads.go", `machine.IsPaused(m), `, ``, ""},
	{"drain-from-the-future-begins-now", "G7", drain + "limit.go", ` && !machine.TooFar(have.LastTransitionTime.Time, d.Now, 0) {`, ` {`, ""},
	{"uid-in-every-eviction", "2e", "shared/cluster/kube/apply.go", `deleteOptions(a.Pod.UID)`, `&metav1.DeleteOptions{}`, ""},
	{"late-node-is-drained", "2e", drain + "reads.go", `			nodeless = append(nodeless, m)
`, "", ""},
	{"drained-of-this-node", "2e", words + "condition.go", `	case ReasonNoNode:
		return ref == nil
`, "", "./functions/provision-machine ./shared/machine ./functions/drain-node"},
}
