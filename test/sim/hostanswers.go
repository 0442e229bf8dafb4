// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/machine-functions/machine-functions/shared/provider"
)

func refusal(code int, why metav1.StatusReason) []byte {
	return fmt.Appendf(nil, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"simulated","code":%d}`, why, code)
}

func replied(r *http.Request, code int, text []byte) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}
}

type struckKey struct{}

// struck is what the step before a request came to; the request after that, with which the driver asks why, has its own.
type struck struct {
	err  error
	over bool
}

// step is the step before a request.
func (h *hosts) step(ctx context.Context, q *proc, method, name string, may []verdict, of dear) error {
	deadline, _ := ctx.Deadline()
	err := q.step(call{what: strings.ToLower(method) + " hosts " + name, may: may, cloud: true, dear: of, began: q.within(deadline)})
	if method == http.MethodGet && name == "" {
		h.play.listed(q, err == nil && q.verdict != cut && q.verdict != proxied)
	}
	return err
}

// RoundTrip implements [http.RoundTripper]: the step before a request, what is watched after it.
func (h *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	h.play.told(string(body))
	q, _ := r.Context().Value(procKey{}).(*proc)
	name := strings.TrimPrefix(r.URL.Path[strings.LastIndex(r.URL.Path, "/"):], "/")
	if name == "baremetalhosts" {
		name = ""
	}
	if q != nil {
		may := ofHosts
		if r.Method == http.MethodPatch {
			may = ofHostWrite
		}
		s, _ := r.Context().Value(struckKey{}).(*struck)
		if s == nil || s.over {
			s = &struck{err: h.step(r.Context(), q, r.Method, name, may, dearRequest(r.Method, body))}
		}
		s.over = true
		err := s.err
		if _, throttled := errors.AsType[*provider.Error](err); throttled {
			return replied(r, http.StatusTooManyRequests, refusal(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)), nil
		}
		if err != nil {
			return nil, err
		}
		if q.verdict == proxied {
			return replied(r, http.StatusNotFound, []byte("<html><body>not found</body></html>")), nil
		}
	}
	code, text := h.serve(r.Method, name, body)
	if q != nil && r.Method == http.MethodPatch {
		h.play.watchCloud(q)
	}
	if q != nil {
		if err := q.after(); err != nil {
			return nil, err
		}
		if q.verdict == cut {
			text = text[:len(text)/2]
		}
	}
	return replied(r, code, text), nil
}

func (h *hosts) serve(method, name string, body []byte) (int, []byte) {
	if name == "" {
		items := make([][]byte, 0, len(h.all))
		for _, name := range h.names() {
			items = append(items, h.all[name].text)
		}
		return http.StatusOK, slices.Concat([]byte(`{"kind":"BareMetalHostList","apiVersion":"metal3.io/v1alpha1","metadata":{},"items":[`), bytes.Join(items, []byte(",")), []byte("]}"))
	}
	old, ok := h.all[name]
	if !ok {
		return http.StatusNotFound, refusal(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	if method != http.MethodPatch {
		return http.StatusOK, old.text
	}
	var names struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	next := &metal3v1alpha1.BareMetalHost{}
	merged, err := jsonpatch.MergePatch(old.text, body)
	if err = errors.Join(err, json.Unmarshal(body, &names)); err == nil {
		err = json.Unmarshal(merged, next)
	}
	switch seen := names.Metadata.ResourceVersion; {
	case err != nil:
		return http.StatusBadRequest, refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest)
	case seen != "" && seen != old.ResourceVersion:
		return http.StatusConflict, refusal(http.StatusConflict, metav1.StatusReasonConflict)
	}
	h.judge(old, h.put(next))
	return http.StatusOK, h.all[name].text
}
