#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Looks for worlds in which the default policy does worse than no policy at all, or than the best of nine others.

    search.py 1 2 3                     300 worlds of each of the seeds 1, 2 and 3, and a table
    search.py 1 --worst DIR             also writes the worst worlds as scenario files
    search.py 1 --unwritten             with a default policy without a written timeout
    search.py 1 --library               callers are programs with libbecalm-curl instead of sidecars
    search.py --file a.yaml b.yaml      counts these instead
    search.py --minimise bad.yaml       makes a bad world smaller while its regret stays

docs/regret.md explains the counts. Python's standard library only.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import count
import minimise
import world as worlds

ROOT = pathlib.Path(__file__).resolve().parents[2]
OTHERS = ("none", "naive", "jitter", "breaker", "envoy", "finagle", "grpc", "sre", "aws")
UNWRITTEN = ROOT / "tests/scenarios/worlds/newcomer.policy.yaml"  # a policy file that says nothing of timeouts
CHOSEN_ON = (1001, 1002)  # seeds on which the best other is chosen; it is compared on seeds from 1 on


class Refused(Exception):
    """The simulator does not run this world; the message says why."""


class Costly(Exception):
    """A run took more CPU time than it may."""


class Simulator:
    """Runs worlds. One for all threads: it keeps nothing but a folder. `default` runs as `becalm`."""

    def __init__(self, program, folder, cpu=10, default="becalm"):
        self.program = str(program)
        self.folder = pathlib.Path(folder)
        self.cpu = cpu
        self.default = str(default)

    def run(self, world, policies, first, seeds=1):
        """{policy: [run by seed]}, as `becalm sim --json` prints them."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", dir=self.folder) as file:
            file.write(worlds.text(world))
            file.flush()
            names = {self.default if policy == "becalm" else policy: policy for policy in policies}
            words = [self.program, "sim", file.name, "--json", "--compare", ",".join(names)]
            words += ["--seed", str(first), "--seeds", str(seeds)]
            environment = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1")
            pipe = subprocess.PIPE
            with subprocess.Popen(words, stdout=pipe, stderr=pipe, env=environment, encoding="utf-8") as process:
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (self.cpu, self.cpu))
                out, err = process.communicate()
        if process.returncode < 0:
            raise Costly(f"more than {self.cpu} s of CPU")
        if process.returncode != 0:
            raise Refused(err.strip().replace(file.name, "world"))
        runs = json.loads(out)
        found = {policy: [] for policy in policies}
        for run in runs if isinstance(runs, list) else [runs]:
            found[names[run["policy"]]].append(run)
        return found


def success(run):
    return run["clients"]["success"]


def recovery(run):
    seconds = run["clients"]["recovered_after_s"]
    return math.inf if seconds is None else seconds


def load(run, service):
    return run["services"][service]["amplification"]["mean"]


def reasons(run):
    """Why calls ended without success, of all hops and gates together."""
    found = collections.Counter()
    for target in run["targets"].values():
        for part in (target, target.get("gate", {})):
            for how in ("refused", "ended"):
                found.update(part.get(how, {}))
    return found


class Trial:
    """One world with the default and with others, seed after seed. Where it has a gate, the others run without it."""

    def __init__(self, simulator, world):
        self.simulator = simulator
        self.world = world
        self.bare = worlds.without_gates(world)
        self.is_same = not worlds.has_gate(world)
        self.runs = collections.defaultdict(list)

    def more(self, policies, upto):
        """Runs these, so that each has the seeds from 1 to `upto`."""
        wanted = collections.defaultdict(list)
        for policy in policies:
            own = policy == "becalm" and not self.is_same
            wanted[own, len(self.runs[policy])].append(policy)
        for (own, done), names in wanted.items():
            if done < upto:
                for policy, runs in self._run(names, own, done + 1, upto - done).items():
                    self.runs[policy] += runs

    def _run(self, names, own, first, seeds):
        return self.simulator.run(self.world if own or self.is_same else self.bare, names, first, seeds)

    def best_other(self):
        """The other policy that does best on seeds that are not used for comparisons. Storms are left out if they cost
        more than allowed: a policy with that many retries does not count as best."""
        found = {}
        for policy in OTHERS:
            try:
                found[policy] = [success(self._run([policy], False, CHOSEN_ON[0], 1)[policy][0])]
            except Costly:
                continue
        nearest = sorted(found, key=lambda policy: -found[policy][0])[:3]
        for policy in nearest:
            if found[policy][0] < found[nearest[0]][0] - 0.05:
                continue
            for seed in CHOSEN_ON[1:]:
                try:
                    found[policy].append(success(self._run([policy], False, seed, 1)[policy][0]))
                except Costly:
                    continue
        return max(found, key=lambda policy: (statistics.fmean(found[policy]), -OTHERS.index(policy)))

    def differences(self, other):
        return [success(b) - success(a) for a, b in zip(self.runs["becalm"], self.runs[other])]


def judge(simulator, name, world):
    """The verdict on one world, with as few runs as decide it."""
    healthy = not worlds.has_fault(world)
    verdict = count.Verdict(name, healthy, worlds.is_tight(world), worlds.has_gate(world), kind(world))
    trial = Trial(simulator, world)
    try:
        decide(trial, verdict)
    except Refused as why:
        verdict.left_out = f"refused: {why}"
    except Costly as why:
        verdict.left_out = f"costly: {why}"
    return verdict


def decide(trial, verdict):
    trial.more(("becalm", "none"), count.SEEDS[0])
    verdict.calls = min(run["clients"]["calls"] for run in trial.runs["none"])
    if verdict.calls < count.FEWEST_CALLS:
        verdict.left_out = "few calls"
        return
    best = "none"
    if not count.is_surely_fine([success(run) for run in trial.runs["becalm"]], count.HEALTHY_NONE[0]):
        best = trial.best_other()
        for seeds in count.SEEDS:
            trial.more(("becalm", "none", best), seeds)
            verdict.decided = count.is_decided(trial.differences("none"), verdict.bounds) and count.is_decided(
                trial.differences(best), count.BEST
            )
            if verdict.decided:
                break
    fill(trial, verdict, best)


def fill(trial, verdict, best):
    service = worlds.focus(trial.world)
    runs, none = trial.runs["becalm"], trial.runs["none"]
    verdict.seeds = len(runs)
    verdict.default, _ = count.interval([success(run) for run in runs])
    verdict.none, _ = count.interval([success(run) for run in none])
    verdict.best = best
    verdict.best_success, _ = count.interval([success(run) for run in trial.runs[best]])
    verdict.than_none, verdict.than_none_half = count.interval(trial.differences("none"))
    verdict.than_best, verdict.than_best_half = count.interval(trial.differences(best))
    verdict.reasons = dict(sum((reasons(run) for run in runs), collections.Counter()).most_common(4))
    if not verdict.healthy:
        verdict.recovery = [recovery(run) for run in runs]
        verdict.recovery_none = [recovery(run) for run in none]
        verdict.load = mean_of([load(run, service) for run in runs])
        verdict.load_none = mean_of([load(run, service) for run in none])


def mean_of(values):
    """None where the fault is too short for a load."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def kind(world):
    """In two words: the shape, and the fault."""
    services = world["services"]
    top = services[next(iter(services))]
    shape = "one" if len(services) == 1 else "page" if "fanOut" in top else "diamond" if "left" in services else "chain"
    harm = "healthy"
    for fault in world.get("faults", {}).values():
        names = [key for key in fault if key not in ("at", "for", "service", "client", "flap", "silent", "from")]
        harm = names[0] + (" flapping" if "flap" in fault else "") + (" silent" if "silent" in fault else "")
    return f"{shape}, {harm}"


# Output.


def figure(line):
    return f"{line.count:.3f}x" if isinstance(line.count, float) else f"{line.count} of {line.of}"


def show(verdicts, seconds):
    counted = [v for v in verdicts if not v.left_out]
    tight = [v for v in counted if v.tight]
    print(f"{'what':58} {'today':>12}  reach")
    for line in count.table(verdicts):
        print(f"{line.what:58} {figure(line):>12}  {line.reach}{'' if line.held else '  MISSED'}")
    loads = [v.load_none for v in counted if not v.tight and v.load_none is not None]
    if loads:
        print(f"{'... of none':58} {statistics.fmean(loads):11.3f}x")
    for label, group in (("healthy", True), ("fault", False)):
        known = [v for v in counted if v.healthy == group and not v.tight]
        if known:
            mine, none = (statistics.fmean(getattr(v, key) for v in known) for key in ("default", "none"))
            best = statistics.fmean(v.best_success for v in known)
            print(f"{label + ': mean success':58} {mine:12.4f}  (none {none:.4f}, best of each {best:.4f})")
    worse = [sum(v.than_none > b for v in tight) for b in (0.01, 0.05)] + [sum(v.than_best > 0.05 for v in tight)]
    print(f"{'timeout below p90, apart: worse than none by > .01, .05':58} {f'{worse[0]}, {worse[1]} of {len(tight)}':>12}")
    print(f"{'... than the best by > .05':58} {f'{worse[2]} of {len(tight)}':>12}")
    left = collections.Counter(v.left_out.split(":")[0] for v in verdicts if v.left_out)
    open_ones = sum(not v.decided for v in counted)
    print(
        f"{len(verdicts)} worlds in {seconds:.0f} s; left out: {sum(left.values())} {dict(left) or ''}; "
        f"not decided after {count.SEEDS[-1]} seeds: {open_ones}"
    )


def told(verdict):
    """A verdict in a few lines, for the head of a file."""
    v = verdict
    lines = [
        f"{v.name}: {v.kind}{', gate' if v.gate else ''}{', tight timeout' if v.tight else ''}; "
        f"{v.calls} calls, {v.seeds} seeds",
        f"default {v.default:.4f}, none {v.none:.4f}, best {v.best} {v.best_success:.4f}; "
        f"regret {v.than_none:+.4f} +-{v.than_none_half:.4f} against none, "
        f"{v.than_best:+.4f} +-{v.than_best_half:.4f} against the best",
        "reasons " + (", ".join(f"{why} {n}" for why, n in v.reasons.items()) or "none"),
    ]
    if v.recovery:
        lines.append(f"recovery {seconds_of(v.recovery)}, none {seconds_of(v.recovery_none)}")
    if v.load is not None:
        lines.append(f"load in the fault {v.load:.3f}x, none {v.load_none or 0:.3f}x")
    return "\n".join(lines)


def seconds_of(values):
    middle = statistics.median(values)
    return "never" if math.isinf(middle) else f"{middle:g} s"


def causes(bad):
    """Of worlds: how often each reason is the first, or the second."""
    ranked = collections.Counter()
    for verdict in bad:
        ranked.update(list(verdict.reasons)[:2])
    return ", ".join(f"{why} {n}" for why, n in ranked.most_common())


def is_bad(verdict):
    return not verdict.left_out and (
        verdict.than_none > verdict.bounds[0] or verdict.than_best > count.BEST[0] or verdict.late
    )


def write_worst(folder, verdicts, drawn, most):
    """The worst worlds as files that one can run; one against none before one against the best."""
    folder.mkdir(parents=True, exist_ok=True)
    worst = sorted(filter(is_bad, verdicts), key=lambda v: -v.regret)[:most]
    for place, verdict in enumerate(worst, 1):
        name = verdict.name.replace("/", "-").removesuffix(".yaml")
        path = folder / f"{place:02}-{name}.yaml"
        path.write_text(worlds.text(drawn[verdict.name], told(verdict)))
    return worst


# The command.


def draw_all(seeds, each, role="sidecar"):
    """Worlds whose callers have this role."""
    return {
        f"{seed}/{number}": worlds.with_role(worlds.draw(seed, number), role)
        for seed in seeds
        for number in range(each)
    }


def role_of(chosen):
    """The role of the callers of the worlds that are drawn, by the option --library."""
    return "library" if chosen.library else "sidecar"


def read_all(files):
    return {pathlib.Path(file).name: worlds.read(pathlib.Path(file).read_text()) for file in files}


def search(simulator, drawn, jobs=1, most_seconds=math.inf, say=None):
    """The verdicts on all of these worlds, in their order; fewer, when the time is over."""
    begun = time.monotonic()
    found = []

    def one(item):
        if time.monotonic() - begun > most_seconds:
            return None
        verdict = judge(simulator, *item)
        if say is not None:
            say(verdict)
        return verdict

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for verdict in pool.map(one, drawn.items()):
            if verdict is not None:
                found.append(verdict)
    return found


def arguments():
    parser = argparse.ArgumentParser(description="Look for worlds in which the default policy does worse than others.")
    parser.add_argument("seeds", nargs="*", type=int, help="seeds of worlds")
    parser.add_argument("--program", default=str(ROOT / "build/release/becalm"), help="the becalm to run")
    parser.add_argument("--worlds", type=int, default=300, metavar="N", help="of each seed (300)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="worlds at once (1)")
    parser.add_argument("--time", type=float, default=math.inf, metavar="S", help="begin no world after so many seconds")
    parser.add_argument("--cpu", type=int, default=10, metavar="S", help="of one run of the simulator at most (10)")
    parser.add_argument("--file", nargs="+", default=[], metavar="FILE", help="count these worlds instead")
    parser.add_argument("--unwritten", action="store_true", help="no timeout is written: it is learned; others have 60 s")
    parser.add_argument("--library", action="store_true", help="drawn callers use libbecalm-curl, not sidecars")
    parser.add_argument("--worst", type=pathlib.Path, metavar="DIR", help="write the worst worlds there")
    parser.add_argument("--most", type=int, default=30, metavar="N", help="so many of them (30)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every verdict there")
    parser.add_argument("--minimise", nargs="+", default=[], metavar="FILE", help="make these worlds smaller")
    parser.add_argument("--quiet", action="store_true", help="print the table only")
    return parser.parse_args()


def main():
    chosen = arguments()
    with tempfile.TemporaryDirectory(prefix="regret") as folder:
        simulator = Simulator(chosen.program, folder, chosen.cpu, UNWRITTEN if chosen.unwritten else "becalm")
        if chosen.minimise:
            return smaller(simulator, chosen)
        drawn = read_all(chosen.file) if chosen.file else draw_all(chosen.seeds, chosen.worlds, role_of(chosen))
        if chosen.unwritten:
            drawn = {name: worlds.unwritten(world) for name, world in drawn.items()}
        begun = time.monotonic()
        say = None if chosen.quiet else lambda v: is_bad(v) and print(told(v) + "\n", flush=True)
        verdicts = search(simulator, drawn, chosen.jobs, chosen.time, say)
    show(verdicts, time.monotonic() - begun)
    bad = [v for v in verdicts if is_bad(v)]
    print(f"{len(bad)} worlds with regret, by their first two reasons: {causes(bad)}")
    if chosen.worst:
        write_worst(chosen.worst, verdicts, drawn, chosen.most)
    if chosen.json:
        chosen.json.write_text(json.dumps([dataclasses.asdict(v) for v in verdicts], indent=1) + "\n")
    return 0


def smaller(simulator, chosen):
    for name, world in read_all(chosen.minimise).items():
        found = minimise.minimise(world, lambda each: judge(simulator, name, each), time.monotonic() + chosen.time)
        print(worlds.text(found, told(judge(simulator, name, found))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
