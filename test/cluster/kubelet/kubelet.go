// SPDX-License-Identifier: Apache-2.0

// Package kubelet plays the kubelets of nodes that have no machine behind them.
//
// It runs kwok's controllers with the stages of this folder. A Node takes part when it carries the annotation
// kwok.x-k8s.io/node=fake; README.md in the parent folder lists the labels and annotations that steer it.
package kubelet

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/yaml"
)

const (
	// Annotation marks the Nodes whose kubelet is played here.
	Annotation = "kwok.x-k8s.io/node"
	// AnnotationValue is what it has then.
	AnnotationValue = "fake"
)

const (
	// A lease is renewed every quarter of its duration, which makes the 10 s of a real kubelet. More often would be a load
	// that no cluster has: of a thousand nodes two hundred writes a second.
	leaseSeconds = 40
	// podNetwork is OpenShift's default; it does not overlap the service network.
	podNetwork = "10.128.0.0/14"
	// identity is constant, so that a restarted process goes on with the leases it held.
	identity = "simulated-kubelet"
	workers  = 4
)

//go:embed stages/*.yaml
var stageFiles embed.FS

// Run plays kubelets until ctx ends. It returns an error only if it cannot start.
func Run(ctx context.Context, config *rest.Config) error {
	direct, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect simulated kubelets: %w", err)
	}
	return run(ctx, direct)
}

func run(ctx context.Context, direct kubernetes.Interface) error {
	stages, err := loadStages()
	if err != nil {
		return err
	}
	client := &client{Interface: direct}
	controller, err := controllers.NewController(controllers.Config{
		Clock:                             clock.RealClock{},
		TypedClient:                       client,
		ManageNodesWithAnnotationSelector: Annotation + "=" + AnnotationValue,
		CIDR:                              podNetwork,
		LocalStages:                       stages,
		PodPlayStageParallelism:           workers,
		NodePlayStageParallelism:          workers,
		NodeLeaseParallelism:              workers,
		PodsOnNodeSyncParallelism:         workers,
		NodeLeaseDurationSeconds:          leaseSeconds,
		ID:                                identity,
		FuncMap:                           gotpl.FuncMap{"KubernetesVersion": func() string { return version.Get().GitVersion }},
	})
	if err != nil {
		return fmt.Errorf("set up simulated kubelets: %w", err)
	}
	client.running = func(node string) bool {
		_, ok := controller.GetNodeCache().Get(node)
		return ok
	}
	ctx = log.NewContext(ctx, log.NewLogger(os.Stderr, log.LevelWarn)) // at Info it writes a line per patch
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("start simulated kubelets: %w", err)
	}
	<-ctx.Done()
	return nil
}

func loadStages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	paths, err := fs.Glob(stageFiles, "stages/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list stages: %w", err)
	}
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, path := range paths {
		stage, err := loadStage(path)
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", path, err)
		}
		ref := stage.Spec.ResourceRef
		stages[ref] = append(stages[ref], stage)
	}
	return stages, nil
}

func loadStage(path string) (*internalversion.Stage, error) {
	raw, err := stageFiles.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var stage v1alpha1.Stage
	if err := yaml.UnmarshalStrict(raw, &stage); err != nil {
		return nil, err
	}
	return internalversion.ConvertToInternalStage(&stage)
}
