// SPDX-License-Identifier: Apache-2.0

// Command control-plane is a Kubernetes control plane in one binary, for development and tests.
//
//	control-plane up [flags]           everything in one process: etcd, API server, controllers, scheduler, simulated kubelets
//	control-plane kubeconfig [flags]   a kubeconfig for any user of a control plane started by up
//	control-plane <component> [flags]  the component as its own project ships it
//
// A component is also chosen by the name that the binary is called by, so that symlinks named etcd, kube-apiserver and
// kubectl make a folder of test binaries. README.md says how its nodes and pods are steered.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the components' client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var commands = map[string]func(args []string) int{
	"up":                      up,
	"kubeconfig":              kubeconfig,
	"etcd":                    func([]string) int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          func([]string) int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func([]string) int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func([]string) int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kubectl":                 runKubectl,
}

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	if commands[name] == nil && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	run := commands[name]
	if run == nil {
		fmt.Fprintln(os.Stderr, "usage: control-plane up|kubeconfig|etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubectl [flags]")
		os.Exit(2)
	}
	os.Args = append([]string{name}, args...) // the components read it
	os.Exit(run(args))
}

func runKubectl([]string) int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "control-plane:", err)
	return 1
}
