// SPDX-License-Identifier: Apache-2.0

package approvenode

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

func TestScenarios(t *testing.T) {
	t.Parallel()
	scenario.Run(t, Function)
}

func TestProperties(t *testing.T) {
	t.Parallel()
	scenario.Properties(t, Function)
}

var now = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)

// signed returns a request in PEM.
func signed(t testing.TB, asked x509.CertificateRequest) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(nil, &asked, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func subject(node string) pkix.Name {
	return pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}
}

// client returns what the kubelet of a Node asks first, age ago.
func client(t testing.TB, node string, age time.Duration) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
		Name: "csr-" + node, ResourceVersion: "1", CreationTimestamp: metav1.NewTime(now.Add(-age)),
	}}
	r.Spec.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName
	r.Spec.Username = "system:bootstrap:abcdef"
	r.Spec.Groups = []string{"system:bootstrappers"}
	r.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature}
	r.Spec.Request = signed(t, x509.CertificateRequest{Subject: subject(node)})
	return r
}

func joining(node string) *machine.Machine {
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: node, CreationTimestamp: metav1.NewTime(now.Add(-90 * time.Minute))}}
	m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: node}}
	return m
}

// More requests than the cluster could need are an attack, or a loop: nothing is approved, and one Event tells it (B82).
func TestSafetyValve(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                       string
		fresh, stale, nodes, plans int
		held                       bool
	}{
		{"as many as may be pending", 102, 0, 0, 2, false},
		{"one more", 103, 0, 0, 0, true},
		{"one more, but the cluster has more nodes than machines", 103, 0, 3, 2, false},
		{"old ones do not count", 102, 50, 0, 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			world := scenario.Scenario{World: snapshot.Snapshot{Now: now}}
			world.World.Add(joining("n0"), joining("n1"))
			for k := range tt.fresh {
				world.World.Add(client(t, fmt.Sprintf("n%d", k), 59*time.Minute))
			}
			for k := range tt.stale {
				world.World.Add(client(t, fmt.Sprintf("old%d", k), time.Hour))
			}
			for k := range tt.nodes {
				world.World.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("other%d", k)}})
			}
			seen, _, err := scenario.Observe(Function, world)
			if err != nil {
				t.Fatal(err)
			}
			p := Decide(seen)
			held := len(p.Notes) == 1 && p.Notes[0].Reason == "ApprovalsHeld" && p.Notes[0].Type == corev1.EventTypeWarning
			if held != tt.held || len(p.Do) != tt.plans {
				t.Errorf("%d approvals, %d notes:\n%v", len(p.Do), len(p.Notes), p)
			}
		})
	}
}

// Hosts that nobody gave names are all called alike: what is told of each of their requests names a few, and not all of thousands.
func TestHostsOfOneNameAreToldInShort(t *testing.T) {
	t.Parallel()
	s := snapshot.Snapshot{Now: now}.Answered(allRequests).Answered(allMachines)
	asked := client(t, "localhost.localdomain", time.Hour)
	for k := range 1000 {
		m := joining("localhost.localdomain")
		m.Name = fmt.Sprintf("worker-%04d", k)
		r := asked.DeepCopy()
		r.Name = fmt.Sprintf("csr-%04d", k)
		s.Machines, s.SigningRequests = append(s.Machines, m), append(s.SigningRequests, r)
	}
	p := Decide(s)
	if len(p.Do)+len(p.Actions()) > 0 || len(p.Notes) != 1000 {
		t.Fatalf("%d actions, %d notes", len(p.Actions()), len(p.Notes))
	}
	if told := p.Notes[0].Message; !strings.HasSuffix(told, "localhost.localdomain: worker-0000, worker-0001, worker-0002, worker-0003, worker-0004 and 995 more") {
		t.Errorf("%d bytes: %.300s", len(told), told)
	}
	for _, m := range s.Machines[1:] {
		m.Status.NodeRef = &corev1.ObjectReference{Name: "node-of-" + m.Name}
	}
	all := s.Machines
	for n, want := range map[int]int{manyAlike: 1, manyAlike + 1: 0} {
		s.Machines, s.SigningRequests = all[:n], s.SigningRequests[:1]
		if p := Decide(s); len(p.Actions()) != want {
			t.Errorf("%d of one name, of which one awaits its node: %d approvals, want %d", n, len(p.Actions()), want)
		}
	}
}

// A certificate to serve under no address is of no use to a kubelet, and no address of it can be compared with the Machine's (B81).
func TestServingWithoutAddressesNeverFits(t *testing.T) {
	t.Parallel()
	r := client(t, "a", 0)
	r.Spec.SignerName, r.Spec.Username, r.Spec.Groups = certificatesv1.KubeletServingSignerName, "system:node:a", []string{"system:nodes"}
	r.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	if _, err := (request{r}).claim(); err == nil || !strings.Contains(err.Error(), "without addresses") {
		t.Error(err)
	}
}

// A request that asks for more, or other, than a kubelet's certificate is refused with the field that says so.
func TestRequestsThatNeverFit(t *testing.T) {
	t.Parallel()
	with := func(change func(*x509.CertificateRequest)) []byte {
		x := x509.CertificateRequest{Subject: subject("a")}
		change(&x)
		return signed(t, x)
	}
	good := with(func(*x509.CertificateRequest) {})
	forged := func() []byte {
		b, _ := pem.Decode(good)
		b.Bytes[len(b.Bytes)-1] ^= 1
		return pem.EncodeToMemory(b)
	}
	for _, tt := range []struct {
		name    string
		request []byte
		want    string // empty: it fits
	}{
		{"a client", good, ""},
		{"nothing", nil, "PEM"},
		{"no PEM", []byte("hello"), "PEM"},
		{"two requests", append(bytes.Clone(good), good...), "PEM"},
		{"a certificate", bytes.ReplaceAll(good, []byte("CERTIFICATE REQUEST"), []byte("CERTIFICATE")), "PEM"},
		{"no request inside", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")}), "asn1"},
		{"a key that is not the asker's", forged(), "verification"},
		{"another user", with(func(x *x509.CertificateRequest) { x.Subject.CommonName = "admin" }), "common name"},
		{"no name", with(func(x *x509.CertificateRequest) { x.Subject.CommonName = "system:node:" }), "common name"},
		{"a name no node can have", with(func(x *x509.CertificateRequest) { x.Subject.CommonName = "system:node:a/../b" }), "common name"},
		{"no organization", with(func(x *x509.CertificateRequest) { x.Subject.Organization = nil }), "organizations"},
		{"administrators", with(func(x *x509.CertificateRequest) { x.Subject.Organization = []string{"system:masters"} }), "organizations"},
		{"a name to serve under", with(func(x *x509.CertificateRequest) { x.DNSNames = []string{"kubernetes"} }), "addresses"},
		{"an address to serve under", with(func(x *x509.CertificateRequest) { x.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }), "addresses"},
		{"a mail address", with(func(x *x509.CertificateRequest) { x.EmailAddresses = []string{"a@example.com"} }), "mail"},
		{"a URI", with(func(x *x509.CertificateRequest) { x.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }), "URIs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := client(t, "a", 0)
			r.Spec.Request = tt.request
			c, err := request{r}.claim()
			if got := fmt.Sprint(err); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(got, tt.want) {
				t.Errorf("claim of node %q, error %v, want one about %q", c.node, err, tt.want)
			}
		})
	}
}

func TestUsages(t *testing.T) {
	t.Parallel()
	const sign, encipher, serve, ask = certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth, certificatesv1.UsageClientAuth
	for _, tt := range []struct {
		usages []certificatesv1.KeyUsage
		want   bool
	}{
		{[]certificatesv1.KeyUsage{sign, ask}, true},
		{[]certificatesv1.KeyUsage{ask, encipher, sign}, true},
		{nil, false},
		{[]certificatesv1.KeyUsage{ask}, false},
		{[]certificatesv1.KeyUsage{sign, serve}, false},
		{[]certificatesv1.KeyUsage{sign, ask, serve}, false},
		{[]certificatesv1.KeyUsage{sign, ask, ask}, false},
		{[]certificatesv1.KeyUsage{sign, ask, certificatesv1.UsageCertSign}, false},
	} {
		if got := only(tt.usages, ask); got != tt.want {
			t.Errorf("%q: %v", tt.usages, got)
		}
	}
}

// The same address may be written in several ways.
func TestServingUnderIPv6(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "n"}}
	m := joining("a")
	m.Status.NodeRef = &corev1.ObjectReference{Name: "a", UID: "n"}
	m.Status.Addresses = append(m.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "FD00:0:0::5"})
	r := client(t, "a", 0)
	r.Spec.SignerName, r.Spec.Username, r.Spec.Groups = certificatesv1.KubeletServingSignerName, "system:node:a", []string{"system:nodes"}
	r.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth, certificatesv1.UsageDigitalSignature}
	for ip, want := range map[string]int{"fd00::5": 1, "fd00::6": 0} {
		r := r.DeepCopy()
		r.Spec.Request = signed(t, x509.CertificateRequest{Subject: subject("a"), DNSNames: []string{"a"}, IPAddresses: []net.IP{net.ParseIP(ip)}})
		world := scenario.Scenario{World: snapshot.Snapshot{Now: now}}
		world.World.Add(n, m, r)
		seen, _, err := scenario.Observe(Function, world)
		if err != nil {
			t.Fatal(err)
		}
		if p := Decide(seen); len(p.Do) != want {
			t.Errorf("%s: %v", ip, p)
		}
	}
}

// What an idle cluster costs: an event of a settled Machine, and of a request that is decided, one object.
func TestReadsLittle(t *testing.T) {
	t.Parallel()
	done, settled := client(t, "a", 0), joining("a")
	done.Status.Certificate = []byte("x")
	settled.Status.NodeRef = &corev1.ObjectReference{Name: "a"}
	settled.Status.LastUpdated = new(metav1.NewTime(now.Add(-time.Hour)))
	for request, want := range map[snapshot.Request]string{
		{Kind: "Machine", Namespace: machine.Namespace, Name: "a"}: "Machine a",
		{Kind: "CertificateSigningRequest", Name: done.Name}:       "CertificateSigningRequest csr-a",
	} {
		world := scenario.Scenario{World: snapshot.Snapshot{Now: now, Request: request}}
		world.World.Add(done, settled)
		_, asked, err := scenario.Observe(Function, world)
		if err != nil || len(asked) != 1 || len(asked[0].Objects) != 1 {
			t.Fatalf("%v: %+v", err, asked)
		}
		if q := asked[0].Objects[0]; fmt.Sprint(q.Kind, " ", q.Name) != want {
			t.Errorf("%v asks for %+v", request, q)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, size := range []int{100, 5000} {
		b.Run(fmt.Sprintf("machines=%d/requests=%d", size, size), func(b *testing.B) {
			s := snapshot.Snapshot{Now: now}
			for k := range size {
				s.Add(joining(fmt.Sprintf("n%04d", k)), client(b, fmt.Sprintf("n%04d", k), time.Minute))
			}
			s = s.Answered(allRequests, allMachines)
			b.ReportAllocs()
			for b.Loop() {
				if p := Decide(s); len(p.Do) != size {
					b.Fatal(len(p.Do))
				}
			}
		})
	}
}

func FuzzClaim(f *testing.F) {
	f.Add(signed(f, x509.CertificateRequest{Subject: subject("a")}), true)
	f.Add(signed(f, x509.CertificateRequest{Subject: subject("b"), DNSNames: []string{"b"}}), false)
	f.Add(ofKey(f, 8*maxKey), true)
	f.Fuzz(func(t *testing.T, text []byte, serving bool) {
		r := request{client(t, "a", 0)}
		r.Spec.Request = text
		if serving {
			r.Spec.SignerName = certificatesv1.KubeletServingSignerName
		}
		s := snapshot.Snapshot{Now: now}
		s.Add(joining("a"), r.CertificateSigningRequest)
		s = s.Answered(allRequests, allMachines)
		for _, a := range Decide(s).Actions() {
			if c, err := r.claim(); err != nil || c.node != "a" || serving {
				t.Errorf("%v is planned for node %q, error %v", a, c.node, err)
			}
		}
	})
}
