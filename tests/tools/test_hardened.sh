#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test_hardened.sh COMMANDS FILE...: the files are hardened, tools/hardened would have noticed if they were not, and
# COMMANDS, a compile_commands.json if there is one, has the flag that leaves no mark in a file: locals are zeroed
# everywhere.
set -euo pipefail
hardened=$(cd "$(dirname "$0")/../.." && pwd)/tools/hardened
commands=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$hardened" "$@"

cat >"$work/program.c" <<'C'
#include <stdio.h>
#include <string.h>
#define FEW(a, n) int a##n(char *t); int a##n(char *t) { char b[64]; strcpy(b, t); return puts(b) + n; }
#define MANY(a) FEW(a, 0) FEW(a, 1) FEW(a, 2) FEW(a, 3) FEW(a, 4) FEW(a, 5) FEW(a, 6) FEW(a, 7) FEW(a, 8) FEW(a, 9)
MANY(f) MANY(g) MANY(h)
int main(int count, char **word) { return f0(word[count - 1]); }
C

good=(-O2 -fPIE -pie -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -Wl,-z,relro,-z,now,-z,noexecstack)
case $(uname -m) in
x86_64) good+=(-fcf-protection=full) marks=-fcf-protection=none ;;
aarch64) good+=(-mbranch-protection=standard) marks=-mbranch-protection=none ;;
*) marks= ;;
esac

"${CC:-cc}" "${good[@]}" "$work/program.c" -o "$work/good"
"$hardened" "$work/good"
"${CC:-cc}" "${good[@]}" -c "$work/program.c" -o "$work/good.o"
ar cr "$work/good.a" "$work/good.o"
"$hardened" "$work/good.a"

# refuses WORD FLAG...: the same program with these flags last fails, and the complaint has the word.
refuses() {
    local word=$1 said
    shift
    "${CC:-cc}" "${good[@]}" "$@" "$work/program.c" -o "$work/bad"
    if said=$("$hardened" "$work/bad"); then
        echo "not refused: $*"
        exit 1
    fi
    grep -q "$word" <<<"$said" || { printf 'refused, but not for %s: %s\n%s\n' "$word" "$*" "$said"; exit 1; }
    echo "refuses $*"
}

refuses PIE -no-pie -fno-pie
refuses 'no RELRO' -Wl,-z,norelro
refuses BIND_NOW -Wl,-z,lazy
refuses 'stack can be run' -Wl,-z,execstack
refuses 'no stack is guarded' -fno-stack-protector
refuses 'no copy is checked' -U_FORTIFY_SOURCE
if [[ -n $marks ]]; then
    refuses 'indirect calls' "$marks"
    "${CC:-cc}" "${good[@]}" "$marks" -c "$work/program.c" -o "$work/unmarked.o"
    ar cr "$work/good.a" "$work/unmarked.o"
    ! "$hardened" "$work/good.a" >/dev/null || { echo "not refused: an archive with one object that has no mark"; exit 1; }
fi

# Nothing in a file says that locals were zeroed. A compiler that can't is old.
if [[ ! -e $commands ]]; then
    exit 0
fi
if "${CC:-cc}" -ftrivial-auto-var-init=zero -c "$work/program.c" -o /dev/null 2>/dev/null ||
    "${CC:-cc}" -ftrivial-auto-var-init=zero -enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang \
        -c "$work/program.c" -o /dev/null 2>/dev/null; then
    ! grep '"command":.*/src/' "$commands" | grep -v -e -ftrivial-auto-var-init=zero ||
        { echo "compiled without -ftrivial-auto-var-init=zero"; exit 1; }
    grep -q -e -ftrivial-auto-var-init=zero "$commands" || { echo "$commands names no command"; exit 1; }
    echo "locals are zeroed"
fi
