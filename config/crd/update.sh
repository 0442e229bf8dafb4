#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Copies OpenShift's own CustomResourceDefinitions out of the module github.com/openshift/api that go.mod pins.
#   config/crd/update.sh            writes the files beside this script
#   config/crd/update.sh --verify   fails, showing the difference, if they are not what it would write
#
# Machines and MachineSets are those of OpenShift's feature gate MachineAPIMigration, so that who has the say over them is kept where they
# came from such a cluster (SPEC B7).
#
# Three things are changed: infrastructures accept the platform kubemark (SPEC S94), a MachineSet whose replicas are left out is
# given them by config/policy/replicas.yaml, which an API server asks after it has filled in what definitions say, or by scale-machineset,
# and who has the say is not filled in: without the gate nobody else can have it, and nothing is written of it.
set -eu
cd "$(dirname "$0")"

module=github.com/openshift/api
go mod download $module
source=$(go list -m -f '{{.Dir}}' $module)
version=$(go list -m -f '{{.Version}}' $module)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# copy FILE-HERE PATH-IN-MODULE
copy() {
  {
    echo "# SPDX-License-Identifier: Apache-2.0"
    echo "# From $module $version by update.sh; do not edit."
    cat "$source/$2"
  } >"$work/$1"
}

machine=machine/v1beta1/zz_generated.crd-manifests/0000_10_machine-api_01
copy machine.openshift.io_machines.yaml ${machine}_machines-CustomNoUpgrade.crd.yaml
copy machine.openshift.io_machinesets.yaml ${machine}_machinesets-CustomNoUpgrade.crd.yaml
copy machine.openshift.io_machinehealthchecks.yaml ${machine}_machinehealthchecks.crd.yaml
copy infrastructures.yaml config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_infrastructures-Default.crd.yaml

awk '
  /^              [a-zA-Z]/ { field = $1 }
  { print }
  field == "platform:" && $0 == "                - External" { print "                - kubemark"; found = 1 }
  END { exit !found }
' "$work/infrastructures.yaml" >"$work/config.openshift.io_infrastructures.yaml"
rm "$work/infrastructures.yaml"

awk '
  /^              [a-zA-Z]/ { field = $1 }
  field == "replicas:" && $0 == "                default: 1" { found = 1; next }
  { print }
  END { exit !found }
' "$work/machine.openshift.io_machinesets.yaml" >"$work/machinesets.yaml"
mv "$work/machinesets.yaml" "$work/machine.openshift.io_machinesets.yaml"

for file in machines machinesets; do
  awk '
    /^ *[a-zA-Z]+:/ { under = field; field = $1 }
    under == "authoritativeAPI:" && $0 ~ /^ *default: MachineAPI$/ { found = 1; next }
    { print }
    END { exit !found }
  ' "$work/machine.openshift.io_$file.yaml" >"$work/$file.yaml"
  mv "$work/$file.yaml" "$work/machine.openshift.io_$file.yaml"
done

for file in "$work"/*; do
  if [ "${1:-}" = --verify ]; then
    diff -u "$(basename "$file")" "$file"
  else
    cp "$file" .
  fi
done
