// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	readyWithin = 30 * time.Second
	stopWithin  = 5 * time.Second
	// atOnce is how soon after its start what cannot work has ended. Whoever kills functions again and again mostly lets them live longer.
	atOnce = 3 * time.Second
	// mostAtOnce is how often in a row a process may end at once before it is not started again.
	mostAtOnce = 5
)

// Process is one replica of a function, or the simulator: a child that ends with us in whatever way we end.
type Process struct {
	Name    string // of the function
	Replica int
	Address string // host:port; empty for what serves nothing
	Log     string

	path string
	args []string
	env  []string

	mu   sync.Mutex
	cmd  *exec.Cmd
	told bool // by us, to end
	done chan struct{}
	how  error         // valid once done is closed
	took time.Duration // likewise: how long it lived
	soon int           // how often in a row it ended by itself, at once
}

// Start starts the process, or starts it again after Kill. Its log is appended to.
func (p *Process) Start() error {
	log, err := os.OpenFile(p.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = exec.Command(p.path, p.args...) //nolint:noctx // it outlives what starts it, until Kill or Stop
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = p.env, log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	cmd, done, began := p.cmd, make(chan struct{}), time.Now()
	p.done, p.told, p.how = done, false, nil
	go func() {
		p.how, p.took = cmd.Wait(), time.Since(began)
		close(done)
	}()
	return nil
}

// Crashed returns an error when the process has ended and nobody told it to.
func (p *Process) Crashed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.told {
		return nil
	}
	select {
	case <-p.done:
		return fmt.Errorf("%s ended by itself, %w; its log is %s", p.Name, cmp.Or(p.how, errors.New("without an error")), p.Log)
	default:
		return nil
	}
}

// again starts a process again that has ended so, or returns how it ended if it ends at once whenever it is started.
func (p *Process) again(ended error) error {
	if p.took >= atOnce {
		p.soon = 0
	} else if p.soon++; p.soon >= mostAtOnce {
		return fmt.Errorf("%w; it ended at once %d times in a row", ended, p.soon)
	}
	return p.Start()
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill ends the process at once, as a crash would, and returns when it is gone.
func (p *Process) Kill() { p.signal(syscall.SIGKILL) }

// Stop ends the process, the hard way if it does not end in five seconds.
func (p *Process) Stop() {
	p.signal(syscall.SIGTERM)
}

func (p *Process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	select {
	case <-p.done:
		return // by itself
	default:
	}
	p.told = true
	_ = p.cmd.Process.Signal(s)
	select {
	case <-p.done:
	case <-time.After(stopWithin):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// AwaitReady returns when the process answers its readiness probe. What has ended is not ready, whoever answers at its address.
func (p *Process) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Address+"/health/readiness", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return p.Crashed()
			}
		}
		select {
		case <-p.done:
			return p.Crashed()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready; its log is %s: %w", p.Name, p.Log, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func logPath(dir, name string, replica int) string {
	if replica > 0 {
		name = fmt.Sprintf("%s-%d", name, replica)
	}
	return filepath.Join(dir, name+".log")
}
