#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long calls take beside a store: with and without a shared budget, while the Redis is up, hung or away; and with keys.

    bench/fleet/calls.py BECALM [--calls 3000] [--count]

Calls of all kinds take turns, one by one on a connection of each, so that a busy machine is as busy for all of them: their differences count, not their times.
Prints the median and the 99th percentile of each kind, and how far they are from those without a store, each with an interval that holds 95 of 100 draws of as many
rounds out of those that were measured. Beside them a client that does nothing else begins keys in the same Redis. Last the Redis of the keys is stopped: what twelve calls with keys get, and when.

--count counts instead: system calls (strace) and instructions (callgrind) of a GET, and of a POST without and with a new key, as the difference of two runs of
which one has more calls.
"""

import argparse
import asyncio
import multiprocessing
import os
import pathlib
import random
import re
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
    def __init__(self, becalm, folder, name, service, store="", rules="breaker: {enabled: false}", under=()):
        """under: the words of a program that runs it."""
        self.port = fleet.free_port()
        path = folder / f"{name}.yaml"
        path.write_text(POLICY.format(listen=self.port, service=service, store=store, rules=rules))
        self.process = subprocess.Popen([*under, becalm, "proxy", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
            more = self.link.recv(65536)
            if not more:
                raise ConnectionError("a gateway has closed the connection of this bench")
            heard += more
        took = time.perf_counter() - begun
        head, rest = heard.lower().split(b"\r\n\r\n", 1)
        missing = int(head.split(b"content-length:")[1].split(b"\r\n")[0]) - len(rest)
        while missing > 0:
            missing -= len(self.link.recv(65536))
        return took, int(heard.split()[1]), head


def centile(times):
    return 1000 * sorted(times)[len(times) * 99 // 100]


def median(times):
    return 1000 * statistics.median(times)


def interval(figure, times, beside, draws=300):
    """The interval of the difference: rounds are drawn whole, because noise hits all kinds of a round."""
    choice, rounds, found = random.Random(1), min(len(times), len(beside)), []
    for _ in range(draws):
        drawn = choice.choices(range(rounds), k=rounds)
        found.append(figure([times[n] for n in drawn]) - figure([beside[n] for n in drawn]))
    found.sort()
    return f"{figure(times) - figure(beside):+.3f} ({found[draws // 40]:+.3f} to {found[-1 - draws // 40]:+.3f})"


def show(name, times, beside=None):
    more = "" if beside is None else f"; median {interval(median, times, beside)}, 99 of 100 {interval(centile, times, beside)} ms"
    print(f"{name:34} median {median(times):.3f} ms, 99 of 100 within {centile(times):.3f} ms{more}", flush=True)


SHARED = "breaker: {enabled: false}\n    budget: {kind: none, shared: {percent: 20}}"
KEYS = "idempotencyStore: {redis: inherit, secretFile: secret, lease: 1s}"
KEYED = "breaker: {enabled: false}\n    idempotencyKey: enforced"
COUNTED = {  # the kind of calls, and its label
    "none": "GET, no shared budget",
    "up": "GET, shared, the Redis is up",
    "hung": "GET, shared, the Redis is hung",
    "away": "GET, shared, the Redis is away",
    "post": "POST, no key",
    "key": "POST with a new key",
}
TOOLS = {  # the counter, its command, and the place of the count in its output
    "system calls": (("strace", "-f", "-c", "-o"), r"(?m)^100.00 +\S+ +(?:\d+ +)?(\d+) "),
    "instructions": (("valgrind", "--tool=callgrind", "--separate-threads=yes", "--callgrind-out-file={}"), r"(?m)^totals: (\d+)"),
}


def counted(options, folder, tool, state, calls):
    """The counts of a gateway from its start to its end, with a number of calls of one row of COUNTED: of each thread
    where that is known, since the control thread works by the clock, and under valgrind a call takes long."""
    made, host, service = [], None, fleet.free_port()
    words, mark = TOOLS[tool]
    out = folder / "count"
    for each in folder.glob("count*"):
        each.unlink()
    words = [each.format(out) for each in words] if "{}" in words[-1] else [*words, str(out)]
    try:
        host = multiprocessing.Process(target=serve, args=(service,), daemon=True)
        host.start()
        store, rules = "", "breaker: {enabled: false}"
        if state not in ("none", "post"):
            (folder / "redis").mkdir(exist_ok=True)
            redis = fleet.Store(folder / "redis")
            redis.start()
            made.append(redis.process)
            store, rules = f'store: {{redis: "redis://127.0.0.1:{redis.port}"}}', SHARED
        if state == "key":
            (folder / "secret").write_text("a secret of this bench\n")
            store, rules = f"{store}\n{KEYS.replace('lease', 'timeout: 5s, lease')}", KEYED
        gateway = Gateway(options.becalm, folder, "counted", service, store, rules, words)
        made.append(gateway.process)

        def call():
            return gateway.call("POST" if state in ("post", "key") else "GET", uuid.uuid4() if state == "key" else None)[1]

        while gateway.link is None:  # valgrind takes its time
            try:
                call()
            except ConnectionRefusedError:
                time.sleep(0.2)
        time.sleep(3)
        if state in ("hung", "away"):
            redis.process.send_signal(signal.SIGSTOP if state == "hung" else signal.SIGKILL)
        while call() != 200:  # a new store trusts itself after a lease
            time.sleep(0.2)
        for _ in range(calls):
            call()
        pid = gateway.process.pid
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()  # strace has one, valgrind is the program itself
        os.kill(int(children[0]) if children else pid, signal.SIGTERM)
        gateway.link.close()
        gateway.process.wait(60)
        return [int(re.search(mark, each.read_text()).group(1)) for each in sorted(folder.glob("count-*")) or [out]]
    finally:
        host.terminate()
        for each in made:
            each.kill()
            each.wait()


def count(options, folder):
    few, many = 200, 200 + options.calls
    for tool in TOOLS:
        for state, name in COUNTED.items():
            more, less = (counted(options, folder, tool, state, calls) for calls in (many, few))
            each = max(a - b for a, b in zip(more, less)) / (many - few)  # the thread that serves calls
            print(f"{name}: {each:.2f} {tool}", flush=True)


class Bare:
    """A client that only begins keys: the time of Redis, of its wake-up and of the client's wake-up."""

    SCRIPT = pathlib.Path(__file__).parents[2] / "src/redis/keys.lua"

    def __init__(self, port):
        self.link = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.digest = self.says("SCRIPT", "LOAD", self.SCRIPT.read_text())[1].split(b"\r\n")[1]
        self.says("HSET", "becalm:{bare}:era", "r", "")

    def says(self, *words):
        """How long it took, and the answer."""
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        message = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        begun = time.perf_counter()
        self.link.sendall(message)
        heard = self.link.recv(65536)
        return time.perf_counter() - begun, heard

    def begin(self):
        name = uuid.uuid4().hex
        names = [f"becalm:{{bare}}:{each}" for each in ("held", "era", "e:1", "k:" + name, "g:" + name)]
        took, heard = self.says("EVALSHA", self.digest, 5, *names, "begin", "", 10000, name[:16], name, 1, 86400000, "a", 1, 0)
        assert b"begun" in heard, heard
        return took


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
    gateways = {"none": Gateway(options.becalm, folder, "none", service)}
    for name in ("up", "hung", "away"):
        gateways[name] = Gateway(options.becalm, folder, name, service, f'store: {{redis: "redis://127.0.0.1:{stores[name].port}"}}', SHARED)
    keys = f'store: {{redis: "redis://127.0.0.1:{stores["keys"].port}"}}\n{KEYS}'
    gateways["keys"] = Gateway(options.becalm, folder, "keys", service, keys, KEYED)
    made.extend(each.process for each in gateways.values())
    time.sleep(3)  # and a new store trusts itself after a lease
    stores["hung"].process.send_signal(signal.SIGSTOP)
    stores["away"].process.kill()
    for each in gateways.values():
        while each.call("POST", uuid.uuid4())[1] != 200:
            time.sleep(0.2)
    bare = Bare(stores["keys"].port)
    times = {name: [] for name in (*gateways, "post", "replay", "bare")}
    turns, choice = ["none", "up", "hung", "away"], random.Random(2)
    for _ in range(options.calls):
        choice.shuffle(turns)  # the order of the kinds has an effect, so it is random
        for name in turns:
            times[name].append(gateways[name].call()[0])
        times["post"].append(gateways["none"].call("POST")[0])
        times["bare"].append(bare.begin())
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
    show("a bare client begins a key", times["bare"])
    show(f"POST, replayed ({len(times['replay'])})", times["replay"])
    stores["keys"].process.send_signal(signal.SIGSTOP)
    answers = [gateways["keys"].call("POST", uuid.uuid4())[:2] for _ in range(12)]
    print("a hung Redis, calls with keys: " + ", ".join(f"{status} after {1000 * took:.1f} ms" for took, status in answers))
    host.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("becalm")
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--count", action="store_true")
    options = parser.parse_args()
    options.becalm = os.path.abspath(options.becalm)
    made = []
    with tempfile.TemporaryDirectory() as name:
        try:
            if options.count:
                count(options, pathlib.Path(name))
            else:
                measure(options, pathlib.Path(name), made)
        finally:
            for each in made:
                each.kill()
                each.wait()


if __name__ == "__main__":
    main()
