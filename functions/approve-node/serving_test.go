// SPDX-License-Identifier: Apache-2.0

package approvenode

import (
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// serving returns what the kubelet of a Node asks for to serve under names and addresses.
func serving(t testing.TB, node string, names []string, ips ...string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	r := client(t, node, time.Hour)
	r.Spec.SignerName, r.Spec.Username, r.Spec.Groups = certificatesv1.KubeletServingSignerName, "system:node:"+node, []string{"system:nodes"}
	r.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	x := x509.CertificateRequest{Subject: subject(node), DNSNames: names}
	for _, ip := range ips {
		x.IPAddresses = append(x.IPAddresses, net.ParseIP(ip))
	}
	r.Spec.Request = signed(t, x)
	return r
}

// joined returns a Machine with its Node, under these addresses.
func joined(name string, ips ...string) (*machine.Machine, *corev1.Node) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "node-uid"}}
	m := joining(name)
	m.Status.NodeRef = &corev1.ObjectReference{Name: name, UID: n.UID}
	for _, ip := range ips {
		m.Status.Addresses = append(m.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	return m, n
}

// On vSphere a guest tells its own addresses, and clouds whose credentials are a tenant's say what they like: who could serve under
// another Machine's address could play its kubelet (B81).
func TestServingUnderAnotherMachinesAddress(t *testing.T) {
	t.Parallel()
	victim := func(change func(*machine.Machine)) *machine.Machine {
		m, _ := joined("victim", "FD00:0:0::7", "10.0.0.7")
		m.Namespace = "machines-b"
		m.Status.Addresses = append(m.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalDNS, Address: "victim.example.com"})
		change(m)
		return m
	}
	with := func(address string) func(*machine.Machine) {
		return func(m *machine.Machine) {
			m.Status.Addresses = append(m.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
		}
	}
	for _, tt := range []struct {
		name   string
		other  *machine.Machine
		change func(*machine.Machine) // of who asks
		ip     string
		dns    []string
		want   bool
	}{
		{"its own", victim(func(*machine.Machine) {}), nil, "10.0.0.5", nil, true},
		{"another's", victim(func(*machine.Machine) {}), with("10.0.0.7"), "10.0.0.7", nil, false},
		{"another's, written otherwise", victim(func(*machine.Machine) {}), with("fd00::7"), "fd00::7", nil, false},
		{"another's name", victim(func(*machine.Machine) {}), func(m *machine.Machine) {
			m.Status.Addresses = append(m.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalDNS, Address: "victim.example.com"})
		}, "10.0.0.5", []string{"victim.example.com"}, false},
		{"of one that goes", victim(func(m *machine.Machine) { m.DeletionTimestamp = new(metav1.NewTime(now)) }), with("10.0.0.7"), "10.0.0.7", nil, true},
		{"of one without a node", victim(func(m *machine.Machine) { m.Status.NodeRef = nil }), with("10.0.0.7"), "10.0.0.7", nil, true},
		{"of one that lost its instance", victim(func(m *machine.Machine) {
			m.Status.Phase = new(machine.PhaseFailed)
			m.Status.Conditions = machine.SetCondition(nil, machine.False(machine.ConditionInstanceExists, "", "InstanceMissing", ""), now)
		}), with("10.0.0.7"), "10.0.0.7", nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, n := joined("a", "10.0.0.5")
			if tt.change != nil {
				tt.change(m)
			}
			s := snapshot.Snapshot{Now: now}
			s.Add(m, n, tt.other, serving(t, "a", append([]string{"a"}, tt.dns...), tt.ip))
			p := Decide(s.Answered(allRequests, allMachines))
			if got := len(p.Actions()) == 1; got != tt.want {
				t.Errorf("approved: %v\n%v", got, p)
			}
			if !tt.want && (len(p.Notes) != 1 || !strings.Contains(p.Notes[0].Message, "machines-b/victim")) {
				t.Errorf("it is not told whose it is: %v", p.Notes)
			}
		})
	}
}

// A Machine may be called as a Service is, and its cloud then says that this is its name: who could serve under it could play the API
// server to every Pod, where one authority signs for both (B81).
func TestServingUnderTheNameOfAService(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"kubernetes": 0, "kubernetes.default": 0, "kubernetes.default.svc": 0, "kubernetes.default.svc.cluster.local": 0, "mine.theirs.svc": 0, "Kubernetes.Default.SVC": 0, "*.example.com": 0,
		"worker-svc": 1, "svc.example.com": 1, "kubernetes-1": 1, "worker-0.svc-cluster.example.com": 1,
	} {
		m, n := joined("a", "10.0.0.5")
		m.Status.Addresses = append(m.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: name})
		s := snapshot.Snapshot{Now: now}
		s.Add(m, n, serving(t, "a", []string{name}, "10.0.0.5"))
		p := Decide(s.Answered(allRequests, allMachines))
		if got := len(p.Actions()); got != want || want == 0 && !strings.Contains(fmt.Sprint(p.Notes), name) {
			t.Errorf("%s: %d approvals, want %d: %v", name, got, want, p)
		}
	}
}

// A kubelet asks for itself alone: one that asks all the time, because somebody took it over, keeps nobody else out (B82).
func TestOneKubeletHoldsUpNobody(t *testing.T) {
	t.Parallel()
	m, n := joined("a", "10.0.0.5")
	s := snapshot.Snapshot{Now: now}
	s.Add(m, n, joining("b"), client(t, "b", time.Minute))
	for k := range spare + 50 {
		r := serving(t, "a", []string{"a"}, "10.0.0.66")
		r.Name, r.CreationTimestamp = fmt.Sprintf("csr-%d", k), metav1.NewTime(now.Add(-time.Minute))
		s.Add(r)
	}
	if p := Decide(s.Answered(allRequests, allMachines)); len(p.Actions()) != 1 {
		t.Errorf("%d approvals, want that of the other: %.300s", len(p.Actions()), fmt.Sprint(p.Notes))
	}
	for k := range spare/mostOfOne + 1 {
		for range mostOfOne {
			r := serving(t, fmt.Sprintf("n%d", k), []string{"a"}, "10.0.0.66")
			r.Name, r.CreationTimestamp = fmt.Sprintf("csr-%d-%d", k, len(s.SigningRequests)), metav1.NewTime(now.Add(-time.Minute))
			s.Add(r)
		}
	}
	if p := Decide(s.Answered(allRequests, allMachines)); len(p.Actions()) != 0 || len(p.Notes) != 1 || p.Notes[0].Reason != "ApprovalsHeld" {
		t.Errorf("of many it is not held: %d approvals", len(p.Actions()))
	}
}
