// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// asked records the hosts that requests go to, and fails them.
type asked []string

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	*a = append(*a, r.URL.Host)
	return nil, context.Canceled
}

// The region, which whoever may edit a Machine writes, becomes part of a host's name: no text makes it the name of another host
// (RELIABILITY §4).
func TestRegionsNameNoHosts(t *testing.T) {
	t.Parallel()
	for _, region := range []string{"us-east-1", "evil.test/x?", "evil.test#", "a@evil.test/", "x.evil.test:22/", "evil.test\\", "..", "", "evil.test/%2e"} {
		keys := map[string][]byte{"aws_access_key_id": []byte("a"), "aws_secret_access_key": []byte("b")}
		c, err := connect(provider.Account{Region: region, Credentials: keys})
		if err != nil {
			t.Errorf("%q: %v", region, err)
			continue
		}
		hosts := &asked{}
		c.http.Transport = hosts
		if _, err := c.ec2.DescribeInstances(t.Context(), nil); err == nil {
			t.Errorf("%q: no error", region)
		}
		for _, host := range *hosts {
			if !strings.HasSuffix(host, ".amazonaws.com") {
				t.Errorf("%q: %s is asked", region, host)
			}
		}
		if region == "us-east-1" && len(*hosts) != 1 {
			t.Errorf("%q: %v are asked", region, *hosts)
		}
	}
}

// An endpoint without TLS is told with the Secret's key; everything else has to prove who it is (RELIABILITY 4).
func TestEndpointsThatNeedNotProveWhoTheyAre(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"": "", "https://ec2.test": "", "HTTPS://ec2.test": "", "http://ec2.test": "key aws_endpoint_url: it is no https URL",
	} {
		keys := map[string][]byte{"aws_access_key_id": []byte("a"), "aws_secret_access_key": []byte("b"), "aws_endpoint_url": []byte(endpoint)}
		d, err := Provider(nil).Open(t.Context(), provider.Account{Region: "r", ClusterID: "c", Credentials: keys})
		if err != nil {
			t.Fatal(err)
		}
		i, tells := d.(provider.Insecure)
		if !tells || i.Insecure() != want {
			t.Errorf("%q: %q, want %q", endpoint, i.Insecure(), want)
		}
	}
}

// What is no address of a host over http or https is refused before anything is sent, with the key that says it (RELIABILITY 4).
func TestEndpointsAreAskedOverHTTP(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"ftp://ec2.test", "file:///etc/passwd", "unix:///run/ec2.sock", "gopher://ec2.test:70", "ec2.test", "//ec2.test", "https://", "https:ec2.test", ":"} {
		keys := map[string][]byte{"aws_access_key_id": []byte("a"), "aws_secret_access_key": []byte("b"), "aws_endpoint_url": []byte(endpoint)}
		_, err := Provider(nil).Open(t.Context(), provider.Account{Region: "r", ClusterID: "c", Credentials: keys})
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "aws_endpoint_url is no URL") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

// elsewhere sends whoever asks to another host, and remembers who was asked.
type elsewhere struct{ asked }

// RoundTrip implements [http.RoundTripper].
func (e *elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	e.asked = append(e.asked, r.URL.Host)
	res, err := page(http.StatusFound, "text/plain", "over there")(nil)
	res.Header.Set("Location", "https://elsewhere.test/")
	res.Request = r
	return res, err
}

// A signed request goes to the endpoint and nowhere else, wherever that sends it (RELIABILITY 4).
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	keys := map[string][]byte{"aws_access_key_id": []byte("a"), "aws_secret_access_key": []byte("b")}
	c, err := connect(provider.Account{Region: "us-east-1", Credentials: keys})
	if err != nil {
		t.Fatal(err)
	}
	hosts := &elsewhere{}
	c.http.Transport = hosts
	if _, err := c.ec2.DescribeInstances(t.Context(), nil); err == nil {
		t.Error("no error")
	}
	if len(hosts.asked) != 1 {
		t.Errorf("%v are asked, want the endpoint alone", hosts.asked)
	}
}
