// SPDX-License-Identifier: Apache-2.0

// Command node makes this machine a Kubernetes node with real Knative, in namespaces of its own, for as long as a command
// runs:
//
//	node -control-plane PROGRAM -programs FOLDER -own FOLDER -dir FOLDER -- COMMAND...
//
// README.md says what it consists of. It needs root on Linux; what else is missing it says before it does anything, and without a command
// that is all it does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

// options say what the node is made of.
type options struct {
	controlPlane string   // the binary of test/cluster
	programs     string   // what build.sh printed
	own          string   // folder of the programs of this module: pause, ingress
	dir          string   // for everything that is written
	command      []string // what the node is for; none: only look whether there can be one
}

func main() {
	var o options
	flag.StringVar(&o.controlPlane, "control-plane", "", "what test/cluster/build.sh prints")
	flag.StringVar(&o.programs, "programs", "", "what test/node/build.sh prints")
	flag.StringVar(&o.own, "own", "", "folder of pause and ingress")
	flag.StringVar(&o.dir, "dir", "", "folder for data and logs; the data are removed in the end")
	inside := flag.Bool("inside", false, "this process is in its namespaces already")
	flag.Parse()
	o.command = flag.Args()
	run := outside
	if *inside {
		run = withNode
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || !*inside {
			fmt.Fprintln(os.Stderr, "node:", err)
		}
		if ok {
			os.Exit(max(exit.ExitCode(), 1)) //nolint:gocritic // the context ends with the process
		}
		os.Exit(1)
	}
}

// outside checks that a node can be here, runs this program once more in its namespaces, and removes what is left.
func outside(ctx context.Context, o options) error {
	missing := preflight()
	if len(o.command) > 0 {
		missing = append(missing, o.missing()...)
	}
	if len(missing) > 0 {
		return fmt.Errorf("no node can run here:\n  %w", joined(missing))
	}
	if len(o.command) == 0 {
		return nil
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := append([]string{"-inside", "-control-plane", o.controlPlane, "-programs", o.programs, "-own", o.own, "-dir", o.dir, "--"}, o.command...)
	child := exec.CommandContext(ctx, self, args...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	isolate(child)
	return errors.Join(child.Run(), cleanUp(o.dir))
}

// joined puts each complaint on a line of its own.
func joined(complaints []string) error {
	var errs []error
	for _, c := range complaints {
		errs = append(errs, errors.New(c))
	}
	return errors.Join(errs...)
}

// cleanUp removes the data. Processes, mounts and network interfaces went with their namespaces; control groups have none.
func cleanUp(dir string) error {
	var errs []error
	for _, name := range []string{"cluster", "containerd", "registry", "etc"} {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
	}
	return errors.Join(append(errs, removeControlGroups()...)...)
}
