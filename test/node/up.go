// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// withNode runs the command on a node that it brings up. Everything ends with this process.
func withNode(ctx context.Context, o options) error {
	n := &node{options: o, began: time.Now(), ended: make(chan error, 1)}
	for _, step := range []func(context.Context) error{
		func(context.Context) error { return furnish() }, n.layOut, n.network, n.runtime, n.controlPlaneUp, n.kubeletUp, n.knativeUp,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	n.say("the node is ready; running %s", strings.Join(o.command, " "))
	c := exec.CommandContext(ctx, o.command[0], o.command[1:]...)
	c.Env = append(os.Environ(), n.environment()...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 30 * time.Second
	return c.Run()
}

// layOut makes empty folders and the configuration.
func (n *node) layOut(context.Context) error {
	for _, name := range []string{"cluster", "containerd", "registry", "logs", "etc"} {
		if err := os.RemoveAll(filepath.Join(n.dir, name)); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(n.dir, name), 0o700); err != nil {
			return err
		}
	}
	if err := writeKeys(filepath.Join(n.dir, "cluster", "pki")); err != nil {
		return err
	}
	return writeEtc(n.dir)
}

// network gives the node an address. There is no way out of its network namespace.
func (n *node) network(ctx context.Context) error {
	for _, command := range []string{
		"ip link set lo up", "ip link add node0 type bridge", "ip address add " + nodeAddress + "/24 dev node0", "ip link set node0 up",
		"ip route add default dev node0", "sysctl -qw net.ipv4.ip_forward=1",
	} {
		words := strings.Fields(command)
		if err := run(ctx, words[0], words[1:]...); err != nil {
			return err
		}
	}
	// Where bridges can be filtered, services reach pods of the same node only if they are.
	_ = run(ctx, "sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=1")
	return nil
}

// runtime starts the registry and containerd, and makes the pause image.
func (n *node) runtime(ctx context.Context) error {
	if err := serveRegistry(filepath.Join(n.dir, "registry")); err != nil {
		return err
	}
	if _, err := push(ctx, "pause:1", filepath.Join(n.own, "pause"), nobody); err != nil {
		return err
	}
	if err := n.start("containerd", "containerd", "--config", filepath.Join(n.dir, "etc", "containerd.toml")); err != nil {
		return err
	}
	return n.await(ctx, "containerd runs", time.Minute, func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "unix", "/run/containerd/containerd.sock")
		if err == nil {
			err = connection.Close()
		}
		return err
	})
}

// controlPlaneUp starts the control plane of test/cluster, which simulates kubelets as well.
func (n *node) controlPlaneUp(ctx context.Context) error {
	args := []string{"up", "--dir", filepath.Join(n.dir, "cluster"), "--port", fmt.Sprint(apiPort), "--controller-manager-arg=--controllers=*"}
	for _, flag := range []string{
		"--advertise-address=" + nodeAddress, "--endpoint-reconciler-type=lease", "--kubelet-preferred-address-types=InternalIP",
		"--audit-policy-file=" + filepath.Join(n.dir, "etc", "audit.yaml"), "--audit-log-path=" + filepath.Join(n.dir, "logs", "audit.log"),
	} {
		args = append(args, "--apiserver-arg="+flag)
	}
	if err := n.start("control-plane", n.controlPlane, args...); err != nil {
		return err
	}
	if err := n.await(ctx, "the control plane works", 4*time.Minute, func(context.Context) error {
		_, err := os.Stat(filepath.Join(n.dir, "cluster", "ready"))
		return err
	}); err != nil {
		return err
	}
	return forward(nodeAddress, apiPort)
}

// forward lets pods reach the API server, which listens on loopback.
func forward(address string, port int) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, fmt.Sprint(port)))
	if err != nil {
		return err
	}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				to, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port))) //nolint:noctx // of this machine
				if err != nil {
					_ = from.Close()
					return
				}
				go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
				_, _ = io.Copy(from, to)
				_ = from.Close()
			}()
		}
	}()
	return nil
}

// kubeletUp makes the machine a node and waits until it is Ready.
func (n *node) kubeletUp(ctx context.Context) error {
	kubeconfig := filepath.Join(n.dir, "cluster", "kubeconfig")
	if err := n.start("kubelet", filepath.Join(n.programs, "kubelet"), "--config="+filepath.Join(n.dir, "etc", "kubelet.yaml"), "--kubeconfig="+kubeconfig,
		"--hostname-override="+nodeName, "--node-ip="+nodeAddress, "--node-labels=machine-functions.dev/real=true", "--cert-dir=/run/kubelet"); err != nil {
		return err
	}
	if err := n.start("kube-proxy", filepath.Join(n.programs, "kube-proxy"), "--config="+filepath.Join(n.dir, "etc", "kube-proxy.yaml")); err != nil {
		return err
	}
	return n.await(ctx, "kubelet says that the node is Ready", 3*time.Minute, func(ctx context.Context) error {
		out, err := n.kubectl(ctx, "", "get", "node", nodeName, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && out != "True" {
			err = errors.New("Ready is " + out)
		}
		return err
	})
}

// pushAll pushes the images of what Knative consists of, by import path.
func (n *node) pushAll(ctx context.Context) (map[string]string, error) {
	programs := map[string]string{"coredns": filepath.Join(n.programs, "coredns"), "ingress": filepath.Join(n.own, "ingress")}
	for _, path := range []string{
		"eventing/cmd/controller", "eventing/cmd/webhook", "eventing/cmd/mtchannel_broker", "eventing/cmd/apiserver_receive_adapter", "eventing/cmd/mtping",
		"eventing/cmd/broker/ingress", "eventing/cmd/broker/filter", "eventing/cmd/in_memory/channel_controller", "eventing/cmd/in_memory/channel_dispatcher",
		"serving/cmd/controller", "serving/cmd/webhook", "serving/cmd/autoscaler", "serving/cmd/activator", "serving/cmd/queue",
	} {
		part, _, _ := strings.Cut(path, "/")
		programs["knative.dev/"+path] = filepath.Join(n.programs, part, filepath.Base(path))
	}
	images := map[string]string{}
	for name, program := range programs {
		user, repository := nobody, strings.ReplaceAll(strings.TrimPrefix(name, "knative.dev/"), "/cmd/", "/")
		if name == "coredns" {
			user = "0:0" // it listens on port 53
		}
		image, err := push(ctx, repository, program, user)
		if err != nil {
			return nil, err
		}
		images[name] = image
	}
	return images, nil
}

// knativeUp installs DNS, Eventing and Serving and waits until all of it is Available.
func (n *node) knativeUp(ctx context.Context) error {
	images, err := n.pushAll(ctx)
	if err != nil {
		return err
	}
	n.say("pushed %d images", len(images))
	install := filepath.Join(n.dir, "etc", "install")
	config := filepath.Join(n.programs, "config")
	channel, broker := filepath.Join(config, "eventing/config/channels/in-memory-channel"), filepath.Join(config, "eventing/config/brokers/mt-channel-broker")
	for _, stage := range []struct {
		name  string
		paths []string
	}{
		{"dns", []string{filepath.Join(install, "placement.yaml"), filepath.Join(install, "dns.yaml")}},
		{"eventing", []string{filepath.Join(config, "eventing/config/core"), filepath.Join(install, "eventing-images.yaml"), channel, broker}},
		{"serving", []string{filepath.Join(config, "caching/config"), filepath.Join(config, "networking/config"), filepath.Join(config, "serving/config/core"), filepath.Join(install, "ingress.yaml")}},
	} {
		text, err := render(images, stage.paths...)
		if err != nil {
			return err
		}
		file := filepath.Join(n.dir, "logs", stage.name+".yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
		// Kinds are served a moment after their definitions, webhooks answer once their pods run: again until all is in.
		if err := n.await(ctx, stage.name+" is applied", 4*time.Minute, func(ctx context.Context) error {
			_, err := n.kubectl(ctx, "", "apply", "--server-side", "--force-conflicts", "-f", file)
			return err
		}); err != nil {
			return err
		}
	}
	var g errgroup.Group
	for _, namespace := range []string{"kube-system", "knative-eventing", "knative-serving"} {
		g.Go(func() error {
			return n.await(ctx, "all of "+namespace+" is Available", 6*time.Minute, func(ctx context.Context) error {
				_, err := n.kubectl(ctx, "", "-n", namespace, "wait", "--for=condition=Available", "deployment", "--all", "--timeout=10s")
				return err
			})
		})
	}
	return g.Wait()
}
