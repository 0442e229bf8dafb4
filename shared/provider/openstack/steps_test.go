// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// TestEachStepChangesTheProgress: a progress that is as it was says that the call waited, and the next one comes after a pause. A call that made
// something must not say so.
func TestEachStepChangesTheProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, everything)
		steps := 0
		for range 20 {
			made := func() (n int) {
				for _, kind := range []string{"ports", "trunks", "volumes", "server_groups", "servers"} {
					n += f.count(kind)
				}
				return n
			}
			before, had := made(), bytes.Clone(l.ref.Progress)
			in, err := l.Create(t.Context(), l.ref, l.resolved)
			if err != nil {
				t.Fatal(err)
			}
			if in.State != provider.StateIncomplete {
				break
			}
			l.ref.Progress = in.Progress
			if made() == before {
				continue
			}
			if steps++; bytes.Equal(had, in.Progress) {
				t.Errorf("a call that made something left the progress %s", in.Progress)
			}
		}
		if steps < 4 { // ports, trunks and two volumes
			t.Errorf("%d steps only", steps)
		}
	})
}
