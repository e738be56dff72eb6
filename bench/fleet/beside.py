#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The store of the simulator beside a real one: the same five faults, second by second, at the service.

    bench/fleet/beside.py BECALM [--runs 3] [--seeds 21] [--gateways 8] [--rate 400] [--picture FILE.svg] [--fault FAULT ...]

Real gateways and a real redis-server (bench/fleet/fleet.py) against `becalm sim` with as many callers and calls. Both are means: of the runs, and of other
seeds. A curve is the retries of each second, as a share of the budget. Figures: how far the curves are apart in the mean of the seconds around the fault, in the
worst of them, and in all they sent together; and how far the real runs are from their own mean, since a busy machine is one of the reasons.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile

import fleet

FAULTS = {
    "kill": ("killed, back empty after 3 s", "for: 3s", "killStore: empty"),
    "stop": ("stopped for 8 s", "for: 8s", "hangStore: true"),
    "flush": ("FLUSHALL", "for: 1s", "emptyStore: true"),
    "old": ("killed, back after 3 s from 10 s before", "for: 3s", "killStore: 10s"),
    "late": ("answers 500 ms late for 8 s", "for: 8s", "store: 250ms"),  # each way
}
BEFORE, AFTER = 3, 14  # seconds around the fault

SCENARIO = """name: beside
about: everything fails, and something befalls the store
length: {length}s
attempts: 4
timeout: 2s
link: {{latency: 0.1ms}}
services:
  a: {{workers: any, time: {{constant: 1ms}}, errors: 100%}}
clients:
  c: {{to: a, rate: {rate}/s, callers: {gateways}, role: gateway}}
faults:
  store: {{at: {at}s, service: a, {lasts}, {fault}}}
policies:
  shared: {{breaker: {{enabled: false}}, limit: {{kind: none}}, maxRetries: 3, initialDelay: 1ms, maxDelay: 2ms, budget: {{kind: none, shared: {{percent: 20, redis: "redis://store"}}}}}}
"""


def simulated(options, fault, seed):
    _, lasts, what = FAULTS[fault]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(SCENARIO.format(length=fleet.FAULT_AT + AFTER, rate=options.rate, gateways=options.gateways, at=fleet.FAULT_AT, lasts=lasts, fault=what))
        file.flush()
        done = subprocess.run([options.becalm, "sim", file.name, "--json", "--series", "--seed", str(seed)], capture_output=True, text=True, check=True)
    series = json.loads(done.stdout)["series"]["services"]["a"]
    pairs = zip(series["arrivals"], series["retries"])
    return {second - fleet.FAULT_AT: fleet.share(all_ - again, again) for second, (all_, again) in enumerate(pairs)}


def real(options, fault):
    options.fault, options.seconds, options.age = fault, fleet.FAULT_AT + AFTER + 1.5, 10
    return {row[0]: fleet.share(*row[1:]) for row in fleet.measure(options)[0]}


def mean_of(curves):
    return [statistics.fmean(curve[second] for curve in curves) for second in range(-BEFORE, AFTER)]


def compare(options, fault):
    runs = [real(options, fault) for _ in range(options.runs)]
    there = mean_of(runs)
    here = mean_of([simulated(options, fault, 1000 + n) for n in range(options.seeds)])
    apart = [abs(a - b) for a, b in zip(there, here)]
    own = statistics.fmean(abs(a - b) for run in runs for a, b in zip(mean_of([run]), there))
    total = abs(statistics.fmean(there) - statistics.fmean(here))
    return {"real": there, "sim": here, "mean": statistics.fmean(apart), "worst": max(apart), "total": total, "own": own}


def curve(values, x, y):
    return " ".join(f"{x(n):.1f},{y(value):.1f}" for n, value in enumerate(values))


def picture(found, path):
    """One panel for each fault, real and simulated."""
    width, height, left = 620, 110, 46
    parts = []
    for row, (fault, each) in enumerate(found.items()):
        top = 30 + row * (height + 34)

        def x(n):
            return left + n * (width - left - 10) / (BEFORE + AFTER - 1)

        def y(value, top=top):
            return top + height - min(value, 2) * height / 2

        parts.append(f'<text x="{left}" y="{top - 6}" class="t">{FAULTS[fault][0]}</text>')
        for mark in (0, 1, 2):
            parts.append(f'<line x1="{left}" x2="{width - 10}" y1="{y(mark):.1f}" y2="{y(mark):.1f}" class="g"/><text x="{left - 6}" y="{y(mark) + 4:.1f}" class="n">{mark:g}</text>')
        parts.append(f'<line x1="{x(BEFORE):.1f}" x2="{x(BEFORE):.1f}" y1="{top}" y2="{top + height}" class="f"/>')
        parts.append(f'<polyline points="{curve(each["sim"], x, y)}" class="s"/><polyline points="{curve(each["real"], x, y)}" class="r"/>')
    tall = 30 + len(found) * (height + 34) + 8
    style = ".t{font:600 13px sans-serif;fill:#16242b}.n{font:11px sans-serif;fill:#55656e;text-anchor:end}.g{stroke:#d5dde1}.f{stroke:#b3261e;stroke-dasharray:3 3}.r{fill:none;stroke:#0b6272;stroke-width:2}.s{fill:none;stroke:#c2410c;stroke-width:2;stroke-dasharray:6 3}"
    legend = f'<text x="{left}" y="{tall - 6}" class="t">retries per second, of the budget: <tspan fill="#0b6272">real Redis</tspan>, <tspan fill="#c2410c">simulated (dashed)</tspan></text>'
    with open(path, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall}" role="img" aria-label="Retries of each second of the budget around five faults of the store, real and simulated"><rect width="{width}" height="{tall}" fill="#fff"/><style>{style}</style>{"".join(parts)}{legend}</svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("becalm")
    parser.add_argument("--fault", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=21)
    parser.add_argument("--gateways", type=int, default=8)
    parser.add_argument("--rate", type=int, default=400)
    parser.add_argument("--picture")
    options = parser.parse_args()
    options.becalm = os.path.abspath(options.becalm)
    found = {}
    for fault in list(options.fault):
        found[fault] = each = compare(options, fault)
        print(f"{fault}: apart {each['mean']:.3f} in the mean of the seconds, {each['worst']:.3f} in the worst, {each['total']:.3f} in all; real runs from their mean {each['own']:.3f}")
        for kind in ("real", "sim"):
            print(f"  {kind:4} " + " ".join(f"{value:.2f}" for value in each[kind]), flush=True)
    if options.picture:
        picture(found, options.picture)


if __name__ == "__main__":
    main()
