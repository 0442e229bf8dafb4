#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the folder with the baremetal-operator and its CRDs, after building them if no build of the same sources is
# cached. A first build takes minutes. Progress goes to standard error, the path alone to standard output.
set -euo pipefail

say() { echo "baremetal-operator: $*" >&2; }
die() { say "$*"; exit 1; }

cache=${MACHINE_FUNCTIONS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/machine-functions}
mkdir -p "$cache" || die "cannot create $cache: set MACHINE_FUNCTIONS_CACHE to a folder that is yours"
cache=$(cd "$cache" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"
export GOTOOLCHAIN=local GOWORK=off GOFLAGS=
command -v go >/dev/null || die "Go is missing: install Go 1.26 or newer from https://go.dev/dl/"

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -c1-16; }
key=$({ go env GOVERSION GOOS GOARCH && cat go.mod go.sum build.sh; } | sha256)
programs=$cache/metal3-$key

finish() {
  touch "$programs" # what is in use outlives the others
  echo "$programs"
  exit 0
}
[ -x "$programs/baremetal-operator" ] && finish
if command -v flock >/dev/null; then
  exec 9>"$cache/build.lock"
  until flock -w 10 9; do say "waiting for another build to end"; done
  [ -x "$programs/baremetal-operator" ] && finish
fi
temp=$cache/.metal3.$$
trap 'chmod -R u+w "$temp" && rm -rf "$temp"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$temp/out/crd"

say "downloading"
go mod download github.com/metal3-io/baremetal-operator
source=$(go list -m -f '{{.Dir}}' github.com/metal3-io/baremetal-operator)
cp -R "$source" "$temp/source"
chmod -R u+w "$temp/source"
# The operator's own test provisioner stands for the hardware. It takes ten seconds to write or clean a disk; here half of
# one, or what FIXTURE_DELAY says.
fixture=$temp/source/pkg/provisioner/fixture/fixture.go
sed -i.before 's/\(ovisionRequeueDelay = \)time.Second \* 10/\1delay()/; s/\(inspectionRequeueDelay = \)time.Second \* 2/\1time.Second \/ 2/; s/\(DefaultRequeueSecs *= \)5/\11/' "$fixture"
[ "$(diff "$fixture.before" "$fixture" | grep -c '^>')" = 4 ] || die "the test provisioner has other delays than expected"
cat >"${fixture%/*}/delay.go" <<'END'
package fixture

import (
	"os"
	"time"
)

func delay() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("FIXTURE_DELAY")); err == nil {
		return d
	}
	return time.Second / 2
}
END
cp go.mod "$temp/build.mod"
cp go.sum "$temp/build.sum"
go mod edit -replace "github.com/metal3-io/baremetal-operator=$temp/source" "$temp/build.mod"

say "compiling (once; minutes on two idle cores) into $cache"
go build -modfile "$temp/build.mod" -buildvcs=false -trimpath -ldflags '-s -w' -o "$temp/out/baremetal-operator" github.com/metal3-io/baremetal-operator 9>&-
cp "$source"/config/base/crds/bases/*.yaml "$temp/out/crd/"
mv "$temp/out" "$programs"
find "$cache" -maxdepth 1 -name 'metal3-*' -mtime +7 -exec rm -rf {} +
say "built in $SECONDS s"
finish
