// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
)

// The keys of the Secret. A daemon is asked only at a URI that the Secret has: whoever may write a providerSpec must not have any host
// or port asked, nor any socket (RELIABILITY §4). The other keys hold, in PEM, what Secrets of certificates have under these names; where
// daemons differ in them, <host>.<key> comes first.
const (
	keyURIs = "uris" // one on a line
	keyCA   = "ca.crt"
	keyCert = "tls.crt"
	keyKey  = "tls.key"
)

// Where daemons listen, if nobody says otherwise.
const (
	tlsPort    = "16514"
	tcpPort    = "16509"
	unixSocket = "/var/run/libvirt/libvirt-sock"
)

// The ways to a daemon that this driver knows.
const (
	byUnix = "unix"
	byTCP  = "tcp"
	byTLS  = "tls"
)

// endpoint is where a daemon is, and how it proves who it is.
type endpoint struct {
	way      string
	address  string // host:port, or the path of a socket
	remote   libvirt.ConnectURI
	tls      *tls.Config // of byTLS
	insecure string      // what lets anybody answer in its place, and which key says so; or empty
}

// newEndpoint reads where an account's daemon is; nothing is asked yet.
func newEndpoint(a provider.Account) (endpoint, error) {
	e, u, unverified, err := parseURI(a.Region)
	if err != nil {
		return e, provider.Errorf(provider.Invalid, "%s: %q: %w", at("uri"), a.Region, err)
	}
	secret := a.Namespace + "/" + a.Secret
	if !slices.Contains(strings.Fields(string(a.Credentials[keyURIs])), a.Region) {
		return e, provider.Errorf(provider.Denied, "%s: %q is not among the URIs in key %s of credentials secret %s: add it there, or name another", at("uri"), a.Region, keyURIs, secret)
	}
	switch {
	case e.way == byTCP:
		e.insecure = fmt.Sprintf("key %s: %s: nothing proves who answers, and all is sent in plain text", keyURIs, a.Region)
	case unverified:
		e.insecure = fmt.Sprintf("key %s: %s: no_verify=1", keyURIs, a.Region)
	}
	if e.way == byTLS {
		e.tls, err = trust(a, u.Hostname(), unverified)
	}
	return e, err
}

var errTransport = errors.New("must be a URI with the transport tls, tcp or unix, such as qemu+tls://host.example.com/system")

// parseURI reads a URI as libvirt does: of a host without a transport is TLS, and without a host the socket on this machine.
func parseURI(text string) (e endpoint, u *url.URL, unverified bool, err error) {
	u, err = url.Parse(text)
	if err != nil {
		return e, nil, false, errTransport // whose own error would repeat it
	}
	driver, way, _ := strings.Cut(u.Scheme, "+")
	if way == "" {
		way = map[bool]string{true: byUnix, false: byTLS}[u.Host == ""]
	}
	query := u.Query()
	socket := query.Get("socket")
	unverified = query.Get("no_verify") == "1" && way == byTLS
	query.Del("socket")
	query.Del("no_verify")
	switch {
	case driver == "" || u.Opaque != "" || u.Fragment != "":
		return e, u, false, errTransport
	case way == "ssh" || way == "libssh" || way == "libssh2" || way == "ext":
		return e, u, false, fmt.Errorf("the transport %s is not served: have the daemon listen with TLS, and name qemu+tls://", way)
	case way != byUnix && way != byTCP && way != byTLS, way == byUnix && u.Host != "", way != byUnix && (u.Hostname() == "" || socket != ""):
		return e, u, false, errTransport
	case len(query) > 0 || u.User != nil:
		return e, u, false, errors.New("has a user, or a parameter other than socket and no_verify: take it away")
	}
	e.way, e.remote = way, libvirt.ConnectURI(driver+"://"+u.EscapedPath())
	switch way {
	case byUnix:
		e.address = unixSocket
		if socket != "" {
			e.address = socket
		}
	case byTCP:
		e.address = net.JoinHostPort(u.Hostname(), or(u.Port(), tcpPort))
	case byTLS:
		e.address = net.JoinHostPort(u.Hostname(), or(u.Port(), tlsPort))
	}
	return e, u, unverified, nil
}

func or(port, otherwise string) string {
	if port == "" {
		return otherwise
	}
	return port
}

// trust reads the certificates.
func trust(a provider.Account, host string, unverified bool) (*tls.Config, error) {
	name := func(key string) string {
		if own := host + "." + key; len(a.Credentials[own]) > 0 {
			return own
		}
		return key
	}
	secret := a.Namespace + "/" + a.Secret
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if unverified {
		c.InsecureSkipVerify = true //nolint:gosec // whoever may write the Secret may say so, as to every client of libvirt
	}
	if ca := a.Credentials[name(keyCA)]; len(ca) > 0 {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(ca) {
			return nil, provider.Errorf(provider.Denied, "credentials secret %s: key %s holds no certificate in PEM", secret, name(keyCA))
		}
	}
	cert, key := a.Credentials[name(keyCert)], a.Credentials[name(keyKey)]
	if len(bytes.TrimSpace(cert)) == 0 && len(bytes.TrimSpace(key)) == 0 { // a daemon may ask for none
		return c, nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, provider.Errorf(provider.Denied, "credentials secret %s: keys %s and %s: %w", secret, name(keyCert), name(keyKey), err)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return c, nil
}

var errTurnedAway = errors.New("the daemon closes the connection after the handshake: it takes no more clients, or not this certificate")

// dial connects, and of TLS waits for the byte with which a daemon says that it takes the client.
func (e endpoint) dial(ctx context.Context) (net.Conn, error) {
	if e.way == byUnix {
		return (&net.Dialer{Timeout: deadline}).DialContext(ctx, "unix", e.address)
	}
	conn, err := throttle.Dialer(deadline).DialContext(ctx, "tcp", e.address)
	if err != nil || e.way == byTCP {
		return conn, err
	}
	secured := tls.Client(conn, e.tls)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	verdict := make([]byte, 1)
	if _, err = io.ReadFull(secured, verdict); err == nil && verdict[0] == 1 {
		return secured, nil
	}
	_ = conn.Close()
	if err == nil || errors.Is(err, io.EOF) {
		err = errTurnedAway
	}
	return nil, err
}
