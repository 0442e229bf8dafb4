// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider/kubemark"
)

// How a Node is steered; test/cluster/README.md has the other end.
const (
	annotationFake     = "kwok.x-k8s.io/node" // "fake": its kubelet is simulated
	annotationReady    = "machine-functions.dev/ready-after-seconds"
	labelKubelet       = "machine-functions.dev/kubelet" // stopped, unready; absent: all is well
	annotationInstance = "kubemark.machine-functions.dev/instance"
	labelWorker        = "node-role.kubernetes.io/worker"
	gpu                = "nvidia.com/gpu"
)

// newNode returns the Node that the instance's kubelet registers.
func newNode(r kubemark.Record, k kubemark.Kubelet) *corev1.Node {
	it := r.Spec.InstanceType()
	labels := map[string]string{
		corev1.LabelHostname: r.Name, corev1.LabelArchStable: it.Arch, corev1.LabelOSStable: "linux", labelWorker: "",
		corev1.LabelInstanceTypeStable: it.Name, corev1.LabelTopologyRegion: r.Spec.Region, corev1.LabelTopologyZone: r.Spec.Zone,
	}
	maps.Copy(labels, r.Spec.Labels)
	if word := kubeletLabel(k); word != nil {
		labels[labelKubelet] = *word
	}
	annotations := map[string]string{annotationFake: "fake", annotationInstance: r.ID}
	if r.Spec.ReadySeconds != nil {
		annotations[annotationReady] = strconv.FormatInt(*r.Spec.ReadySeconds, 10)
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(it.MilliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(it.Memory, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(r.Spec.MaxPods, resource.DecimalSI),
	}
	if it.Disk > 0 {
		capacity[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(it.Disk, resource.BinarySI)
	}
	if it.GPU > 0 {
		capacity[gpu] = *resource.NewQuantity(it.GPU, resource.DecimalSI)
	}
	return &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: r.Name, Labels: labels, Annotations: annotations},
		Spec:       corev1.NodeSpec{ProviderID: r.ProviderID()},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity, Addresses: r.Addresses(),
			NodeInfo: corev1.NodeSystemInfo{Architecture: it.Arch, OperatingSystem: "linux", OSImage: r.Spec.Image},
		},
	}
}

// kubeletLabel returns the word that makes a kubelet so; nil for none.
func kubeletLabel(k kubemark.Kubelet) *string {
	if k == kubemark.KubeletStopped || k == kubemark.KubeletUnready {
		return new(string(k))
	}
	return nil
}

// nodes are those of the API server.
type nodes struct{ client rest.Interface }

func newNodes(config *rest.Config) (nodes, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nodes{}, fmt.Errorf("know Nodes: %w", err)
	}
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath, c.QPS = &corev1.SchemeGroupVersion, "/api", -1 // the API server's own fairness will do
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nodes{}, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return nodes{client}, nil
}

func (n nodes) get(ctx context.Context, name string) (*corev1.Node, bool, error) {
	var out corev1.Node
	err := n.client.Get().Resource("nodes").Name(name).Do(ctx).Into(&out)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	return &out, true, err
}

// create registers a Node. One that appeared meanwhile is left for the next round.
func (n nodes) create(ctx context.Context, node *corev1.Node) error {
	return n.client.Post().Resource("nodes").Body(node).Do(ctx).Error()
}

// label makes a Node's kubelet stopped, unready or well.
func (n nodes) label(ctx context.Context, node *corev1.Node, k kubemark.Kubelet) error {
	return n.patch(ctx, node, "", map[string]any{"metadata": map[string]any{
		"uid": node.UID, "labels": map[string]*string{labelKubelet: kubeletLabel(k)},
	}})
}

// takeOver writes what a kubelet says of itself over what a Node says.
func (n nodes) takeOver(ctx context.Context, node, by *corev1.Node) error {
	labels := map[string]*string{labelKubelet: nil}
	for k, v := range by.Labels {
		labels[k] = &v
	}
	err := n.patch(ctx, node, "", map[string]any{"metadata": map[string]any{
		"uid": node.UID, "labels": labels, "annotations": by.Annotations,
	}})
	if err != nil {
		return err
	}
	return n.patch(ctx, node, "status", map[string]any{"metadata": map[string]any{"uid": node.UID}, "status": map[string]any{
		"capacity": by.Status.Capacity, "allocatable": by.Status.Allocatable, "addresses": by.Status.Addresses,
	}})
}

// patch changes the Node, if it is still the same. One that is gone needs no change.
func (n nodes) patch(ctx context.Context, node *corev1.Node, subresource string, change any) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	req := n.client.Patch(types.MergePatchType).Resource("nodes").Name(node.Name).Body(body)
	if subresource != "" {
		req = req.SubResource(subresource)
	}
	if err := req.Do(ctx).Error(); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}
