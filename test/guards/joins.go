// SPDX-License-Identifier: Apache-2.0

package guards

const (
	approve = "functions/approve-node/"
	link    = "functions/link-node/"
	metal   = "shared/provider/metal3/"
	vcenter = "shared/provider/vsphere/"
	nova    = "shared/provider/openstack/"
)

// joins keep out Nodes that no Machine is known to have, and tie none to another's Machine (RELIABILITY §4, 2e).
var joins = []Guard{
	{"hidden-from-who-asks-alone", "G5", run + "look.go", `	if c.Err == nil && len(c.Found) == 0 {`, `	if false {`, "./functions/provision-machine"},
	{"name-of-who-gave-it-up", "2e", link + "handler.go", ` && (ref != nil || machine.LostAt(m) == nil)`, ``, ""},
	{"whoever-gave-it-up-has-no-node", "2c", words + "match.go", `slices.DeleteFunc(slices.Clone(found), gaveUp)`, `found`, "./shared/machine -run=TestWhoseNode"},
	{"whoever-gave-it-up-claims-no-node", "2c", words + "match.go", `theirs == byInstance && gaveUp(m) != gaveUp(o)`, `theirs == byInstance && false`, "./shared/machine -run=TestWhoseNode"},
	{"request-of-a-bootstrapper", "4", approve + "handler.go", `r.serving() || asking.has(r) {`, `r.serving() || asking.has(r) || true {`, ""},
	{"more-requests-than-machines", "4", approve + "handler.go", `pending(open, s.Now) > most {`, `pending(open, s.Now) > most*1000 {`, ""},
	{"one-machine-of-that-name", "4", approve + "machine.go", `	return nil, "more than one machine " + what + ": " + plan.Few(names, fewMachines)`, `	return fit[0], plan.Few(names[:0], 0*len(what))`, ""},
	{"node-of-that-name-exists", "4", approve + "machine.go", `case k.Node(c.node) != nil:`, `case k.Node(c.node) != nil && false:`, ""},
	{"node-of-that-name-may-come-back", "4", approve + "machine.go", `	case slices.ContainsFunc(k.byNode[c.node], lives):`, `	case slices.ContainsFunc(k.byNode[c.node], lives) && false:`, "./functions/approve-node -run=TestScenarios"},
	{"name-of-what-is-lost-is-free", "G4", approve + "machine.go", ` && machine.LostAt(m) == nil }`, ` }`, "./functions/approve-node -run=TestScenarios"},
	{"machine-has-its-node", "4", approve + "machine.go", `	case m.Status.NodeRef != nil:
		return "the machine has its node already"
`, "", ""},
	{"machine-that-goes-gets-no-node", "4", approve + "machine.go", `	case m.DeletionTimestamp != nil:
		return "the machine is being deleted"
`, "", ""},
	{"within-two-hours", "4", approve + "machine.go", `	case made.Before(from), made.After(until(m)):`, `	case made.Before(from):`, ""},
	{"not-before-the-machine", "4", approve + "machine.go", `	case made.Before(from), made.After(until(m)):`, `	case made.After(until(m)):`, ""},
	{"serving-by-the-uid-of-the-node", "4", approve + "machine.go", `bool { return !machine.IsNodeOf(m, n) })`, `bool { return m.Status.NodeRef.Name != n.Name })`, ""},
	{"serving-under-its-own-names", "4", approve + "machine.go", `return named(a) && a.Address == dns })`, `return named(a) || a.Address == dns })`, ""},
	{"serving-under-its-own-addresses", "4", approve + "machine.go", ` == nil && known.Equal(ip)`, ` == nil`, ""},
	{"key-is-the-askers", "4", approve + "request.go", `	return x.CheckSignature()`, `	return nil`, ""},
	{"huge-keys-are-not-checked", "4", approve + "request.go", `key.N.BitLen() > maxKey {`, `key.N.BitLen() < 0 {`, ""},
	{"organization-of-nodes-alone", "4", approve + "request.go", `	case !slices.Equal(x.Subject.Organization, []string{group}):`, `	case len(x.Subject.Organization) == 0:`, ""},
	{"node-asks-for-itself", "4", approve + "request.go", `r.Spec.Username != userPrefix+node || `, ``, ""},
	{"node-has-the-group", "4", approve + "request.go", `(r.Spec.Username != userPrefix+node || !slices.Contains(r.Spec.Groups, group)):`, `r.Spec.Username != userPrefix+node:`, ""},
	{"usages-of-a-kubelet", "4", approve + "request.go", `	case !only(r.Spec.Usages, usage):`, `	case usage == "":`, ""},
	{"attempt-of-this-machine", "4", approve + "machine.go", `i.Own(m) && i.Started`, `i != nil && i.Started`, ""},
	{"decided-stays-decided", "4", approve + "request.go", `len(csr.Status.Certificate) > 0, len(csr.Status.Conditions) > 0:`, `len(csr.Status.Certificate) > 0:`, ""},

	{"two-machines-link-none", "2e", link + "handler.go", `		case len(ms) > 1:`, `		case false:`, ""},
	{"two-nodes-link-none", "2e", link + "handler.go", `		case len(fits[ms[0]]) > 1:`, `		case false:`, ""},
	{"second-node-stays-on-record", "2e", link + "sole.go", `	case !several && len(fit) > 1:
`, "", ""},
	{"addresses-before-it-goes", "2e", provision + "terminate.go", `	if seq := l.located(); len(seq.Do) > 0 && `, `	if seq := l.located(); false && `, ""},
	{"all-machines-before-a-link", "2e", link + "handler.go", `		case s.Has(snapshot.All("Machine")) || machine.IsNodeOf(ms[0], n) || named(ms[0], n):`, `		default:`, ""},
	{"role-of-the-node-is-noted", "2f", link + "handler.go", ` || !machine.RoleNoted(m, n) {`, ` {`, "./functions/link-node -run=TestRoleOf"},
	{"role-outlives-the-node", "2f", "shared/machine/condition.go", ` || wasControlPlane(m)`, ``, "./functions/remediate -run=TestMastersWhose"},
	{"node-ref-says-the-uid", "2e", link + "handler.go", `Name: n.Name, UID: n.UID}`, `Name: n.Name}`, ""},
	{"only-the-scan-sees-all-nodes", "2e", link + "sole.go", ` && s.Request.Scan() && `, ` && `, ""},
	{"second-node-of-a-paused-machine", "2e", link + "sole.go", `	case machine.IsPaused(m):
		return nil
`, "", ""},
	{"what-was-changed-is-put-back", "2e", link + "mark.go", `!ok || got != v {`, `!ok || got+v == "?" {`, ""},
	{"what-goes-is-not-marked", "2e", link + "handler.go", `	if m.DeletionTimestamp != nil || n.DeletionTimestamp != nil || m`, `	if m`, ""},
	{"machine-that-goes-does-not-run", "2e", link + "handler.go", `		if m.DeletionTimestamp == nil && m`, `		if m`, ""},
	{"same-instance-of-that-name", "2e", link + "handler.go", ` && machine.SameInstance(m, n) && `, ` && `, ""},
	{"name-is-no-proof-beside-another-node", "2e", link + "handler.go", ` && (ref == nil || ref.Name == n.Name)`, ` && (ref == nil || true)`, ""},
	{"paused-machine-is-not-linked", "2e", link + "handler.go", ` || machine.IsPaused(ms[0]):`, `:`, ""},
	{"node-is-given-back-once", "2e", link + "mark.go", `	if n.Annotations[machine.AnnotationMachine] == "" {`, `	if true {`, "./functions/link-node -run=TestScenarios"},
	{"annotation-names-the-machine", "2e", link + "mark.go", `	all[machine.AnnotationMachine] = m.Namespace + "/" + m.Name`, `	if all[machine.AnnotationMachine] == "" {
		all[machine.AnnotationMachine] = m.Namespace + "/" + m.Name
	}`, "./functions/link-node -run=TestScenarios"},
	{"serving-under-something", "4", approve + "request.go", `	case r.serving() && names == 0:`, `	case false:`, "./functions/approve-node -run=TestServingWithout"},
	{"hosts-of-one-name", "2c", approve + "machine.go", `	if len(fit) > manyAlike {`, `	if false {`, "./functions/approve-node -run=TestHosts"},
	{"serving-under-nobody-elses-address", "4", approve + "machine.go", `o := k.another(m, address); o != nil {`, `o := k.another(m, address); o != nil && false {`, "./functions/approve-node -run=TestServingUnder"},
	{"serving-under-no-services-name", "4", approve + "machine.go", `		if ofServices(address) {`, `		if false {`, "./functions/approve-node -run=TestServingUnder"},
	{"one-kubelet-holds-up-nobody", "4", approve + "handler.go", `!r.byNode() || of[r.Spec.Username] <= mostOfOne {`, `!r.byNode() || of[r.Spec.Username] > 0 {`, "./functions/approve-node -run=TestOneKubelet"},
	{"who-is-linked-keeps-its-node", "2e", words + "match.go", `len(linked) > 0 && len(found) > 0 {`, `len(linked) > 0 && false {`, "./functions/link-node -run=TestScenarios"},
}

// hosts keep a host from two Machines, and other people's from any (RELIABILITY 2b, R-B33).
var hosts = []Guard{
	{"host-to-let-go-is-let-go", "2b.9", metal + "delete.go", `	gone, err := d.release(ctx, h)
	switch`, `	gone, err := false, error(nil)
	switch`, "./shared/provider/metal3 -run=TestAHost"},
	{"host-that-others-take-away", "2b.9", metal + "delete.go", `	if deployed(h) {`, `	if false {`, ""},
	{"host-that-cannot-be-let-go", "2b.9", metal + "delete.go", `code == provider.Denied || code == provider.Invalid:`, `code == provider.Denied && code == provider.Invalid:`, ""},
	{"host-as-it-was-recorded", "2b.5", metal + "create.go", `		if chosen == (choice{h.Name, h.UID, h.ResourceVersion}) && `, `		if chosen.Host == h.Name && `, ""},
	{"host-is-claimed-at-its-version", "G3", metal + "create.go", `patchMetadata{h.ResourceVersion, map`, `patchMetadata{"", map`, ""},
	{"still-free-when-claimed", "2b.5", metal + "create.go", `h.ResourceVersion}) && why(h, s.HostSelector) == "" {`, `h.ResourceVersion}) {`, ""},
	{"one-host-of-a-machine", "2b.3", metal + "create.go", `		if !d.means(provider.Ref{UID: r.UID, Name: r.Name}, h) {`, `		if true {`, ""},
	{"consumed-host-is-not-free", "2b.3", metal + "create.go", `	case h.Spec.ConsumerRef != nil:
		return "consumed"
`, "", ""},
	{"host-of-somebody-else", "2b.3", metal + "create.go", `	case h.Spec.Image != nil, h.Spec.CustomDeploy != nil:
		return "provisioned by somebody else"
`, "", ""},
	{"external-host-is-not-free", "2b.3", metal + "create.go", `	case h.Spec.ExternallyProvisioned:
		return "externally provisioned"
`, "", ""},
	{"host-is-cleaned-first", "2b.9", metal + "delete.go", `	if busy(h) {
		return false, nil
	}
`, "", ""},
	{"host-of-another-claim-stays", "2b.9", metal + "metal3.go", `		return ref.UID == r.UID
`, "		return ref.Name == r.Name\n", ""},
	{"host-of-another-cluster-stays", "2b.9", metal + "metal3.go", ` && (of == "" || of == d.cluster)`, ` && of != "nobody"`, ""},
	{"host-of-another-consumer-stays", "2b.9", metal + "host.go", `	return isMachine(ref) && string(ref.UID) == uid`, `	return ref != nil && string(ref.UID) == uid`, ""},
	{"image-goes-before-the-host", "2b.9", metal + "delete.go", `h.Spec.Image != nil || h.Spec.CustomDeploy != nil || h.Spec.UserData != nil || !off {`, `!off {`, ""},
	{"one-of-two-hosts-is-there", "2b.9", metal + "delete.go", `there = there || !gone`, `there = !gone`, ""},
	{"other-host-of-a-name-stays", "2b.9", metal + "metal3.go", `given := r.UID != "" && r.ProviderID == ""`, `given := r.UID != ""`, ""},
	{"user-data-of-this-namespace", "4", "shared/providerspec/baremetal.go", `	f.ownNamespace(at("userData"), s.UserData, of)
`, "", ""},
	{"user-data-before-a-host", "2b.5", metal + "metal3.go", `!ok && values["value"] == nil {`, `!ok && false {`, ""},
	{"all-pages-of-hosts", "G2", metal + "hosts.go", `page.Continue == "" {`, `page.Continue == "" || true {`, ""},
	{"task-fails-without-a-reason", "G5", vcenter + "create.go", `	case info.State == types.TaskInfoStateError:
`, `	case info.Error != nil:
`, "./shared/provider/vsphere -run=TestTaskThat"},
	{"forgotten-task-customized-nothing", "2b.6", vcenter + "create.go", `	p.Task, p.Step = nil, ""
`, `	p.Task, p.Step, p.Customized = nil, "", p.Customized || step == stepCustomize
`, "./shared/provider/vsphere -run=TestForgottenCustom"},
	{"name-of-a-clone-that-is-made", "2b.4", vcenter + "create.go", `		if name(faultOf(err)) == "DuplicateName" {`, `		if false {`, "./shared/provider/vsphere -run=TestNameOf"},
	{"refused-step-of-a-clone", "2b.4", vcenter + "create.go", `		there = there || m != nil
`, "", "./shared/provider/vsphere -run=TestRefusedStep"},
	{"half-made-clone-is-not-started", "2b.6", vcenter + "power.go", `found[0].state() == provider.StateIncomplete {`, `false {`, "./shared/provider/vsphere -run=TestHalfMade"},
	{"snapshot-that-is-not-told", "2b.9", vcenter + "snapshot.go", `len(then.Config.Hardware.Device) == 0 {`, `false {`, "./shared/provider/vsphere -run=TestSnapshot"},
	{"replica-without-a-mark-stays", "2b.9", vcenter + "clones.go", `twice && (m.Mark.Cluster == "" || other.Mark.Cluster == "") {`, `false && twice && other.Template {`, "./shared/provider/vsphere -run=TestReplica"},
	{"replica-without-a-mark-beside-a-marked-one-stays", "2b.9", vcenter + "clones.go", `twice && (m.Mark.Cluster == "" || other.Mark.Cluster == "") {`, `twice && m.Mark.Cluster == "" && other.Mark.Cluster == "" {`, "./shared/provider/vsphere -run=TestReplicas"},
	{"replica-without-a-mark-gets-no-tags", "2b.9", vcenter + "update.go", `		if err := ambiguous(r, found); err != nil {`, `		if err := error(nil); err != nil {`, "./shared/provider/vsphere -run=TestReplica"},
	{"replica-without-the-original-stays", "2b.9", vcenter + "clones.go", ` && m.InstanceUUID != string(r.UID) && m.Name != r.Name {`, ` && false {`, "./shared/provider/vsphere -run=TestReplica"},
	{"member-that-goes-is-not-the-clone", "G5", vcenter + "group.go", `name(faultOf(err)) == "ManagedObjectNotFound" {`, `false {`, "./shared/provider/vsphere -run=TestMember"},
	{"tag-leads-nowhere-else", "4", vcenter + "tag.go", `!providerspec.VSphereTag(id) {`, `providerspec.VSphereTag("") {`, "./shared/provider/vsphere -run=TestTagsFollow"},
	{"addresses-of-an-attempt-stay", "2b.9", vcenter + "remove.go", `r.UID == "" || r.Attempt || d`, `r.UID == "" || d`, "./shared/provider/vsphere -run=TestNoClaim"},
	{"claim-at-its-version", "G3", vcenter + "address.go", `		"resourceVersion": c.ResourceVersion,
`, "", "./shared/provider/vsphere -run=TestNoClaim"},
	{"claims-are-a-list", "G5", vcenter + "address.go", `(all.Kind != "IPAddressClaimList" || all.Items == nil):`, `all.Items == nil:`, "./shared/provider/vsphere -run=TestClaimsThat"},
	{"port-of-another-instance-stays", "2b.9", nova + "delete.go", `	if !isID(p.Device) {`, `	if p.ID != "" {`, "./shared/provider/openstack -run=TestPortThatAnother"},
	{"ports-of-the-other-of-an-attempt", "2b.9", nova + "delete.go", `		alone = len(twins) <= 1`, `		alone = len(twins) < 9`, "./shared/provider/openstack -run=TestPortsOfTheOther"},
	{"port-that-the-other-has", "2b.9", nova + "delete.go", `p.Device != s.ID && (p.Device != "" || !alone) {`, `p.Device != s.ID && !alone {`, "./shared/provider/openstack -run=TestPortsOfTheOther"},
	{"port-by-its-id-is-the-clusters", "2b.9", nova + "delete.go", `	case d.tags.ownerOfPort(p).cluster:`, `	case p.ID != "":`, "./shared/provider/openstack -run=TestChildBy"},
	{"volume-by-its-id-is-the-clusters", "2b.9", nova + "delete.go", `	case d.tags.ownerOf(v.Volume.tag).cluster && !v.Volume.copied():`, `	case v.Volume.ID != "":`, "./shared/provider/openstack -run=TestChildBy"},
	{"groups-that-change-meanwhile", "G5", nova + "groups.go", `len(page) == 0 || page[0].ID != all[from].ID {`, `len(page) == 0 {`, "./shared/provider/openstack -run=TestServerGroupsThat"},
	{"no-instance-beside-its-group", "G5", nova + "groups.go", `	return id, id != "", err`, `	return id, true, err`, "./shared/provider/openstack -run=TestServerGroupThatNoList"},
	{"login-that-is-gone-is-no-absence", "G5", nova + "errors.go", `		return refusedLogin(coded(doing+": log in again", e.ErrReauth))`, `		return coded(doing+": log in again", e.ErrReauth)`, "./shared/provider/openstack -run=TestLoginThatIsGone"},
	{"login-that-is-refused-is-remembered", "2b.4", nova + "rest.go", `	if again || refusedWith(`, `	if again && false || refusedWith(`, "./shared/provider/openstack -run=TestLoginThatIsGone"},
	{"null-is-no-list", "G5", nova + "rest.go", `	} else if some == nil {`, `	} else if false {`, "./shared/provider/openstack -run=TestListOfNothing"},
	{"many-untold-are-no-list", "2c", nova + "things.go", `	if len(missing) > len(ids)/100+1 {`, `	if false {`, "./shared/provider/openstack -run=TestManyThatNoPage"},
	{"null-is-no-list-of-claims", "G5", vcenter + "address.go", `(all.Kind != "IPAddressClaimList" || all.Items == nil):`, `all.Kind != "IPAddressClaimList":`, "./shared/provider/vsphere -run=TestClaimsThat"},
	{"kind-that-a-proxy-does-not-know", "G5", vcenter + "address.go", `	case errors.Is(err, kubeapi.ErrUnserved) && a.api.Lacks(ctx, ipamGroup):
		return nil, nil`, `	case errors.Is(err, kubeapi.ErrUnserved):
		return nil, nil`, "./shared/provider/vsphere -run=TestClaimsThat"},
	{"claim-that-a-proxy-does-not-know", "G5", vcenter + "address.go", `	case errors.Is(err, kubeapi.ErrUnserved) && a.api.Lacks(ctx, ipamGroup):
		return c,`, `	case errors.Is(err, kubeapi.ErrUnserved):
		return c,`, "./shared/provider/vsphere -run=TestClaimThatAProxy"},
	{"place-beyond-those-that-are-known", "2c", vcenter + "clone.go", `at.UnitNumber != nil && *at.UnitNumber > mostOnController {`, `false {`, "./shared/provider/vsphere -run=TestDiskAtAHighPlace"},
	{"instance-of-a-copied-cluster-stays", "2b.9", nova + "find.go", `	case !o.cluster: // somebody took its tag off, unless another's is there
		return recorded && r.UID != "" && r.UID == o.uid && valueOf(s.Tags, tagCluster) == ""
`, ``, "./shared/provider/openstack -run=TestInstanceOfTheCluster"},
	{"claim-of-its-machine", "2b.9", vcenter + "address.go", `		if o.Kind == "Machine" {`, `		if o.Kind != "" {`, "./shared/provider/vsphere -run=TestNoClaimStays"},
	{"second-node-that-is-there-stays-on-record", "2e", link + "sole.go", `len(fit) == 1 && `, `len(fit) > 0 && `, "./functions/link-node -run=TestScenarios"},
	{"second-node-alone-stays-on-record", "2e", link + "sole.go", ` && machine.IsNodeOf(m, fit[0]):`, `:`, "./functions/link-node -run=TestScenarios"},
	{"node-is-marked-by-its-own-event", "G4", link + "handler.go", `s.Request.Is("Machine") && at != nil`, `at != nil`, "./functions/link-node -run=TestScenarios"},
	{"older-links-are-marked", "G4", link + "handler.go", `at != nil && s.Now.Sub(at.Time) < linkedWithin`, `at != nil`, "./functions/link-node -run=TestScenarios"},
	{"name-of-a-guest-is-no-address", "4", approve + "machine.go", `return !named(a) && known`, `return known`, "./functions/approve-node -run=TestNamesAreNoAddresses"},
	{"groups-that-are-configured", "4", approve + "reads.go", `		b.groups = split(v)`, `		_ = split(v)`, "./functions/approve-node -run=TestGroupsThatMay"},
	{"approved-by-all-machines", "4", approve + "handler.go", `!s.Has(allRequests) || !s.Has(allMachines) {`, `!s.Has(allRequests) {`, "./functions/approve-node -run=TestNothingIsApproved"},
	{"host-of-another-group-stays", "2b.10", metal + "host.go", ` && strings.HasPrefix(ref.APIVersion, consumerGroup)`, ` && strings.Contains(ref.APIVersion, "/")`, "./shared/provider/metal3 -run=TestHostsOf"},
	{"host-of-another-kind-stays", "2b.10", metal + "host.go", ` && ref.Kind == consumerKind`, ``, "./shared/provider/metal3 -run=TestHostsOf"},
	{"host-deployed-in-its-own-way-is-let-go-by-nobody", "2b.3", metal + "host.go", `h.Spec.Image != nil || h.Spec.CustomDeploy != nil || h`, `h.Spec.Image != nil || h`, "./shared/provider/metal3 -run=TestLifeOf"},
	{"host-of-somebody-elses-way", "2b.3", metal + "create.go", `	case h.Spec.Image != nil, h.Spec.CustomDeploy != nil:`, `	case h.Spec.Image != nil:`, "./shared/provider/metal3 -run=TestHostThat"},
	{"no-other-host-before-the-first-is-let-go", "2b.3", metal + "delete.go", `	case err != nil && !errors.Is(err, ErrGone):`, `	case false && !errors.Is(err, ErrGone):`, "./shared/provider/metal3 -run=TestNoOther"},
	{"claim-without-an-answer-is-not-refused", "G5", metal + "create.go", `	if provider.CodeOf(refusal) != provider.Invalid || !errors`, `	if !errors`, "./shared/provider/metal3 -run=TestClaimWithout"},
	{"host-that-cannot-be-read-is-not-gone", "G5", metal + "metal3.go", `			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		all = []host{h}`, `			return nil, nil
		}
		all = []host{h}`, "./shared/provider/metal3 -run=TestHostThat"},
	{"power-that-was-not-changed-is-told", "2e", metal + "power.go", `			if _, err := d.hosts.Patch(ctx, h.Namespace, h.Name, p); err != nil {`, `			if _, err := d.hosts.Patch(ctx, h.Namespace, h.Name, p); err != nil && false {`, "./shared/provider/metal3 -run=TestPowerThat"},
	{"startup-taint-is-not-put-back", "G11", link + "mark.go", `!(named && machine.StartupTaint(t.Key)) && `, `(!named || true) && `, "./functions/link-node -run=TestScenarios"},
	{"startup-taint-comes-with-the-name", "2e", link + "mark.go", `!(named && machine.StartupTaint(t.Key)) && `, `(!named || true) && !machine.StartupTaint(t.Key) && `, "./functions/link-node -run=TestScenarios"},
	{"label-without-a-value-is-put-on", "2e", link + "mark.go", `if got, ok := has[k]; !ok || got != v {`, `if has[k] != v {`, "./functions/link-node -run=TestScenarios"},
	{"host-that-lost-its-provider-id-gets-it-again", "2e", link + "mark.go", `!unnamed(m, n) && carries`, `carries`, "./functions/link-node -run=TestScenarios"},
	{"what-is-left-out-writes-nothing", "G11", link + "handler.go", `	case marked(m, n, fit):
`, ``, "./functions/link-node -run=TestScenarios"},
	{"host-is-off-before-it-is-deleted", "2b.9", metal + "delete.go", `	case metal3v1alpha1.StatePoweringOffBeforeDelete: // which it gives up after some attempts
		return true
`, ``, "./shared/provider/metal3 -run=TestHostThatIsSwitched"},
	{"host-of-a-former-claim-stays", "2b.9", metal + "metal3.go", `	given := r.UID != "" && `, `	given := `, "./shared/provider/metal3 -run=TestHostOfAFormer"},
	{"host-that-stays-on-is-not-switched-off", "2b.9", metal + "delete.go", `		if !off {
`, `		if true {
`, "./shared/provider/metal3 -run=TestAHostThatStaysOn"},
	{"claim-without-a-namespace-is-of-its-own", "2b.3", metal + "metal3.go", `ref.Namespace == "" || `, ``, "./shared/provider/metal3 -run=TestClaimWithoutANamespace"},
	{"no-other-host-beside-one-that-is-taken-away", "2b.3", metal + "delete.go", `		return provider.Errorf(provider.Exhausted, "host %s is being taken away from this Machine", h.Name)`, `		return nil`, "./shared/provider/metal3 -run=TestAHostThatOthers"},
	{"in-its-group-before-the-start", "2b.6", vcenter + "create.go", `		if err != nil || task != nil {`, `		if err != nil {`, "./shared/provider/vsphere -run=TestOneStep"},
	{"customized-before-the-start", "2b.6", vcenter + "create.go", `		return true, p.begin(stepCustomize,`, `		return false, p.begin(stepCustomize,`, "./shared/provider/vsphere -run=TestOneStep"},
	{"refused-customization-is-told", "G5", vcenter + "create.go", `		task, err := customize(ctx, c, r, req, m)
		return true, p.begin(stepCustomize, task, err)`, `		task, _ := customize(ctx, c, r, req, m)
		return true, p.begin(stepCustomize, task, nil)`, "./shared/provider/vsphere -run=TestRefusedStepIs"},
	{"tags-before-the-start", "2b.6", vcenter + "create.go", `		p.Tagged = err == nil
`, `		p.Tagged = true
`, "./shared/provider/vsphere -run=TestRefusedStepIs"},
	{"instance-has-the-tag-of-the-cluster", "2b.6", vcenter + "create.go", `if ofCluster != "" || len(`, `if len(`, "./shared/provider/vsphere -run=TestInstanceHasTheTag"},
	{"tag-of-the-cluster-that-is-gone", "G5", vcenter + "tag.go", `				d.cluster.forget()
`, ``, "./shared/provider/vsphere -run=TestInstanceHasTheTag"},
	{"task-of-others-is-not-cancelled", "2b.9", vcenter + "remove.go", ` || !clones(info) {`, ` {`, "./shared/provider/vsphere -run=TestCloneThatRuns"},
	{"clone-of-another-template-is-not-cancelled", "2b.9", vcenter + "remove.go", `info.Entity.Value != p.Template {`, `false {`, "./shared/provider/vsphere -run=TestCloneThatRuns"},
	{"launched-joins-no-group-again", "G4", vcenter + "create.go", `	if req.Group != nil && m.Launched == nil {`, `	if req.Group != nil {`, "./shared/provider/vsphere -run=TestLaunched"},
	{"refused-note-is-told", "G5", vcenter + "create.go", `		task, err := note(ctx, c, *m)
		return p.begin(stepNote, task, err)`, `		task, err := note(ctx, c, *m)
		if err != nil {
			return nil
		}
		return p.begin(stepNote, task, err)`, "./shared/provider/vsphere -run=TestStepThatCannot"},
	{"mark-without-an-answer-blames-no-spec", "G5", "shared/snapshot/snapshot.go", `tried && o.Result == plan.Refused`, `tried || o.Result == plan.Refused`, "./functions/link-node -run=TestScenarios"},
	{"ports-that-one-list-does-not-tell", "G5", nova + "things.go", `	all, err := c.ports(ctx, mark)
	if err != nil {`, `	all, err := c.ports(ctx, mark)
	if err != nil && false {`, "./shared/provider/openstack -run=TestPortsThatOne"},
	{"port-that-no-answer-tells", "G5", nova + "things.go", ` || answer.Port.ID == "") {`, `) {`, "./shared/provider/openstack -run=TestPortThatNoAnswer"},
	{"host-that-others-hold-off", "2b.3", metal + "create.go", `	case heldByOthers(h):`, `	case heldByOthers(h) && false:`, "./shared/provider/metal3 -run=TestHostsThatNobodyTakes"},
	{"claimed-host-is-not-held-off", "2b.9", metal + "create.go", `	if held(h) { //`, `	if held(h) && false { //`, "./shared/provider/metal3 -run=TestClaimedHost"},
	{"own-hold-keeps-nobody-away", "2b.9", metal + "power.go", `key != annotationHold && `, ``, "./shared/provider/metal3 -run=TestClaimedHost"},
	{"name-of-another-speaks-against-an-address", "2e", words + "match.go", `len(found) > 0 && !slices.ContainsFunc(found, borne) {`, `len(found) > 0 && !slices.ContainsFunc(found, borne) && false {`, "./functions/link-node -run=TestScenarios"},
	{"name-of-another-is-drained-for-nobody-else", "2e", words + "match.go", `if mine > misfit && mine < byInstance && Bears(o, n) && !Bears(m, n) {`, `if mine > misfit && mine < byInstance && Bears(o, n) && !Bears(m, n) && false {`, "./shared/machine -run=TestWhoseNode"},
	{"who-goes-keeps-the-node-of-its-name", "2e", words + "match.go", `len(living) > 0 && !contested(fit, n) {`, `len(living) > 0 {`, "./shared/machine -run=TestWhoseNode"},
	{"first-addresses-of-a-node", "4", words + "match.go", `n.Status.Addresses[:min(len(n.Status.Addresses), mostAddresses)]`, `n.Status.Addresses[:max(len(n.Status.Addresses), 0*mostAddresses)]`, "./shared/machine -run=TestFirstAddresses"},
	{"name-beside-one-address-speaks-too", "2e", words + "match.go", `slices.ContainsFunc(fit, bears) && slices.ContainsFunc(fit, other)`, `slices.ContainsFunc(fit, func(m *Machine) bool { return bears(m) && fitsBy(m, n) == misfit || other == nil })`, "./shared/machine -run=TestWhoseNode"},
	{"answer-without-a-list-is-none", "2c", "shared/provider/aws/instance.go", `if page.Reservations == nil {`, `if page.Reservations == nil && false {`, "./shared/provider/aws -run=TestAnswerWithoutAList"},
	{"domain-names-hide-no-instance", "2c", "shared/provider/aws/domain.go", `case ctx.Err() == nil && (ok || d`, `case false && (ok || d`, "./shared/provider/aws -run=TestNoInstanceIsHidden"},
	{"call-that-a-cloud-lacks-hides-no-instance", "2c", "shared/provider/aws/domain.go", ` || code == provider.Invalid`, ``, "./shared/provider/aws -run=TestNoInstanceIsHidden"},
	{"secret-that-names-no-place-fails-nobody", "4", "shared/provider/azure/client.go", `case home != "" && !locations.MatchString(home): //`, `case home == "?": //`, "./shared/provider/azure -run=TestWhoNamesWhat"},
	{"events-that-concern-all-share-a-scan", "2g", run + "runner.go", `case leaves && r.scan != nil:`, `case leaves && r.scan != nil && false:`, "./shared/runner -run=TestEventsThatConcernAll"},
	{"images-of-nodes-take-no-memory", "2g", "shared/cluster/kube/observe.go", `n.Status.Images = nil`, `_ = n`, "./shared/cluster/kube -run=TestProtobufList"},
	{"node-in-doubt-is-awaited", "2e", drain + "handler.go", `	case d.n == nil && d.m.Status.NodeRef == nil && d.doubted == nil:`, `	case d.n == nil && d.m.Status.NodeRef == nil:`, "./functions/drain-node -run=TestScenarios"},
	{"event-sees-the-node-in-doubt", "2e", drain + "reads.go", `return machine.Bears(m, n) }) { //`, `return false && machine.Bears(m, n) }) { //`, "./functions/drain-node -run=TestScenarios"},
	{"node-in-doubt-is-not-missing", "2e", heal + "health.go", `	case n == nil && c.network.found[m].Doubted() != nil: //`, `	case false: //`, "./functions/remediate -run=TestScenarios"},
}
