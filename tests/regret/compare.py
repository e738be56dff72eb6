#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compares the default policy of two programs in the same random worlds: what a change of the engine does.

    compare.py OLD NEW --seed 1 --worlds 200          the worlds 1/0 to 1/199 of search.py, six seeds of each
    compare.py OLD NEW --seed 1 2 --unwritten         with a default policy without a written timeout
    compare.py OLD NEW --seed 1 --library             callers are programs with libbecalm-curl instead of sidecars
    compare.py OLD NEW --file a.yaml b.yaml           these worlds instead

It runs only the default policy of both programs and `none` of the new one. The figures are those of search.py but for
the number of seeds, which is the same for every world. docs/regret.md explains them. Python's standard library only.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import count
import search
import world as worlds

MOVED = 0.005  # of the success
MOST_SEEDS = len(count.STUDENT) + 1


@dataclasses.dataclass
class Pair:
    """One world with both programs."""

    name: str
    old: count.Verdict = None
    new: count.Verdict = None
    left_out: str = ""  # why it does not count

    @property
    def move(self):
        return self.new.default - self.old.default


def compare(old, new, name, world, seeds):
    """The results of one world by two simulators."""
    if worlds.is_tight(world):
        return Pair(name, left_out="tight timeout")
    ours, theirs = search.Trial(new, world), search.Trial(old, world)
    pair = Pair(name)
    for side, trial, policies in (("new", ours, ("becalm", "none")), ("old", theirs, ("becalm",))):
        try:
            trial.more(policies, min(seeds, count.SEEDS[0]))
            if min(run["clients"]["calls"] for run in ours.runs["none"]) < count.FEWEST_CALLS:
                pair.left_out = "few calls"
                return pair
            trial.more(policies, seeds)
        except (search.Refused, search.Costly) as why:
            what = "refused" if isinstance(why, search.Refused) else "costly"
            pair.left_out = f"{what} by the {side} program: {why}"
            return pair
    theirs.runs["none"] = ours.runs["none"]
    pair.old, pair.new = verdict_of(theirs, name), verdict_of(ours, name)
    return pair


def verdict_of(trial, name):
    world = trial.world
    verdict = count.Verdict(name, not worlds.has_fault(world), False, worlds.has_gate(world), search.kind(world))
    search.fill(trial, verdict, "none")
    return verdict


def compare_all(old, new, drawn, seeds, jobs=1):
    """The pairs of all of these worlds, in their order."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda item: compare(old, new, *item, seeds), drawn.items()))


def moves(pairs):
    """Those whose success differs, the largest difference first."""
    moved = [pair for pair in pairs if abs(pair.move) > MOVED]
    return sorted(moved, key=lambda pair: -abs(pair.move))


# Output.


def lines(verdicts):
    """{what: figure} of one program."""
    found = {line.what: search.figure(line) for line in count.table(verdicts) if "best" not in line.what}
    for label, group in (("healthy", True), ("fault", False)):
        known = [v for v in verdicts if v.healthy == group]
        if known:
            mine, none = (statistics.fmean(getattr(v, key) for v in known) for key in ("default", "none"))
            found[f"{label}: mean success (none {none:.4f})"] = f"{mine:.4f}"
    return found


def show(pairs, seconds):
    known = [pair for pair in pairs if not pair.left_out]
    old, new = lines([pair.old for pair in known]), lines([pair.new for pair in known])
    print(f"{'what':58} {'old':>12} {'new':>12}")
    for what in new:
        print(f"{what:58} {old.get(what, '-'):>12} {new[what]:>12}")
    moved = moves(known)
    better = sum(pair.move > 0 for pair in moved)
    print(f"{len(moved)} worlds moved by more than {MOVED}: {better} up, {len(moved) - better} down")
    for pair in moved:
        print(
            f"{pair.move:+.4f}  {pair.name:>8}  none {pair.new.none:.4f}  old {pair.old.default:.4f}  "
            f"new {pair.new.default:.4f}  {pair.new.kind}{', gate' if pair.new.gate else ''}"
        )
    left = collections.Counter(pair.left_out.split(":")[0] for pair in pairs if pair.left_out)
    print(f"{len(pairs)} worlds in {seconds:.0f} s; left out: {sum(left.values())} {dict(left) or ''}")


# The command.


def program(text):
    """The path of a becalm that runs."""
    path = shutil.which(text)
    if path is None:
        raise argparse.ArgumentTypeError(f"{text} is no program that can be run")
    try:
        done = subprocess.run([path, "--version"], capture_output=True, encoding="utf-8", errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as why:
        raise argparse.ArgumentTypeError(f"{text} does not run: {why}") from None
    if done.returncode != 0 or not done.stdout.startswith("becalm"):
        raise argparse.ArgumentTypeError(f"{text} is no becalm: --version does not say so")
    return path


def number(least, most=None):
    def convert(text):
        value = int(text)
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{value} is not {least} to {most}" if most else f"{value} is below {least}")
        return value

    convert.__name__ = "number"  # for argparse's message about a word
    return convert


def arguments():
    parser = argparse.ArgumentParser(
        description="Compare the default policy of two programs in the same random worlds.",
        epilog="docs/regret.md explains the figures. Exit status: 0, 1 if no world could be compared, 2 on wrong usage.",
    )
    parser.add_argument("old", type=program, metavar="OLD", help="the becalm without the change")
    parser.add_argument("new", type=program, metavar="NEW", help="the becalm with it")
    parser.add_argument("--seed", nargs="+", type=int, default=[1], metavar="S", help="seeds of worlds (1)")
    parser.add_argument("--worlds", type=number(1), default=300, metavar="N", help="of each seed (300)")
    parser.add_argument("--seeds", type=number(1, MOST_SEEDS), default=6, metavar="N", help="runs of each world (6)")
    parser.add_argument("--jobs", type=number(1), default=2, metavar="N", help="worlds at once (2)")
    parser.add_argument("--cpu", type=number(1), default=10, metavar="S", help="of one run of the simulator at most (10)")
    parser.add_argument("--file", nargs="+", default=[], metavar="FILE", help="compare in these worlds instead")
    parser.add_argument("--unwritten", action="store_true", help="no timeout is written: it is learned; none has 60 s")
    parser.add_argument("--library", action="store_true", help="drawn callers use libbecalm-curl, not sidecars")
    return parser, parser.parse_args()


def main():
    parser, chosen = arguments()
    try:
        role = search.role_of(chosen)
        drawn = search.read_all(chosen.file) if chosen.file else search.draw_all(chosen.seed, chosen.worlds, role)
    except OSError as why:
        parser.error(str(why))
    if chosen.unwritten:
        drawn = {name: worlds.unwritten(world) for name, world in drawn.items()}
    default = search.UNWRITTEN if chosen.unwritten else "becalm"
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="regret") as folder:
        old, new = (search.Simulator(path, folder, chosen.cpu, default) for path in (chosen.old, chosen.new))
        pairs = compare_all(old, new, drawn, chosen.seeds, chosen.jobs)
    if all(pair.left_out for pair in pairs):
        print(f"compare.py: no world can be compared; {pairs[0].name}: {pairs[0].left_out}", file=sys.stderr)
        return 1
    show(pairs, time.monotonic() - begun)
    return 0


if __name__ == "__main__":
    sys.exit(main())
