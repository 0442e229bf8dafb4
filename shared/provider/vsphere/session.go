// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
)

// refusedFor is how long a vCenter that refused the credentials is not asked again with the same: a few wrong logins
// lock an account.
const refusedFor = time.Minute

// session is a login to one vCenter, made when it is first needed and again when the vCenter forgets it.
type session struct {
	account provider.Account
	user    *url.Userinfo
	soap    *soap.Client

	turn    chan struct{} // held while somebody logs in; guards what follows
	vim     *vim25.Client
	rest    *rest.Client
	refused time.Time // when the credentials were refused
	reason  error

	stay throttle.Stay // of the login: what a call reads in pieces ends with it

	mu     sync.Mutex
	logins int
}

// newSession reads the credentials; nothing is asked yet. The Secret holds, as OpenShift's does, the keys
// <server>.username, <server>.password; beside them <server>.ca may be the authority that signed the vCenter's
// certificate, in PEM, and <server>.port where it listens if not at 443: whoever writes a providerSpec must not have every
// port of a host asked (RELIABILITY §4). The keys have the server's name without its port.
func newSession(a provider.Account) (*session, error) {
	secret, server := a.Namespace+"/"+a.Secret, keyOf(a.Region)
	value := func(key string) string { return strings.TrimRight(string(a.Credentials[server+"."+key]), "\r\n") } // echo ends with one
	name, password := value("username"), value("password")
	for _, key := range []string{"username", "password"} {
		if value(key) == "" {
			return nil, provider.Errorf(provider.Denied, "credentials secret %s has no key %s.%s: add it", secret, server, key)
		}
	}
	u, err := url.Parse("https://" + a.Region + "/sdk")
	if err != nil || u.Host != a.Region {
		return nil, provider.Errorf(provider.Invalid, "providerSpec.value.workspace.server: %q is no host", a.Region)
	}
	if port := u.Port(); port != "" && port != "443" && port != value("port") {
		return nil, provider.Errorf(provider.Denied, "providerSpec.value.workspace.server: port %s is neither 443 nor that of key %s.port in credentials secret %s", port, server, secret)
	}
	client := soap.NewClient(u, false)
	transport := client.DefaultTransport()
	transport.TLSClientConfig.MinVersion = tls.VersionTLS12
	if ca := a.Credentials[server+".ca"]; len(ca) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(ca) {
			return nil, provider.Errorf(provider.Denied, "credentials secret %s: key %s.ca holds no certificate in PEM", secret, server)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	guard(&client.Client, transport, throttle.Of(a.Kind+" "+a.Region+" "+name, perSecond, atOnce))
	a.Credentials = nil // which nobody reads again
	s := &session{account: a, user: url.UserPassword(name, password), soap: client, turn: make(chan struct{}, 1)}
	s.stay.Leave, s.stay.Within = s.logout, margin
	return s, nil
}

// keyOf returns what the keys of a server's credentials begin with: its name without the port, which no Secret's key may
// contain.
func keyOf(server string) string {
	if host, _, err := net.SplitHostPort(server); err == nil {
		return host
	}
	return server
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

// connect returns a client that is logged in, and logs in again by itself.
func (s *session) connect(ctx context.Context) (*vim25.Client, error) {
	unlock, err := s.lock(ctx)
	defer unlock()
	if err != nil || s.vim != nil {
		return s.vim, err
	}
	if err := s.barred(); err != nil {
		return nil, err
	}
	c, err := s.greet(ctx)
	if err != nil {
		return nil, s.turnedAway(err)
	}
	if err := s.login(ctx, c); err != nil {
		return nil, err
	}
	c.RoundTripper = renewing{s, c}
	s.vim = c
	return c, nil
}

// barred repeats the refusal of a moment ago.
func (s *session) barred() error {
	if left := refusedFor - time.Since(s.refused); s.reason != nil && left > 0 {
		return provider.ErrorAfter(provider.Denied, left, "%w", s.reason)
	}
	return nil
}

// login makes the session on c's side of the wire. The caller has the turn.
func (s *session) login(ctx context.Context, c *vim25.Client) error {
	password, _ := s.user.Password()
	in := types.Login{This: *c.ServiceContent.SessionManager, UserName: s.user.Username(), Password: password}
	_, err := methods.Login(ctx, whole{s.soap}, &in)
	if err != nil {
		return s.turnedAway(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins++
	return nil
}

// turnedAway gives the error of a login its code, and keeps a refusal. The caller has the turn.
func (s *session) turnedAway(err error) error {
	err = s.coded(err)
	if provider.CodeOf(err) == provider.Denied {
		return s.bar(err)
	}
	return err
}

// bar keeps a refusal. The caller has the turn.
func (s *session) bar(refusal error) error {
	s.refused, s.reason = time.Now(), refusal
	return s.barred()
}

func (s *session) generation() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

// renewing logs in when the vCenter has forgotten the session, and asks again: what it answered so was not done.
type renewing struct {
	*session
	client *vim25.Client
}

// RoundTrip implements [soap.RoundTripper].
func (r renewing) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	before := r.generation()
	err := whole{r.soap}.RoundTrip(ctx, req, res)
	if name(faultOf(err)) != "NotAuthenticated" && !hidden(res) {
		return err
	}
	unlock, waited := r.lock(ctx)
	defer unlock()
	if waited != nil {
		return waited
	}
	if r.generation() == before { // nobody else was faster
		if err := r.barred(); err != nil {
			return err
		}
		if err := r.login(ctx, r.client); err != nil {
			return err
		}
	}
	reflect.ValueOf(res).Elem().SetZero() // of the first answer
	return whole{r.soap}.RoundTrip(ctx, req, res)
}

// hidden reports whether an answer leaves properties out because nobody is logged in: that is no fault of the whole call, and what
// is not there would look like what is gone.
func hidden(res soap.HasFault) bool {
	var found []types.ObjectContent
	switch body := res.(type) {
	case *methods.RetrievePropertiesBody:
		if body.Res != nil {
			found = body.Res.Returnval
		}
	case *methods.RetrievePropertiesExBody:
		if body.Res != nil && body.Res.Returnval != nil {
			found = body.Res.Returnval.Objects
		}
	}
	return slices.ContainsFunc(found, func(o types.ObjectContent) bool {
		return slices.ContainsFunc(o.MissingSet, func(p types.MissingProperty) bool { return name(p.Fault.Fault) == "NotAuthenticated" })
	})
}

// tagging calls f with the tagging service, whose sessions are of their own.
func (s *session) tagging(ctx context.Context, c *vim25.Client, f func(*tags.Manager) error) error {
	client, err := s.tagger(ctx, c, nil)
	if err != nil {
		return err
	}
	err = f(tags.NewManager(client))
	if !answered(err, http.StatusUnauthorized) {
		return err
	}
	if client, err = s.tagger(ctx, c, client); err != nil {
		return err
	}
	return f(tags.NewManager(client))
}

// tagger returns a client of the tagging service other than stale.
func (s *session) tagger(ctx context.Context, c *vim25.Client, stale *rest.Client) (*rest.Client, error) {
	unlock, err := s.lock(ctx)
	defer unlock()
	if err != nil || s.rest != stale && s.rest != nil {
		return s.rest, err
	}
	if err := s.barred(); err != nil {
		return nil, err
	}
	client := rest.NewClient(c)
	client.Client.Client.Transport, client.Client.Client.CheckRedirect = s.soap.Client.Transport, s.soap.Client.CheckRedirect
	if err := client.Login(ctx, s.user); err != nil {
		if answered(err, http.StatusUnauthorized) {
			return nil, s.bar(s.denied(errors.New("the tagging service refuses the login")))
		}
		return nil, err
	}
	s.rest = client
	return client, nil
}

// answered reports whether an error is the tagging service's answer with a status. The SDK does not look into what wraps it.
func answered(err error, status int) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if rest.IsStatusError(err, status) {
			return true
		}
	}
	return false
}
