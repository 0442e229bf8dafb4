// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/machine-functions/machine-functions/test/local/controlplane"
)

// Attach makes a control plane that somebody else runs one for Machines: it installs config/ but for the Knative Services,
// and starts the simulated cloud. Functions and Eventing are the caller's affair. Stop ends the simulated cloud only.
func Attach(ctx context.Context, o Options, c *controlplane.ControlPlane) (*Stack, error) {
	s := &Stack{options: o, ControlPlane: c, Logs: filepath.Join(o.Dir, "logs"), programs: filepath.Join(o.Dir, "programs"), started: time.Now(), attached: true}
	if err := s.attach(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stack) attach(ctx context.Context) error {
	for _, dir := range []string{s.Logs, s.programs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", s.programs+"/", "./test/local/kubemark")
	build.Dir = s.options.Root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the simulated cloud: %w\n%s", err, out)
	}
	if err := s.install(ctx); err != nil {
		return err
	}
	simulator, err := s.simulator(ctx)
	if err != nil {
		return err
	}
	s.Processes = []*Process{simulator}
	return simulator.Start()
}

// simulator returns the process that plays the simulated cloud, with the rights that config/overlays/kubemark gives it.
func (s *Stack) simulator(ctx context.Context) (*Process, error) {
	identity, err := s.identity(ctx, "kubemark", "kubemark")
	if err != nil {
		return nil, err
	}
	return &Process{
		Name: "kubemark", Log: logPath(s.Logs, "kubemark", 0), path: filepath.Join(s.programs, "kubemark"),
		args: []string{"-kubeconfig", identity}, env: os.Environ(),
	}, nil
}
