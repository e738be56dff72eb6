#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# tests/golden/arm64.sh BUILD: builds `becalm sim` for arm64 into BUILD/arm64 and runs the commands of sim.txt under an
# emulator: another processor, where a char has another sign and other instructions are chosen, must print the same
# bytes. Exit 77: there is no compiler or no emulator for it here. There is no libyaml for arm64 either, so libyaml's
# events of each scenario are recorded here and replayed there. With BECALM_SOAK=1 all of them, else the short ones.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$1/arm64

for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: there is no $tool; tools/setup test installs it where the distribution has it"
        exit 77
    fi
done

mkdir -p "$build/scenarios"
"${CC:-cc}" -o "$build/record" "$here/record.c" $(pkg-config --cflags --libs yaml-0.1)
rm -f "$build"/scenarios/*
for file in "$root"/policies/scenarios/*.yaml; do
    "$build/record" <"$file" >"$build/scenarios/$(basename "$file")"
done
mkdir -p "$build/files/tests/scenarios"
cp "$root"/tests/scenarios/*.txt "$build/files/tests/scenarios/"
for file in "$root"/tests/scenarios/*.yaml; do
    "$build/record" <"$file" >"$build/files/tests/scenarios/$(basename "$file")"
done
rows=
for name in $(basename -s .yaml "$build"/scenarios/*.yaml | sort); do
    rows="$rows;$name=$build/scenarios/$name.yaml"
done
cmake -DOUTPUT="$build/scenarios.c" -DTABLE=scenarios "-DFILES=${rows#;}" -P "$root/cmake/embed.cmake"

# libyaml's header says the same everywhere; the folder it is in does not, so it goes alone.
mkdir -p "$build/include"
cp "$(pkg-config --variable=includedir yaml-0.1)/yaml.h" "$build/include/yaml.h"
cmake -S "$here" -B "$build" -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc >"$build/configure.log"
cmake --build "$build" -j "${JOBS:-2}" >"$build/build.log" || { grep -E "error|undefined" "$build/build.log"; exit 1; }
short=--short
if [ "${BECALM_SOAK:-}" = 1 ]; then
    short=
fi
"$here/golden.py" $short --folder "$build/files" qemu-aarch64 "$build/becalm"
