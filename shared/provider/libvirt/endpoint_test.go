// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/libvirtd"
)

func TestURIs(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]endpoint{
		"qemu+tls://host.example.com/system":             {way: byTLS, address: "host.example.com:16514", remote: "qemu:///system"},
		"qemu://host.example.com/system":                 {way: byTLS, address: "host.example.com:16514", remote: "qemu:///system"},
		"qemu+tls://host:2/system?no_verify=1":           {way: byTLS, address: "host:2", remote: "qemu:///system"},
		"qemu+tcp://192.168.122.1/system":                {way: byTCP, address: "192.168.122.1:16509", remote: "qemu:///system"},
		"qemu+tcp://[2001:db8::1]:7/system":              {way: byTCP, address: "[2001:db8::1]:7", remote: "qemu:///system"},
		"qemu:///system":                                 {way: byUnix, address: unixSocket, remote: "qemu:///system"},
		"qemu+unix:///session?socket=/run/user/1/lv":     {way: byUnix, address: "/run/user/1/lv", remote: "qemu:///session"},
		"test:///default":                                {way: byUnix, address: unixSocket, remote: "test:///default"},
		"qemu+ssh://host/system":                         {},
		"qemu+ext:///system?command=rm":                  {},
		"qemu+libssh2://host/system":                     {},
		"qemu+tls:///system":                             {},
		"qemu+unix://host/system":                        {},
		"qemu+tcp://host/system?socket=/run/a":           {},
		"qemu+tcp://user@host/system":                    {},
		"qemu+tls://host/system?pkipath=/etc/kubernetes": {},
		"qemu+udp://host/system":                         {},
		"://":                                            {},
		"":                                               {},
		"qemu:system":                                    {},
		"qemu+tcp://host/system#a":                       {},
		"qemu+tcp://host:port/system":                    {},
	} {
		got, _, _, err := parseURI(uri)
		if want.way == "" {
			if err == nil {
				t.Errorf("%q is taken for %+v", uri, got)
			}
			continue
		}
		if err != nil || got.way != want.way || got.address != want.address || got.remote != want.remote {
			t.Errorf("%q is %+v, %v, want %+v", uri, got, err, want)
		}
	}
}

// Whoever may write a providerSpec has nothing asked but what the Secret names, to the letter (RELIABILITY §4).
func TestDaemonsThatTheSecretDoesNotName(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	for _, uri := range []string{
		"qemu+tcp://" + l.Address + "/session", "qemu+tcp://" + l.Address + "/system?", "qemu+unix:///system?socket=/run/secrets/a",
		"qemu+tls://elsewhere.example.com/", "qemu:///system",
	} {
		a := accountOf(uriOf(l))
		a.Region = uri
		_, err := open(t.Context(), a)
		wantError(t, err, provider.Denied, "providerSpec.value.uri", uri, "key uris of credentials secret machines/libvirt-credentials")
	}
	a := accountOf(uriOf(l))
	a.Credentials = nil
	_, err := open(t.Context(), a)
	wantError(t, err, provider.Denied, "key uris")
	a.Region = "qemu+ssh://host/system"
	_, err = open(t.Context(), a)
	wantError(t, err, provider.Invalid, "providerSpec.value.uri", "qemu+ssh://host/system", "the transport ssh is not served", "qemu+tls://")
	a.ClusterID = ""
	_, err = open(t.Context(), a)
	wantError(t, err, provider.Invalid, "no id")
	if n := l.Calls("ConnectOpen"); n != 0 {
		t.Errorf("the daemon was asked %d times", n)
	}
}

// Where clouds keep the credentials of their instances, and the API server, no daemon is, though the Secret names it.
func TestNoDaemonIsAskedAtTheMetadataService(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"qemu+tcp://169.254.169.254:80/system", "qemu+tls://[fe80::1]/system", "qemu+tcp://0.0.0.0/system", "qemu+tls://[fd00:ec2::254]:443/system"} {
		_, err := openedFor(t, accountOf(uri)).List(t.Context())
		wantError(t, err, provider.Denied, "no cloud is asked there")
	}
}

func TestDaemonsThatNeedNotProveWhoTheyAre(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"qemu+tls://host/system": "", "qemu:///system": "",
		"qemu+tcp://host/system": "plain text", "qemu+tls://host/system?no_verify=1": "no_verify=1",
	} {
		got := openedFor(t, accountOf(uri)).Insecure()
		if (got == "") != (want == "") || !strings.Contains(got, want) || want != "" && !strings.HasPrefix(got, "key uris: ") {
			t.Errorf("%s: %q", uri, got)
		}
	}
}

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	_, a.pem, _ = a.sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// sign makes a certificate: its own the first time.
func (a *authority) sign(t *testing.T, c *x509.Certificate) (pair tls.Certificate, cert, key []byte) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "libvirt"}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := c, own
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &own.PublicKey, signer)
	must(t, err)
	if a.cert == nil {
		a.key = own
		a.cert, err = x509.ParseCertificate(der)
		must(t, err)
	}
	raw, err := x509.MarshalECPrivateKey(own)
	must(t, err)
	cert, key = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
	pair, err = tls.X509KeyPair(cert, key)
	must(t, err)
	return pair, cert, key
}

// A daemon with TLS believes the certificates that the Secret holds, and is believed by its own; of nobody else anything is asked.
func TestCertificates(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	server, _, _ := ca.sign(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	_, cert, key := ca.sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	_, strange, strangeKey := other.sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	clients := x509.NewCertPool()
	clients.AddCert(ca.cert)
	for _, version := range []uint16{tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13} {
		l := libvirtd.New()
		must(t, l.Start(t.Context(), &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, MinVersion: tls.VersionTLS10, MaxVersion: version})) //nolint:gosec // the point
		t.Cleanup(l.Stop)
		uri := "qemu+tls://" + l.Address + "/system"
		for _, c := range []struct {
			what  string
			keys  map[string][]byte
			code  provider.Code
			names []string
		}{
			{"all is right", map[string][]byte{keyCA: ca.pem, keyCert: cert, keyKey: key}, 0, nil},
			{"of this host", map[string][]byte{keyCA: other.pem, "127.0.0.1." + keyCA: ca.pem, keyCert: cert, keyKey: key}, 0, nil},
			{"another authority", map[string][]byte{keyCA: other.pem, keyCert: cert, keyKey: key}, provider.Denied, []string{"key ca.crt in secret machines/libvirt-credentials"}},
			{"the system's authorities", map[string][]byte{keyCert: cert, keyKey: key}, provider.Denied, []string{"key ca.crt"}},
			{"no certificate", map[string][]byte{keyCA: ca.pem}, provider.Denied, []string{"tls.crt and tls.key"}},
			{"a stranger's certificate", map[string][]byte{keyCA: ca.pem, keyCert: strange, keyKey: strangeKey}, provider.Denied, []string{"tls.crt and tls.key"}},
		} {
			a := accountOf(uri)
			for k, v := range c.keys {
				a.Credentials[k] = v
			}
			before := l.Calls("ConnectOpen")
			_, err := openedFor(t, a).List(t.Context())
			asked := l.Calls("ConnectOpen") > before
			switch {
			case version == tls.VersionTLS11:
				if err == nil || asked {
					t.Errorf("TLS 1.1, %s: %v", c.what, err)
				}
			case c.code == 0 && err != nil:
				t.Errorf("%s, %s: %v", tls.VersionName(version), c.what, err)
			case c.code != 0:
				wantError(t, err, c.code, c.names...)
				if asked {
					t.Errorf("%s: the daemon was asked", c.what)
				}
			}
		}
	}
	for what, keys := range map[string]map[string][]byte{
		"key ca.crt holds no certificate in PEM": {keyCA: []byte("-")}, "keys tls.crt and tls.key": {keyCert: cert}, "keys host.tls.crt": {"host." + keyCert: cert, keyKey: strangeKey},
	} {
		a := accountOf("qemu+tls://host/system")
		for k, v := range keys {
			a.Credentials[k] = v
		}
		_, err := open(t.Context(), a)
		wantError(t, err, provider.Denied, what)
	}
}

// A daemon that takes no more clients closes the connection after the handshake, or sends nothing for long: neither is an answer.
func TestDaemonThatTurnsClientsAway(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server, _, _ := ca.sign(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	for _, sends := range []string{"", "\x00", "wait"} {
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{server}, MinVersion: tls.VersionTLS12})
		must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		done := make(chan struct{})
		t.Cleanup(func() { close(done) })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_ = conn.(*tls.Conn).HandshakeContext(context.Background())
				if sends == "wait" {
					<-done
				}
				_, _ = conn.Write([]byte(sends))
				_ = conn.Close()
			}
		}()
		a := accountOf("qemu+tls://" + l.Addr().String() + "/system")
		a.Credentials[keyCA] = ca.pem
		within := deadline
		if sends == "wait" {
			within = 300 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), within)
		_, err = openedFor(t, a).List(ctx)
		cancel()
		wantError(t, err, provider.Unknown)
		if sends != "wait" && !strings.Contains(err.Error(), "closes the connection after the handshake") {
			t.Errorf("%q: %v", sends, err)
		}
	}
}

// A socket for others than root has polkit asked about them, which takes them or does not.
func TestPolkit(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	l.Polkit()
	d := opened(t, l)
	if _, err := d.List(t.Context()); err != nil || l.Calls("AuthPolkit") != 1 {
		t.Errorf("%v", err)
	}
	must(t, d.Close(t.Context()))
	l.Strike(func(p string) libvirtd.Fault {
		if p == "AuthPolkit" {
			return libvirtd.Number(libvirt.ErrAuthCancelled)
		}
		return libvirtd.None
	})
	_, err := opened(t, l).List(t.Context())
	wantError(t, err, provider.Denied, Secret)
}
