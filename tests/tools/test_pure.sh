#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test_pure.sh ARCHIVE: the engine's archive is pure, and tools/pure would have noticed if it were not.
set -euo pipefail
pure=$(cd "$(dirname "$0")/../.." && pwd)/tools/pure
archive=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# refuses CLAIM WORD, source on standard input: an archive of this source fails, and the complaint has the word.
refuses() {
    local said
    "${CC:-cc}" -std=c17 -O2 -fPIC -x c -c - -o "$work/bad.o"
    rm -f "$work/bad.a"
    ar cr "$work/bad.a" "$work/bad.o"
    if said=$("$pure" "$work/bad.a"); then
        echo "not refused: $1"
        exit 1
    fi
    if ! grep -q "$2" <<<"$said"; then
        printf 'refused, but not for %s: %s\n%s\n' "$2" "$1" "$said"
        exit 1
    fi
    echo "refuses $1"
}

"$pure" "$archive"

# The smallest archive that passes shows that it is not the archive around the source that is refused below.
echo 'int becalm_good(int a); int becalm_good(int a) { return a + 1; }' |
    "${CC:-cc}" -std=c17 -O2 -x c -c - -o "$work/good.o"
ar cr "$work/good.a" "$work/good.o"
"$pure" "$work/good.a"

refuses "a counter that outlives the call" bss <<'C'
int becalm_count(void);
int becalm_count(void) { static int n; return ++n; }
C
refuses "a counter with a start value" data <<'C'
int becalm_count(void);
int becalm_count(void) { static int n = 7; return ++n; }
C
refuses "a counter per thread" tbss <<'C'
int becalm_count(void);
int becalm_count(void) { static _Thread_local int n; return ++n; }
C
refuses "a clock" 'time$' <<'C'
#include <time.h>
long becalm_now(void);
long becalm_now(void) { return (long)time(0); }
C
refuses "the heap" malloc <<'C'
#include <stdlib.h>
void *becalm_new(void);
void *becalm_new(void) { return malloc(8); }
C
refuses "a function of ours that is not in the engine" becalm_elsewhere <<'C'
int becalm_elsewhere(void);
int becalm_here(void);
int becalm_here(void) { return becalm_elsewhere(); }
C
refuses "a name without our prefix" helper <<'C'
int helper(void);
int helper(void) { return 1; }
C
refuses "a fraction" becalm_half <<'C'
unsigned becalm_half(unsigned a);
unsigned becalm_half(unsigned a) { return (unsigned)((double)a * 0.5); }
C
