// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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

// A function that somebody kills is started again, and told of in one line with why; one that ends at once whenever it is started
// is not for ever, nor is the cloud. What we ended ourselves stays so.
func TestRevive(t *testing.T) {
	var said strings.Builder
	start := func(address, command string) (*Stack, *Process) {
		p := &Process{Name: "link-node", Address: address, Log: filepath.Join(t.TempDir(), "log"), path: "/bin/sh", args: []string{"-c", command}}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		said.Reset()
		return &Stack{Processes: []*Process{p}, options: Options{Progress: &said}, started: time.Now()}, p
	}
	kill := func(p *Process) {
		if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-p.done
	}
	s, p := start("127.0.0.1:0", "exec sleep 60")
	for range 2 * mostAtOnce {
		first := p.PID()
		kill(p)
		p.took = atOnce
		if err := s.Revive(); err != nil || p.PID() == first || p.Crashed() != nil {
			t.Fatalf("not started again: %v, %v", err, p.Crashed())
		}
	}
	if lines := strings.Count(said.String(), "\n"); lines != 2*mostAtOnce || !strings.Contains(said.String(), "link-node ended by itself, signal: killed; its log is "+p.Log+"; it is started again\n") {
		t.Errorf("%d lines: %s", lines, said.String())
	}
	p.Kill()
	if err := s.Revive(); err != nil || syscall.Kill(p.PID(), 0) == nil {
		t.Errorf("what we ended was started again: %v", err)
	}

	s, p = start("127.0.0.1:0", "exit 3")
	for again := range mostAtOnce {
		<-p.done
		if err := s.Revive(); (err != nil) != (again == mostAtOnce-1) || err != nil && !strings.Contains(err.Error(), "link-node ended by itself, exit status 3") {
			t.Errorf("after %d ends: %v", again+1, err)
		}
	}
	s, p = start("", "exec sleep 60")
	kill(p)
	if err := s.Revive(); err == nil || said.Len() > 0 {
		t.Errorf("the cloud: %v %s", err, said.String())
	}
}
