// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// logins returns how many there were.
func (w *wire) logins() (n int) {
	for _, c := range w.Calls() {
		if c == "POST token" {
			n++
		}
	}
	return n
}

// A token that the engine has forgotten is renewed once, and what it answered so is asked again.
func TestTokenIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, _ := started(t)
		before := w.logins()
		w.Forget()
		if found, err := l.Find(t.Context(), l.ref); err != nil || len(found) != 1 {
			t.Errorf("found %v, %v", found, err)
		}
		if n := w.logins() - before; n != 1 {
			t.Errorf("%d logins", n)
		}
	})
}

// Credentials that are refused, be it at the login or by an engine that does not take the token it gave, are not tried again for a while.
func TestRefusedCredentialsAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(w *wire){
		"password": func(w *wire) { w.Password = "another" },
		"token": func(w *wire) {
			w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
				if strings.Contains(r.URL.Path, "/api") {
					return answered(http.StatusUnauthorized, "text/html", ""), nil
				}
				return next()
			})
		},
		"page": func(w *wire) {
			w.set(func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
				return answered(http.StatusUnauthorized, "text/html", "<html>"), nil
			})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			d, err := w.provider().Open(t.Context(), accountOf())
			must(t, err)
			refuse(w)
			var after time.Duration
			for range 5 {
				_, err = d.List(t.Context())
				if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "openshift-machine-api/ovirt-credentials") || !strings.Contains(err.Error(), keyPassword) {
					t.Fatalf("%s: List = %v", name, err)
				}
				time.Sleep(time.Second)
			}
			after = retryAfter(err)
			bar := refusedFor
			if name == "token" {
				bar = distrustedFor
			}
			if n := w.logins(); n > 2 || after <= bar-10*time.Second || after > bar {
				t.Errorf("%s: %d logins, try again after %v", name, n, after)
			}
			w.set(nil)
			w.Password = "canary"
			time.Sleep(bar)
			if _, err := d.List(t.Context()); err != nil {
				t.Errorf("%s: after %v: %v", name, bar, err)
			}
		})
	}
}

// An engine locks an account after five wrong passwords in a row, however far apart: a wrong one is tried ever more seldom, and a new Secret at once.
func TestWrongPasswordIsTriedEverMoreSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		d, err := w.provider().Open(t.Context(), accountOf())
		must(t, err)
		w.Password = "another"
		var tried []int
		for minute := range 181 {
			if _, err := d.List(t.Context()); provider.CodeOf(err) != provider.Denied || after(err) <= 0 {
				t.Fatalf("List = %v, again after %v", err, after(err))
			}
			if n := w.logins(); n > len(tried) {
				tried = append(tried, minute)
			}
			time.Sleep(time.Minute)
		}
		if want := []int{0, 10, 30, 70, 130}; !slices.Equal(tried, want) {
			t.Errorf("tried in the minutes %v, want %v", tried, want)
		}
		account := accountOf()
		account.Credentials[keyPassword] = []byte("another")
		d, err = w.provider().Open(t.Context(), account)
		must(t, err)
		if _, err := d.List(t.Context()); err != nil {
			t.Errorf("with the new password: %v", err)
		}
	})
}

// A call ends in time also where its session is closed and the engine is silent.
func TestLastCallOfASessionEndsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		must(t, l.Close(t.Context()))
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/sso/oauth/token") {
				return next()
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		began := time.Now()
		if _, err := l.List(t.Context()); provider.CodeOf(err) != provider.Unknown || time.Since(began) > deadline {
			t.Errorf("List = %v after %v", err, time.Since(began))
		}
	})
}

func retryAfter(err error) time.Duration { return after(err) }

// An engine that cannot tell who somebody is denies nobody.
func TestLoginThatFailsIsNoDenial(t *testing.T) {
	t.Parallel()
	for _, res := range []func() *http.Response{
		func() *http.Response {
			return answered(400, "application/json", `{"error_code": "server_error", "error": "no database"}`)
		},
		func() *http.Response { return answered(500, "application/json", `{"error": "x"}`) },
		func() *http.Response {
			return answered(200, "application/json", `{"error": "access_denied?", "access_token": "t"}`)
		},
		func() *http.Response { return answered(200, "application/json", `{}`) },
		func() *http.Response { return answered(404, "text/html", `<html>`) },
		func() *http.Response { return answered(302, "text/plain", ``) },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			d, err := w.provider().Open(t.Context(), accountOf())
			must(t, err)
			w.set(func(*http.Request, func() (*http.Response, error)) (*http.Response, error) { return res(), nil })
			if _, err = d.List(t.Context()); provider.CodeOf(err) != provider.Unknown {
				t.Errorf("List = %v", err)
			}
		})
	}
}

// Close gives the token back; calls that come later work, and give theirs back too.
func TestCloseGivesTheTokenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		for range 2 {
			must(t, l.Close(t.Context()))
			if n := w.Tokens(); n != 0 {
				t.Errorf("%d tokens are left", n)
			}
			_, err := l.List(t.Context())
			must(t, err)
			if n := w.Tokens(); n != 0 {
				t.Errorf("%d tokens are left after a late call", n)
			}
		}
	})
}

// Nothing that is secret comes into an error, whatever the engine, or who is in its place, echoes; nor does a printed driver have it.
func TestNothingSecretIsTold(t *testing.T) {
	t.Parallel()
	var errs []error
	echo := func(status int, body string) func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
		return func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
			return answered(status, "application/json", body), nil
		}
	}
	for _, hook := range []func(*http.Request, func() (*http.Response, error)) (*http.Response, error){
		echo(400, `{"error_code": "access_denied", "error": "the password canary is wrong"}`), echo(400, `{"error_code": "canary", "error": "canary"}`), echo(200, `{"access_token": "canary-token", "x`),
		func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "/api") {
				return faulty(409, "[canary, {\"ignition\"]"), nil
			}
			return next()
		},
		func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "/api") {
				return nil, errLost
			}
			return next()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			l := newLife(t, w, "")
			must(t, l.Close(t.Context()))
			w.set(hook)
			_, err := l.Create(t.Context(), l.ref, l.resolved)
			_, list := l.List(t.Context())
			errs = append(errs, err, list, l.Delete(t.Context(), l.ref))
			var printed provider.Driver = l.driver
			text, _ := json.Marshal(printed)
			for _, told := range []string{fmt.Sprint(l.driver), fmt.Sprintf("%+v", l.driver), fmt.Sprintf("%#v", l.driver), string(text)} {
				if strings.Contains(told, "canary") {
					t.Errorf("the driver tells %s", told)
				}
			}
		})
	}
	for _, err := range errs {
		if err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "3.2.0") {
			t.Errorf("told: %v", err)
		}
	}
}

// No redirect is followed: the token, or the password, would go along.
func TestRedirectsAreRefused(t *testing.T) {
	t.Parallel()
	asked := 0
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(other.Close)
	s := httptest.NewTLSServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	d := openAt(t, s, nil)
	if _, err := d.List(t.Context()); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), "no redirect is followed") || asked != 0 {
		t.Errorf("List = %v, asked %d times", err, asked)
	}
}

// openAt binds a driver to a server that proves itself, with changes of the Secret.
func openAt(t *testing.T, s *httptest.Server, change map[string]string) *driver {
	t.Helper()
	a := accountOf()
	a.Credentials[keyURL] = []byte(s.URL + "/ovirt-engine/api")
	a.Credentials[keyBundle] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for key, value := range change {
		a.Credentials[key] = []byte(value)
	}
	d, err := open(a, network)
	must(t, err)
	return d
}

// An engine has to prove who it is by the Secret's authority, unless the Secret says that it need not, which is told.
func TestEngineProvesWhoItIs(t *testing.T) {
	t.Parallel()
	e := newWire().Engine
	s := httptest.NewTLSServer(e)
	t.Cleanup(s.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	for _, c := range []struct {
		name   string
		change map[string]string
		trusts bool
	}{
		{"the bundle", nil, true},
		{"a file's content", map[string]string{keyBundle: "", keyFile: ca}, true},
		{"a file beside the bundle", map[string]string{keyFile: "/etc/pki/ca.pem"}, true},
		{"those of the system", map[string]string{keyBundle: ""}, false},
		{"insecure", map[string]string{keyBundle: "", keyInsecure: "true\n"}, true},
	} {
		d := openAt(t, s, c.change)
		_, err := d.List(t.Context())
		for n := 0; err != nil && provider.CodeOf(err) == provider.Unknown && n < 5; n++ { // a handshake may take its time
			_, err = d.List(t.Context())
		}
		if c.trusts != (err == nil) || !c.trusts && (provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), keyBundle)) {
			t.Errorf("%s: List = %v", c.name, err)
		}
		if told := d.Insecure(); (told != "") != (c.name == "insecure") {
			t.Errorf("%s: Insecure = %q", c.name, told)
		}
	}
}

// What a Secret lacks, or says wrongly, is a denial that names the key and nothing else that it holds.
func TestSecretsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, value, want string }{
		{keyURL, "", keyURL},
		{keyUser, "\n", keyUser},
		{keyPassword, "", keyPassword},
		{keyURL, "http://canary.test/ovirt-engine/api", "does not begin with https://"},
		{keyURL, "https://u:canary@engine.test/ovirt-engine/api", "more than a host and a path"},
		{keyURL, "https://engine.test/ovirt-engine/api?x=canary", "more than a host and a path"},
		{keyURL, "https://engine.test/canary", "does not end with /api"},
		{keyURL, "https:///ovirt-engine/api", "is no URL"},
		{keyURL, "https://canary.test:x/api", "is no URL"},
		{keyURL, "canary", "is no URL"},
		{keyInsecure, "canary", "neither true nor false"},
		{keyBundle, "canary", "no certificate in PEM"},
		{keyFile, "/canary/ca.pem", "names a file, which is not read"},
	} {
		a := accountOf()
		a.Credentials[c.key] = []byte(c.value)
		_, err := open(a, network)
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "openshift-machine-api/ovirt-credentials") || !strings.Contains(err.Error(), c.key) ||
			!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s=%q: %v", c.key, c.value, err)
		}
	}
	a := accountOf()
	a.ClusterID = ""
	if _, err := open(a, network); provider.CodeOf(err) != provider.Invalid {
		t.Errorf("without a cluster id: %v", err)
	}
}

// The addresses of an engine's services follow from that of its API.
func TestAddressOfTheEngine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://engine.test/ovirt-engine/api":  "https://engine.test/ovirt-engine/sso/oauth/token",
		"https://engine.test/ovirt-engine/api/": "https://engine.test/ovirt-engine/sso/oauth/token",
		"https://engine.test":                   "https://engine.test/ovirt-engine/sso/oauth/token",
		"https://engine.test:8443/rhv/api":      "https://engine.test:8443/rhv/sso/oauth/token",
	} {
		a := accountOf()
		a.Credentials[keyURL] = []byte(text)
		d, err := open(a, func(*tls.Config) http.RoundTripper { return nil })
		must(t, err)
		if got := d.session.beside("/sso/oauth/token"); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// A driver asks nobody at link-local addresses, where clouds keep credentials of their instances.
func TestInstancesMetadataIsNotAsked(t *testing.T) {
	t.Parallel()
	a := accountOf()
	a.Credentials[keyURL] = []byte("https://169.254.169.254/ovirt-engine/api")
	d, err := open(a, network)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := d.List(ctx); provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "link-local") {
		t.Errorf("List = %v", err)
	}
}

// An engine says access_denied as well where a directory does not answer it: its users are let in again soon after, and nobody is denied by what
// says that it took too long.
func TestDirectoryThatIsDownKeepsNobodyOutForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.Password = ""
		account, down := accountOf(), `{"error_code": "access_denied", "error": "Cannot authenticate user 'machines@corp': Unable to log in."}`
		account.Credentials[keyUser] = []byte("machines@corp")
		d, err := w.provider().Open(t.Context(), account)
		must(t, err)
		w.set(func(_ *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if down != "" {
				return answered(http.StatusBadRequest, "application/json", down), nil
			}
			return next()
		})
		for range 31 {
			if _, err := d.List(t.Context()); provider.CodeOf(err) != provider.Denied {
				t.Fatalf("List = %v", err)
			}
			time.Sleep(time.Minute)
		}
		down = ""
		time.Sleep(10 * time.Minute)
		_, err = d.List(t.Context())
		must(t, err)
		w.Forget()
		down = `{"error_code": "access_denied", "error": "Cannot authenticate user 'machines@corp': The authentication request timed out.."}`
		if _, err := d.List(t.Context()); provider.CodeOf(err) != provider.Unknown {
			t.Errorf("List = %v", err)
		}
	})
}

// Whose account the engine itself locks is known by what follows the last @, as users of its own have one in their names (Keycloak).
func TestUsersOfTheEngineItself(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]time.Duration{
		"admin@internal": refusedFor, "admin@ovirt@internalsso": refusedFor, "machines@corp": deniedFor, "me@internal.corp@corp": deniedFor,
	} {
		if first, _ := (&session{user: user}).pauses(); first != want {
			t.Errorf("%s: the first pause is %v, want %v", user, first, want)
		}
	}
}
