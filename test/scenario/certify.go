// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// certify lets kubelets ask for certificates, some of Machines whose names are known to their clouds.
func (d dice) certify(s *snapshot.Snapshot) {
	for _, m := range s.Machines {
		if d.often() {
			m.Status.Addresses = append(m.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: m.Name})
		}
	}
	for range d.IntN(4) {
		s.Add(d.signingRequest())
	}
	if d.rarely() {
		cm := &corev1.ConfigMap{ObjectMeta: d.meta(machine.Namespace, "approve-node")}
		cm.Data = map[string]string{"bootstrap-users": pick(d, "", "jane, joe", ",")}
		s.Add(cm)
	}
}

// signingRequest is what a kubelet asks for, but for what is wrong with it.
func (d dice) signingRequest() *certificatesv1.CertificateSigningRequest {
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: d.meta("", "csr-"+d.letter())}
	name := d.name()
	asked := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}}
	r.Spec.SignerName, r.Spec.Username, r.Spec.Groups = certificatesv1.KubeAPIServerClientKubeletSignerName, "system:bootstrap:abcdef", []string{"system:bootstrappers"}
	r.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	if d.IntN(2) == 0 {
		r.Spec.SignerName, r.Spec.Username, r.Spec.Groups = certificatesv1.KubeletServingSignerName, asked.Subject.CommonName, asked.Subject.Organization
		r.Spec.Usages[1] = certificatesv1.UsageServerAuth
		asked.DNSNames = []string{name}
	}
	switch d.IntN(14) {
	case 0:
		asked.Subject.Organization = []string{"system:nodes", "system:masters"}
	case 1:
		asked.IPAddresses = []net.IP{net.IPv4(10, 0, 0, byte(d.IntN(3)))}
	case 2:
		asked.DNSNames = append(asked.DNSNames, d.name())
	case 3:
		r.Spec.SignerName = "example.com/other"
	case 4:
		r.Spec.Username, r.Spec.Groups = pick(d, "jane", "system:node:"+d.name()), nil
	case 5:
		r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageCertSign)
	case 6:
		r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: pick(d, certificatesv1.CertificateApproved, certificatesv1.CertificateDenied), Status: corev1.ConditionTrue,
		}}
	}
	der, err := x509.CreateCertificateRequest(nil, asked, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))) // without chance
	r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	if err != nil || d.IntN(14) == 0 {
		r.Spec.Request = []byte("broken")
	}
	return r
}
