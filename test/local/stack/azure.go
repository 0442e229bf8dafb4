// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// azure is a resource group that functions reach under Azure's own names, through a proxy: nothing tells them of another host.
type azure struct {
	process     *Process
	authority   string // whom to believe there, a file
	Proxy       string
	Credentials map[string]string
}

// startAzure builds the program that plays Azure, starts it, and returns when it serves.
func (s *Stack) startAzure(ctx context.Context) error {
	program, dir := filepath.Join(s.programs, "azure"), filepath.Join(s.options.Dir, "identities")
	s.say("building a simulated Azure (a first build takes some minutes)")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./test/local/azure")
	build.Dir = s.options.Root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build Azure: %w\n%s", err, out)
	}
	s.azure = &azure{
		authority: filepath.Join(dir, "azure.pem"),
		process:   &Process{Name: "azure", Log: logPath(s.Logs, "azure", 0), path: program, args: []string{"-dir", dir}, env: os.Environ()},
	}
	if err := s.azure.process.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		text, err := os.ReadFile(filepath.Join(dir, "azure.json"))
		if err == nil {
			return json.Unmarshal(text, s.azure)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := s.azure.process.Crashed(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("azure does not serve: %w; its log is %s", ctx.Err(), s.azure.process.Log)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// environ is the environment of functions.
func (s *Stack) environ() []string {
	if s.azure == nil {
		return os.Environ()
	}
	return append(os.Environ(), "HTTPS_PROXY="+s.azure.Proxy, "SSL_CERT_FILE="+s.azure.authority)
}
