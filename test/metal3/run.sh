#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The driver of bare metal against the real baremetal-operator, then the walk-through with all functions. What passes is
# written to docs/evidence/metal3.txt and docs/evidence/metal3-story.txt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
METAL3=$(test/metal3/build.sh)
export METAL3
test/cluster/build.sh  # so that no test waits for compilers
test/eventing/build.sh
mkdir -p build
operator=$(cd test/metal3 && go list -m -f '{{.Version}}' github.com/metal3-io/baremetal-operator)
commit=$(git log -1 --format='commit %h')$(git diff --quiet HEAD || echo ', with changes') # asked before the files below are some

# evidence prints the lines that begin the file of one run.
evidence() {
  echo "$1"
  echo "$commit, $(go env GOVERSION GOOS GOARCH | paste -sd' '), $(nproc) cores, load $(cut -d' ' -f1-3 /proc/loadavg), $(date -u +%F)"
}

go test -v -count=1 -timeout 30m -run '^TestConformanceWithTheOperator$' ./shared/provider/metal3 | tee build/metal3.log
{
  evidence "make test-metal3: the driver of bare metal against the real baremetal-operator $operator on the embedded kube-apiserver"
  echo "The operator's own test provisioner stands for the hardware; its delays of 10 s are cut to 0.5 s (test/metal3/build.sh). Six hosts."
  echo
  grep -E '^ *--- |^ok' build/metal3.log
} >docs/evidence/metal3.txt

go test -v -count=1 -timeout 30m -run '^TestBareMetalStory$' ./test/e2e | tee build/metal3-story.log
{
  evidence "make test-metal3: the walk-through of bare metal (SPEC S49-S71) on the whole system with the real baremetal-operator $operator"
  echo "The operator's own test provisioner stands for the hardware: 10 s to write a disk, 10 s to clean one."
  echo
  grep -E '^== |^… |^ *--- |^ok' build/metal3-story.log
} >docs/evidence/metal3-story.txt
echo "written: docs/evidence/metal3.txt, docs/evidence/metal3-story.txt"
