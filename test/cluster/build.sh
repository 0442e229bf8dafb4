#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of the control-plane binary, after building it if no build of the same sources is cached.
# A first build compiles Kubernetes: minutes. Progress goes to standard error, the path alone to standard output.
set -euo pipefail

least_go=1.26
least_disk_mb=6000 # modules take 1.1 GB, the compiler's cache 4.1 GB, the binary 0.2 GB

say() { echo "control-plane: $*" >&2; }
die() { say "$*"; exit 1; }

cache=${MACHINE_FUNCTIONS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/machine-functions}
mkdir -p "$cache" || die "cannot create $cache: set MACHINE_FUNCTIONS_CACHE to a folder that is yours"
cache=$(cd "$cache" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"

export GOTOOLCHAIN=local GOWORK=off GOFLAGS= # one set of flags: another would compile everything again
command -v go >/dev/null || die "Go is missing: install Go $least_go or newer from https://go.dev/dl/"
go_version=$(go env GOVERSION GOOS GOARCH | paste -sd' ' -)
have=${go_version%% *}
[ "$(printf '%s\n' "$least_go" "${have#go}" | sort -V | head -1)" = "$least_go" ] ||
  die "Go ${have#go} is too old: install Go $least_go or newer from https://go.dev/dl/"

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
sources() { find . \( -name '*.go' -o -name '*.yaml' -o -name 'go.*' -o -name build.sh \) ! -name '*_test.go' -type f | LC_ALL=C sort; }
key=$({ echo "$go_version"; sources; sources | while read -r file; do cat "$file"; done; } | sha256 | cut -c1-16)
binary=$cache/control-plane-$key

finish() {
  touch "$binary" # a binary that is in use outlives the others
  echo "$binary"
  exit 0
}
[ -x "$binary" ] && finish

if command -v flock >/dev/null; then
  exec 9>"$cache/build.lock"
  until flock -w 10 9; do say "waiting for another build to end"; done
  [ -x "$binary" ] && finish
fi

gocache=$(go env GOCACHE)
mkdir -p "$gocache" # a machine where Go never compiled anything has none, and df fails on what is missing
free_mb=$(df -Pm "$cache" "$gocache" | awk 'NR > 1 && (least == "" || $4 < least) { least = $4 } END { print least + 0 }')
[ "$free_mb" -ge "$least_disk_mb" ] || say "only $free_mb MB are free; a first build needs $least_disk_mb MB"

partial=$binary.$$
log=$cache/build.$$.log
packages=$cache/build.$$.packages
job=
trap 'rm -f "$partial" "$log" "$packages"' EXIT
trap 'kill $job 2>/dev/null; exit 130' INT TERM

# watched runs a command and says every ten seconds what it is at.
watched() {
  local what=$1 ticks=0 last
  shift
  "$@" 2>"$log" 9>&- &
  job=$!
  while kill -0 $job 2>/dev/null; do
    sleep 0.2
    ticks=$((ticks + 1))
    [ $((ticks % 50)) -eq 0 ] || continue
    last=$(tail -1 "$log")
    say "$SECONDS s, $what: $(wc -l <"$log") done${last:+, now $last}"
  done
  wait $job && return
  grep -q 'no space left on device' "$log" && die "disk full: free some space for $cache, $(go env GOCACHE) and ${TMPDIR:-/tmp}"
  tail -20 "$log" >&2
  die "the build failed"
}

kubernetes=$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' go.mod)
minor=${kubernetes#v1.}
stamp=
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  stamp+=" -X $package.gitVersion=$kubernetes -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
done

say "building Kubernetes $kubernetes (once; four minutes on two idle cores) into $cache"
watched "downloading" go list -deps . >"$packages"
watched "compiling $(wc -l <"$packages") packages" go build -v -buildvcs=false -ldflags "-s -w$stamp" -o "$partial" .
mv -f "$partial" "$binary"
find "$cache" -maxdepth 1 -name 'control-plane-*' -mtime +7 -delete
say "built in $SECONDS s"
finish
