// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// What a machine lacks is said by the name of its package, before anything is built for minutes: by run.sh without a command, and by
// make e2e-knative before any image.
func TestMissingIsSaidFirst(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("there no node can be at all")
	}
	bin, dir := t.TempDir(), t.TempDir()
	for _, name := range []string{"bash", "go", "mkdir", "dirname", "gcc", "as", "ld", "git"} {
		if path, err := exec.LookPath(name); err == nil { // without a C compiler nothing is linked by one
			if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := exec.CommandContext(t.Context(), "./run.sh")
	check.Env = append(os.Environ(), "PATH="+bin, "DIR="+dir)
	out, err := check.CombinedOutput()
	if err == nil {
		t.Error("a node can run without containerd")
	}
	for _, n := range needed {
		if !strings.Contains(string(out), n.program+" is not installed: apt-get install "+n.debian) {
			t.Errorf("nothing is said of %s:\n%s", n.program, out)
		}
	}
	if text, err := os.ReadFile("../../Makefile"); err != nil {
		t.Error(err)
	} else if _, recipe, _ := strings.Cut(string(text), "\ne2e-knative: "); strings.Index(recipe, "\t@test/node/run.sh #") != strings.Index(recipe, "\t") {
		t.Errorf("make e2e-knative begins otherwise:\n%.300s", recipe)
	}
}
