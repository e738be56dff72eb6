#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long calls take beside a store: with and without a shared budget, while the Redis is up, hung or away; and with keys.

    bench/fleet/calls.py BECALM [--calls 3000]

Calls of all kinds take turns, one by one on a connection of each, so that a busy machine is as busy for all of them: their differences count, not their times.
Prints the median and the 99th percentile of each kind. Last the Redis of the keys is stopped: what twelve calls with keys get, and when.
"""

import argparse
import asyncio
import multiprocessing
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import tempfile
import time
import uuid

import fleet

POLICY = """listen: 127.0.0.1:{listen}
admin: none
workers: 1
drain: {{delay: 0s}}
log: {{level: error}}
{store}
services:
  a:
    hosts: ["127.0.0.1:{service}"]
    match: {{prefix: /}}
    {rules}
"""


class Service(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        for _ in range(data.count(b"\r\n\r\n")):
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")


def serve(port):
    async def run():
        server = await asyncio.get_running_loop().create_server(Service, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(run())


class Gateway:
    def __init__(self, becalm, folder, name, service, store="", rules="breaker: {enabled: false}"):
        self.port = fleet.free_port()
        path = folder / f"{name}.yaml"
        path.write_text(POLICY.format(listen=self.port, service=service, store=store, rules=rules))
        self.process = subprocess.Popen([becalm, "proxy", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.link = None

    def call(self, method="GET", key=None):
        """Returns how long it took, its status, and the whole answer."""
        if self.link is None:
            self.link = socket.create_connection(("127.0.0.1", self.port), timeout=30)
            self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        fields = f"idempotency-key: {key}\r\n" if key else ""
        begun = time.perf_counter()
        self.link.sendall(f"{method} / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n{fields}\r\n".encode())
        heard = b""
        while b"\r\n\r\n" not in heard:
            heard += self.link.recv(65536)
        took = time.perf_counter() - begun
        head, rest = heard.lower().split(b"\r\n\r\n", 1)
        missing = int(head.split(b"content-length:")[1].split(b"\r\n")[0]) - len(rest)
        while missing > 0:
            missing -= len(self.link.recv(65536))
        return took, int(heard.split()[1]), head


def show(name, times, beside=None):
    centiles = statistics.quantiles(times, n=100)
    more = "" if beside is None else f"; {1000 * (statistics.median(times) - statistics.median(beside)):+.3f} and {1000 * (centiles[98] - statistics.quantiles(beside, n=100)[98]):+.3f} ms"
    print(f"{name:34} median {1000 * statistics.median(times):.3f} ms, 99 of 100 within {1000 * centiles[98]:.3f} ms{more}", flush=True)


def measure(options, folder, made):
    service = fleet.free_port()
    host = multiprocessing.Process(target=serve, args=(service,), daemon=True)
    host.start()
    stores = {}
    for name in ("up", "hung", "away", "keys"):
        (folder / name).mkdir()
        stores[name] = fleet.Store(folder / name)
        stores[name].start()
        made.append(stores[name].process)
    (folder / "secret").write_text("a secret of this bench\n")
    shared = "breaker: {enabled: false}\n    budget: {kind: none, shared: {percent: 20}}"
    gateways = {"none": Gateway(options.becalm, folder, "none", service)}
    for name in ("up", "hung", "away"):
        gateways[name] = Gateway(options.becalm, folder, name, service, f'store: {{redis: "redis://127.0.0.1:{stores[name].port}"}}', shared)
    keys = f'store: {{redis: "redis://127.0.0.1:{stores["keys"].port}"}}\nidempotencyStore: {{redis: inherit, secretFile: secret, lease: 1s}}'
    gateways["keys"] = Gateway(options.becalm, folder, "keys", service, keys, "breaker: {enabled: false}\n    idempotencyKey: enforced")
    made.extend(each.process for each in gateways.values())
    time.sleep(3)  # and a new store trusts itself after a lease
    stores["hung"].process.send_signal(signal.SIGSTOP)
    stores["away"].process.kill()
    for each in gateways.values():
        while each.call("POST", uuid.uuid4())[1] != 200:
            time.sleep(0.2)
    times = {name: [] for name in (*gateways, "post", "replay")}
    for _ in range(options.calls):
        for name in ("none", "up", "hung", "away"):
            times[name].append(gateways[name].call()[0])
        times["post"].append(gateways["none"].call("POST")[0])
        key = uuid.uuid4()
        took, status, _ = gateways["keys"].call("POST", key)
        if status == 200:
            times["keys"].append(took)
            took, status, head = gateways["keys"].call("POST", key)
            if b"idempotent-replayed" in head:
                times["replay"].append(took)
    show("GET, no shared budget", times["none"])
    for name in ("up", "hung", "away"):
        show(f"GET, shared, the Redis is {name}", times[name], times["none"])
    show("POST", times["post"])
    show(f"POST with a new key ({len(times['keys'])})", times["keys"], times["post"])
    show(f"POST, replayed ({len(times['replay'])})", times["replay"])
    stores["keys"].process.send_signal(signal.SIGSTOP)
    answers = [gateways["keys"].call("POST", uuid.uuid4())[:2] for _ in range(12)]
    print("a hung Redis, calls with keys: " + ", ".join(f"{status} after {1000 * took:.1f} ms" for took, status in answers))
    host.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("becalm")
    parser.add_argument("--calls", type=int, default=3000)
    options = parser.parse_args()
    options.becalm = os.path.abspath(options.becalm)
    made = []
    with tempfile.TemporaryDirectory() as name:
        try:
            measure(options, pathlib.Path(name), made)
        finally:
            for each in made:
                each.kill()
                each.wait()


if __name__ == "__main__":
    main()
