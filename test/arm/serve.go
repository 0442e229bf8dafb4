// SPDX-License-Identifier: Apache-2.0

package arm

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"
)

// Front is a cloud that listens on loopback: a proxy that leads to it under Azure's own names, which no request can reach otherwise.
type Front struct {
	Proxy string // as in HTTPS_PROXY
	CA    []byte // in PEM, as in the file that SSL_CERT_FILE names

	servers []*http.Server
}

// Serve returns when the cloud listens. The context bounds the start only.
func (c *Cloud) Serve(ctx context.Context) (*Front, error) {
	certificate, ca, err := believed()
	if err != nil {
		return nil, fmt.Errorf("serve Azure: %w", err)
	}
	f := &Front{CA: ca}
	quiet := log.New(io.Discard, "", 0) // whoever does not believe it says so himself
	behind, err := f.listen(ctx, &http.Server{
		ErrorLog: quiet,
		Handler:  http.HandlerFunc(c.answer), ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		return nil, err
	}
	proxy, err := f.listen(ctx, &http.Server{Handler: connects{behind}, ReadHeaderTimeout: 10 * time.Second})
	if err != nil {
		f.Stop()
		return nil, err
	}
	f.Proxy = "http://" + proxy
	return f, nil
}

// Stop closes every connection but those that lead through the proxy, and forgets nothing.
func (f *Front) Stop() {
	for _, s := range f.servers {
		_ = s.Close()
	}
}

// listen serves until Stop.
func (f *Front) listen(ctx context.Context, s *http.Server) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("serve Azure: %w", err)
	}
	f.servers = append(f.servers, s)
	go func() {
		if s.TLSConfig != nil {
			_ = s.ServeTLS(l, "", "")
			return
		}
		_ = s.Serve(l)
	}()
	return l.Addr().String(), nil
}

// answer hands a request that came over the network to the cloud.
func (c *Cloud) answer(w http.ResponseWriter, r *http.Request) {
	r.URL.Scheme, r.URL.Host = "https", r.Host
	res, err := c.RoundTrip(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = res.Body.Close() }()
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body) // to a client that may be gone
}

// connects is a proxy that connects to one address, whatever it is asked for, under Azure's names.
type connects struct{ to string }

// ServeHTTP implements [http.Handler].
func (p connects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if host, _, _ := net.SplitHostPort(r.Host); r.Method != http.MethodConnect || host != login && host != management {
		http.Error(w, "nobody is called "+r.Host, http.StatusBadGateway)
		return
	}
	there, err := new(net.Dialer).DialContext(r.Context(), "tcp", p.to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = there.Close() }()
	here, said, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = here.Close() }()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil { // not before: what follows it would be lost
		return
	}
	go func() {
		_, _ = io.Copy(there, said)
		_ = there.Close()
	}()
	_, _ = io.Copy(here, there)
}

// believed returns a certificate under Azure's names, and itself as the authority to believe.
func believed() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	now := time.Now()
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Azure on loopback"}, DNSNames: []string{login, management},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(365 * 24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
