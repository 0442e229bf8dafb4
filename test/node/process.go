// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// node is what runs here.
type node struct {
	options
	began time.Time
	ended chan error // the first part that ended by itself
}

func (n *node) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "node: %5.1fs  %s\n", time.Since(n.began).Seconds(), fmt.Sprintf(format, args...))
}

// start starts a part of the node, which logs to logs/name.log and ends with the node.
func (n *node) start(name, program string, args ...string) error {
	log, err := os.Create(filepath.Join(n.dir, "logs", name+".log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()  // the process has its own
	c := exec.Command(program, args...) //nolint:noctx // it outlives whoever starts it
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		err := c.Wait()
		select {
		case n.ended <- fmt.Errorf("%s ended by itself (%w); its log is %s", name, err, log.Name()):
		default: // the first one is the cause
		}
	}()
	return nil
}

// await asks until ready answers nil, a part of the node ends or the time is up.
func (n *node) await(ctx context.Context, what string, within time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			n.say("%s", what)
			return nil
		}
		select {
		case ended := <-n.ended:
			return ended
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %s: %w", within, what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// run runs a command to its end. Its complaint becomes the error.
func run(ctx context.Context, program string, args ...string) error {
	_, err := output(exec.CommandContext(ctx, program, args...))
	return err
}

func output(c *exec.Cmd) (string, error) {
	var out, complaint bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaint
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// kubectl runs kubectl as the administrator.
func (n *node) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, n.controlPlane, append([]string{"kubectl"}, args...)...)
	c.Env = append(os.Environ(), n.environment()...)
	c.Stdin = strings.NewReader(stdin)
	return output(c)
}

// environment is what the command finds its way by.
func (n *node) environment() []string {
	cluster := filepath.Join(n.dir, "cluster")
	return []string{
		"KUBECONFIG=" + filepath.Join(cluster, "kubeconfig"),
		"KUBECACHEDIR=" + filepath.Join(cluster, "kubectl-cache"),
		"CONTROL_PLANE=" + n.controlPlane,
		"CONTROL_PLANE_DIR=" + cluster,
		"REGISTRY=" + registryHost + "/machine-functions",
		"NODE_LOGS=" + filepath.Join(n.dir, "logs"),
	}
}
