// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/kube"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/local/controlplane"
)

// workers write side by side: what etcd takes in one batch.
const workers = 48

// loader fills an API server as an administrator.
type loader struct {
	api  *kube.Cluster
	pods []*corev1.Pod // that were created, for churn
}

func newLoader(kubeconfig string) (*loader, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	api, err := kube.New(config, kube.Options{FieldManager: "loader"})
	return &loader{api: api}, err
}

// define makes the custom resources and namespaces known.
func (l *loader) define(ctx context.Context, plane *controlplane.ControlPlane, folder string) error {
	files, err := filepath.Glob(folder + "/*openshift.io_*.yaml")
	if err != nil || len(files) == 0 {
		return fmt.Errorf("custom resource definitions in %s: %w", folder, errors.Join(err, os.ErrNotExist))
	}
	all := []string{"{apiVersion: v1, kind: Namespace, metadata: {name: system}}", "{apiVersion: v1, kind: Namespace, metadata: {name: " + machine.Namespace + "}}"}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		all = append(all, string(text))
	}
	if err := plane.Apply(ctx, strings.Join(all, "\n---\n")); err != nil {
		return err
	}
	_, err = plane.Kubectl(ctx, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	return err
}

// fill creates all objects of s, sets before their Machines, and gives them the status that they have in s.
func (l *loader) fill(ctx context.Context, s snapshot.Snapshot) error {
	var settings, nodes, rest []plan.Object
	for o := range s.Objects() {
		switch o := o.(type) {
		case *corev1.Pod:
			rest = append(rest, dressed(o))
		case *corev1.Node:
			nodes = append(nodes, dressedNode(o))
		case *machine.Machine:
			rest = append(rest, o)
		case *appsv1.DaemonSet: // its controller would make Pods of its own
		default:
			settings = append(settings, o)
		}
	}
	if err := l.create(ctx, settings); err != nil {
		return err
	}
	if err := l.create(ctx, nodes); err != nil {
		return err
	}
	there, err := l.api.Observe(ctx, snapshot.Snapshot{}, []snapshot.Query{snapshot.All("MachineSet"), snapshot.All("Node")})
	if err != nil {
		return err
	}
	uids := map[string]types.UID{} // the server's to choose
	for o := range there.Objects() {
		uids[plan.NameOf(o)] = o.GetUID()
	}
	for _, o := range rest {
		if m, ok := o.(*machine.Machine); ok {
			owner, node := &m.OwnerReferences[0], m.Status.NodeRef
			owner.APIVersion, owner.UID = "machine.openshift.io/v1beta1", uids[plan.Name("MachineSet", machine.Namespace, owner.Name)]
			node.UID = uids[plan.Name("Node", "", node.Name)]
		}
	}
	return l.create(ctx, rest)
}

// create creates objects side by side.
func (l *loader) create(ctx context.Context, all []plan.Object) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	began := time.Now()
	for i, o := range all {
		if i%5_000 == 0 && i > 0 { // whoever waits wants to know for how long
			left := time.Since(began) / time.Duration(i) * time.Duration(len(all)-i)
			fmt.Fprintf(os.Stderr, "%d of %d objects, %.0f a second, %s to go\n", i, len(all), float64(i)/time.Since(began).Seconds(), left.Round(time.Second))
		}
		g.Go(func() error {
			if err := l.one(ctx, o); err != nil {
				return fmt.Errorf("%s: %w", plan.NameOf(o), err)
			}
			return nil
		})
		if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName != "" && len(l.pods) < 20_000 {
			l.pods = append(l.pods, p)
		}
	}
	return g.Wait()
}

// one creates an object; where its status matters, it is written afterwards, as the server wants it.
func (l *loader) one(ctx context.Context, o plan.Object) error {
	o.SetUID("") // which is the server's to choose, as is the version
	o.SetResourceVersion("")
	if err := retried(ctx, func() error { return l.api.Apply(ctx, plan.Create{Object: o}) }); err != nil && !errors.Is(err, cluster.ErrExists) {
		return err
	}
	switch o := o.(type) {
	case *corev1.Pod:
		if o.Spec.NodeName != "" {
			return nil
		}
	case *machine.Machine, *autoscaling.MachineAutoscaler:
	default:
		return nil
	}
	return retried(ctx, func() error {
		s, err := l.api.Observe(ctx, snapshot.Snapshot{}, []snapshot.Query{snapshot.One(plan.KindOf(o), o.GetNamespace(), o.GetName())})
		if err != nil {
			return err
		}
		for found := range s.Objects() {
			next, _ := found.DeepCopyObject().(plan.Object)
			withStatus(next, o)
			return l.api.Apply(ctx, plan.UpdateStatus{Old: found, New: next})
		}
		return cluster.ErrGone
	})
}

func withStatus(into, from plan.Object) {
	switch from := from.(type) {
	case *corev1.Pod:
		into.(*corev1.Pod).Status.Conditions = from.Status.Conditions //nolint:forcetypeassert // of the same kind
	case *machine.Machine:
		into.(*machine.Machine).Status = from.Status //nolint:forcetypeassert // of the same kind
	case *autoscaling.MachineAutoscaler:
		status := from.Status
		for i := range status.Conditions {
			status.Conditions[i].LastTransitionTime = metav1.Now()
			status.Conditions[i].ObservedGeneration = into.GetGeneration() // bounds that are not settled are all that a scan sees to
		}
		into.(*autoscaling.MachineAutoscaler).Status = status //nolint:forcetypeassert // of the same kind
	}
}

// retried repeats what a busy server had no time for.
func retried(ctx context.Context, f func() error) (err error) {
	for range 20 {
		err = f()
		if _, refused := errors.AsType[*cluster.RefusedError](err); err == nil || refused || errors.Is(err, cluster.ErrExists) || ctx.Err() != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond)
	}
	return err
}

// churn changes so many Pods each second, one after the other.
func (l *loader) churn(ctx context.Context, each int) {
	for i := 0; ctx.Err() == nil && each > 0 && len(l.pods) > 0; i++ {
		p := l.pods[i%len(l.pods)]
		s, err := l.api.Observe(ctx, snapshot.Snapshot{}, []snapshot.Query{snapshot.One("Pod", p.Namespace, p.Name)})
		if err == nil && len(s.Pods) == 1 {
			next := s.Pods[0].DeepCopy()
			metav1.SetMetaDataAnnotation(&next.ObjectMeta, "example.com/changed", fmt.Sprint(i))
			_ = l.api.Apply(ctx, plan.Update{Old: s.Pods[0], New: next}) // one that fails changes nothing, which is no harm
		}
		time.Sleep(time.Second / time.Duration(each))
	}
}

// dressed returns a Pod as large as Pods are.
func dressed(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.UID, p.Spec.SchedulerName = "", "none" // whoever waits goes on waiting
	p.Annotations = map[string]string{"k8s.v1.cni.cncf.io/network-status": strings.Repeat("x", 400)}
	c := &p.Spec.Containers[0]
	c.Image = "registry.example.com/team/application@sha256:" + strings.Repeat("0", 64)
	for i := range 12 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: "the value of a setting"})
	}
	for _, v := range []string{"config", "tls", "token"} {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: v, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: v}}})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v, MountPath: "/etc/" + v})
	}
	for i := range p.OwnerReferences {
		if p.OwnerReferences[i].APIVersion == "" {
			p.OwnerReferences[i].APIVersion = "apps/v1"
		}
	}
	return p
}

// dressedNode returns a Node as large as Nodes are.
func dressedNode(n *corev1.Node) *corev1.Node {
	n = n.DeepCopy()
	n.UID = ""
	for i := range 40 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/team/image-%d@sha256:%s", i, strings.Repeat("0", 64))}, SizeBytes: 1e8})
	}
	n.Annotations = map[string]string{"example.com/network": strings.Repeat("x", 1000)}
	return n
}

// alive returns the objects of a cluster as kubelets leave them behind, with UIDs.
func alive(s snapshot.Snapshot) (full snapshot.Snapshot) {
	n := 0
	for o := range s.Objects() {
		uid := o.GetUID()
		switch x := o.(type) {
		case *corev1.Pod:
			o = dressed(x)
			running(o.(*corev1.Pod)) //nolint:forcetypeassert // it is what dressed returned
		case *corev1.Node:
			o = dressedNode(x)
		}
		n++
		o.SetUID(types.UID(cmp.Or(string(uid), fmt.Sprintf("%08x-0000-4000-8000-000000000000", n))))
		full.Add(o)
	}
	return full
}

// running gives a Pod that has a Node the status that its kubelet reports.
func running(p *corev1.Pod) {
	if p.Spec.NodeName == "" {
		return
	}
	p.Status.HostIP, p.Status.PodIP, p.Status.StartTime = "10.0.0.1", "10.128.0.1", new(metav1.Now())
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Ready: true, Image: c.Image, ImageID: c.Image, ContainerID: "cri-o://" + strings.Repeat("0", 64),
			State:              corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
			AllocatedResources: c.Resources.Requests, Resources: &corev1.ResourceRequirements{Requests: c.Resources.Requests},
		})
	}
}
