// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// TestServerGroupThatNoListShowsYet: no instance is made outside of the group meanwhile.
func TestServerGroupThatNoListShowsYet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, `"serverGroupName": "spread"`)
		asked := 0
		f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
			if after && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "os-server-groups") {
				if asked++; asked < 3 { // before it is made, and after
					return reply(http.StatusOK, map[string]any{"server_groups": []any{}}, nil), nil
				}
			}
			return nil, nil
		}
		l.up(t)
		for id, s := range f.things["servers"] {
			if hint := fmt.Sprint(s.fields["hints"]); hint != "map[group:"+f.named("server_groups", "spread")+"]" {
				t.Errorf("instance %s was made in %s", id, hint)
			}
		}
		if f.count("servers") != 1 || f.count("server_groups") != 2 || asked < 3 {
			t.Errorf("%d instances, %d groups, asked %d times", f.count("servers"), f.count("server_groups"), asked)
		}
	})
}

// TestServerGroupsThatChangeWhileTheyAreRead: a group that goes makes each after it come one place earlier, so that the next page
// lacks one. What is missing in such a list is not proven to be missing.
func TestServerGroupsThatChangeWhileTheyAreRead(t *testing.T) {
	t.Parallel()
	f := newFake()
	l := newLife(t, f, "")
	f.page = 2
	for i := range 6 {
		f.add("server_groups", map[string]any{"name": fmt.Sprint("group-", i)})
	}
	gone := false
	f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
		if !after && !gone && r.URL.Query().Get("offset") == "2" {
			gone = true
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.things["server_groups"], smallestID(f.things["server_groups"]))
		}
		return nil, nil
	}
	_, err := l.Resolve(t.Context(), specWith(`"serverGroupName": "group-3"`))
	if provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), "changes while it is read") {
		t.Errorf("Resolve = %v", err)
	}
	if _, err := l.Resolve(t.Context(), specWith(`"serverGroupName": "group-3"`)); err != nil {
		t.Errorf("once it stands still: %v", err)
	}
}

func smallestID[T any](all map[string]T) string { return slices.Min(slices.Collect(maps.Keys(all))) }

// TestServerGroupsThatAreNotTold: an answer without a list says nothing of what is in it; on its word a second group would be made.
func TestServerGroupsThatAreNotTold(t *testing.T) {
	t.Parallel()
	f := newFake()
	l := newLife(t, f, "")
	f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
		if after && strings.HasSuffix(r.URL.Path, "os-server-groups") {
			return reply(http.StatusOK, map[string]any{}, nil), nil
		}
		return nil, nil
	}
	if _, err := l.Resolve(t.Context(), specWith(`"serverGroupName": "spread"`)); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), "list server groups") {
		t.Errorf("Resolve = %v (%v)", err, provider.CodeOf(err))
	}
}
