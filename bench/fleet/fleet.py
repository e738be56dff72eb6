#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real gateways that share a budget through a real Redis, counted at the service: retries of each second against the budget.

    bench/fleet/fleet.py BECALM [--gateways 20] [--rate 1000] [--seconds 30] [--fault none|kill|stop|flush|old]

Every call fails and may be retried three times, so that all the budget is wanted. The fault comes after a third of the time; a killed store comes
back 3 s later (empty, or with `old` from a file of that moment), a stopped one goes on after 8 s.
"""

import argparse
import asyncio
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
    budget: {{kind: none, shared: {{percent: 20}}}}
"""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Service(asyncio.Protocol):
    """Answers 503 to everything; counts first attempts and retries by second."""

    firsts = {}
    retries = {}

    def connection_made(self, transport):
        self.transport, self.rest = transport, b""

    def data_received(self, data):
        self.rest += data
        while b"\r\n\r\n" in self.rest:
            head, self.rest = self.rest.split(b"\r\n\r\n", 1)
            retry = b"x-envoy-attempt-count: 1\r\n" not in head.lower() + b"\r\n"
            counts = Service.retries if retry else Service.firsts
            second = int(time.monotonic())
            counts[second] = counts.get(second, 0) + 1
            self.transport.write(b"HTTP/1.1 503 no\r\ncontent-length: 0\r\n\r\n")


async def caller(port, rate, until):
    """One client of one gateway: so many calls a second, one after the other on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    due = time.monotonic()
    sent = 0
    while time.monotonic() < until:
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        if length:
            await reader.readexactly(int(length[0].split(b":")[1]))
        sent += 1
        due += 1 / rate
        await asyncio.sleep(max(0, due - time.monotonic()))
    writer.close()
    return sent


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

    async def suffer(self, fault):
        if fault == "flush":
            self.says("FLUSHALL")
        elif fault == "stop":
            self.process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(8)
            self.process.send_signal(signal.SIGCONT)
        elif fault in ("kill", "old"):
            if fault == "old":
                self.says("SAVE")
                await asyncio.sleep(10)
            self.process.kill()
            self.process.wait()
            await asyncio.sleep(3)
            self.start()


async def run(options, folder):
    store = Store(folder)
    store.start()
    service = free_port()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Service, "127.0.0.1", service)
    gateways, ports = [], []
    try:
        for n in range(options.gateways):
            ports.append(free_port())
            path = folder / f"{n}.yaml"
            path.write_text(POLICY.format(listen=ports[-1], redis=store.port, service=service))
            gateways.append(subprocess.Popen([options.becalm, "proxy", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        await asyncio.sleep(2)
        begun = time.monotonic()
        tasks = [caller(port, options.rate / options.gateways, begun + options.seconds) for port in ports]
        work = asyncio.gather(*tasks)
        if options.fault != "none":
            await asyncio.sleep(options.seconds / 3)
            await store.suffer(options.fault)
        calls = await work
        print("second  calls  retries  of the budget")
        shares = []
        for second in range(int(begun) + 1, int(begun) + int(options.seconds)):
            firsts, retries = Service.firsts.get(second, 0), Service.retries.get(second, 0)
            shares.append(retries / max(1, 0.2 * firsts))
            print(f"{second - int(begun):6} {firsts:6} {retries:8}  {shares[-1]:.3f}")
        firsts, retries = sum(Service.firsts.values()), sum(Service.retries.values())
        print(f"{sum(calls)} calls, {retries} retries: {retries / firsts / 0.2:.3f} of the budget; worst second after the first two {max(shares[2:]):.3f}")
    finally:
        for each in gateways:
            each.terminate()
        for each in gateways:
            each.wait()
        store.process.send_signal(signal.SIGCONT)
        store.process.kill()
        server.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("becalm")
    parser.add_argument("--gateways", type=int, default=20)
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--fault", choices=["none", "kill", "stop", "flush", "old"], default="none")
    options = parser.parse_args()
    options.becalm = os.path.abspath(options.becalm)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(options, pathlib.Path(folder)))


if __name__ == "__main__":
    main()
