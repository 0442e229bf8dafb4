// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A Neutron that is overloaded serves one request after the other, and slowly. Each call to the driver reads what there is
// before it changes anything, so few requests are what lets it get on at all within its ten seconds.
func TestSlowNeutronGetsFewRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, `"trunk": true`)
		var requests atomic.Int32
		f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
			if !after && strings.Contains(r.URL.Path, "/network/") {
				requests.Add(1)
				time.Sleep(2500 * time.Millisecond) // also for a caller that has gone
			}
			return nil, nil
		}
		begin := time.Now()
		for f.count("servers") == 0 && time.Since(begin) < 5*time.Minute {
			l.step(t)
		}
		if n := requests.Load(); n > 11 || time.Since(begin) > time.Minute {
			t.Errorf("an instance with a port and a trunk took %d requests and %v", n, time.Since(begin))
		}
	})
}
