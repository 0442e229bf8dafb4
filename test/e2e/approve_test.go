// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/tools/clientcmd"

	approvenode "github.com/machine-functions/machine-functions/functions/approve-node"
	"github.com/machine-functions/machine-functions/shared/cluster/kube"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/local/controlplane"
)

// joining are the rights of kubelets that OpenShift's own manifests give, and a Machine whose cloud knows its name.
const joining = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kubelets-ask}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:node-bootstrapper}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"}
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:nodes"}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}
---
apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata: {name: worker-a, namespace: openshift-machine-api}
spec: {providerSpec: {value: {kind: Any}}}
`

// kubelet asks for certificates as real ones do: a key of its own, and a name from the key's hash.
type kubelet struct {
	kubectl
	key *ecdsa.PrivateKey
}

// ask makes a request as user and returns its name.
func (k kubelet) ask(t *testing.T, user, signer string, usage certificatesv1.KeyUsage, x x509.CertificateRequest) string {
	t.Helper()
	x.Subject = pkix.Name{CommonName: "system:node:worker-a", Organization: []string{"system:nodes"}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x, k.key)
	if err != nil {
		t.Fatal(err)
	}
	name := "node-csr-" + base64.RawURLEncoding.EncodeToString([]byte(rand.Text()[:12])) + "_A"
	request := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	groups := []string{"--as-group", "system:authenticated"}
	if strings.HasPrefix(user, "system:node:") {
		groups = append(groups, "--as-group", "system:nodes")
	}
	k.user = append([]string{"--as", user}, groups...)
	k.mustGiven(t, fmt.Sprintf(`
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: %s}
spec:
  signerName: %s
  usages: [digital signature, %s]
  request: %s
`, name, signer, usage, base64.StdEncoding.EncodeToString(request)), "create", "-f", "-")
	return name
}

// request returns a request as it is now.
func (k kubectl) request(t *testing.T, name string) certificatesv1.CertificateSigningRequest {
	t.Helper()
	var r certificatesv1.CertificateSigningRequest
	if err := json.Unmarshal([]byte(k.must(t, "get", "csr", name, "-o", "json")), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// issued waits for the certificate of an approved request.
func (k kubectl) issued(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	var r certificatesv1.CertificateSigningRequest
	k.eventually(t, "a certificate for "+name, func() bool {
		r = k.request(t, name)
		return len(r.Status.Certificate) > 0
	})
	if c := r.Status.Conditions[0]; c.Type != certificatesv1.CertificateApproved || c.Message != "node worker-a is machine openshift-machine-api/worker-a" {
		t.Errorf("condition %+v", c)
	}
	block, _ := pem.Decode(r.Status.Certificate)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// whoami asks the API server who the holder of a certificate is.
func (k kubelet) whoami(t *testing.T, cert *x509.Certificate) authenticationv1.UserInfo {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(k.key)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(k.plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.ClientCertificate, user.ClientKey = "", ""
		user.ClientCertificateData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
		user.ClientKeyData = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	var review authenticationv1.SelfSubjectReview
	if err := json.Unmarshal([]byte(k.must(t, "--kubeconfig", file, "auth", "whoami", "-o", "json")), &review); err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo
}

// approver returns the function with the rights of config/overlays/approve-node, and no others.
func approver(t *testing.T, k kubectl) func(kind, namespace, name string) {
	t.Helper()
	config, err := k.plane.UserKubeconfig(t.Context(), "system:serviceaccount:openshift-machine-api:approve-node", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	rest, err := clientcmd.RESTConfigFromKubeConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	api, err := kube.New(rest, kube.Options{FieldManager: approvenode.Function.Name})
	if err != nil {
		t.Fatal(err)
	}
	r := &runner.Runner{Function: approvenode.Function, Cluster: api, Clock: time.Now, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	return func(kind, namespace, name string) {
		t.Helper()
		if _, err := r.Handle(context.WithoutCancel(t.Context()), snapshot.Request{Kind: kind, Namespace: namespace, Name: name}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestApproveNode plays a kubelet that joins on a real API server with its signer: strangers and forgeries stay pending,
// the Node of a Machine gets both certificates, and the API server knows it by them (SPEC B80, B81).
func TestApproveNode(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	dir := t.TempDir()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Dir: dir, Progress: os.Stderr, Args: []string{
		"--kwok=false", "--controller-manager-arg=--controllers=certificatesigningrequest-signing-controller",
		"--controller-manager-arg=--cluster-signing-cert-file=" + filepath.Join(dir, "pki", "ca.crt"),
		"--controller-manager-arg=--cluster-signing-key-file=" + filepath.Join(dir, "pki", "ca.key"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	k := kubectl{plane: plane}
	for _, folder := range []string{"namespace.yaml", "crd"} {
		flag := map[bool]string{true: "-f", false: "-k"}[strings.HasSuffix(folder, ".yaml")]
		k.must(t, "apply", "--server-side", flag, filepath.Join("../../config", folder))
	}
	k.must(t, "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
	k.must(t, "apply", "-f", "../../config/overlays/approve-node/rbac.yaml")
	k.mustGiven(t, joining, "apply", "-f", "-")
	joins(t, k)
}

func joins(t *testing.T, k kubectl) {
	t.Helper()
	const (
		boot    = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
		client  = certificatesv1.KubeAPIServerClientKubeletSignerName
		serving = certificatesv1.KubeletServingSignerName
		me      = "system:node:worker-a"

		namespace = "openshift-machine-api"
	)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	let := kubelet{k, key}
	wake := approver(t, k)
	stranger := let.ask(t, "jane", client, certificatesv1.UsageClientAuth, x509.CertificateRequest{})
	first := let.ask(t, boot, client, certificatesv1.UsageClientAuth, x509.CertificateRequest{})
	wake("CertificateSigningRequest", "", first)
	if r := k.request(t, first); len(r.Status.Conditions) != 0 {
		t.Fatalf("approved without an address: %+v", r.Status)
	}
	k.must(t, "-n", namespace, "patch", "machine", "worker-a", "--subresource=status", "--type=merge", "-p",
		`{"status":{"addresses":[{"type":"InternalDNS","address":"worker-a"},{"type":"InternalIP","address":"10.0.0.5"}]}}`)
	wake("Machine", namespace, "worker-a")
	cert := k.issued(t, first)
	if got := let.whoami(t, cert); got.Username != me || !slices.Contains(got.Groups, "system:nodes") {
		t.Errorf("the API server takes the node for %+v", got)
	}

	k.mustGiven(t, "{apiVersion: v1, kind: Node, metadata: {name: worker-a}}", "create", "-f", "-")
	addresses := x509.CertificateRequest{DNSNames: []string{"worker-a"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 5)}}
	forged := addresses
	forged.DNSNames = []string{"worker-a", "kubernetes.default.svc"}
	second := let.ask(t, me, serving, certificatesv1.UsageServerAuth, addresses)
	forgery := let.ask(t, me, serving, certificatesv1.UsageServerAuth, forged)
	again := let.ask(t, boot, client, certificatesv1.UsageClientAuth, x509.CertificateRequest{})
	wake("CertificateSigningRequest", "", second)
	if r := k.request(t, second); len(r.Status.Conditions) != 0 {
		t.Fatalf("approved without a link: %+v", r.Status)
	}
	uid := k.must(t, "get", "node", "worker-a", "-o", "jsonpath={.metadata.uid}")
	k.must(t, "-n", namespace, "patch", "machine", "worker-a", "--subresource=status", "--type=merge", "-p",
		fmt.Sprintf(`{"status":{"nodeRef":{"kind":"Node","name":"worker-a","uid":%q},"lastUpdated":%q}}`, uid, time.Now().UTC().Format(time.RFC3339)))
	wake("Machine", namespace, "worker-a")
	if cert := k.issued(t, second); !slices.Equal(cert.DNSNames, addresses.DNSNames) || len(cert.IPAddresses) != 1 || !slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth) {
		t.Errorf("issued for %q %v", cert.DNSNames, cert.IPAddresses)
	}
	wake("", "", "") // the sweep
	for what, name := range map[string]string{"a stranger's": stranger, "a forged": forgery, "a second client's": again} {
		if r := k.request(t, name); len(r.Status.Conditions) != 0 || len(r.Status.Certificate) != 0 {
			t.Errorf("%s request was decided about: %+v", what, r.Status)
		}
	}
}
