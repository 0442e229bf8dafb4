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

// repository returns the root of this repository.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// startSystem starts everything, for as long as the test lasts; the logs of a test that failed are kept. The context ends
// after a while that begins with the start.
func startSystem(t *testing.T, within time.Duration, o stack.Options) (*stack.Stack, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	o.Root, o.Dir, o.Progress = repository(t), filepath.Join(t.TempDir(), "run"), os.Stderr
	s, err := stack.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Crashed(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			keepLogs(t, s.Logs)
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s, ctx
}

// play plays a story on a running system.
func play(ctx context.Context, t *testing.T, s *stack.Stack, tale story.Story) {
	t.Helper()
	tale.Root, tale.Kubectl, tale.Out = repository(t), s.Kubectl, os.Stderr
	if err := tale.Play(ctx); err != nil {
		t.Fatal(err)
	}
}

// playOn plays a cloud's walk-through on a system of its own, which is quiet in the end.
func playOn(t *testing.T, cloud string) *stack.Stack {
	t.Helper()
	s, ctx := startSystem(t, 20*time.Minute, stack.Options{Cloud: cloud})
	play(ctx, t, s, story.Story{Cloud: cloud})
	t.Run("quiet", func(t *testing.T) { checkQuiet(t, s) })
	return s
}
