// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machine-functions/machine-functions/shared/cluster/clustertest"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/local/controlplane"
)

// TestRealServer runs against a Kubernetes API server with its own controllers, but without kubelets and without the
// admission plug-ins that add to what is written. Its first run on a machine compiles Kubernetes.
func TestRealServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Dir: t.TempDir(), Fresh: true, Args: []string{
		"--kwok=false", "--apiserver-arg=--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := plane.InstallAPI(t.Context(), "../../../config/crd"); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server := &realServer{config: config}
	t.Run("an update keeps fields that the Go types do not know", func(t *testing.T) { //nolint:paralleltest // it changes a definition
		extend(t, plane)
		server.keepsUnknownFields(t)
	})
	t.Run("conformance", func(t *testing.T) {
		t.Parallel()
		clustertest.Run(t, server.harness)
	})
	t.Run("conformance of lists that are kept", func(t *testing.T) {
		t.Parallel()
		clustertest.Run(t, func(t *testing.T) clustertest.Harness {
			t.Helper()
			h := server.harness(t)
			h.Cluster = keeping(t, server.config, Options{FieldManager: "one", Namespaces: []string{h.Namespace}, Watched: []plan.Kind{"Pod", "Node"}})
			return h
		})
	})
	t.Run("same as memory", func(t *testing.T) {
		t.Parallel()
		for seed := range uint64(120) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				inMemory := memory.New(time.Now)
				clustertest.Same(t, seed, clustertest.Harness{
					Cluster: inMemory.As("one", "here"), Other: inMemory.As("other", "here"), Namespace: "here",
				}, server.harness(t))
			})
		}
	})
}

// extend lets Machines have a field that a later version of the API may bring.
func extend(t *testing.T, plane *controlplane.ControlPlane) {
	t.Helper()
	patch := `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/later","value":{"type":"string"}}]`
	if _, err := plane.Kubectl(t.Context(), "patch", "crd", "machines.machine.openshift.io", "--type=json", "--patch", patch); err != nil {
		t.Fatal(err)
	}
}

// keepsUnknownFields holds for patches alone; memory knows no such fields.
func (s *realServer) keepsUnknownFields(t *testing.T) {
	t.Helper()
	h, admin := s.harness(t), s.as(t, "admin")
	at := address{group: plan.Resources()[0].Group, plural: "machines", namespace: h.Namespace}
	for attempt := range 300 { // until the server knows the field
		name := fmt.Sprintf("a-%d", attempt)
		body := fmt.Sprintf(`{"apiVersion":"machine.openshift.io/v1beta1","kind":"Machine","metadata":{"name":%q},"spec":{"later":"x"}}`, name)
		if err := admin.write(t.Context(), http.MethodPost, at, typeJSON, []byte(body)); err != nil {
			t.Fatal(err)
		}
		before, err := h.Cluster.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{snapshot.One("Machine", h.Namespace, name)})
		if err != nil {
			t.Fatal(err)
		}
		changed := before.Machines[0].DeepCopy()
		changed.Labels = map[string]string{"a": "b"}
		if err := h.Cluster.Apply(t.Context(), plan.Update{Old: before.Machines[0], New: changed}); err != nil {
			t.Fatal(err)
		}
		at := at
		at.name = name
		after, err := admin.read(t.Context(), at, nil)
		if err != nil || !strings.Contains(string(after.body), `"manager":"one"`) {
			t.Fatalf("%s, error %v", after.body, err)
		}
		if strings.Contains(string(after.body), `"later":"x"`) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("the field is lost")
}

// realServer makes harnesses that share one API server.
type realServer struct {
	config *rest.Config
	used   atomic.Int64
}

func (s *realServer) as(t *testing.T, name string, namespaces ...string) *Cluster {
	t.Helper()
	c, err := New(s.config, Options{FieldManager: name, Namespaces: namespaces})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// keeping returns a Cluster that keeps lists of any length, a few objects in a page.
func keeping(t *testing.T, config *rest.Config, o Options) *Cluster {
	t.Helper()
	c, err := New(config, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range c.views {
		v.page, v.fewest = 3, 0
	}
	return c
}

func (s *realServer) harness(t *testing.T) clustertest.Harness {
	t.Helper()
	here := fmt.Sprintf("test-%d", s.used.Add(1))
	elsewhere := here + "-elsewhere"
	admin := s.as(t, "admin")
	for _, namespace := range []string{here, elsewhere} {
		admin.post(t, "namespaces", "", &corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: namespace},
		})
	}
	return clustertest.Harness{
		Cluster: s.as(t, "one", here), Other: s.as(t, "other", here), Namespace: here, Elsewhere: elsewhere, Clock: time.Now,
		PutSecret: func(t *testing.T, secret *corev1.Secret) {
			t.Helper()
			secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
			admin.post(t, "secrets", secret.Namespace, secret)
		},
		Events: admin.events,
	}
}

func (c *Cluster) post(t *testing.T, plural, namespace string, body any) {
	t.Helper()
	at := address{group: corev1.SchemeGroupVersion, plural: plural, namespace: namespace}
	if err := c.write(context.WithoutCancel(t.Context()), http.MethodPost, at, typeJSON, body); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) events(t *testing.T, namespace string) []corev1.Event {
	t.Helper()
	a, err := c.call(t.Context(), http.MethodGet, "/api/v1/namespaces/"+namespace+"/events", nil, "", nil, typeJSON)
	if err != nil {
		t.Fatal(err)
	}
	var list corev1.EventList
	if err := a.object(corev1.SchemeGroupVersion.WithKind("EventList"), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
