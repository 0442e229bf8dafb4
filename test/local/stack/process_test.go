// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

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
