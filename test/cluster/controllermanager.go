// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
)

// controllers are those that pods, nodes and access rights need; volumes, addresses and autoscaling of pods stay off.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"daemonset-controller",
	"deployment-controller",
	"disruption-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"node-lifecycle-controller",
	"pod-garbage-collector-controller",
	"replicaset-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"statefulset-controller",
	"taint-eviction-controller",
	"ttl-after-finished-controller",
}

// controllerManager returns the controller manager's main loop.
func controllerManager(ctx context.Context, dir, server string, keys *keys, extra []string) (func(context.Context) error, error) {
	client, err := clientFlags(filepath.Join(dir, "pki"), "kube-controller-manager", server, keys)
	if err != nil {
		return nil, err
	}
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("kube-controller-manager options: %w", err)
	}
	flags := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	all, off, aliases := controllermanager.KnownControllers(), controllermanager.ControllersDisabledByDefault(), controllermanager.ControllerAliases()
	sets := o.Flags(all, off, aliases)
	o.ParsedFlags = &sets
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	args := append(client,
		"--controllers="+strings.Join(controllers, ","),
		"--service-account-private-key-file="+keys.file("sa.key"), "--root-ca-file="+keys.file("ca.crt"),
		"--concurrent-job-syncs=10",
		"--node-monitor-period=2s", "--node-monitor-grace-period=40s", // a stopped kubelet shows within 42 s
	)
	if err := flags.Parse(append(args, extra...)); err != nil {
		return nil, fmt.Errorf("kube-controller-manager flags: %w", err)
	}
	config, err := o.Config(ctx, all, off, aliases)
	if err != nil {
		return nil, fmt.Errorf("kube-controller-manager options: %w", err)
	}
	return func(ctx context.Context) error { return controllermanager.Run(ctx, config.Complete()) }, nil
}

// clientFlags are the flags that a client of the API server needs, among them a kubeconfig that is written here.
func clientFlags(dir, name, server string, keys *keys) ([]string, error) {
	path := filepath.Join(dir, name+".kubeconfig")
	if err := writeKubeconfig(path, keys, server, "system:"+name); err != nil {
		return nil, err
	}
	return []string{
		"--kubeconfig=" + path, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=2000", "--kube-api-burst=4000",
	}, nil
}
