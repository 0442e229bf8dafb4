// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Command is kubectl with the administrator's rights, ready to run. It leaves no cache in the user's home.
func (c *ControlPlane) Command(ctx context.Context, args ...string) *exec.Cmd {
	kubectl := exec.CommandContext(ctx, c.Binary, append([]string{"kubectl"}, choosing(c.nodes, args)...)...)
	kubectl.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "KUBECACHEDIR="+filepath.Join(c.Dir, "kubectl-cache"))
	return kubectl
}

// Kubectl runs kubectl and returns what it prints, without surrounding space. Its complaint becomes the error.
func (c *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
	return output(c.Command(ctx, args...))
}

// Apply runs kubectl apply on a manifest.
func (c *ControlPlane) Apply(ctx context.Context, manifest string) error {
	kubectl := c.Command(ctx, "apply", "-f", "-")
	kubectl.Stdin = strings.NewReader(manifest)
	_, err := output(kubectl)
	return err
}

// InstallAPI applies the custom resource definitions of a folder with a kustomization, and waits until they are served.
func (c *ControlPlane) InstallAPI(ctx context.Context, folder string) error {
	if _, err := c.Kubectl(ctx, "apply", "-k", folder); err != nil {
		return err
	}
	_, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	return err
}

// UserKubeconfig returns a kubeconfig that authenticates as the user, member of the groups, with a client certificate. The
// user system:serviceaccount:NAMESPACE:NAME has exactly the rights that RBAC gives to that ServiceAccount.
func (c *ControlPlane) UserKubeconfig(ctx context.Context, user string, groups ...string) ([]byte, error) {
	args := []string{"kubeconfig", "--dir=" + c.Dir, "--user=" + user}
	for _, group := range groups {
		args = append(args, "--group="+group)
	}
	config, err := output(exec.CommandContext(ctx, c.Binary, args...))
	return []byte(config + "\n"), err
}

func output(command *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command.Args[1:], " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
