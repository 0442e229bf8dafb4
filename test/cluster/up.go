// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	logs "k8s.io/component-base/logs/api/v1"

	"github.com/machine-functions/machine-functions/test/cluster/kubelet"
)

type upOptions struct {
	dir                                     string
	port                                    int
	fresh, kwok, untilEOF                   bool
	apiServer, controllerManager, scheduler list
}

// list is a flag that may be repeated.
type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func up(args []string) int {
	var o upOptions
	flags := flag.NewFlagSet("control-plane up", flag.ExitOnError)
	flags.StringVar(&o.dir, "dir", "control-plane", "folder of etcd's data, keys, kubeconfig; the file ready appears there")
	flags.IntVar(&o.port, "port", 0, "the API server's port on 127.0.0.1; 0 takes a free one")
	flags.BoolVar(&o.fresh, "fresh", false, "forget what an earlier run left in the folder")
	flags.BoolVar(&o.kwok, "kwok", true, "simulate the kubelets of nodes annotated kwok.x-k8s.io/node=fake")
	flags.BoolVar(&o.untilEOF, "until-eof", false, "stop when standard input ends: a parent that dies leaves nothing behind")
	flags.Var(&o.apiServer, "apiserver-arg", "a further flag for the API server (repeatable)")
	flags.Var(&o.controllerManager, "controller-manager-arg", "a further flag for the controller manager (repeatable)")
	flags.Var(&o.scheduler, "scheduler-arg", "a further flag for the scheduler (repeatable)")
	_ = flags.Parse(args) // ExitOnError
	if flags.NArg() > 0 {
		return fail(fmt.Errorf("unknown argument %q", flags.Arg(0)))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if o.untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	if err := o.run(ctx); err != nil {
		return fail(err)
	}
	return 0
}

// run returns nil when ctx ends, an error when a component breaks.
func (o upOptions) run(ctx context.Context) error {
	begin := time.Now()
	dir, err := openFolder(o.dir, o.fresh)
	if err != nil {
		return err
	}
	listener, err := listen(o.port)
	if err != nil {
		return err
	}
	server := "https://" + listener.Addr().String()
	keys, err := openKeys(filepath.Join(dir, "pki"))
	if err != nil {
		return err
	}
	p := &plane{broken: make(chan error, 1)}
	defer p.stop()
	go p.watchDisk(ctx, dir)
	if err := o.startAll(ctx, p, dir, listener, keys); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	admin := filepath.Join(dir, "kubeconfig")
	if err := writeKubeconfig(admin, keys, server, "admin"); err != nil {
		return err
	}
	ready := filepath.Join(dir, "ready")
	if err := os.WriteFile(ready, []byte(server+"\n"), 0o600); err != nil {
		return fmt.Errorf("announce readiness: %w", err)
	}
	defer func() { _ = os.Remove(ready) }()
	fmt.Printf("control plane ready in %.1f s: %s, kubeconfig %s\n", time.Since(begin).Seconds(), server, admin)
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.broken:
		return err
	}
}

func (o upOptions) startAll(ctx context.Context, p *plane, dir string, listener net.Listener, keys *keys) error {
	logs.ReapplyHandling = logs.ReapplyHandlingIgnoreUnchanged // the components share one process and its log
	server := "https://" + listener.Addr().String()
	store, err := startEtcd(ctx, filepath.Join(dir, "etcd"))
	if err != nil {
		return err
	}
	p.onStop(store.Close)
	api, err := apiServer(ctx, listener, "http://"+store.Clients[0].Addr().String(), keys, o.apiServer)
	if err != nil {
		return err
	}
	p.start(context.WithoutCancel(ctx), "kube-apiserver", api) // it stops after its clients
	config, err := keys.clientConfig(server, "control-plane")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := p.await(ctx, "kube-apiserver", func(ctx context.Context) error {
		return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}); err != nil {
		return err
	}
	controllers, err := controllerManager(ctx, dir, server, keys, o.controllerManager)
	if err != nil {
		return err
	}
	p.start(ctx, "kube-controller-manager", controllers)
	schedule, err := podScheduler(ctx, dir, server, keys, o.scheduler)
	if err != nil {
		return err
	}
	p.start(ctx, "kube-scheduler", schedule)
	if o.kwok {
		config, err := keys.clientConfig(server, "kwok")
		if err != nil {
			return err
		}
		p.start(ctx, "kwok", func(ctx context.Context) error { return kubelet.Run(ctx, config) })
	}
	return p.awaitPod(ctx, client, o.kwok)
}
