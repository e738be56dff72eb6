#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Races `becalm proxy` against HAProxy, nginx and a relay that parses nothing. docs/benchmarks.md says how."""

import argparse
import itertools
import os
import pathlib
import platform
import random
import re
import resource
import statistics
import sys
import tempfile

import counters
from contestant import ROOT, Contestants, Stage, Trouble, cores

SIZES = (200, 4096, 65536)
CONNECTIONS = (4, 64, 256)
WARM_UP_MS = 200
DESCRIPTORS_MAX = 65536

# The figures that the project set itself: the most that becalm may need, as a share of another program's figure, by
# size, connections, figure and program.
FIGURES = {
    (200, 64, "cpu", "haproxy"): 0.70,
    (200, 64, "cpu", "haproxy-bare"): 0.80,
    (200, 64, "cpu", "nginx"): 0.75,
    (200, 64, "cpu", "relay"): 1.30,
    (65536, 64, "cpu", "haproxy"): 0.65,
    (200, 4, "cpu", "haproxy"): 0.65,
    (200, 4, "latency", "haproxy"): 0.65,
}


class Cell:
    """One size and number of connections: the measurements of each rotation, for each contestant."""

    def __init__(self, size, connections):
        self.size = size
        self.connections = connections
        self.cpu = {}  # name: ns per request, one for each rotation
        self.latency = {}  # name: median ns of each rotation
        self.ran = self.waited = 0

    def note(self, name, before, after, answer):
        requests, median, _ = answer
        ran, waited = (new - old for new, old in zip(after, before))
        self.cpu.setdefault(name, []).append(ran / requests)
        self.latency.setdefault(name, []).append(median)
        self.ran += ran
        self.waited += waited

    def typical(self, what, name):
        return statistics.median(getattr(self, what)[name])

    def ratio(self, what, name, other):
        """Median of the ratios within a rotation: a disturbed moment disturbs both sides of it."""
        pairs = zip(getattr(self, what)[name], getattr(self, what)[other])
        return statistics.median(mine / theirs for mine, theirs in pairs)


def cell_race(stage, gateways, cell, options):
    """Slices over all contestants by turns, in a new random order each time."""
    names = list(gateways)
    load = stage.load(cell.connections, [gateways[name][1] for name in names])
    for target in range(len(names)):
        load.each(target, cell.size)
        load.slice(target, cell.size, WARM_UP_MS)
    for _ in range(options.rotations):
        for name in random.sample(names, len(names)):
            process = gateways[name][0]
            before = process.schedule()
            answer = load.slice(names.index(name), cell.size, options.slice)
            cell.note(name, before, process.schedule(), answer)
    stage.stop(load)


def table_print(title, cells, what, names):
    """One line per cell: the first contestant's microseconds, then its share of each other's."""
    first, *others = names
    print(f"\n{title}")
    print(f"{'answer':>8}  {'connections':>11}  {first + ', us':>12}", end="")
    print("".join(f"  {'of ' + other:>22}" for other in others))
    for cell in cells:
        print(f"{size_text(cell.size):>8}  {cell.connections:>11}  {cell.typical(what, first) / 1000:>12.1f}", end="")
        for other in others:
            figure = FIGURES.get((cell.size, cell.connections, what, other)) if first == "becalm" else None
            wanted = f" <={figure:.2f}" if figure else " " * 7
            ratio = f"{cell.ratio(what, first, other):.2f}"
            print(f"  {ratio:>5}{wanted} {cell.typical(what, other) / 1000:>6.1f} us", end="")
        print()


def size_text(size):
    return f"{size} B" if size < 1024 else f"{size // 1024} KiB"


def counters_print(contestants, names):
    """A line per contestant; the relay takes a backend connection per client's, so it has no idle ones to count."""
    print(f"\nPer request ({size_text(counters.SIZE)}, {counters.CONNECTIONS} connections), and memory")
    print(f"{'':12}  {'instructions':>12}  {'system calls':>12}  {'B per idle connection':>21}  {'MB at start':>11}")
    for name in names:
        with tempfile.TemporaryDirectory() as folder, Stage(contestants, folder) as stage:
            row = f"{name:12}  {counters.instructions(stage, name):>12,.0f}"
            row += f"  {counters.system_calls(stage, name):>12.2f}"
            if name != "relay":
                at_start, per_connection = counters.memory(stage, name)
                row += f"  {per_connection:>21,.0f}  {at_start / 1e6:>11.1f}"
            print(row, flush=True)
    if "becalm" in names:
        print(f"{'wanted':12}  {'<=9,000':>12}  {'<=4.20':>12}  {'<=256':>21}  {'<=5.5':>11}")


def conditions_print(contestants, options):
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    one, other = cores()
    placed = f"load and backend on core {one}, gateways on core {other}"
    if one == other:
        placed = "everything on one core: the figures are of little worth"
    for version in contestants.versions():
        print(version)
    print(f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()},", end=" ")
    print(f"load average {os.getloadavg()[0]:.1f}; {placed}")
    print(f"{options.rotations} rotations, slices of {options.slice} ms; every ratio is the median of those in a rotation")


def race(contestants, options):
    cells = [Cell(*both) for both in itertools.product(options.answers, options.connections)]
    with tempfile.TemporaryDirectory() as folder, Stage(contestants, folder) as stage:
        gateways = {name: stage.gateway(name) for name in options.only}
        for cell in cells:
            print(f"{size_text(cell.size)}, {cell.connections} connections ...", file=sys.stderr, flush=True)
            cell_race(stage, gateways, cell, options)
    table_print("CPU time per request", cells, "cpu", options.only)
    table_print("Median latency", cells, "latency", options.only)
    waited = sum(cell.waited for cell in cells)
    ran = sum(cell.ran for cell in cells)
    print(f"\nThe gateways ran {ran / 1e9:.1f} s, and waited {waited / 1e9:.1f} s for a core that somebody else had.")


def numbers(text):
    return [int(word) for word in text.split(",")]


def names(text):
    chosen = text.split(",")
    unknown = set(chosen) - set(Contestants.NAMES)
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(Contestants.NAMES)}")
    return chosen


def options_read():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only 200 B and 64 connections, and no counters")
    parser.add_argument("--rotations", type=int, default=40, metavar="N", help="slices per contestant, 40")
    parser.add_argument("--slice", type=int, default=80, metavar="MS", help="how long each is, 80")
    parser.add_argument("--answers", type=numbers, default=SIZES, metavar="BYTES,...", help="of 200, 4096, 65536")
    parser.add_argument("--connections", type=numbers, default=CONNECTIONS, metavar="N,...", help="4,64,256")
    parser.add_argument(
        "--only", type=names, default=Contestants.NAMES, metavar="NAME,...",
        help=f"of {', '.join(Contestants.NAMES)}; the first is compared with the others",
    )
    parser.add_argument("--no-counters", action="store_true", help="no instructions, system calls and memory")
    parser.add_argument("--counters-only", action="store_true", help="nothing else")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bench/gateway", metavar="FOLDER",
                        help="where backend, relay and load are")
    parser.add_argument("--gateway", metavar="COMMAND",
                        help="another command line for the contestant becalm; {listen}, {backend} and {admin} in it "
                             "are addresses, {becalm} is $BECALM or build/release/becalm, {here} this folder")
    options = parser.parse_args()
    if options.quick:
        options.answers, options.connections, options.no_counters = [200], [64], True
    return options


def descriptors_raise():
    """For all that we start: not every contestant raises the limit itself."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, DESCRIPTORS_MAX), min(hard, DESCRIPTORS_MAX)))


def main():
    options = options_read()
    contestants = Contestants(options.programs, options.gateway)
    descriptors_raise()
    try:
        conditions_print(contestants, options)
        if not options.counters_only:
            race(contestants, options)
        if not options.no_counters:
            counters_print(contestants, options.only)
    except Trouble as trouble:
        print(f"race: {trouble}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
