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
	"io/fs"
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
	l := local{options: stack.Options{Root: root, Dir: absolute, Replicas: *replicas, Progress: os.Stderr}}
	switch name {
	case "run":
		return l.run(ctx)
	case "demo":
		return l.demo(ctx)
	}
	return fmt.Errorf("usage: local run|demo [-replicas N] [-dir DIR]; got %q", name)
}

// local is one installation in one folder.
type local struct{ options stack.Options }

// place is what a running system tells others who want to use it.
type place struct {
	PID        int    `json:"pid"`
	Kubectl    string `json:"kubectl"` // program; its first argument is kubectl
	Kubeconfig string `json:"kubeconfig"`
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
	var ended error
	select {
	case <-ctx.Done():
	case <-s.ControlPlane.Done():
		ended = fmt.Errorf("the control plane ended by itself; its log is %s", s.ControlPlane.Log)
	case <-s.Eventing.Done():
		ended = fmt.Errorf("Knative Eventing ended by itself; its log is %s", s.Eventing.Log)
	}
	fmt.Fprintln(os.Stderr, "\nstopping")
	return errors.Join(ended, s.Stop())
}

func (l local) start(ctx context.Context) (*stack.Stack, error) {
	if p, ok := l.running(); ok {
		return nil, fmt.Errorf("it runs already, as process %d (kubeconfig %s); stop that one, or choose another folder with -dir", p.PID, p.Kubeconfig)
	}
	if err := os.MkdirAll(l.options.Dir, 0o700); err != nil {
		return nil, err
	}
	s, err := stack.Start(ctx, l.options)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(place{PID: os.Getpid(), Kubectl: s.ControlPlane.Binary, Kubeconfig: s.ControlPlane.Kubeconfig})
	if err == nil {
		err = os.WriteFile(l.placeFile(), text, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// running returns the system that runs in this folder, if one does.
func (l local) running() (place, bool) {
	var p place
	text, err := os.ReadFile(l.placeFile())
	if errors.Is(err, fs.ErrNotExist) || json.Unmarshal(text, &p) != nil {
		return p, false
	}
	return p, syscall.Kill(p.PID, 0) == nil
}

func (l local) introduce(s *stack.Stack) {
	kubectl := fmt.Sprintf("KUBECONFIG=%s %s kubectl", s.ControlPlane.Kubeconfig, s.ControlPlane.Binary)
	if path, err := exec.LookPath("kubectl"); err == nil {
		kubectl = fmt.Sprintf("KUBECONFIG=%s %s", s.ControlPlane.Kubeconfig, path)
	}
	fmt.Fprintf(os.Stdout, `
The system runs: the API server on %s, Knative Eventing, %d functions, a simulated cloud.
  logs        %s
  kubeconfig  %s
Try:
  %s get machinesets,machines -n openshift-machine-api
  %s create -f config/samples/kubemark/general-purpose-1a.yaml
  %s scale machineset general-purpose-1a --replicas=2 -n openshift-machine-api
or, in another terminal, make demo. Ctrl-C stops everything.
`, s.ControlPlane.Server, len(stack.Functions), s.Logs, s.ControlPlane.Kubeconfig, kubectl, kubectl, kubectl)
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
		p = place{Kubectl: s.ControlPlane.Binary, Kubeconfig: s.ControlPlane.Kubeconfig}
	}
	tale := story.Story{Root: l.options.Root, Out: os.Stdout, Kubectl: p.kubectl}
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
