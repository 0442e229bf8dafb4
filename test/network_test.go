// SPDX-License-Identifier: Apache-2.0

package test

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// somebody is who is asked. A network that knows its Nodes as such, as Cilium does, finds them in no block of addresses; nor
// is an address that is one of the Node itself, as that of NodeLocal DNS.
type somebody struct {
	address string
	node    bool
	labels  map[string]string // of a Pod's namespace
}

// What functions need is let through by every network that enforces NetworkPolicies, and what holds the credentials of Nodes
// is not: the policies are read here as the API says, with what networks differ in taken at its strictest.
func TestNetworkLetsThroughWhatFunctionsNeed(t *testing.T) {
	t.Parallel()
	policies := networkPolicies(t, "network/egress.yaml")
	house := load(t, os.DirFS(".."))
	dns := somebody{address: "10.244.0.7", labels: map[string]string{"kubernetes.io/metadata.name": "kube-system"}}
	for _, tt := range []struct {
		what string
		to   somebody
		port int
		who  string // "all", "clouds", "nobody"
	}{
		{"an API server on Nodes", somebody{address: "192.168.1.10", node: true}, 6443, "all"},
		{"an API server behind a balancer", somebody{address: "203.0.113.9"}, 443, "all"},
		{"minikube's API server", somebody{address: "192.168.49.2", node: true}, 8443, "all"},
		{"MicroK8s' API server", somebody{address: "192.168.1.10", node: true}, 16443, "all"},
		{"the cluster's DNS", dns, 53, "all"},
		{"OpenShift's DNS", somebody{address: "10.128.0.7", labels: map[string]string{"kubernetes.io/metadata.name": "openshift-dns"}}, 5353, "all"},
		{"NodeLocal DNS", somebody{address: "169.254.20.10", node: true}, 53, "all"},
		{"a Keystone", somebody{address: "203.0.113.5"}, 5000, "clouds"},
		{"a cloud over IPv6", somebody{address: "2001:db8::5"}, 8774, "clouds"},
		{"the metadata service", somebody{address: "169.254.169.254"}, 80, "nobody"},
		{"the credentials of ECS and EKS", somebody{address: "169.254.170.2"}, 80, "nobody"},
		{"EC2's metadata over IPv6", somebody{address: "fd00:ec2::254"}, 80, "nobody"},
		{"the credentials of EKS over IPv6", somebody{address: "fd00:ec2::23"}, 80, "nobody"},
		{"Azure's WireServer", somebody{address: "168.63.129.16"}, 80, "nobody"},
		{"Alibaba's metadata", somebody{address: "100.100.100.200"}, 80, "nobody"},
		{"Alibaba's metadata over IPv6", somebody{address: "fd00:100::100:200"}, 80, "nobody"},
		{"Oracle's metadata", somebody{address: "192.0.0.192"}, 80, "nobody"},
		{"Oracle's metadata over IPv6", somebody{address: "fd00:c1::a9fe:a9fe"}, 80, "nobody"},
		{"Google's metadata over IPv6", somebody{address: "fd20:ce::254"}, 80, "nobody"},
		{"Scaleway's metadata over IPv6", somebody{address: "fd00:42::42"}, 80, "nobody"},
		{"Akamai's metadata over IPv6", somebody{address: "fd00:a9fe:a9fe::1"}, 80, "nobody"},
		{"the metadata service through NAT64", somebody{address: "64:ff9b::a9fe:a9fe"}, 80, "nobody"},
		{"Azure's WireServer through NAT64", somebody{address: "64:ff9b::a83f:8110"}, 80, "nobody"},
		{"Alibaba's metadata through NAT64", somebody{address: "64:ff9b::6464:64c8"}, 80, "nobody"},
		{"Oracle's metadata through NAT64", somebody{address: "64:ff9b::c000:c0"}, 80, "nobody"},
		{"a cloud through NAT64", somebody{address: "64:ff9b::cb00:7105"}, 5000, "clouds"},
		{"Azure's WireServer, its agents' port", somebody{address: "168.63.129.16"}, 32526, "nobody"},
		{"a kubelet", somebody{address: "192.168.1.10", node: true}, 10250, "nobody"},
	} {
		for _, name := range append(house.functions(), whole) {
			want := tt.who == "all" || tt.who == "clouds" && (name == "provision-machine" || name == "sweep-instances" || name == whole)
			if got := lets(t, policies, name, tt.to, tt.port); got != want {
				t.Errorf("%s may ask %s (%s, port %d): %v, want %v", name, tt.what, tt.to.address, tt.port, got, want)
			}
		}
	}
}

// OpenShift denies its own namespace all traffic (NetworkPolicy default-deny). With its overlay the adapters of sources, which are no Services,
// get out all the same, by the labels that Eventing gives their Pods; what comes from functions is let through by config/network everywhere.
func TestSourcesGetOutOnOpenShift(t *testing.T) {
	t.Parallel()
	if !strings.Contains(text(t, filepath.Join("..", "config", "overlays", "openshift", "kustomization.yaml")), "- network.yaml\n") {
		t.Error("the overlay has no policy of the sources")
	}
	adapter := map[string]string{"eventing.knative.dev/source": "apiserver-source-controller", "eventing.knative.dev/sourceName": "machines"}
	for _, p := range networkPolicies(t, "overlays/openshift/network.yaml") {
		if !matches(t, &p.Spec.PodSelector, adapter) || len(p.Spec.Egress) != 1 || len(p.Spec.Egress[0].To)+len(p.Spec.Egress[0].Ports) != 0 {
			t.Errorf("%s lets the source get out of %v by %v", p.Name, p.Spec.PodSelector, p.Spec.Egress)
		}
	}
}

// Whatever Service may be deployed from here is scraped: functions, the sink, the root. A metric that names an object's namespace keeps it:
// otherwise Prometheus puts the Pod's there, and Machines of one name in two namespaces are one.
func TestEveryServiceIsScraped(t *testing.T) {
	t.Parallel()
	var monitor struct {
		Spec struct {
			Selector            metav1.LabelSelector
			PodMetricsEndpoints []struct{ HonorLabels bool }
		}
	}
	if err := yaml.Unmarshal([]byte(text(t, filepath.Join("..", "config", "monitoring", "pods.yaml"))), &monitor); err != nil {
		t.Fatal(err)
	}
	if endpoints := monitor.Spec.PodMetricsEndpoints; len(endpoints) != 1 || !endpoints[0].HonorLabels {
		t.Errorf("the label namespace of metrics is lost: %+v", endpoints)
	}
	for _, name := range append(load(t, os.DirFS("..")).functions(), sink, whole) {
		if !matches(t, &monitor.Spec.Selector, map[string]string{"serving.knative.dev/service": name}) {
			t.Errorf("nobody reads the metrics of %s", name)
		}
	}
}

func networkPolicies(t *testing.T, file string) (all []networkingv1.NetworkPolicy) {
	t.Helper()
	for document := range strings.SplitSeq(text(t, filepath.Join("..", "config", file)), "\n---\n") {
		var p networkingv1.NetworkPolicy
		if err := yaml.UnmarshalStrict([]byte(document), &p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// lets reports whether the policies let a function's Pods ask somebody.
func lets(t *testing.T, policies []networkingv1.NetworkPolicy, function string, to somebody, port int) bool {
	t.Helper()
	bound := false
	for _, p := range policies {
		if !matches(t, &p.Spec.PodSelector, map[string]string{"serving.knative.dev/service": function}) {
			continue
		}
		bound = true
		for _, rule := range p.Spec.Egress {
			here := len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
				return p.Port == nil || *p.Port == intstr.FromInt(port)
			})
			if here && (len(rule.To) == 0 || slices.ContainsFunc(rule.To, func(p networkingv1.NetworkPolicyPeer) bool { return isPeer(t, p, to) })) {
				return true
			}
		}
	}
	return !bound
}

func isPeer(t *testing.T, p networkingv1.NetworkPolicyPeer, to somebody) bool {
	t.Helper()
	if p.IPBlock == nil {
		return to.labels != nil && matches(t, p.NamespaceSelector, to.labels)
	}
	in := func(block string) bool { return netip.MustParsePrefix(block).Contains(netip.MustParseAddr(to.address)) }
	return !to.node && to.labels == nil && in(p.IPBlock.CIDR) && !slices.ContainsFunc(p.IPBlock.Except, in)
}

func matches(t *testing.T, selector *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(labels.Set(of))
}
