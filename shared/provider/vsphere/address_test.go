// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// pools is an API server with claims of addresses, and whoever gives them.
type pools struct {
	mu     sync.Mutex
	claims map[string]claim
	gives  string // prefix of what is given; empty: nothing yet
	absent bool   // nobody has installed the kinds
	since  time.Duration
	races  int // how many patches come too late

	refuses bool // whoever writes a claim
}

func (p *pools) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	c, is := p.claims[name]
	body, _ := io.ReadAll(r.Body) // of a request of this process
	switch {
	case r.URL.Path == "/apis" && p.absent:
		_, _ = io.WriteString(w, `{"kind": "APIGroupList", "groups": [{"name": "apps"}]}`)
	case p.absent:
		http.Error(w, "404 page not found", http.StatusNotFound)
	case strings.Contains(r.URL.Path, "/ipaddresses/"):
		_, _ = fmt.Fprintf(w, `{"kind": "IPAddress", "spec": {"address": "%s%c", "prefix": 24, "gateway": "%s1"}}`, p.gives, '7'+name[len(name)-1]-'0', p.gives)
	case r.Method == http.MethodPost:
		if json.Unmarshal(body, &c) != nil {
			http.Error(w, "what is that?", http.StatusBadRequest)
			return
		}
		c.ResourceVersion, c.CreationTimestamp = "1", metav1.NewTime(time.Now().Add(-p.since))
		p.claims[c.Name] = c
		_ = json.NewEncoder(w).Encode(c)
	case name == "ipaddressclaims":
		all := claims{Kind: "IPAddressClaimList", Items: []claim{}}
		for _, name := range slices.Sorted(maps.Keys(p.claims)) {
			all.Items = append(all.Items, p.claims[name])
		}
		_ = json.NewEncoder(w).Encode(all)
	case r.Method == http.MethodPatch && p.refuses:
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind": "Status", "reason": "Forbidden", "code": 403}`)
	case r.Method == http.MethodPatch && (p.races > 0 || versionIn(body) != c.ResourceVersion):
		p.races--
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"kind": "Status", "reason": "Conflict", "code": 409}`)
	case !is:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind": "Status", "reason": "NotFound", "code": 404}`)
	case r.Method == http.MethodPatch:
		c.Finalizers = nil
		if json.Unmarshal(body, &c) == nil {
			p.claims[name] = c
		}
		_ = json.NewEncoder(w).Encode(c)
	default:
		if p.gives != "" {
			c.Status.AddressRef.Name = name
		}
		_ = json.NewEncoder(w).Encode(c)
	}
}

// versionIn returns the version that a change is of.
func versionIn(body []byte) string {
	var change claim
	_ = json.Unmarshal(body, &change) // of this process
	return change.ResourceVersion
}

func (p *pools) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// inMachines is an account of nobody who lists.
var inMachines = provider.Account{Namespace: "machines"}

// east is one of them.
var east = providerspec.VSpherePool{Group: "installer.openshift.io", Resource: "IPPool", Name: "east"}

// pooled is a spec whose second network card takes two addresses from pools.
func pooled(v *vcenter) json.RawMessage {
	return v.spec(map[string]any{"network": map[string]any{"devices": []any{
		map[string]any{"networkName": "DC0_DVPG0"},
		map[string]any{"networkName": "VM Network", "nameservers": []string{"10.1.0.2"}, "addressesFromPools": []any{
			map[string]any{"group": "installer.openshift.io", "resource": "IPPool", "name": "east"},
			map[string]any{"group": "installer.openshift.io", "resource": "IPPool", "name": "west"},
		}},
	}}})
}

func withPools(t *testing.T, v *vcenter, p *pools) (*driver, *wire) {
	t.Helper()
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	d, w := v.wired(t, v.account())
	var err error
	d.addresses, err = NewAddresses(&rest.Config{Host: s.URL})
	must(t, err)
	return d, w
}

// SPEC E22, E25: a claim for each pool, as OpenShift writes them; no clone before every address is given; the guest gets
// them; the claims are protected until the instance is gone.
func TestAddressesFromPools(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	p := &pools{claims: map[string]claim{}}
	d, w := withPools(t, v, p)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	resolved, err := d.Resolve(t.Context(), pooled(v))
	must(t, err)
	for range 2 {
		i, err := d.Create(t.Context(), r, resolved)
		if err != nil || i.State != provider.StateIncomplete || w.count("CloneVM_Task") != 0 {
			t.Fatalf("Create before an address is given = %+v, %v with %d clones", i, err, w.count("CloneVM_Task"))
		}
	}
	group := "installer.openshift.io"
	want := newClaim(d.account, "worker-a-claim-1-1", r, east)
	want.Spec.PoolRef = corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "IPPool", Name: "west"}
	want.ResourceVersion, want.CreationTimestamp = "1", p.claims["worker-a-claim-1-1"].CreationTimestamp
	if diff := cmp.Diff(want, p.claims["worker-a-claim-1-1"]); diff != "" || len(p.claims) != 2 {
		t.Errorf("%d claims (-want +got):\n%s", len(p.claims), diff)
	}
	p.set(func() { p.gives = "10.1.0." })
	i, err := proceed(t.Context(), d, r, resolved)
	must(t, err)
	const args = "ip=10.1.0.7::10.1.0.1:255.255.255.0:::none ip=10.1.0.8::10.1.0.1:255.255.255.0:::none nameserver=10.1.0.2"
	if got := settingsOf(v.machines(t)["worker-a"])["guestinfo.afterburn.initrd.network-kargs"]; got != args {
		t.Errorf("the guest gets %q, want %q", got, args)
	}
	r.ID, r.ProviderID = i.ID, i.ProviderID
	for err = error(nil); provider.CodeOf(err) != provider.NotFound; err = d.Delete(t.Context(), r) {
		must(t, err)
		if _, there := v.machines(t)["worker-a"]; there && len(p.claims["worker-a-claim-1-0"].Finalizers) != 1 {
			t.Fatal("an address is let go before its instance")
		}
	}
	for name, c := range p.claims {
		if len(c.Finalizers) != 0 {
			t.Errorf("%s is protected by %v for ever", name, c.Finalizers)
		}
	}
}

// SPEC E25: every claim of the Machine is let go, also after one that is gone, and also if somebody wrote at the same time.
func TestNoClaimStaysProtected(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	second, others := newClaim(inMachines, "worker-a-claim-0-1", r, east), newClaim(inMachines, "worker-a-claim-0-2", provider.Ref{UID: "another", Name: "worker-a"}, east)
	second.ResourceVersion = "7"
	second.OwnerReferences = append([]metav1.OwnerReference{{Kind: "Cluster", UID: "ocp43"}}, second.OwnerReferences...) // as other tools add
	p := &pools{claims: map[string]claim{second.Name: second, others.Name: others}, races: 1}
	d, _ := withPools(t, v, p)
	attempt := r
	attempt.Attempt = true // the next one goes on with its addresses
	if err := d.Delete(t.Context(), attempt); provider.CodeOf(err) != provider.NotFound || len(p.claims[second.Name].Finalizers) != 1 {
		t.Errorf("Delete of one attempt = %v, the claim is protected by %v", err, p.claims[second.Name].Finalizers)
	}
	if err := d.Delete(t.Context(), r); err != nil {
		t.Errorf("Delete while somebody else writes the claim = %v", err)
	}
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete = %v", err)
	}
	if got := p.claims[second.Name].Finalizers; len(got) != 0 {
		t.Errorf("%s is protected by %v for ever", second.Name, got)
	}
	if got := p.claims[others.Name].Finalizers; len(got) != 1 {
		t.Errorf("another Machine's claim is protected by %v", got)
	}
}

// SPEC E25: while nobody could let a claim go, of a Machine without an instance, nobody is told that nothing is left of it: with the Machine
// its address would be lost to the pool.
func TestClaimThatNobodyCouldLetGoIsLeft(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	own := newClaim(inMachines, "worker-a-claim-0-0", r, east)
	own.ResourceVersion = "7"
	p := &pools{claims: map[string]claim{own.Name: own}, refuses: true}
	d, _ := withPools(t, v, p)
	err := d.Delete(t.Context(), r)
	if code := provider.CodeOf(err); err == nil || code == provider.NotFound || !strings.Contains(err.Error(), "release address claim") {
		t.Errorf("Delete while nobody may write the claim = %v (%v)", err, code)
	}
	p.set(func() { p.refuses = false })
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.NotFound || len(p.claims[own.Name].Finalizers) != 0 {
		t.Errorf("Delete once they may = %v, the claim is protected by %v", err, p.claims[own.Name].Finalizers)
	}
}

// RELIABILITY 2b.10: a Create that was held up until its Machine was gone still claims an address. The sweep finds the claim,
// and lets it go by its UID; claims of an instance that is there, of other accounts and of installers are no leftovers.
func TestClaimThatCameTooLateIsFound(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	p := &pools{claims: map[string]claim{}, gives: "10.1.0."}
	d, _ := withPools(t, v, p)
	resolved, err := d.Resolve(t.Context(), pooled(v))
	must(t, err)
	running := provider.Ref{UID: uuid.NewUUID(), Name: "worker-b", Token: "b"}
	_, err = proceed(t.Context(), d, running, resolved)
	must(t, err)
	late := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	if err := d.Delete(t.Context(), late); provider.CodeOf(err) != provider.NotFound {
		t.Fatalf("Delete = %v", err)
	}
	p.set(func() {
		for _, c := range []claim{
			newClaim(d.account, "worker-a-claim-1-0", late, east), newClaim(inMachines, "elsewhere", provider.Ref{UID: "another"}, east),
			{TypeMeta: metav1.TypeMeta{Kind: "IPAddressClaim"}, ObjectMeta: metav1.ObjectMeta{Namespace: "machines", Name: "bootstrap"}},
		} {
			p.claims[c.Name] = c
		}
	})
	left := func() []provider.Instance {
		t.Helper()
		all, err := d.List(t.Context())
		must(t, err)
		return slices.DeleteFunc(all, func(in provider.Instance) bool { return !in.Child })
	}
	want := []provider.Instance{{ID: "ipaddressclaim/worker-a-claim-1-0", UID: late.UID, Name: "worker-a-claim-1-0", Sole: true, Child: true}}
	if diff := cmp.Diff(want, left()); diff != "" {
		t.Errorf("leftovers (-want +got):\n%s", diff)
	}
	swept := provider.Ref{UID: late.UID, ID: want[0].ID, Name: want[0].Name}
	if err := d.Delete(t.Context(), swept); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete = %v", err)
	}
	if more := left(); len(more) > 0 || len(p.claims["worker-a-claim-1-0"].Finalizers) > 0 || len(p.claims["elsewhere"].Finalizers) != 1 {
		t.Errorf("left after the sweep: %v; claims %v", more, p.claims)
	}
}

// A list of claims that cannot be read makes the list of the account an error, not a shorter one.
func TestClaimsThatCannotBeListed(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, _ := withPools(t, v, &pools{claims: map[string]claim{}})
	for _, answer := range []func(http.ResponseWriter){
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"kind": "IPAddressList", "items": []}`) },
		func(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }, // of a proxy, which knows of no groups
		func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"kind": "IPAddressClaimList"}`) },
		func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"kind": "IPAddressClaimList", "items": null}`) },
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
		t.Cleanup(s.Close)
		var err error
		d.addresses, err = NewAddresses(&rest.Config{Host: s.URL})
		must(t, err)
		if _, err := d.List(t.Context()); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), "address claims in machines") {
			t.Errorf("List = %v (%v)", err, provider.CodeOf(err))
		}
	}
}

// That a proxy has no such page says nothing of what is installed: nobody is told to install it.
func TestClaimThatAProxyDoesNotKnow(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	a, err := NewAddresses(&rest.Config{Host: s.URL})
	must(t, err)
	_, err = a.claim(t.Context(), inMachines, "worker-a-claim-0-0", provider.Ref{UID: "u", Name: "worker-a"}, east)
	if provider.CodeOf(err) != provider.Unknown || !strings.Contains(fmt.Sprint(err), "claim machines/worker-a-claim-0-0") {
		t.Errorf("claim = %v (%v)", err, provider.CodeOf(err))
	}
}

// What no pool gives is said, and heals.
func TestAddressThatIsNotGiven(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	old := newClaim(inMachines, "worker-a-claim-1-0", r, east)
	old.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	old.Status.Conditions = []claimCondition{{Type: "Ready", Status: "False", Message: "pool east has no address left"}}
	astray := newClaim(inMachines, old.Name, r, east)
	astray.Status.AddressRef.Name = "../secrets/vsphere-cloud-credentials"
	other := newClaim(inMachines, "worker-a-claim-1-0", provider.Ref{UID: "before", Name: "worker-a"}, east)
	for name, tt := range map[string]struct {
		p    *pools
		want []string
	}{
		"nobody gives addresses":      {&pools{absent: true}, []string{"providerSpec.value.network.devices[1].addressesFromPools[0]", "east", "install"}},
		"the pool is empty":           {&pools{claims: map[string]claim{old.Name: old}}, []string{"machines/worker-a-claim-1-0", "east", "no address left"}},
		"the claim is of another":     {&pools{claims: map[string]claim{old.Name: other}}, []string{"machines/worker-a-claim-1-0", "another Machine's"}},
		"given, but it is elsewhere":  {&pools{claims: map[string]claim{old.Name: astray}}, []string{"machines/worker-a-claim-1-0", "is no name of an IPAddress"}},
		"given, but it is no address": {&pools{claims: map[string]claim{}, gives: "10.1.0.1."}, []string{"machines/worker-a-claim-1-0", "is no address"}},
		"given, with other arguments": {&pools{claims: map[string]claim{}, gives: "fe80::%x rd.break"}, []string{"machines/worker-a-claim-1-0", "gateway", "is no address: its zone"}},
	} {
		d, w := withPools(t, v, tt.p)
		resolved, err := d.Resolve(t.Context(), pooled(v))
		must(t, err)
		for range 2 { // a claim that is made in this call has its address in the next
			_, err = d.Create(t.Context(), r, resolved)
		}
		if provider.CodeOf(err) != provider.Exhausted || w.count("CloneVM_Task") != 0 {
			t.Errorf("%s: %v (%v)", name, err, provider.CodeOf(err))
			continue
		}
		for _, words := range tt.want {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v does not name %s", name, err, words)
			}
		}
		if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.NotFound {
			t.Errorf("%s: Delete = %v", name, err)
		}
		for _, c := range tt.p.claims {
			if kept := len(c.Finalizers) == 1; kept != (ownerOf(c) != string(r.UID)) {
				t.Errorf("%s: %s of %s is protected by %v", name, c.Name, ownerOf(c), c.Finalizers)
			}
		}
	}
}

// People mend the pool of a Machine whose attempt claimed from another before. What that gives is of another network: it is not taken,
// and what is to be done is told (SPEC E25).
func TestClaimOfAnotherPoolIsTold(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	p := &pools{claims: map[string]claim{}, since: time.Minute}
	d, _ := withPools(t, v, p)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	asked := func(was, is string) error {
		resolved, err := d.Resolve(t.Context(), []byte(strings.ReplaceAll(string(pooled(v)), `"`+was+`"`, `"`+is+`"`)))
		must(t, err)
		_, err = d.Create(t.Context(), r, resolved)
		return err
	}
	told := "IPAddressClaim machines/worker-a-claim-1-0 is of pool \"east\""
	_ = asked("east", "east") // claims; no address is given yet
	if len(p.claims) == 0 {
		t.Fatal("nothing is claimed")
	}
	r.Token = "t2"
	p.set(func() { p.gives = "10.1.0." })
	for was, is := range map[string]string{"east": "north", "IPPool": "GlobalPool", "installer.openshift.io": "example.org"} {
		if err := asked(was, is); err == nil || provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), told) {
			t.Errorf("%s: %v, want %s", is, err, told)
		}
	}
	if err := asked("east", "east"); err != nil && strings.Contains(err.Error(), told) {
		t.Error(err)
	}
}

// Two pools of one card may give an address of each family, each with its gateway: the guest is told both, and of one family the first.
func TestGatewaysOfBothFamiliesAreTold(t *testing.T) {
	t.Parallel()
	addresses := map[string]string{
		"four":  `"address": "10.1.0.7", "prefix": 24, "gateway": "10.1.0.1"`,
		"six":   `"address": "2001:db8::7", "prefix": 64, "gateway": "2001:db8::1"`,
		"other": `"address": "10.1.0.8", "prefix": 24, "gateway": "10.1.0.2"`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"kind": "IPAddress", "spec": {%s}}`, addresses[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]])
	}))
	t.Cleanup(s.Close)
	a, err := NewAddresses(&rest.Config{Host: s.URL})
	must(t, err)
	card := providerspec.VSphereDevice{NetworkName: "VM Network"}
	for _, name := range []string{"four", "six", "other"} {
		var c claim
		c.Namespace, c.Name, c.Status.AddressRef.Name = "machines", "c", name
		must(t, a.take(t.Context(), c, &card))
	}
	const want = "ip=10.1.0.7::10.1.0.1:255.255.255.0:::none ip=[2001:db8::7]::[2001:db8::1]:64:::none ip=10.1.0.8::10.1.0.1:255.255.255.0:::none"
	if got := kernelArguments([]providerspec.VSphereDevice{card}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if told := adapter(card); len(told.Gateway) != 1 || told.Gateway[0] != "10.1.0.1" || told.IpV6Spec == nil || len(told.IpV6Spec.Gateway) != 1 || told.IpV6Spec.Gateway[0] != "2001:db8::1" {
		t.Errorf("the tools are told %+v, %+v", told, told.IpV6Spec)
	}
}
