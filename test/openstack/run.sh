#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The OpenStack driver against a real OpenStack, then the walk-through with all functions: installs it once, starts it,
# tests, stops it. Arguments go to the test program of the driver, such as -test.run=TestWalkThrough, and leave out the
# walk-through. On a machine that is busy with other things PARALLEL=1 has the tests run one after the other. A run of
# everything writes docs/evidence/openstack.txt. Where $OPENSTACK_CLOUDS names the clouds.yaml of one that up.sh started
# before, that one is used, and left running.
set -euo pipefail
cd "$(dirname "$0")"
root=$(git rev-parse --show-toplevel)
export OPENSTACK_STATE=${OPENSTACK_STATE:-$root/build/openstack}
mkdir -p "$OPENSTACK_STATE"

begin=$(date +%s)
versions=$(./install.sh)
installed=$(date +%s)
if [ -z "${OPENSTACK_CLOUDS:-}" ]; then
  trap './up.sh down' EXIT
  ./up.sh
fi
started=$(date +%s)
go test -c -o "$OPENSTACK_STATE/openstack.test" .
status=0
export OPENSTACK_CLOUDS=${OPENSTACK_CLOUDS:-$OPENSTACK_STATE/clouds.yaml}
"$OPENSTACK_STATE/openstack.test" -test.v -test.parallel="${PARALLEL:-3}" -test.timeout=90m "$@" >"$OPENSTACK_STATE/test.log" 2>&1 || status=$?
if [ $# = 0 ]; then
  (cd "$root" && go test -v -count=1 -timeout 40m -run '^TestStoryOnOpenStack$' ./test/e2e) >"$OPENSTACK_STATE/story.log" 2>&1 || status=$?
  cat "$OPENSTACK_STATE/story.log" >>"$OPENSTACK_STATE/test.log"
fi
ended=$(date +%s)
grep -E '^(--- |PASS|FAIL|    [a-z]+_test.go)|^ +--- FAIL' "$OPENSTACK_STATE/test.log" || true
if [ $# = 0 ] && [ $status = 0 ]; then
  mkdir -p "$root/docs/evidence"
  commit=$(git rev-parse HEAD)$(git diff --quiet HEAD || echo ', with changes') # asked before the file below is one
  {
    echo "make test-openstack: the driver of shared/provider/openstack against OpenStack Zed, then the walk-through with all functions on"
    echo "it. All services are real but Nova's hypervisor, Neutron's agent and Cinder's backend: the fakes that these projects ship."
    echo
    echo "commit   $commit"
    echo "date     $(date -u +%FT%TZ)"
    echo "machine  $(nproc) cores, $(awk '/MemTotal/ {printf "%d GiB", $2 / 1048576}' /proc/meminfo), load $(cut -d' ' -f1-3 /proc/loadavg)"
    echo "memory   $(./up.sh status | awk '{s += $3} END {print s}') MiB for OpenStack"
    echo "time     install $((installed - begin)) s, start $((started - installed)) s, tests $((ended - started)) s"
    echo "sdk      $(go list -m github.com/gophercloud/gophercloud/v2)"
    echo
    echo "$versions"
    echo
    echo "passed   $(grep -cE '^ *--- PASS' "$OPENSTACK_STATE/test.log") tests, skipped $(grep -cE '^ *--- SKIP' "$OPENSTACK_STATE/test.log"), failed $(grep -cE '^ *--- FAIL' "$OPENSTACK_STATE/test.log" || true)"
    echo
    grep -E '^ *--- (PASS|SKIP)|^    (away|crash|former|story)_test.go' "$OPENSTACK_STATE/test.log"
    echo
    grep -E '^== |^… ' "$OPENSTACK_STATE/story.log"
  } >"$root/docs/evidence/openstack.txt"
  echo "written: docs/evidence/openstack.txt"
fi
[ $status = 0 ] || echo "everything that was said: $OPENSTACK_STATE/test.log, and by OpenStack: $OPENSTACK_STATE/log"
exit $status
