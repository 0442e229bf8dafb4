// SPDX-License-Identifier: Apache-2.0

// Package main runs the whole system on this machine (make run), and plays the walk-through on it (make demo).
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/machine-functions/machine-functions/test/local/stack"
	"github.com/machine-functions/machine-functions/test/local/story"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	name := ""
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("local "+name, flag.ContinueOnError)
	replicas := flags.Int("replicas", 1, "processes of every function")
	cloud := flags.String("cloud", "", "whose instances there are beside simulated ones, and whose story is played: aws, azure, libvirt, metal3, openstack, ovirt, vsphere")
	dir := flags.String("dir", filepath.Join("build", "run"), "folder for data and logs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	absolute, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	l := local{options: stack.Options{Root: root, Dir: absolute, Replicas: *replicas, Cloud: *cloud, Progress: os.Stderr}}
	switch name {
	case "run":
		return l.run(ctx)
	case "demo":
		return l.demo(ctx)
	}
	return fmt.Errorf("usage: local run|demo [-cloud aws|azure|libvirt|metal3|openstack|ovirt|vsphere] [-replicas N] [-dir DIR]; got %q", name)
}

// local is one installation in one folder.
type local struct{ options stack.Options }

// place is what a running system tells others who want to use it.
type place struct {
	Kubectl    string `json:"kubectl"` // program; its first argument is kubectl
	Kubeconfig string `json:"kubeconfig"`
	Cloud      string `json:"cloud,omitempty"`
}

func (l local) placeFile() string { return filepath.Join(l.options.Dir, "running.json") }

// run starts everything and keeps it until ctx ends.
func (l local) run(ctx context.Context) error {
	s, err := l.start(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(l.placeFile()) }()
	l.introduce(s)
	ended := await(ctx, s)
	fmt.Fprintln(os.Stderr, "\nstopping")
	err = errors.Join(ended, s.Stop())
	fmt.Fprintln(os.Stderr, "stopped; the logs are in", s.Logs)
	return err
}

// await returns when ctx ends, or with an error when a part of the system has ended by itself and cannot be started again.
func await(ctx context.Context, s *stack.Stack) error {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.ControlPlane.Done():
			return fmt.Errorf("the control plane ended by itself; its log is %s", s.ControlPlane.Log)
		case <-s.Eventing.Done():
			return fmt.Errorf("eventing ended by itself; its log is %s", s.Eventing.Log)
		case <-look.C:
			if err := s.Revive(); err != nil {
				return err
			}
		}
	}
}

// start takes the folder's lock, which lasts as long as this process, then starts everything.
func (l local) start(ctx context.Context) (*stack.Stack, error) {
	if err := os.MkdirAll(l.options.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := l.lock(); err != nil {
		return nil, err
	}
	s, err := stack.Start(ctx, l.options)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(place{Kubectl: s.ControlPlane.Binary, Kubeconfig: s.ControlPlane.Kubeconfig, Cloud: l.options.Cloud})
	if err == nil {
		err = os.WriteFile(l.placeFile(), text, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// lock refuses a second system in the same folder, also while the first one still starts.
func (l local) lock() error {
	fd, err := syscall.Open(filepath.Join(l.options.Dir, "lock"), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("lock %s: %w", l.options.Dir, err)
	}
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("it runs already, or starts, in %s: stop that one first, with Ctrl-C where it runs", l.options.Dir), syscall.Close(fd))
	}
	return os.RemoveAll(l.placeFile()) // of one that was killed
}

// running returns the system that runs in this folder, if one does.
func (l local) running() (place, bool) {
	var p place
	fd, err := syscall.Open(filepath.Join(l.options.Dir, "lock"), syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return p, false
	}
	defer func() { _ = syscall.Close(fd) }()
	if syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return p, false // nobody holds it
	}
	text, err := os.ReadFile(l.placeFile())
	return p, err == nil && json.Unmarshal(text, &p) == nil
}

func (l local) introduce(s *stack.Stack) {
	kubectl := s.ControlPlane.Binary + " kubectl"
	if path, err := exec.LookPath("kubectl"); err == nil {
		kubectl = path
	}
	fmt.Fprintf(os.Stdout, `
The system runs: the API server on %s, Knative Eventing, %d functions, a simulated cloud.
  logs        %s
  kubeconfig  %s
Try:
  export KUBECONFIG=%s
  %s create -f %s
  %s scale machineset general-purpose-1a --replicas=2 -n openshift-machine-api
  %s get machinesets,machines,nodes -A
or, in another terminal, make demo. Ctrl-C stops everything.
`, s.ControlPlane.Server, len(stack.Functions), s.Logs, s.ControlPlane.Kubeconfig, s.ControlPlane.Kubeconfig,
		kubectl, filepath.Join(l.options.Root, "config", "samples", "kubemark", "general-purpose-1a.yaml"), kubectl, kubectl)
}

// demo plays the walk-through on the running system, or on one of its own.
func (l local) demo(ctx context.Context) error {
	p, ok := l.running()
	if !ok {
		fmt.Fprintln(os.Stderr, "nothing runs yet: starting it for the demo")
		s, err := l.start(ctx)
		if err != nil {
			return err
		}
		defer func() {
			_ = os.Remove(l.placeFile())
			if err := s.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, "stop:", err)
			}
		}()
		p = place{Kubectl: s.ControlPlane.Binary, Kubeconfig: s.ControlPlane.Kubeconfig, Cloud: l.options.Cloud}
	}
	if p.Cloud != l.options.Cloud {
		return fmt.Errorf("what runs in %s is of cloud %q, not %q: stop it first, or use another -dir", l.options.Dir, p.Cloud, l.options.Cloud)
	}
	tale := story.Story{Root: l.options.Root, Cloud: l.options.Cloud, Out: os.Stdout, Kubectl: p.kubectl}
	return tale.Play(ctx)
}

// kubectl runs kubectl and returns what it prints, errors included.
func (p place) kubectl(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, p.Kubectl, append([]string{"kubectl"}, args...)...)
	c.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig)
	c.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return strings.TrimLeft(out.String(), "\n"), err
}
