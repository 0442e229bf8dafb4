// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/machine-functions/machine-functions/shared/cluster/kube"
	"github.com/machine-functions/machine-functions/shared/events"
	mapi "github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/test/local/held"
)

// A function with the settings of overlays/oidc takes events that carry a token which the API server issued to the account of one of its
// Triggers, as Eventing names it, for this function. Any other token is refused, whoever issued it (RELIABILITY §4).
func TestSendersOnARealServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	k := startCluster(t)
	k.must(t, "apply", "-f", "../../config/namespace.yaml")
	k.must(t, "apply", "-k", "../../config/crd")
	k.must(t, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	k.must(t, "apply", "-k", "../../config/rbac")
	const trigger, own, account = "link-node-oidc-eventing.knative.dev-trigger", "machine-functions/link-node", "serviceaccount"
	k.must(t, "create", account, trigger, "-n", mapi.Namespace)
	k.must(t, "create", account, "remediate-oidc-eventing.knative.dev-trigger", "-n", mapi.Namespace)
	k.must(t, "create", account, trigger, "-n", "default")
	token := func(of, namespace string, options ...string) string {
		return strings.TrimSpace(k.must(t, append([]string{"create", "token", of, "-n", namespace}, options...)...))
	}
	config := k.identity(t, token("link-node", mapi.Namespace))
	overlay, err := os.ReadFile("../../overlays/oidc/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	subjects := regexp.MustCompile(`OIDC_SUBJECTS, value: "(\S+:link-node\*\S*)"`).FindSubmatch(overlay)
	if subjects == nil {
		t.Fatal("overlays/oidc does not say who may send to link-node")
	}
	address := serve(t, "FUNCTION=link-node", "KUBECONFIG="+config, "OIDC_AUDIENCE="+own, "OIDC_SUBJECTS="+string(subjects[1]))

	good := token(trigger, mapi.Namespace, "--audience="+own)
	for _, tt := range []struct {
		name, token string
		want        int
	}{
		{"a Trigger's", good, http.StatusAccepted},
		{"a Trigger's, for several", token(trigger, mapi.Namespace, "--audience=machine-functions/remediate", "--audience="+own), http.StatusAccepted},
		{"none", "", http.StatusUnauthorized},
		{"for another function", token(trigger, mapi.Namespace, "--audience=machine-functions/remediate"), http.StatusUnauthorized},
		{"for the API server", token(trigger, mapi.Namespace), http.StatusUnauthorized},
		{"of another function's Trigger", token("remediate-oidc-eventing.knative.dev-trigger", mapi.Namespace, "--audience="+own), http.StatusUnauthorized},
		{"of a Pod's account", token("link-node", mapi.Namespace, "--audience="+own), http.StatusUnauthorized},
		{"of an account of that name elsewhere", token(trigger, "default", "--audience="+own), http.StatusUnauthorized},
		{"forged", forged(t, good), http.StatusUnauthorized},
		{"a Trigger's, after all those", good, http.StatusAccepted},
	} {
		if got := deliver(t, address, tt.token); got != tt.want {
			t.Errorf("a token %s: %d, want %d", tt.name, got, tt.want)
		}
	}

	// Tokens of the API server last ten minutes or more, so it is the clock that goes on.
	api, err := clientcmd.BuildConfigFromFlags("", config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := kube.New(api, kube.Options{FieldManager: "link-node"})
	if err != nil {
		t.Fatal(err)
	}
	for ahead, want := range map[time.Duration]string{0: "", 24 * time.Hour: "expired", -24 * time.Hour: "not valid yet"} {
		v := &events.Verifier{Audience: own, Subjects: []string{string(subjects[1])}, Issuer: c.Issuer, Clock: func() time.Time { return time.Now().Add(ahead) }}
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Authorization", "Bearer "+good)
		if err := v.Verify(r); (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v from now: %v, want %q", ahead, err, want)
		}
	}
}

// identity returns the path of a kubeconfig for who has the token.
func (k kubectl) identity(t *testing.T, token string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(k.plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve runs a function as a process of its own, as long as the test lasts, and returns where it listens.
func serve(t *testing.T, env ...string) (address string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "function")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./test/local/function")
	build.Dir = repository(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	addresses, sockets, err := held.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sockets[0].Close() })
	address = addresses[0]
	process := exec.CommandContext(t.Context(), program)
	process.Env = append(append(os.Environ(), "LISTEN_ADDRESS="+address), env...)
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Wait() }) // it ends with the test's context
	await(t, "the function is ready", func() string {
		answer, err := http.Get("http://" + address + "/health/readiness")
		if err != nil {
			return err.Error()
		}
		if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK {
			return answer.Status
		}
		return ""
	})
	return address
}

// deliver posts an event about a Node to a function, with a token unless that is empty, and returns the answer's status.
func deliver(t *testing.T, address, token string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Specversion": "1.0", "Id": "1", "Source": "/test", "Type": events.TypeRefPrefix + "update", "Apiversion": "v1", "Kind": "Node", "Name": "gone"} {
		r.Header.Set("Ce-"+name, value)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close() // nobody reads it
	return answer.StatusCode
}

// forged is a token that says the same, under the same key's name, signed by somebody else.
func forged(t *testing.T, token string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := token[:strings.LastIndex(token, ".")]
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}
