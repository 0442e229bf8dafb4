// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// needed are programs that the node does not bring along, with the package of Debian that has them.
var needed = []struct{ program, debian string }{
	{"containerd", "containerd"}, {"containerd-shim-runc-v2", "containerd"}, {"runc", "runc"}, {"ip", "iproute2"}, {"nft", "nftables"},
	{"conntrack", "conntrack"}, {"sysctl", "procps"},
}

// pluginFolders are where distributions put the plugins of the Container Network Interface.
var pluginFolders = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// preflight says what this machine lacks, a line each; nothing if a node can be here.
func preflight() (missing []string) {
	if runtime.GOOS != "linux" {
		return []string{"it needs Linux, this is " + runtime.GOOS}
	}
	if os.Geteuid() != 0 {
		missing = append(missing, "it needs root: for namespaces, mounts and network interfaces of its own")
	}
	for _, n := range needed {
		if _, err := exec.LookPath(n.program); err != nil {
			missing = append(missing, fmt.Sprintf("%s is not installed: apt-get install %s", n.program, n.debian))
		}
	}
	if pluginFolder() == "" {
		missing = append(missing, "no CNI plugins bridge, host-local and loopback in "+strings.Join(pluginFolders, " ")+": apt-get install containernetworking-plugins")
	}
	if filesystems, err := os.ReadFile("/proc/filesystems"); err != nil || !strings.Contains(string(filesystems), "overlay") {
		missing = append(missing, "the kernel has no overlay file system: modprobe overlay")
	}
	if groups := controlGroups(); len(groups) > 0 {
		missing = append(missing, "another node runs here, or one was not cleaned up: "+groups[0]+" exists")
	}
	return missing
}

// missing says what was not given for a node to run a command.
func (o options) missing() (missing []string) {
	for flag, path := range map[string]string{"-control-plane": o.controlPlane, "-programs": o.programs, "-own": o.own} {
		if _, err := os.Stat(path); err != nil {
			missing = append(missing, flag+": "+err.Error())
		}
	}
	if o.dir == "" {
		missing = append(missing, "-dir must be given")
	}
	return missing
}

func pluginFolder() string {
	for _, dir := range pluginFolders {
		if hasAll(dir, "bridge", "host-local", "loopback") {
			return dir
		}
	}
	return ""
}

func hasAll(dir string, names ...string) bool {
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}
