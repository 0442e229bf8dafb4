// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/machine-functions/machine-functions/test/cluster/kubelet"
)

const (
	probeName  = "readiness-probe"
	probeLabel = "machine-functions.dev/readiness-probe"
)

// awaitPod proves with a pod that all components work together: it cannot be created before the controller manager has
// made its service account, needs the scheduler to be placed and a simulated kubelet to run. Nothing of it stays.
func (p *plane) awaitPod(ctx context.Context, client kubernetes.Interface, kubelets bool) error {
	nodes, pods := client.CoreV1().Nodes(), client.CoreV1().Pods(metav1.NamespaceSystem)
	what := "kube-scheduler"
	if kubelets {
		what = "kwok"
		if err := p.await(ctx, "kube-apiserver", func(ctx context.Context) error {
			_, err := nodes.Create(ctx, probeNode(), metav1.CreateOptions{})
			return ignoreExisting(err)
		}); err != nil {
			return err
		}
	}
	if err := p.await(ctx, "kube-controller-manager", func(ctx context.Context) error {
		_, err := pods.Create(ctx, probePod(), metav1.CreateOptions{})
		return ignoreExisting(err)
	}); err != nil {
		return err
	}
	if err := p.await(ctx, what, func(ctx context.Context) error {
		pod, err := pods.Get(ctx, probeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return passed(pod, kubelets)
	}); err != nil {
		return err
	}
	now := *metav1.NewDeleteOptions(0)
	err := pods.Delete(ctx, probeName, now)
	if kubelets {
		err = errors.Join(err, nodes.Delete(ctx, probeName, now))
	}
	if err != nil {
		return fmt.Errorf("remove readiness probe: %w", err)
	}
	return nil
}

// passed asks for a running pod; where nothing runs pods, for the scheduler's verdict.
func passed(pod *corev1.Pod, kubelets bool) error {
	if pod.Status.Phase == corev1.PodRunning || !kubelets && len(pod.Status.Conditions) > 0 {
		return nil
	}
	why := ""
	for _, c := range pod.Status.Conditions {
		why += fmt.Sprintf(", %s is %s: %s", c.Type, c.Status, c.Message)
	}
	return fmt.Errorf("readiness probe is %s on node %q%s", pod.Status.Phase, pod.Spec.NodeName, why)
}

func probeNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        probeName,
			Labels:      map[string]string{probeLabel: ""},
			Annotations: map[string]string{kubelet.Annotation: kubelet.AnnotationValue, "machine-functions.dev/ready-after-seconds": "0"},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: probeLabel, Effect: corev1.TaintEffectNoSchedule}}},
	}
}

func probePod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: probeName},
		Spec: corev1.PodSpec{
			Containers:   []corev1.Container{{Name: "probe", Image: "none"}},
			NodeSelector: map[string]string{probeLabel: ""},
			Tolerations:  []corev1.Toleration{{Key: probeLabel, Operator: corev1.TolerationOpExists}},
		},
	}
}

func ignoreExisting(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
