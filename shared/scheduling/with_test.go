// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// A world with more Pods answers as one that was made with them, and leaves the one that it was made from as it was.
func TestWithIsAWorldMadeAnew(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes, waiting, _ := situations(t)
		if len(nodes) == 0 || len(waiting) < 2 {
			t.Skip("nobody to be put anywhere")
		}
		more, full := map[int][]*corev1.Pod{}, slices.Clone(nodes)
		for _, p := range waiting[1:] {
			n := rapid.IntRange(0, len(nodes)-1).Draw(t, "node")
			more[n] = append(more[n], p)
			full[n].Pods = append(slices.Clip(full[n].Pods), p)
		}
		before := NewWorld(nodes, waiting, nil)
		verdicts := func(w *World) (all []string) {
			q := w.Ask(waiting[0])
			for n := range nodes {
				all = append(all, q.Refused(n))
			}
			return all
		}
		was := verdicts(before)
		want, got := verdicts(NewWorld(full, waiting, nil)), verdicts(before.With(more))
		again := verdicts(before)
		for n := range nodes {
			if got[n] != want[n] || again[n] != was[n] {
				t.Errorf("node %s: %q, want %q; the first world says %q, then %q", nodes[n].Name, got[n], want[n], was[n], again[n])
			}
		}
	})
}
