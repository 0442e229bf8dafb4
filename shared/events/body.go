// SPDX-License-Identifier: Apache-2.0

package events

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// What is read of a request. A Reference event is under 1 kB, and what a body of many small things becomes in memory is several
// times its size: a hundred of them together have to stay far below what a function has.
const (
	maxBody     = 64 << 10
	maxQuestion = 1 << 20 // one at a time
)

// patience is how long a body may take to come. That of an event comes with its headers; 1 MiB takes a tenth of a second.
const patience = 5 * time.Second

// ErrSlow is a request whose body did not come in time. The same event may come faster another time, so it shall be delivered again.
var ErrSlow = errors.New("slow body")

// Hurry lets what is still to come of the body of r take five seconds from now. It is not only for whoever reads it: before a
// server answers, it reads what its handler left, and closes the connection if that does not come. When all has come, the server takes
// the deadline away: who waits for his answer is not cut off. Where w knows no deadlines there is none.
func Hurry(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return // the server already listens whether the sender leaves
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(patience))
}

// read returns the body of a request, which holds a place in large, if it is large, until done is called.
func read(w http.ResponseWriter, r *http.Request, large chan struct{}) (body []byte, done func(), err error) {
	Hurry(w, r)
	most, leave, whole := int64(maxBody), func() {}, false
	if large != nil {
		most = maxQuestion
	}
	defer func() {
		if !whole {
			leave()
		}
	}()
	r.Body = http.MaxBytesReader(w, r.Body, most)
	body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		select {
		case large <- struct{}{}:
			leave = func() { <-large }
		default:
			return nil, nil, &RetryError{Busy: true, After: time.Second, Err: errors.New("another large question is being read")}
		}
		body, err = io.ReadAll(io.MultiReader(bytes.NewReader(body), r.Body))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, nil, fmt.Errorf("%w: %w", ErrSlow, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	whole = true
	return body, leave, nil
}
