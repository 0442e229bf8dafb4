// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var _ provider.Identified = (*driver)(nil)

// untoldFor is how long nobody asks again where nobody told.
const untoldFor = time.Minute

// identity remembers the account that the credentials are of, or why nobody told.
type identity struct {
	mu      sync.Mutex
	account string
	err     error
	until   time.Time // nobody asks again
}

// learn takes the account from what EC2 shows: an account sees no instance but its own.
func (i *identity) learn(all []types.Reservation) {
	if len(all) == 0 || aws.ToString(all[0].OwnerId) == "" {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.account = *all[0].OwnerId
}

// told returns what is known, and whether nobody need be asked.
func (i *identity) told() (account string, known bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.account != "" {
		return i.account, true, nil
	}
	return "", time.Now().Before(i.until), i.err
}

func (i *identity) note(account string, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if account != "" {
		i.account = account
	}
	i.err, i.until = err, time.Now().Add(untoldFor)
}

// Identity implements [provider.Identified]. Nearly always some instance has told the account already, be it one of the
// control plane's; only where the cluster has none the Security Token Service is asked, which many private networks do not
// reach.
func (d *driver) Identity(ctx context.Context) (string, error) {
	account, known, err := d.whose.told()
	if known {
		return account, err
	}
	err = d.call(ctx, func(ctx context.Context) error {
		out, err := d.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: []types.Filter{d.ours()}, MaxResults: aws.Int32(5)})
		if err != nil {
			return err
		}
		d.whose.learn(out.Reservations)
		if account, _, _ = d.whose.told(); account == "" {
			account, err = d.caller(ctx)
		}
		return err
	})
	d.whose.note(account, err)
	return account, err
}

// caller asks the token service whose the credentials are: a call that needs no right and cannot be denied
// (https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html). Clouds that speak EC2's protocol
// elsewhere may have no such service; whose account it is stays unknown there.
func (c *clients) caller(ctx context.Context) (string, error) {
	at, err := c.tokenService(ctx)
	if err != nil {
		return "", err
	}
	account, err := c.askWhose(ctx, at)
	if c.endpoint != nil && errors.Is(err, errNoTokens) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("ask %s whose account it is: %w; see that it can be reached", at, err)
	}
	return account, nil
}

// errNoTokens is the answer of a cloud that has no token service, or lets nobody ask it.
var errNoTokens = errors.New("this is refused")

func (c *clients) askWhose(ctx context.Context, at string) (string, error) {
	const body = "Action=GetCallerIdentity&Version=2011-06-15"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	keys, err := c.keys.Retrieve(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(body))
	if err := v4.NewSigner().SignHTTP(ctx, keys, req, hex.EncodeToString(sum[:]), "sts", c.region, time.Now()); err != nil {
		return "", err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	if err != nil {
		return "", err
	}
	var answer struct {
		Account string `xml:"GetCallerIdentityResult>Account"`
		Code    string `xml:"Errors>Error>Code"`
		STS     string `xml:"Error>Code"`
	}
	switch err := xml.Unmarshal(text, &answer); {
	case err != nil:
		return "", fmt.Errorf("HTTP status %s: %w", res.Status, err)
	case res.StatusCode == http.StatusOK && answer.Account != "":
		return answer.Account, nil
	case res.StatusCode == http.StatusNotImplemented, codeOf(cmp.Or(answer.Code, answer.STS), res.StatusCode) != provider.Throttled && res.StatusCode/100 == 4:
		return "", fmt.Errorf("HTTP status %s: %w", res.Status, errNoTokens)
	}
	return "", fmt.Errorf("HTTP status %s without an account", res.Status)
}

// tokenService returns where the token service of the region is: beside EC2, under its own name.
func (c *clients) tokenService(ctx context.Context) (string, error) {
	if c.endpoint != nil {
		return *c.endpoint, nil
	}
	at, err := ec2.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, ec2.EndpointParameters{Region: &c.region})
	if err != nil {
		return "", err
	}
	at.URI.Host = strings.Replace(at.URI.Host, "ec2.", "sts.", 1)
	at.URI.Path = "/"
	return at.URI.String(), nil
}
