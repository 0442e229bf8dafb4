// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// unwilling is an API server that answers writes with an error which proves nothing, at length, as a webhook's may be.
type unwilling struct {
	cluster.Cluster
	words string
}

func (c unwilling) Apply(context.Context, plan.Action) error { return errors.New(c.words) }

// However much a scan wants, and however much of it fails, no line of the log is longer than what a container's runtime keeps whole: 16 kB.
// Nothing that is wanted is left out.
func TestLinesOfTheLogAreShort(t *testing.T) {
	t.Parallel()
	for words, nodes := range map[string]int{"the server was unable to return a response in the time allotted": 1000, strings.Repeat("x", 1<<16): 10} {
		var log bytes.Buffer
		r := testRunner(label(wantLabel), unwilling{world(t, nodes).As("label"), words})
		r.Log = slog.New(slog.NewJSONHandler(&log, nil))
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err == nil {
			t.Error("nothing failed")
		}
		for line := range strings.Lines(log.String()) {
			if len(line) > 16<<10 {
				t.Errorf("%d bytes in one line: %.100s", len(line), line)
			}
		}
		if n := strings.Count(log.String(), "(wanted)"); n != nodes {
			t.Errorf("%d of %d changes are logged as wanted", n, nodes)
		}
	}
}

// What a function tells of an object may quote it, as approve-node quotes the names in a request that a stranger made: of a megabyte the
// beginning is logged, and remembered as told.
func TestNotesAreLoggedInShort(t *testing.T) {
	t.Parallel()
	for what, notes := range map[string]func(plan.Note) plan.Plan{
		"of a state": func(n plan.Note) plan.Plan { return plan.Plan{Notes: []plan.Note{n}} },
		"of a deed":  func(n plan.Note) plan.Plan { return plan.Plan{Do: []plan.Sequence{{Notes: []plan.Note{n}}}} },
	} {
		var log bytes.Buffer
		f := label(func(s snapshot.Snapshot) plan.Plan {
			if len(s.Outcomes) > 0 {
				return plan.Plan{}
			}
			return notes(plan.Warning(s.Nodes[0], "Refused", "organizations "+strings.Repeat("x", 1<<20)))
		})
		r := testRunner(f, world(t, 1).As("label"))
		r.Log = slog.New(slog.NewJSONHandler(&log, nil))
		_, _ = r.Handle(t.Context(), snapshot.Request{})
		if !strings.Contains(log.String(), "organizations xxx") || log.Len() > 64<<10 {
			t.Errorf("%s: %d bytes are logged: %.300s", what, log.Len(), log.String())
		}
		for n := range r.told.last {
			if len(n.Message) > mostSaid {
				t.Errorf("%s: %d bytes are remembered", what, len(n.Message))
			}
		}
	}
}
