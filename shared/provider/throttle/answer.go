// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"io"
	"net/http"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What is read of one answer. The largest honest one is a list that a cloud does not page: some 20,000 ports of Neutron. A refusal
// is a sentence, and the SDKs read it whole, several times over.
const (
	maxAnswer  = 64 << 20
	maxRefusal = 1 << 20
)

// answer is a body that is an error from left bytes on.
type answer struct {
	io.ReadCloser
	left, most int
}

// bounded returns the body of an answer, to its limit.
func bounded(r *http.Response) io.ReadCloser {
	most := maxAnswer
	if r.StatusCode >= http.StatusBadRequest {
		most = maxRefusal
	}
	return &answer{r.Body, most, most}
}

// Read implements [io.Reader]. What is longer than it may be proves nothing: its error is Unknown.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p[:min(len(p), a.left+1)])
	if n > a.left {
		n, err = a.left, provider.Errorf(provider.Unknown, "the answer is longer than %d MiB: see what answers in the cloud's place, such as a proxy", a.most>>20)
	}
	a.left -= n
	return n, err
}
