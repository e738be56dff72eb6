#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The simulator beside a SimPy program of the same model, by turns; and how fast and how large it is with many clients.
Figures are of CPU time, so that a busy machine disturbs them little."""

import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MODEL = ["metastable", "--policy", "jitter", "--set", "length=60s", "--set", "faults.cut.at=59s"]
MODEL += ["--set", "faults.cut.for=1s", "--set", "faults.cut.capacity=1"]


def child(words):
    """The output of a command, on standard output and on standard error."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    out, err = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{words[0]}: {err}")
    return out, err


def usage(words):
    """Seconds of CPU and MiB of a child of its own."""
    program = (
        "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL,"
        " stderr=subprocess.PIPE, encoding='utf-8', check=True); use = resource.getrusage(resource.RUSAGE_CHILDREN);"
        " print(use.ru_utime + use.ru_stime, use.ru_maxrss / 1024, done.stderr)"
    )
    spent, memory, said = child([sys.executable, "-c", program, *words])[0].split(" ", 2)
    return float(spent), float(memory), said


def beside_simpy(becalm, turns):
    ours, theirs = [], []
    peer = shown = None
    for seed in range(1, turns + 1):
        peer = json.loads(child([sys.executable, str(HERE / "peer_simpy.py"), str(seed)])[0])
        theirs.append(peer["cpu_s"] / peer["calls"])
        shown, said = child([becalm, "sim", *MODEL, "--seed", str(seed), "--json", "--timing"])
        shown = json.loads(shown)
        spent = float(re.search(r"in ([0-9.]+) s of CPU", said).group(1))
        ours.append(spent / shown["clients"]["calls"])
    python = platform.python_version()
    print(
        f"becalm sim beside SimPy {peer['version']} (Python {python}): 60 s of 850 calls a second, 10 workers of 10 ms"
    )
    print(f"  mean time of a call      {shown['clients']['latency_mean_ms']:9.2f} ms {peer['mean_ms']:9.2f} ms")
    print(
        f"  CPU per call, median     {statistics.median(ours) * 1e6:9.2f} us {statistics.median(theirs) * 1e6:9.2f} us"
    )
    print(
        f"  SimPy takes {statistics.median(theirs) / statistics.median(ours):.0f} times as long; {turns} turns each\n"
    )


def crowd(becalm, policy, callers, rate, workers, length):
    words = [becalm, "sim", "metastable", "--policy", policy, "--json", "--timing"]
    for key, value in (
        ("length", f"{length}s"),
        ("faults.cut.at", f"{length - 1}s"),
        ("faults.cut.for", "1s"),
        ("faults.cut.capacity", 1),
        ("clients.users.callers", callers),
        ("clients.users.rate", f"{rate}/s"),
        ("services.api.workers", workers),
    ):
        words += ["--set", f"{key}={value}"]
    spent, memory, said = usage(words)
    events = re.search(r"([0-9.]+) million a second", said).group(1)
    print(
        f"{callers:>9,} clients x {length} s, {rate:,} calls/s, policy {policy}: {events} million events a second,",
        end=" ",
    )
    print(f"{spent:.1f} s of CPU in all, {memory:,.0f} MiB", flush=True)


def built_in(becalm):
    names = sorted(path.stem for path in (HERE.parent / "policies/scenarios").glob("*.yaml"))
    spent = sum(usage([becalm, "sim", name, "--json"])[0] for name in names)
    print(f"all {len(names)} built-in scenarios, one after the other: {spent:.1f} s of CPU", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Measure the simulator.")
    parser.add_argument("--program", default=str(HERE.parent / "build/release/becalm"), help="the becalm to run")
    parser.add_argument("--turns", type=int, default=5, help="runs of each beside each other")
    parser.add_argument("--most", type=int, default=1000000, help="clients of the largest run")
    chosen = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}\n")
    beside_simpy(chosen.program, chosen.turns)
    crowd(chosen.program, "none", 100000, 100000, 1200, 20)
    crowd(chosen.program, "becalm", 100000, 100000, 1200, 20)
    if chosen.most >= 1000000:
        crowd(chosen.program, "becalm", chosen.most, chosen.most // 60, 200, 60)
    built_in(chosen.program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
