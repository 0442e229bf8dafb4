// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/test/local/stack"
	"github.com/machine-functions/machine-functions/test/local/story"
)

// The walk-through, played on the whole system with two processes of every function, each of which is killed once in
// the middle and started again: the end is the same, and no instance was ever made that the story does not need
// (S12–S43, R-S1, R-S2, R-L1).
func TestStoryWithKilledReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the whole system")
	}
	s, ctx := startSystem(t, 25*time.Minute, stack.Options{Replicas: 2})
	crashes := &crashes{stack: s}
	play(ctx, t, s, story.Story{Between: crashes.between})
	crashes.mu.Lock()
	defer crashes.mu.Unlock()
	if len(crashes.killed) != 2*len(stack.Functions) {
		t.Errorf("killed %d processes, want every one once: %v", len(crashes.killed), crashes.killed)
	}
	t.Run("history", func(t *testing.T) { checkHistory(t, s) })
	t.Run("quiet", func(t *testing.T) { checkQuiet(t, s) })
}

// crashes kills every process once: the first replicas while the sets come up, the second while the fifty pods wait.
type crashes struct {
	stack *stack.Stack

	mu     sync.Mutex
	killed []string
}

func (c *crashes) between(chapter string) error {
	replica := -1
	switch {
	case strings.HasPrefix(chapter, "The hand-made worker"):
		replica = 0
	case strings.HasPrefix(chapter, "The Job is done"):
		replica = 1
	case strings.HasPrefix(chapter, "Fifty pods"):
		go c.duringScaleUp()
	}
	if replica < 0 {
		return nil
	}
	for _, name := range stack.Functions {
		if name == "provision-machine" || name == "scale-machineset" {
			continue // these two are killed where it hurts most
		}
		if err := c.crash(name, replica); err != nil {
			return err
		}
	}
	return nil
}

// duringScaleUp kills both replicas of the functions that make Machines and instances, one after the other, as soon
// as the Job's Machines begin to appear.
func (c *crashes) duringScaleUp() {
	for {
		out, err := c.stack.Kubectl(context.Background(), "get", "machines", "-n", "openshift-machine-api", "-o", "name")
		if err != nil {
			return
		}
		if len(strings.Fields(out)) > 3 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	for replica := range 2 {
		for _, name := range []string{"provision-machine", "scale-machineset"} {
			if err := c.crash(name, replica); err != nil {
				fmt.Fprintln(os.Stderr, "restart:", err)
			}
		}
	}
}

func (c *crashes) crash(name string, replica int) error {
	p := c.stack.Replica(name, replica)
	p.Kill()
	c.mu.Lock()
	c.killed = append(c.killed, fmt.Sprintf("%s-%d", name, replica))
	c.mu.Unlock()
	if err := p.Start(); err != nil {
		return err
	}
	return p.AwaitReady(context.Background())
}

// checkHistory reads what the cloud wrote down of its own: one instance for each Machine that ever ran, no more.
func checkHistory(t *testing.T, s *stack.Stack) {
	t.Helper()
	out, err := s.Kubectl(t.Context(), "get", "configmaps", "-n", "kubemark", "-l", "kubemark.machine-functions.dev/machine-uid", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var records struct {
		Items []struct {
			Metadata struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(out), &records); err != nil {
		t.Fatal(err)
	}
	of := map[string][]string{}
	for _, r := range records.Items {
		uid := r.Metadata.Labels["kubemark.machine-functions.dev/machine-uid"]
		of[uid] = append(of[uid], r.Metadata.Name)
	}
	for uid, names := range of {
		if len(names) > 1 {
			t.Errorf("Machine %s had several instances: %v", uid, names)
		}
	}
	if want := 3 + 4; len(records.Items) != want {
		t.Errorf("%d instances were ever made, want %d: %v", len(records.Items), want, of)
	}
}

// checkQuiet holds that a settled system writes nothing: every resourceVersion of its objects stays for three scans
// (R-S14).
func checkQuiet(t *testing.T, s *stack.Stack) {
	t.Helper()
	const kinds = "machines,machinesets,machineautoscalers,clusterautoscalers,configmaps"
	versions := func() string {
		out, err := s.Kubectl(t.Context(), "get", kinds, "-n", "openshift-machine-api", "-o",
			`jsonpath={range .items[*]}{.kind}/{.metadata.name}@{.metadata.resourceVersion}{"\n"}{end}`)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	deadline := time.Now().Add(3 * time.Minute)
	for before := versions(); ; {
		time.Sleep(35 * time.Second)
		after := versions()
		if after == before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still writing:\n%s\n%s", before, after)
		}
		before = after
	}
}

// keepLogs shows where a failed run's logs are kept, and the last words of each: where tests run, files may not outlive them.
func keepLogs(t *testing.T, logs string) {
	t.Helper()
	kept, err := os.MkdirTemp("", "machine-functions-logs-") //nolint:usetesting // it outlives the test
	if err == nil {
		err = os.CopyFS(filepath.Join(kept, "logs"), os.DirFS(logs))
	}
	t.Logf("logs are kept in %s (%v)", kept, err)
	err = filepath.WalkDir(logs, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".log" {
			return err
		}
		content, err := os.ReadFile(path)
		lines := strings.Split(strings.TrimSpace(string(content)), "\n")
		for i, line := range lines {
			lines[i] = line[:min(len(line), 300)]
		}
		t.Logf("%s, %d lines:\n%s", entry.Name(), len(lines), strings.Join(lines[max(0, len(lines)-3):], "\n"))
		return err
	})
	if err != nil {
		t.Log(err)
	}
}
