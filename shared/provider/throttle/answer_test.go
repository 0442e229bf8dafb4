// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// endless is the body of an answer that ends too late.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	if e.read > 2*maxAnswer {
		return 0, io.EOF
	}
	e.read += len(p)
	return copy(p, bytes.Repeat([]byte{'x'}, len(p))), nil
}

func (e *endless) Close() error { return nil }

// An answer is read to its limit and not on, whoever gives it: what is more is no answer, and says nothing of what was asked for
// (RELIABILITY §4, inputs).
func TestAnswersAreReadToTheirLimit(t *testing.T) {
	t.Parallel()
	for status, most := range map[int]int{http.StatusOK: maxAnswer, http.StatusBadRequest: maxRefusal, http.StatusNotFound: maxRefusal, http.StatusBadGateway: maxRefusal} {
		body := &endless{}
		ask := func(body io.ReadCloser) ([]byte, error) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://cloud.test", nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := Transport{answers(func(*http.Request) *http.Response {
				return &http.Response{StatusCode: status, Header: http.Header{}, Body: body}
			}), New(100, 10)}.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = answer.Body.Close() }()
			return io.ReadAll(answer.Body)
		}
		if _, err := ask(body); err == nil || provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), "MiB") || body.read > 2*most {
			t.Errorf("%d: %d bytes were read, error %v", status, body.read, err)
		}
		if text, err := ask(io.NopCloser(io.LimitReader(&endless{}, int64(most)))); err != nil || len(text) != most {
			t.Errorf("%d: %d bytes of an answer that just fits, error %v", status, len(text), err)
		}
	}
}
