// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// mostUnderWay is how many answers of the filter the dispatcher may wait for before it takes another event. It answers before it
// delivers (async-handler), so nothing holds up those who send faster than everybody can be asked. A pod would end at its memory limit;
// here the kernel ends it: of a listener it lets 4,096 connections wait to be accepted (net.core.somaxconn), and drops what is more, whose
// sender tries again after 1, 3, 7, 15 and 31 s. Half of that never fills it, even if no connection can be used again. A refusal loses
// what is too much, and nothing else.
const mostUnderWay = 2000

// starter brings Knative Eventing up, step by step.
type starter struct {
	cluster    *cluster
	supervisor *supervisor
	options    options
	programs   string
	names      string // the addresses of every Service, as JSON
	ends       endpoints
}

// all returns once events flow; what it started runs until alive ends.
func (s *starter) all(ctx, alive context.Context, manifests []*unstructured.Unstructured) error {
	watched, err := s.check(ctx, manifests)
	if err != nil {
		return err
	}
	if err := s.install(ctx); err != nil {
		return fmt.Errorf("install Knative Eventing: %w", err)
	}
	slog.Info("knative eventing is installed")
	if err := s.addFunctions(ctx); err != nil {
		return fmt.Errorf("add functions: %w", err)
	}
	s.startProcesses(alive)
	if err := s.cluster.applyAll(ctx, manifests); err != nil {
		return err
	}
	slog.Info("manifests are applied", "objects", len(manifests))
	if err := s.cluster.waitFor(ctx, knative(manifests), "Ready"); err != nil {
		return err
	}
	slog.Info("manifests are ready")
	return errors.Join(
		waitServing(ctx, s.ends.dispatcher),
		waitServing(ctx, s.ends.ingress),
		waitServing(ctx, s.ends.filter),
		s.cluster.waitWatches(ctx, watched),
	)
}

// check finds what would keep the manifests from getting ready, once the kinds they watch are served, and returns the resources that their sources will watch.
func (s *starter) check(ctx context.Context, manifests []*unstructured.Unstructured) ([]schema.GroupResource, error) {
	for _, o := range knative(manifests) {
		for _, name := range functionsIn(o.Object) {
			if s.options.services[name] == nil {
				return nil, fmt.Errorf("%s needs the function %s: say where it listens with -service", describe(o), name)
			}
		}
	}
	return s.cluster.watched(ctx, manifests)
}

// install applies Knative's own manifests and those that stand in for the missing kubelet.
func (s *starter) install(ctx context.Context) error {
	theirs, err := readAll(os.DirFS(filepath.Join(s.programs, "config")))
	if err != nil {
		return err
	}
	sub, err := fs.Sub(installFS, "install")
	if err != nil {
		return err
	}
	ours, err := readAll(sub)
	if err != nil {
		return err
	}
	objects := slices.Concat(ours, theirs)
	const ns, crd, deployment = "Namespace", "CustomResourceDefinition", "Deployment"
	if err := s.cluster.applyAll(ctx, append(ofKind(objects, ns), functionNamespace())); err != nil {
		return err
	}
	if err := s.cluster.applyCRDs(ctx, ofKind(objects, crd)); err != nil {
		return err
	}
	if err := s.cluster.applyAll(ctx, notOfKind(objects, ns, crd, deployment)); err != nil {
		return err
	}
	deployments := ofKind(objects, deployment)
	if err := s.waitPolicy(ctx, deployments[0]); err != nil {
		return err
	}
	return s.cluster.applyAll(ctx, deployments)
}

// waitPolicy returns once the API server keeps Deployments from having pods.
func (s *starter) waitPolicy(ctx context.Context, deployment *unstructured.Unstructured) error {
	trial := deployment.DeepCopy()
	if err := unstructured.SetNestedField(trial.Object, int64(1), "spec", "replicas"); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		got, err := s.cluster.apply(ctx, trial, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return false, err
		}
		replicas, _, err := unstructured.NestedInt64(got.Object, "spec", "replicas")
		return replicas == 0, err
	})
}

// addFunctions makes the Knative Services with their addresses. They come before the Triggers: a Trigger is not looked at again when the
// Service that it names gets its address.
func (s *starter) addFunctions(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(s.options.services)) {
		if _, err := s.cluster.apply(ctx, functionService(name), metav1.PatchOptions{}); err != nil {
			return err
		}
		if _, err := s.cluster.apply(ctx, functionStatus(name), metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	return nil
}

// startProcesses starts the controllers, and the kubelet that starts the rest.
func (s *starter) startProcesses(alive context.Context) {
	common := []string{
		"SERVICES=" + s.names,
		"HTTP_PROXY=", "http_proxy=",
		"GOGC=400", // two cores serve everything, and there is memory
		"PROFILING_PORT=0",
		"KUBE_API_QPS=1000", "KUBE_API_BURST=1000", // by default a start waits for seconds on the controllers' own rate limit
	}
	const system = "knative-eventing"
	controllers := []string{
		"KUBECONFIG=" + s.options.kubeconfig,
		"SYSTEM_NAMESPACE=" + system, "POD_NAME=controllers-0", "CONTAINER_NAME=controllers",
		"CONFIG_LOGGING_NAME=config-logging", "CONFIG_OBSERVABILITY_NAME=config-observability", "CONFIG_LEADERELECTION_NAME=config-leader-election",
		"MAX_IDLE_CONNS=1000", "MAX_IDLE_CONNS_PER_HOST=1000",
		"APISERVER_RA_IMAGE=ko://knative.dev/eventing/cmd/apiserver_receive_adapter",
		"BROKER_INGRESS_IMAGE=-", "BROKER_INGRESS_SERVICE_ACCOUNT=-", "BROKER_FILTER_IMAGE=-", "BROKER_FILTER_SERVICE_ACCOUNT=-", "DISPATCHER_IMAGE=-",
		"LISTEN_8080=" + s.ends.dispatcher,
		"MOST_UNDER_WAY=" + strconv.Itoa(mostUnderWay),
	}
	s.supervisor.start(alive, process{name: "controllers", path: filepath.Join(s.programs, "controllers"), env: slices.Concat(common, controllers)})
	k := &kubelet{
		cluster: s.cluster, supervisor: s.supervisor, kubeconfig: s.options.kubeconfig, programs: s.programs, dir: s.options.dir, common: common,
		listen: map[string]string{"mt-broker-ingress": s.ends.ingress, "mt-broker-filter": s.ends.filter},
		args:   map[string][]string{"mtping": {"-disable-ha"}},
	}
	s.supervisor.running.Go(func() { k.sync(alive) })
}

func functionNamespace() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}}
}
