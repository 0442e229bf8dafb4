// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// diskTakes is how long a simulated host takes to be written or cleaned: long enough to be seen.
const diskTakes = "10s"

// buildCloud builds what the cloud consists of, if nobody did before.
func (s *Stack) buildCloud(ctx context.Context) error {
	switch s.options.Cloud {
	case "":
		return nil
	case "metal3":
	default:
		return fmt.Errorf("unknown cloud %q: metal3, or none", s.options.Cloud)
	}
	build := exec.CommandContext(ctx, filepath.Join(s.options.Root, "test", "metal3", "build.sh"))
	build.Stderr = s.options.Progress
	out, err := build.Output()
	if err != nil {
		return fmt.Errorf("build the baremetal-operator: %w", err)
	}
	s.metal3 = strings.TrimSpace(string(out))
	return nil
}

// cloudsAPI are the steps that install what the cloud's objects are.
func (s *Stack) cloudsAPI() [][]string {
	if s.metal3 == "" {
		return nil
	}
	return [][]string{{"apply", "--server-side", "-f", filepath.Join(s.metal3, "crd")}}
}

// cloud returns the processes of the cloud, with that which plays the kubelets of its instances. They are no functions,
// and act as the administrator.
func (s *Stack) cloud() []*Process {
	if s.metal3 == "" {
		return nil
	}
	return []*Process{{
		Name: "baremetal-operator", Log: logPath(s.Logs, "baremetal-operator", 0), path: filepath.Join(s.metal3, "baremetal-operator"),
		args: []string{
			"-test-mode", "-namespace", machine.Namespace, "-webhook-port", "0", "-metrics-addr", "127.0.0.1:0", "-health-addr", "127.0.0.1:0",
			"-kube-api-qps", "200", "-kube-api-burst", "400",
		},
		env: append(os.Environ(), "KUBECONFIG="+s.ControlPlane.Kubeconfig, "POD_NAMESPACE="+machine.Namespace, "FIXTURE_DELAY="+diskTakes),
	}, {
		Name: "kubelets", Log: logPath(s.Logs, "kubelets", 0), path: filepath.Join(s.programs, "kubemark"),
		args: []string{"-kubeconfig", s.ControlPlane.Kubeconfig, "-machines", machine.Namespace}, env: os.Environ(),
	}}
}
