// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/util/feature"
	logs "k8s.io/component-base/logs/api/v1"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// apiServer returns the API server's main loop, which serves on the listener.
func apiServer(ctx context.Context, listener net.Listener, etcd string, keys *keys, extra []string) (func(context.Context) error, error) {
	o := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	o.SecureServing.Listener = listener
	args := []string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(listener.Addr().(*net.TCPAddr).Port),
		"--tls-cert-file=" + keys.file("server.crt"), "--tls-private-key-file=" + keys.file("server.key"),
		"--client-ca-file=" + keys.file("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + keys.file("sa.key"), "--service-account-signing-key-file=" + keys.file("sa.key"),
		"--authorization-mode=Node,RBAC",
		"--service-cluster-ip-range=172.30.0.0/16", // OpenShift's default
		"--endpoint-reconciler-type=none",          // a loopback address is no valid endpoint
		"--storage-media-type=application/vnd.kubernetes.protobuf",
		// One user on one machine: queues would only delay.
		"--enable-priority-and-fairness=false", "--max-requests-inflight=0", "--max-mutating-requests-inflight=0",
	}
	if err := flags.Parse(append(args, extra...)); err != nil {
		return nil, fmt.Errorf("kube-apiserver flags: %w", err)
	}
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("kube-apiserver features: %w", err)
	}
	if err := logs.ValidateAndApply(o.Logs, feature.DefaultFeatureGate); err != nil {
		return nil, fmt.Errorf("kube-apiserver logs: %w", err)
	}
	completed, err := o.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("kube-apiserver options: %w", errors.Join(errs...))
	}
	return func(ctx context.Context) error { return apiserver.Run(ctx, completed) }, nil
}
