#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Figures of a fleet without faults: the retries of each instance, and the cost for the Redis.

    bench/fleet/figures.py BECALM CROWD [uneven] [rolling] [operations] [thousand] [return] [restored]

uneven      one of 20 gateways needs 150 retries a second, the others 50 together: the retries that it gets in each second after the need began
rolling     four gateways, two with 20 % and two with 5 %, of one budget: the ratio of each
operations  commands a second and memory of an instance with 1, 10, 32 and 100 budgets
thousand    1000 instances with one budget: the processor time of the Redis
return      1000 instances whose Redis is killed for 3 s: tries to connect, and how they come back
restored    20 instances whose Redis is killed and back after 3 s from a file that is 10 s, and 300 s, old: how they come back
CROWD is build/release/bench/fleet/crowd: real clients, each with a connection of its own, in one process.
"""

import asyncio
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import fleet


class Counter(asyncio.Protocol):
    """Counts first attempts and retries by path; `fails(path, retry)` says which are answered with 503."""

    times = {}
    fails = None

    def connection_made(self, transport):
        self.transport, self.rest = transport, b""

    def data_received(self, data):
        self.rest += data
        while b"\r\n\r\n" in self.rest:
            head, self.rest = self.rest.split(b"\r\n\r\n", 1)
            path = head.split(b" ", 2)[1].decode()
            retry = b"x-envoy-attempt-count: 1\r\n" not in head.lower() + b"\r\n"
            Counter.times.setdefault((path, retry), []).append(time.monotonic())
            status = b"503 no" if Counter.fails(path, retry) else b"200 yes"
            self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\n\r\n")


async def stage(becalm, percents, seconds, rate, fails):
    """As many gateways as percentages; each gets calls with the path /NUMBER. Returns when it began."""
    Counter.times, Counter.fails = {}, staticmethod(fails)
    with tempfile.TemporaryDirectory() as name:
        folder, service, gateways, ports = pathlib.Path(name), fleet.free_port(), [], []
        store = fleet.Store(folder)
        store.start()
        server = await asyncio.get_running_loop().create_server(Counter, "127.0.0.1", service)
        try:
            for n, percent in enumerate(percents):
                ports.append(fleet.free_port())
                path = folder / f"{n}.yaml"
                path.write_text(fleet.POLICY.format(listen=ports[-1], redis=store.port, service=service, percent=percent))
                gateways.append(subprocess.Popen([becalm, "proxy", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            await asyncio.sleep(3)
            begun = time.monotonic()
            await asyncio.gather(*(fleet.caller(port, rate, begun + seconds, f"/{n}") for n, port in enumerate(ports)))
            return begun
        finally:
            for each in gateways:
                each.terminate()
            for each in gateways:
                each.wait()
            store.process.kill()
            store.process.wait()
            server.close()


def uneven(becalm):
    needs_from = [None]
    draw = random.Random(1)

    def fails(path, retry):
        if path == "/0":
            return time.monotonic() >= needs_from[0]
        return not retry and draw.random() < 50 / 950

    async def run():
        needs_from[0] = time.monotonic() + 3 + 10
        await stage(becalm, [20] * 20, 22, 50, fails)

    asyncio.run(run())
    got = Counter.times.get(("/0", True), [])
    others = [each for (path, retry), times in Counter.times.items() if retry and path != "/0" for each in times]
    for second in range(0, 8):
        low = needs_from[0] + second
        print(f"uneven: second {second}: {sum(low <= each < low + 1 for each in got)} retries of 150 wanted; the others {sum(low <= each < low + 1 for each in others)}")


def rolling(becalm):
    begun = asyncio.run(stage(becalm, [20, 20, 5, 5], 20, 50, lambda path, retry: True))
    for n, percent in enumerate([20, 20, 5, 5]):
        count = [sum(each >= begun + 2 for each in Counter.times.get((f"/{n}", retry), [])) for retry in (False, True)]
        print(f"rolling: gateway {n} with {percent} %: {100 * count[1] / count[0]:.1f} % of {count[0]} calls")


class Crowd:
    """A Redis of its own, and real clients."""

    def __init__(self, program, instances, budgets, seconds, calls):
        self.folder = tempfile.TemporaryDirectory()
        self.store = fleet.Store(self.folder.name)
        self.store.start()
        time.sleep(1)
        words = [program, f"redis://127.0.0.1:{self.store.port}", instances, budgets, seconds, calls]
        self.process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True)

    def cli(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.store.port), *words], capture_output=True, text=True, check=True).stdout

    def cpu(self):
        return sum(float(each) for each in re.findall(r"used_cpu_(?:user|sys):([\d.]+)", self.cli("info", "cpu")))

    def evals(self):
        return sum(int(each) for each in re.findall(r"cmdstat_eval(?:sha)?:calls=(\d+)", self.cli("info", "commandstats")))

    def restart(self):
        self.store.process.kill()
        self.store.process.wait()
        time.sleep(3)
        self.store.start()

    def told(self, figure, since=0):
        """Of each second."""
        tried = 0
        for second, up, connects, _, degraded in self.close():
            if second >= since:
                print(f"{figure}: second {second - since}: {up} connected, {connects - tried} tries, {degraded} on their own share", flush=True)
            tried = connects

    def close(self):
        said = self.process.communicate()[0]
        self.store.process.kill()
        self.store.process.wait()
        self.folder.cleanup()
        return [tuple(map(int, line.split())) for line in said.splitlines()]


def watched(program, instances, budgets, calls):
    """Commands a second for each instance, the processor's share, and bytes of a record and a pot."""
    crowd = Crowd(program, instances, budgets, 16, calls)
    time.sleep(4)
    before, cpu, at = crowd.evals(), crowd.cpu(), time.monotonic()
    time.sleep(10)
    passed = time.monotonic() - at
    evals, cpu = crowd.evals() - before, crowd.cpu() - cpu
    keys = {kind: crowd.cli("--scan", "--pattern", f"*:{kind}:*").split() for kind in "rp"}
    size = {kind: int(crowd.cli("memory", "usage", keys[kind][0])) for kind in "rp"}
    crowd.close()
    return evals / passed / instances, cpu / passed, cpu / evals, size


def operations(program):
    for budgets in (1, 10, 32, 100):
        rate, share, each, size = watched(program, 10, budgets, 10)
        print(f"operations: {budgets} budgets: {rate:.2f} a second and process, {1e6 * each:.0f} us of processor each; a record {size['r']} bytes, a pot {size['p']}")


def thousand(program):
    rate, share, each, size = watched(program, 1000, 1, 1)
    print(f"thousand: {rate:.2f} operations a second and process, {100 * share:.1f} % of a core, {1e6 * each:.0f} us each")


def come_back(program):
    crowd = Crowd(program, 1000, 1, 18, 1)
    time.sleep(6)
    crowd.restart()
    crowd.told("return")


def restored(program):
    for age in (10, 300):
        crowd = Crowd(program, 20, 1, age + 14, 50)
        time.sleep(3)
        crowd.cli("save")
        time.sleep(age)
        crowd.restart()
        crowd.told(f"restored from {age} s before", age + 3)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    BECALM, CROWD = map(os.path.abspath, sys.argv[1:3])
    RUNS = {"uneven": (uneven, BECALM), "rolling": (rolling, BECALM), "operations": (operations, CROWD), "thousand": (thousand, CROWD), "return": (come_back, CROWD), "restored": (restored, CROWD)}
    for word in sys.argv[3:] or RUNS:
        RUNS[word][0](RUNS[word][1])
