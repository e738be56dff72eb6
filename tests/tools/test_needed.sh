#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test_needed.sh BECALM: the command loads no library at its start that a gateway does not use. libm would be 300 KB of
# every gateway's memory, libcurl with all that it needs half of it, OpenSSL a quarter: these are loaded when a command or
# a policy needs them.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# unwanted FILE: which of those libraries it needs; fails if there are any.
unwanted() {
    ! readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -E '^lib(m|curl|ssl|crypto)\.so'
}

unwanted "$1" || { echo "$1 needs the above at its start"; exit 1; }
echo "needs neither libm nor libcurl nor OpenSSL"

# That would have been found.
printf '#include <math.h>\nint main(int count, char **word) { (void)word; return (int)pow(count, count); }\n' >"$work/program.c"
"${CC:-cc}" "$work/program.c" -o "$work/program" -lm
! unwanted "$work/program" >/dev/null || { echo "not found: a program that needs libm"; exit 1; }
echo "finds a program that needs libm"
