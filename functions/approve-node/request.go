// SPDX-License-Identifier: Apache-2.0

package approvenode

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	userPrefix = "system:node:"
	group      = "system:nodes"
	maxKey     = 8192 // bits of an RSA key whose signature is checked: in no time
)

// request is a signing request that a kubelet may have made.
type request struct {
	*certificatesv1.CertificateSigningRequest
}

// openIn returns the requests for certificates of kubelets that nobody has decided about. A Node that has a certificate
// and asks for the next one is let be: Kubernetes approves that itself.
func openIn(s snapshot.Snapshot) []request {
	var open []request
	for _, csr := range s.SigningRequests {
		switch r := (request{csr}); {
		case csr.DeletionTimestamp != nil, len(csr.Status.Certificate) > 0, len(csr.Status.Conditions) > 0:
		case r.serving(), csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName && !r.byNode():
			open = append(open, r)
		}
	}
	return open
}

// serving reports whether the certificate is to prove the kubelet to others, instead of to the API server.
func (r request) serving() bool { return r.Spec.SignerName == certificatesv1.KubeletServingSignerName }

func (r request) byNode() bool { return strings.HasPrefix(r.Spec.Username, userPrefix) }

// claim is what a request says about itself.
type claim struct {
	request
	node string
	*x509.CertificateRequest
}

// claim reads the request. Its error says what no certificate of a kubelet may have, whatever is known of Machines.
func (r request) claim() (claim, error) {
	block, rest := pem.Decode(r.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(bytes.TrimSpace(rest)) > 0 {
		return claim{}, errors.New("spec.request: not one certificate request in PEM")
	}
	x, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = ownKey(x)
	}
	if err != nil {
		return claim{}, fmt.Errorf("spec.request: %w", err)
	}
	node, ok := strings.CutPrefix(x.Subject.CommonName, userPrefix)
	switch {
	case !ok || len(validation.IsDNS1123Subdomain(node)) > 0:
		return claim{}, fmt.Errorf("spec.request: common name %q is not that of a node", x.Subject.CommonName)
	case !slices.Equal(x.Subject.Organization, []string{group}):
		return claim{}, fmt.Errorf("spec.request: organizations %q, a node has %q alone", x.Subject.Organization, group)
	case len(x.EmailAddresses) > 0, len(x.URIs) > 0:
		return claim{}, errors.New("spec.request: a node has neither mail addresses nor URIs")
	}
	return claim{r, node, x}, r.fits(node, x)
}

// addresses are what the certificate would be served under.
func (c claim) addresses() []string {
	all := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}

// plain returns an address of the network, or a name, in the one way that it is compared in.
func plain(address string) string {
	ip := append(x509.CertificateRequest{}.IPAddresses, nil) // the type is a network's, which nothing here touches
	if address != "" && ip[0].UnmarshalText([]byte(address)) == nil {
		return ip[0].String()
	}
	return strings.ToLower(strings.TrimSuffix(address, "."))
}

// ofServices reports whether a name is one that Services have inside a cluster, the API server's first of all, or stands for many: a
// Machine may be called so, and where one authority signs for kubelets and the API server its Node could play that.
func ofServices(name string) bool {
	name = plain(name)
	return name == "kubernetes" || name == "kubernetes.default" || strings.HasSuffix(name, ".svc") || strings.Contains(name, ".svc.") || strings.Contains(name, "*")
}

// ownKey checks that the asker has the key. It is of his own making: only one is checked that takes no time.
func ownKey(x *x509.CertificateRequest) error {
	if key, ok := x.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxKey {
		return fmt.Errorf("an RSA key of %d bits, at most %d are checked", key.N.BitLen(), maxKey)
	}
	return x.CheckSignature()
}

// fits says what is wrong for the signer that the request is made to.
func (r request) fits(node string, x *x509.CertificateRequest) error {
	names := len(x.DNSNames) + len(x.IPAddresses)
	usage := certificatesv1.UsageClientAuth
	if r.serving() {
		usage = certificatesv1.UsageServerAuth
	}
	switch {
	case !r.serving() && names > 0:
		return errors.New("spec.request: a client has no addresses")
	case r.serving() && names == 0:
		return errors.New("spec.request: a server without addresses")
	case r.serving() && (r.Spec.Username != userPrefix+node || !slices.Contains(r.Spec.Groups, group)):
		return fmt.Errorf("spec.username: %q asks for node %s", r.Spec.Username, node)
	case !only(r.Spec.Usages, usage):
		return fmt.Errorf("spec.usages: %q, wanted digital signature, %s, and at most key encipherment", r.Spec.Usages, usage)
	}
	return nil
}

// only reports whether the usages are those that go with one purpose, each once.
func only(usages []certificatesv1.KeyUsage, purpose certificatesv1.KeyUsage) bool {
	sorted := slices.Sorted(slices.Values(usages))
	with := []certificatesv1.KeyUsage{purpose, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment}
	slices.Sort(with)
	without := slices.DeleteFunc(slices.Clone(with), func(u certificatesv1.KeyUsage) bool { return u == certificatesv1.UsageKeyEncipherment })
	return slices.Equal(sorted, with) || slices.Equal(sorted, without)
}
