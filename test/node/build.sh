#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the folder of the programs and manifests that a node with Knative consists of, after building them if no build of
# the same sources is cached. A first build compiles kubelet, kube-proxy, CoreDNS, Knative Eventing and Serving: twenty
# CPU-minutes. Progress goes to standard error, the path alone to standard output.
set -euo pipefail

say() { echo "node: $*" >&2; }
die() { say "$*"; exit 1; }

cache=${MACHINE_FUNCTIONS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/machine-functions}
mkdir -p "$cache" || die "cannot create $cache: set MACHINE_FUNCTIONS_CACHE to a folder that is yours"
cache=$(cd "$cache" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"
export GOTOOLCHAIN=local GOWORK=off GOFLAGS= # one set of flags: another would compile everything again
command -v go >/dev/null || die "Go is missing: install Go 1.26 or newer from https://go.dev/dl/"

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -c1-16; }
key=$({ go env GOVERSION GOOS GOARCH CGO_ENABLED && cat build.sh go.mod go.sum coredns/*.go kubernetes/go.*; } | sha256)
programs=$cache/node-$key

finish() {
  touch "$programs" # what is in use outlives the others
  echo "$programs"
  exit 0
}
[ -x "$programs/kubelet" ] && finish
if command -v flock >/dev/null; then
  exec 9>"$cache/node.lock"
  until flock -w 10 9; do say "waiting for another build to end"; done
  [ -x "$programs/kubelet" ] && finish
fi
temp=$cache/.node.$$
trap 'chmod -R u+w "$temp" && rm -rf "$temp"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$temp"/{eventing,serving,config}

# What runs in a pod brings no library along: with a C compiler it is linked statically, without one it is so anyway. The
# C compiler is not switched off, because everything would be compiled twice: test/eventing uses it.
static=
[ "$(go env CGO_ENABLED)" = 0 ] || static='-linkmode external -extldflags "-static -Wl,--no-warnings"'
version=$(cd kubernetes && go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}
stamp=
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  stamp+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
done
build() { # build FOLDER LINKER-FLAGS PACKAGE...
  local out=$1 flags=$2
  shift 2
  say "$SECONDS s: compiling $*"
  go build -buildvcs=false -ldflags "-s -w $flags" -o "$temp/$out" "$@" 9>&- >&2
}
eventing=knative.dev/eventing/cmd
serving=knative.dev/serving/cmd
build eventing/ "$static" $eventing/{controller,webhook,mtchannel_broker,apiserver_receive_adapter,mtping} \
  $eventing/broker/{ingress,filter} $eventing/in_memory/channel_{controller,dispatcher}
build serving/ "$static" $serving/{controller,webhook,autoscaler,activator,queue}
build coredns "$static" ./coredns
(cd kubernetes && build . "$stamp" k8s.io/kubernetes/cmd/{kubelet,kube-proxy})

say "$SECONDS s: copying Knative's manifests"
go mod download knative.dev/{eventing,serving,networking,caching}
module() { go list -m -f '{{.Dir}}' "knative.dev/$1"; }
for part in eventing/config/core eventing/config/brokers/mt-channel-broker eventing/config/channels/in-memory-channel \
  serving/config/core networking/config caching/config; do
  mkdir -p "$temp/config/$part"
  cp -RL "$(module "${part%%/*}")/${part#*/}/." "$temp/config/$part/"
done
chmod -R u+w "$temp/config"
mv "$temp" "$programs"
mkdir -p "$temp"
find "$cache" -maxdepth 1 -name 'node-*' -mtime +7 -exec chmod -R u+w {} + -exec rm -rf {} +
say "built in $SECONDS s"
finish
