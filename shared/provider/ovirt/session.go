// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
)

const (
	// distrustedFor is how long an engine is not asked again that does not take the token which it gave.
	distrustedFor = time.Minute
	// refusedFor is how long an engine that refused the credentials is not asked again with the same, twice as long after each further
	// time, and an hour at most: it locks an account of its own, which others may use too, after five wrong passwords in a row, however far
	// apart. A directory beside it that does not answer it tells apart from a wrong password by no code: then it is deniedFor, as directories lock
	// accounts after five wrong ones in a quarter of an hour.
	refusedFor, refusedForLongest = 10 * time.Minute, time.Hour
	deniedFor, deniedForLongest   = 5 * time.Minute, 10 * time.Minute
	// perSecond and atOnce are what one user may ask. People work with the engine beside, whose every answer is a few queries to
	// its database.
	perSecond, atOnce = 30, 60
	// margin is what a call keeps to answer in time.
	margin = 2 * time.Second
	// farewell is what is left for a token to be given back.
	farewell = time.Second
)

// dialer returns the wire to an engine.
type dialer func(*tls.Config) http.RoundTripper

// network is the wire that everybody has but tests. No proxy is asked for the engine's name by anything but the environment.
func network(c *tls.Config) http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           throttle.Dialer(5 * time.Second).DialContext,
		TLSClientConfig:       c,
		TLSHandshakeTimeout:   5 * time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   10,
		IdleConnTimeout:       30 * time.Second,
		ResponseHeaderTimeout: deadline,
	}
}

// session is a token of one engine, got when it is first needed and again when the engine no longer knows it.
type session struct {
	account        provider.Account // without the credentials
	user, password string
	api            *url.URL // such as https://engine/ovirt-engine/api
	insecure       string
	client         http.Client
	page           int

	turn   chan struct{} // held while somebody logs in; guards what follows
	token  string
	barred time.Time // until when nobody logs in, because the credentials were refused
	wait   time.Duration
	reason error

	stay throttle.Stay // of the token

	mu     sync.Mutex
	known  bool // which engine it is
	engine string
}

func newSession(a provider.Account, dial dialer) (*session, error) {
	c, err := read(a)
	if err != nil {
		return nil, err
	}
	a.Credentials = nil
	s := &session{account: a, user: c.user, password: c.password, api: c.api, insecure: c.insecure, page: pageSize, turn: make(chan struct{}, 1)}
	s.stay.Leave, s.stay.Within = s.logout, farewell
	s.client = http.Client{
		Transport: engineOnly{throttle.Transport{Base: dial(c.tls), Limiter: throttle.Of("ovirt|"+c.api.String()+"|"+c.user, perSecond, atOnce)}},
		Timeout:   deadline,
		// The token, or the password, would be sent along to wherever a redirect leads.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// beside returns the address of another service of the engine than its API.
func (s *session) beside(path string) string {
	u := *s.api
	u.Path = strings.TrimSuffix(u.Path, "/api") + path
	return u.String()
}

// lock waits for the turn to log in, no longer than ctx.
func (s *session) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, ctx.Err()
	case <-ctx.Done():
		return func() {}, ctx.Err()
	}
}

// bearer returns a token other than stale.
func (s *session) bearer(ctx context.Context, stale string) (string, error) {
	unlock, err := s.lock(ctx)
	defer unlock()
	if err != nil {
		return "", s.coded("log in", err)
	}
	if s.token != "" && s.token != stale {
		return s.token, nil
	}
	if left := time.Until(s.barred); s.reason != nil && left > 0 {
		return "", provider.ErrorAfter(provider.Denied, left, "%w", s.reason)
	}
	s.token = ""
	token, err := s.login(ctx)
	if err != nil {
		if provider.CodeOf(err) == provider.Denied {
			first, longest := s.pauses()
			s.wait = min(max(first, 2*s.wait), longest)
			s.barred, s.reason = time.Now().Add(s.wait), err
			err = provider.ErrorAfter(provider.Denied, s.wait, "%w", err)
		}
		return "", err
	}
	s.token, s.reason, s.wait = token, nil, 0
	return token, nil
}

// pauses are the first, and the longest, after credentials that were refused.
func (s *session) pauses() (first, longest time.Duration) {
	if profile := s.user[strings.LastIndex(s.user, "@")+1:]; strings.HasPrefix(profile, "internal") { // such as admin@ovirt@internalsso
		return refusedFor, refusedForLongest
	}
	return deniedFor, deniedForLongest
}

// distrust remembers that the engine does not take a token which it has just given: so it will not take the next.
func (s *session) distrust(ctx context.Context, refusal error) {
	unlock, err := s.lock(ctx)
	defer unlock()
	if err == nil {
		s.token, s.barred, s.reason = "", time.Now().Add(distrustedFor), refusal
	}
}

// refusals are what the engine's SSO says of credentials that it does not take; else it is not well itself.
var refusals = []string{"access_denied", "invalid_grant", "invalid_client", "unauthorized_client", "invalid_scope", "unsupported_grant_type", "invalid_request"}

// login gets a token for the password. The caller has the turn.
func (s *session) login(ctx context.Context) (string, error) {
	form := url.Values{"grant_type": {"password"}, "scope": {"ovirt-app-api"}, "username": {s.user}, "password": {s.password}}
	status, body, err := s.post(ctx, "log in", s.beside("/sso/oauth/token"), form)
	if err != nil {
		return "", err
	}
	var said struct {
		Token string `json:"access_token"`
		Code  string `json:"error_code"`
		Error string `json:"error"`
	}
	readable := json.Unmarshal(body, &said) == nil
	code := said.Code
	if code == "" {
		code = said.Error
	}
	switch {
	case readable && strings.Contains(strings.ToLower(said.Error), "timed out"): // a directory did not answer it
	case status == http.StatusUnauthorized, readable && slices.Contains(refusals, code):
		return "", s.denied(s.plain(said.Error))
	case readable && status == http.StatusOK && said.Token != "" && code == "":
		return said.Token, nil
	}
	return "", provider.Errorf(provider.Unknown, "log in: %d %s, and no token: %s: see what answers in the engine's place, such as a proxy", status, http.StatusText(status), s.plain(said.Error))
}

// denied says who must mend what.
func (s *session) denied(why string) error {
	a := s.account
	return provider.Errorf(provider.Denied, "engine %s refuses the credentials in secret %s/%s, mend %s, %s there: %s", s.api.Host, a.Namespace, a.Secret, keyUser, keyPassword, why)
}

// logout makes the engine forget the token. Who calls after it gets another.
func (s *session) logout(ctx context.Context) error {
	unlock, err := s.lock(ctx)
	defer unlock()
	if err != nil || s.token == "" {
		return err
	}
	form := url.Values{"scope": {""}, "token": {s.token}}
	s.token = ""
	status, _, err := s.post(ctx, "log out", s.beside("/services/sso-logout"), form)
	if err == nil && status >= http.StatusBadRequest && status != http.StatusUnauthorized {
		err = provider.Errorf(provider.Unknown, "log out: %d %s", status, http.StatusText(status))
	}
	return err
}

// post sends a form, and returns what was answered.
func (s *session) post(ctx context.Context, doing, to string, form url.Values) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, s.coded(doing, err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	res, err := s.client.Do(req)
	if err != nil {
		return 0, nil, s.coded(doing, err)
	}
	defer func() { _ = res.Body.Close() }() // read as far as it is wanted
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, nil, s.coded(doing, err)
	}
	return res.StatusCode, body, nil
}

// plain returns text without what is secret, short enough for an Event.
func (s *session) plain(text string) string {
	text = strings.ReplaceAll(text, s.password, "(secret)")
	return shorten(text)
}
