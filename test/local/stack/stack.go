// SPDX-License-Identifier: Apache-2.0

// Package stack runs the whole system on this machine: a control plane, Knative Eventing, the functions.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/machine-functions/machine-functions/test/ec2"
	"github.com/machine-functions/machine-functions/test/engine"
	"github.com/machine-functions/machine-functions/test/libvirtd"
	"github.com/machine-functions/machine-functions/test/local/controlplane"
	"github.com/machine-functions/machine-functions/test/local/eventing"
	"github.com/machine-functions/machine-functions/test/local/held"
	"github.com/machine-functions/machine-functions/test/local/vcenter"
	"github.com/machine-functions/machine-functions/test/openstack"
)

// Functions are the services that the triggers name.
var Functions = []string{
	"scale-machineset", "provision-machine", "drain-node", "link-node", "remediate", "evaluate-autoscale",
	"sweep-instances", "dead-letter",
}

// Options say what to run.
type Options struct {
	Root             string    // of the repository
	Dir              string    // for data and logs
	Replicas         int       // of every function; 0 means 1
	Cloud            string    // beside the simulated one: aws with a region, azure with a resource group, libvirt with a daemon, metal3 with hosts, openstack, ovirt with an engine, vsphere with a vCenter; empty for none
	ControlPlaneArgs []string  // further flags of the control plane
	Progress         io.Writer // what people read while they wait
}

// Stack is a running system.
type Stack struct {
	ControlPlane *controlplane.ControlPlane
	Eventing     *eventing.Eventing
	Processes    []*Process  // functions and the simulator
	Logs         string      // folder
	EC2          *ec2.Region // where the cloud is aws

	options   Options
	programs  string
	held      []*os.File // sockets at the functions' addresses
	metal3    string     // folder of the baremetal-operator, if it runs
	vcenter   *vcenter.VCenter
	libvirt   *libvirtd.Daemon
	engine    *engine.Served
	openstack *openstack.OpenStack
	azure     *azure
	started   time.Time
	attached  bool // the control plane is somebody else's
}

// Start returns when every part works. On an error nothing is left running. The context bounds the start only.
func Start(ctx context.Context, o Options) (*Stack, error) {
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	s := &Stack{options: o, Logs: filepath.Join(o.Dir, "logs"), programs: filepath.Join(o.Dir, "programs"), started: time.Now()}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context) error {
	if err := s.layOut(); err != nil {
		return err
	}
	s.say("building (a first build takes some minutes, later ones a second)")
	binary, knative, err := s.build(ctx)
	if err != nil {
		return err
	}
	s.say("starting etcd, kube-apiserver, scheduler, controller-manager, kwok")
	s.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{
		Dir: filepath.Join(s.options.Dir, "cluster"), Binary: binary, Args: s.options.ControlPlaneArgs,
	})
	if err != nil {
		return err
	}
	s.say("installing the API: config/crd, config/policy, config/rbac")
	if err := s.install(ctx); err != nil {
		return err
	}
	s.say(fmt.Sprintf("starting %d functions and the simulated cloud", len(Functions)))
	services, err := s.startProcesses(ctx)
	if err != nil {
		return err
	}
	s.say("starting Knative Eventing with triggers/")
	s.Eventing, err = eventing.Start(ctx, eventing.Options{
		Programs: knative, Kubeconfig: s.ControlPlane.Kubeconfig, Dir: filepath.Join(s.Logs, "eventing"),
		Manifests: filepath.Join(s.options.Root, "triggers"), Services: services, Leave: true,
	})
	if err != nil {
		return err
	}
	return s.takesMachines(ctx)
}

// takesMachines returns as soon as a MachineSet can be made: for seconds after a kind with mutating policies came to be, an API
// server answers 503.
func (s *Stack) takesMachines(ctx context.Context) error {
	sample := filepath.Join(s.options.Root, "config", "samples", "kubemark", "general-purpose-1a.yaml")
	for {
		_, err := s.Kubectl(ctx, "create", "--dry-run=server", "-f", sample)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no MachineSet can be made: %w", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// layOut makes empty folders: what an earlier run left is of no use.
func (s *Stack) layOut() error {
	for _, dir := range []string{s.Logs, s.programs, filepath.Join(s.options.Dir, "identities"), filepath.Join(s.options.Dir, "cluster")} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(s.Logs, "eventing"), 0o700); err != nil {
		return err
	}
	return os.Symlink(filepath.Join(s.options.Dir, "cluster", controlPlaneLog), filepath.Join(s.Logs, controlPlaneLog))
}

// controlPlaneLog is where the components of the control plane log together.
const controlPlaneLog = "control-plane.log"

// keepLog makes the link to the control plane's log the log itself, which outlives the data beside it.
func (s *Stack) keepLog() error {
	err := os.Rename(filepath.Join(s.options.Dir, "cluster", controlPlaneLog), filepath.Join(s.Logs, controlPlaneLog))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it never started
	}
	return err
}

func (s *Stack) build(ctx context.Context) (binary, knative string, err error) {
	if binary, err = controlplane.Build(ctx, s.options.Progress); err != nil {
		return "", "", err
	}
	if knative, err = eventing.Build(ctx, s.options.Progress); err != nil {
		return "", "", err
	}
	if err := s.buildCloud(ctx); err != nil {
		return "", "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", s.programs+"/", "./test/local/function", "./test/local/kubemark")
	build.Dir = s.options.Root
	if out, err := build.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("build functions: %w\n%s", err, out)
	}
	return binary, knative, nil
}

// startProcesses starts the simulator and every replica, and returns the addresses by function.
func (s *Stack) startProcesses(ctx context.Context) (map[string][]string, error) {
	services := map[string][]string{}
	simulator, err := s.simulator(ctx)
	if err != nil {
		return nil, err
	}
	s.Processes = append(s.Processes, simulator)
	s.Processes = append(s.Processes, s.cloud()...)
	var addresses []string
	if addresses, s.held, err = held.Addresses(len(Functions) * s.options.Replicas); err != nil {
		return nil, err
	}
	for i, name := range Functions {
		identity, err := s.identity(ctx, "openshift-machine-api", name)
		if err != nil {
			return nil, err
		}
		services[name] = addresses[i*s.options.Replicas : (i+1)*s.options.Replicas]
		for replica, address := range services[name] {
			s.Processes = append(s.Processes, &Process{
				Name: name, Replica: replica, Address: address, Log: logPath(s.Logs, name, replica),
				path: filepath.Join(s.programs, "function"),
				env:  append(s.environ(), "FUNCTION="+name, "LISTEN_ADDRESS="+address, "KUBECONFIG="+identity),
			})
		}
	}
	var g errgroup.Group
	for _, p := range s.Processes {
		if err := p.Start(); err != nil {
			return nil, err
		}
		if p.Address != "" {
			g.Go(func() error { return p.AwaitReady(ctx) })
		}
	}
	return services, g.Wait()
}

// Replica returns one replica of a function, or the simulator, which is called kubemark.
func (s *Stack) Replica(name string, replica int) *Process {
	for _, p := range s.Processes {
		if p.Name == name && p.Replica == replica {
			return p
		}
	}
	return nil
}

// Crashed tells of every process that ended though nobody told it to.
func (s *Stack) Crashed() error {
	var errs []error
	for _, p := range s.Processes {
		errs = append(errs, p.Crashed())
	}
	return errors.Join(errs...)
}

// Revive starts every function's process again that ended though nobody told it to, as Knative does, and tells of it. An error is of
// one that ends at once again and again, or of what is no function.
func (s *Stack) Revive() error {
	var errs []error
	for _, p := range s.Processes {
		switch ended := p.Crashed(); {
		case ended == nil:
		case p.Address == "": // the cloud, which nobody starts again: what it remembered is gone
			errs = append(errs, ended)
		default:
			err := p.again(ended)
			if errs = append(errs, err); err == nil {
				s.say(ended.Error() + "; it is started again")
			}
		}
	}
	return errors.Join(errs...)
}

// Kubectl runs kubectl as the administrator and returns what it prints.
func (s *Stack) Kubectl(ctx context.Context, args ...string) (string, error) {
	return s.ControlPlane.Kubectl(ctx, args...)
}

// Stop ends everything and removes the data; the logs stay. It may be called on a stack that is half started.
func (s *Stack) Stop() error {
	var errs []error
	if s.Eventing != nil {
		errs = append(errs, s.Eventing.Stop())
	}
	var all sync.WaitGroup
	for _, p := range s.Processes {
		all.Go(p.Stop)
	}
	all.Wait()
	for _, socket := range s.held {
		errs = append(errs, socket.Close())
	}
	if s.attached {
		return errors.Join(errs...)
	}
	if s.ControlPlane != nil {
		errs = append(errs, s.ControlPlane.Stop())
	}
	if s.libvirt != nil {
		s.libvirt.Stop()
	}
	if s.engine != nil {
		s.engine.Stop()
	}
	if s.vcenter != nil {
		s.vcenter.Stop()
	}
	if s.openstack != nil {
		s.openstack.Stop()
	}
	if s.EC2 != nil {
		s.EC2.Stop()
	}
	if s.azure != nil {
		s.azure.process.Stop()
	}
	errs = append(errs, s.keepLog())
	for _, dir := range []string{"cluster", "programs", "identities"} {
		errs = append(errs, os.RemoveAll(filepath.Join(s.options.Dir, dir)))
	}
	secrets, _ := filepath.Glob(filepath.Join(s.Logs, "eventing", "*.kubeconfig")) // the pattern is well-formed
	for _, file := range append(secrets, filepath.Join(s.Logs, "eventing", "ready")) {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *Stack) say(what string) {
	if s.options.Progress != nil {
		_, _ = fmt.Fprintf(s.options.Progress, "%6.1fs  %s\n", time.Since(s.started).Seconds(), what)
	}
}
