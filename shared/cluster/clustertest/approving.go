// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/plan"
)

var approving = []test{
	{"an approval is a condition with its reason and its time", approve},
	{"approving what is approved changes nothing", approveTwice},
	{"an approval of what changed is ErrConflict", approveChanged},
	{"an approval of what is gone is ErrGone", approveGone},
	{"what is told about a request finds its event again", tellOfRequest},
}

// signingRequest returns a request for a kubelet's certificate, under a name that no other test uses.
func (h Harness) signingRequest(t *testing.T, name string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	subject := pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: h.Namespace + "-node-csr-Wm0_" + name + "_"}, // as kubelets make them
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
}

func approve(t *testing.T, h Harness) {
	r := create(t, h, h.signingRequest(t, "a"))
	h.apply(t, plan.Approve{Request: r, Why: "its machine waits"})
	now := find(t, h, r)
	if len(now.Status.Conditions) != 1 || len(r.Status.Conditions) != 0 {
		t.Fatalf("conditions %+v, of what was seen %+v", now.Status.Conditions, r.Status.Conditions)
	}
	c := now.Status.Conditions[0]
	if c.Type != certificatesv1.CertificateApproved || c.Status != corev1.ConditionTrue || c.Message != "its machine waits" {
		t.Errorf("condition %+v", c)
	}
	if age := h.Clock().Sub(c.LastUpdateTime.Time).Seconds(); age < -2 || age > 60 || !c.LastTransitionTime.Equal(&c.LastUpdateTime) {
		t.Errorf("condition %+v is %.0f s old", c, age)
	}
	if now.ResourceVersion == r.ResourceVersion || string(now.Spec.Request) != string(r.Spec.Request) {
		t.Errorf("became %+v", now)
	}
}

func approveTwice(t *testing.T, h Harness) {
	r := create(t, h, h.signingRequest(t, "a"))
	h.apply(t, plan.Approve{Request: r, Why: "once"})
	once := find(t, h, r)
	h.apply(t, plan.Approve{Request: once, Why: "twice"})
	if twice := find(t, h, r); twice.ResourceVersion != once.ResourceVersion {
		t.Errorf("became %+v", twice.Status)
	}
}

func approveChanged(t *testing.T, h Harness) {
	r := create(t, h, h.signingRequest(t, "a"))
	update(t, h, r, func(r *certificatesv1.CertificateSigningRequest) { r.Labels = map[string]string{app: "web"} })
	if err := h.Cluster.Apply(t.Context(), plan.Approve{Request: r}); !errors.Is(err, cluster.ErrConflict) {
		t.Errorf("error %v", err)
	}
	if now := find(t, h, r); len(now.Status.Conditions) != 0 {
		t.Errorf("conditions %+v", now.Status.Conditions)
	}
}

func approveGone(t *testing.T, h Harness) {
	r := create(t, h, h.signingRequest(t, "a"))
	h.apply(t, plan.Delete{Object: r})
	if err := h.Cluster.Apply(t.Context(), plan.Approve{Request: r}); !errors.Is(err, cluster.ErrGone) {
		t.Errorf("error %v", err)
	}
}

// The names of requests know capitals and underscores, those of Events do not.
func tellOfRequest(t *testing.T, h Harness) {
	r := create(t, h, h.signingRequest(t, "a"))
	for range 2 {
		if err := h.Cluster.Tell(t.Context(), plan.Warning(r, "NodeNotApproved", "no machine of "+h.Namespace)); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range h.Events(t, metav1.NamespaceDefault) {
		if e.InvolvedObject.Name == r.Name && e.InvolvedObject.UID == r.UID && e.Count == 2 {
			return
		}
	}
	t.Errorf("events %v", h.Events(t, metav1.NamespaceDefault))
}
