// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
)

// EC2 fills the buckets of its describing calls with 20 tokens a second and holds 100; those of changing calls with 2 to
// 5, of which it says itself when they are empty, without saying until when: breather is how long nobody asks then.
const (
	perSecond = 20
	atOnce    = 100
	breather  = time.Second
)

// clients speak to one region with one credential. The SDK repeats nothing: a call that failed is judged here.
type clients struct {
	ec2     *ec2.Client
	classic *elb.Client
	network *elbv2.Client
	http    *http.Client
	limiter *throttle.Limiter // of everybody who uses this key

	region   string
	endpoint *string // of a cloud that is not Amazon's
	keys     aws.CredentialsProvider
}

// connect reads the credentials; nothing is asked yet. The Secret holds, as OpenShift's does, the keys
// aws_access_key_id and aws_secret_access_key. Beside them may stand aws_session_token, aws_endpoint_url for a cloud
// that speaks EC2's protocol elsewhere, aws_ca_bundle with its authority in PEM.
func connect(a provider.Account) (*clients, error) {
	secret := a.Namespace + "/" + a.Secret
	value := func(key string) string { return strings.TrimSpace(string(a.Credentials[key])) } // echo ends with a newline
	for _, key := range []string{"aws_access_key_id", "aws_secret_access_key"} {
		if value(key) == "" {
			return nil, provider.Errorf(provider.Denied, "credentials secret %s has no key %s: add it", secret, key)
		}
	}
	var endpoint *string
	if text := value("aws_endpoint_url"); text != "" {
		u, err := url.Parse(text)
		if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, provider.Errorf(provider.Denied, "credentials secret %s: key aws_endpoint_url is no URL of a host and a path alone", secret)
		}
		endpoint = &text
	}
	transport := &http.Transport{
		DialContext:           throttle.Dialer(deadline).DialContext,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		Proxy:                 http.ProxyFromEnvironment,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   10,
		IdleConnTimeout:       90 * time.Second,
		ResponseHeaderTimeout: deadline,
	}
	if ca := a.Credentials["aws_ca_bundle"]; len(ca) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(ca) {
			return nil, provider.Errorf(provider.Denied, "credentials secret %s: key aws_ca_bundle holds no certificate in PEM", secret)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	limiter := throttle.Of(strings.Join([]string{a.Kind, a.Region, value("aws_endpoint_url"), value("aws_access_key_id")}, " "), perSecond, atOnce)
	client := &http.Client{
		Transport:     apiOnly{throttle.Transport{Base: transport, Limiter: limiter}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	keys := credentials.NewStaticCredentialsProvider(value("aws_access_key_id"), value("aws_secret_access_key"), value("aws_session_token"))
	return &clients{
		http:    client,
		limiter: limiter,
		region:  a.Region, endpoint: endpoint, keys: keys,
		ec2:     ec2.New(ec2.Options{Region: a.Region, Credentials: keys, HTTPClient: client, BaseEndpoint: endpoint, Retryer: aws.NopRetryer{}}),
		classic: elb.New(elb.Options{Region: a.Region, Credentials: keys, HTTPClient: client, BaseEndpoint: endpoint, Retryer: aws.NopRetryer{}}),
		network: elbv2.New(elbv2.Options{Region: a.Region, Credentials: keys, HTTPClient: client, BaseEndpoint: endpoint, Retryer: aws.NopRetryer{}}),
	}, nil
}

// Insecure implements [provider.Insecure].
func (c *clients) Insecure() string {
	if c.endpoint == nil || strings.HasPrefix(strings.ToLower(*c.endpoint), "https:") {
		return ""
	}
	return "key aws_endpoint_url: it is no https URL"
}

// apiOnly makes an error of an answer that is not the API's. The SDK takes whatever comes with a status of 200 to 299 and no
// known element for an empty answer, and that would be absence (RELIABILITY G5).
type apiOnly struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t apiOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	body := bufio.NewReaderSize(res.Body, headSize)
	head, _ := body.Peek(headSize) // who reads on gets the error
	if kind == "text/html" || res.StatusCode/100 == 2 && !answerPattern.Match(head) {
		_ = res.Body.Close() // nobody reads it
		return nil, fmt.Errorf("HTTP status %s with what is no answer of EC2 (%s): is a proxy between, or another service behind this name", res.Status, kind)
	}
	res.Body = replayed{body, res.Body}
	return res, nil
}

const headSize = 1024

// answerPattern is how every answer of the Query protocol begins.
var answerPattern = regexp.MustCompile(`^\s*(<\?xml[^>]*\?>)?\s*<[A-Za-z]+Response[\s>/]`)

// replayed is a body whose beginning was looked at.
type replayed struct {
	io.Reader
	io.Closer
}
