#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The libvirt driver against a real libvirt daemon: its test driver, and qemu with guests that boot and ask for an address. Installs it
# once, starts it in namespaces of its own, tests, ends it. Needs root. Arguments go to the test program, such as -test.run=TestLife. A
# run of everything writes docs/evidence/libvirt.txt.
set -euo pipefail
cd "$(dirname "$0")"
root=$(git rev-parse --show-toplevel)
export LIBVIRT_STATE=${LIBVIRT_STATE:-$root/build/libvirt}

begin=$(date +%s)
versions=$(./install.sh)
[ "$(id -u)" = 0 ] || { echo "networks and virtual machines need root"; exit 1; }
rm -rf "${LIBVIRT_STATE:?}"
mkdir -p "$LIBVIRT_STATE"
go test -c -o "$LIBVIRT_STATE/libvirt.test" .
commit=$(git rev-parse HEAD)$(git diff --quiet HEAD || echo ', with changes') # asked before the file below is one
sdk=$(go list -m github.com/digitalocean/go-libvirt)
started=$(date +%s)
status=0
unshare --mount --net --pid --fork --kill-child --mount-proc "$PWD/inside.sh" \
  "$LIBVIRT_STATE/libvirt.test" -test.v -test.timeout=60m "$@" >"$LIBVIRT_STATE/test.log" 2>&1 || status=$?
ended=$(date +%s)
grep -E '^(--- |PASS|FAIL|    [a-z]+_test.go)|^ +--- FAIL' "$LIBVIRT_STATE/test.log" || true
if [ $# = 0 ] && [ $status = 0 ]; then
  mkdir -p "$root/docs/evidence"
  {
    echo "make test-libvirt: the driver of shared/provider/libvirt against a real libvirt daemon, over TLS, TCP and its socket: libvirt's own"
    echo "test driver, and qemu without KVM, whose guests boot iPXE from their volume and ask dnsmasq for an address."
    echo
    echo "commit   $commit"
    echo "date     $(date -u +%FT%TZ)"
    echo "machine  $(nproc) cores, $(awk '/MemTotal/ {printf "%d GiB", $2 / 1048576}' /proc/meminfo), load $(cut -d' ' -f1-3 /proc/loadavg)"
    echo "time     install and build $((started - begin)) s, tests $((ended - started)) s"
    echo "sdk      $sdk"
    echo
    echo "$versions"
    echo
    echo "passed   $(grep -cE '^ *--- PASS' "$LIBVIRT_STATE/test.log") tests, skipped $(grep -cE '^ *--- SKIP' "$LIBVIRT_STATE/test.log" || true), failed $(grep -cE '^ *--- FAIL' "$LIBVIRT_STATE/test.log" || true)"
    echo
    grep -E '^ *--- (PASS|SKIP)|^ +(life|crash|start)_test.go' "$LIBVIRT_STATE/test.log"
  } >"$root/docs/evidence/libvirt.txt"
  echo "written: docs/evidence/libvirt.txt"
fi
[ $status = 0 ] || echo "everything that was said: $LIBVIRT_STATE/test.log, and by libvirt: $LIBVIRT_STATE/libvirtd.log"
exit $status
