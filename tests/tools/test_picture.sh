#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test_picture.sh BECALM: the README's picture and its table equal the simulator's present output.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
new=$(mktemp)
table=$(mktemp)
trap 'rm -f "$new" "$table"' EXIT
"$1" sim metastable --compare all --picture "$new" | sed -n '/-- load --/,$p' >"$table"
test -s "$table"
sed -n '/^\$ becalm sim metastable --compare all$/,/^```$/p' "$root/README.md" | sed '1d;$d' | cmp - "$table" ||
    { echo "the table in README.md is stale: becalm sim metastable --compare all"; exit 1; }
cmp "$root/docs/images/metastable.svg" "$new" || { echo "docs/images/metastable.svg is stale: make picture"; exit 1; }
