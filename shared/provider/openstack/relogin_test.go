// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Keystone answers 404 where somebody removed an application credential, whose tokens end with it: that no login can be had says
// nothing of what was asked for. It is a denial as at the first login, and asked once in a minute (RELIABILITY G5).
func TestLoginThatIsGoneIsNoAbsence(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"removed": http.StatusNotFound, "objected to": http.StatusBadRequest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				l := newLife(t, f, "")
				in := l.up(t)
				byID := provider.Ref{ID: in.ID, ProviderID: in.ProviderID, Name: in.Name}
				logins := 0
				f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
					if after || !strings.HasSuffix(r.URL.Path, "/auth/tokens") {
						return nil, nil
					}
					logins++
					return reply(refuse(status, "error", "Could not find Application Credential: 5a71e8e6.")), nil
				}
				f.tokens = map[string]time.Time{}
				for range 5 {
					found, err := l.Find(t.Context(), byID)
					for call, err := range map[string]error{"Find": err, "Delete": l.Delete(t.Context(), byID)} {
						if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "Application Credential") {
							t.Errorf("%s = %v, %v (%v), want a denial that says why", call, found, err, provider.CodeOf(err))
						}
					}
					time.Sleep(deniedFor / 10)
				}
				if logins != 1 {
					t.Errorf("%d logins in half a minute", logins)
				}
				f.wire = nil
				time.Sleep(deniedFor)
				if found, err := l.Find(t.Context(), byID); err != nil || len(found) != 1 {
					t.Errorf("with the credential back: %v, %v", found, err)
				}
			})
		})
	}
}

// A list that is null is no empty one: what answers so proves no absence (RELIABILITY G5).
func TestListOfNothingIsNoList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		l.up(t)
		for _, key := range []string{"servers", "ports", "volumes"} {
			f.wire = func(ctx context.Context, r *http.Request, after bool) (*http.Response, error) {
				if after || r.Method != http.MethodGet || !strings.Contains(r.URL.Path+"/", "/"+key+"/") {
					return nil, nil
				}
				return answers(200, `{"`+key+`": null}`, nil)(ctx)
			}
			if all, err := l.List(t.Context()); provider.CodeOf(err) != provider.Unknown || err == nil {
				t.Errorf("%s: List = %v, %v", key, all, err)
			}
		}
	})
}
