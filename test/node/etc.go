// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"
)

// Addresses of the node. Nothing else is in its network namespace, so they cannot collide with anything.
const (
	nodeName       = "node"
	nodeAddress    = "10.200.0.1"
	podNetwork     = "10.244.0.0/24"
	serviceAddress = "172.30.0.1"  // of the API server; the first of test/cluster's service network
	dnsAddress     = "172.30.0.10" // as everywhere, the tenth
	apiPort        = 6443
	registryHost   = "127.0.0.1:5000"
)

//go:embed etc install
var files embed.FS

// settings fill the files of etc.
type settings struct{ Dir, Name, Address, DNS, PodNetwork, Registry, Plugins string }

// writeEtc writes the configuration files and the manifests of this module into dir/etc.
func writeEtc(dir string) error {
	s := settings{dir, nodeName, nodeAddress, dnsAddress, podNetwork, registryHost, pluginFolder()}
	for from, to := range map[string]string{
		"containerd.toml": "containerd.toml", "kubelet.yaml": "kubelet.yaml", "kube-proxy.yaml": "kube-proxy.yaml",
		"network.conflist": "network/10-pods.conflist", "audit.yaml": "audit.yaml", "hosts.toml": "registries/" + registryHost + "/hosts.toml",
	} {
		t, err := template.ParseFS(files, "etc/"+from)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, "etc", to)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := t.Execute(file, s); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	manifests, err := fs.Sub(files, "install")
	if err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(dir, "etc", "install"), manifests); err != nil {
		return err
	}
	// Pods that do not ask the cluster's DNS ask nobody.
	return os.WriteFile(filepath.Join(dir, "etc", "resolv.conf"), []byte("nameserver 127.0.0.1\n"), 0o600)
}
