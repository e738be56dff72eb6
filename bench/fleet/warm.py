#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The possible gain of a warm start: ten pods of a fleet are replaced one by one under a fault, in the simulator
(docs/decisions/0024-no-warm-start.md).

    bench/fleet/warm.py BECALM [--seeds 6]

A pod that is replaced is a caller that ends and another one that begins, which knows nothing of the service: the
difference to pods that are kept is all that a warm start could gain. A warm start would begin with `limit.max`, the
value at which a limit starts.
"""

import argparse
import json
import statistics
import subprocess
import tempfile

LENGTH, FAULT_AT, FAULT_FOR, FIRST, EACH = 200, 60, 30, 62, 3  # seconds
FAULTS = ["capacity: 0.3", "latency: 300ms", "dead: true"]


def scenario(fault, replaced):
    clients, faults = [], [f"  cut: {{at: {FAULT_AT}s, for: {FAULT_FOR}s, service: api, {fault}}}"]

    def calls(name, begin, end):  # next to nothing but then
        clients.append(f"  {name}: {{to: api, rate: 0.085/s, callers: 1, role: gateway}}")
        faults.append(f"  {name}: {{at: {begin}s, for: {end - begin}s, client: {name}, surge: 1000}}")

    for n in range(10):
        at = FIRST + EACH * n if replaced else LENGTH
        calls(f"old{n}", 0, at)
        if replaced:
            calls(f"new{n}", at, LENGTH)
    head = f"name: warm\nabout: pods are replaced\nlength: {LENGTH}s\nattempts: 4\ntimeout: 1s\nlink: {{latency: 0.5ms}}\nservices: {{api: {{workers: 10, time: {{exponential: 10ms}}}}}}\n"
    return head + "clients:\n" + "\n".join(clients) + "\nfaults:\n" + "\n".join(faults) + "\n"


def run(becalm, text, start, seed):
    """Success in the fault and in the minute after it, seconds until 99 % succeed, and the longest queue."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        words = [becalm, "sim", file.name, "--json", "--series", "--seed", str(seed), "--policy", "becalm"]
        words += [] if start is None else ["--set", f"defaults.limit.max={start}"]
        series = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)["series"]
    calls, good = series["clients"]["calls"], series["clients"]["successes"]
    over = FAULT_AT + FAULT_FOR

    def success(begin, end):
        return sum(good[begin:end]) / sum(calls[begin:end])

    back = next((t for t in range(over, LENGTH - 5) if success(t, t + 3) >= 0.99), LENGTH) - over
    return success(FAULT_AT + 1, over), success(over, over + 60), back, max(series["services"]["api"]["queue"][FAULT_AT : over + 5])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("becalm")
    parser.add_argument("--seeds", type=int, default=6)
    options = parser.parse_args()
    for fault in FAULTS:
        for replaced in (False, True):
            for start in (None, 100, 20, 5, 1):
                found = [run(options.becalm, scenario(fault, replaced), start, 7000 + n) for n in range(options.seeds)]
                inside, after, back, queue = (statistics.fmean(column) for column in zip(*found))
                what = "replaced" if replaced else "kept"
                print(f"{fault}, {what}, start {start or 'wide'}: success {inside:.3f} in the fault, {after:.3f} after; back after {back:.1f} s; queue {queue:.0f}", flush=True)


if __name__ == "__main__":
    main()
