// SPDX-License-Identifier: Apache-2.0

// Command ingress is the smallest ingress that Knative Serving can work with: a reverse proxy that follows KIngress objects
// of its class. It is for tests: one replica, plain HTTP, names inside the cluster only.
package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, os.Getenv("ADDRESS_IN_CLUSTER")); err != nil {
		slog.Error("ingress ended", "error", err)
		os.Exit(1)
	}
}

// serve proxies until ctx ends; self is the name under which the cluster reaches this process.
func serve(ctx context.Context, self string) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	var routes routes
	if err := follow(ctx, client, self, &routes); err != nil {
		return err
	}
	proxy := &httputil.ReverseProxy{
		Transport:     &http.Transport{DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, MaxIdleConnsPerHost: 100, IdleConnTimeout: 5 * time.Second},
		FlushInterval: -1,
		Rewrite:       func(*httputil.ProxyRequest) {}, // the handler below has done it
	}
	server := &http.Server{Addr: ":8080", ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !routes.direct(r) {
			http.Error(w, "no KIngress has a rule for "+r.Host+r.URL.Path, http.StatusNotFound)
			return
		}
		proxy.ServeHTTP(w, r)
	})}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}
