// SPDX-License-Identifier: Apache-2.0

// Command scan measures whole scans of evaluate-autoscale, with the objects of a workload as an API server encodes them: it
// has another process, set as the function's is, scan them in the shadow. They come from a server of its own, which answers
// as an API server does, or with -real from a control plane that it starts and fills.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/machine-functions/machine-functions/test/bench"
	"github.com/machine-functions/machine-functions/test/local/controlplane"
)

// settings is what config/services gives the function.
var settings = []string{"GOMEMLIMIT=440MiB", "GOGC=50"}

func main() {
	workload := flag.String("workload", "test/bench/testdata/W4-5000.json.gz", "whose objects the cluster holds")
	scans := flag.Int("scans", 5, "scans after the first")
	churn := flag.Int("churn", 100, "Pods that change each second meanwhile")
	crds := flag.String("crds", "config/crd", "folder of the custom resource definitions")
	realServer := flag.Bool("real", false, "ask a real API server, which is filled first: minutes on a quiet machine")
	measured := flag.String("measure", "", "kubeconfig, or address of a server: only measure, in this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *measured != "":
		err = measure(ctx, *measured, *scans)
	case *realServer:
		err = run(ctx, *workload, *crds, *scans, *churn)
	default:
		err = serve(ctx, *workload, *scans, *churn)
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
	return scanned(ctx, plane.Kubeconfig, scans)
}

// serve answers as an API server does, while Pods and Nodes change, and measures in a process of its own.
func serve(ctx context.Context, workload string, scans, churn int) error {
	w, err := bench.Load(workload)
	if err != nil {
		return err
	}
	a, err := newAPI(alive(w.Snapshot()))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: a, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // until this process ends
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			time.Sleep(time.Second)
			a.change("Pod", i*churn*7, 7, churn)
			a.change("Node", i*17, 1, 17) // each reports every five minutes
		}
	}()
	return scanned(ctx, "http://"+listener.Addr().String(), scans)
}

// scanned measures in a process as the function's is set.
func scanned(ctx context.Context, server string, scans int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, self, "-measure", server, "-scans", fmt.Sprint(scans))
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
