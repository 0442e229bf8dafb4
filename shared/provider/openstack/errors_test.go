// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// TestOnlyAnAnswerInOpenStacksWordsProvesAnything (RELIABILITY 2b.4), and none makes a Machine Failed (SPEC E2).
func TestOnlyAnAnswerInOpenStacksWordsProvesAnything(t *testing.T) {
	t.Parallel()
	quota := `{"forbidden": {"code": 403, "message": "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"}}`
	for _, c := range []struct {
		status int
		body   string
		after  string
		want   provider.Code
	}{
		{400, `{"badRequest": {"code": 400, "message": "Invalid key_name provided."}}`, "", provider.Exhausted},
		{401, `{"error": {"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}}`, "", provider.Denied},
		{403, quota, "", provider.Exhausted},
		{403, `{"forbidden": {"code": 403, "message": "Policy doesn't allow os_compute_api:servers:create to be performed."}}`, "", provider.Denied},
		{403, "<html>Blocked by the firewall</html>", "", provider.Unknown},
		{404, `{"NeutronError": {"type": "PortNotFound", "message": "Port x could not be found.", "detail": ""}}`, "", provider.NotFound},
		{404, `{"message": "The resource could not be found.<br />", "code": "404 Not Found", "title": "Not Found"}`, "", provider.NotFound},
		{404, `{"message": "The resource could not be found.", "code": "404 Not Found"}`, "", provider.NotFound},
		{404, `{"message": "The resource could not be found.", "title": "Not Found"}`, "", provider.NotFound},
		{404, "<html>no such site</html>", "", provider.Unknown},
		{404, `{"message": "no Route matched with those values"}`, "", provider.Unknown}, // a gateway's
		{403, `{"message": "Forbidden", "request_id": "5a71e8e6"}`, "", provider.Unknown},
		{409, `{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['port'].", "detail": ""}}`, "", provider.Exhausted},
		{409, `{"NeutronError": "No more IP addresses available on network x."}`, "", provider.Exhausted},
		{413, `{"overLimit": {"code": 413, "message": "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded", "retryAfter": "0"}}`, "0", provider.Exhausted},
		{413, `{"overLimit": {"code": 413, "message": "This request was rate-limited."}}`, "7", provider.Throttled},
		{429, `{"overLimit": {"code": 429, "message": "This request was rate-limited."}}`, "7", provider.Throttled},
		{429, "slow down", "7", provider.Unknown},
		{500, `{"computeFault": {"code": 500, "message": "Unexpected API Error."}}`, "", provider.Unknown},
		{503, `{"serviceUnavailable": {"code": 503, "message": "Quota exceeded"}}`, "7", provider.Unknown},
		{504, "<html>Gateway Time-out</html>", "", provider.Unknown},
		{302, "", "", provider.Unknown},
		{400, `["a list"]`, "", provider.Unknown},
		{400, `{}`, "", provider.Unknown},
	} {
		header := http.Header{}
		if c.after != "" {
			header.Set("Retry-After", c.after)
		}
		err := coded("create instance", gophercloud.ErrUnexpectedResponseCode{Actual: c.status, Body: []byte(c.body), ResponseHeader: header, URL: "http://cloud.test/?secret"})
		e, ok := errors.AsType[*provider.Error](err)
		if !ok || e.Code != c.want || strings.Contains(err.Error(), "secret") || !strings.HasPrefix(err.Error(), "create instance: ") {
			t.Errorf("%d %s is %v: %v, want %v", c.status, c.body, provider.CodeOf(err), err, c.want)
		}
		if c.after == "7" && e.RetryAfter != 7*time.Second {
			t.Errorf("%d %s is retried after %v", c.status, c.body, e.RetryAfter)
		}
	}
	for _, cause := range []error{io.ErrUnexpectedEOF, context.DeadlineExceeded, &url.Error{Op: "Get", URL: "http://cloud.test/?secret", Err: io.EOF}} {
		if err := coded("list instances", cause); provider.CodeOf(err) != provider.Unknown || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v is %v: %v", cause, provider.CodeOf(err), err)
		}
	}
}

// TestFaultNamesCauseAndRemedy has each fault befall a call, with the code that says what the caller does.
func TestFaultNamesCauseAndRemedy(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		code provider.Code
		says []string
	}{
		"silence before": {provider.Unknown, []string{"no answer in time", "see whether the service works"}},
		"silence after":  {provider.Unknown, []string{"no answer in time", "see whether the service works"}},
		"reset after":    {provider.Unknown, []string{"cut off", "proxy", "unexpected EOF"}},
		"500 before":     {provider.Unknown, []string{"Unexpected API Error. (500)"}},
		"503 after":      {provider.Unknown, []string{"unavailable (503)"}},
		"502 in HTML":    {provider.Unknown, []string{"502 Bad Gateway", "no error of OpenStack's", "proxy"}},
		"200 in HTML":    {provider.Unknown, []string{"not OpenStack's", "proxy"}},
		"403 in HTML":    {provider.Unknown, []string{"403 Forbidden", "no error of OpenStack's", "proxy"}},
		"redirect":       {provider.Unknown, []string{"302 Found", "no error of OpenStack's", "proxy"}},
		"cut body":       {provider.Unknown, []string{"cut off"}},
		"empty object":   {provider.Unknown, []string{"the answer has no"}},
		"429":            {provider.Throttled, []string{"This request was rate-limited. (429)"}},
		"expired token":  {provider.Denied, []string{"requires authentication. (401)"}},
		"policy":         {provider.Denied, []string{"Policy doesn't allow", "the user of the credentials lacks a role"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				l := newLife(t, f, "")
				fault := faults[name]
				if name == "policy" {
					fault.do = answers(403, `{"forbidden": {"code": 403, "message": "Policy doesn't allow os_compute_api:servers:detail to be performed."}}`, nil)
				}
				f.wire = func(ctx context.Context, r *http.Request, after bool) (*http.Response, error) {
					if after == fault.after && !strings.HasSuffix(r.URL.Path, "/auth/tokens") {
						return fault.do(ctx)
					}
					return nil, nil
				}
				_, err := l.InstanceTypes(t.Context())
				e, ok := errors.AsType[*provider.Error](err)
				if !ok || e.Code != want.code || want.code == provider.Throttled && e.RetryAfter != 3*time.Second {
					t.Errorf("%v is %+v, want %v", err, e, want.code)
				}
				for _, text := range append(want.says, "list flavors") {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%v does not say %q", err, text)
					}
				}
				if strings.Contains(err.Error(), "http://") {
					t.Errorf("%v tells an address", err)
				}
			})
		})
	}
	if len(faults) != 13 {
		t.Errorf("%d faults, and not all are here", len(faults))
	}
}

// FuzzCoded: only an answer in OpenStack's own form, with a status that says no, is one; whatever else comes is kept short, and
// proves nothing (RELIABILITY G5, 2b.4).
func FuzzCoded(f *testing.F) {
	for _, body := range []string{
		`{"badRequest":{"message":"no","code":400}}`, `{"NeutronError":"gone"}`, `{"message":"x"}`, `{"forbidden":{"message":"Quota exceeded"}}`,
		`<html>502</html>`, ``, `null`, `[]`, `{"a":{"message":5}}`, strings.Repeat(`{"a":`, 10_000), `{"message":"` + strings.Repeat("ä", 5000) + `"}`,
		`{"title":"x","message":"` + strings.Repeat("ä", 5000) + `"}`, `{"badRequest":{"message":"` + strings.Repeat("ä", 5000) + `"}}`, `{"NeutronError":"` + strings.Repeat("ä", 5000) + `"}`,
	} {
		for _, status := range []int{200, 302, 403, 404, 409, 413, 429, 500, 503} {
			f.Add(status, []byte(body), "3")
		}
	}
	f.Fuzz(func(t *testing.T, status int, body []byte, after string) {
		err := coded("create instance", gophercloud.ErrUnexpectedResponseCode{Actual: status, Body: body, ResponseHeader: http.Header{"Retry-After": {after}}})
		code := provider.CodeOf(err)
		if code.Definite() && (!inItsForm(body) || status < 400 || status >= 500) || code == provider.Invalid {
			t.Errorf("%d %q is %s", status, body, code)
		}
		if len(err.Error()) > 1000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}

// inItsForm reports whether body may be an answer of OpenStack's, whatever the driver makes of it: an object in JSON in which there are words
// where it has them.
func inItsForm(body []byte) bool {
	var said map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&said) != nil {
		return false
	}
	words := func(v any) bool { text, is := v.(string); return is && text != "" }
	_, title := said["title"]
	_, code := said["code"]
	if words(said["NeutronError"]) || words(said["message"]) && (title || code) {
		return true
	}
	for _, v := range said {
		inner, _ := v.(map[string]any)
		for key, v := range inner {
			if strings.EqualFold(key, "message") && words(v) {
				return true
			}
		}
	}
	return false
}

// An answer that does not end is read to its limit, and proves nothing.
func TestAnswersThatDoNotEnd(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusInternalServerError} {
		f := newFake()
		l := newLife(t, f, everything)
		const size = 8 << 20
		body := strings.NewReader(`{"itemNotFound": {"code": 404, "message": "` + strings.Repeat("x", size) + `"}}`)
		f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
			if after || !strings.HasSuffix(r.URL.Path, "/servers/detail") {
				return nil, nil
			}
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(body)}, nil
		}
		if _, err := l.List(t.Context()); provider.CodeOf(err) != provider.Unknown || body.Len() == int(body.Size()) || body.Size()-int64(body.Len()) > 2<<20 {
			t.Errorf("%d: %d bytes were read, error %.300v", status, body.Size()-int64(body.Len()), err)
		}
	}
}
