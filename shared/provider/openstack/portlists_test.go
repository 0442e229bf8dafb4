// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"net/http"
	"strings"
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

// A floating IP of another port stays that port's, also of one that got it between the look and the request: Neutron would move it.
func TestFloatingIPOfAnotherPortIsNotTaken(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "between", "without revisions"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			l := newLife(t, f, `"floatingIP": "198.51.100.7"`)
			ip := f.only(t, "floatingips")
			take := func() { ip["port_id"], ip["revision_number"] = "of-another", 2 }
			switch when {
			case "before":
				take()
			case "without revisions":
				delete(ip, "revision_number")
			}
			f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
				if when == "between" && !after && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/floatingips/") {
					take()
				}
				return nil, nil
			}
			var err error
			for range 10 {
				var in provider.Instance
				if in, err = l.Create(t.Context(), l.ref, l.resolved); err != nil || in.State != provider.StateIncomplete {
					break
				}
				l.ref.Progress = in.Progress
			}
			if when == "without revisions" {
				if ip["port_id"] != f.named("ports", l.ref.Name+"-0") {
					t.Errorf("%s: it belongs to %v, %v", when, ip["port_id"], err)
				}
				return
			}
			if ip["port_id"] != "of-another" || provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "floating IP 198.51.100.7 belongs to port of-another") {
				t.Errorf("%s: it belongs to %v, %v (%v)", when, ip["port_id"], err, provider.CodeOf(err))
			}
		})
	}
}
