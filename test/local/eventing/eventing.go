// SPDX-License-Identifier: Apache-2.0

// Package eventing runs Knative Eventing (test/eventing) on a control plane of this machine.
package eventing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	poll        = 50 * time.Millisecond
	stopTimeout = 90 * time.Second // of Stop, longer than Knative's finalizers take
	tail        = 2000             // bytes of the log that an error quotes
)

// Options say what to run.
type Options struct {
	Programs   string              // what Build returns; Build is called if this is empty
	Progress   io.Writer           // what Build says; nil discards it
	Kubeconfig string              // of an administrator; the kinds that the source watches are served already
	Dir        string              // for logs and kubeconfigs; made if absent
	Manifests  string              // folder of the kustomization, triggers/ of this repository
	Services   map[string][]string // loopback addresses of every function's replicas, dead-letter included
	Leave      bool                // Stop leaves the Knative objects behind, at once: the control plane goes away too
}

// Eventing is a running Knative Eventing.
type Eventing struct {
	Broker    string         `json:"broker"`    // URL that takes events
	Processes map[string]int `json:"processes"` // process ids by name, as they were at the start
	Log       string         `json:"-"`         // of the whole; every process has a log of its own beside it

	command *exec.Cmd
	input   io.Closer
	done    chan struct{}
	ended   error // valid once done is closed
}

// Build compiles what Start needs, unless an earlier build of the same content is in the cache, and returns its folder. The first build
// takes minutes and tells progress of itself.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	script, err := find(filepath.Join("test", "eventing", "build.sh"))
	if err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, script)
	build.Stderr = progress
	build.Cancel = func() error { return build.Process.Signal(syscall.SIGTERM) } // the script ends its compiler
	build.WaitDelay = 5 * time.Second
	out, err := build.Output()
	if err != nil {
		return "", fmt.Errorf("build Knative Eventing: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// find returns the path of a file of this repository, whichever of its folders is the current one.
func find(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find %s: %w", name, os.ErrNotExist)
		}
		dir = filepath.Dir(dir)
	}
}

// Start returns once events flow: Broker, Triggers and sources are ready, the servers serve, the source watches. The context bounds the
// start only; what was started runs until Stop, or until this process ends in whatever way.
func Start(ctx context.Context, o Options) (*Eventing, error) {
	if o.Programs == "" {
		var err error
		if o.Programs, err = Build(ctx, o.Progress); err != nil {
			return nil, err
		}
	}
	e, err := launch(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("start Knative Eventing: %w", err)
	}
	if err := e.awaitReady(ctx, readyFile(o.Dir)); err != nil {
		return nil, fmt.Errorf("start Knative Eventing: %w\n%s", errors.Join(err, e.Stop()), lastLines(e.Log))
	}
	return e, nil
}

func readyFile(dir string) string { return filepath.Join(dir, "ready") }

func launch(ctx context.Context, o Options) (*Eventing, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(readyFile(o.Dir)); err != nil {
		return nil, err
	}
	args := []string{"-kubeconfig", o.Kubeconfig, "-manifests", o.Manifests, "-dir", o.Dir, "-until-eof"}
	if o.Leave {
		args = append(args, "-fast-stop")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Services)) {
		args = append(args, "-service", name+"="+strings.Join(o.Services[name], ","))
	}
	e := &Eventing{
		Log:     filepath.Join(o.Dir, "eventing.log"),
		command: exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(o.Programs, "eventing"), args...),
		done:    make(chan struct{}),
	}
	log, err := os.Create(e.Log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	e.command.Stdout, e.command.Stderr = log, log
	if e.input, err = e.command.StdinPipe(); err != nil {
		return nil, err
	}
	if err := e.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		e.ended = e.command.Wait()
		close(e.done)
	}()
	return e, nil
}

func (e *Eventing) awaitReady(ctx context.Context, ready string) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.done:
			return errors.New("ended before it was ready")
		case <-ticker.C:
			if content, err := os.ReadFile(ready); err == nil {
				return json.Unmarshal(content, e)
			}
		}
	}
}

// Done is closed when Knative Eventing has ended, by Stop or by itself.
func (e *Eventing) Done() <-chan struct{} { return e.done }

// Stop ends all processes and returns when they are gone. A second call does nothing more.
func (e *Eventing) Stop() error {
	_ = e.input.Close() // the process ends with its input
	select {
	case <-e.done:
		return e.ended
	case <-time.After(stopTimeout):
	}
	_ = e.command.Process.Kill()
	<-e.done
	return errors.New("stop Knative Eventing: killed after a timeout")
}

// lastLines returns the end of a log.
func lastLines(path string) []byte {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	content = content[max(0, len(content)-tail):]
	return bytes.TrimSpace(content)
}
