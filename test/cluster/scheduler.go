// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// podScheduler returns the scheduler's main loop.
func podScheduler(ctx context.Context, dir, server string, keys *keys, extra []string) (func(context.Context) error, error) {
	args, err := clientFlags(filepath.Join(dir, "pki"), "kube-scheduler", server, keys)
	if err != nil {
		return nil, err
	}
	o := options.NewOptions()
	flags := pflag.NewFlagSet("kube-scheduler", pflag.ContinueOnError)
	for _, set := range o.Flags.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(append(args, extra...)); err != nil {
		return nil, fmt.Errorf("kube-scheduler flags: %w", err)
	}
	config, schedule, err := scheduler.Setup(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("kube-scheduler options: %w", err)
	}
	return func(ctx context.Context) error { return scheduler.Run(ctx, config, schedule) }, nil
}
