// SPDX-License-Identifier: Apache-2.0

// Command kubemark plays the kubelets of simulated instances until it is told to stop.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/machine-functions/machine-functions/test/local/simulator"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "of whoever may write Nodes and the records; default: the pod's own account")
	machines := flag.String("machines", "", "a namespace: plays for its Machines, whichever cloud they are of, instead of for the records")
	flag.Parse()
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *machines, log); err != nil {
		log.Error("simulator cannot start", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, machines string, log *slog.Logger) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	if machines != "" {
		s, err := simulator.NewMachines(config, machines, log)
		if err != nil {
			return err
		}
		s.Run(ctx)
		return nil
	}
	s, err := simulator.New(config, log)
	if err != nil {
		return err
	}
	s.Run(ctx)
	return nil
}
