// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// restartDelay keeps a process that dies at once from spinning.
const restartDelay = time.Second

// process is one program to keep running.
type process struct {
	name string // also the name of its log file
	path string
	args []string
	env  []string // beside the environment of this process
}

// supervisor keeps processes running until its context ends; then they are killed.
type supervisor struct {
	logs    string
	running sync.WaitGroup

	mu   sync.Mutex
	pids map[string]int
}

// start runs p, again whenever it ends, until the context ends or the returned function is called.
func (s *supervisor) start(ctx context.Context, p process) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	s.running.Go(func() {
		defer close(done)
		// The children are told when the thread that started them ends (see dieWithParent), so it must not end before they do.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for ctx.Err() == nil {
			err := s.run(ctx, p)
			if ctx.Err() != nil {
				return
			}
			slog.Warn("process ended, starting it again", "process", p.name, "log", s.logFile(p.name), "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(restartDelay):
			}
		}
	})
	return func() {
		cancel()
		<-done
	}
}

func (s *supervisor) run(ctx context.Context, p process) error {
	log, err := os.OpenFile(s.logFile(p.name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = dieWithParent()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.mu.Lock()
	s.pids[p.name] = cmd.Process.Pid
	s.mu.Unlock()
	if err := cmd.Wait(); err != nil {
		return err
	}
	return errors.New("exit status 0")
}

func (s *supervisor) logFile(name string) string { return filepath.Join(s.logs, name+".log") }

// processes returns the process ids by name.
func (s *supervisor) processes() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	pids := make(map[string]int, len(s.pids))
	for name, pid := range s.pids {
		pids[name] = pid
	}
	return pids
}
