#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test_one_thread.sh PROGRAM...: none of these starts a thread, so that ThreadSanitizer would find nothing in them and need
# not run them.
set -euo pipefail
[[ $# -gt 0 ]]
wrong=0
for program; do
    symbols=$(nm -D --undefined-only "$program")
    if grep -qE ' (pthread|thrd)_create(@|$)' <<<"$symbols"; then
        echo "$(basename "$program") starts threads: let THREADS in tests/CMakeLists.txt find that in its source"
        wrong=1
    fi
done
exit $wrong
