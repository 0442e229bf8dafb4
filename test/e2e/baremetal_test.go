// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/test/local/stack"
	"github.com/machine-functions/machine-functions/test/local/story"
)

// The walk-through of a cluster on hosts, with the real baremetal-operator: a host that waited becomes a Node under its own
// name, and goes back to the stock; the installer's masters and workers, which carry no tag of ours, stay (S49–S71, E34).
func TestBareMetalStory(t *testing.T) {
	if testing.Short() || os.Getenv("METAL3") == "" {
		t.Skip("make test-metal3 runs this")
	}
	playOn(t, "metal3")
}

// playOn plays a cloud's walk-through on a system of its own, which is quiet in the end.
func playOn(t *testing.T, cloud string) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	s, err := stack.Start(ctx, stack.Options{Root: root, Dir: filepath.Join(t.TempDir(), "run"), Cloud: cloud, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			keepLogs(t, s.Logs)
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	tale := story.Story{Root: root, Cloud: cloud, Kubectl: s.Kubectl, Out: os.Stderr}
	if err := tale.Play(ctx); err != nil {
		t.Fatal(err)
	}
	t.Run("quiet", func(t *testing.T) { checkQuiet(t, s) })
}
