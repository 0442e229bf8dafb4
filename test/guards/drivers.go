// SPDX-License-Identifier: Apache-2.0

package guards

// drivers keep what is made in a cloud one, and its attempt's (RELIABILITY 2b).
var drivers = []Guard{
	{"clock-is-no-mistake-of-a-spec", "2b.4", "shared/provider/aws/errors.go", `, "InvalidSecurity.RequestHasExpired"`, ``, ""},
	{"claim-of-whatever-name", "2b.8", "shared/provider/openstack/claim.go", `launching (.+)@`, `launching ([^@]+)@`, ""},
	{"port-in-use-is-not-stale", "2b.8", "shared/provider/openstack/ports.go", ` || used || p.Device != "" {`, ` || used {`, ""},
	{"port-without-tags-may-be-anothers", "2b.8", "shared/provider/openstack/ports.go", `token == "" && age.Abs() < launchFor {`, `token == "" && age.Abs() < 0 {`, ""},
	{"host-that-carries-an-instance-is-not-taken", "2b.8", "shared/provider/aws/host.go", `	left = slices.DeleteFunc(left, func(h types.Host) bool { return len(h.Instances) > 0 })
`, ``, ""},
	{"what-belongs-to-an-instance-is-none", "2b.8", run + "list.go", `		if !in.Child {`, `		if true {`, "./shared/runner -run=TestWhatBelongs"},
	{"silence-under-one-cluster-id", "G5", run + "look.go", `l.other != nil && c.Err == nil && len`, `l.other != nil && len`, "./shared/runner -run=TestSilenceUnder"},
	{"silence-of-a-list-under-one-cluster-id", "G5", run + "list.go", `o != nil && err == nil {`, `o != nil {`, "./shared/runner -run=TestSilenceUnder"},
	{"who-did-not-look-saw-no-absence", "G5", run + "wait.go", `(l.Open || !was.Open) && `, ``, "./shared/runner -run=TestAnswersAre"},
	{"twin-of-what-is-recorded", "2b.8", run + "list.go", `known && in.UID != machine.InstanceUID(m); other`, `known; other`, "./shared/runner -run=TestTwin"},
	{"what-people-led-it-to-is-found", "2b.7", run + "list.go", `append(slices.Clip(c.Found), in)`, `[]provider.Instance{in}`, "./shared/runner -run=TestWhatPeopleLed"},
	{"removal-is-of-one-account", "2b.9", run + "apply.go", `fmt.Sprint(a.Account, " ", a.Cluster, " ", a.Key()`, `fmt.Sprint(a.Key()`, "./shared/runner -run=TestRemovalIs"},
	{"region-is-part-of-whose-account-it-is", "2b.9", "shared/provider/openstack/identity.go", `	if c.region != "" && c.project != "" {`, `	if false {`, ""},
	{"copy-is-no-machines-instance", "2b.10", "shared/provider/aws/instance.go", `	case uid == "" || copied(i):`, `	case uid == "":`, ""},
	{"copy-is-listed-as-nobodys", "2b.10", "shared/provider/aws/instance.go", `	if copied(i) { // nobody`, `	if false { // nobody`, ""},
	{"restored-volume-is-nobodys", "2b.10", "shared/provider/openstack/things.go", `	return slices.DeleteFunc(all, volume.copied), err`, `	return all, err`, ""},
	{"state-is-no-mistake-of-a-spec", "2b.4", "shared/provider/aws/errors.go", `	case passing.MatchString(code):`, `	case false:`, ""},
	{"task-that-failed-is-no-mistake-of-a-spec", "2b.8", "shared/provider/vsphere/fault.go", `	if !ok || code == provider.NotFound || code == provider.Invalid {`, `	if !ok || code == provider.NotFound {`, "./shared/provider/vsphere -run=TestStepThatFailed"},
	{"empty-id-is-no-others-instance", "2b.8", run + "look.go", `machine.ProviderID(m) != "" && err == nil`, `m.Spec.ProviderID != nil && err == nil`, "./shared/runner -run=TestEmptyProviderID"},
	{"spot-instance-is-not-told-by-its-token", "2b.10", "shared/provider/aws/instance.go", ` && i.InstanceLifecycle != types.InstanceLifecycleTypeSpot && token`, ` && token`, "./shared/provider/aws -run=TestSpotInstanceIs"},
	{"own-time-of-a-later-round-is-no-silence", "G6", run + "wait.go", `(i.rounds > 0 || time.Since(began) < hearFor):`, `(time.Since(began) < hearFor):`, "./shared/runner -run=TestOnlyOurOwn"},
	{"silence-of-a-later-round", "G6", run + "wait.go", `ctx.Err() != nil && (i`, `(i`, "./shared/runner -run=TestOnlyOurOwn"},
	{"silence-of-who-had-its-time", "G6", run + "wait.go", ` && (i.rounds > 0 || time.Since(began) < hearFor):`, ` && !began.IsZero():`, "./shared/runner -run=TestOnlyOurOwn"},
	{"later-stays-later", "G5", run + "wait.go", `c.Later = c.Later || i`, `c.Later = i`, "./shared/runner -run=TestOnlyWhatWasSaid"},
	{"what-nobody-said-does-not-stand", "G5", run + "wait.go", `!told || !l`, `told && false || !l`, "./shared/runner -run=TestOnlyWhatWasSaid"},
	{"account-that-was-never-seen-is-told-of", "G6", run + "visit.go", ` && before.Err == nil`, ` && (true || before.Err == nil)`, "./shared/runner -run=TestAccountThat"},
	{"whose-turn-comes-later-is-not-absent", "G5", run + "list.go", `c.Later = c.Later || seen`, `c.Later = seen`, "./shared/runner -run=TestWhoIsAsked"},
	{"list-that-failed-is-told-of", "G6", run + "list.go", `seen.cut && c.Err`, `c.Err`, "./shared/runner -run=TestWhoGoesOn"},
	{"throttled-cloud-is-not-asked-one-by-one", "2c", run + "list.go", ` && provider.CodeOf(err) != provider.Throttled`, ``, "./shared/runner -run=TestWhoGoesOn"},
	{"way-to-deploy-goes-with-its-machine", "2b.9", "shared/provider/metal3/delete.go", ` || h.Spec.CustomDeploy != nil`, ``, "./shared/provider/metal3 -run=TestAHostThat"},
	{"user-data-goes-with-its-machine", "2b.9", "shared/provider/metal3/delete.go", ` || h.Spec.UserData != nil`, ``, "./shared/provider/metal3 -run=TestAHostThat"},
	{"internal-error-is-no-webhooks", "G5", "shared/cluster/kube/apply.go", ` && strings.Contains(message, "failed calling webhook ")`, ` && message != ""`, "./shared/cluster/kube -run=TestOnlyBudgets"},
	{"no-project-is-nobodys-account", "2b.9", "shared/provider/openstack/identity.go", ` && c.project != "" {`, ` {`, "./shared/provider/openstack -run=TestIdentity"},
	{"token-of-what-goes-is-used-up", "2b.2", "shared/provider/kubemark/create.go", `	case rec.IsGone(now), !rec.Deleted.IsZero():`, `	case rec.IsGone(now):`, "./shared/provider/kubemark -run=TestTokenOf"},
	{"token-of-what-vanished-is-used-up", "2b.2", "shared/provider/kubemark/create.go", `	case rec.IsGone(now), !rec.Deleted.IsZero():`, `	case !rec.Deleted.IsZero():`, "./shared/provider/kubemark -run=TestTokenOf"},
	{"address-that-nobody-sees-is-not-free", "G5", "shared/provider/kubemark/create.go", `	taken, err := d.before(ctx, rec, map[string]string{labelAddress: rec.Address})
	if err != nil {`, `	taken, err := d.before(ctx, rec, map[string]string{labelAddress: rec.Address})
	if err != nil && false {`, "./shared/provider/kubemark -run=TestWhatCannot"},
	{"host-stays-where-instances-are-not-known", "G5", "shared/provider/aws/remove.go", `	if provider.CodeOf(none) != provider.NotFound {`, `	if none == nil {`, "./shared/provider/aws -run=TestHostStays"},
	{"unknown-beside-one-that-ended", "2b.9", "shared/provider/aws/remove.go", `unseen = unseen || len(known)`, `unseen = len(known)`, "./shared/provider/aws -run=TestRecordedInstanceBeside"},
	{"instance-that-its-id-alone-shows", "2b.9", "shared/provider/aws/remove.go", `		found = append(found, slices.DeleteFunc(known, func(i types.Instance) bool { return !d.means(r, i) })...)
`, ``, "./shared/provider/aws -run=TestInstanceThatIts"},
	{"ec2-instance-of-another-cluster", "2b.9", "shared/provider/aws/instance.go", `	case tagOf(i, d.tagCluster()) != owned:`, `	case false:`, "./shared/provider/aws -run=TestWhose"},
	{"ec2-instance-of-another-attempt", "2b.8", "shared/provider/aws/instance.go", `	case r.Attempt && attemptOf(aws.ToString(i.ClientToken)) != r.Token:`, `	case false:`, "./shared/provider/aws -run=TestWhose"},
	{"spec-makes-no-instance-another-clusters", "2b.6", "shared/providerspec/aws.go", ` || strings.HasPrefix(t.Name, AWSTagCluster) || `, ` || `, "./shared/provider/aws -run=TestSpecDoes"},
	{"server-of-another-cluster", "2b.9", "shared/provider/openstack/find.go", `	case !o.cluster:`, `	case false:`, "./shared/provider/openstack -run=TestWhose"},
	{"server-of-another-attempt", "2b.8", "shared/provider/openstack/find.go", `	case r.Attempt && o.token != r.Token:`, `	case false:`, "./shared/provider/openstack -run=TestWhose"},
	{"clone-of-another-cluster", "2b.9", "shared/provider/vsphere/clones.go", `	case m.Mark.Cluster != d.account.ClusterID:
		return false
`, ``, "./shared/provider/vsphere -run=TestWhose"},
	{"clone-of-another-attempt", "2b.8", "shared/provider/vsphere/clones.go", `	case r.Attempt && m.Mark.Token != r.Token:`, `	case false:`, "./shared/provider/vsphere -run=TestWhose"},
	{"ports-of-others-are-not-adopted", "2b.9", "shared/provider/openstack/delete.go", `		if p.Device != s.ID || tagged(p.Tags) ||`, `		if tagged(p.Tags) ||`, "./shared/provider/openstack -run=TestPortsOfOthers"},
	{"instance-without-a-word-of-its-tags", "G5", "shared/provider/openstack/things.go", `	if s.Tags != nil || s.unknown() {`, `	if true {`, "./shared/provider/openstack -run=TestInstanceWithoutAWord"},
	{"spec-of-what-runs-is-not-judged", "2b.9", "shared/provider/openstack/openstack.go", `			s, err := decode(spec)
			if err == nil && (s.CloudName`, `			s, err := parse(spec, "")
			if err == nil && (s.CloudName`, "./shared/provider/openstack -run=TestSpecOfWhat"},
	{"ports-of-another-cluster-are-not-adopted", "2b.9", "shared/provider/openstack/delete.go", `		if p.Device != s.ID || tagged(p.Tags) ||`, `		if p.Device != s.ID ||`, "./shared/provider/openstack -run=TestPortsOfOthers"},
	{"instance-stays-until-its-ports-are-marked", "2b.8", "shared/provider/openstack/delete.go", `	if err := d.mark(ctx, c, r, s); err != nil {`, `	if err := d.mark(ctx, c, r, s); err != nil && false {`, "./shared/provider/openstack -run=TestInstanceStays"},
	{"port-of-an-instance-that-runs-stays", "2b.9", "shared/provider/openstack/delete.go", `	case s.deleting() && owner.cluster && owner.uid == of.uid`, `	case owner.cluster && owner.uid == of.uid`, "./shared/provider/openstack -run=TestPortOfAnInstanceThatRuns"},
	{"look-that-failed-makes-no-clone", "G5", "shared/provider/vsphere/create.go", `	m, err := d.one(ctx, c, r)
	if err != nil {`, `	m, err := d.one(ctx, c, r)
	if err != nil && false {`, "./shared/provider/vsphere -run=TestLookThat"},
	{"what-was-begun-is-not-nothing", "2b.8", "shared/provider/vsphere/create.go", `there = there || m != nil`, `there = m != nil`, "./shared/provider/vsphere -run=TestLookThat"},
	{"host-is-asked-for-by-its-id", "2b.9", "shared/provider/aws/host.go", `&ec2.DescribeHostsInput{HostIds: []string{id}}`, `&ec2.DescribeHostsInput{Filter: []types.Filter{has("host-id", id)}}`, "./shared/provider/aws -run=TestWhichHostsAre"},
	{"answer-without-hosts-is-no-absence", "G5", "shared/provider/aws/host.go", `		if page.Hosts == nil {`, `		if false {`, "./shared/provider/aws -run=TestHostsThatNothing"},
	{"answer-without-balancers-is-no-absence", "G5", "shared/provider/aws/balancer.go", `	if err == nil && found.LoadBalancers == nil {`, `	if false {`, "./shared/provider/aws -run=TestInstanceStaysUntil"},
	{"answer-without-targets-is-no-absence", "G5", "shared/provider/aws/balancer.go", `		if page.TargetGroups == nil {`, `		if false {`, "./shared/provider/aws -run=TestInstanceStaysUntil"},
	{"answer-without-types-is-no-absence", "G5", "shared/provider/aws/types.go", `		if len(found) == 0 { //`, `		if false { //`, "./shared/provider/aws -run=TestAnswerWithoutTypes"},
	{"instance-that-was-not-asked-for", "2b.9", "shared/provider/aws/create.go", `return !is(i) })`, `return !is(i) && false })`, "./shared/provider/aws -run=TestInstanceThatWasNotAsked"},
	{"hosts-of-others-stay", "2b.9", "shared/provider/aws/host.go", `return !d.allocatedBy(h) || released(h)`, `return released(h)`, "./shared/provider/aws -run=TestWhichHostsAre"},
	{"hosts-of-other-machines-stay", "2b.9", "shared/provider/aws/host.go", `		found, err = d.allocated(ctx, has("tag:"+tagUID, string(r.UID)))`, `		found, err = d.allocated(ctx)`, "./shared/provider/aws -run=TestWhichHostsAre"},
	{"host-of-another-attempt-stays", "2b.8", "shared/provider/aws/host.go", `	if r.Attempt {
		found =`, `	if false {
		found =`, "./shared/provider/aws -run=TestWhichHostsAre"},
	{"right-that-was-taken-away-is-no-absence-of-a-host", "G5", "shared/provider/aws/host.go", `	case r.UID != "" && p.Host == "":`, `	case r.UID != "":`, "./shared/provider/aws -run=TestHostIsNotForgotten"},
	{"host-that-could-not-be-looked-at-is-not-gone", "G5", "shared/provider/aws/host.go", `	ids, err := d.held(ctx, r, found, p)
	if err != nil {`, `	ids, err := d.held(ctx, r, found, p)
	if err != nil && false {`, "./shared/provider/aws -run=TestHostWithoutAnAnswer"},
	{"host-that-carries-an-instance-is-no-leftover", "2b.9", "shared/provider/aws/host.go", `		if len(h.Instances) > 0 {
			continue
		}
`, ``, "./shared/provider/aws -run=TestHostsThatAreNoLeftovers"},
	{"instance-that-one-page-told-is-there", "G5", "shared/provider/aws/list.go", `append(all, untold...), nil`, `all, nil`, "./shared/provider/aws -run=TestInstanceThatOnePageTold"},
	{"instance-without-its-names-is-no-other", "G5", "shared/provider/aws/instance.go", `		in, err := d.instance(ctx, i)
		if err != nil {`, `		in, err := d.instance(ctx, i)
		if err != nil && false {`, "./shared/provider/aws -run=TestInstanceWhoseNames"},
	{"what-is-not-told-is-no-address", "G5", "shared/provider/aws/instance.go", `address != "" && !slices`, `!slices`, "./shared/provider/aws -run=TestAddressesAreOf"},
	{"groups-that-select-nothing-are-not-the-clouds-own", "4", "shared/provider/aws/resolve.go", `		if len(req.Groups) == before {`, `		if len(req.Groups) < before {`, "./shared/provider/aws -run=TestWhatASpecSelects"},
	{"no-instance-without-its-user-data", "2b.4", "shared/provider/userdata.go", `	if !ok {`, `	if !ok && false {`, "./shared/provider -run=TestGuest"},
	{"ports-by-their-instances-id-that-failed", "G5", "shared/provider/openstack/delete.go", `tag(tagServer, r.ID)); err != nil {`, `tag(tagServer, r.ID)); err != nil && false {`, "./shared/provider/openstack -run=TestLookByID"},
	{"port-by-its-id-that-failed-is-no-absence", "G5", "shared/provider/openstack/delete.go", `	case err != nil:
		return nil, nil, err
	case d.tags.ownerOfPort(p).cluster:`, `	case err != nil:
	case d.tags.ownerOfPort(p).cluster:`, "./shared/provider/openstack -run=TestLookByID"},
	{"volume-by-its-id-that-failed-is-no-absence", "G5", "shared/provider/openstack/delete.go", `	case err != nil:
		return nil, nil, err
	case d.tags.ownerOf(v.`, `	case err != nil:
	case d.tags.ownerOf(v.`, "./shared/provider/openstack -run=TestLookByID"},
	{"instance-without-an-answer-keeps-its-volume", "G5", "shared/provider/openstack/detach.go", `		if provider.CodeOf(err) != provider.NotFound {
			return err
		}
`, ``, "./shared/provider/openstack -run=TestLookByID"},
	{"volume-of-an-instance-that-nobody-told-stays", "2b.9", "shared/provider/openstack/detach.go", `!isID(a.Instance) || `, ``, "./shared/provider/openstack -run=TestFromWhich"},
	{"reset-is-not-reset-again", "2f", "shared/provider/openstack/delete.go", ` || s.Status == "HARD_REBOOT"`, ``, "./shared/provider/openstack -run=TestWhichInstances"},
	{"floating-ip-of-another-port-stays", "2b.8", "shared/provider/openstack/ports.go", `	switch answer.IP.Port {
	case a.ports[0].ID:`, `	switch answer.IP.Port = ""; answer.IP.Port {
	case a.ports[0].ID:`, "./shared/provider/openstack -run=TestFloating"},
	{"floating-ip-that-another-gets-meanwhile-stays", "G3", "shared/provider/openstack/ports.go", `	if answer.IP.Revision != nil {`, `	if false {`, "./shared/provider/openstack -run=TestFloating"},
	{"members-of-a-vm-group-stay", "G3", "shared/provider/vsphere/group.go", `	want := slices.Clone(have)`, `	want := slices.Clone(have[:0])`, "./shared/provider/vsphere -run=TestWhoJoins"},
	{"vm-group-that-is-named", "G3", "shared/provider/vsphere/group.go", `vms.Name == group {`, `vms.Name != "" {`, "./shared/provider/vsphere -run=TestWhoJoins"},
	{"vm-group-that-could-not-be-read-is-not-written", "G5", "shared/provider/vsphere/group.go", `	if err != nil || joined &&`, `	if joined &&`, "./shared/provider/vsphere -run=TestWhoJoins"},
	{"whom-somebody-took-out-of-a-vm-group-is-put-back", "G3", "shared/provider/vsphere/group.go", `m.Mark.Group == groupOf(req) && `, `false && `, "./shared/provider/vsphere -run=TestWhoJoins"},
	{"vm-group-is-looked-at-after-the-start", "G3", "shared/provider/vsphere/group.go", `joined && m.Power != types.VirtualMachinePowerStatePoweredOn {`, `joined {`, "./shared/provider/vsphere -run=TestWhoJoins"},
	{"vm-group-is-of-one-cluster", "G3", "shared/provider/vsphere/group.go", `within(ctx, c, *req.Group, `, `everywhere(ctx, c, `, "./shared/provider/vsphere -run=TestWhoJoins"},
	{"who-joins-a-vm-group-asks-for-marks-alone", "4", "shared/provider/vsphere/group.go", `, keyed(keyMark), "config.instanceUuid", "config.template")`, `, details...)`, "./shared/provider/vsphere -run=TestWhoJoinsAGroupAsks"},
	{"disks-that-are-not-known-are-not-noted", "G5", "shared/provider/vsphere/create.go", `	disks, err := attached(ctx, c, m.Ref)
	if err != nil {`, `	disks, err := attached(ctx, c, m.Ref)
	if err != nil && false {`, "./shared/provider/vsphere -run=TestDisksAreNoted"},
	{"place-that-is-not-known-is-not-noted", "G5", "shared/provider/vsphere/create.go", `	home, err := folderOf(ctx, c, m.Ref)
	if err != nil {`, `	home, err := folderOf(ctx, c, m.Ref)
	if err != nil && false {`, "./shared/provider/vsphere -run=TestDisksAreNoted"},
	{"clone-is-changed-as-it-was-read", "G3", "shared/provider/vsphere/create.go", `	spec.ChangeVersion = m.Version
`, ``, "./shared/provider/vsphere -run=TestDisksAreNoted"},
	{"what-has-started-is-not-prepared-again", "G4", "shared/provider/vsphere/create.go", `	case m.Launched != nil || m.Power`, `	case m.Power`, "./shared/provider/vsphere -run=TestWhatIsPrepared"},
	{"taken-name-without-a-look-is-no-refusal", "G5", "shared/provider/vsphere/create.go", `	if err != nil || len(found) > 0 {
		return err
	}
	ref, err :=`, `	if err == nil && len(found) > 0 {
		return err
	}
	ref, err :=`, "./shared/provider/vsphere -run=TestTakenName"},
	{"daemons-that-the-secret-names", "4", "shared/provider/libvirt/endpoint.go", `	if !slices.Contains(strings.Fields(string(a.Credentials[keyURIs])), a.Region) {`, `	if false && !slices.Contains(strings.Fields(string(a.Credentials[keyURIs])), a.Region) {`, "./shared/provider/libvirt -run=TestDaemonsThatTheSecret"},
	{"lists-of-daemons-have-what-they-say", "4", "shared/provider/libvirt/wire.go", `	if _, ok := walk(shape, body); !ok || !asked {`, `	if _, ok := walk(shape, body); !ok && !asked {`, "./shared/provider/libvirt -run=TestPacketsThatLie"},
	{"packets-of-daemons-are-packets", "4", "shared/provider/libvirt/wire.go", `	if size < headSize || size > mostPacket {`, `	if size < headSize {`, "./shared/provider/libvirt -run=TestPacketsThatLie"},
	{"domain-of-another-cluster", "2b.9", "shared/provider/libvirt/domains.go", `	case m.Mark.Cluster != d.account.ClusterID || m.copied():`, `	case m.copied():`, "./shared/provider/libvirt -run=TestWhose"},
	{"copied-domain-is-nobodys", "2b.10", "shared/provider/libvirt/domains.go", `	case m.Mark.Cluster != d.account.ClusterID || m.copied():`, `	case m.Mark.Cluster != d.account.ClusterID:`, "./shared/provider/libvirt -run=TestWhose"},
	{"domain-of-another-attempt", "2b.8", "shared/provider/libvirt/domains.go", `	case r.Attempt && m.Mark.Token != r.Token:`, `	case false:`, "./shared/provider/libvirt -run=TestWhose"},
	{"volume-of-another-attempt-stays", "2b.8", "shared/provider/libvirt/remove.go", `	case r.Attempt && v.Name.Token != r.Token:`, `	case false:`, "./shared/provider/libvirt -run=TestLeftover"},
	{"volume-of-another-cluster-stays", "2b.9", "shared/provider/libvirt/domains.go", ` && n == n.sealed(d.account.ClusterID, host.Name, pool.Name) {`, ` && host.Name != "none" {`, "./shared/provider/libvirt -run=TestLeftover"},
	{"volume-with-a-domain-is-no-leftover", "2b.8", "shared/provider/libvirt/remove.go", `		if !had {`, `		if true {`, "./shared/provider/libvirt -run=TestLeftover"},
	{"domain-stays-until-its-volumes-are-seen", "2b.9", "shared/provider/libvirt/remove.go", `	if active == 0 {`, `	if active < 0 {`, "./shared/provider/libvirt -run=TestPoolThatIs"},
	{"deletion-is-noted-first", "2b.9", "shared/provider/libvirt/remove.go", `	if ours && !m.Deleting {`, `	if false {`, "./shared/provider/libvirt -run=TestPoolThatIs"},
	{"deletion-is-ended-before-a-creation", "2b.9", "shared/provider/libvirt/create.go", `	case m.Deleting, `, `	case false, `, "./shared/provider/libvirt -run=TestDeletionThat"},
	{"name-of-a-stranger-is-a-refusal", "2b.3", "shared/provider/libvirt/create.go", `	case other.UUID != uuidOf(r.UID):`, `	case false:`, "./shared/provider/libvirt -run=TestStranger"},
	{"domain-with-another-mark-is-not-made-ones-own", "2b.7", "shared/provider/libvirt/create.go", `	if m.Mark.Cluster != d.account.ClusterID || m.Mark.UID != r.UID {`, `	if false {`, "./shared/provider/libvirt -run=TestMarkThat"},
	{"what-was-recorded-of-a-domain-stays", "2b.8", "shared/provider/libvirt/create.go", `, len(r.Progress) > 0, err)`, `, false, err)`, "./shared/provider/libvirt -run=TestWhatWasRecorded"},
	{"volume-that-nobody-saw-is-not-there", "G5", "shared/provider/libvirt/volumes.go", `	case look != nil:
		return vol, look
`, ``, "./shared/provider/libvirt -run=TestRefusalWithout"},
	{"volume-of-other-user-data-is-made-anew", "2b.5", "shared/provider/libvirt/volumes.go", `	if capacity != uint64(len(data)) {`, `	if capacity == 0 {`, "./shared/provider/libvirt -run=TestUserDataThat"},
	{"domain-that-is-held-off-stays-off", "2f", "shared/provider/libvirt/power.go", `		case m.Held:`, `		case false:`, "./shared/provider/libvirt -run=TestHeldOff"},
	{"domain-that-ran-is-not-made-again", "2b.7", "shared/provider/libvirt/domains.go", ` || m.ran(libvirt.DomainShutoffReason(reason))
`, `
	_ = m.ran(libvirt.DomainShutoffReason(reason))
`, "./shared/provider/libvirt -run=TestDomainThat"},
	{"volume-of-another-host-stays", "2b.9", "shared/provider/libvirt/names.go", `cluster, host, pool, n.String()))`, `cluster, "", pool, n.String()))`, "./shared/provider/libvirt -run=TestPoolThatTwo"},
	{"copies-of-volumes-stay", "2b.9", "shared/provider/libvirt/names.go", `cluster, host, pool, n.String()))`, `cluster, host, "", n.Mark))`, "./shared/provider/libvirt -run=TestCopiesOf"},
	{"volumes-of-machines-are-no-bases", "4", "shared/provider/libvirt/resolve.go", `	if _, made := parseVolume(name); made {`, `	if _, made := parseVolume(name); made && false {`, "./shared/provider/libvirt -run=TestFilesThatASpec"},
	{"bases-lie-over-nothing", "4", "shared/provider/libvirt/resolve.go", `	if has.Backing != "" || `, `	if `, "./shared/provider/libvirt -run=TestFilesThatASpec"},
	{"bases-name-no-files", "4", "shared/provider/libvirt/resolve.go", ` || slices.Contains(linking, has.Target.Format.Type) {`, ` {`, "./shared/provider/libvirt -run=TestFilesThatASpec"},
	{"user-data-of-volumes-is-bounded", "4", "shared/provider/libvirt/resolve.go", `	if has.Capacity.Value > mostIgnition {`, `	if has.Capacity.Value > mostIgnition && false {`, "./shared/provider/libvirt -run=TestFilesThatASpec"},
	{"power-goes-before-what-waits", "2b.9", "shared/provider/libvirt/remove.go", `	if err := d.cut(l, m); err != nil {
		return err
	}
	ours :=`, `	ours :=`, "./shared/provider/libvirt -run=TestDomainWithAJob"},
	{"power-is-cut-before-it-is-noted", "2f", "shared/provider/libvirt/power.go", `		if err := d.cut(l, m); err != nil { // first: nothing else ends what the daemon waits for in it
			return err
		}
`, ``, "./shared/provider/libvirt -run=TestDomainWithAJob"},
	{"power-is-cut-of-what-was-started-meanwhile", "2f", "shared/provider/libvirt/remove.go", `	return d.cut(l, now)`, `	_ = now
	return nil`, "./shared/provider/libvirt -run=TestDomainThatIsStarted"},
	{"gone-is-what-the-driver-saw", "G5", "shared/provider/libvirt/libvirt.go", `	case err != nil && provider.CodeOf(err) == provider.NotFound:`, `	case false:`, "./shared/provider/libvirt -run=TestOnlyWhatWasSeen"},
	{"reservation-of-a-domain-stays", "2b.9", "shared/provider/libvirt/remove.go", `	if !is(err, libvirt.ErrNoDomain) { // it has one`, `	if false { // it has one`, "./shared/provider/libvirt -run=TestReservationWithout"},
	{"start-under-way-is-waited-for", "2b.7", "shared/provider/libvirt/create.go", `	case m.Starting && !m.Launched: `, `	case false: `, "./shared/provider/libvirt -run=TestStartThat"},
	{"start-under-way-is-not-complete", "2b.7", "shared/provider/libvirt/instance.go", `	case m.Starting:`, `	case false:`, "./shared/provider/libvirt -run=TestStartThat"},
	{"start-that-failed-is-not-noted", "2b.7", "shared/provider/libvirt/create.go", `	case !m.Launched && (now.Starting || now.Failed): `, `	case false: `, "./shared/provider/libvirt -run=TestStartThat"},
	{"what-is-on-record-was-complete", "2b.7", "shared/provider/libvirt/domains.go", `			m.Launched = m.Launched || recorded(r, m)
`, ``, "./shared/provider/libvirt -run=TestRecordedWithout"},
	{"domain-of-another-spec-is-not-gone-on-with", "2b.8", "shared/provider/libvirt/create.go", `		m.Mark.Token != r.Token && !m.Launched && !m.active(): `, `		false: `, "./shared/provider/libvirt -run=TestDomainOfAnother"},
	{"domain-that-runs-is-no-other-attempts", "2b.8", "shared/provider/libvirt/create.go", `		m.Mark.Token != r.Token && !m.Launched && !m.active(): `, `		m.Mark.Token != r.Token: `, "./shared/provider/libvirt -run=TestDomainOfAnother"},
	{"power-cycle-restores-nothing", "2f", "shared/provider/libvirt/create.go", `uint32(libvirt.DomainStartForceBoot)`, `0`, "./shared/provider/libvirt -run=TestPowerCycleStarts"},
	{"creation-of-what-is-held-off-waits", "2f", "shared/provider/libvirt/create.go", `		if m.Held {`, `		if false {`, "./shared/provider/libvirt -run=TestHeldOffWhile"},
	{"virtual-addresses-are-reserved-for-nobody", "2b.3", "shared/provider/libvirt/address.go", `append(leased, d.account.VirtualIPs...))`, `leased)`, "./shared/provider/libvirt -run=TestAddressesThatOthers"},
	{"leased-addresses-are-reserved-for-nobody", "2b.3", "shared/provider/libvirt/address.go", `append(leased, d.account.VirtualIPs...))`, `append(leased[:0], d.account.VirtualIPs...))`, "./shared/provider/libvirt -run=TestAddressesThatOthers"},
	{"virtual-addresses-are-no-instances", "2b.3", "shared/provider/libvirt/instance.go", `InternalIPs(heard, moving)`, `InternalIPs(heard, nil)`, "./shared/provider/libvirt -run=TestVirtualAddresses"},
	{"answers-of-daemons-were-asked-for", "4", "shared/provider/libvirt/wire.go", `	if _, ok := walk(shape, body); !ok || !asked {`, `	if _, ok := walk(shape, body); !ok || !asked && false {`, "./shared/provider/libvirt -run=TestPacketsThatLie"},
	{"errors-of-daemons-have-what-they-say", "4", "shared/provider/libvirt/wire.go", `		shape = problem
`, `		return nil
`, "./shared/provider/libvirt -run=TestPacketsThatLie"},
	{"packets-of-daemons-are-answers", "4", "shared/provider/libvirt/wire.go", `	if program != programRemote || kind != typeReply { // which the SDK would take for an answer all the same
		return fmt.Errorf("a packet of kind %d of program %#x: nobody asked for it", kind, program)`, `	if program != programRemote || kind != typeReply {
		return nil`, "./shared/provider/libvirt -run=TestPacketsThatLie"},
	{"host-is-whom-it-keeps", "2b.10", "shared/provider/libvirt/identity.go", `	pool, err := l.StoragePoolLookupByName(anchor)`, `	pool, err := l.StoragePoolLookupByName("none")`, "./shared/provider/libvirt -run=TestHost"},
	{"host-keeps-what-was-recorded", "2b.10", "shared/provider/libvirt/identity.go", `	if told := d.session.called(); told.Name != "" {`, `	if told := d.session.called(); told.Name == "none" {`, "./shared/provider/libvirt -run=TestHostIsWho"},
	{"addresses-are-looked-for-in-the-network", "2b.3", "shared/provider/libvirt/address.go", `		both = subnet.Masked()`, `		_ = subnet.Masked()`, "./shared/provider/libvirt -run=TestRangeThatIs"},
	{"start-that-hangs-is-told", "2b.4", "shared/provider/libvirt/start.go", `	if since < longestStart {`, `	if true {`, "./shared/provider/libvirt -run=TestStartThatIs"},
	{"start-under-way-is-waited-for-in-the-call", "2c", "shared/provider/libvirt/start.go", `		case !now.Starting || hurried(ctx) || time.Now().Add(wait).After(end):`, `		case true || time.Now().Add(wait).After(end):`, "./shared/provider/libvirt -run=TestStartThatIs"},
	{"sockets-ask-polkit", "4", "shared/provider/libvirt/wire.go", `	70:  "u",                     // REMOTE_PROC_AUTH_POLKIT
`, ``, "./shared/provider/libvirt -run=TestPolkit"},
	{"late-removal-of-an-attempt-takes-no-address", "2b.8", "shared/provider/libvirt/remove.go", `	if r.UID == "" || r.Attempt {`, `	if r.UID == "" {`, "./shared/provider/libvirt -run=TestReservationWithout"},
	{"what-is-held-off-has-run", "2b.7", "shared/provider/libvirt/power.go", `		if m.Launched && !m.Noted { //`, `		if false { //`, "./shared/provider/libvirt -run=TestHeldOffWithoutANote"},
	{"what-is-let-go-has-all-that-is-its", "2b.7", "shared/provider/libvirt/power.go", `		if m.state() != provider.StateIncomplete {`, `		if true {`, "./shared/provider/libvirt -run=TestWhatIsBeingMade"},
	{"virtual-addresses-are-addresses", "2b.3", "shared/provider/addresses.go", `		seen[ip.Unmap()] = true`, `		seen[ip] = true`, "./shared/provider -run=TestInternalIPs"},
	{"names-of-domains-are-names-of-files", "2b.4", "shared/provider/libvirt/names.go", `	if len(r.Name) > mostName {`, `	if false {`, "./shared/provider/libvirt -run=TestNameThatIsTooLong$"},
	{"name-alone-makes-no-instance-a-machines", "2b.3", "shared/provider/ovirt/create.go", `	if slices.ContainsFunc(all, func(i instance) bool { return d.means(provider.Ref{UID: r.UID}, i) }) {`, `	if len(all) > 0 {`, "./shared/provider/ovirt -run=TestStrangerOf"},
	{"engines-instance-of-another-cluster", "2b.9", "shared/provider/ovirt/find.go", `	case i.Mark.Cluster != d.account.ClusterID:
		return false
`, ``, "./shared/provider/ovirt -run=TestConformance/plain"},
	{"engines-instance-of-another-attempt", "2b.8", "shared/provider/ovirt/find.go", `	case r.Attempt && i.Mark.Token != r.Token:`, `	case false:`, "./shared/provider/ovirt -run=TestConformance/plain"},
	{"clone-of-an-engines-instance-is-a-copy", "2b.10", "shared/provider/ovirt/instance.go", `bool { return i.Mark.ID != "" && i.Mark.ID != i.ID }`, `bool { return false }`, "./shared/provider/ovirt -run=TestCopyIs"},
	{"volumes-of-pods-outlive-the-engines-instance", "2b.9", "shared/provider/ovirt/remove.go", `slices.DeleteFunc(slices.Clone(all), i.owns)`, `all[:0]`, "./shared/provider/ovirt -run=TestForeignDisks"},
	{"disks-of-an-instance-that-others-made-stay", "2b.9", "shared/provider/ovirt/remove.go", `	return bool(a.Bootable) ||`, `	return true ||`, "./shared/provider/ovirt -run=TestDisksOfOthers"},
	{"disk-of-the-living-is-no-leftover", "2b.10", "shared/provider/ovirt/ovirt.go", `			if !slices.ContainsFunc(found, k.belongs) {`, `			if true || slices.ContainsFunc(found, k.belongs) {`, "./shared/provider/ovirt -run=TestDiskOfALiving"},
	{"copy-of-a-disk-is-nobodys", "2b.10", "shared/provider/ovirt/wire.go", `	if m.ID != k.ID {`, `	if false {`, "./shared/provider/ovirt -run=TestCopyOfADisk"},
	{"disk-of-another-attempt-stays", "2b.8", "shared/provider/ovirt/remove.go", `	if r.Attempt {`, `	if false {`, "./shared/provider/ovirt -run=TestDiskThatIsLeft"},
	{"pages-of-the-engine-overlap", "G5", "shared/provider/ovirt/rest.go", `(len(some) == 0 || some[0].id() != all[len(all)-1].id())`, `len(some) == 0`, "./shared/provider/ovirt -run=TestListThatChanges"},
	{"engines-list-that-is-not-there", "G5", "shared/provider/ovirt/rest.go", `	case provider.CodeOf(err) == provider.NotFound: //`, `	case false: //`, "./shared/provider/ovirt -run=TestListThatIsNot"},
	{"empty-list-of-the-engine-has-nothing-else", "G5", "shared/provider/ovirt/rest.go", `	if !ok && len(answer) == 0 {`, `	if !ok {`, "./shared/provider/ovirt -run=TestListsThatAre"},
	{"null-is-no-list-of-the-engine", "G5", "shared/provider/ovirt/rest.go", `	if some == nil { //`, `	if false { //`, "./shared/provider/ovirt -run=TestListsThatAre"},
	{"refusal-is-in-the-engines-own-form", "G5", "shared/provider/ovirt/errors.go", `	if f == (faultBody{}) {`, `	if false {`, "./shared/provider/ovirt -run=FuzzJudge"},
	{"refused-action-has-its-fault-in-it", "G5", "shared/provider/ovirt/errors.go", `	if failed {
		f`, `	if false {
		f`, "./shared/provider/ovirt -run=TestCodesOf"},
	{"disks-of-the-engine-that-are-not-known-are-not-noted", "G5", "shared/provider/ovirt/steps.go", `	if err != nil {
		return m, err
	}
	for`, `	if err != nil && false {
		return m, err
	}
	for`, "./shared/provider/ovirt -run=TestDisksAreNoted"},
	{"redirect-of-an-engine-is-told", "4", "shared/provider/ovirt/errors.go", `	case res.StatusCode >= http.StatusMultipleChoices && res.StatusCode < http.StatusBadRequest:`, `	case false:`, "./shared/provider/ovirt -run=TestRedirectsAre"},
	{"engine-is-asked-by-https-alone", "4", "shared/provider/ovirt/credentials.go", `	case u.Scheme != "https":`, `	case false:`, "./shared/provider/ovirt -run=TestSecretsThat"},
	{"ids-of-an-engine-are-uuids", "4", "shared/providerspec/ovirt.go", `	if id != "" && !ovirtID.MatchString(id) {`, `	if false {`, "./shared/provider/ovirt -run=TestConformance/plain"},
	{"names-in-searches-are-words", "4", "shared/providerspec/ovirt.go", `	if n := s.TemplateName; n != "" && !ovirtName.MatchString(n) {`, `	if n := ""; n != "" {`, "./shared/provider/ovirt -run=TestConformance/plain"},
	{"engine-echoes-no-password", "4", "shared/provider/ovirt/session.go", `	text = strings.ReplaceAll(text, s.password, "(secret)")
`, ``, "./shared/provider/ovirt -run=TestNothingSecret"},
	{"refused-password-is-not-tried-again", "2c", "shared/provider/ovirt/session.go", `s.reason != nil && left > 0`, `s.reason != nil && left > refusedForLongest`, "./shared/provider/ovirt -run=TestRefusedCredentials"},
	{"comment-is-a-mark-as-a-whole", "2b.3", "shared/provider/ovirt/mark.go", ` || head != prefix(m.Cluster, m.UID)`, ``, "./shared/provider/ovirt -run=FuzzMarked"},
	{"disk-that-grows-is-waited-for", "2c", "shared/provider/ovirt/steps.go", `		case a.Disk.Status == "locked":`, `		case false:`, "./shared/provider/ovirt -run=TestDiskThatGrows"},
	{"instance-that-the-engine-took-back-is-told", "2b.4", "shared/provider/ovirt/create.go", `		case i == nil && p.ID != "": //`, `		case false: //`, "./shared/provider/ovirt -run=TestInstanceThatTheEngine"},
	{"busy-engine-refuses-nothing", "2b.8", "shared/provider/ovirt/create.go", `	if busy(err) {`, `	if false {`, "./shared/provider/ovirt -run=TestBusyIs"},
	{"what-is-being-removed-is-not-created", "2b.9", "shared/provider/ovirt/create.go", `	case i.Mark.Leaving:
		return false,`, `	case false:
		return false,`, "./shared/provider/ovirt -run=TestCreateOfWhat"},
	{"engines-state-is-no-mistake-of-a-spec", "2b.4", "shared/provider/ovirt/errors.go", ` && !strings.EqualFold(r.reason, "Operation Failed")`, ``, "./shared/provider/ovirt -run=TestCodesOf"},
	{"addresses-are-those-of-the-engines-cards", "4", "shared/provider/ovirt/instance.go", `		if !own[strings.ToLower(reported.MAC.Address)] {`, `		if false {`, "./shared/provider/ovirt -run=TestAddressesAre"},
	{"what-has-no-id-in-its-mark-owns-no-volume", "2b.9", "shared/provider/ovirt/remove.go", ` && strings.HasPrefix(a.Disk.Alias, prefix(m.Cluster, m.UID))`, ``, "./shared/provider/ovirt -run=TestVolumeOfWhat"},
	{"what-the-engine-lacks-is-not-the-instance", "G5", "shared/provider/ovirt/remove.go", `present(d.dismiss(ctx, r, i))`, `d.dismiss(ctx, r, i)`, "./shared/provider/ovirt -run=TestWhatTheEngineMisses"},
	{"disk-of-a-former-attempt-is-a-leftover", "2b.10", "shared/provider/ovirt/instance.go", ` && m.Token == i.Mark.Token`, ``, "./shared/provider/ovirt -run=TestDiskOfAFormer"},
	{"mark-names-its-instance-before-anything-else", "2b.10", "shared/provider/ovirt/create.go", `	case i.Mark.ID == "":`, `	case false:`, "./shared/provider/ovirt -run=TestCloneOfWhat"},
	{"disks-of-an-engine-have-their-names-at-once", "2b.10", "shared/provider/ovirt/create.go", `"alias": prefix(d.account.ClusterID, string(r.UID)) +`, `"alias": "rhcos" +`, "./shared/provider/ovirt -run=TestDiskOfWhatTheEngine"},
	{"wrong-password-is-tried-ever-more-seldom", "2c", "shared/provider/ovirt/session.go", `max(first, 2*s.wait)`, `max(first, s.wait)`, "./shared/provider/ovirt -run=TestWrongPassword"},
	{"engines-searches-are-not-filtered", "2b.10", "shared/provider/ovirt/find.go", ` || !i.tagged(tag)`, ``, "./shared/provider/ovirt -run=TestOthersAre"},
	{"engine-that-does-not-end-is-told", "2b.4", "shared/provider/ovirt/create.go", `	if waits && err == nil {`, `	if waits && err == nil && false {`, "./shared/provider/ovirt -run=TestLockThat"},
	{"size-that-does-not-come-is-told", "2b.4", "shared/provider/ovirt/steps.go", `			if p.Resized == mostResizes {`, `			if false {`, "./shared/provider/ovirt -run=TestResizeThat"},
	{"instance-without-network-cards-is-not-started", "2b.4", "shared/provider/ovirt/steps.go", `		if len(all) == 0 {
			return provider.Errorf(provider.Exhausted, "%s: there is none`, `		if false {
			return provider.Errorf(provider.Exhausted, "%s: there is none`, "./shared/provider/ovirt -run=TestInstanceWithoutNetwork"},
	{"denied-tag-ends-no-creation", "2b.4", "shared/provider/ovirt/steps.go", `refused && provider.CodeOf(err) == provider.Denied`, `refused && false`, "./shared/provider/ovirt -run=TestTagThat"},
	{"status-that-nobody-knows-is-no-start", "2b.4", "shared/provider/ovirt/create.go", `	case i.Status != "down": //`, `	case false: //`, "./shared/provider/ovirt -run=TestStatusThat"},
	{"illegal-disks-are-a-refusal", "2b.8", "shared/provider/ovirt/create.go", `	case i.Status == "image_illegal":`, `	case false:`, "./shared/provider/ovirt -run=TestInstanceWithIllegal"},
	{"start-without-room-is-asked-for-again", "2b.8", "shared/provider/ovirt/create.go", `roomless(d.start(ctx, i))`, `d.start(ctx, i)`, "./shared/provider/ovirt -run=TestNoHostHasRoom"},
	{"refused-note-ends-no-removal", "2b.9", "shared/provider/ovirt/remove.go", `		if refuses(err) { // for ever`, `		if false { // for ever`, "./shared/provider/ovirt -run=TestNoteThatIsRefusedEndsNoRemoval"},
	{"refused-note-loses-no-volume", "2b.9", "shared/provider/ovirt/remove.go", `!a.Disk.belongs(i) }) {`, `false && !a.Disk.belongs(i) }) {`, "./shared/provider/ovirt -run=TestNoteThatIsRefusedLoses"},
	{"refused-note-ends-no-creation", "2b.4", "shared/provider/ovirt/create.go", `		if refuses(err) && i.Mark.ID == i.ID {`, `		if false {`, "./shared/provider/ovirt -run=TestNoteThatIsRefusedEndsNoCreation"},
	{"what-may-run-is-not-off", "2b.9", "shared/provider/ovirt/remove.go", `	case err != nil && (i.Status == "unknown" || i.Status == "not_responding"):`, `	case idle:
		return true, nil
	case false:`, "./shared/provider/ovirt -run=TestWhatNobodyKnows"},
	{"volume-is-detached-of-what-is-off-alone", "2b.9", "shared/provider/ovirt/remove.go", `		if off, err := d.off(ctx, i); !off || err != nil {`, `		if off, err := d.off(ctx, i); false && !off || err != nil {`, "./shared/provider/ovirt -run=TestVolumeIsDetached"},
	{"steps-of-another-instance-are-not-done", "2b.4", "shared/provider/ovirt/create.go", `		if p.ID != i.ID {`, `		if p.ID = i.ID; false {`, "./shared/provider/ovirt -run=TestStepsOfAnother"},
	{"what-is-powering-down-is-not-reset", "2b.4", "shared/provider/ovirt/power.go", `, "powering_down":`, `:`, "./shared/provider/ovirt -run=TestPowerCycleOf"},
	{"virtual-addresses-are-no-engines-instances", "4", "shared/provider/ovirt/instance.go", `InternalIPs(heard, moving)`, `InternalIPs(heard, nil)`, "./shared/provider/ovirt -run=TestAddressesAre"},
	{"virtual-addresses-are-no-vcenters-instances", "4", "shared/provider/vsphere/instance.go", `InternalIPs(heard, moving)`, `InternalIPs(heard, nil)`, "./shared/provider/vsphere -run=TestVirtualAddresses"},
	{"removal-asks-an-engine-for-no-details", "2b.9", "shared/provider/ovirt/remove.go", `d.named(ctx, r, "")`, `d.named(ctx, r, details)`, "./shared/provider/ovirt -run=TestDetailsThatFail"},
	{"what-is-protected-is-not-stopped", "2b.9", "shared/provider/ovirt/remove.go", `	if i.Protected { //`, `	if false { //`, "./shared/provider/ovirt -run=TestWhatIsProtected"},
	{"what-is-being-saved-is-not-power-cycled", "2b.4", "shared/provider/ovirt/power.go", `	case i.Status == "saving_state" || i.Status == "restoring_state": //`, `	case false: //`, "./shared/provider/ovirt -run=TestWhatIsBeingSaved"},
	{"words-within-others-are-no-engines-sentence", "2b.4", "shared/provider/ovirt/errors.go", `" is locked.", `, `"locked", `, "./shared/provider/ovirt -run=TestSentencesOf"},
	{"reset-that-is-refused-in-no-words-is-told", "4", "shared/provider/ovirt/power.go", ` && silent(err):`, ` && false:`, "./shared/provider/ovirt -run=TestResetThat"},
}
