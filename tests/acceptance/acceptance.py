#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The requirements of the default policy, row by row: a scenario, a policy, and the range in which the mean of ten
seeds lies.

A row is a command that a user can type; `acceptance.py --list` prints all of them. As a program it runs every row and
prints a table; tests/cli/test_sim_acceptance.py runs the quick ones. docs/acceptance.md names their sources.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import math
import os
import pathlib
import shlex
import subprocess
import sys
import time

import rows as table

ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments(row, seeds=None):
    """The row as it is typed after `becalm`; without `seeds` with as many as the row asks for."""
    name = row.scenario if "/" not in row.scenario else str(ROOT / row.scenario)
    words = ["sim", name]
    if row.policy != "becalm":
        words += ["--policy", row.policy if "/" not in row.policy else str(ROOT / row.policy)]
    for key, value in row.sets.items():
        words += ["--set", f"{key}={value}"]
    return words + ["--seeds", str(seeds or row.seeds), "--json", "--series"]


def typed(row):
    """The same command for a reader: relative to the project, and without options that only programs need."""
    words = [word.removeprefix(f"{ROOT}/") for word in arguments(row)[:-2]]
    return "becalm " + shlex.join(words)


def shown(program, row, seeds):
    """The output of the command for each seed."""
    environment = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1")
    done = subprocess.run([program, *arguments(row, seeds)], stdout=subprocess.PIPE, check=True, env=environment)
    runs = json.loads(done.stdout)
    return runs if isinstance(runs, list) else [runs]


def bare(row):
    """The same world without a policy and without the gates, for the comparison of a row with `gates`."""
    return dataclasses.replace(row, policy="none", sets={f"services.{name}.gate": "false" for name in row.gates})


def run(program, row, seeds=None):
    """The mean of each figure over the row's seeds, or over so many, and its standard deviation: {name: (mean, deviation)}."""
    runs = shown(program, row, seeds)
    others = shown(program, bare(row), seeds) if row.gates is not None else None
    result = {}
    for check in row.checks:
        seen = [check.figure(each) for each in runs]
        if others is not None:
            seen = [check.figure(other) - value for other, value in zip(others, seen)]
        mean = sum(seen) / len(seen)
        spread = sum((value - mean) ** 2 for value in seen) / len(seen) if math.isfinite(mean) else 0.0
        result[check] = (mean, math.sqrt(spread))
    return result


def misses(result):
    """The checks whose mean is outside of its range."""
    return [check for check, (mean, _) in result.items() if not check.low <= mean <= check.high]


def number(value):
    return "never" if math.isinf(value) else f"{value:.4f}" if value < 10 else f"{value:.1f}"


def report(row, result, seconds):
    """One line per figure."""
    for check, (mean, spread) in result.items():
        verdict = "ok" if check.low <= mean <= check.high else "MISSED"
        note = f"  note {check.note}" if check.note else ""
        if check.wanted is not None:
            note += f"  wanted {number(check.wanted)}, not reached yet"
        print(
            f"{row.name:5} {row.about:44.44} {check.name:12} {number(mean):>8} +-{number(spread):>7}"
            f"  [{number(check.low)}, {number(check.high)}]  {verdict}{note}",
            flush=True,
        )
    if seconds is not None:
        print(f"{'':5} {seconds:.1f} s", flush=True)


def page_lines(rows):
    """The table of docs/acceptance.md: the goals of worlds, and whether they are reached."""
    for row in rows:
        for check in row.checks:
            is_floor = check.high == 1
            bound = check.wanted if check.wanted is not None else check.low if is_floor else check.high
            reached = check.low if is_floor else check.high
            sign = ">=" if is_floor else "<="
            state = "held" if check.wanted is None else f"missed: {sign} {reached:g} so far"
            yield f"| {row.name} | {row.about} | {check.name} {sign} {bound:g} | {state} |"


def main():
    parser = argparse.ArgumentParser(description="Run the acceptance rows and print a table; exit 1 if one is missed.")
    parser.add_argument("--program", default=str(ROOT / "build/release/becalm"), help="the becalm to run")
    parser.add_argument("--quick", action="store_true", help="only the rows that the tests run")
    parser.add_argument("--only", default="", metavar="NAME", help="only rows whose name begins so")
    parser.add_argument("--seeds", type=int, help="instead of ten (forty of the rows WR), for which the ranges are")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="rows at once (one per processor)")
    parser.add_argument("--list", action="store_true", help="print the commands, and run nothing")
    parser.add_argument("--page", action="store_true", help="print the rows of worlds as docs/acceptance.md has them")
    parser.add_argument("--timing", action="store_true", help="print how long each row took")
    chosen = parser.parse_args()
    picked = [r for r in table.ROWS if r.name.startswith(chosen.only) and (r.quick or not chosen.quick)]
    if chosen.list:
        for row in picked:
            print(f"{row.name}: {row.about}\n  {typed(row)}")
        return 0

    if chosen.page:
        print("\n".join(page_lines([row for row in picked if row.name.startswith("W")])))
        return 0

    def timed(row):
        begun = time.monotonic()
        return run(chosen.program, row, chosen.seeds), time.monotonic() - begun

    missed = 0
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        for row, (result, seconds) in zip(picked, pool.map(timed, picked)):
            report(row, result, seconds if chosen.timing else None)
            missed += len(misses(result))
    print(f"{sum(len(row.checks) for row in picked)} figures of {len(picked)} rows, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
