#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the same worlds on real `becalm proxy` processes and in `becalm sim`, second by second.

Every caller of a scenario is a real proxy, its services and clients are the program `stage`, and the calls of each
second are those of the simulated seed. docs/simulation.md explains the output."""

import argparse
import contextlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import picture

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORLDS = pathlib.Path(__file__).resolve().parent / "worlds"
OTHER_SEEDS = 1001  # the first of those that say how much seeds differ
LATE_US = 1000  # a run whose timers were later in the median is repeated
REPEATS = 3
DEADLINE = "16s"
START_SECONDS = 20
SETTLE_SECONDS = 0.3  # a call is counted after its answer


def fail(sentence):
    sys.exit(f"real.py: {sentence}")


# ---- the policies ----


def defaults(timeout_ms, retries=True):
    more = "" if retries else ", maxRetries: 0"
    return f"defaults: {{attemptTimeout: {timeout_ms}ms, deadline: {DEADLINE}{more}}}\n"


def sim_policy(plan):
    return "version: 1\n" + defaults(plan["timeoutMs"])


def proxy_policy(proxy):
    lines = [
        "version: 1",
        f"listen: {proxy['listen']}",
        f"admin: {proxy['admin']}",
        f"role: {proxy['role']}",
        "workers: 1",
        "trust: [127.0.0.0/8]",
        "clientKey: header:X-Client-Id",
        f"gatewayRetries: {'true' if proxy['retries'] else 'false'}",
        "drain: {delay: 0s, limit: 1s}",
        defaults(proxy["timeoutMs"], proxy["retries"]) + "services:",
    ]
    for name, hosts in proxy["to"].items():
        lines.append(f"  {name}: {{hosts: [{', '.join(json.dumps(h) for h in hosts)}], match: {{prefix: /{name}}}}}")
    return "\n".join(lines) + "\n"


# ---- processes ----


GIVEN = set()


def address():
    """A free port of a loopback address that belongs to this process: neither another run nor an outgoing connection
    can take it before it is used."""
    pid = os.getpid()
    host = f"127.{1 + pid // 62500 % 250}.{1 + pid // 250 % 250}.{1 + pid % 250}"
    while True:
        with socket.socket() as probe:
            probe.bind((host, 0))
            found = f"{host}:{probe.getsockname()[1]}"
        if found not in GIVEN:
            GIVEN.add(found)
            return found


def wiring(plan):
    """The proxies of a world, and the lines that tell the stage where everything is."""
    hosts = {name: [address() for _ in range(s["hosts"])] for name, s in plan["services"].items()}
    wires = [f"host {name} {i} {at}" for name, all_of in hosts.items() for i, at in enumerate(all_of)]
    proxies = []

    def proxy(role, retries, to, timeout_ms=None):
        proxies.append({"role": role, "retries": retries, "to": to, "timeoutMs": timeout_ms or plan["timeoutMs"],
                        "listen": address(), "admin": address()})
        return proxies[-1]["listen"]

    entry = dict(hosts)
    for name, service in plan["services"].items():
        if service["gate"]:
            entry[name] = [proxy("gateway", service["gateRetries"], {name: hosts[name]})]
    callers = [(name, c["callers"], c, [c["to"]]) for name, c in plan["clients"].items()]
    callers += [(name, s["instances"], s, s["calls"]) for name, s in plan["services"].items() if s["calls"]]
    for name, count, caller, to in callers:
        for i in range(count):
            via = proxy(caller["role"], caller.get("retries", True), {service: entry[service] for service in to},
                        caller.get("timeoutMs"))
            wires.append(f"via {name} {i} {via}")
    return proxies, wires


# ---- a real run ----


def real_time():
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def listening(at):
    host, port = at.split(":")
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
            return
        time.sleep(0.02)
    fail(f"nobody listens on {at}")


def counted(proxy, name):
    """The sum of a counter of a proxy."""
    with urllib.request.urlopen(f"http://{proxy['admin']}/metrics", timeout=10) as page:
        text = page.read().decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith((name + "{", name + " ")))


def end(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Lab:
    """The files and processes of one world."""

    def __init__(self, options, scenario):
        self.options = options
        self.scenario = scenario
        self.stage = options.programs / "bench/real/stage"
        self.becalm = options.programs / "becalm"
        done = subprocess.run([self.stage, "plan", scenario], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            fail(f"{scenario}: {done.stderr.strip()}")
        self.plan = json.loads(done.stdout)

    def start(self, *command, **more):
        return subprocess.Popen(command, text=True, preexec_fn=real_time if self.options.real_time else None, **more)

    def run(self, seed):
        """One real run with the calls of a seed."""
        proxies, wires = wiring(self.plan)
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:
            folder = pathlib.Path(folder)
            (folder / "wires").write_text("\n".join(wires) + "\n")
            stage = self.start(self.stage, "run", self.scenario, str(seed), folder / "wires",
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            ends.callback(end, stage)
            if stage.stdout.readline() != "ready\n":
                fail("the stage did not start")
            for i, proxy in enumerate(proxies):
                file = folder / f"proxy-{i}.yaml"
                file.write_text(proxy_policy(proxy))
                log = ends.enter_context(open(folder / f"proxy-{i}.log", "w"))
                ends.callback(end, self.start(self.becalm, "proxy", file, stdout=log, stderr=log))
            for proxy in proxies:
                listening(proxy["listen"])
            result = json.loads(stage.communicate("go\n")[0])
            time.sleep(SETTLE_SECONDS)
            result["proxies"] = [
                {"role": p["role"], "to": list(p["to"]), "arrivals": counted(p, "becalm_arrivals_total"),
                 "attempts": counted(p, "http_client_requests_total")} for p in proxies]
            result["seed"] = seed
            result["machine"] = os.getloadavg()[0]
            return result

    def run_on_time(self, seed):
        """The same, repeated if the machine was late."""
        for _ in range(REPEATS):
            result = self.run(seed)
            if result["late"]["medianUs"] <= LATE_US:
                break
            print(f"seed {seed}: timers were {result['late']['medianUs'] / 1000:.1f} ms late, once more",
                  file=sys.stderr)
        return result

    def simulate(self, first, count):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as policy:
            policy.write(sim_policy(self.plan))
            policy.flush()
            command = [self.becalm, "sim", self.scenario, "--policy", policy.name, "--json", "--series",
                       "--seed", str(first), "--seeds", str(count)]
            out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        result = json.loads(out)
        return result if isinstance(result, list) else [result]


# ---- comparison ----


def watched(plan):
    """The service that the figures are about: that of the fault, or else the last one that is called."""
    fault = plan["fault"]
    if fault and fault["service"]:
        return fault["service"]
    return [name for name, s in plan["services"].items() if not s["calls"]][-1]


def curves(run, service):
    """Load and success by the second, of a real run or a simulated one."""
    if "series" in run:
        clients = [run["series"]["clients"]]
        arrivals = run["series"]["services"][service]["arrivals"]
    else:
        clients = list(run["clients"].values())
        arrivals = run["services"][service]["arrivals"]
    calls = [sum(c) for c in zip(*(c["calls"] for c in clients))]
    good = [sum(c) for c in zip(*(c["successes"] for c in clients))]
    return {"load": arrivals, "calls": calls, "good": good}


def mean_curve(runs, name):
    return [statistics.fmean(second) for second in zip(*(run[name] for run in runs))]


def success_curve(runs):
    """In points; None: no call began in that second of any run."""
    return [100 * sum(g) / sum(c) if sum(c) else None
            for g, c in zip(zip(*(r["good"] for r in runs)), zip(*(r["calls"] for r in runs)))]


def load_error(runs, others, floor):
    """The mean over seconds of how far apart two groups of runs are, in percent of the second one."""
    pairs = zip(mean_curve(runs, "load"), mean_curve(others, "load"))
    return 100 * statistics.fmean(abs(a - b) / max(b, floor) for a, b in pairs)


def success_error(runs, others):
    pairs = zip(success_curve(runs), success_curve(others))
    return statistics.fmean(abs(a - b) for a, b in pairs if a is not None and b is not None)


def recovery(run, plan):
    """Seconds from the fault's end to the first of ten in a row with 99 % success, as the simulator counts; None."""
    if plan["fault"] is None:
        return None
    first = -int(-plan["fault"]["over"] // 1)
    seconds = [i for i in range(first, plan["seconds"]) if run["calls"][i] > 0]
    for at, second in enumerate(seconds):
        row = seconds[at:at + 10]
        if len(row) == 10 and all(100 * run["good"][i] >= 99 * run["calls"][i] for i in row):
            return second - first
    return None


def in_fault(run, plan, name):
    """The sum from 1 s after the fault's start to its end; without a fault, of the whole run."""
    fault = plan["fault"]
    first, last = (int(fault["at"]) + 1, int(fault["over"])) if fault else (0, plan["seconds"])
    return run[name][first:last] if last > first else run[name][first - 1:last + 1]


def share_in_fault(run, plan):
    calls = sum(in_fault(run, plan, "calls"))
    return sum(in_fault(run, plan, "good")) / calls if calls else None


def groups(runs, size):
    """As many simulated runs as there were real ones, each against all others: the difference between seeds."""
    for first in range(0, len(runs) - size + 1, size):
        yield runs[first:first + size], runs[:first] + runs[first + size:]


def of(runs, figure):
    values = [figure(run) for run in runs]
    return None if any(v is None for v in values) else statistics.fmean(values)


def middle(values):
    """The median, where None is never."""
    ordered = sorted(values, key=lambda v: float("inf") if v is None else v)
    return ordered[len(ordered) // 2]


def compare(name, plan, real, paired, others):
    service = watched(plan)
    raw_real, real, paired, others = (real, *([curves(run, service) for run in runs] for runs in (real, paired, others)))
    offered = statistics.fmean(mean_curve(others, "load")[:int(plan["fault"]["at"])] if plan["fault"]
                               else mean_curve(others, "load"))
    floor = offered / 10
    loads = {"error": load_error(real, others, floor), "paired": load_error(real, paired, floor),
             "noise": statistics.fmean(load_error(some, rest, floor) for some, rest in groups(others, len(real)))}
    points = {"error": success_error(real, others), "paired": success_error(real, paired),
              "noise": statistics.fmean(success_error(some, rest) for some, rest in groups(others, len(real)))}
    shares = [share_in_fault(run, plan) for run in others]
    peaks = {"real": of(real, lambda r: max(r["load"])), "sim": of(paired, lambda r: max(r["load"]))}
    recovered = {"real": [recovery(run, plan) for run in real], "sim": [recovery(run, plan) for run in paired],
                 "others": [recovery(run, plan) for run in others]}
    back = (middle(recovered["real"]), middle(recovered["sim"]))
    return {
        "world": name, "service": service, "plan": plan, "offered": offered,
        "load": loads, "success": points, "peak": peaks, "recovery": recovered,
        "successInFault": {"real": of(real, lambda r: share_in_fault(r, plan)),
                           "sim": of(paired, lambda r: share_in_fault(r, plan)),
                           "least": min(shares), "most": max(shares)},
        "loadInFault": {"real": of(real, lambda r: statistics.fmean(in_fault(r, plan, "load"))),
                        "sim": of(paired, lambda r: statistics.fmean(in_fault(r, plan, "load")))},
        "lateMs": [run["late"]["medianUs"] / 1000 for run in raw_real],
        "machine": [run["machine"] for run in raw_real],
        "holds": {"load": loads["paired"] <= 5 or loads["paired"] <= 1.2 * loads["noise"],
                  "peak": abs(peaks["real"] - peaks["sim"]) <= 0.1 * peaks["sim"],
                  "recovery": back[0] == back[1] or (None not in back and abs(back[0] - back[1]) <= 1)},
        "curves": {"real": real, "paired": paired, "others": others},
    }


# ---- output ----


def seconds_text(values):
    return ", ".join("never" if v is None else f"{v:g}" for v in values)


def row(result):
    load, success, fault = result["load"], result["success"], result["successInFault"]
    missed = [name for name, good in result["holds"].items() if not good]
    return " | ".join([
        "", result["world"],
        f"{load['error']:.1f} / {load['noise']:.1f} / **{load['paired']:.1f}**",
        f"{success['error']:.1f} / {success['noise']:.1f} / {success['paired']:.1f}",
        f"{result['peak']['real']:.0f}, {result['peak']['sim']:.0f}",
        f"{fault['real']:.3f}, {fault['sim']:.3f} [{fault['least']:.3f}, {fault['most']:.3f}]",
        f"{result['loadInFault']['real']:.0f}, {result['loadInFault']['sim']:.0f}",
        "" if result["plan"]["fault"] is None else
        f"{seconds_text(result['recovery']['real'])}; {seconds_text(result['recovery']['sim'])}",
        f"{statistics.median(result['lateMs']):.2f}", f"{statistics.fmean(result['machine']):.0f}",
        ", ".join(missed) if missed else "holds", ""]).strip()


HEAD = """\
| world | load, error / noise / paired, % | success, points | peak 1 s real, sim | success in fault real, sim [others] \
| load in fault /s | recovery s real; sim | timers late ms | machine's load | |
|---|---|---|---|---|---|---|---|---|---|"""


def world_file(word):
    file = pathlib.Path(word) if "/" in word or word.endswith(".yaml") else WORLDS / f"{word}.yaml"
    if not file.is_file():
        fail(f"{word}: no such world; there are {', '.join(sorted(w.stem for w in WORLDS.glob('*.yaml')))}")
    return file


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("world", nargs="*", help="names of bench/real/worlds, or scenario files; all if none is named")
    parser.add_argument("--runs", type=int, default=3, help="real runs of each, with the seeds from --seed on (3)")
    parser.add_argument("--seed", type=int, default=1, help="of the first run (1)")
    parser.add_argument("--others", type=int, default=21, help="simulated runs with other seeds (21)")
    parser.add_argument("--real-time", action="store_true",
                        help="ask for real-time priority, so that a busy machine is on time; needs the right to it")
    parser.add_argument("--json", metavar="FILE", help="also write all figures and curves")
    parser.add_argument("--from", dest="files", metavar="FILE", action="append", default=[],
                        help="take the results of an earlier --json instead of running anything")
    parser.add_argument("--picture", metavar="FILE", help="also draw real and simulated curves as one SVG")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release", help="where they were built")
    options = parser.parse_args()
    if options.runs < 1 or options.others < 2 * options.runs:
        parser.error("at least one run, and twice as many others")
    return options


def results(options):
    for name in options.files:
        yield from json.loads(pathlib.Path(name).read_text())
    words = options.world or ([] if options.files else sorted(w.stem for w in WORLDS.glob("*.yaml")))
    for file in [world_file(word) for word in words]:
        lab = Lab(options, file)
        real = [lab.run_on_time(options.seed + i) for i in range(options.runs)]
        yield compare(file.stem, lab.plan, real, lab.simulate(options.seed, options.runs),
                      lab.simulate(OTHER_SEEDS, options.others)) | {"runs": real}


def main():
    options = arguments()
    all_of = []
    print(HEAD)
    for result in results(options):
        all_of.append(result)
        print(row(result), flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(all_of))
    if options.picture:
        pathlib.Path(options.picture).write_text(picture.draw(all_of))


if __name__ == "__main__":
    main()
