// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const validity = 10 * 365 * 24 * time.Hour

// keys are the certificates and keys of one control plane, in a folder.
type keys struct {
	dir       string
	authority *x509.Certificate
	signer    *ecdsa.PrivateKey
}

func (k *keys) file(name string) string { return filepath.Join(k.dir, name) }

// openKeys reads the folder, which it makes first if it does not exist.
func openKeys(dir string) (*keys, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := makeKeys(dir); err != nil {
			return nil, fmt.Errorf("make keys: %w", err)
		}
	}
	k := &keys{dir: dir}
	certificate, err := readPEM(k.file("ca.crt"))
	if err != nil {
		return nil, err
	}
	if k.authority, err = x509.ParseCertificate(certificate); err != nil {
		return nil, fmt.Errorf("read %s: %w", k.file("ca.crt"), err)
	}
	key, err := readPEM(k.file("ca.key"))
	if err != nil {
		return nil, err
	}
	if k.signer, err = x509.ParseECPrivateKey(key); err != nil {
		return nil, fmt.Errorf("read %s: %w", k.file("ca.key"), err)
	}
	return k, nil
}

// makeKeys fills a folder beside dir and renames it, so that dir is whole or absent.
func makeKeys(dir string) error {
	k := &keys{dir: dir + ".new"}
	if err := os.RemoveAll(k.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	authority, authorityKey, err := k.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "control-plane"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
	})
	if err != nil {
		return err
	}
	server, serverKey, err := k.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	if err != nil {
		return err
	}
	_, serviceAccountKey, err := newKey()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"ca.crt": authority, "ca.key": authorityKey, "server.crt": server, "server.key": serverKey, "sa.key": serviceAccountKey,
	} {
		if err := os.WriteFile(k.file(name), content, 0o600); err != nil {
			return err
		}
	}
	return os.Rename(k.dir, dir)
}

// sign completes the template and returns the certificate and its key as PEM. An authority signs itself and all that follow.
func (k *keys) sign(template *x509.Certificate) (certificate, key []byte, err error) {
	private, key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, nil, err
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(validity)
	template.KeyUsage |= x509.KeyUsageDigitalSignature
	template.BasicConstraintsValid = true
	if template.IsCA {
		k.authority, k.signer = template, private
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, k.authority, &private.PublicKey, k.signer)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), key, nil
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}), nil
}

func readPEM(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("read %s: no PEM block", path)
	}
	return block.Bytes, nil
}
