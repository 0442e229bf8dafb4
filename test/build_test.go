// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The first build of a machine's life is one where Go has no cache yet.
func TestControlPlaneBuildsWhereGoNeverDid(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	compiler := `#!/bin/sh
case "$*" in
"env GOVERSION GOOS GOARCH") printf 'go1.99.0\nlinux\namd64\n' ;;
"env GOCACHE") echo "` + home + `/none/yet" ;;
*) echo "asked to $1" >&2; exit 1 ;;
esac
`
	if err := os.WriteFile(filepath.Join(home, "go"), []byte(compiler), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "./cluster/build.sh")
	build.Env = append(os.Environ(), "PATH="+home+":"+os.Getenv("PATH"), "MACHINE_FUNCTIONS_CACHE="+filepath.Join(home, "cache"))
	out, err := build.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "asked to list") {
		t.Errorf("the build ended with %v before it asked Go for anything:\n%s", err, out)
	}
}
