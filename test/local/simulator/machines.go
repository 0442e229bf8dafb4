// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider/kubeapi"
	"github.com/machine-functions/machine-functions/shared/provider/kubemark"
)

// Machines plays the kubelets of the instances behind Machines, whichever cloud made them. Like [Simulator] it holds
// nothing: a Node tells whose kubelet registered it, and a Machine that is linked tells that one did.
type Machines struct {
	api       *kubeapi.Client
	nodes     nodes
	namespace string
	log       *slog.Logger
}

// NewMachines returns a simulator for the Machines of a namespace, without asking the API server anything.
func NewMachines(config *rest.Config, namespace string, log *slog.Logger) (*Machines, error) {
	api, err := kubeapi.New(config)
	if err != nil {
		return nil, err
	}
	nodes, err := newNodes(config)
	if err != nil {
		return nil, err
	}
	return &Machines{api: api, nodes: nodes, namespace: namespace, log: log}, nil
}

// Run plays until ctx ends. What fails is logged and tried again.
func (s *Machines) Run(ctx context.Context) {
	repeat(ctx, s.log, s.Round)
}

// Round brings every kubelet to where it should be. Kubelets that fail do not hold back the others.
func (s *Machines) Round(ctx context.Context, _ time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range w.moves() {
		if err := s.carryOut(ctx, m); err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, fmt.Errorf("kubelet of %s: %w", m.node.Name, err))
			continue
		}
		s.log.Info("kubelet changed", "node", m.node.Name, "kubelet", m.kubelet)
	}
	return errors.Join(errs...)
}

func (s *Machines) carryOut(ctx context.Context, m move) error {
	if m.node.UID == "" {
		return s.nodes.create(ctx, m.node)
	}
	return s.nodes.label(ctx, m.node, m.kubelet)
}

// world is what kubelets depend on.
type world struct {
	machines []machine.Machine
	sets     map[string]machine.MachineSet
	hosts    map[string]metal3v1alpha1.BareMetalHost // by namespace/name
	nodes    []corev1.Node
}

func (s *Machines) look(ctx context.Context) (world, error) {
	var (
		machines struct{ Items []machine.Machine }
		sets     struct{ Items []machine.MachineSet }
		hosts    struct {
			Items []metal3v1alpha1.BareMetalHost
		}
		all corev1.NodeList
	)
	w := world{sets: map[string]machine.MachineSet{}, hosts: map[string]metal3v1alpha1.BareMetalHost{}}
	const group = "apis/machine.openshift.io/v1beta1/namespaces"
	err := errors.Join(
		s.list(ctx, &machines, group, s.namespace, "machines"),
		s.list(ctx, &sets, group, s.namespace, "machinesets"),
		s.list(ctx, &all, "api/v1/nodes"),
	)
	if slices.ContainsFunc(machines.Items, onHost) { // elsewhere the API server knows no hosts
		err = errors.Join(err, s.list(ctx, &hosts, "apis/metal3.io/v1alpha1/namespaces", s.namespace, "baremetalhosts"))
	}
	for _, set := range sets.Items {
		w.sets[set.Name] = set
	}
	for _, h := range hosts.Items {
		w.hosts[h.Namespace+"/"+h.Name] = h
	}
	w.machines, w.nodes = machines.Items, all.Items
	return w, err
}

func onHost(m machine.Machine) bool { return m.Annotations[machine.AnnotationBareMetalHost] != "" }

func (s *Machines) list(ctx context.Context, out any, path ...string) error {
	return s.api.Do(ctx, kubeapi.Request{Method: http.MethodGet, Path: append(strings.Split(path[0], "/"), path[1:]...)}, out)
}

// move is one kubelet that changes; a Node without a UID is not registered yet.
type move struct {
	node    *corev1.Node
	kubelet kubemark.Kubelet
}
