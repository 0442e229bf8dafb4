// SPDX-License-Identifier: Apache-2.0

package guards

const (
	reach  = "shared/provider/throttle/reach.go"
	limits = "shared/provider/throttle/throttle.go"
	token  = "shared/events/token.go"
	body   = "shared/events/body.go"
	event  = "shared/events/decode.go"
	lost   = "functions/dead-letter/handler.go"
)

// inputs keep out what others may write, send or answer (RELIABILITY §4, 2g).
var inputs = []Guard{
	{"what-nobody-answers-is-not-optional", "G5", "shared/cluster/kube/observe.go", `apierrors.IsForbidden(err) && plan.Foreign(r.Kind)`, `err != nil && plan.Foreign(r.Kind)`, ""},
	{"kept-list-of-a-known-time", "G7", "shared/cluster/kube/view.go", `	if a.date.IsZero() {`, `	if false {`, ""},
	{"sender-signs", "2g", token, `	if !signed(header`, `	if false && !signed(header`, ""},
	{"token-has-three-parts", "2g", token, `	if len(parts) != 3 {`, `	if false {`, ""},
	{"token-is-short", "2g", token, ` || len(token) > maxToken {`, ` {`, ""},
	{"token-names-its-algorithm", "2g", token, `algorithm == "RS256" && rsa`, `rsa`, ""},
	{"token-has-a-whole-signature", "2g", token, ` || len(signature) != 64 {`, ` {`, ""},
	{"token-of-the-issuer", "2g", token, `	case issuer == "" || c.Issuer != issuer:`, `	case false:`, ""},
	{"token-for-us", "2g", token, `	case v.Audience == "" || !slices.Contains(several, v.Audience):`, `	case several == nil && v.Audience == "nobody":`, ""},
	{"token-of-a-sender", "2g", token, `	case !slices.ContainsFunc(v.Subjects, fits):`, `	case !slices.ContainsFunc(v.Subjects, fits) && false:`, ""},
	{"token-of-now", "2g", token, `	case c.Expires <= 0 || now.After(seconds(c.Expires).Add(skew)):`, `	case false:`, ""},
	{"headers-have-names", "4", event, `		case isAttribute && !attributeForm.MatchString(name):`, `		case name == "\n":`, "./shared/events ./shared/runner ./functions/dead-letter"},
	{"headers-said-once", "4", event, `		case said[header] || len(values) != 1:`, `		case said[header] && len(values) > 1<<20:`, ""},
	{"attributes-are-short", "4", event, `		if len(text) > maxValue {`, `		if false {`, ""},
	{"attributes-without-controls", "4", event, `		if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {`, `		if !utf8.ValidString(text) && unicode.IsControl(0) && false {`, ""},
	{"panic-of-a-decoder", "2g", run + "serve.go", `	defer s.recovered(&err, "unread")
`, "", ""},
	{"panic-over-a-dead-letter", "2g", lost, `	defer s.recovered(w)
`, "", ""},
	{"slow-bodies-are-cut-off", "2g", body, `	Hurry(w, r)
	most, leave`, `	most, leave`, ""},
	{"slow-senders-are-answered", "2g", run + "serve.go", `	events.Hurry(w, r)
`, "", ""},
	{"slow-dead-letters-are-answered", "2g", lost, `	events.Hurry(w, r)
`, "", ""},
	{"metrics-past-the-queue-proxy", "4", "shared/events/scrape.go", `	if forwarded(r) {`, `	if forwarded(r) && false {`, "./shared/events -run=TestScrapes"},
	{"reasons-of-kubelets-are-no-labels", "4", "shared/metrics/scaling.go", `		if !reasonForm.MatchString(reason) {`, `		if !reasonForm.MatchString(reason) && false {`, "./shared/metrics -run=TestReasonsThatAreNone"},
	{"labels-are-short", "4", "shared/metrics/gauges.go", `	if len(value) > maxLabel {`, `	if len(value) > maxLabel<<20 {`, "./shared/metrics -run=TestLabelsAreShort"},
	{"zones-of-guests-are-no-addresses", "4", "shared/provider/vsphere/instance.go", ` || ip.Zone() != "" || ip.IsUn`, ` || ip.IsUn`, "./shared/provider/vsphere -run=TestAddressesAre"},
	{"addresses-of-guests-end", "4", "shared/provider/vsphere/instance.go", `			if len(all) > mostAddresses {`, `			if false {`, "./shared/provider/vsphere -run=TestAddressesAre"},
	{"addresses-of-an-engines-guests-end", "4", "shared/provider/ovirt/instance.go", `			if len(all) > mostAddresses {`, `			if false {`, "./shared/provider/ovirt -run=TestAddressesAre"},
	{"instance-is-no-template", "4", "shared/provider/vsphere/resolve.go", `	if m := found[0]; m.Mark.Cluster != "" && `, `	if m := found[0]; false && `, "./shared/provider/vsphere -run=TestInstanceOfAMachine"},
	{"ignition-of-another-is-taken-off", "4", "shared/provider/vsphere/configure.go", `			option(ofIgnition, ""), option(ofIgnition+coding, ""), option(keyConfigured, how))`, `			option(keyConfigured, how))`, "./shared/provider/vsphere -run=TestTemplatesUserData"},
	{"cloud-init-of-another-is-taken-off", "4", "shared/provider/vsphere/configure.go", `		option(ofCloudInit, ""), option(ofCloudInit+coding, ""), option(aboutGuest, ""), option(aboutGuest+coding, ""), option(`, `		option(`, "./shared/provider/vsphere -run=TestTemplatesUserData"},
	{"vsphere-counts-no-more-than-can-be", "4", "shared/provider/vsphere/spec.go", `return max(0, min(n, most)) }`, `return n }`, "./shared/provider/vsphere -run=TestSpecStates"},
	{"vsphere-memory-can-be-counted", "4", "shared/provider/vsphere/spec.go", `	if s.MemoryMiB > most {`, `	if false {`, "./shared/provider/vsphere -run=TestSizesThat"},
	{"vsphere-disk-can-be-counted", "4", "shared/provider/vsphere/spec.go", `	if s.DiskGiB > most {`, `	if false {`, "./shared/provider/vsphere -run=TestSizesThat"},
	{"schedules-end", "4", "shared/autoscaling/schedule.go", `	if len(text) > longestSchedule {`, `	if false {`, "./shared/autoscaling -run=TestEndlessSchedules"},
	{"readiness-is-asked-once", "2g", run + "ready.go", `	if time.Since(s.ready.good) < readyFor {`, `	if false {`, "./shared/runner -run=TestManyWhoAsk"},
	{"credentials-that-are-gone-are-kept-by-nobody", "4", run + "clouds.go", `			c.forget(ctx, a.Key())
`, ``, "./shared/runner -run=TestDriversAreClosed"},
	{"cloud-proves-who-it-is", "4", run + "clouds.go", `	if c.StrictTLS && insecure != "" {`, `	if false {`, ""},
	{"metadata-is-no-cloud", "4", reach, `		if p.Contains(at) {`, `		if p.Contains(at) && false {`, ""},
	{"unspecified-is-no-cloud", "4", reach, `	if at := plain(a.Addr()); at.IsUnspecified() {`, `	if at := plain(a.Addr()); at.IsUnspecified() && false {`, ""},
	{"translated-is-the-same", "4", reach, `		if h.prefix.Contains(at) {`, `		if h.prefix.Contains(at) && false {`, ""},
	{"zone-hides-nothing", "4", reach, `return a.WithZone("").Unmap() }`, `return a.Unmap() }`, ""},
	{"unreadable-is-no-cloud", "4", reach, `		return provider.Errorf(provider.Denied, "%q is no address`, `		return nil
		return provider.Errorf(provider.Denied, "%q is no address`, ""},
	{"link-local-is-no-cloud", "4", reach, `	if at.IsLinkLocalUnicast() {`, `	if false {`, ""},
	{"api-server-is-no-cloud", "4", reach, `	if at == plain(api) {`, `	if at == plain(api) && false {`, ""},
	{"ec2-is-asked-over-http", "4", "shared/provider/aws/client.go", `u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {`, `u.Host == "" {`, ""},
	{"ec2-endpoint-holds-no-secret", "4", "shared/provider/aws/client.go", `err != nil || u.User != nil || `, `err != nil || `, "./shared/provider/aws -run=TestEndpointHolds"},
	{"openstack-is-asked-over-http", "4", "shared/provider/openstack/clouds.go", ` || at.Scheme != "http" && at.Scheme != "https" || at.User`, ` || at.User`, "./shared/provider/openstack -run=TestClouds"},
	{"aws-follows-no-redirect", "4", "shared/provider/aws/client.go", `		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
`, "", ""},
	{"openstack-follows-no-redirect", "4", "shared/provider/openstack/session.go", `		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
`, "", ""},
	{"vcenter-follows-no-redirect", "4", "shared/provider/vsphere/transport.go", `	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
`, "", ""},
	{"answers-of-clouds-end", "4", "shared/provider/throttle/throttle.go", `	answer.Body = bounded(answer)`, `	_ = bounded`, "./shared/provider/throttle ./shared/provider/aws ./shared/provider/openstack ./shared/provider/vsphere"},
	{"words-of-clouds-are-cut", "4", "shared/runner/apply.go", `, mostSaid)`, `, mostSaid<<20)`, "./shared/runner"},
	{"pause-holds-whoever-waits", "2c", limits, `		if l.paused(time.Now()) <= 0 {`, `		if true {`, ""},
	{"no-turn-is-of-a-pause", "2c", limits, `from := now.Add(max(l.paused(now), 0))`, `from := now`, ""},
	{"no-pause-is-for-ever", "2c", limits, `min(d, longest)`, `d`, ""},
	{"keys-are-for-signatures", "4", "shared/events/keys.go", `		case k.Use != "" && k.Use != "sig":`, `		case false:`, ""},
	{"issuer-says-its-name", "4", token, `	case issuer == "" || c.Issuer`, `	case c.Issuer`, ""},
	{"vcenter-is-dialed-by-us", "4", "shared/provider/vsphere/transport.go", `, t.DialTLSContext, t.ForceAttemptHTTP2 = throttle.Dialer(deadline).DialContext, nil, false`, ` = throttle.Dialer(deadline).DialContext`, ""},
	{"ec2-is-dialed-by-us", "4", "shared/provider/aws/client.go", `		DialContext:           throttle.Dialer(deadline).DialContext,
`, "", ""},
	{"openstack-is-dialed-by-us", "4", "shared/provider/openstack/session.go", `		DialContext:           throttle.Dialer(5 * time.Second).DialContext,
`, "", ""},
	{"tagging-session-ends", "G10", "shared/provider/vsphere/session.go", `	for ; err != nil; err = errors.Unwrap(err) {`, `	for ; err != nil; err = nil {`, "./shared/provider/vsphere -run=TestTagging"},
	{"tagging-password-is-told-once", "4", "shared/provider/vsphere/session.go", `	if err := s.barred(); err != nil {
		return nil, err
	}
	client := rest`, `	client := rest`, "./shared/provider/vsphere -run=TestTagging"},
	{"address-is-no-other-object", "4", "shared/provider/vsphere/address.go", `len(wrong) > 0 { // it would`, `len(wrong) < 0 { // it would`, "./shared/provider/vsphere -run=TestAddress"},
	{"list-beside-instances-that-go", "2c", "shared/provider/vsphere/clones.go", `		if !gone {
			return all, err`, `		if gone || !gone {
			return all, err`, "./shared/provider/vsphere -run=TestListBeside"},
	{"list-leaves-no-view", "2c", "shared/provider/vsphere/clones.go", `end.Add(-tidying)`, `end.Add(-tidying / 1000)`, "./shared/provider/vsphere -run=TestListThat"},
	{"ports-of-a-vcenter", "4", "shared/provider/vsphere/session.go", `port != "" && port != "443" &&`, `false &&`, ""},
	{"empty-answer-proves-nothing", "4", "shared/provider/vsphere/whole.go", `r.Kind() == reflect.Pointer && r.IsNil() {`, `r.Kind() == reflect.Pointer && r.IsNil() && false {`, ""},
	{"vcenter-has-managers", "4", "shared/provider/vsphere/whole.go", `has.SessionManager == nil || has.ViewManager == nil || has.SearchIndex == nil {`, `has.SessionManager == nil && false {`, ""},
	{"ec2-speaks-no-old-tls", "4", "shared/provider/aws/client.go", `MinVersion: tls.VersionTLS12`, `MinVersion: tls.VersionTLS10`, "./shared/provider/drivers"},
	{"openstack-speaks-no-old-tls", "4", "shared/provider/openstack/clouds.go", `MinVersion: tls.VersionTLS12`, `MinVersion: tls.VersionTLS10`, "./shared/provider/drivers"},
	{"vcenter-speaks-no-old-tls", "4", "shared/provider/vsphere/session.go", `MinVersion = tls.VersionTLS12`, `MinVersion = tls.VersionTLS10`, "./shared/provider/drivers"},
	{"zones-are-words", "4", "shared/provider/vsphere/configure.go", `	if !zone.MatchString(a.Zone()) {`, `	if !zone.MatchString(a.Zone()) && false {`, ""},
	{"gateways-of-pools-are-addresses", "4", "shared/provider/vsphere/address.go", `	if _, err := parseAddress(g.Spec.Gateway); err != nil && g.Spec.Gateway != "" {`, `	if false {`, ""},
	{"names-of-guests-are-quoted", "4", "shared/provider/vsphere/configure.go", `"instance-id: %q\nlocal-hostname: %q\n"`, `"instance-id: %s\nlocal-hostname: %s\n"`, ""},
	{"size-of-a-spec", "4", "shared/providerspec/decode.go", `	if len(raw) > maxBytes {`, `	if false {`, ""},
	{"depth-of-a-spec", "4", "shared/providerspec/decode.go", `	if nesting(raw) > maxDepth {`, `	if false {`, ""},
	{"records-are-read-strictly", "4", words + "record.go", `	wrong, err := kjson.UnmarshalStrict(`, `	wrong, err := []error(nil), kjson.UnmarshalCaseSensitivePreserveInts(`, ""},
	{"failures-of-a-ledger-can-be-counted", "4", words + "ledger.go", `	case l.Failures < 0:`, `	case false:`, "./functions/scale-machineset ./shared/machine"},
	{"failures-of-an-attempt-can-be-counted", "4", words + "intent.go", `	if i.Failures < 0 {`, `	if false {`, ""},
	{"refusals-of-tags-can-be-counted", "4", provision + "tags.go", ` || p.Failures < 0:`, `:`, "./functions/provision-machine -run=TestScenarios"},
	{"failures-of-a-group-can-be-counted", "4", "shared/autoscaling/state.go", `		if g.Failures < 0 || `, `		if `, ""},
	{"useless-nodes-can-be-counted", "4", "shared/autoscaling/state.go", `return u.Times < 1 })`, `return u.Times < 1 && false })`, ""},
	{"record-of-a-check-is-read-strictly", "4", heal + "record.go", `machine.ReadSchema(text, &r, &r.Schema, recordSchema)`, `json.Unmarshal([]byte(text), &r)`, ""},
	{"state-of-the-sweep-is-read-strictly", "4", words + "sweep.go", `ReadSchema(text, &s, &s.Schema, sweepSchema)`, `json.Unmarshal([]byte(text), &s)`, ""},
	{"budget-is-read-strictly", "4", words + "disruption.go", `ReadSchema(cm.Data[DisruptionKey], &d, &d.Schema, disruptionSchema)`, `json.Unmarshal([]byte(cm.Data[DisruptionKey]), &d)`, ""},
	{"answers-of-clouds-tell-no-secrets", "4", run + "unspoken.go", `	if text := secrets.Replace(err.Error()); text != err.Error() {`, `	if text := err.Error(); false {`, ""},
	{"secrets-in-any-yaml", "4", run + "spellings.go", `	return append(found, leaves(parsed, false)...)`, `	return found`, ""},
	{"too-many-aliases-are-not-followed", "2c", run + "spellings.go", `	if provider.Expands(value) {`, `	if false && provider.Expands(value) {`, ""},
	{"clouds-file-does-not-expand", "2c", "shared/provider/openstack/clouds.go", `	if provider.Expands(text) {`, `	if provider.Expands(text) && false {`, ""},
	{"what-aliases-become-is-counted", "2c", "shared/provider/expansion.go", `	return size(file) > mostExpanded`, `	return size(file) > mostExpanded && false`, ""},
	{"files-that-expand-are-not-read", "2c", "shared/provider/expansion.go", `	if Expands([]byte(text)) {`, `	if Expands([]byte(text)) && false {`, ""},
	{"large-files-are-not-counted", "2c", "shared/provider/expansion.go", `	if len(text) > mostCounted {`, `	if false {`, ""},
	{"much-that-is-secret-is-not-spelled", "2c", run + "unspoken.go", ` || size > mostSecret; !u.mute {`, `; !u.mute {`, ""},
	{"user-data-is-forgotten", "2c", run + "unspoken.go", `; len(u.of) > mostRemembered {`, `; len(u.of) > mostRemembered*1000 {`, ""},
	{"secrets-in-any-spelling", "4", run + "spellings.go", `	for before := range 3 {`, `	for before := range 0 {`, ""},
	{"cut-secrets-are-not-told", "4", run + "unspoken.go", `		if n := begun(part, all); n > 0 {`, `		if n := begun(part, all); n > 0 && false {`, ""},
	{"user-data-is-not-told", "4", run + "clouds.go", `			secrets.userData(name, version, values)`, ``, ""},
	{"instances-tell-no-secrets", "4", run + "denied.go", `		if text == in.Message {`, `		if text != "" || text == in.Message {`, ""},
	{"credentials-are-printed-by-key", "4", "shared/provider/credentials.go", `		keys[key] = "(secret)"`, `		keys[key] = string(c[key])`, ""},
	{"credentials-for-every-verb", "4", "shared/provider/credentials.go", `io.WriteString(s, c.String())`, `io.WriteString(s, fmt.Sprint(map[string][]byte(c)))`, ""},
	{"credentials-in-json", "4", "shared/provider/credentials.go", `json.Marshal(c.keys())`, `json.Marshal(map[string][]byte(c))`, ""},
	{"aws-keeps-no-credentials", "4", "shared/provider/aws/aws.go", `	a.Credentials = nil // which nobody reads again
`, "", "./shared/provider/drivers"},
	{"openstack-keeps-no-credentials", "4", "shared/provider/openstack/openstack.go", `			a.Credentials = nil // which nobody reads again
`, "", "./shared/provider/drivers"},
	{"vcenter-keeps-no-credentials", "4", "shared/provider/vsphere/session.go", `	a.Credentials = nil // which nobody reads again
`, "", "./shared/provider/drivers"},
	{"panics-of-drivers-tell-no-secrets", "4", run + "survived.go", `text := secrets.Replace(fmt.Sprint(p.Value))`, `text := fmt.Sprint(p.Value)`, ""},
	{"victims-that-cannot-be-read-hold-the-set", "2a.9", scale + "ledger.go", `	known := err == nil || len(`, `	known := err == nil || true || len(`, ""},
	{"victims-are-read-strictly", "2a.9", words + "ledger.go", `ReadRecord(text, &v)`, `json.Unmarshal([]byte(text), &v)`, "./functions/scale-machineset"},
	{"who-takes-the-names-is-not-given-one-after-another", "2a.8", scale + "execute.go", `next = failedAgain(s.Now, set, next)`, `_ = x`, ""},
	{"former-failures-are-over-for-taken-names", "2a.8", scale + "execute.go", `next := forgive(set, l, m)`, `next := l`, ""},
	{"names-taken-at-once-are-one-failure", "2a.8", scale + "execute.go", `!sameRow(next, x)`, `x != nil`, ""},
	{"victims-that-cannot-be-read-are-not-written-over", "2a.9", autoscale + "group.go", ` || unread != nil`, ` || unread != nil && false`, "./functions/evaluate-autoscale -run=TestScenarios"},
	{"answer-to-a-write-is-the-servers", "G5", "shared/cluster/kube/wire.go", `	return said.written()`, `	_ = said
	return nil`, "./shared/cluster/kube -run=TestErrorsOfWrites"},
	{"write-is-not-sent-elsewhere", "G5", "shared/cluster/kube/kube.go", `return http.ErrUseLastResponse`, `return nil`, "./shared/cluster/kube -run=TestErrorsOfWrites"},
	{"write-of-a-driver-is-not-sent-elsewhere", "G5", "shared/provider/kubeapi/client.go", `return http.ErrUseLastResponse`, `return nil`, "./shared/provider/kubeapi -run=TestPaths"},
	{"one-name-in-a-path", "4", "shared/provider/kubeapi/client.go", `part != "" && len(wrong) > 0`, `part != "" && len(wrong) > 99`, "./shared/provider/kubeapi -run=TestPaths"},
	{"list-without-a-revision-is-not-kept", "G2", "shared/cluster/kube/view.go", ` || v.version == 0 || `, ` || `, "./shared/cluster/kube -run=TestListWithoutARevision"},
	{"strange-names-stop-nobody", "2c", "shared/cluster/kube/observe.go", `	if _, err := at.path(); err != nil {`, `	if false {`, "./shared/cluster/kube -run=TestNameThat"},
	{"another-object-is-no-absence", "G5", "shared/cluster/kube/observe.go", `	if o.GetName() != q.Name || o.GetNamespace() != q.Namespace {`, `	if false {`, "./shared/cluster/kube -run=TestNoList"},
	{"selectors-say-one-thing", "4", "shared/cluster/kube/observe.go", `fields.EscapeValue(q.Node)`, `q.Node + fields.EscapeValue("")`, "./shared/cluster/kube -run=TestSelectors"},
	{"too-large-for-storage-is-refused", "G5", "shared/cluster/kube/apply.go", `	case tooLarge(err):`, `	case false && tooLarge(err):`, "./shared/cluster/kube -run=TestErrorsOfWrites"},
	{"words-of-api-servers-are-cut", "4", run + "apply.go", `Message: said(refused.Err)}`, `Message: refused.Err.Error()}`, "./shared/runner -run=TestWordsOfAnAPIServer"},
	{"problems-of-sets-are-told-in-short", "4", scale + "status.go", `plan.Cut(problem, maxProblem)`, `plan.Cut(problem, maxProblem<<20)`, "./functions/scale-machineset -run=TestWhatIsWrongWithASet"},
	{"adopted-have-room", "4", scale + "ledger.go", `!room.take(x) {`, `!room.take(x) && false {`, "./functions/scale-machineset -run=TestOrphansWithLongNames"},
	{"name-taken-is-no-rebuild", "2a.7", scale + "execute.go", `next.Active, next.Rebuilt = l.Active.Without(k), "" //`, `next.Active = l.Active.Without(k) //`, "./functions/scale-machineset ./test/sim -run=TestScenarios|TestKeptSchedules"},
	{"let-go-have-room-kept", "2a.6", scale + "ledger.go", `!room.spare(gone)`, `!room.take(gone)`, "./functions/scale-machineset -run=TestFullLedger"},
	{"registered-have-room", "4", scale + "ledger.go", ` || !room.take(member) {`, ` || !room.take(member) && false {`, "./functions/scale-machineset -run=TestOrphansAtTheir"},
	{"finds-have-room", "4", sweep + "remember.go", ` || size > room:`, `:`, "./functions/sweep-instances -run=TestFindsWithLongKeys"},
	{"kept-nodes-have-room", "4", words + "keep.go", `room -= size(key); room < 0 {`, `room -= size(key); false {`, "./shared/machine -run=TestKeptNodeHasRoom"},
	{"carried-annotations-have-room", "4", words + "carried.go", `size > maxCarried {`, `size < 0 {`, "./shared/machine -run=TestAnnotationsThatFit"},
	{"given-up-have-room", "4", autoscale + "lost.go", `min(int(g.target-g.min), mostGivenUp)`, `min(int(g.target-g.min), mostGivenUp<<9)`, "./functions/evaluate-autoscale -run=TestThoseThatWereNeverMade"},
	{"who-is-gone-makes-room", "2c", scale + "ledger.go", `	if len(strangers) > 0 && taken(l.Adopted).full() {`, `	if false {`, "./functions/scale-machineset -run=TestWhatIsGone"},
	{"finds-have-room-beside-specs", "4", sweep + "remember.go", `min(maxSightingBytes, maxStateBytes-len(next.String()))`, `maxSightingBytes`, "./functions/sweep-instances -run=TestFindsHaveRoom"},
	{"kept-beside-what-is-there-has-room", "4", words + "keep.go", `min(maxKept, room/2)`, `maxKept`, "./shared/machine -run=TestKeptNodeHasRoom"},
	{"haste-is-of-an-endpoint", "4", "shared/provider/aws/client.go", `a.Region, value("aws_endpoint_url"), value`, `a.Region, value`, "./shared/provider/aws -run=TestHaste"},
	{"accounts-have-room", "4", sweep + "remember.go", `Sightings: map[string]metav1.Time{}}.Fitted()`, `Sightings: map[string]metav1.Time{}}, []string(nil)`, "./functions/sweep-instances -run=TestLongSpecs"},
	{"new-account-has-room", "4", provision + "account.go", `state, former := state.Fitted()`, `former := []string(nil)`, "./functions/provision-machine -run=TestAccountIsRemembered"},
	{"account-without-its-spec-is-looked-into", "2b.10", sweep + "accounts.go", `			a.Spec = inUse[key].Spec`, `			a.Spec = nil`, "./functions/sweep-instances -run=TestAccountWithout"},
	{"regions-are-short", "4", run + "clouds.go", `	if len(region) > maxName {`, `	if false {`, "./shared/runner -run=TestLong"},
	{"names-of-accounts-are-short", "4", run + "denied.go", ` && len(owner) > maxName {`, ` && false {`, "./shared/runner -run=TestLong"},
	{"who-never-ran-forgives-nothing", "2a.8", scale + "ledger.go", `x.Status.NodeRef != nil && x.Creation`, `x.Creation`, "./functions/scale-machineset -run=TestFailuresAreForgiven"},
	{"pause-without-failures", "2a.8", scale + "ledger.go", `	return l.Failures > 0 && l.Next`, `	return l.Next`, "./functions/scale-machineset -run=TestPauseWithout"},
	{"instance-that-nobody-looked-for", "G5", run + "wait.go", `(l.Open || !was.Open) && `, ``, "./shared/runner -run=TestAnswersStand"},
	{"who-makes-room-is-told-of", "2b.10", provision + "account.go", `	if len(former) > 0 {`, `	if false {`, "./functions/provision-machine -run=TestFormerAccounts"},
	{"null-is-no-spec", "G9", words + "sweep.go", `		if string(a.Spec) == "null" {`, `		if false {`, "./functions/sweep-instances -run=TestSpecThatAFormer"},
	{"young-machine-with-a-call", "2b.4", provision + "reads.go", `intent == nil && young(s, m)`, `young(s, m)`, "./functions/provision-machine -run=TestLooksForWhat"},
	{"machine-that-waits-has-no-host", "G5", provision + "stock.go", `machine.ProviderID(m) != "" && m.DeletionTimestamp == nil ||`, `m.DeletionTimestamp == nil ||`, "./functions/provision-machine -run=TestWhoHasAHost"},
	{"hosts-of-whom-it-adopts-count", "G5", provision + "stock.go", `err == nil && machine.Adopts(`, `err == nil && false && machine.Adopts(`, "./functions/provision-machine -run=TestScenarios"},
	{"control-plane-is-not-adopted-by-others", "2a.6", words + "authority.go", ` && (MakesControlPlane(set) || !OfControlPlane(m, nil))`, ``, "./functions/scale-machineset -run=TestScenarios"},
	{"control-plane-is-adopted-by-its-own", "2a.6", words + "authority.go", `(MakesControlPlane(set) || !OfC`, `(!OfC`, "./functions/scale-machineset -run=TestScenarios"},
	{"control-plane-by-its-template", "2a.6", words + "condition.go", `	m.Labels = set.Spec.Template.Labels`, ``, "./functions/scale-machineset -run=TestScenarios"},
	{"who-is-wanted-was-not-made-anew", "2a.7", scale + "members.go", `!ok || !l.Active.Has(k) && l.MadeAnew(x, k) {`, `!ok || l.MadeAnew(x, k) {`, "./functions/scale-machineset -run=TestScenarios"},
	{"secrets-that-begin-alike", "4", run + "unspoken.go", `cmp.Or(len(b)-len(a), `, `cmp.Or(len(a)-len(b), `, "./shared/runner -run=TestSecretsThatAreAlike"},
	{"outcome-that-nobody-knows-is-delivered-again", "2g", run + "apply.go", ` || o.Result == plan.Failed
`, `
`, "./shared/runner -run=TestWhatIsLeft"},
	{"too-late-is-delivered-again", "2g", run + "apply.go", `				i.unfinished = true
				left`, `				left`, "./shared/runner -run=TestWhatIsLeft"},
	{"scan-that-was-cut-off-is-not-the-last", "2c", run + "runner.go", `if inv.decided && req.Scan() {`, `if req.Scan() {`, "./shared/runner -run=TestScanThat"},
	{"empty-provider-id-names-no-instance", "2b.1", provision + "reads.go", `	case machine.ProviderID(m) != "", unrecorded`, `	case m.Spec.ProviderID != nil, unrecorded`, ""},
	{"token-for-who-has-no-name", "2g", token, `v.Audience == "" || !slices`, `!slices`, "./shared/events -run=TestNoTokenIs"},
	{"unknown-stays-beside-what-is-done", "2g", run + "apply.go", `i.unfinished = i.unfinished || o.Result`, `i.unfinished = o.Result`, "./shared/runner -run=TestWhatIsUnknown"},
	{"object-of-another-name", "G5", "shared/cluster/kube/observe.go", `o.GetName() != q.Name || `, ``, "./shared/cluster/kube -run=TestNoList"},
	{"object-of-another-namespace", "G5", "shared/cluster/kube/observe.go", ` || o.GetNamespace() != q.Namespace {`, ` {`, "./shared/cluster/kube -run=TestNoList"},
	{"name-of-a-node-is-its-kubelets", "4", words + "carried.go", `		if key == corev1.LabelHostname {`, `		if false {`, "./shared/machine -run=TestFit"},
	{"taints-that-come-and-go-are-not-carried", "G11", words + "carried.go", `		if comeAndGo[t.Key] {`, `		if false {`, "./shared/machine -run=TestCarriedComes"},
	{"annotations-of-the-autoscaler-are-not-carried", "G11", words + "carried.go", `key == AnnotationScaleDownReason || key == AnnotationCordonedBy {`, `false {`, "./shared/machine -run=TestCarriedComes"},
	{"own-kinds-are-never-absent", "G5", "shared/cluster/kube/observe.go", ` || !cluster.Optional(r.Kind) {`, ` || !cluster.Optional(plan.LegacyHealthCheck) {`, "./shared/cluster/kube -run=TestOwnKinds"},
	{"absence-is-a-page-that-says-so", "G5", "shared/cluster/kube/observe.go", `!ok || page.code != http.StatusNotFound || `, `!ok || page.code < http.StatusNotFound || `, "./shared/cluster/kube -run=TestAbsence"},
	{"absence-is-asked-about-again", "G5", "shared/cluster/kube/observe.go", `time.Since(at) < notServedFor {`, `!at.IsZero() && notServedFor > 0 {`, "./shared/cluster/kube -run=TestKindsThatWereNot"},
	{"page-refuses-no-object-of-ours", "G5", "shared/cluster/kube/apply.go", ` == http.StatusNotFound && plan.Foreign(r.Kind) {`, ` == http.StatusNotFound {`, "./shared/cluster/kube -run=TestErrorsOfWrites"},
	{"page-of-a-proxy-refuses-nothing", "G5", "shared/cluster/kube/apply.go", `isPage && page.code == http.StatusNotFound && `, `isPage && page.code >= http.StatusNotFound && `, "./shared/cluster/kube -run=TestForeignKinds"},
	{"room-for-one-at-least", "2g", "shared/beside/beside.go", `max(1, n)`, `n`, "./shared/beside -run=TestGroupsAre"},
	{"api-server-alone-is-refused", "4", reach, `	if at == plain(api) {`, `	if api.IsValid() {`, "./shared/provider/throttle -run=TestClouds"},
	{"promise-of-a-run-to-come", "G1", "shared/flights/flights.go", ` || next.started || next.waiting`, ` || next.waiting`, ""},
	{"somebody-waits-for-what-is-promised", "2g", "shared/flights/flights.go", `next.started || next.waiting == 0 {`, `next.started {`, ""},
	{"what-is-promised-begins", "2g", "shared/flights/flights.go", ` && !mine.promised`, ``, ""},
	{"promises-are-bounded", "2g", "shared/flights/flights.go", ` && g.owed == cap(g.slots)`, ` && g.owed < 0`, ""},
	{"failure-is-told-beside-a-decision", "2g", "shared/events/reply.go", `	if err != nil || d == nil {`, `	if d == nil {`, "./shared/events -run=TestFailureIsTold"},
	{"nobody-is-hurried-without-a-body", "2g", body, `	if r.Body == nil || r.Body == http.NoBody {`, `	if r.Body == nil {`, "./shared/events -run=TestNobodyIsHurried"},
	{"object-of-no-type", "G5", "shared/cluster/kube/decode.go", `	protobuf, err := a.protobuf()
	if err != nil {
		return err
	}`, `	protobuf, _ := a.protobuf()`, "./shared/cluster/kube -run=TestNoList"},
	{"without-a-key-nothing-is-signed", "4", "shared/events/token.go", `	return false
}

func (v *Verifier) accept(`, `	return true
}

func (v *Verifier) accept(`, "./shared/events -run=TestWithoutAKey"},
	{"paused-set-follows-no-hosts", "2d", "shared/machine/authority.go", `{ return !IsHeldSet(set) && `, `{ return `, "./functions/provision-machine -run=TestScenarios"},
	{"call-without-a-turn-is-not-sent", "2c", limits, `	if err := t.Limiter.Turn(r.Context()); err != nil {`, `	if err := t.Limiter.Turn(r.Context()); err != nil && false {`, "./shared/provider/throttle -run=TestCallWithoutATurn"},
	{"turn-of-who-has-left-is-none", "2c", limits, `			if err := sleep(ctx, wait); err != nil {`, `			if err := sleep(ctx, wait); err != nil && false {`, "./shared/provider/throttle -run=TestCallThatEnds"},
	{"every-panic-ends", "2g", "shared/beside/beside.go", `				defer g.mu.Unlock()
`, ``, "./shared/beside -run=TestEveryPanic"},
	{"ready-where-it-may-look", "G5", "shared/cluster/kube/ready.go", `		if apierrors.IsForbidden(err) {`, `		if false && apierrors.IsForbidden(err) {`, "./shared/cluster/kube -run=TestReady"},
	{"process-that-hangs-is-not-alive", "2g", run + "serve.go", `longest >= stuck {`, `longest < 0 {`, "./shared/runner -run=TestProcessWith"},
}
