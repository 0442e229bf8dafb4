// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
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

// dead is an address at which nobody listens, and which nobody is given.
const dead = "127.0.0.1:1"

func services(t *testing.T, addresses map[string][]string) *cluster {
	t.Helper()
	text, err := json.Marshal(addresses)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCluster(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// post sends "hello" as a pod of the cluster does and returns the answer, or the error.
func post(t *testing.T, c *cluster, target string) string {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: sender{c, transport}}).Post(target, "text/plain", strings.NewReader("hello"))
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestReplicasTakeTurns(t *testing.T) {
	t.Parallel()
	c := services(t, map[string][]string{"f.ns": {replica(t, "a"), replica(t, "b")}})
	for _, want := range []string{"a", "b", "a"} {
		if got := post(t, c, "http://f.ns.svc.cluster.local/"); got != want+" f.ns.svc.cluster.local hello" {
			t.Errorf("got %q, want %s", got, want)
		}
	}
}

func TestDeadReplicaIsPassedOver(t *testing.T) {
	t.Parallel()
	c := services(t, map[string][]string{"f.ns": {dead, replica(t, "b")}})
	for range 3 {
		if got := post(t, c, "http://f.ns.svc/"); got != "b f.ns.svc hello" {
			t.Errorf("got %q", got)
		}
	}
	c = services(t, map[string][]string{"f.ns": {dead}})
	if got := post(t, c, "http://f.ns.svc/"); !strings.Contains(got, "connection refused") {
		t.Errorf("got %q when every replica is dead", got)
	}
}

// A process that waits for too many answers takes nothing more; once it is answered it does.
func TestFullProcessRefuses(t *testing.T) {
	t.Parallel()
	c := services(t, map[string][]string{"f.ns": {replica(t, "a")}})
	const most = 10
	handler := c.bounded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), most)
	status := func() int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
		return w.Code
	}
	c.underWay.Store(most)
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("a full process answers %d", got)
	}
	c.underWay.Store(most - 1)
	if got := status(); got != http.StatusOK {
		t.Errorf("a process with room for one answers %d", got)
	}
	if got := post(t, c, "http://f.ns.svc/"); got != "a f.ns.svc hello" || c.underWay.Load() != most-1 {
		t.Errorf("got %q, and %d are under way", got, c.underWay.Load())
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	c := services(t, map[string][]string{channels: {replica(t, "channels")}})
	if got := post(t, c, "http://x-kne-trigger-kn-channel.ns.svc.cluster.local/"); got != "channels x-kne-trigger-kn-channel.ns.svc.cluster.local hello" {
		t.Errorf("a channel is served by %q", got)
	}
	if got := post(t, c, "http://example.com/"); !strings.Contains(got, "no service has the name") {
		t.Errorf("a name outside of the cluster got %q", got)
	}
}
