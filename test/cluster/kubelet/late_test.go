// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A kubelet holds its lease before news of it comes back. What becomes of its Node until then is not reported to kwok's stages,
// and nothing happens on a Node that has registered: it would never be ready.
func TestANodeIsReadyThoughNewsOfItsLeaseIsLate(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	client.PrependWatchReactor("leases", func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, watch.NewFake(), nil // says nothing
	})
	go func() {
		if err := run(t.Context(), client); err != nil {
			t.Error(err)
		}
	}()
	created := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "late", Annotations: map[string]string{Annotation: AnnotationValue}}}
	nodes := client.CoreV1().Nodes()
	if _, err := nodes.Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		n, err := nodes.Get(t.Context(), "late", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the Node is not Ready")
}
