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
