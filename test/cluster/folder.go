// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	diskToStart = 500 << 20 // etcd preallocates its log and needs room to grow
	diskToGoOn  = 50 << 20  // below this, stop while etcd's files are whole
)

// openFolder makes dir this process's own and returns its absolute path. With fresh it removes an earlier run's files and
// nothing else.
func openFolder(dir string, fresh bool) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create folder: %w", err)
	}
	if err := lock(filepath.Join(dir, "pid")); err != nil {
		return "", fmt.Errorf("use folder %s: %w", dir, err)
	}
	if err := enoughDisk(dir, diskToStart); err != nil {
		return "", err
	}
	earlier := []string{"ready"}
	if fresh {
		earlier = append(earlier, "etcd", "pki", "kubeconfig")
	}
	for _, name := range earlier {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("clear folder: %w", err)
		}
	}
	return dir, nil
}

// lock writes this process's id to the file and holds a lock on it for as long as the process lives.
func lock(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	fd := int(file.Fd()) // in blocking mode and never closed: the lock ends with the process
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		owner, _ := os.ReadFile(path)
		return fmt.Errorf("in use by process %s: stop it or choose another --dir", strings.TrimSpace(string(owner)))
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(file, os.Getpid()); err != nil {
		return err
	}
	held = append(held, file)
	return nil
}

// held keeps locked files from being closed by the garbage collector.
var held []*os.File

func enoughDisk(dir string, least uint64) error {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("measure disk of %s: %w", dir, err)
	}
	if free := stat.Bavail * uint64(stat.Bsize); free < least {
		return fmt.Errorf("disk full: %s has %d MB free and needs %d MB", dir, free>>20, least>>20)
	}
	return nil
}

func (p *plane) watchDisk(ctx context.Context, dir string) {
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := enoughDisk(dir, diskToGoOn); err != nil {
				p.breaks(err)
			}
		}
	}
}

func listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d on 127.0.0.1 is taken: choose another --port, or 0 for a free one", port)
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return listener, nil
}
