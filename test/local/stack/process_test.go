// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// Two functions at one address would be one function, silently: the second cannot listen, and the first answers for it.
func TestHeldAddressesDiffer(t *testing.T) {
	addresses, held, err := holdAddresses(500)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, a := range addresses {
		t.Cleanup(func() { _ = held[i].Close() })
		if seen[a] {
			t.Fatalf("%s is there twice", a)
		}
		seen[a] = true
	}
}

// A function that was killed listens at its address again: nobody else was given that meanwhile.
func TestHeldAddressIsOfWhoeverAsksForIt(t *testing.T) {
	addresses, held, err := holdAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held[0].Close() })
	for range 2 {
		l, err := net.Listen("tcp", addresses[0])
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", addresses[0])
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Close(), l.Close()
	}
	if c, err := net.Dial("tcp", addresses[0]); err == nil {
		t.Errorf("somebody listens at %s", c.RemoteAddr())
	}
	for range 500 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if l.Addr().String() == addresses[0] {
			t.Fatalf("%s was given to somebody else", addresses[0])
		}
	}
}

// A process that ended by itself is told of, and is not ready, also when somebody else answers at its address.
func TestCrashed(t *testing.T) {
	somebody := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer somebody.Close()
	start := func(command string) *Process {
		p := &Process{
			Name: "link-node", Address: strings.TrimPrefix(somebody.URL, "http://"), Log: filepath.Join(t.TempDir(), "log"),
			path: "/bin/sh", args: []string{"-c", command},
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		return p
	}
	crashed := start("exit 3")
	<-crashed.done
	for name, err := range map[string]error{"Crashed": crashed.Crashed(), "AwaitReady": crashed.AwaitReady(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "link-node ended by itself, exit status 3") {
			t.Errorf("%s: %v", name, err)
		}
	}
	lives := start("exec sleep 60")
	if err := lives.Crashed(); err != nil {
		t.Error(err)
	}
	lives.Kill()
	if err := lives.Crashed(); err != nil {
		t.Errorf("killed by us: %v", err)
	}
}
