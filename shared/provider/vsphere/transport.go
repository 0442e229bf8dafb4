// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"fmt"
	"mime"
	"net/http"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
)

// A vCenter serves many requests at once, but slows down for people when one user makes hundreds. A creation makes some
// 30 in all, a list of 5,000 instances some 25.
const (
	perSecond = 100
	atOnce    = 200
)

// guard makes an HTTP client speak to a vCenter only: no redirects, no link-local addresses, where clouds keep the
// credentials of their instances; answers that no vCenter gives are errors that say so. The SDK's transport dials for TLS by
// itself, past every DialContext and its deadline, for the sake of thumbprints, which nothing here knows.
func guard(c *http.Client, t *http.Transport, l *throttle.Limiter) {
	t.DialContext, t.DialTLSContext, t.ForceAttemptHTTP2 = throttle.Dialer(deadline).DialContext, nil, false
	t.ResponseHeaderTimeout = deadline
	c.Transport = vcenterOnly{throttle.Transport{Base: t, Limiter: l}}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
}

type vcenterOnly struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (v vcenterOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := v.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch after := throttle.After(res.Header); {
	case res.StatusCode == http.StatusTooManyRequests:
		err = provider.ErrorAfter(provider.Throttled, after, "HTTP status %s: too many requests", res.Status)
	case res.StatusCode == http.StatusServiceUnavailable:
		err = provider.ErrorAfter(provider.Unknown, after, "HTTP status %s: the vCenter is starting or overloaded", res.Status)
	case kind == "text/html":
		err = fmt.Errorf("HTTP status %s with a page for people: is a proxy between, or another service behind this name", res.Status)
	default:
		return res, nil
	}
	_ = res.Body.Close() // nobody reads it
	return nil, err
}
