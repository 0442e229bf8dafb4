#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the folder of the programs of this module, after building them if no build of the same sources is cached.
# A first build compiles Knative Eventing: minutes. Progress goes to standard error, the path alone to standard output.
set -euo pipefail

say() { echo "eventing: $*" >&2; }
die() { say "$*"; exit 1; }

cache=${MACHINE_FUNCTIONS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/machine-functions}
mkdir -p "$cache" || die "cannot create $cache: set MACHINE_FUNCTIONS_CACHE to a folder that is yours"
cache=$(cd "$cache" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"
export GOTOOLCHAIN=local GOWORK=off GOFLAGS= # one set of flags: another would compile everything again
command -v go >/dev/null || die "Go is missing: install Go 1.26 or newer from https://go.dev/dl/"

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -c1-16; }
contents() { LC_ALL=C sort | while read -r file; do echo "$file" && cat "$file"; done; }
key=$({ go env GOVERSION GOOS GOARCH && find . -type f ! -name '*_test.go' | contents; } | sha256)
programs=$cache/eventing-$key

finish() {
  touch "$programs" # what is in use outlives the others
  echo "$programs"
  exit 0
}
[ -x "$programs/eventing" ] && finish
if command -v flock >/dev/null; then
  exec 9>"$cache/build.lock"
  until flock -w 10 9; do say "waiting for another build to end"; done
  [ -x "$programs/eventing" ] && finish
fi
temp=$cache/.eventing.$$
trap 'chmod -R u+w "$temp" && rm -rf "$temp"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$temp/out/config"

say "downloading Knative Eventing"
go mod download knative.dev/eventing knative.dev/pkg knative.dev/serving
module() { go list -m -f '{{.Dir}}' "$1"; }

# Knative's programs listen on all interfaces and on fixed ports, and ask the cluster's DNS for names. Here they listen on loopback and
# find names as patch/in_cluster.go says. Nothing else of them changes; the changed lines live in a copy of the modules, beside the build.
source=$cache/eventing-source-$(find go.sum build.sh patch -type f ! -name '*_test.go' | contents | sha256)
change() { # change FILE SED-SCRIPT
  local file=$temp/source/$1
  cp "$file" "$temp/before"
  sed "$2" "$temp/before" >"$file"
  ! cmp -s "$temp/before" "$file" || die "$1 has no line for $2"
}
if [ ! -d "$source" ]; then
  mkdir "$temp/source"
  cp -R "$(module knative.dev/eventing)" "$temp/source/eventing"
  cp -R "$(module knative.dev/pkg)" "$temp/source/pkg"
  chmod -R u+w "$temp/source"
  cp patch/in_cluster.go "$temp/source/pkg/network/"
  change eventing/pkg/kncloudevents/event_receiver.go 's/fmt\.Sprintf(":%d", recv\.desiredPort)/network.ListenAddress(recv.desiredPort)/'
  change eventing/pkg/kncloudevents/event_receiver.go 's/\(Inner: *\)\(CreateHandler(.*)\),/\1network.Bounded(\2),/'
  change eventing/pkg/kncloudevents/http_client.go 's/^\(\t*\)base,$/\1network.InCluster(base),/'
  change eventing/pkg/adapter/v2/cloudevents.go 's/^\(\t*\)base,$/\1network.InCluster(base),/'
  change pkg/observability/runtime/pprof.go 's/":" + port/"127.0.0.1:" + port/'
  change pkg/injection/health_check.go 's/":" + strconv/"127.0.0.1:" + strconv/'
  change pkg/injection/health_check.go 's/\(HealthCheckDefaultPort =\) 8080/\1 0/'
  mv "$temp/source" "$source"
fi
cp go.mod "$temp/build.mod"
cp go.sum "$temp/build.sum"
go mod edit -replace "knative.dev/eventing=$source/eventing" -replace "knative.dev/pkg=$source/pkg" "$temp/build.mod"

packages=$(go list -modfile "$temp/build.mod" -deps . ./controllers tool | wc -l)
say "compiling $packages packages (once; minutes on two idle cores) into $cache"
# Knative refuses to start when the version that client-go was linked with is below its minimum.
stamp='-X k8s.io/component-base/version.gitVersion=v1.36.3'
compiled=0
go build -modfile "$temp/build.mod" -v -buildvcs=false -ldflags "-s -w $stamp" -o "$temp/out/" . ./controllers tool 2>&1 9>&- |
  while read -r line; do
    case $line in
      *[\ :#]*) echo "$line" >&2 ;;
      *) [ $((++compiled % 100)) -ne 0 ] || say "$compiled of $packages packages compiled" ;;
    esac
  done

core=$source/eventing/config/core
channel=$source/eventing/config/channels/in-memory-channel
broker=$source/eventing/config/brokers/mt-channel-broker
i=100
for file in \
  "$core"/100-namespace.yaml \
  "$core"/resources/{apiserversource,broker,channel,eventpolicy,eventtype,pingsource,subscription,trigger}.yaml \
  "$channel"/resources/in-memory-channel.yaml \
  "$(module knative.dev/serving)"/config/core/300-resources/service.yaml \
  "$core"/configmaps/*.yaml "$channel"/configmaps/*.yaml \
  "$core"/200-pingsource-mt-adapter-serviceaccount.yaml "$core"/roles/pingsource-mt-adapter-clusterrole.yaml \
  "$broker"/roles/{filter,ingress}-*.yaml \
  "$core"/deployments/pingsource-mt-adapter.yaml \
  "$channel"/deployments/dispatcher.yaml "$channel"/deployments/dispatcher-service.yaml \
  "$broker"/deployments/broker-{filter,ingress}.yaml; do
  cp "$file" "$temp/out/config/$((i++))-$(basename "$file")"
done
mv "$temp/out" "$programs"
find "$cache" -maxdepth 1 -name 'eventing-*' -mtime +7 -exec chmod -R u+w {} + -exec rm -rf {} +
say "built in $SECONDS s"
finish
