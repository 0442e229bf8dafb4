// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Whoever asks a question is told what is wrong with it, and with the answer not what else went wrong.
func TestWrongQuestionIsToldWhatIsWrong(t *testing.T) {
	t.Parallel()
	f := label(wantLabel)
	f.Answer = func(snapshot.Snapshot, json.RawMessage) (json.RawMessage, error) {
		return nil, errors.New(`pods[1]: spec.priorityClassName "batch" is not looked up: say priority`)
	}
	api := world(t, 1)
	for _, c := range []struct {
		reads cluster.Cluster
		code  int
		body  string
	}{
		{api.As("label"), http.StatusBadRequest, `pods[1]: spec.priorityClassName "batch"`},
		{failing{api.As("label")}, http.StatusServiceUnavailable, http.StatusText(http.StatusServiceUnavailable)},
	} {
		w := post(NewServer(testRunner(f, c.reads), nil), events.TypeSimulate)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.body) || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%d %q, want %d %q", w.Code, w.Body, c.code, c.body)
		}
	}
}

// failing is an API server of which nothing can be read.
type failing struct{ cluster.Cluster }

// Observe fails in words that are not for everybody.
func (failing) Observe(_ context.Context, s snapshot.Snapshot, _ []snapshot.Query) (snapshot.Snapshot, error) {
	return s, errors.New("proxy password hunter2 refused")
}
