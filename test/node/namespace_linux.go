// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// isolate gives a command that is not started yet its own processes, mounts, network, host name and queues. It is the
// first of its processes: when it ends, in whatever way, so do all others, and their mounts and interfaces go.
func isolate(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
}

// furnish makes the namespaces those of a node: nothing that is mounted here is seen outside, what kubelet and containerd
// keep in fixed places is kept in memory.
func furnish() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil { // kubelet wants it so
		return fmt.Errorf("share mounts among pods: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, dir := range []string{"/run", "/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/var/log/pods"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	return syscall.Sethostname([]byte(nodeName))
}

// controlGroups returns the groups that kubelet made, innermost first.
func controlGroups() []string {
	var all []string
	for _, pattern := range []string{"/sys/fs/cgroup/kubepods", "/sys/fs/cgroup/*/kubepods"} {
		roots, _ := filepath.Glob(pattern) // the pattern is well-formed
		for _, root := range roots {
			if target, err := os.Readlink(filepath.Dir(root)); err == nil && target != "" {
				continue // cpu → cpu,cpuacct
			}
			_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					all = append(all, path)
				}
				return nil
			})
		}
	}
	slices.Reverse(all)
	return all
}

// removeControlGroups removes the groups that kubelet made. A group lives as long as its last process, which is being
// killed.
func removeControlGroups() []error {
	var errs []error
	for range 50 {
		errs = nil
		for _, group := range controlGroups() {
			if err := syscall.Rmdir(group); err != nil && !errors.Is(err, syscall.ENOENT) {
				errs = append(errs, fmt.Errorf("remove %s: %w", group, err))
			}
		}
		if len(errs) == 0 {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errs
}
