// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// kill ends every process of a function at once, as a crash would, and returns how many there were. Knative names the
// service in the environment of its containers.
func kill(function string) (killed int) {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well-formed
	for _, path := range environments {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, text...), []byte("\x00K_SERVICE="+function+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}
