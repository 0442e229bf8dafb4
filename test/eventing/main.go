// SPDX-License-Identifier: Apache-2.0

// Command eventing runs Knative Eventing on an API server that has no kubelet: Knative's own programs as processes on loopback, their
// Deployments read for how to start them, their requests taken to
// loopback addresses in the place of cluster DNS. It reconciles the manifests of a kustomization.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// namespace is where the functions are.
const namespace = "openshift-machine-api"

// startTimeout is several times what a start takes on two busy cores; removeTimeout what finalizers take.
const (
	startTimeout  = 3 * time.Minute
	removeTimeout = time.Minute
)

// readyFile appears in the folder once events flow.
const readyFile = "ready"

type options struct {
	kubeconfig string
	manifests  string
	dir        string
	services   map[string][]string
	fastStop   bool
	untilEOF   bool
}

func main() {
	o := options{services: map[string][]string{}}
	flag.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of an administrator")
	flag.StringVar(&o.manifests, "manifests", "triggers", "folder of the kustomization to apply")
	flag.StringVar(&o.dir, "dir", "eventing", "folder for logs, kubeconfigs and the file `ready`")
	flag.BoolVar(&o.fastStop, "fast-stop", false, "leave the Knative objects behind: the API server stops too")
	flag.BoolVar(&o.untilEOF, "until-eof", false, "stop when standard input ends: a parent that dies leaves nothing behind")
	flag.Func("service", "a function and where its replicas listen, `name=address,address`; repeat for each function", func(s string) error {
		name, addresses, ok := strings.Cut(s, "=")
		if !ok || addresses == "" {
			return fmt.Errorf("%q is not name=address,address", s)
		}
		o.services[name] = strings.Split(addresses, ",")
		return nil
	})
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if o.untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	if err := run(ctx, o); err != nil {
		slog.Error("eventing ended", "error", err)
		os.Exit(1)
	}
}

// run starts everything, says so in the file `ready`, and stops everything when the context ends.
func run(ctx context.Context, o options) error {
	programs, err := os.Executable()
	if err != nil {
		return err
	}
	programs = filepath.Dir(programs)
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(o.dir, readyFile)); err != nil {
		return err
	}
	c, err := connect(o.kubeconfig)
	if err != nil {
		return err
	}
	manifests, err := readKustomization(os.DirFS(o.manifests))
	if err != nil {
		return err
	}
	addresses, release, err := holdAddresses(3)
	if err != nil {
		return err
	}
	defer release()
	ends := endpoints{dispatcher: addresses[0], ingress: addresses[1], filter: addresses[2]}
	// Stopping is the end of alive, not of ctx: the controllers must outlive the objects that they finalize.
	alive, kill := context.WithCancel(context.WithoutCancel(ctx))
	s := &supervisor{logs: o.dir, pids: map[string]int{}}
	defer s.running.Wait()
	defer kill()
	names, err := json.Marshal(serviceAddresses(o.services, ends))
	if err != nil {
		return err
	}
	began := time.Now()
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	start := starter{cluster: c, supervisor: s, options: o, programs: programs, names: string(names), ends: ends}
	if err := start.all(starting, alive, manifests); err != nil {
		if ctx.Err() != nil {
			return nil // told to stop meanwhile
		}
		return err
	}
	if err := writeReady(o.dir, ends, s.processes()); err != nil {
		return err
	}
	slog.Info("eventing is ready", "took", time.Since(began).Round(10*time.Millisecond).String())
	<-ctx.Done()
	if o.fastStop {
		return nil
	}
	removing, cancel := context.WithTimeout(alive, removeTimeout)
	defer cancel()
	return c.remove(removing, knative(manifests))
}

// endpoints are the loopback addresses of Knative's servers.
type endpoints struct{ dispatcher, ingress, filter string }

// serviceAddresses returns where every Service is, by "name.namespace", and all in-memory channels as one.
func serviceAddresses(functions map[string][]string, ends endpoints) map[string][]string {
	services := map[string][]string{
		"broker-ingress.knative-eventing": {ends.ingress},
		"broker-filter.knative-eventing":  {ends.filter},
		"kn-channel":                      {ends.dispatcher},
	}
	for name, addresses := range functions {
		services[name+"."+namespace] = addresses
	}
	return services
}

// writeReady writes the file whose existence says that events flow; it tells where the Broker takes events and which processes run.
func writeReady(dir string, ends endpoints, processes map[string]int) error {
	content, err := json.Marshal(map[string]any{
		"broker":    "http://" + ends.ingress + "/" + namespace + "/machines",
		"processes": processes,
	})
	if err != nil {
		return err
	}
	temporary := filepath.Join(dir, ".ready")
	if err := os.WriteFile(temporary, content, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, readyFile))
}
