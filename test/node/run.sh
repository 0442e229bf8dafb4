#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh COMMAND...: builds what is not built yet, and runs a command on a node with real Knative (README.md). DIR is where
# data and logs go, build/node of the repository unless told. Without a command it says what this machine lacks, before anything that takes
# long.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${DIR:-$here/../../build/node}
mkdir -p "$dir/programs"
dir=$(cd "$dir" && pwd)
static=
[ "$(go env CGO_ENABLED)" = 0 ] || static='-linkmode external -extldflags "-static -Wl,--no-warnings"'
build() { (cd "$here" && GOWORK=off GOFLAGS='' go build -buildvcs=false -ldflags "-s -w $static" -o "$dir/programs/" "$@"); }
build .
"$dir/programs/node"
[ $# -gt 0 ] || exit 0
control_plane=$("$here/../cluster/build.sh")
programs=$("$here/build.sh")
build ./pause ./ingress
exec "$dir/programs/node" -control-plane "$control_plane" -programs "$programs" -own "$dir/programs" -dir "$dir" -- "$@"
