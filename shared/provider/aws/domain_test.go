// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/test/ec2"
)

// Who has no more time gives up, though somebody else waits for the domain names of the network still (RELIABILITY R-L5).
func TestNobodyWaitsForAnothersDomainNames(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	d, w := region.wired(t, region.account())
	asked, answer := make(chan struct{}), make(chan struct{})
	w.set(func(_ string, _ func() (*http.Response, error)) (*http.Response, error) {
		close(asked)
		<-answer
		return nil, errors.New("connection reset by peer")
	})
	first := make(chan error, 1)
	go func() {
		_, err := d.suffixes(t.Context(), "vpc-1")
		first <- err
	}()
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	second := make(chan error, 1)
	go func() {
		_, err := d.suffixes(ctx, "vpc-1")
		second <- err
	}()
	select {
	case err := <-second:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who has no more time gets %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("who has no more time waits for another")
	}
	close(answer)
	if err := <-first; err == nil {
		t.Error("no error")
	}
}
