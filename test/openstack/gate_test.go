// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// gate stands between one caller and the cloud, which then appears to be behind one address. It counts the requests, and
// may end the caller at any of them.
type gate struct {
	*httptest.Server
	services map[string]*url.URL // by the first part of the path
	names    *strings.Replacer   // of the addresses in the catalog

	mu    sync.Mutex
	count int
	kill  func(n int) (before, after bool)
	end   context.CancelFunc // of the caller
}

// services of up.sh.
var services = map[string]string{
	"identity": "http://127.0.0.1:15000", "compute": "http://127.0.0.1:18774", "network": "http://127.0.0.1:19696", "image": "http://127.0.0.1:19292", "volume": "http://127.0.0.1:18776",
}

func newGate(t *testing.T, kill func(n int) (before, after bool)) *gate {
	t.Helper()
	g := &gate{services: map[string]*url.URL{}, kill: kill}
	g.Server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			name, path, _ := strings.Cut(strings.TrimPrefix(r.In.URL.Path, "/"), "/")
			r.Out.URL.Path, r.Out.URL.RawPath = "/"+path, ""
			if _, raw, ok := strings.Cut(strings.TrimPrefix(r.In.URL.RawPath, "/"), "/"); ok {
				r.Out.URL.RawPath = "/" + raw
			}
			r.Out.URL.Scheme, r.Out.URL.Host = "http", g.services[name].Host
		},
		Transport:      g,
		ModifyResponse: g.rename,
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, _ error) { panic(http.ErrAbortHandler) },
	})
	t.Cleanup(g.Close)
	var pairs []string
	for name, at := range services {
		u, err := url.Parse(at)
		must(t, err)
		g.services[name] = u
		pairs = append(pairs, at, g.URL+"/"+name)
	}
	g.names = strings.NewReplacer(pairs...)
	return g
}

// RoundTrip implements [http.RoundTripper]: a caller that is killed before a request has not sent it, one that is killed
// after it has not got the answer.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	g.count++
	before, after := g.kill(g.count)
	end := g.end
	g.mu.Unlock()
	if before {
		end()
		return nil, io.ErrUnexpectedEOF
	}
	answer, err := http.DefaultTransport.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	if after {
		end()
		return nil, io.ErrUnexpectedEOF
	}
	return answer, err
}

// rename puts the gate's addresses into the catalog.
func (g *gate) rename(r *http.Response) error {
	if !strings.HasSuffix(r.Request.URL.Path, "/auth/tokens") {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	body = []byte(g.names.Replace(string(body)))
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}
