#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The go command that func uses for images of this node (FUNC_GO). func builds for three platforms and cannot be told
# otherwise; here programs for other machines than this one are empty files, because nobody would run them.
set -euo pipefail

if [ "${1:-} ${2:-}" = "build -o" ] && [ "${GOOS:-linux}/${GOARCH:-}" != "linux/$(go env GOHOSTARCH)" ]; then
  : >"$3"
  exit
fi
exec go "$@"
