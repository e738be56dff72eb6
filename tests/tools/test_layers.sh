#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test_layers.sh: the folders under src are layers, and tools/layers would have noticed if they were not.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$root/tools/layers" "$root"

# A tree of three layers, of which each test breaks one thing.
fresh() {
    rm -rf "${work:?}/tree"
    mkdir -p "$work/tree/src/ground" "$work/tree/src/middle" "$work/tree/src/top"
    cat >"$work/tree/CMakeLists.txt" <<'CMAKE'
becalm_module(ground SOURCES stone.c) # becalm_module(comment DEPS becalm_top)
becalm_module(middle
    SOURCES beam.c
    DEPS becalm_ground Threads::Threads
)
becalm_module(top SOURCES roof.c DEPS becalm_middle)
CMAKE
    echo '#include "stone.h"' >"$work/tree/src/ground/stone.c"
    echo '#include <stddef.h>' >"$work/tree/src/ground/stone.h"
    echo '#include "ground/stone.h"' >"$work/tree/src/middle/beam.h"
    printf '#include "beam.h"\n#include "beam_internal.h"\n' >"$work/tree/src/middle/beam.c"
    echo '#include "beam.h"' >"$work/tree/src/middle/beam_internal.h"
    printf '#include "middle/beam.h"\n#include "ground/stone.h"\n' >"$work/tree/src/top/roof.c"
}

# refuses CLAIM WORDS: the tree fails, and the complaint has the words.
refuses() {
    local said
    if said=$("$root/tools/layers" "$work/tree"); then
        echo "not refused: $1"
        exit 1
    fi
    if ! grep -qF "$2" <<<"$said"; then
        printf 'refused, but not for "%s": %s\n%s\n' "$2" "$1" "$said"
        exit 1
    fi
    echo "refuses $1"
}

fresh
"$root/tools/layers" "$work/tree"

echo '#include "top/roof.h"' >>"$work/tree/src/ground/stone.c"
refuses "an include that points upwards" "src/ground/stone.c includes top/roof.h"

fresh
echo '#include "ground/stone.h"' >"$work/tree/src/middle/beam.h"
sed -i 's/DEPS becalm_ground/DEPS/' "$work/tree/CMakeLists.txt"
refuses "an include of a folder that DEPS does not name" "src/middle/beam.h includes ground/stone.h"

fresh
sed -i 's/SOURCES stone.c/SOURCES stone.c DEPS becalm_top/' "$work/tree/CMakeLists.txt"
refuses "DEPS that point upwards" "ground uses top"

fresh
echo '#include "joist.h"' >>"$work/tree/src/middle/beam.c"
echo '#include "middle/beam.h"' >"$work/tree/src/middle/joist.c"
touch "$work/tree/src/middle/joist.h"
refuses "files that include each other in a circle" "beam -> joist -> beam"

fresh
mkdir "$work/tree/src/middle/inner"
echo '#include "peg.h"' >"$work/tree/src/middle/inner/joist.c"
echo '#include "middle/inner/joist.h"' >"$work/tree/src/middle/inner/peg.c"
touch "$work/tree/src/middle/inner/joist.h" "$work/tree/src/middle/inner/peg.h"
refuses "a circle in a folder inside of a folder" "inner/joist -> inner/peg -> inner/joist"

fresh
mkdir "$work/tree/src/cellar"
refuses "a folder that is no layer" "src/cellar has no becalm_module()"

fresh
for i in {1..60}; do touch "$work/tree/src/top/room$i.c"; done
refuses "a folder with too many files" "src/top has 61 files"

fresh
mkdir "$work/tree/src/top/attic"
echo '#include "top/gable.h"' >"$work/tree/src/top/attic/beam.c"
touch "$work/tree/src/top/attic/beam.h" "$work/tree/src/top/gable.h"
"$root/tools/layers" "$work/tree"
echo '#include "attic/beam.h"' >"$work/tree/src/top/gable.h"
refuses "a folder inside that includes what stands above it" "src/top/attic/beam.c includes top/gable.h"
