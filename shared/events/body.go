// SPDX-License-Identifier: Apache-2.0

package events

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// What is read of a request. A Reference event is under 1 kB, and what a body of many small things becomes in memory is several
// times its size: a hundred of them together have to stay far below what a function has.
const (
	maxBody     = 64 << 10
	maxQuestion = 1 << 20 // one at a time
)

// read returns the body of a request, which holds a place in large, if it is large, until done is called.
func read(w http.ResponseWriter, r *http.Request, large chan struct{}) (body []byte, done func(), err error) {
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
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	whole = true
	return body, leave, nil
}
