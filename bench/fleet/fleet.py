#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real gateways that share a budget through a real Redis, counted at the service: retries of each second against the budget.

    bench/fleet/fleet.py BECALM [--gateways 20] [--rate 1000] [--seconds 30] [--fault none|kill|stop|flush|old|late] [--age 10]

Every call fails and may be retried three times, so that all the budget is wanted. The fault comes after 13 s, or 3 s more than --age; a killed store comes back 3 s later
(empty, or with `old` from a file that was --age seconds old when it died), a stopped one goes on after 8 s, and `late` answers take half a second for 8 s, a quarter each way. Seconds are counted from
the fault: second 0 is the first one of it. The budget of a second is 20 % of the calls that were made in it, or that were due where a busy machine made fewer.
bench/fleet/beside.py sets the same beside the simulator.
"""

import argparse
import asyncio
import math
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

POLICY = """listen: 127.0.0.1:{listen}
admin: none
workers: 1
drain: {{delay: 0s}}
log: {{level: error}}
store: {{redis: "redis://127.0.0.1:{redis}"}}
services:
  a:
    hosts: ["127.0.0.1:{service}"]
    match: {{prefix: /}}
    breaker: {{enabled: false}}
    limit: {{kind: none}}
    maxRetries: 3
    initialDelay: 1ms
    maxDelay: 2ms
    budget: {{kind: none, shared: {{percent: {percent}}}}}
"""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


FAULT_AT = 13  # seconds
PATIENCE = 0.1  # a client does not send in a burst the calls that it missed for longer, while the machine stood still


class Service(asyncio.Protocol):
    """Answers 503 to everything; notes when first attempts and retries came."""

    firsts = []
    retries = []

    def connection_made(self, transport):
        self.transport, self.rest = transport, b""

    def data_received(self, data):
        self.rest += data
        while b"\r\n\r\n" in self.rest:
            head, self.rest = self.rest.split(b"\r\n\r\n", 1)
            retry = b"x-envoy-attempt-count: 1\r\n" not in head.lower() + b"\r\n"
            (Service.retries if retry else Service.firsts).append(time.monotonic())
            self.transport.write(b"HTTP/1.1 503 no\r\ncontent-length: 0\r\n\r\n")


async def caller(port, rate, until, path="/"):
    """One client of one gateway: a number of calls a second, one after the other on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    due = time.monotonic()
    sent = 0
    while time.monotonic() < until:
        writer.write(f"GET {path} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        if length:
            await reader.readexactly(int(length[0].split(b":")[1]))
        sent += 1
        due = max(due + 1 / rate, time.monotonic() - PATIENCE)
        await asyncio.sleep(max(0, due - time.monotonic()))
    writer.close()
    return sent


class Relay:
    """A proxy between the gateways and the store, which can delay the bytes of either side."""

    def __init__(self, to):
        self.port, self.to, self.delay = free_port(), to, 0.0

    async def start(self):
        self.server = await asyncio.start_server(self.carry, "127.0.0.1", self.port)
        return self

    async def carry(self, reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self.pump(reader, far_writer), self.pump(far_reader, writer), return_exceptions=True)

    async def pump(self, source, sink):
        loop = asyncio.get_running_loop()
        due = loop.time()
        try:
            while chunk := await source.read(65536):
                due = max(due, loop.time() + self.delay)  # each is late by as much, and none overtakes
                loop.call_at(due, sink.write, chunk)
        finally:
            loop.call_at(due, sink.close)


class Store:
    def __init__(self, folder):
        self.port, self.folder = free_port(), folder

    def start(self):
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]
        self.process = subprocess.Popen(["redis-server", *words], stdout=subprocess.DEVNULL)

    def says(self, command):
        with socket.create_connection(("127.0.0.1", self.port)) as link:
            link.sendall(command.encode() + b"\r\n")
            return link.recv(100)

    async def suffer(self, fault, relay, age):
        """Returns when the fault began."""
        if fault == "old":
            await asyncio.sleep(FAULT_AT - 10)
            self.says("SAVE")
            await asyncio.sleep(age)
        else:
            await asyncio.sleep(FAULT_AT)
        begun = time.monotonic()
        asyncio.get_running_loop().create_task(self.befall(fault, relay))
        return begun

    async def befall(self, fault, relay):
        if fault == "flush":
            self.says("FLUSHALL")
        elif fault == "late":
            relay.delay = 0.25  # each way
            await asyncio.sleep(8)
            relay.delay = 0.0
        elif fault == "stop":
            self.process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(8)
            self.process.send_signal(signal.SIGCONT)
        elif fault in ("kill", "old"):
            self.process.kill()
            self.process.wait()
            await asyncio.sleep(3)
            self.start()


async def run(options, folder):
    """[(second from the fault, first attempts, retries)], and how many calls were made."""
    Service.firsts, Service.retries = [], []
    store = Store(folder)
    store.start()
    relay = await Relay(store.port).start()
    service = free_port()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Service, "127.0.0.1", service)
    gateways, ports = [], []
    try:
        for n in range(options.gateways):
            ports.append(free_port())
            path = folder / f"{n}.yaml"
            path.write_text(POLICY.format(listen=ports[-1], redis=relay.port if options.fault == "late" else store.port, service=service, percent=20))
            gateways.append(subprocess.Popen([options.becalm, "proxy", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        await asyncio.sleep(2)
        begun = time.monotonic()
        tasks = [caller(port, options.rate / options.gateways, begun + options.seconds) for port in ports]
        work = asyncio.gather(*tasks)
        zero = begun + FAULT_AT if options.fault == "none" else await store.suffer(options.fault, relay, options.age)
        calls = await work
        return seconds_of(zero, begun, begun + options.seconds), sum(calls)
    finally:
        relay.server.close()
        for each in gateways:
            each.terminate()
        for each in gateways:
            each.wait()
        store.process.send_signal(signal.SIGCONT)
        store.process.kill()
        server.close()


def seconds_of(zero, begun, ended):
    """Whole seconds alone."""
    first, last = math.ceil(begun - zero), math.floor(ended - zero)
    count = {second: [0, 0] for second in range(first, last)}
    for kind, times in enumerate((Service.firsts, Service.retries)):
        for each in times:
            second = math.floor(each - zero)
            if second in count:
                count[second][kind] += 1
    return [(second, *count[second]) for second in sorted(count)]


def share(firsts, retries):
    return retries / max(1, 0.2 * firsts)


def measure(options):
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(options, pathlib.Path(folder)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("becalm")
    parser.add_argument("--gateways", type=int, default=20)
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--fault", choices=["none", "kill", "stop", "flush", "old", "late"], default="none")
    parser.add_argument("--age", type=float, default=10)
    options = parser.parse_args()
    options.becalm = os.path.abspath(options.becalm)
    options.seconds += options.age - 10 if options.fault == "old" else 0
    rows, calls = measure(options)
    print("second  calls  retries  of the budget")
    rows = [(second, firsts, retries, share(max(firsts, options.rate), retries)) for second, firsts, retries in rows]
    for second, firsts, retries, part in rows:
        print(f"{second:6} {firsts:6} {retries:8}  {part:.3f}")
    whole = share(sum(row[1] for row in rows), sum(row[2] for row in rows))
    print(f"{calls} calls: {whole:.3f} of the budget; worst second after the first two {max(row[3] for row in rows[2:]):.3f}")


if __name__ == "__main__":
    main()
