// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd returns when etcd serves. It listens on free ports of the loopback interface; its stored membership names a
// constant address instead, which nobody dials, so that the next run may use other ports.
func startEtcd(ctx context.Context, dir string) (*embed.Etcd, error) {
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	nominal := []url.URL{{Scheme: "http", Host: "127.0.0.1:2380"}}
	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "error"
	config.ListenClientUrls, config.AdvertiseClientUrls = anyPort, nominal
	config.ListenPeerUrls, config.AdvertisePeerUrls = anyPort, nominal
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true      // data of a development cluster need not outlive a power cut
	config.EnableGRPCGateway = false // it would dial the address it was told to listen on
	config.QuotaBackendBytes = 8 << 30
	config.AutoCompactionMode, config.AutoCompactionRetention = "periodic", "5m"
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err = <-etcd.Err():
	case <-etcd.Server.StopNotify():
		err = errors.New("stopped while starting")
	case <-ctx.Done():
		err = ctx.Err()
	}
	etcd.Close()
	return nil, fmt.Errorf("etcd: %w", err)
}
