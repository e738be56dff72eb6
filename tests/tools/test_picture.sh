#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test_picture.sh BECALM: the README's picture is what the simulator draws today.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
new=$(mktemp)
trap 'rm -f "$new"' EXIT
"$1" sim metastable --compare all --picture "$new" >/dev/null
cmp "$root/docs/images/metastable.svg" "$new" || { echo "docs/images/metastable.svg is stale: make picture"; exit 1; }
