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
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/test/ec2"
	"github.com/machine-functions/machine-functions/test/engine"
	"github.com/machine-functions/machine-functions/test/libvirtd"
	"github.com/machine-functions/machine-functions/test/local/vcenter"
	"github.com/machine-functions/machine-functions/test/openstack"
)

// diskTakes is how long a simulated host takes to be written or cleaned: long enough to be seen.
const diskTakes = "10s"

// buildCloud builds what the cloud consists of, if nobody did before, or starts it in this process.
func (s *Stack) buildCloud(ctx context.Context) error {
	switch s.options.Cloud {
	case "":
		return nil
	case "aws":
		var err error
		s.EC2, err = region(ctx)
		return err
	case "libvirt":
		s.libvirt = libvirtd.New()
		return s.libvirt.Start(ctx, nil)
	case "azure":
		return s.startAzure(ctx)
	case "openstack":
		s.say("starting OpenStack (the first time it is installed, as root: minutes)")
		var err error
		s.openstack, err = openstack.Start(ctx, s.options.Root, s.options.Progress)
		return err
	case "ovirt":
		s.engine = slow().Serve()
		return nil
	case "vsphere":
		var err error
		s.vcenter, err = vcenter.Start(ctx)
		return err
	case "metal3":
	default:
		return fmt.Errorf("unknown cloud %q: aws, azure, libvirt, metal3, openstack, ovirt, vsphere, or none", s.options.Cloud)
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

// region is us-east-2 with the masters that an installer makes; an instance starts in twenty seconds, and ends in ten.
func region(ctx context.Context) (*ec2.Region, error) {
	cloud := &ec2.Cloud{Lag: 300 * time.Millisecond, Boot: 20 * time.Second, Shutdown: 10 * time.Second}
	for i, zone := range []string{"us-east-2a", "us-east-2b", "us-east-2c"} {
		cloud.Add(zone, "c6in.2xlarge", map[string]string{
			"Name": fmt.Sprintf("cluster-8trtb-rlgsx-master-%d", i), "kubernetes.io/cluster/cluster-8trtb-rlgsx": "owned",
		})
	}
	return cloud.Serve(ctx)
}

// slow is an engine whose disks and instances take the seconds that can be seen.
func slow() *engine.Engine {
	e := engine.New()
	e.Lock, e.Boot, e.Halt = 3*time.Second, 10*time.Second, 3*time.Second
	return e
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
	credentials := corev1.Secret{}
	switch {
	case s.EC2 != nil:
		credentials.Name = "aws-cloud-credentials"
		credentials.StringData = map[string]string{
			"aws_access_key_id": "AKIAIOSFODNN7EXAMPLE", "aws_secret_access_key": "on loopback", "aws_endpoint_url": s.EC2.URL,
		}
	case s.libvirt != nil:
		uri := "qemu+tcp://" + s.libvirt.Address + "/system"
		credentials.Name, credentials.Annotations = "libvirt-credentials", map[string]string{"server": uri}
		credentials.StringData = map[string]string{"uris": uri}
	case s.azure != nil:
		credentials.Name, credentials.StringData = "azure-cloud-credentials", s.azure.Credentials
	case s.openstack != nil:
		clouds, err := s.openstack.Credentials()
		if err != nil {
			return err
		}
		credentials.Name, credentials.Data = "openstack-cloud-credentials", map[string][]byte{"clouds.yaml": clouds}
	case s.engine != nil:
		credentials.Name = "ovirt-credentials"
		credentials.StringData = map[string]string{
			"ovirt_url": s.engine.URL, "ovirt_username": engine.User, "ovirt_password": "on loopback", "ovirt_ca_bundle": string(s.engine.CA), "ovirt_insecure": "false",
		}
	case s.vcenter != nil:
		host, port, err := net.SplitHostPort(s.vcenter.Host)
		if err != nil {
			return err
		}
		credentials.Name, credentials.Annotations = "vsphere-cloud-credentials", map[string]string{"server": s.vcenter.Host}
		credentials.StringData = map[string]string{
			host + ".username": "machines@vsphere.local", host + ".password": "on loopback", host + ".port": port, host + ".ca": string(s.vcenter.CA),
		}
	default:
		return nil
	}
	userData := corev1.Secret{StringData: map[string]string{"userData": `{"ignition": {"version": "3.2.0"}}`}}
	userData.Name = "worker-user-data"
	for _, secret := range []corev1.Secret{credentials, userData} {
		secret.TypeMeta, secret.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, machine.Namespace
		text, err := json.Marshal(secret)
		if err != nil {
			return err
		}
		if err := s.ControlPlane.Apply(ctx, string(text)); err != nil {
			return err
		}
	}
	return nil
}
