// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// writeKeys fills the folder from which the control plane takes its keys. It would make its own, for loopback only; pods
// reach the API server by its service address, which its certificate must name.
func writeKeys(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	authority := &x509.Certificate{
		Subject: pkix.Name{CommonName: "control-plane"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	accountKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceAddress), net.ParseIP(nodeAddress)},
	}
	for name, each := range map[string]struct {
		certificate *x509.Certificate
		key         *ecdsa.PrivateKey
	}{"ca": {authority, authorityKey}, "server": {server, serverKey}, "sa": {nil, accountKey}} {
		raw, err := x509.MarshalECPrivateKey(each.key)
		if err != nil {
			return err
		}
		if err := writePEM(filepath.Join(dir, name+".key"), "EC PRIVATE KEY", raw); err != nil {
			return err
		}
		if each.certificate == nil {
			continue
		}
		if raw, err = sign(each.certificate, each.key, authority, authorityKey); err != nil {
			return err
		}
		if err := writePEM(filepath.Join(dir, name+".crt"), "CERTIFICATE", raw); err != nil {
			return err
		}
	}
	return nil
}

func sign(c *x509.Certificate, key *ecdsa.PrivateKey, authority *x509.Certificate, by *ecdsa.PrivateKey) ([]byte, error) {
	var err error
	if c.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, err
	}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	c.BasicConstraintsValid = true
	return x509.CreateCertificate(rand.Reader, c, authority, &key.PublicKey, by)
}

func writePEM(path, kind string, raw []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600)
}
