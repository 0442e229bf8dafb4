// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"knative.dev/networking/pkg/apis/networking/v1alpha1"
)

func backend(name string, percent int) v1alpha1.IngressBackendSplit {
	return v1alpha1.IngressBackendSplit{
		IngressBackend: v1alpha1.IngressBackend{ServiceNamespace: "machines", ServiceName: name, ServicePort: intstr.FromInt32(80)},
		Percent:        percent, AppendHeaders: map[string]string{"Knative-Serving-Revision": name},
	}
}

func TestRequestsGoWhereTheRuleSays(t *testing.T) {
	t.Parallel()
	var r routes
	r.replace([]*v1alpha1.Ingress{{Spec: v1alpha1.IngressSpec{Rules: []v1alpha1.IngressRule{{
		Hosts: []string{"link-node.machines.svc.cluster.local"},
		HTTP: &v1alpha1.HTTPIngressRuleValue{Paths: []v1alpha1.HTTPIngressPath{
			{Splits: []v1alpha1.IngressBackendSplit{backend("v1", 100)}},
			{Headers: map[string]v1alpha1.HeaderMatch{"Tag": {Exact: "next"}}, Splits: []v1alpha1.IngressBackendSplit{backend("v2", 100)}},
			{Path: "/metrics", RewriteHost: "other", Splits: []v1alpha1.IngressBackendSplit{backend("m", 100)}},
		}},
	}}}}})
	for _, tt := range []struct{ name, url, tag, want, host string }{
		{"by host", "http://link-node.machines.svc.cluster.local/", "", "v1.machines.svc.cluster.local:80", "link-node.machines.svc.cluster.local"},
		{"with a port", "http://link-node.machines.svc.cluster.local:80/", "", "v1.machines.svc.cluster.local:80", "link-node.machines.svc.cluster.local:80"},
		{"by header", "http://link-node.machines.svc.cluster.local/", "next", "v2.machines.svc.cluster.local:80", "link-node.machines.svc.cluster.local"},
		{"by path", "http://link-node.machines.svc.cluster.local/metrics", "", "m.machines.svc.cluster.local:80", "other"},
		{"nowhere", "http://remediate.machines.svc.cluster.local/", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			request := httptest.NewRequest("POST", tt.url, nil)
			if tt.tag != "" {
				request.Header.Set("Tag", tt.tag)
			}
			if ok := r.direct(request); ok != (tt.want != "") {
				t.Fatalf("is directed: %v", ok)
			}
			if tt.want != "" && (request.URL.Host != tt.want || request.Host != tt.host) {
				t.Errorf("goes to %s as %s, want %s as %s", request.URL.Host, request.Host, tt.want, tt.host)
			}
		})
	}
}

func TestSplitsShareByPercent(t *testing.T) {
	t.Parallel()
	splits := []v1alpha1.IngressBackendSplit{backend("v1", 90), backend("v2", 10)}
	got := map[string]int{}
	for n := range 100 {
		got[choose(splits, n).ServiceName]++
	}
	if got["v1"] != 90 || got["v2"] != 10 {
		t.Errorf("got %v", got)
	}
}
