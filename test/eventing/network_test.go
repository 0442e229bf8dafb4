// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// replica answers with its name, the Host and the body that it was sent.
func replica(t *testing.T, name string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, name+" "+r.Host+" "+string(body))
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// post sends "hello" through the network and returns the status and the answer.
func post(t *testing.T, n *network, target string) (int, string) {
	t.Helper()
	server := httptest.NewServer(n.handler())
	defer server.Close()
	proxy, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy)}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Post(target, "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

func TestReplicasTakeTurns(t *testing.T) {
	t.Parallel()
	n := newNetwork(map[string]*service{"f.ns": newService(replica(t, "a"), replica(t, "b"))}, nil)
	for _, want := range []string{"a", "b", "a"} {
		if status, got := post(t, n, "http://f.ns.svc.cluster.local/"); status != http.StatusOK || got != want+" f.ns.svc.cluster.local hello" {
			t.Errorf("got %d %q, want %s", status, got, want)
		}
	}
}

func TestDeadReplicaIsPassedOver(t *testing.T) {
	t.Parallel()
	dead, err := freeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	n := newNetwork(map[string]*service{"f.ns": newService(dead[0], replica(t, "b"))}, nil)
	for range 3 {
		if status, got := post(t, n, "http://f.ns.svc/"); status != http.StatusOK || got != "b f.ns.svc hello" {
			t.Errorf("got %d %q", status, got)
		}
	}
	n = newNetwork(map[string]*service{"f.ns": newService(dead[0])}, nil)
	if status, _ := post(t, n, "http://f.ns.svc/"); status != http.StatusBadGateway {
		t.Errorf("got %d when every replica is dead", status)
	}
}

// A service that answers nobody takes so many requests and no more; one that answers has room again.
func TestFullServiceSaysSo(t *testing.T) {
	t.Parallel()
	s := newService(replica(t, "a"))
	n := newNetwork(map[string]*service{"f.ns": s}, nil)
	for range mostUnderWay {
		if !s.enter() {
			t.Fatal("there is no room")
		}
	}
	for range 2 {
		if status, got := post(t, n, "http://f.ns.svc/"); status != http.StatusServiceUnavailable {
			t.Errorf("got %d %q of a full service", status, got)
		}
	}
	s.leave()
	for range 2 {
		if status, got := post(t, n, "http://f.ns.svc/"); status != http.StatusOK {
			t.Errorf("got %d %q of a service that has room for one", status, got)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	n := newNetwork(nil, newService(replica(t, "channels")))
	if _, got := post(t, n, "http://x-kne-trigger-kn-channel.ns.svc.cluster.local/"); got != "channels x-kne-trigger-kn-channel.ns.svc.cluster.local hello" {
		t.Errorf("a channel is served by %q", got)
	}
	if status, _ := post(t, n, "http://example.com/"); status != http.StatusBadGateway {
		t.Errorf("a name outside of the cluster got %d", status)
	}
}
