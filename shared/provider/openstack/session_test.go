// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// No clouds.yaml and no catalog leads to where [throttle.Dialer] asks nobody, here the API server's address: without its rules a
// server of the test's own would be reached (RELIABILITY §4).
func TestNoCloudIsAskedAtTheAPIServer(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	wire, err := dial(&cloud{})
	if err != nil {
		t.Fatal(err)
	}
	transport, ok := wire.(*http.Transport)
	if !ok {
		t.Fatalf("dial = %T", wire)
	}
	_, err = transport.DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "API server") {
		t.Errorf("%v: %v", s.Listener.Addr(), err)
	}
}

// Services move, and the catalog says whereto: nobody has to start anything anew for that. Where the identity service does not answer
// meanwhile, those that stayed are asked as before.
func TestServicesThatMovedAreFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		moved, silent := errors.New("no such host"), true
		f.host = "moved.test"
		f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
			login := strings.HasSuffix(r.URL.Path, "/auth/tokens")
			switch {
			case after:
			case login && silent, !login && r.URL.Host == "cloud.test" && strings.Contains(r.URL.Path, "/compute/"):
				return nil, moved
			}
			return nil, nil
		}
		for range 10 {
			if _, err := l.List(t.Context()); provider.CodeOf(err) != provider.Unknown {
				t.Fatalf("List = %v (%v)", err, provider.CodeOf(err))
			}
			if _, err := l.Resolve(t.Context(), specWith(`"flavor": "4c12g30d"`)); !errors.Is(err, moved) || strings.Contains(err.Error(), "log in") {
				t.Fatalf("Resolve = %v", err)
			}
			time.Sleep(20 * time.Second)
		}
		silent = false
		before := len(f.calls)
		for range 10 {
			_, _ = l.List(t.Context())
			time.Sleep(20 * time.Second)
		}
		if _, err := l.List(t.Context()); err != nil {
			t.Errorf("List = %v", err)
		}
		if logins := f.logins(before); logins != 1 {
			t.Errorf("%d logins, want one: %v", logins, f.calls[before:])
		}
	})
}

// logins counts the logins since a call.
func (f *fake) logins(since int) (n int) {
	for _, call := range f.calls[since:] {
		if strings.HasSuffix(call, "/auth/tokens") {
			n++
		}
	}
	return n
}

// Volumes of which the catalog did not tell once are told of later, and a list that nobody has at an endpoint is looked for at another.
func TestCatalogIsReadAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.volumes = false
		l := newLife(t, f, "")
		for range 3 {
			if _, err := l.List(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if logins := f.logins(0); logins != 1 { // a cloud may have none for ever
			t.Errorf("%d logins without volumes, want one", logins)
		}
		f.volumes = true
		f.add("volumes", map[string]any{"name": "left", "status": "available", "metadata": map[string]any{tagCluster: "ocp43-abcde", tagUID: string(l.ref.UID)}})
		time.Sleep(noVolumesFor)
		if all, err := l.List(t.Context()); err != nil || len(all) != 1 || !all[0].Child {
			t.Errorf("List = %+v, %v: want the volume that is left", all, err)
		}
		f.host = "moved.test"
		f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
			if !after && r.URL.Host == "cloud.test" && strings.HasSuffix(r.URL.Path, "/ports") {
				return reply(refuse(http.StatusNotFound, "itemNotFound", "The resource could not be found.")), nil
			}
			return nil, nil
		}
		_, err := l.List(t.Context())
		time.Sleep(doubtedFor)
		if _, now := l.List(t.Context()); provider.CodeOf(err) != provider.Unknown || now != nil {
			t.Errorf("List = %v, then %v", err, now)
		}
	})
}
