// SPDX-License-Identifier: Apache-2.0

package guards

// ends let a Machine go with all that was made for it, and with nothing else (RELIABILITY 2b.9, 2e).
var ends = []Guard{
	{"drained-first", "2e", provision + "terminate.go", `	case !machine.Drained(l.m):
		return plan.Sequence{}
`, "", ""},
	{"hooks-before-termination", "2e", provision + "terminate.go", `	case len(l.m.Spec.LifecycleHooks.PreTerminate) > 0:
		return l.status(l.m.DeepCopy(), machine.PhaseDeleting, "hooks before termination")
`, "", ""},
	{"claim-holds-the-finalizer", "2b.9", provision + "terminate.go", `	case l.intent.ClaimedByOther(l.Invocation, l.Now):
		return plan.Sequence{}
`, "", ""},
	{"cloud-confirms-first", "2b.9", provision + "terminate.go", `	case !l.gone():
		return l.remove()
`, "", ""},
	{"only-gone-is-gone", "2b.9", provision + "terminate.go", `	return tried && o.Result == plan.Gone`, `	return tried && o.Result < 100`, ""},
	{"horizon-holds-the-finalizer", "2b.9", provision + "terminate.go", `	if until := l.surfaces(); l.confirmed().Before(until) {`, `	if until := l.surfaces(); false && l.confirmed().Before(until) {`, ""},
	{"fresh-instance-may-be-there", "2b.9", provision + "terminate.go", `, l.intent.StartedAt.Time`, `, time.Time{}`, "./functions/provision-machine"},
	{"fresh-instance-that-ec2-does-not-know", "2b.9", "shared/provider/aws/remove.go", `unseen && fresh(r) {`, `unseen && false {`, ""},
	{"unseen-is-not-removed", "2b.9", provision + "terminate.go", `	case !l.gone() && l.unseen(): // `, `	case false: // `, ""},
	{"answer-of-after-the-horizon", "2b.9", provision + "terminate.go", `l.Outcome(l.removal()); tried && o.Asked.Before(l.Now) {`, `l.Outcome(l.removal()); tried && o.Asked.Before(l.Now) && false {`, ""},
	{"answer-of-before-a-clock-was-set", "2b.9", provision + "terminate.go", `l.Outcome(l.removal()); tried && o.Asked.Before(l.Now) {`, `l.Outcome(l.removal()); tried {`, ""},
	{"horizon-has-to-be-known", "2b.9", provision + "terminate.go", `	if l.intent.Unresolved() && l.cloud.Horizon == 0 && l.cloud.Err != nil {`, `	if false {`, ""},
	{"unreadable-intent-holds-the-finalizer", "2b.9", provision + "terminate.go", `	case unreadable != nil:`, `	case false:`, ""},
	{"foreign-ports-stay", "2b.9", "shared/provider/openstack/things.go", `	return slices.DeleteFunc(all, func(p port) bool { return !carries(p.Tags, tags) }), err`, `	return all, err`, ""},
	{"foreign-volumes-stay", "2b.9", "shared/provider/openstack/things.go", `			if v.Metadata[name] != value {`, `			if v.Metadata[name] != value && false {`, ""},
	{"list-that-is-not-there-knows-no-type", "G5", run + "clouds.go", `	if provider.CodeOf(err) == provider.NotFound {`, `	if false {`, ""},
	{"list-without-hosts-shrinks-no-set", "G5", provision + "stock.go", `machine.ProviderID(m) != "" && m.DeletionTimestamp == nil || `, ``, ""},
	{"copy-is-no-instance", "2b.9", "shared/provider/vsphere/clones.go", `(m.InstanceUUID != m.Mark.UID || m.Template)`, `m.Mark.UID == "nobody"`, ""},
	{"foreign-disk-of-a-snapshot-stays", "2b.9", "shared/provider/vsphere/remove.go", `	if err := captured(ctx, c, m, home); err != nil {
		return err
	}
`, "", ""},
	{"list-that-is-not-found-is-no-list", "G5", "shared/provider/openstack/rest.go", `	case provider.CodeOf(err) == provider.NotFound: // a list`, `	case false: // a list`, ""},
	{"no-content-is-no-absence", "G5", "shared/provider/aws/client.go", `res.StatusCode/100 == 2 && `, `res.StatusCode == http.StatusOK && `, ""},
	{"message-of-a-gateway-proves-nothing", "G5", "shared/provider/openstack/errors.go", ` && (outer["title"] != nil || outer["code"] != nil)`, ``, ""},
	{"foreign-attachments-stay", "2b.9", "shared/provider/openstack/detach.go", ` || a.Volume != v.ID`, ``, ""},
	{"volumes-may-come-yet", "2b.8", "shared/provider/openstack/session.go", ` || s.made != nil && s.made.volume == nil && age >= noVolumesFor`, ``, ""},
	{"services-may-move", "G10", "shared/provider/openstack/session.go", ` || s.doubted && age >= doubtedFor`, ``, ""},
	{"nobody-waits-for-anothers-names", "G6", "shared/provider/aws/domain.go", `	case <-ctx.Done():
		return nil, fmt.Errorf("domain names of %s: %w", vpc, ctx.Err())
`, "", ""},
	{"balancer-that-is-gone-holds-nobody", "G5", "shared/provider/aws/balancer.go", `		if provider.CodeOf(err) == provider.NotFound {
			continue
		}
`, "", ""},
	{"silent-token-service-is-there", "G5", "shared/provider/aws/identity.go", `c.endpoint != nil && errors.Is(err, errNoTokens) {`, `c.endpoint != nil && (err != nil || errors.Is(err, errNoTokens)) {`, ""},
	{"balancer-that-is-gone-is-no-instance", "G5", "shared/provider/aws/aws.go", `provider.CodeOf(err) == provider.NotFound { // said`, `false { // said`, ""},
	{"what-was-taken-over-leaves-its-targets", "2b.9", "shared/provider/aws/tag.go", `	maps.Copy(all, left(s))
`, ``, "./shared/provider/aws -run=TestInstanceThatWasTaken"},
	{"name-of-no-balancer-holds-no-instance", "2b.9", "shared/provider/aws/balancer.go", ` && balancerName.MatchString(b.Name) {`, ` {`, "./shared/provider/aws -run=TestInstanceThatWasTaken"},
	{"rate-of-volumes-that-have-none", "2b.4", "shared/provider/aws/run.go", `!e.Rated() || `, ``, "./shared/provider/aws -run=TestRateIs"},
	{"tags-of-ours-have-room", "2b.4", "shared/providerspec/aws.go", `	f.atMost(at("tags"), own, most)
`, `	_, _ = own, most
`, "./shared/providerspec -run=TestRules"},
	{"load-balancers-fit-their-tag", "2b.4", "shared/providerspec/aws.go", `n > longestTag {`, `n < 0 {`, "./shared/providerspec -run=TestRules"},
	{"clone-that-runs-is-not-refused", "2b.4", "shared/provider/vsphere/create.go", `	if err != nil && p.Step == stepClone {`, `	if err != nil && p.Step == "" {`, "./shared/provider/vsphere -run=TestCloneThat"},
	{"lacking-a-file-is-no-absence", "G5", "shared/provider/vsphere/remove.go", `		case "NotFound", "FileNotFound": //`, `		case "nothing": //`, "./shared/provider/vsphere -run=TestInstanceThat"},
	{"withheld-is-no-absence", "G5", "shared/provider/vsphere/clones.go", `	case m.UUID != "":
		return nil`, `	case m.UUID != "" || m.Connection == "connected":
		return nil`, "./shared/provider/vsphere -run=TestInstanceThat"},
	{"no-of-a-webhook-is-no-absence", "G5", "shared/provider/kubeapi/client.go", `	case denied(err):`, `	case false && denied(err):`, "./shared/provider/metal3 -run=TestAHost"},
	{"refusal-says-its-own-status", "G5", "shared/provider/kubeapi/client.go", ` || int(s.Code) != code {`, ` {`, ""},
	{"copy-is-left-alone", "2b.9", "shared/provider/vsphere/remove.go", `		if m.copied() {`, `		if false {`, ""},
	{"node-that-runs-holds-the-finalizer", "2b.9", provision + "terminate.go", `	if l.doubted() {`, `	if false {`, ""},
	{"claimants-by-their-instance", "2b.9", provision + "claimant.go", `c.by[machine.InstanceOf(providerID)]`, `c.by[machine.InstanceOf(providerID+".")]`, ""},
	{"copy-takes-no-instance", "2b.9", provision + "terminate.go", `	if o := l.claimant(); o != nil {`, `	if o := l.claimant(); false {`, ""},
	{"others-are-read-before-a-removal", "2b.9", provision + "reads.go", `		all = append(all, claimQuery)
`, "", ""},
	{"node-stays-with-the-claimant", "2e", provision + "terminate.go", `n.DeletionTimestamp == nil && l.claimant() == nil {`, `n.DeletionTimestamp == nil {`, ""},
	{"stranger-at-the-address-stays", "2e", provision + "terminate.go", `		there := l.m.Status.NodeRef == nil && `, `		there := `, ""},
	{"node-goes-with-its-instance", "2e", provision + "terminate.go", `		if n.DeletionTimestamp == nil && l.c`, `		if false && l.c`, ""},
	{"every-node-goes-with-its-instance", "2e", provision + "terminate.go", `	for _, n := range l.nodes() { // each that`, `	for _, n := range l.nodes()[:min(1, len(l.nodes()))] { // each that`, ""},
	{"node-of-what-is-only-named-stays", "2e", provision + "terminate.go", `		if l.foreign(n) {`, `		if false {`, "./functions/provision-machine -run=TestScenarios"},
	{"node-of-what-is-on-record-goes", "2e", provision + "former.go", `return l.unproved() && !removed(l.m) && `, `return !removed(l.m) && `, "./functions/provision-machine -run=TestScenarios"},
	{"node-of-what-a-cloud-removed-goes", "2e", provision + "former.go", `return l.unproved() && !removed(l.m) && `, `return l.unproved() && `, "./functions/provision-machine -run=TestScenarios"},
	{"removal-is-noted-beside-a-silent-node", "2e", provision + "terminate.go", `	case l.mayBeDoubted(), l.mayBeKept():`, `	case l.mayBeDoubted():`, "./functions/provision-machine -run=TestScenarios"},
	{"node-of-what-a-cloud-showed-goes", "2e", provision + "former.go", ` && !l.wasShown()`, ``, "./functions/provision-machine -run=TestScenarios"},
	{"node-that-came-after-its-machine-goes", "2e", provision + "former.go", ` && n.CreationTimestamp.Before(&l.m.CreationTimestamp)`, ``, "./functions/provision-machine -run=TestScenarios"},
	{"scan-lets-a-machine-of-two-nodes-go", "2e", provision + "terminate.go", `	if machine.SeveralNodes(l.m) {`, `	if false {`, ""},
	{"scan-lets-a-silent-node-go", "2e", provision + "terminate.go", `	if l.mayHaveOthers() && `, `	if false && `, ""},
	{"unlinked-node-may-be-anothers", "2e", provision + "reads.go", `		if slices.ContainsFunc(append(l.nodes(), l.LateNodeOf(l.m)), doubtful) {`, `		if slices.ContainsFunc(append(l.nodes()[:0], l.LateNodeOf(l.m)), doubtful) {`, ""},
	{"unfinished-is-recorded-before-it-goes", "2e", provision + "terminate.go", `	case l.begun() != nil && !l.gone():`, `	case false:`, ""},
	{"unfinished-is-looked-for", "2e", provision + "reads.go", `|| !open(intent)`, `|| !intent.Unresolved()`, ""},
	{"unfinished-node-is-kept", "2e", words + "intent.go", ` && m.Status.NodeRef == nil
}`, `
}`, "./functions/provision-machine"},
	{"instance-waits-for-a-late-node", "2e", provision + "terminate.go", `(l.LateNodeOf(l.m) != nil || l.reopened())`, `l.reopened()`, ""},
	{"no-late-node-of-who-lives", "2c", "shared/snapshot/snapshot.go", `	if m.DeletionTimestamp == nil || !machine.FoundNoNode(m) {`, `	if !machine.FoundNoNode(m) {`, "./functions/provision-machine"},
	{"refused-node-is-written-once", "G11", provision + "terminate.go", `l.blocked(plan.Reworded(machine.FindCondition(l.m.Status.Conditions, machine.ConditionInstanceExists), of, why))`, `l.blocked(of + why)`, ""},
	{"words-are-written-once", "G11", "shared/plan/gist.go", `ok && Gist(before) == Gist(words) {`, `ok && before == words {`, "./functions/drain-node"},
	{"names-are-no-words", "2e", "shared/plan/gist.go", `strings.CutPrefix(was.Message, of); ok && Gist(before) == Gist(words) {`, `was.Message, true; ok && Gist(before) == Gist(of+words) {`, "./functions/drain-node"},
	{"late-node-beside-drains-that-are-stuck", "2e", drain + "reads.go", `maxDrains-min(len(nodeless), maxLate))`, `maxDrains)`, ""},
	{"leftover-of-another-owner-stays-on-record", "2b.8", provision + "leftover.go", `!l.reached() || l.elsewhere() || `, `!l.reached() || `, "./functions/provision-machine -run=TestScenarios"},
	{"lost-since-outlasts-a-refusal", "2e", provision + "terminate.go", `		return missingCondition(why)
`, "		return unknown(why)\n", ""},
	{"node-by-uid", "2e", words + "node.go", `m.Status.NodeRef.Name == n.Name && m.Status.NodeRef.UID == n.UID`, `m.Status.NodeRef.Name == n.Name`, "./functions/provision-machine ./functions/drain-node ./functions/remediate"},
	{"many-nodes-are-only-told-of", "G8", sweep + "ghosts.go", `	if len(held) > max(maxDeletes, len(w.Nodes)/10) {`, `	if false {`, ""},
	{"only-nodes-that-were-confirmed", "G8", sweep + "ghosts.go", `		if held[ghostKey(n)] || `, `		if `, ""},
	{"drained-for-this-deletion", "2e", "functions/drain-node/handler.go", `	for _, m := range undeleted(s) {`, `	for _, m := range undeleted(s)[:0] {`, ""},
	{"another-api-has-its-own-drains", "2e", "functions/drain-node/reads.go", `m.DeletionTimestamp == nil && !machine.IsPaused(m) && machine.Find`, `m.DeletionTimestamp == nil && machine.Find`, ""},
	{"tag-of-what-runs-is-not-named", "2b.10", sweep + "find.go", ` || others > 0`, ` || others < -1`, "./functions/sweep-instances -run=TestWhatRuns"},
	{"leftover-names-no-instance", "2b.10", sweep + "find.go", `			if in.ProviderID != "" {`, `			if true {`, "./functions/sweep-instances -run=TestScenarios"},
	{"copy-elsewhere-is-not-the-instance", "2b.9", provision + "elsewhere.go", `(id == "" || machine.SameID(in.ProviderID, id))`, `(id == "" || true)`, "./functions/provision-machine -run=TestScenarios"},
	{"refused-attempt-follows-its-secret", "2b.4", provision + "elsewhere.go", `i.Called() && (!i.Over() || len(i.Progress) > 0)`, `i.Called()`, "./functions/provision-machine -run=TestScenarios"},
	{"attempt-in-a-former-region-is-over", "2b.4", provision + "elsewhere.go", ` && i.Account == l.cloud.Account
`, `
`, "./functions/provision-machine -run=TestScenarios"},
	{"other-name-of-a-former-account", "2b.7", provision + "elsewhere.go", ` || l.former != nil {`, ` {`, "./functions/provision-machine -run=TestScenarios"},
	{"deletion-is-no-edit", "2b.9", words + "intent.go", ` && m.DeletionTimestamp == nil && i.Outcome`, ` && i.Outcome`, "./functions/provision-machine -run=TestScenarios"},
	{"lost-answer-is-not-given-up", "2b.4", words + "intent.go", ` && !i.Unresolved() && m.Status`, ` && m.Status`, "./functions/provision-machine -run=TestScenarios"},
	{"failed-waits-for-the-cloud", "G5", provision + "leftover.go", ` || l.cloud.Err != nil || `, ` || `, "./functions/provision-machine -run=TestScenarios"},
	{"leftover-of-another-cluster-id", "2b.8", provision + "leftover.go", ` && l.sameCluster() }`, ` }`, "./functions/provision-machine -run=TestScenarios"},
	{"removal-is-recorded-once", "G11", provision + "leftover.go", `	case i.Holder != l.Invocation: //`, `	case false: //`, "./functions/provision-machine -run=TestScenarios"},
	{"what-goes-is-no-duplicate", "2b.7", provision + "twin.go", ` && in.State != provider.StateDeleting {`, ` {`, "./functions/provision-machine -run=TestScenarios"},
	{"child-is-no-duplicate", "2b.7", provision + "twin.go", `		if !in.Child && `, `		if `, "./functions/provision-machine -run=TestScenarios"},
	{"left-behind-by-a-repair-is-no-duplicate", "2b.7", provision + "twin.go", `		if l.leftBehind(in) {`, `		if false {`, "./functions/provision-machine -run=TestScenarios"},
	{"left-behind-stays-on-record", "2b.7", provision + "record.go", `		if !i.Made(l.m) || i.Instance == "" {`, `		if true {`, "./functions/provision-machine -run=TestScenarios"},
	{"left-behind-by-a-repair-is-left-alone", "2b.10", sweep + "find.go", `	case o.leftBehind(in):`, `	case false:`, "./functions/sweep-instances -run=TestScenarios"},
	{"left-behind-for-what-was-taken-over", "2b.10", words + "intent.go", ` && (id == i.Instance || i.Tag != "" && tag == m.UID)`, ` && id == i.Instance && tag != ""`, "./functions/sweep-instances -run=TestScenarios"},
	{"left-behind-by-its-own-record", "2b.7", words + "intent.go", `	another := i.Made(m) && `, `	another := i != nil && `, "./shared/machine -run=TestLeftBehind"},
	{"address-alone-is-no-proof", "2b.7", provision + "former.go", ` && machine.Called(in.Name, in.Addresses, n.Name) &&`, ` &&`, "./functions/provision-machine -run=TestScenarios"},
	{"name-alone-is-no-proof", "2b.7", provision + "former.go", `	return machine.RunsOn(in.ProviderID, in.Addresses, n) && `, `	return `, "./functions/provision-machine -run=TestScenarios"},
	{"node-of-another-is-no-proof", "2b.7", provision + "former.go", `, n.Name) &&
		!machine.ClaimedByAnother(l.m, n, l.Machines)`, `, n.Name)`, "./functions/provision-machine -run=TestScenarios"},
	{"led-back-is-its-own-again", "2b.7", provision + "former.go", `if in.UID == l.m.UID {`, `if false {`, "./functions/provision-machine -run=TestScenarios"},
	{"looks-are-no-proof-without-a-mark", "2b.7", provision + "former.go", `ours := in.ClusterUID != "" && !marked`, `ours := !marked`, "./functions/provision-machine -run=TestScenarios"},
	{"looks-are-no-proof-against-a-mark", "2b.7", provision + "former.go", ` || runs && ours && `, ` || runs && (ours || true) && `, "./functions/provision-machine -run=TestScenarios"},
	{"looks-prove-once-it-runs-here", "2b.7", provision + "former.go", ` || runs && ours && `, ` || ours && `, "./functions/provision-machine -run=TestScenarios"},
	{"taken-over-by-one", "2b.7", provision + "former.go", ` || machine.SameID(machine.ProviderID(o), in.ProviderID) && l.before(o) {`, ` {`, "./functions/provision-machine -run=TestScenarios"},
	{"copy-is-passed-no-node", "2b.9", provision + "claimant.go", ` && l.madeFor(o)`, ``, "./functions/provision-machine -run=TestScenarios"},
	{"newer-intent-keeps-its-node", "G9", provision + "claimant.go", `	return err != nil || i.Made(o)`, `	return err == nil && i.Made(o)`, "./functions/provision-machine -run=TestScenarios"},
	{"not-complete-is-not-recorded", "2b.7", provision + "follow.go", ` && o.Instance.State != provider.StateIncomplete`, ``, "./functions/provision-machine -run=TestScenarios"},
	{"unreadable-after-a-call-is-not-final", "2b.4", provision + "launch.go", ` && l.intent == nil && l.cloud.Account`, ` && l.cloud.Account`, "./functions/provision-machine -run=TestScenarios"},
	{"refused-question-is-no-mistake", "G5", provision + "launch.go", ` && l.cloud.Account == "" {`, ` {`, "./functions/provision-machine -run=TestRefusedQuestion"},
	{"misled-are-told-in-turns", "2b.7", provision + "elsewhere.go", `	if l.Request.Scan() && !l.turn() {`, `	if false {`, "./functions/provision-machine -run=TestSilentCloud"},
	{"node-that-goes-proves-nothing", "2b.9", provision + "former.go", `		if n.DeletionTimestamp == nil && machine.NodeReady`, `		if machine.NodeReady`, "./functions/provision-machine -run=TestScenarios"},
	{"former-account-in-its-region", "2b.10", words + "sweep.go", ` && !OtherRegion(former.Of, key)`, ``, "./shared/machine -run=TestFormerAccount"},
	{"former-account-of-its-cluster-id", "2b.10", words + "sweep.go", ` && a.ClusterID == former.ClusterID`, ``, "./shared/machine -run=TestFormerAccount"},
	{"region-that-both-name", "2b.10", words + "sweep.go", `return inA && inB && x != y`, `return (inA || inB) && x != y`, "./shared/machine -run=TestOtherRegion"},
	{"tag-that-was-taken-over", "2b.10", sweep + "find.go", `if uid := machine.InstanceUID(m); o`, `if uid := m.UID; o`, "./functions/sweep-instances -run=TestScenarios"},
	{"tag-that-nobody-can-read", "G9", sweep + "find.go", `	case o.unread != nil && `, `	case false && o.unread != nil && `, "./functions/sweep-instances -run=TestScenarios"},
	{"tag-that-is-not-shown-is-unknown", "G9", sweep + "find.go", `id == "" || tags[machine.InstanceOf(id)] != m.UID {`, `id == "" {`, "./functions/sweep-instances -run=TestScenarios"},
	{"machine-that-came-since", "2b.10", sweep + "accounts.go", ` && !within(s, key, all[key]))`, `)`, "./functions/sweep-instances -run=TestScenarios"},
	{"machine-of-another-region", "2b.10", sweep + "accounts.go", `return there && (was`, `return (there || true) && (was`, "./functions/sweep-instances -run=TestMachineIsWithin"},
	{"account-of-a-node-nobody-can-judge", "2b.10", sweep + "accounts.go", ` && !w.haunted:`, `:`, "./functions/sweep-instances -run=TestScenarios"},
	{"intent-without-an-account", "2b.10", sweep + "accounts.go", ` || intent.Account == "" || `, ` || `, "./functions/sweep-instances -run=TestScenarios"},
	{"spec-that-is-no-json", "2b.10", sweep + "accounts.go", `!ok && json.Valid(m.Spec.ProviderSpec.Value.Raw) {`, `!ok && (true || json.Valid(nil)) {`, "./functions/sweep-instances -run=TestSpecThatIsNoJSON"},
	{"node-that-goes-is-no-ghost", "2b.10", sweep + "ghosts.go", `gone && n.DeletionTimestamp == nil && `, `gone && `, "./functions/sweep-instances -run=TestScenarios"},
	{"kept-have-few-words", "2g", sweep + "handler.go", `kept <= maxTold {`, `kept >= 0 {`, "./functions/sweep-instances -run=TestFewAreToldOf"},
	{"insecure-have-few-words", "2g", sweep + "insecure.go", `len(notes) < maxTold && `, ``, "./functions/sweep-instances -run=TestFewAreToldOf"},
	{"values-are-not-run-together", "4", "shared/snapshot/trim.go", `append(binary.AppendUvarint(c.buffer, uint64(len(s))), s...)`, `append(append(c.buffer, s...), binary.MaxVarintLen16-3)`, "./shared/snapshot -run=TestTrimShares"},
	{"tags-of-a-newer-version-wait", "G9", provision + "tags.go", `	case lacks != nil && waits.Schema > tagPauseSchema:`, `	case false:`, "./functions/provision-machine -run=TestScenarios"},
	{"ordinals-ahead-of-the-ledger-stay", "2a.4", words + "ledger.go", `return k < l.Next && !l.Active`, `return !l.Active`, "./functions/scale-machineset -run=TestOrdinalAhead"},
	{"one-poison-set", "2c", scale + "handler.go", `			s.Apart(set, func() { scale(&p, s, set, all) })`, `			scale(&p, s, set, all)`, "./functions/scale-machineset -run=TestPoison"},
	{"one-poison-machine", "2c", provision + "handler.go", `			s.Apart(m, func() { p.Add(step(s, m, fresh, known)) })`, `			p.Add(step(s, m, fresh, known))`, "./functions/provision-machine -run=TestPoison"},
	{"one-poison-capacity", "2c", provision + "handler.go", `			s.Apart(set, func() { p.Add(annotateCapacity(s, set), followStock(s, set)) })`, `			p.Add(annotateCapacity(s, set), followStock(s, set))`, "./functions/provision-machine -run=TestPoison"},
	{"one-poison-node", "2c", "shared/snapshot/snapshot.go", `	if s.Survive != nil {`, `	if false {`, "./shared/runner ./functions/link-node ./functions/drain-node -run=TestPoison|TestPanicOver"},
	{"poison-does-not-succeed", "2c", run + "survived.go", `	i.unfinished = true
`, ``, "./shared/runner -run=TestPanicOver"},
	{"poison-is-told", "2c", run + "runner.go", `	p.Notes = append(p.Notes, i.poison...)
`, ``, "./shared/runner -run=TestPanicOver"},
	{"tag-that-was-taken-over-is-no-attempt", "2b.10", sweep + "find.go", `m == nil || in.UID != m.UID || `, `m == nil || `, "./functions/sweep-instances"},
	{"former-account-of-its-namespace", "2b.10", words + "sweep.go", `former.Namespace == a.Namespace && `, ``, "./shared/machine -run=TestFormerAccount"},
	{"former-account-until-it-is-empty", "2b.10", sweep + "accounts.go", ` && !machine.Shown(all, a)`, ``, "./functions/sweep-instances -run=TestScenarios"},
	{"what-was-not-read-is-not-absent", "G5", "shared/snapshot/snapshot.go", `len(s.Poison) > 0 && s.Poison[plan.RefOf(o)]`, `false`, "./shared/runner -run=TestPanicWhile"},
	{"unclear-ends-no-other", "2c", run + "runner.go", `errors.Join(unclear, err); !again {`, `errors.Join(unclear, err); !again || err != nil {`, "./shared/runner -run=TestUnclear"},
	{"one-secret-of-many-specs", "2c", run + "visit.go", `i.Clouds.secrets.once()`, `i.Clouds.secrets`, "./shared/runner -run=TestOneSecret"},
	{"claim-of-a-volume-by-its-namespace", "2e", drain + "volumes.go", `c.Namespace == p.Namespace && slices`, `slices`, "./functions/drain-node -run=TestScenarios"},
	{"silent-node-detaches-nothing", "2e", drain + "volumes.go", `	if machine.NodeUnreachable(n) {`, `	if false && machine.NodeUnreachable(n) {`, "./functions/drain-node -run=TestScenarios"},
	{"cordoned-worker-is-no-master", "2e", drain + "controlplane.go", `n.Spec.Unschedulable && machine.IsControlPlane(n) && `, `n.Spec.Unschedulable && `, "./functions/drain-node -run=TestScenarios"},
	{"who-stays-is-in-no-queue", "2e", drain + "controlplane.go", `machine.IsNodeOf(m, n) && m.DeletionTimestamp != nil && `, `machine.IsNodeOf(m, n) && `, "./functions/drain-node -run=TestScenarios"},
	{"who-is-skipped-is-in-no-queue", "2e", drain + "controlplane.go", ` && !excluded &&`, ` && (true || excluded) &&`, "./functions/drain-node -run=TestScenarios"},
	{"instance-is-of-its-attempt", "2b.8", provision + "record.go", `done := i.Onward(l.m, in.Token).Released(`, `done := i.Released(`, "./functions/provision-machine -run=TestScenarios"},
	{"adopted-anew-stands-at-one-ordinal", "2a.6", scale + "ledger.go", `		if !anew[a] {`, `		if true {`, "./functions/scale-machineset -run=TestAdoptedAnew"},
	{"who-is-let-go-does-not-go", "2a.6", scale + "ledger.go", `			l.Adopted[k] = gone`, `			delete(l.Adopted, k)`, "./functions/scale-machineset -run=TestWhoIsLetGo"},
	{"retired-ordinal-makes-room-for-nobody", "2a.6", scale + "ledger.go", `ok && l.Active.Has(k) {
			refused`, `ok {
			refused`, "./functions/scale-machineset -run=TestWhoStands"},
	{"who-may-not-be-adopted-does-not-go", "2a.6", scale + "shrink.go", `		if outOfReach.Has(k) {`, `		if false {`, "./functions/scale-machineset -run=TestWhoMayNot"},
	{"ledger-that-was-read-keeps-its-ordinals", "G4", scale + "shrink.go", `slices.DeleteFunc(slices.Clone(l.Active),`, `slices.DeleteFunc(l.Active,`, "./functions/scale-machineset -run=TestScenarios"},
	{"ledger-that-was-read-keeps-its-members", "G4", scale + "room.go", `	l.Adopted = maps.Clone(l.Adopted)
	maps`, `	maps`, "./functions/scale-machineset -run=TestScenarios"},
	{"unanswered-attempt-keeps-its-account", "2b.7", provision + "elsewhere.go", `i.Called() && (!i.Over() || len(i.Progress) > 0)`, `i.Called() && len(i.Progress) > 0`, "./functions/provision-machine -run=TestScenarios"},
	{"sole-instance-of-another-machine", "2b.7", provision + "follow.go", `recorded && in.Sole && in.UID == machine.InstanceUID(l.m):`, `recorded && in.Sole:`, "./functions/provision-machine -run=TestWhichInstance"},
	{"claim-to-another-instance", "2b.7", provision + "former.go", ` || machine.SameID(machine.ProviderID(o), in.ProviderID) && l.before(o) {`, ` || l.before(o) {`, "./functions/provision-machine -run=TestScenarios"},
	{"what-may-be-a-node-is-no-leftover", "2e", provision + "leftover.go", ` && l.onNetwork() == nil && `, ` && `, "./functions/provision-machine -run=TestScenarios"},
	{"what-a-node-was-linked-to-is-no-leftover", "2e", provision + "leftover.go", `l.onNetwork() == nil && l.m.Status.NodeRef == nil`, `l.onNetwork() == nil`, "./functions/provision-machine -run=TestScenarios"},
	{"attempts-of-another-are-not-over", "2b.10", sweep + "find.go", `i.Own(m) && i.Token`, `i.Token`, "./functions/sweep-instances -run=TestNothingIsLeft"},
	{"nothing-is-left-before-an-instance-is-on-record", "2b.10", sweep + "find.go", `i.Made(m) && machine.ProviderID(m) != "" && `, `i.Made(m) && `, "./functions/sweep-instances -run=TestNothingIsLeft"},
	{"kept-beside-what-goes", "2b.10", sweep + "find.go", `kept[in.UID] || others > 0`, `others > 0`, "./functions/sweep-instances -run=TestWhatAMachineKeeps"},
	{"node-of-another-machine-keeps-no-orphan", "2b.10", sweep + "find.go", `slices.Contains(owners, n.Annotations[machine.AnnotationMachine]) && !w`, `len(owners) > 0 && !w`, "./functions/sweep-instances -run=TestNodeOfAnother"},
	{"who-was-never-made-is-in-no-account", "2b.10", sweep + "accounts.go", `err != nil || intent != nil && intent.Account == machine`, `err != nil || intent.Account == machine`, "./functions/sweep-instances -run=TestMachineIsWithin"},
	{"slot-of-another-is-read", "2e", drain + "controlplane.go", `	case held.UID != m.UID:`, `	case false:`, "./functions/drain-node -run=TestScenarios"},
	{"limit-begins-with-a-late-node", "2e", drain + "handler.go", `c == nil || c.Status == corev1.ConditionTrue {`, `c == nil {`, "./functions/drain-node -run=TestScenarios"},
	{"second-node-by-an-event", "2e", drain + "reads.go", `!s.Request.Scan() && !s.Has(allNodes) {`, `!s.Request.Scan() {`, "./functions/drain-node -run=TestScenarios"},
	{"nobody-waits-for-who-has-no-node", "2e", drain + "handler.go", `		if n != nil && draining[n] {`, `		if draining[n] {`, "./functions/drain-node -run=TestScenarios"},
	{"pod-that-leaves-without-a-time", "2e", drain + "evict.go", `p.DeletionTimestamp != nil && e.seen.Now`, `e.seen.Now`, "./functions/drain-node -run=TestPodThatLeaves"},
	{"own-instance-with-a-node-is-not-missing", "G5", provision + "misrecorded.go", `		if n := l.aliveOn(in); n != nil {`, `		if n := l.aliveOn(in); n != nil && false {`, "./functions/provision-machine -run=TestScenarios"},
	{"time-that-nobody-takes-is-not-waited-for", "2e", drain + "evict.go", `		given = *g
`, ``, "./functions/drain-node -run=TestScenarios"},
	{"who-comes-back-is-not-evicted-for-ever", "2e", drain + "evict.go", `s.Now) && e.afford(pod):`, `s.Now) && false:`, "./functions/drain-node -run=TestScenarios"},
	{"budget-of-who-came-back", "2e", drain + "evict.go", `s.Now) && e.afford(pod):`, `s.Now):`, "./functions/drain-node -run=TestScenarios"},
	{"budgets-of-who-came-back-are-read", "2e", drain + "evict.go", `	for _, p := range e.back {
		ask = append(ask, snapshot.Query{Kind: "PodDisruptionBudget", Namespace: p.Namespace})
	}
`, ``, "./test/sim -run=TestDrainEndsThough"},
	{"who-came-before-the-turn-did-not-come-back", "2e", drain + "handler.go", ` || c.Reason == reasonQueued || seen < 0 {`, ` || seen < 0 {`, "./functions/drain-node -run=TestSinceWhen"},
	{"who-came-before-the-cordon-did-not-come-back", "2e", drain + "handler.go", `{m.DeletionTimestamp, n.Spec.Taints[seen].TimeAdded} {`, `{m.DeletionTimestamp} {`, "./functions/drain-node -run=TestSinceWhen"},
	{"who-tolerates-no-cordon-is-evicted", "2e", "shared/scheduling/back.go", ` && Tolerated(p.Spec.Tolerations, unschedulable)`, ` && unschedulable.Key != ""`, "./shared/scheduling -run=TestWhoCame"},
	{"who-was-made-before-the-cordon-is-evicted", "2e", "shared/scheduling/back.go", `made.After(since) && `, ``, "./shared/scheduling -run=TestWhoCame"},
	{"who-was-made-by-a-clock-ahead-is-evicted", "G7", "shared/scheduling/back.go", ` && !machine.TooFar(made, now, 0)`, ` && machine.Skew > 0`, "./shared/scheduling -run=TestWhoCame"},
	{"next-of-its-host-is-who-the-cloud-shows", "2b.9", provision + "claimant.go", `machine.ProviderID(o) == "" && l.shownAt(o, n)`, `false`, ""},
	{"accounts-take-turns", "2c", run + "apply.go", `	return i.inTurn(ok)`, `	return ok`, "./shared/runner -run=TestAccountsTakeTurns"},
	{"another-clusters-stay", "2b.10", sweep + "neighbors.go", `	return in.ClusterUID != "" && in`, `	return false && in`, "./functions/sweep-instances -run=TestScenarios"},
	{"unknown-mark-is-anothers", "2b.10", sweep + "neighbors.go", `in.ClusterUID != s.ClusterUID()`, `s.ClusterUID() != "" && in.ClusterUID != s.ClusterUID()`, "./functions/sweep-instances -run=TestScenarios"},
	{"another-clusters-make-no-room", "2b.10", sweep + "find.go", `bool { return anothers(w.Snapshot, in) }`, `bool { return in.ID == "" && anothers(w.Snapshot, in) }`, "./functions/sweep-instances -run=TestScenarios"},
	{"what-is-made-carries-the-mark", "2b.10", run + "visit.go", `			o.ClusterUID = i.mark
`, ``, "./shared/runner -run=TestDriverIsToldTheMark"},
	{"attempt-keeps-its-mark", "2b.5", "shared/provider/aws/tag.go", `	if req.Mark != "" {`, `	if req.Mark = string(d.account.ClusterUID); req.Mark != "" {`, "./shared/provider/aws -run=TestAttemptKeeps"},
	{"who-came-before-the-cordon-was-seen-did-not-come-back", "2e", drain + "handler.go", ` || seen < 0 {
		return time.Time{}
	}
	since := c.LastTransitionTime.Time
`, ` {
		return time.Time{}
	}
	since := c.LastTransitionTime.Time
	if seen < 0 {
		return since
	}
`, "./functions/drain-node -run=TestScenarios|TestSinceWhen"},
	{"who-came-before-the-deletion-did-not-come-back", "2e", drain + "handler.go", `{m.DeletionTimestamp, n.Spec.Taints[seen].TimeAdded} {`, `{n.Spec.Taints[seen].TimeAdded} {`, "./functions/drain-node -run=TestSinceWhen"},
	{"one-disruption-is-not-spent-twice", "2e", drain + "evict.go", `		e.spent[b]++
`, `		e.spent[b] += 0
`, "./functions/drain-node -run=TestScenarios"},
	{"who-came-back-and-does-not-run-yet-asks-no-budget", "2e", drain + "evict.go", `scheduling.Charged(p, covering(e.seen, p))`, `covering(e.seen, p)`, "./functions/drain-node -run=TestScenarios"},
	{"account-that-nobody-looked-into-is-not-empty", "2b.10", sweep + "accounts.go", `		case !asked || seen.Err != nil || `, `		case seen.Err != nil || `, "./functions/sweep-instances -run=TestAccountsAre"},
	{"account-of-an-untold-owner-is-not-empty", "2b.10", sweep + "accounts.go", `seen.Err != nil || untold(a, seen):`, `seen.Err != nil:`, "./functions/sweep-instances -run=TestAccountsAre"},
	{"who-was-not-asked-for-had-no-turn", "2c", run + "turns.go", ` || l.Alone && ctx.Err() != nil {`, ` {`, "./shared/runner -run=TestWhoWasNotAskedFor"},
	{"silent-though-ready-is-looked-beside", "2e", words + "node.go", ` && (c.LastHeartbeatTime.IsZero() || now.Sub(c.LastHeartbeatTime.Time) < heardFor)`, ` && c != nil`, "./functions/drain-node -run=TestScenarios"},
	{"whose-change-was-begun-had-its-turn", "2c", run + "apply.go", `				i.begun.take(c.of)
`, ``, "./shared/runner -run=TestNobodyWaitsBehindThePoisoned"},
	{"who-was-looked-for-in-vain-had-its-turn", "2c", run + "look.go", `	if ctx.Err() == nil {
		i.looking.take(l.UID)`, `	{
		i.looking.take(l.UID)`, "./shared/runner -run=TestWhoIsLookedForInVainTakesTurns"},
	{"what-is-put-on-a-node-that-goes-is-no-model", "2d", "shared/scheduling/memory.go", `end != "" && was.End == end`, `false`, "./functions/evaluate-autoscale -run=TestNodeThatGoesIsNoModel"},
	{"what-a-former-end-was-remembered-of-is-over", "2d", "shared/scheduling/memory.go", `end != "" && was.End == end`, `end != "" && was.End != ""`, "./functions/evaluate-autoscale -run=TestNodeThatGoesIsNoModel"},
	{"node-is-remembered-before-it-goes", "2d", autoscale + "memory.go", `m.node.UID); r != nil {`, `m.node.UID); false {`, "./functions/evaluate-autoscale -run=TestNodeThatGoesIsNoModel"},
	{"node-that-is-to-go-is-no-model", "2d", "shared/scheduling/template.go", `	return !slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == machine.TaintToBeDeleted })`, `	return true`, "./shared/scheduling -run=TestTemplateComesFromTheBestSource"},
	{"grace-of-an-eviction", "2e", "shared/cluster/kube/apply.go", `	options.GracePeriodSeconds = a.GraceSeconds
`, ``, "./shared/cluster/kube -run=TestWritesAreGuarded"},
	{"whose-eviction-was-asked-for-is-still-there", "2e", drain + "evict.go", `	default:
		e.leaving = append(e.leaving, a.Pod)
`, `	default:
`, "./functions/drain-node -run=TestWhose"},
	{"list-by-tags-that-failed-is-no-absence", "G5", "shared/provider/aws/remove.go", `	found, err := d.named(ctx, r)
	if err != nil {`, `	found, err := d.named(ctx, r)
	if err != nil && false {`, "./shared/provider/aws -run=TestWhatCouldNot"},
	{"look-by-id-that-failed-is-no-absence", "G5", "shared/provider/aws/remove.go", `		known, err := d.known(ctx, id)
		if err != nil {`, `		known, err := d.known(ctx, id)
		if err != nil && false {`, "./shared/provider/aws -run=TestWhatCouldNot"},
	{"vcenter-that-does-not-answer-is-no-absence", "G5", "shared/provider/vsphere/remove.go", `	found, err := d.named(ctx, c, r)
	if err != nil {`, `	found, err := d.named(ctx, c, r)
	if err != nil && false {`, "./shared/provider/vsphere -run=TestFaultsOfADel"},
	{"disks-that-nobody-read-are-not-destroyed", "2b.9", "shared/provider/vsphere/remove.go", `	foreign, err := foreignDisks(ctx, c, m, home)
	if err != nil {`, `	foreign, err := foreignDisks(ctx, c, m, home)
	if err != nil && false {`, "./shared/provider/vsphere -run=TestFaultsOfADel"},
	{"list-by-ids-that-failed-is-no-absence", "G5", "shared/provider/aws/instance.go", `		recorded, err := d.describe(ctx, has("instance-id", unknown...))
		if err != nil {`, `		recorded, err := d.describe(ctx, has("instance-id", unknown...))
		if err != nil && false {`, "./shared/provider/aws -run=TestWhatCouldNot"},
	{"clone-that-nobody-looked-at-runs", "G5", "shared/provider/vsphere/remove.go", `	cloning, err := d.stopCloning(ctx, c, r)
	if err != nil {`, `	cloning, err := d.stopCloning(ctx, c, r)
	if err != nil && false {`, "./shared/provider/vsphere -run=TestCloneThatRuns"},
	{"claim-that-was-not-let-go-holds-the-finalizer", "2b.9", "shared/provider/vsphere/remove.go", `		if err != nil {
			return err
		}
		return provider.Errorf(provider.NotFound, "delete`, `		return provider.Errorf(provider.NotFound, "delete`, "./shared/provider/vsphere -run=TestClaimThatNobody"},
	{"instances-of-one-id-are-left-alone", "2b.9", "shared/provider/vsphere/remove.go", `	if err := ambiguous(r, found); err != nil {
		return err
	}
`, "", "./shared/provider/vsphere -run=TestReplica"},
	{"owner-that-nobody-told-is-no-other", "2b.10", words + "sweep.go", `!ok || owner == "" {`, `!ok {`, "./shared/machine -run=TestFormerAccountIsSeen"},
	{"elsewhere-is-not-empty-yet", "2b.10", words + "sweep.go", `		a.EmptySince = nil
`, "", "./shared/machine -run=TestFormerAccountIsSeen"},
	{"former-account-shows-no-other", "2b.10", words + "sweep.go", `return a.Of == "" && former`, `return former`, "./shared/machine -run=TestFormerAccountIsSeen"},
	{"victim-by-its-name", "2a.9", words + "ledger.go", `return v.Name == m.Name && (v.UID`, `return (v.UID`, "./shared/machine -run=TestVictim"},
	{"label-lends-no-ordinal", "2a.6", words + "ledger.go", `ok && err == nil && a.UID == m.UID {`, `ok && err == nil && a.UID != "" {`, "./shared/machine -run=TestOrdinalIs"},
	{"no-ordinal-before-the-first", "4", words + "ledger.go", `return k >= 0 && k < max(`, `return k < max(`, "./shared/machine -run=TestOrdinalIs"},
	{"active-ordinal-that-was-lent", "2a.6", words + "ledger.go", `	for _, k := range l.Active {
		if suffixOf(l.SetUID, k) == suffix && !l.lent(k) {`, `	for _, k := range l.Active {
		if suffixOf(l.SetUID, k) == suffix {`, "./shared/machine -run=TestOrdinalIs"},
	{"failed-of-something-else-has-its-node", "2e", words + "match.go", `c.Reason != machinev1beta1.InstanceMissingReason`, `c.Reason == machinev1beta1.InstanceMissingReason+"?"`, "./shared/machine -run=TestLostInstance"},
	{"linked-by-another-instance-keeps-nothing", "2e", words + "match.go", ` || OtherInstance(m, n) || LostAt`, ` || LostAt`, "./shared/machine -run=TestWhoseNodeOf"},
	{"selector-that-nobody-can-read-selects-nothing", "4", "shared/snapshot/scope.go", `return err == nil && sel.Matches(`, `return err != nil || sel.Matches(`, "./shared/snapshot -run=TestQuery"},
	{"older-node-is-late", "2e", "shared/snapshot/snapshot.go", ` && n.CreationTimestamp.After(m.DeletionTimestamp.Time) {`, ` {`, "./shared/snapshot -run=TestLateNode"},
	{"queue-is-of-that-node", "2e", drain + "controlplane.go", `machine.IsNodeOf(m, n) && m.DeletionTimestamp != nil && !excluded`, `m.DeletionTimestamp != nil && !excluded`, "./functions/drain-node -run=TestWhom"},
	{"who-was-adopted-is-not-made-anew", "2a.7", words + "ledger.go", `return !adopted && err == nil`, `return (true || !adopted) && err == nil`, "./functions/scale-machineset -run=TestScenarios"},
	{"account-in-use-is-not-forgotten", "2b.10", words + "sweeproom.go", ` && a.Of != "" && formers`, ` && formers`, "./shared/machine -run=TestNoMore"},
	{"few-former-accounts-stay", "4", words + "sweeproom.go", ` && formers[a.Of] > mostFormers {`, ` {`, "./shared/machine -run=TestNoMore"},
	{"both-ids-of-the-cluster-where-nobody-told", "2b.3", "shared/snapshot/snapshot.go", ` && !told && name != id {`, ` && false && !told {`, "./shared/snapshot -run=TestUnderWhich"},
	{"tags-of-the-cluster-are-read-once", "4", "shared/snapshot/spec.go", `machine.Remembered(s.Records, ofCluster{i}, `, `machine.Remembered((*machine.Records)(nil), ofCluster{i}, `, "./shared/snapshot -run=TestTagsOfTheCluster"},
	{"machine-is-not-new-where-no-token-tells", "2b.3", "shared/runner/look.go", `l.Open || l.New && c.Tokens`, `l.Open || l.New`, "./test/sim -run=TestKeptSchedules"},
	{"node-that-was-opened-is-drained-anew", "2e", drain + "handler.go", `range reopened(s) {`, `range reopened(s)[:0] {`, "./functions/drain-node -run=TestScenarios"},
	{"node-that-was-opened-for-the-next-stays", "2e", drain + "reads.go", `machine.TakesPods(m, n) && !machine.ClaimedByAnother(m, n, s.Machines) {`, `machine.TakesPods(m, n) {`, "./functions/drain-node -run=TestScenarios"},
	{"drained-node-that-is-closed-is-let-be", "G11", words + "condition.go", `n.DeletionTimestamp == nil && !n.Spec.Unschedulable`, `n.DeletionTimestamp == nil`, "./functions/drain-node -run=TestScenarios"},
	{"account-that-another-shows-is-empty", "2b.10", sweep + "accounts.go", `w.alone(key)+len(w.ghosts) > 0:`, `made(seen.Instances)+len(w.ghosts) > 0:`, "./functions/sweep-instances -run=TestScenarios"},
	{"account-of-a-namespace-not-served-is-not-empty", "2b.10", sweep + "accounts.go", `other != key && w.Serves(w.known[key].Namespace) && `, `other != key && `, "./functions/sweep-instances -run=TestScenarios"},
	{"account-of-another-owner-shows-nothing", "2b.10", sweep + "accounts.go", `a != "" && b != "" && machine.SameOwner(a, b) }`, `a != "" && b != "" }`, "./functions/sweep-instances -run=TestScenarios"},
	{"account-that-nobody-tells-of-shows-nothing", "2b.10", sweep + "accounts.go", `{ return a != "" && b != "" && machine`, `{ return machine`, "./functions/sweep-instances -run=TestScenarios"},
	{"instance-that-two-accounts-show-is-one", "2b.10", sweep + "find.go", `thing{cmp.Or(w.Accounts[account].Owner, account), `, `thing{account, `, "./functions/sweep-instances -run=TestScenarios"},
	{"instances-of-two-projects-are-two", "2b.10", sweep + "find.go", `thing{cmp.Or(w.Accounts[account].Owner, account), `, `thing{"", `, "./functions/sweep-instances -run=TestScenarios"},
	{"node-of-another-namespace-keeps-its-instance", "2b.10", sweep + "find.go", `owners := w.ownersOf(f)`, `owners := w.ownersOf(f)[:1]`, "./functions/sweep-instances -run=TestScenarios"},
	{"node-that-stays-cordoned-is-told", "2b.9", provision + "terminate.go", `		told = append(told, l.cordoned(n)...) // of those that stay
`, ``, "./functions/provision-machine -run=TestScenarios"},
	{"node-that-stays-open-is-not-told", "2b.9", provision + "claimant.go", `	if !n.Spec.Unschedulable || n.DeletionTimestamp != nil {`, `	if n.DeletionTimestamp != nil {`, "./functions/provision-machine -run=TestScenarios"},
	{"node-that-restarts-keeps-its-instance", "2b.10", sweep + "find.go", `if on && machine.NodeMayRestart(n, w.Now) {`, `if on && false {`, "./functions/sweep-instances -run=TestScenarios"},
	{"node-that-restarts-keeps-a-duplicate", "2b.7", provision + "twin.go", `machine.NodeReady(n) || machine.NodeMayRestart(n, l.Now) })`, `machine.NodeReady(n) })`, "./functions/provision-machine -run=TestScenarios"},
	{"new-node-does-not-restart", "2b.10", words + "node.go", ` || now.Before(n.CreationTimestamp.Add(restartFor)) {`, ` {`, "./shared/machine -run=TestNodeMayRestart"},
	{"restart-does-not-last", "2b.10", words + "node.go", ` && now.Before(c.LastTransitionTime.Add(restartFor))`, ``, "./shared/machine -run=TestNodeMayRestart"},
	{"restart-is-not-of-a-time-ahead", "G7", words + "node.go", `return !TooFar(c.LastTransitionTime.Time, now, 0) && `, `return `, "./shared/machine -run=TestNodeMayRestart"},
	{"cordon-comes-back-with-its-node", "2e", link + "mark.go", `n.Spec.Unschedulable || machine.WasCordoned(m)`, `n.Spec.Unschedulable`, "./functions/link-node -run=TestScenarios"},
	{"cordon-of-a-plan-does-not-come-back", "2e", words + "keep.go", `n.Spec.Unschedulable && !lent {`, `n.Spec.Unschedulable && (lent || !lent) {`, "./shared/machine -run=TestKeptNode"},
	{"cordon-of-before-is-forgotten", "2e", words + "keep.go", `	delete(m.Annotations, AnnotationNodeCordoned)
`, ``, "./shared/machine -run=TestKeptNode"},
	{"cordon-is-forgotten-with-the-rest", "2e", words + "keep.go", `AnnotationNodeAnnotations, AnnotationNodeCordoned} {`, `AnnotationNodeAnnotations} {`, "./shared/machine -run=TestKeptNode"},
	{"silence-postpones-no-removal", "2b.9", provision + "again.go", ` && !(unasked(l.m) && l.Request.Scan())`, ``, "./functions/provision-machine -run=TestRemovalAfterASilence"},
	{"refusal-after-a-silence-is-told", "G11", provision + "again.go", `	case unasked(l.m) && !unasked(next): // it was asked, and refuses: that is asked for less and less often
`, ``, "./functions/provision-machine -run=TestRemovalAfterASilence"},
	{"answer-ends-a-refusal", "2b.9", provision + "terminate.go", `(answered || !l.takenUp())`, `!l.takenUp() || answered && false`, "./functions/provision-machine -run=TestRemovalAfterARefusal"},
	{"what-found-no-room-is-no-instance", "2b.8", provision + "unfinished.go", `roomless && l.intent != nil &&`, `roomless && l.intent != nil && !l.intent.Over() &&`, "./functions/provision-machine -run=TestScenarios"},
	{"opened-node-is-drained-before-its-instance-goes", "2e", provision + "terminate.go", `(l.LateNodeOf(l.m) != nil || l.reopened())`, `(l.LateNodeOf(l.m) != nil)`, "./functions/provision-machine -run=TestScenarios"},
	{"node-that-was-opened-for-the-next-holds-nothing", "2e", provision + "terminate.go", `takesPods(l.Snapshot, l.m) && !machine.ClaimedByAnother(l.m, l.Node(l.m.Status.NodeRef.Name), l.Machines)`, `takesPods(l.Snapshot, l.m)`, "./functions/provision-machine -run=TestScenarios"},
	{"step-that-waits-pauses", "G11", provision + "launch.go", `	if bytes.Equal(i.Progress, progress) {`, `	if bytes.Equal(i.Progress, progress) && false {`, "./functions/provision-machine -run=TestScenarios"},
	{"what-goes-for-long-is-told", "2b.8", provision + "leftover.go", ` && l.Now.Before(i.StartedAt.Add(longRemoval)):`, `:`, "./functions/provision-machine -run=TestScenarios"},
	{"node-that-keeps-a-host-off-is-told", "G11", provision + "restart.go", `if why, refused := l.Refused(a); refused {`, `if why, refused := l.Refused(a); refused && false {`, "./functions/provision-machine -run=TestScenarios"},
	{"copied-node-is-no-proof", "2b.7", provision + "former.go", `machine.NodeReady(n) && l.Now.Sub(`, `l.Now.Sub(`, "./functions/provision-machine -run=TestScenarios"},
	{"copied-node-says-ready-for-a-while", "2b.7", provision + "former.go", ` && l.Now.Sub(n.CreationTimestamp.Time) > provenAfter`, ``, "./functions/provision-machine -run=TestScenarios"},
	{"mark-of-this-cluster-is-no-others", "2b.7", provision + "former.go", ` && in.ClusterUID != l.ClusterUID()`, ``, "./functions/provision-machine -run=TestScenarios"},
	{"power-cycle-lasts-until-the-kubelet-is-up", "2f", provision + "restart.go", ` || machine.NodeUnreachable(n) {`, ` {`, "./functions/provision-machine -run=TestScenarios"},
	{"power-goes-once-for-a-wish", "2f", provision + "restart.go", `	if fields := strings.Fields(claim); len(fields) > 1 && fields[1] == "power-cycle" {`, `	if fields := strings.Fields(claim); len(fields) >= 0 {`, "./functions/provision-machine -run=TestScenarios"},
	{"what-may-be-a-node-is-taken", "2e", provision + "launch.go", `	case l.taken(): // it goes on
`, ``, "./functions/provision-machine -run=TestScenarios"},
	{"no-other-attempt-beside-what-may-be-a-node", "2b.4", provision + "launch.go", `	case l.taken():
		next = *i
`, ``, "./functions/provision-machine -run=TestScenarios"},
	{"what-may-be-a-node-is-not-refused", "2e", provision + "launch.go", `(l.unheard(i, o) || l.joins())`, `l.unheard(i, o)`, "./functions/provision-machine -run=TestScenarios"},
	{"attempt-that-was-given-up-goes-on-no-more", "2b.8", provision + "unfinished.go", `l.intent.Failures > 0 && l.intent.Code != ""`, `l.intent.Failures > 0`, "./functions/provision-machine -run=TestScenarios"},
	{"edit-ends-a-wait", "2b.8", provision + "launch.go", `if after == 0 || outcome == machine.OutcomePartial {`, `if after == 0 {`, "./functions/provision-machine -run=TestScenarios"},
	{"long-wait-is-no-refusal", "2b.8", provision + "launch.go", `	if code != provider.Throttled || after < pause(i.Failures, 0) {`, `	if true {`, "./functions/provision-machine -run=TestScenarios"},
	{"room-that-comes-later-ends-no-attempt", "2b.8", provision + "launch.go", `o.Code == provider.Exhausted && o.RetryAfter > 0 || `, ``, "./functions/provision-machine -run=TestScenarios"},
	{"retired-that-stays-is-told", "2a.4", scale + "execute.go", `plan.Warning(x, "FailedDelete", stays)`, `plan.Warning(set, "FailedDelete", stays)`, "./functions/scale-machineset -run=TestScenarios"},
	{"machine-that-people-paused", "2b.1", "shared/machine/authority.go", `[AnnotationPaused]; paused {`, `[AnnotationPaused]; paused && false {`, "./functions/provision-machine ./functions/drain-node -run=TestScenarios"},
	{"moved-machine-gets-no-finalizer", "2a.2", scale + "execute.go", `, machine.Finalizer) && !machine.IsPaused(m) {`, `, machine.Finalizer) {`, "./functions/scale-machineset -run=TestScenarios"},
	{"next-wish-is-carried-out", "2f", provision + "restart.go", `(!off || !taken(l.m) || `, `(!off || `, "./functions/provision-machine -run=TestScenarios"},
	{"wish-of-a-host-that-is-off-is-met", "2f", provision + "restart.go", `	if wantsPowerCycle(next) && !taken(next) {`, `	if false {`, "./functions/provision-machine -run=TestScenarios"},
	{"mark-goes-with-the-next-claim", "2f", provision + "power.go", `	delete(next.Annotations, machine.AnnotationPoweredOff) // of`, `	// of`, "./functions/provision-machine -run=TestScenarios"},
	{"that-nobody-drains-is-told", "2e", provision + "terminate.go", `at != nil && !l.Now.Before(at.Add(longWordOfDrain)) &&`, `at != nil && false &&`, "./functions/provision-machine -run=TestScenarios"},
	{"node-of-two-stays-with-who-runs", "2b.9", provision + "claimant.go", `apart && n.Spec.ProviderID`, `false && apart && n.Spec.ProviderID`, "./functions/provision-machine -run=TestScenarios"},
	{"what-was-not-removed-may-run", "2b.9", provision + "former.go", ` || !removed(l.m))`, `)`, "./functions/provision-machine -run=TestScenarios"},
	{"what-was-removed-is-gone", "2b.9", provision + "former.go", `c.Reason == reasonRemoved || `, ``, "./functions/provision-machine -run=TestScenarios"},
	{"node-of-the-next-holds-nobody", "2b.9", provision + "former.go", ` && !l.passedOn(n) {`, ` {`, "./functions/provision-machine -run=TestScenarios"},
	{"own-word-asks-for-no-removal", "G11", provision + "terminate.go", ` || removed(l.m) && !l.Request.Scan()): //`, `): //`, "./functions/provision-machine -run=TestScenarios"},
	{"node-that-reports-is-not-taken", "2f", provision + "restart.go", `	if machine.NodeReports(n) {`, `	if false {`, "./functions/provision-machine -run=TestScenarios"},
	{"host-that-falls-is-not-told", "G11", provision + "restart.go", `		if l.Now.Before(l.claimedUntil().Add(falling)) {`, `		if false {`, "./functions/provision-machine -run=TestScenarios"},
	{"host-that-is-left-alone-is-not-off", "2f", "shared/provider/metal3/host.go", ` && !(held(h) && unattended(h) != "") {`, ` {`, "./shared/provider/metal3 -run=TestPower"},
	{"host-that-was-written-in-vain-is-not-gone", "2b.1", "shared/provider/metal3/host.go", `		if written(h) {
			return provider.StateDeleting`, `		if true {
			return provider.StateDeleting`, "./shared/provider/metal3 -run=TestStates"},
}
