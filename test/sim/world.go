// SPDX-License-Identifier: Apache-2.0

// Package sim runs the real functions over an API server and a cloud in memory, in virtual time.
package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// World is a cluster with a cloud. Its clock stands still unless it is told to move.
type World struct {
	API       *memory.Server
	Cloud     *cloud.Cloud
	Functions []function.Function
	// Namespaces are those that functions serve; nil is the usual one.
	Namespaces []string
	// Open gives a function its view of the API; nil is the plain one. Tests put faults into it.
	Log *slog.Logger

	mu    sync.Mutex
	clock time.Time
}

// Start is when every world begins.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// NewWorld returns a world with an empty cluster and a well-behaved cloud.
func NewWorld(functions ...function.Function) *World {
	w := &World{Functions: functions, clock: Start, Log: slog.New(slog.DiscardHandler)}
	w.API = memory.New(w.Now)
	w.Cloud = &cloud.Cloud{Clock: w.Now}
	return w
}

// Now returns the world's time.
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

// Pass lets time pass.
func (w *World) Pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(d)
}

// Runner returns a fresh process of a function: it remembers nothing.
func (w *World) Runner(f function.Function) *runner.Runner {
	api := w.as(f.Name)
	return &runner.Runner{
		Function: f, Cluster: api, Clock: w.Now, Log: w.Log,
		Clouds: runner.NewClouds([]provider.Provider{w.Cloud.Provider()}, api.Secret),
	}
}

// Tick lets ten seconds pass, runs the kubelets, then every function's scan in a fresh process.
func (w *World) Tick(ctx context.Context) error {
	w.Pass(10 * time.Second)
	if err := w.Kubelets(); err != nil {
		return err
	}
	for _, f := range w.Functions {
		if _, err := w.Runner(f).Handle(ctx, snapshot.Request{}); err != nil {
			return err
		}
	}
	return nil
}

// Kubelets registers a Ready Node for every running instance that has none. A Node stays when its instance goes, and nobody
// hears of it any more.
func (w *World) Kubelets() error {
	nodes, instances := map[string]bool{}, w.Cloud.Instances()
	for _, n := range memory.List[*corev1.Node](w.API) {
		nodes[n.Spec.ProviderID] = true
		gone := !slices.ContainsFunc(instances, func(i provider.Instance) bool { return i.ProviderID == n.Spec.ProviderID })
		if n.Spec.ProviderID == "" || !gone || !machine.NodeReady(n) {
			continue
		}
		err := memory.Patch(w.API, "", n.Name, func(n *corev1.Node) {
			c := machine.NodeCondition(n, corev1.NodeReady)
			c.Status, c.LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(w.Now())
		})
		if err != nil && !errors.Is(err, cluster.ErrGone) { // other functions run meanwhile
			return err
		}
	}
	for _, i := range instances {
		if i.Child || i.State != provider.StateRunning || nodes[i.ProviderID] {
			continue
		}
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: i.Name, Labels: map[string]string{corev1.LabelHostname: i.Name}},
			Spec:       corev1.NodeSpec{ProviderID: i.ProviderID},
			Status: corev1.NodeStatus{Addresses: i.Addresses, Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.Now()),
			}}},
		}
		if err := w.API.Put(n); err != nil {
			return err
		}
	}
	return nil
}

// Set returns a MachineSet of n Machines for the memory cloud.
func Set(name string, n int32) *machine.MachineSet {
	labels := map[string]string{machine.LabelCluster: "sim", machine.LabelMachineSet: name}
	set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: machine.Namespace, Labels: labels}}
	set.Spec.Replicas = &n
	set.Spec.Selector.MatchLabels = labels
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.ProviderSpec.Value = rawExtension(fmt.Sprintf(`{"kind":%q,"type":"small"}`, cloud.Kind))
	return set
}
