// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// refusing is an API server that takes its time to refuse a write.
type refusing struct{ cluster.Cluster }

func (c refusing) Apply(context.Context, plan.Action) error {
	time.Sleep(2 * time.Second)
	return errors.New("refused")
}

// Of all who tell of one object while it is decided about, one waits for the next invocation, which sees what all of them know, and is told
// how it ended: what fails is delivered again once. The others are answered at once: who is answered late takes a place in the Broker.
func TestOneWaitsForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := refusing{world(t, 1).As("label")}
		s := NewServer(testRunner(label(wantLabel), api), nil)
		began := time.Now()
		type answer struct {
			status int
			atOnce bool
		}
		answers := make([]answer, 5)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() {
				req := httptest.NewRequest(http.MethodPost, "/", nil)
				for k, v := range map[string]string{"Specversion": "1.0", "Id": fmt.Sprint(i), "Source": "x", "Type": events.TypeRefPrefix + "update",
					"Apiversion": "v1", "Kind": "Node", "Name": "n0"} {
					req.Header.Set("Ce-"+k, v)
				}
				w := httptest.NewRecorder()
				s.Handle(w, req)
				answers[i] = answer{w.Code, time.Since(began) < time.Second}
			})
			synctest.Wait()
		}
		all.Wait()
		for i, want := range []answer{
			{http.StatusServiceUnavailable, false}, // it is decided about
			{http.StatusServiceUnavailable, false}, // it waits
			{http.StatusAccepted, true}, {http.StatusAccepted, true}, {http.StatusAccepted, true},
		} {
			if answers[i] != want {
				t.Errorf("event %d: %+v, want %+v", i, answers[i], want)
			}
		}
	})
}
