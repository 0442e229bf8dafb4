// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// Domain names are further names and nothing more: that they cannot be read hides no instance (R-S2).
func TestNoInstanceIsHiddenByDomainNames(t *testing.T) {
	t.Parallel()
	for refusal, action := range map[string]string{
		"UnauthorizedOperation": "DescribeVpcs", "RequestLimitExceeded": "DescribeDhcpOptions",
		"InvalidAction": "DescribeVpcs", "UnsupportedOperation": "DescribeDhcpOptions", // of a cloud that does not know the call
	} {
		cloud := &ec2.Cloud{}
		region := serve(t, cloud)
		d, w := region.wired(t, region.account())
		resolved, err := d.Resolve(t.Context(), spec(nil))
		must(t, err)
		i, err := d.Create(t.Context(), provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}, resolved)
		must(t, err)
		addresses := len(i.Addresses)
		if refusal != "RequestLimitExceeded" { // as of a process that begins
			clear(d.domains.known)
			addresses-- // the name in the network's own domain
		}
		for vpc, have := range d.domains.known {
			d.domains.known[vpc] = suffixes{have.names, have.read.Add(-domainsFor)}
		}
		w.set(func(a string, next func() (*http.Response, error)) (*http.Response, error) {
			if a == action {
				return page(400, "text/xml", errorXML(refusal, "no"))(nil)
			}
			return next()
		})
		all, err := d.List(t.Context())
		if err != nil || len(all) != 1 || len(all[0].Addresses) != addresses {
			t.Errorf("%s of %s: List = %+v, %v; it had addresses %v", refusal, action, all, err, i.Addresses)
		}
	}
}

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
