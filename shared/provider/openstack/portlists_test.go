// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Ports are listed twice, by their tags and by what they say until they have some: without an answer to either nobody knows them all (G5).
func TestPortsThatOneListDoesNotTell(t *testing.T) {
	t.Parallel()
	for _, filter := range []string{"tags", "not-tags", "description"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			l := newLife(t, f, "")
			l.up(t)
			asked := 0
			f.wire = func(_ context.Context, r *http.Request, _ bool) (*http.Response, error) {
				if r.Method != http.MethodGet || r.URL.Path != "/network/v2.0/ports" || !r.URL.Query().Has(filter) {
					return nil, nil
				}
				asked++
				return reply(http.StatusBadGateway, map[string]any{}, nil), nil
			}
			all, err := l.List(t.Context())
			if filter == "description" {
				err = l.Delete(t.Context(), provider.Ref{UID: "another", Name: "m"})
			}
			if err == nil || provider.CodeOf(err) == provider.NotFound || asked == 0 {
				t.Errorf("without the list by %s: %d instances, %v, after %d questions", filter, len(all), err, asked)
			}
		})
	}
}

// A port is as good as its answer: one without a port, or of none, is no port, and no proof that it is gone.
func TestPortThatNoAnswerTells(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]any{"nothing": map[string]any{}, "no port": map[string]any{"port": nil}, "none": map[string]any{"port": map[string]any{}}} {
		synctest.Test(t, func(t *testing.T) {
			const id = "22222222-2222-2222-2222-222222222222"
			f := newFake()
			l := newLife(t, f, "")
			f.wire = func(_ context.Context, r *http.Request, _ bool) (*http.Response, error) {
				if r.Method != http.MethodGet || r.URL.Path != "/network/v2.0/ports/"+id {
					return nil, nil
				}
				return reply(http.StatusOK, answer, nil), nil
			}
			if err := l.Delete(t.Context(), provider.Ref{Name: "m", ID: id}); err == nil || provider.CodeOf(err) == provider.NotFound {
				t.Errorf("%s: Delete = %v", name, err)
			}
		})
	}
}
