// SPDX-License-Identifier: Apache-2.0

// Command start measures what func built under build/functions: how large each image is, how long its process takes from
// start to ready, how much memory it has then. A line each; it fails if an image or a process at rest is larger than it may
// be. Times are told, not judged: they are the machine's as well.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"time"
)

const (
	tries = 5
	mega  = 1_000_000
)

// allClouds are the functions whose images hold every driver.
var allClouds = []string{"provision-machine", "sweep-instances"}

func main() {
	programs, err := filepath.Glob("build/functions/*/.func/build/result/f.linux." + runtime.GOARCH)
	if err != nil || len(programs) == 0 {
		fmt.Fprintln(os.Stderr, "nothing is built: tools/func/deploy.sh build")
		os.Exit(1)
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }))
	defer api.Close()
	failed := false
	for _, program := range programs {
		root, _ := filepath.Abs(filepath.Join(filepath.Dir(program), "..", "..", ".."))
		name := filepath.Base(root)
		if name == "machine-functions" {
			continue // FUNCTION chooses, so it is any of the others
		}
		image, err := imageSize(root)
		if err != nil {
			fmt.Fprintln(os.Stderr, name, err)
			os.Exit(1)
		}
		var times []time.Duration
		var memory int64
		for range tries {
			took, rss, err := start(program, name, api.URL)
			if err != nil {
				fmt.Fprintln(os.Stderr, name, err)
				os.Exit(1)
			}
			times, memory = append(times, took), max(memory, rss)
		}
		most, rest := int64(20*mega), int64(25*mega)
		if slices.Contains(allClouds, name) {
			most, rest = 70*mega, 1<<62
		}
		verdict := "ok"
		if image > most || memory > rest {
			verdict, failed = "TOO LARGE", true
		}
		fmt.Printf("%-20s image %5.1f MB  ready in %6.1f ms  at rest %5.1f MB  %s\n", name, float64(image)/mega, slices.Min(times).Seconds()*1000, float64(memory)/mega, verdict)
	}
	if failed {
		os.Exit(1) //nolint:gocritic // the server ends with the process
	}
}

// imageSize is the size of the image for this machine as it is pulled: its layers are compressed.
func imageSize(root string) (size int64, err error) {
	blobs, err := filepath.Glob(filepath.Join(root, ".func", "build", "oci", "blobs", "sha256", "*"))
	if err != nil {
		return 0, err
	}
	largest := int64(0) // one layer is the program for this machine; the others are shared, or for other machines
	for _, blob := range blobs {
		if info, err := os.Stat(blob); err == nil {
			largest = max(largest, info.Size())
		}
	}
	return largest, nil
}

var resident = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// start runs a program until it is ready and returns how long that took, and its memory a moment later.
func start(program, name, api string) (took time.Duration, rss int64, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, 0, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return 0, 0, err
	}
	config, err := os.CreateTemp("", "kubeconfig-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = os.Remove(config.Name()) }()
	if _, err := fmt.Fprintf(config, "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}", api); err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, program)
	c.Env = append(os.Environ(), "FUNCTION="+name, "LISTEN_ADDRESS="+address, "KUBECONFIG="+config.Name())
	began := time.Now()
	if err := c.Start(); err != nil {
		return 0, 0, err
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	for !ready(ctx, address) {
		if ctx.Err() != nil {
			return 0, 0, fmt.Errorf("not ready: %w", ctx.Err())
		}
		time.Sleep(time.Millisecond)
	}
	took = time.Since(began)
	time.Sleep(500 * time.Millisecond)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
	if err != nil {
		return took, 0, err
	}
	if found := resident.FindSubmatch(status); found != nil {
		rss, err = strconv.ParseInt(string(found[1]), 10, 64)
	}
	return took, rss << 10, err
}

func ready(ctx context.Context, address string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/health/readiness", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
