// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// install applies what a real cluster gets from config/, but for the Knative Services, which run here as processes.
func (s *Stack) install(ctx context.Context) error {
	config := filepath.Join(s.options.Root, "config")
	infrastructure := filepath.Join(config, "samples", s.options.Cloud, "infrastructure.yaml")
	if _, err := os.Stat(infrastructure); err != nil { // the cloud's is that of the walk-through
		infrastructure = filepath.Join(config, "samples", "infrastructure.yaml")
	}
	steps := [][]string{
		{"apply", "-f", filepath.Join(config, "namespace.yaml")},
		{"apply", "-k", filepath.Join(config, "crd")},
		{"wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"},
		{"apply", "-k", filepath.Join(config, "rbac")},
		{"apply", "-k", filepath.Join(config, "overlays", "kubemark")},
		{"apply", "-k", filepath.Join(config, "policy")},
		{"apply", "-k", filepath.Join(config, "network")},
		{"apply", "-f", infrastructure},
		{"apply", "-f", infrastructure, "--server-side", "--subresource", "status"},
	}
	for _, args := range append(s.cloudsAPI(), steps...) {
		if out, err := s.Kubectl(ctx, args...); err != nil {
			return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return s.enter(ctx)
}

// identity returns the path of a kubeconfig that acts as a service account: functions have no more rights here than
// in a cluster.
func (s *Stack) identity(ctx context.Context, namespace, account string) (string, error) {
	token, err := s.Kubectl(ctx, "create", "token", account, "--namespace", namespace, "--duration", "24h")
	if err != nil {
		return "", fmt.Errorf("token for %s: %w", account, err)
	}
	config, err := clientcmd.LoadFromFile(s.ControlPlane.Kubeconfig)
	if err != nil {
		return "", err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: strings.TrimSpace(token)}
	}
	path := filepath.Join(s.options.Dir, "identities", account)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, clientcmd.WriteToFile(*config, path)
}
