// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"knative.dev/networking/pkg/apis/networking/v1alpha1"
)

// routes are the paths by host. They are replaced as a whole and may be read at any time.
type routes struct {
	byHost atomic.Pointer[map[string][]v1alpha1.HTTPIngressPath]
}

func (r *routes) replace(ingresses []*v1alpha1.Ingress) {
	all := map[string][]v1alpha1.HTTPIngressPath{}
	for _, ingress := range ingresses {
		for _, rule := range ingress.Spec.Rules {
			for _, host := range rule.Hosts {
				if rule.HTTP != nil {
					all[host] = append(all[host], rule.HTTP.Paths...)
				}
			}
		}
	}
	r.byHost.Store(&all)
}

// direct rewrites a request to where KIngress wants it, and reports whether there is such a place.
func (r *routes) direct(request *http.Request) bool {
	host, _, err := net.SplitHostPort(request.Host)
	if err != nil {
		host = request.Host
	}
	var paths []v1alpha1.HTTPIngressPath
	if all := r.byHost.Load(); all != nil {
		paths = (*all)[host]
	}
	best := -1
	for i, p := range paths {
		if fits(p, request) && (best < 0 || rank(p) > rank(paths[best])) {
			best = i
		}
	}
	if best < 0 || len(paths[best].Splits) == 0 {
		return false
	}
	path := paths[best]
	split := choose(path.Splits, rand.IntN(100))
	for _, headers := range []map[string]string{path.AppendHeaders, split.AppendHeaders} {
		for name, value := range headers {
			request.Header.Set(name, value)
		}
	}
	if path.RewriteHost != "" {
		request.Host = path.RewriteHost
	}
	request.URL.Scheme = "http"
	request.URL.Host = fmt.Sprintf("%s.%s.svc.cluster.local:%s", split.ServiceName, split.ServiceNamespace, split.ServicePort.String())
	return true
}

func fits(p v1alpha1.HTTPIngressPath, request *http.Request) bool {
	if !strings.HasPrefix(request.URL.Path, p.Path) {
		return false
	}
	for name, want := range p.Headers {
		if request.Header.Get(name) != want.Exact {
			return false
		}
	}
	return true
}

// rank orders the paths that fit: the longer one first, then the one that asks for more headers.
func rank(p v1alpha1.HTTPIngressPath) int { return len(p.Path)*1000 + len(p.Headers) }

// choose returns the split that a number below 100 falls into.
func choose(splits []v1alpha1.IngressBackendSplit, n int) v1alpha1.IngressBackendSplit {
	for _, s := range splits {
		if n -= s.Percent; n < 0 {
			return s
		}
	}
	return splits[0] // without percentages there is one
}
