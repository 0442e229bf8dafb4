// SPDX-License-Identifier: Apache-2.0

// Command scan measures whole scans of evaluate-autoscale against a real API server: it starts a control plane, fills it
// with the objects of a workload, and has another process, as large as the function's, scan it in the shadow.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/machine-functions/machine-functions/test/bench"
	"github.com/machine-functions/machine-functions/test/local/controlplane"
)

// settings is what config/services gives the function.
var settings = []string{"GOMEMLIMIT=768MiB", "GOGC=50"}

func main() {
	workload := flag.String("workload", "test/bench/testdata/W4-5000.json.gz", "whose objects the cluster holds")
	scans := flag.Int("scans", 5, "scans after the first")
	churn := flag.Int("churn", 100, "Pods that change each second meanwhile")
	crds := flag.String("crds", "config/crd", "folder of the custom resource definitions")
	measured := flag.String("measure", "", "kubeconfig: only measure, in this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *measured != "" {
		err = measure(ctx, *measured, *scans)
	} else {
		err = run(ctx, *workload, *crds, *scans, *churn)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run fills a control plane and measures in a process of its own, while Pods change.
func run(ctx context.Context, workload, crds string, scans, churn int) error {
	w, err := bench.Load(workload)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "scan")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	plane, err := controlplane.Start(ctx, controlplane.Options{Dir: dir, Fresh: true, Progress: os.Stderr, Args: []string{
		"--kwok=false", "--apiserver-arg=--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
		// Nothing is to be cleared away because no kubelet and no ReplicaSet stands behind it.
		"--controller-manager-arg=--enable-garbage-collector=false", "--controller-manager-arg=--node-monitor-grace-period=5h",
		"--controller-manager-arg=--node-startup-grace-period=5h",
	}})
	if err != nil {
		return err
	}
	defer func() { _ = plane.Stop() }()
	began := time.Now()
	l, err := newLoader(plane.Kubeconfig)
	if err != nil {
		return err
	}
	if err := l.define(ctx, plane, crds); err != nil {
		return err
	}
	if err := l.fill(ctx, w.Snapshot()); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s: filled in %v\n", w.Name, time.Since(began).Round(time.Second))
	changing, stop := context.WithCancel(ctx)
	defer stop()
	go l.churn(changing, churn)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, self, "-measure", plane.Kubeconfig, "-scans", fmt.Sprint(scans))
	child.Env = append(os.Environ(), settings...)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	return child.Run()
}

// printed writes v as a line of JSON.
func printed(v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		fmt.Println(string(line))
	}
	return err
}
