// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// domainsFor is how long the domain names of a network are believed.
const domainsFor = 10 * time.Minute

// domains remembers the domain names that networks give by DHCP. Losing it costs two calls.
type domains struct {
	turn  chan struct{} // of reading and asking; whoever waits for it can give up
	known map[string]suffixes
}

func newDomains() domains {
	return domains{turn: make(chan struct{}, 1), known: map[string]suffixes{}}
}

type suffixes struct {
	names []string
	read  time.Time
}

// suffixes returns the domain names that a network gives its instances beside the cloud's own. They are no more than further names: where
// they cannot be read the ones of before count, and none where the account may not read them, or the cloud does not know the call. Who gets an error may try again.
func (d *driver) suffixes(ctx context.Context, vpc string) ([]string, error) {
	if vpc == "" {
		return nil, nil
	}
	select {
	case d.domains.turn <- struct{}{}:
		defer func() { <-d.domains.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("domain names of %s: %w", vpc, ctx.Err())
	}
	if have, ok := d.domains.known[vpc]; ok && time.Since(have.read) < domainsFor {
		return have.names, nil
	}
	names, err := d.dhcp(ctx, vpc)
	switch have, ok := d.domains.known[vpc]; {
	case err == nil:
	case ctx.Err() == nil && (ok || d.never(err)):
		names = have.names
	default:
		return nil, fmt.Errorf("domain names of %s: %w", vpc, err)
	}
	d.domains.known[vpc] = suffixes{names, time.Now()}
	return names, nil
}

// never reports whether an error is the same whoever asks again: nobody may, or the cloud does not know the call.
func (d *driver) never(err error) bool {
	code := provider.CodeOf(d.coded(err))
	return code == provider.Denied || code == provider.Invalid
}

func (d *driver) dhcp(ctx context.Context, vpc string) ([]string, error) {
	vpcs, err := d.ec2.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: []types.Filter{has("vpc-id", vpc)}})
	if err != nil || len(vpcs.Vpcs) == 0 {
		return nil, err
	}
	id := aws.ToString(vpcs.Vpcs[0].DhcpOptionsId)
	if id == "" || id == "default" {
		return nil, nil
	}
	options, err := d.ec2.DescribeDhcpOptions(ctx, &ec2.DescribeDhcpOptionsInput{Filters: []types.Filter{has("dhcp-options-id", id)}})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range options.DhcpOptions {
		for _, c := range o.DhcpConfigurations {
			if aws.ToString(c.Key) != "domain-name" {
				continue
			}
			for _, v := range c.Values {
				names = append(names, strings.Fields(aws.ToString(v.Value))...)
			}
		}
	}
	return names, nil
}
