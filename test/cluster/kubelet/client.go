// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// notStopped leaves out the Nodes whose kubelet is stopped. The API server reports a Node that gains the label as
// deleted, so kwok lets its lease go and forgets its pods; one that loses the label is reported as added.
const notStopped = "machine-functions.dev/kubelet!=stopped"

// client is what kwok reaches the API server through. It cuts off kubelets that are stopped or whose Node is gone: kwok
// alone would still play what it had scheduled for their pods.
type client struct {
	kubernetes.Interface
	running func(node string) bool
}

func (c *client) CoreV1() typedcorev1.CoreV1Interface {
	return core{c.Interface.CoreV1(), c.running}
}

type core struct {
	typedcorev1.CoreV1Interface
	running func(node string) bool
}

func (c core) Nodes() typedcorev1.NodeInterface { return nodes{c.CoreV1Interface.Nodes()} }

func (c core) Pods(namespace string) typedcorev1.PodInterface {
	return pods{c.CoreV1Interface.Pods(namespace), c.running}
}

type nodes struct{ typedcorev1.NodeInterface }

func (n nodes) List(ctx context.Context, o metav1.ListOptions) (*corev1.NodeList, error) {
	o.LabelSelector = notStopped
	return n.NodeInterface.List(ctx, o)
}

func (n nodes) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.LabelSelector = notStopped
	return n.NodeInterface.Watch(ctx, o)
}

type pods struct {
	typedcorev1.PodInterface
	running func(node string) bool
}

func (p pods) Patch(ctx context.Context, name string, t types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	if err := p.reach(ctx, name); err != nil {
		return nil, err
	}
	return p.PodInterface.Patch(ctx, name, t, data, o, subresources...)
}

func (p pods) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	err := p.reach(ctx, name)
	if err == nil {
		err = p.PodInterface.Delete(ctx, name, o)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (p pods) reach(ctx context.Context, name string) error {
	pod, err := p.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !p.running(pod.Spec.NodeName) {
		return fmt.Errorf("kubelet of node %s is stopped", pod.Spec.NodeName)
	}
	return nil
}
