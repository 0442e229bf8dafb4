// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs the control plane of test/cluster as a child process.
package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startLimit = 4 * time.Minute // longer than the child's own limit, because its message says more
	stopLimit  = time.Minute     // a clean stop takes three seconds, and each of its four components may take as long
)

// Options say what to start.
type Options struct {
	Dir      string    // etcd's data, keys, kubeconfig and log; one control plane at a time
	Fresh    bool      // forget what an earlier run left in Dir
	Port     int       // of the API server on 127.0.0.1; 0 takes a free one
	Args     []string  // further flags of `control-plane up`
	Binary   string    // what Build returns; Build is called if this is empty
	Progress io.Writer // what Build says; nil discards it
}

// ControlPlane is a control plane that was ready when Start returned it. Its methods may be called concurrently.
type ControlPlane struct {
	Binary     string // with the first argument kubectl it is kubectl
	Dir        string
	Server     string // the API server's URL
	Kubeconfig string // path of the administrator's kubeconfig
	Log        string // path of the log that all components share

	nodes string // which are meant by "nodes"; Attach
	child *exec.Cmd
	alive io.Closer // the child stops when this closes, as it does when this process dies
	done  chan struct{}
	ended error // valid once done is closed
	stop  sync.Once
}

// Start returns when all components work together: a pod was created, scheduled and run. The context bounds the start
// only; the control plane lasts until Stop, or until this process ends in whatever way.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	c, err := newControlPlane(ctx, o)
	if err != nil {
		return nil, err
	}
	announcement, err := c.launch(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready after %v", startLimit))
	defer cancel()
	defer context.AfterFunc(ctx, c.kill)()
	_, err = bufio.NewReader(announcement).ReadString('\n') // one line when ready, none when it dies
	if err != nil {
		<-c.done
		if ctx.Err() != nil {
			return nil, fmt.Errorf("start control plane: %w", context.Cause(ctx))
		}
		return nil, fmt.Errorf("start control plane: %w", c.complaint())
	}
	server, err := os.ReadFile(filepath.Join(c.Dir, "ready"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start control plane: %w", err), c.Stop())
	}
	c.Server = strings.TrimSpace(string(server))
	return c, nil
}

func newControlPlane(ctx context.Context, o Options) (*ControlPlane, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	if o.Binary == "" {
		if o.Binary, err = Build(ctx, o.Progress); err != nil {
			return nil, err
		}
	}
	return &ControlPlane{
		Binary: o.Binary, Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig"), Log: filepath.Join(dir, "control-plane.log"),
		done: make(chan struct{}),
	}, nil
}

// launch starts the child in a process group of its own, out of the terminal's reach, and returns its standard output.
func (c *ControlPlane) launch(o Options) (io.Reader, error) {
	log, err := os.OpenFile(c.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) // another one may run in this folder
	if err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	args := []string{"up", "--until-eof", "--dir=" + c.Dir, "--port=" + strconv.Itoa(o.Port), "--fresh=" + strconv.FormatBool(o.Fresh)}
	c.child = exec.Command(c.Binary, append(args, o.Args...)...) //nolint:noctx // it ends with its standard input
	c.child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.child.Stderr = log
	if c.alive, err = c.child.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	announcement, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	c.child.Stdout = write
	err = c.child.Start()
	_ = write.Close() // so that reading ends when the child does
	if err != nil {
		_ = announcement.Close()
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	go func() {
		c.ended = c.child.Wait()
		_ = announcement.Close()
		close(c.done)
	}()
	return announcement, nil
}

// complaint is what the child said last about why it ended.
func (c *ControlPlane) complaint() error {
	content, err := os.ReadFile(c.Log)
	if err != nil {
		return errors.Join(c.ended, err)
	}
	return fmt.Errorf("%s (log: %s)", lastLine(string(content)), c.Log)
}

func (c *ControlPlane) kill() { _ = syscall.Kill(-c.child.Process.Pid, syscall.SIGKILL) }

// Stop ends the control plane and returns when its process is gone. It returns an error if the control plane had ended by
// itself or had to be killed; a second call does nothing.
func (c *ControlPlane) Stop() error {
	var err error
	c.stop.Do(func() {
		select {
		case <-c.done:
			err = fmt.Errorf("control plane ended by itself: %w", c.complaint())
			return
		default:
		}
		_ = c.alive.Close()
		select {
		case <-c.done:
			err = c.ended
		case <-time.After(stopLimit):
			c.kill()
			<-c.done
			err = fmt.Errorf("control plane killed: it did not stop in %v (log: %s)", stopLimit, c.Log)
		}
	})
	return err
}

// Done is closed when the control plane has ended, for whatever reason.
func (c *ControlPlane) Done() <-chan struct{} { return c.done }

// PID is the process id of the control plane.
func (c *ControlPlane) PID() int { return c.child.Process.Pid }
