// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	runtime "knative.dev/func-go/http"

	"github.com/machine-functions/machine-functions/shared/events"
)

// After SIGTERM the runtime waits for the last answer, then for Stop, longer than an invocation may take: what was begun
// comes to its end, and no other begins (RELIABILITY 2g).
func TestStopWaitsForWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	if budget >= runtime.ServerShutdownTimeout || budget >= runtime.InstanceStopTimeout {
		t.Errorf("an invocation may take %v, the runtime waits %v and %v", budget, runtime.ServerShutdownTimeout, runtime.InstanceStopTimeout)
	}
	synctest.Test(t, func(t *testing.T) {
		api := world(t, 1)
		s := NewServer(testRunner(label(wantLabel), slow{api.As("label"), 10 * time.Second}), nil)
		go post(s, events.TypePing)
		synctest.Wait()
		var stopper runtime.Stopper = s
		if err := stopper.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		wrote := len(api.Writes())
		w := post(s, events.TypePing)
		if now := len(api.Writes()); w.Code != http.StatusTooManyRequests || wrote < 2 || now != wrote {
			t.Errorf("%d writes when it had stopped, %d later; then %d", wrote, now, w.Code)
		}
	})
}
