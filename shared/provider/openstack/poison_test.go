// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/beside"
)

// What is asked for side by side panics where it is waited for: who called can survive it (RELIABILITY 2c).
func TestPanicSideBySideIsTheCallers(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/servers/detail", "/ports"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.page = 100
			l := newLife(t, f, "")
			l.up(t)
			one := f.only(t, "servers")
			for range 499 {
				f.add("servers", maps.Clone(one))
			}
			f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
				if !after && strings.HasSuffix(r.URL.Path, path) && (path == "/ports" || r.URL.Query().Has("marker")) {
					panic("poison")
				}
				return nil, nil
			}
			defer func() {
				defer time.Sleep(time.Minute) // the client's own timer ends with the request's time
				if p := beside.Caught(recover()); p.Value != "poison" || !strings.Contains(p.Stack, "provider/openstack") {
					t.Errorf("%s: List panics with %v", path, p)
				}
			}()
			_, err := l.List(t.Context())
			t.Errorf("%s: List: %v", path, err)
		})
	}
}
