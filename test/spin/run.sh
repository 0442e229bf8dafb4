#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the models of the ledger and of the claim: first as they are, which must hold, then without each guard, which must fail. Needs
# spin and a C compiler; on Debian they are installed if that is allowed. Where they cannot be had it fails, unless SPIN=no says to go
# without.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
if [[ ${SPIN:-} == no ]]; then
  echo "NOT CHECKED: the models were left out, SPIN=no"
  exit
fi
if ! command -v spin >/dev/null || ! command -v gcc >/dev/null; then
  if ! { apt-get -qq update && apt-get -qq install -y --no-install-recommends spin gcc libc6-dev; } >/dev/null 2>&1; then
    echo "NOT CHECKED: spin and gcc are not here and cannot be installed; SPIN=no goes without the models"
    exit 1
  fi
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
wrong=0

# check MODEL WANT NAME COMPILE RUN FLAGS…: WANT is holds or fails
check() {
  local model=$1 want=$2 name=$3 compile=$4 run=$5
  shift 5
  local here=$PWD out
  (cd "$dir" && spin "$@" -a "$here/$model" >spin.txt && gcc -w -O2 $compile -DMEMLIM=2048 -o pan pan.c 2>gcc.txt) || { cat "$dir/spin.txt" "$dir/gcc.txt"; exit 1; }
  out=$(cd "$dir" && ./pan -m200000 $run 2>&1)
  local errors states
  errors=$(sed -nE 's/.*errors: ([0-9]+).*/\1/p' <<<"$out")
  states=$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' <<<"$out")
  local got=fails
  if [[ -z $errors || -z $states || $states == 0 ]]; then
    got=unfinished
  elif [[ $errors == 0 ]]; then
    got=holds
    ! grep -q "max search depth too small\|out of memory\|MEMLIM bound\|Search not completed" <<<"$out" || got=unfinished
  fi
  printf '%-10s %-44s %-10s %s states\n' "$model" "$name" "$got" "$states"
  [[ $got == "$want" ]] || { wrong=1; echo "  wanted: $want"; }
}

check ledger.pml holds 'R-S4, R-S6, R-S17' '-DSAFETY -DNOCLAIM' ''
check ledger.pml holds 'R-L1 under weak fairness' '-DNFAIR=4' '-a -f -N settles'
check ledger.pml fails 'without compare-and-swap' '-DSAFETY -DNOCLAIM' '' -DNO_CAS
check ledger.pml fails 'judging what a later ledger allocated' '-DSAFETY -DNOCLAIM' '' -DNO_NEXT
check claim.pml holds 'R-S1, R-S2' '-DSAFETY -DNOCLAIM' ''
check claim.pml holds 'R-L1, R-L2 under weak fairness' '-DNFAIR=4' '-a -f -N settles'
check claim.pml holds 'the sweeper, requests that take for ever' '-DNFAIR=4' '-a -f -N settles' -DLATE
check claim.pml fails 'without compare-and-swap' '-DSAFETY -DNOCLAIM' '' -DNO_CAS
check claim.pml fails 'without a horizon' '-DSAFETY -DNOCLAIM' '' -DNO_HORIZON
check claim.pml fails 'a horizon less than deadline and lag' '-DSAFETY -DNOCLAIM' '' -DHORIZON=1
check claim.pml fails 'requests that take for ever, without sweeper' '-DNFAIR=4' '-a -f -N settles' -DLATE -DNO_SWEEPER
exit $wrong
