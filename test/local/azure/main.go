// SPDX-License-Identifier: Apache-2.0

// Command azure plays Azure until it is told to stop. It is a program of its own because Azure's models take a minute and more to compile.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/machine-functions/machine-functions/test/arm"
)

func main() {
	dir := flag.String("dir", "", "folder for what those have to know who want to reach it: azure.json, and whom to believe, azure.pem")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx ends; an instance starts in twenty seconds, and ends in ten.
func run(ctx context.Context, dir string) error {
	if dir == "" {
		return errors.New("-dir: missing")
	}
	cloud := &arm.Cloud{Lag: 300 * time.Millisecond, Boot: 20 * time.Second, Shutdown: 10 * time.Second}
	front, err := cloud.Serve(ctx)
	if err != nil {
		return err
	}
	defer front.Stop()
	text, err := json.Marshal(map[string]any{"proxy": front.Proxy, "credentials": map[string]string{ // as OpenShift writes them
		"azure_subscription_id": arm.Subscription, "azure_tenant_id": arm.Tenant, "azure_client_id": "machines", "azure_client_secret": "on loopback",
		"azure_region": arm.Location, "azure_resourcegroup": arm.Group, "azure_resource_prefix": "cluster-fz2xk",
	}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "azure.pem"), front.CA, 0o600); err != nil {
		return err
	}
	file := filepath.Join(dir, "azure.json")
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil { // who waits for it finds it whole
		return err
	}
	<-ctx.Done()
	return nil
}
