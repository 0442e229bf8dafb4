// SPDX-License-Identifier: Apache-2.0

// Package main is CoreDNS with the plugins that a cluster's own names need, and no other: it forwards nothing.
package main

import (
	"github.com/coredns/coredns/coremain"

	// Plugins register themselves; the Corefile chooses among them.
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() { coremain.Run() }
