#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs libvirt and qemu from Debian. No service is started, and nothing of /etc is used by inside.sh. Needs root, and nothing if the
# packages are there already.
set -euo pipefail

packages="libvirt-daemon libvirt-daemon-system libvirt-daemon-driver-qemu libvirt-clients qemu-system-x86 qemu-utils dnsmasq-base ipxe openssl iproute2"

# shellcheck disable=SC2086 # a list of words
if dpkg-query -W -f='${db:Status-Status}\n' $packages 2>/dev/null | grep -vqx installed || ! dpkg-query -W $packages >/dev/null 2>&1; then
  [ "$(id -u)" = 0 ] || { echo "libvirt is not installed: run $0 as root once"; exit 1; }
  export DEBIAN_FRONTEND=noninteractive
  # Debian starts a service that it installs, unless this program forbids it.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
  fi
  apt-get -o DPkg::Lock::Timeout=600 -qq update
  nice apt-get -o DPkg::Lock::Timeout=600 -qq -y --no-install-recommends install $packages >/dev/null
fi
dpkg-query -W -f='${Package} ${Version}\n' libvirt-daemon qemu-system-x86 dnsmasq-base ipxe
