// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/test/local/vcenter"
)

// diskTakes is how long a simulated host takes to be written or cleaned: long enough to be seen.
const diskTakes = "10s"

// buildCloud builds what the cloud consists of, if nobody did before, or starts it in this process.
func (s *Stack) buildCloud(ctx context.Context) error {
	switch s.options.Cloud {
	case "":
		return nil
	case "vsphere":
		var err error
		s.vcenter, err = vcenter.Start(ctx)
		return err
	case "metal3":
	default:
		return fmt.Errorf("unknown cloud %q: metal3, vsphere, or none", s.options.Cloud)
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
	if s.options.Cloud == "" {
		return nil
	}
	kubelets := &Process{
		Name: "kubelets", Log: logPath(s.Logs, "kubelets", 0), path: filepath.Join(s.programs, "kubemark"),
		args: []string{"-kubeconfig", s.ControlPlane.Kubeconfig, "-machines", machine.Namespace}, env: os.Environ(),
	}
	if s.metal3 == "" {
		return []*Process{kubelets}
	}
	return []*Process{kubelets, {
		Name: "baremetal-operator", Log: logPath(s.Logs, "baremetal-operator", 0), path: filepath.Join(s.metal3, "baremetal-operator"),
		args: []string{
			"-test-mode", "-namespace", machine.Namespace, "-webhook-port", "0", "-metrics-addr", "127.0.0.1:0", "-health-addr", "127.0.0.1:0",
			"-kube-api-qps", "200", "-kube-api-burst", "400",
		},
		env: append(os.Environ(), "KUBECONFIG="+s.ControlPlane.Kubeconfig, "POD_NAMESPACE="+machine.Namespace, "FIXTURE_DELAY="+diskTakes),
	}}
}

// enter gives the functions the cloud's credentials, and its instances their user data.
func (s *Stack) enter(ctx context.Context) error {
	if s.vcenter == nil {
		return nil
	}
	host, _, err := net.SplitHostPort(s.vcenter.Host)
	if err != nil {
		return err
	}
	secrets := []corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Name: "vsphere-cloud-credentials", Annotations: map[string]string{"server": s.vcenter.Host}}, StringData: map[string]string{
			host + ".username": "machines@vsphere.local", host + ".password": "on loopback", host + ".ca": string(s.vcenter.CA),
		}},
		{ObjectMeta: metav1.ObjectMeta{Name: "worker-user-data"}, StringData: map[string]string{"userData": `{"ignition": {"version": "3.2.0"}}`}},
	}
	for i := range secrets {
		secrets[i].TypeMeta, secrets[i].Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, machine.Namespace
		text, err := json.Marshal(secrets[i])
		if err != nil {
			return err
		}
		if err := s.ControlPlane.Apply(ctx, string(text)); err != nil {
			return err
		}
	}
	return nil
}
