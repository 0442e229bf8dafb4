// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Build returns the path of the control plane's binary. The first call on a machine compiles Kubernetes, for minutes, and
// reports to progress; later calls take a fraction of a second.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	script, err := findScript()
	if err != nil {
		return "", fmt.Errorf("build control plane: %w", err)
	}
	build := exec.CommandContext(ctx, script)
	var said bytes.Buffer
	build.Stderr = &said
	if progress != nil {
		build.Stderr = io.MultiWriter(&said, progress)
	}
	build.Cancel = func() error { return build.Process.Signal(syscall.SIGTERM) } // the script ends its compiler
	build.WaitDelay = 5 * time.Second
	path, err := build.Output()
	if err != nil {
		return "", fmt.Errorf("build control plane: %w: %s", err, lastLine(said.String()))
	}
	return strings.TrimSpace(string(path)), nil
}

// findScript looks in the working directory and the folders above it, so that it works in every package's tests.
func findScript() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		script := filepath.Join(dir, "test", "cluster", "build.sh")
		if _, err := os.Stat(script); err == nil {
			return script, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("test/cluster/build.sh is in no folder above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "control-plane: ")
}
