// SPDX-License-Identifier: Apache-2.0

package guards

// azure keeps what is made at Azure one, its Machine's, and nobody else's (RELIABILITY 2b, 4).
var azure = []Guard{
	{"azure-instance-is-create-only", "2b.6", "shared/provider/azure/create.go", `map[string]string{"If-None-Match": "*"}`, `nil`, "./shared/provider/azure -run=TestInstanceThatCameMeanwhile"},
	{"azure-tags-in-the-same-call", "2b.6", "shared/provider/azure/order.go", `	i := instance{thing: thing{Location: d.location, Tags: d.tags(r, req)}}`, `	i := instance{thing: thing{Location: d.location}}`, "./shared/provider/azure -run=TestEveryField"},
	{"azure-takes-its-interface-along", "2b.8", "shared/provider/azure/order.go", `&cardReference{Primary: true, Delete: remove}`, `&cardReference{Primary: true}`, "./shared/provider/azure -run=TestEveryField"},
	{"azure-takes-its-disk-along", "2b.8", "shared/provider/azure/order.go", `Create: "FromImage", Delete: remove, `, `Create: "FromImage", `, "./shared/provider/azure -run=TestEveryField"},
	{"azure-takes-its-address-along", "2b.8", "shared/provider/azure/order.go", `, Properties: &publicReference{remove}`, ``, "./shared/provider/azure -run=TestEveryField"},
	{"azure-what-is-somebody-elses-is-no-instance-of-ours", "2b.9", "shared/provider/azure/create.go", `	case i.tag(tagUID) != string(r.UID) || copied(i.thing, i.called()) || !d.ours(i.thing):`, `	case false:`, "./shared/provider/azure -run=TestWhatIsSomebody"},
	{"azure-interface-of-somebody-else-stays", "2b.9", "shared/provider/azure/create.go", `	case err == nil && !d.belongs(r, have.thing, cardName):`, `	case false:`, "./shared/provider/azure -run=TestWhatIsSomebody"},
	{"azure-address-of-somebody-else-stays", "2b.9", "shared/provider/azure/create.go", `	case err == nil && !d.belongs(r, have.thing, addressName):`, `	case false:`, "./shared/provider/azure -run=TestWhatIsSomebody"},
	{"azure-instance-without-room-is-made-anew", "2b.8", "shared/provider/azure/create.go", `	case state == provider.StateFailed && code == provider.Exhausted:`, `	case state == provider.StateFailed && code == provider.Exhausted && false:`, "./shared/provider/azure -run=TestInstanceThatFoundNoRoomIsMade"},
	{"azure-instance-of-another-cluster", "2b.9", "shared/provider/azure/find.go", `	case !d.ours(i.thing):`, `	case false:`, "./shared/provider/azure -run=TestWhoseInstance"},
	{"azure-instance-of-another-attempt", "2b.8", "shared/provider/azure/find.go", `	case r.Attempt && i.tag(tagToken) != r.Token:`, `	case false:`, "./shared/provider/azure -run=TestWhoseInstance"},
	{"azure-copy-is-no-machines-instance", "2b.10", "shared/provider/azure/find.go", `	case uid == "" || copied(i.thing, i.called()):`, `	case uid == "":`, "./shared/provider/azure -run=TestWhoseInstance"},
	{"azure-another-one-of-that-name", "2b.9", "shared/provider/azure/find.go", ` && (same || !subscriptions.MatchString(strings.ToLower(r.ID)))`, ``, "./shared/provider/azure -run=TestWhoseInstance"},
	{"azure-copy-is-listed-as-nobodys", "2b.10", "shared/provider/azure/instance.go", `	if copied(i.thing, i.called()) { // nobody`, `	if false { // nobody`, "./shared/provider/azure -run=TestCopyIsNobodys"},
	{"azure-disk-that-is-kept-stays", "2b.10", "shared/provider/azure/children.go", `	kept = slices.ContainsFunc(strings.Fields(c.tag(tagKept)), is)`, `	kept = false`, "./shared/provider/azure -run=TestDiskThatIsKept"},
	{"azure-disk-made-of-another-stays", "2b.10", "shared/provider/azure/children.go", `	is := func(suffix string) bool { return strings.EqualFold(name, of+"_"+suffix) }`, `	is := func(string) bool { return strings.HasPrefix(name, of+"_") }`, "./shared/provider/azure -run=TestWhoseChild"},
	{"azure-child-of-another-attempt", "2b.8", "shared/provider/azure/children.go", `	case !made && !(kept && r.Attempt), r.Attempt && c.tag(tagToken) != r.Token:`, `	case !made && !(kept && r.Attempt):`, "./shared/provider/azure -run=TestWhoseChild"},
	{"azure-leftover-that-is-used-again", "2b.10", "shared/provider/azure/children.go", `		return c.user == "" && strings.EqualFold(r.ID, c.name())`, `		return strings.EqualFold(r.ID, c.name())`, "./shared/provider/azure -run=TestWhoseChild"},
	{"azure-what-is-used-is-no-leftover", "2b.10", "shared/provider/azure/children.go", `		if made, _ := d.made(c); c.user != "" || !made {`, `		if made, _ := d.made(c); !made {`, "./shared/provider/azure -run=TestInterfaceLeads"},
	{"azure-interface-leads-to-its-instance", "2b.9", "shared/provider/azure/remove.go", `	if c.user == "" {
`, `	if c.user != "another" {
`, "./shared/provider/azure -run=TestInterfaceLeads"},
	{"azure-takes-along-what-others-made", "2b.8", "shared/provider/azure/remove.go", `	if waits, err := d.takeAlong(ctx, i); waits || err != nil {`, `	if waits, err := false, error(nil); waits || err != nil {`, "./shared/provider/azure -run=TestInstanceOfAnotherSystem"},
	{"azure-group-that-is-gone-is-no-absence", "G5", "shared/provider/azure/errors.go", `r.status == http.StatusNotFound && (r.code == "ResourceNotFound" || r.code == "NotFound")`, `r.status == http.StatusNotFound`, "./shared/provider/azure -run=TestWhatIsAnAbsence"},
	{"azure-not-found-is-said-of-what-was-asked-for", "G5", "shared/provider/azure/azure.go", `	if e, ok := errors.AsType[*provider.Error](err); ok && e.Code == provider.NotFound {`, `	if e, ok := errors.AsType[*provider.Error](err); ok && e.Code == provider.NotFound && false {`, "./shared/provider/azure -run=TestNotFoundOfSomethingElse"},
	{"azure-answer-without-a-list-is-none", "G5", "shared/provider/azure/arm.go", `		if p.Value == nil {
			return nil, errStrange`, `		if p.Value == nil {
			return nil, nil`, "./shared/provider/azure -run=TestAnswersThatSayNothing"},
	{"azure-answer-without-a-state-is-none", "G5", "shared/provider/azure/arm.go", `	err := c.do(ctx, ask{method: http.MethodGet, id: id, query: query}, &t)
	if err == nil && !t.told() {`, `	err := c.do(ctx, ask{method: http.MethodGet, id: id, query: query}, &t)
	if false {`, "./shared/provider/azure -run=TestAnswersThatSayNothing"},
	{"azure-page-of-a-proxy-is-no-answer", "G5", "shared/provider/azure/arm.go", `	case kind == "text/html":`, `	case false:`, "./shared/provider/azure -run=TestPageOfAProxy"},
	{"azure-what-is-under-way-is-no-refusal", "2b.4", "shared/provider/azure/errors.go", `	case busy.MatchString(code), unasked`, `	case unasked`, "./shared/provider/azure -run=TestCodesOfErrors"},
	{"azure-quota-is-no-mistake-of-a-spec", "2b.4", "shared/provider/azure/errors.go", `	case shortages.MatchString(code), code`, `	case code`, "./shared/provider/azure -run=TestCodesOfErrors"},
	{"azure-tags-of-others-stay", "G3", "shared/provider/azure/tag.go", `		header["If-Match"] = i.Etag`, `		_ = header`, "./shared/provider/azure -run=TestTagsOfOthers"},
	{"azure-spec-makes-no-instance-anothers", "2b.6", "shared/provider/azure/tag.go", `strings.HasPrefix(name, tagPrefix) || strings.HasPrefix(name, tagCluster) || `, `strings.HasPrefix(name, tagPrefix) || `, "./shared/provider/azure -run=TestSpecDoes"},
	{"azure-attempt-keeps-its-mark", "2b.5", "shared/provider/azure/tag.go", `	if req.Mark != "" {`, `	if req.Mark = string(d.account.ClusterUID); req.Mark != "" {`, "./shared/provider/azure -run=TestAttemptKeeps"},
	{"azure-states-that-may-not-be-read", "G11", "shared/provider/azure/states.go", `	if !may {`, `	if !may && false {`, "./shared/provider/azure -run=TestStatesThatMayNot"},
	{"azure-lists-stay-at-azure", "4", "shared/provider/azure/arm.go", `		if !strings.HasPrefix(strings.ToLower(p.Next), strings.ToLower(c.endpoint)+"/") {`, `		if false {`, "./shared/provider/azure -run=TestListsStay"},
	{"azure-ids-are-paths", "4", "shared/provider/azure/arm.go", `	if !ids.MatchString(a.id) {`, `	if false {`, "./shared/provider/azure -run=TestIDsThatAreNone"},
	{"azure-names-are-no-paths", "4", "shared/provider/azure/resolve.go", `		if part.value != "" && !names.MatchString(part.value) {`, `		if false {`, "./shared/provider/azure -run=TestWhatCannotBe"},
	{"azure-sends-no-other-file-as-a-token", "4", "shared/provider/azure/client.go", `	case !mounted(file):`, `	case false:`, "./shared/provider/azure -run=TestWhichFiles"},
	{"azure-locations-are-words", "4", "shared/provider/azure/client.go", `	case !locations.MatchString(c.location):`, `	case false:`, "./shared/provider/azure -run=TestNoSpecNamesAHost"},
	{"azure-follows-no-redirect", "4", "shared/provider/azure/client.go", `		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
`, ``, "./shared/provider/azure -run=TestClientGoes"},
	{"azure-is-dialed-by-us", "4", "shared/provider/azure/client.go", `		DialContext:           throttle.Dialer(deadline).DialContext,
`, ``, "./shared/provider/azure -run=TestClientGoes"},
	{"azure-speaks-no-old-tls", "4", "shared/provider/azure/client.go", `MinVersion: tls.VersionTLS12`, `MinVersion: tls.VersionTLS10`, "./shared/provider/azure -run=TestClientGoes"},
	{"azure-keeps-no-credentials", "4", "shared/provider/azure/azure.go", `	a.Credentials = nil // which nobody reads again
`, ``, "./shared/provider/azure -run=TestDriverTells"},
	{"azure-haste-is-of-a-credential", "4", "shared/provider/azure/client.go", `value("azure_client_secret"), value("azure_federated_token_file")}`, `value("azure_federated_token_file")}`, "./shared/provider/azure -run=TestHasteOfAnotherSecret"},
	{"azure-states-that-take-too-long", "G6", "shared/provider/azure/states.go", `context.WithTimeout(ctx, viewsFor)`, `context.WithTimeout(ctx, deadline)`, "./shared/provider/azure -run=TestStatesThatTake"},
	{"azure-disks-that-may-not-be-read", "G5", "shared/provider/azure/children.go", `r.status == http.StatusForbidden && r.code == "AuthorizationFailed" && !d.disks.Load()`, `r.status == http.StatusForbidden && r.code == "None" && !d.disks.Load()`, "./shared/provider/azure -run=TestCredentialsThatMayNot"},
	{"azure-what-is-denied-is-no-absence", "G5", "shared/provider/azure/children.go", `things[T](ctx, d, kind)
	if groupless(err) && d.records(r) {`, `things[T](ctx, d, kind)
	if err != nil {`, "./shared/provider/azure -run=TestCredentialsThatMayNot"},
	{"azure-leftovers-name-is-no-machines", "2b.8", "shared/provider/azure/children.go", ` && !leftover(r.ID) {`, ` {`, "./shared/provider/azure -run=TestLeftoversGoByWhat"},
	{"azure-copy-hides-no-leftover", "2b.10", "shared/provider/azure/find.go", `		if !copied(i.thing, i.called()) { // a copy`, `		if true { // a copy`, "./shared/provider/azure -run=TestCopyHides"},
	{"azure-disk-that-was-taken-off-is-no-leftover", "2b.10", "shared/provider/azure/find.go", `bool { return in.Token != "" && tokens[in.Token] })`, `bool { return false })`, "./shared/provider/azure -run=TestDiskThatWasTakenOff"},
	{"azure-kept-disk-outlives-no-attempt", "2b.8", "shared/provider/azure/children.go", `	case !made && !(kept && r.Attempt), r`, `	case !made && !(kept && false), r`, "./shared/provider/azure -run=TestWhoseChild"},
	{"azure-failures-are-looked-at", "G11", "shared/provider/azure/states.go", `	if i.Properties.State != failed || i.Properties.View != nil || !d.ours(i.thing) {`, `	if true {`, "./shared/provider/azure -run=TestFailuresAreTold"},
	{"azure-failures-are-told", "G11", "shared/provider/azure/states.go", `			if all[k].Properties.State != failed {`, `			if true {`, "./shared/provider/azure -run=TestFailuresAreTold"},
	{"azure-disks-on-their-way-out-are-waited-for", "2b.8", "shared/provider/azure/create.go", `	if waits, err := d.haveNoDisks(ctx, r, wanted); waits != "" || err != nil {`, `	if waits, err := "", error(nil); waits != "" || err != nil {`, "./shared/provider/azure -run=TestDisksThatAreThere"},
	{"azure-kept-disk-of-another-attempt-stays", "2b.9", "shared/provider/azure/create.go", `(made || kept && have.tag(tagToken) == r.Token)`, `(made || kept)`, "./shared/provider/azure -run=TestDisksThatAreThere"},
	{"azure-disk-of-somebody-else-stays", "2b.9", "shared/provider/azure/create.go", `		case !mine || c.user != "":`, `		case !mine && c.user != "":`, "./shared/provider/azure -run=TestDisksThatAreThere"},
	{"azure-kept-disk-of-an-instance-that-failed-goes", "2b.8", "shared/provider/azure/create.go", `made || kept && have`, `made || false && kept && have`, "./shared/provider/azure -run=TestKeptDiskOfAFailed"},
	{"azure-what-nobody-knows-is-no-mistake-of-a-spec", "2b.4", "shared/provider/azure/errors.go", ` && wrong.MatchString(code):`, `:`, "./shared/provider/azure -run=TestCodesOfErrors"},
	{"azure-request-that-took-too-long-is-no-refusal", "2b.4", "shared/provider/azure/errors.go", ` status == http.StatusRequestTimeout,`, ``, "./shared/provider/azure -run=TestCodesOfErrors"},
	{"azure-removal-cuts-no-change-short", "2b.8", "shared/provider/azure/remove.go", `	if i.Properties.State == creating || i.Properties.State == updating {`, `	if false {`, "./shared/provider/azure -run=TestInstanceOfAnotherSystem"},
	{"azure-address-that-is-used-elsewhere-stays", "2b.9", "shared/provider/azure/remove.go", `		return !gone(err) && of.Properties.State != deleting, false, unlessGone(err)`, `		return of.Properties.State == "None", false, unlessGone(err)`, "./shared/provider/azure -run=TestAddressThatIsUsed"},
	{"azure-instance-that-no-read-shows-yet", "2b.9", "shared/provider/azure/remove.go", `	if d.unseen(r) {`, `	if false {`, "./shared/provider/azure -run=TestInstanceThatNoRead"},
	{"azure-what-is-there-already-is-no-refusal", "2b.4", "shared/provider/azure/create.go", ` || refused(err, http.StatusPreconditionFailed) { // which`, ` { // which`, "./shared/provider/azure -run=TestInstanceThatIsThereAndNotSeen"},
	{"azure-right-that-was-lost-is-no-absence", "G5", "shared/provider/azure/children.go", ` && !d.disks.Load() {`, ` {`, "./shared/provider/azure -run=TestRightToRead"},
	{"azure-provider-id-of-another-cluster", "2b.9", "shared/provider/azure/find.go", `		return recorded && d.mayBeNamed(i.thing)`, `		return recorded`, "./shared/provider/azure -run=TestWrittenProviderID"},
	{"azure-credentials-stay-in-their-cloud", "4", "shared/provider/azure/client.go", `	if realm(c.location) != realm(home) {`, `	if false {`, "./shared/provider/azure -run=TestSpecLeadsToNoOther"},
	{"azure-login-of-another-is-waited-for-in-time", "G6", "shared/provider/azure/login.go", `	case <-ctx.Done():`, `	case <-context.Background().Done():`, "./shared/provider/azure -run=TestLoginOfAnother"},
	{"azure-states-that-fail-once", "G11", "shared/provider/azure/states.go", `last != nil {`, `last != nil && false {`, "./shared/provider/azure -run=TestStatesThatFailOnce"},
	{"azure-tag-in-other-letters-is-there", "G3", "shared/provider/azure/tag.go", `!there && i.tag(name) == value && value != "" {`, `!there && false {`, "./shared/provider/azure -run=TestTagInOther"},
	{"azure-interface-that-another-instance-has-stays", "2b.9", "shared/provider/azure/create.go", `	case err == nil && have.Properties.Instance != nil && !`, `	case err == nil && have.Properties.Instance != nil && false && !`, "./shared/provider/azure -run=TestStepsGoOn"},
	{"azure-instance-of-another-attempt-is-not-taken", "2b.8", "shared/provider/azure/create.go", `	case i.tag(tagToken) != r.Token:`, `	case false:`, "./shared/provider/azure -run=TestStepsGoOn"},
	{"azure-interface-of-a-former-attempt-is-made-anew", "2b.8", "shared/provider/azure/create.go", `		return false, "", d.foreign("a network interface", have.thing)
	case err == nil && have.tag(tagToken) == r.Token && `, `		return false, "", d.foreign("a network interface", have.thing)
	case err == nil && `, "./shared/provider/azure -run=TestStepsGoOn"},
	{"azure-interface-is-waited-for", "2b.8", "shared/provider/azure/create.go", `		return false, untilReady(have.Properties.State, "the network interface"), nil`, `		return false, "", nil`, "./shared/provider/azure -run=TestStepsGoOn"},
	{"azure-another-location-is-another-account", "2b.9", "shared/provider/azure/find.go", `bool { return !d.here(i.thing) }), nil`, `bool { return false }), nil`, "./shared/provider/azure -run=TestInstanceOfAnotherLocation"},
	{"azure-another-subscription-is-not-asked", "4", "shared/provider/azure/find.go", ` && strings.HasPrefix(strings.ToLower(id), "/subscriptions/"+d.subscription+"/") {`, ` {`, "./shared/provider/azure -run=TestIDsThatAreNone"},
	{"azure-group-is-not-there-whatever-its-name", "G5", "shared/provider/azure/find.go", `		case gone(err), groupless(err) && d.records(r):`, `		case gone(err), groupless(err):`, "./shared/provider/azure -run=TestGroupThatIsNotThere"},
	{"azure-removal-is-begun-once", "2b.9", "shared/provider/azure/remove.go", `	if i.Properties.State == deleting {
		d.ended`, `	if false {
		d.ended`, "./shared/provider/azure -run=TestRemovalIsBegunOnce"},
	{"azure-haste-of-states-is-its-own", "G6", "shared/provider/azure/client.go", `throttle.Transport{Base: p.Base, Limiter: p.aside}`, `throttle.Transport{Base: p.Base, Limiter: p.Limiter}`, "./shared/provider/azure -run=TestStatesThatFailFrom"},
	{"azure-state-that-nobody-knows-changes-no-record", "G11", "shared/provider/azure/instance.go", ` && i.power() == "" && d.states.doubt() {`, ` && false {`, "./shared/provider/azure -run=TestStatesThatFailFrom"},
	{"azure-instance-of-an-attempt-that-no-read-shows-yet", "2b.9", "shared/provider/azure/remove.go", `		id, recorded = p.Instance, p.Instance != ""`, `		id = p.Instance`, "./shared/provider/azure -run=TestInstanceOfAnAttempt"},
	{"azure-wait-that-does-not-end-is-told", "2b.4", "shared/provider/azure/progress.go", `		if time.Since(time.Unix(p.Since, 0)) > patience {`, `		if false {`, "./shared/provider/azure -run=TestWhatDoesNotEnd"},
}
