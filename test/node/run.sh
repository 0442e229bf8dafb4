#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh COMMAND...: builds what is not built yet, and runs a command on a node with real Knative (README.md). DIR is where
# data and logs go, build/node of the repository unless told.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${DIR:-$here/../../build/node}
mkdir -p "$dir/programs"
dir=$(cd "$dir" && pwd)
control_plane=$("$here/../cluster/build.sh")
programs=$("$here/build.sh")
static=
[ "$(go env CGO_ENABLED)" = 0 ] || static='-linkmode external -extldflags "-static -Wl,--no-warnings"'
(cd "$here" && GOWORK=off GOFLAGS='' go build -buildvcs=false -ldflags "-s -w $static" -o "$dir/programs/" . ./pause ./ingress)
exec "$dir/programs/node" -control-plane "$control_plane" -programs "$programs" -own "$dir/programs" -dir "$dir" -- "$@"
