# SPDX-License-Identifier: MIT
"""Random traffic, hosts and reloads all at once: no call breaks a rule, no answers are mixed up, and no memory is left
behind. The seed is printed; BECALM_CHAOS_SEED sets it. It fixes the actions of each thread, not the order of the
threads. BECALM_SOAK=1 goes on for a minute."""

import collections
import contextlib
import json
import os
import random
import signal
import socket
import struct
import threading
import time
import traceback

import pytest
from conftest import free_port
from host import wait_until
from message import Message, request
from wire import Wire, ask

SECONDS = 60 if os.environ.get("BECALM_SOAK") == "1" else 10
CLIENTS = 30
PATIENCE = 1.5  # of a client, in seconds: less than some of the gateway's limits, more than others
SETTLE = 60  # until nothing is left of the load; a sanitizer on a busy machine is slow
KEYS = [(f'"key{n}"', f"user{n % 3}") for n in range(12)]
UPGRADE = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
CHARGE = "/charge"
PATHS = ["/", "/hedge", "/stream", "/few", CHARGE]

# ---- common to all sides ----


class Over(Exception):
    """The connection, or the time, has come to its end."""


def abort(sock):
    """Ends it by a reset."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()


def leave(rng, sock):
    """One of the ways to end a connection."""
    way = rng.choice(["reset", "close", "half-close"])
    if way == "reset":
        abort(sock)
        return
    with contextlib.suppress(OSError):
        if way == "half-close":
            sock.shutdown(socket.SHUT_WR)
            sock.settimeout(rng.uniform(0.01, 0.5))
            while sock.recv(65536):
                pass
        sock.close()


def chunked(rng, body, trailers=b""):
    pieces = []
    while body:
        size = rng.randint(1, max(1, len(body)))
        pieces.append(b"%x\r\n%s\r\n" % (size, body[:size]))
        body = body[size:]
    return b"".join(pieces) + b"0\r\n" + trailers + b"\r\n"


class Crew:
    """Threads that run until the test stops them. An exception in one of them fails the test."""

    def __init__(self, seed):
        self.seed = seed
        self.over = threading.Event()
        self.problems = []
        self.counts = collections.Counter()
        self._threads = []

    def add(self, name, turn, *arguments):
        """turn(rng, ...) is done again and again."""
        rng = random.Random(f"{self.seed}.{name}")

        def run():
            while not self.over.is_set() and not self.problems:
                try:
                    turn(rng, *arguments)
                except (OSError, EOFError, Over):
                    self.counts["ended early"] += 1
                    time.sleep(0.002)
                except Exception:
                    self.problems.append(f"{name}: {traceback.format_exc()}")

        self._threads.append(threading.Thread(target=run, daemon=True))

    def work(self, seconds, process):
        """Sleeps for this time, or until that process has ended."""
        for thread in self._threads:
            thread.start()
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.problems and process.poll() is None:
            time.sleep(0.05)

    def stop(self):
        self.over.set()
        for thread in self._threads:
            thread.join(SETTLE)
            assert not thread.is_alive(), "a thread of the test hangs"
        assert not self.problems, self.problems[0]


# ---- hosts ----


class Line:
    """A host's connection, on which one thread at a time speaks: a host that sends unsolicited bytes closes its
    connection before its next answer, or that answer would go to another request."""

    def __init__(self, sock):
        self.socket = sock
        self._speaks = threading.Lock()
        self.recv, self.settimeout, self.shutdown = sock.recv, sock.settimeout, sock.shutdown

    def sendall(self, data):
        with self._speaks:
            self.socket.sendall(data)

    def say_last(self, data):
        """Unless its host speaks just now."""
        if self._speaks.acquire(blocking=False):
            try:
                self.socket.send(data, socket.MSG_DONTWAIT)
                self.socket.shutdown(socket.SHUT_WR)
            finally:
                self._speaks.release()


class WildHost:
    """Answers well more often than not. `calm`: always from now on."""

    def __init__(self, seed, address):
        self.address = address
        self.name = f"unix:{address}" if isinstance(address, str) else f"{address[0]}:{address[1]}"
        self.calm = False
        self.answers = {name[3:]: getattr(self, name) for name in dir(self) if name.startswith("do_")}
        self._rng = random.Random(seed)
        self._open = set()
        self._listening = None
        self._lock = threading.Lock()
        self.start()

    def start(self):
        family = socket.AF_UNIX if isinstance(self.address, str) else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        if family == socket.AF_INET:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.address)
        sock.bind(self.address)
        sock.listen(128)
        self._listening = sock
        threading.Thread(target=self._accept, args=(sock,), daemon=True).start()

    def stop(self):
        """As if it had been killed."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for sock in self.connections():
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def connections(self):
        with self._lock:
            return list(self._open)

    def say_something(self, data):
        """Sends unsolicited bytes on every connection, then closes it."""
        for line in self.connections():
            with contextlib.suppress(OSError):
                line.say_last(data)

    def _accept(self, listening):
        with contextlib.suppress(OSError):
            while True:
                line = Line(listening.accept()[0])
                with self._lock:
                    self._open.add(line)
                    seed = self._rng.random()
                threading.Thread(target=self._serve, args=(line, random.Random(seed)), daemon=True).start()

    def _serve(self, sock, rng):
        try:
            sock.settimeout(20)
            rest = b""
            while True:
                rest = self._exchange(sock, rng, rest)
        except (OSError, Over, ValueError, IndexError, AssertionError):  # tunnels carry bytes that are no request
            pass
        finally:
            with self._lock:
                self._open.discard(sock)
            (abort if rng.random() < 0.3 else socket.socket.close)(sock.socket)

    def _exchange(self, sock, rng, rest):
        got = Message()
        rest = got.feed(rest)
        while not got.head_ended:
            rest = self._more(sock, got)
        wants = got.get("upgrade") is not None and rng.random() < 0.8
        plain = self.calm or rng.random() < 0.5
        how = "tunnel" if wants else "fine" if plain else rng.choice(sorted(self.answers))
        if how == "early":
            self.do_early(sock, rng, got)
        if got.get("expect") and rng.random() < 0.7:
            sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not got.complete:
            rest = self._more(sock, got)
        if how != "early":
            self.answers[how](sock, rng, got)
        return rest

    def _more(self, sock, got):
        data = sock.recv(65536)
        if not data:
            raise Over
        return got.feed(data)

    def _answer(self, got, status=200, body=b"fine", fields=(), coding=None):
        """coding: the body is in chunks already."""
        lines = [f"HTTP/1.1 {status} Whatever", f"x-echo: {got.get('x-id', 'none')}"]
        lines += [f"{name}: {value}" for name, value in fields]
        if coding:
            lines.append("transfer-encoding: chunked")
        elif status not in (204, 304):
            lines.append(f"content-length: {len(body)}")
        if got.method == "HEAD" or status in (204, 304):
            body = b""
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body

    # Each of these is one way to answer.

    def do_fine(self, sock, rng, got):
        sock.sendall(self._answer(got))

    def do_late(self, sock, rng, got):
        time.sleep(rng.uniform(0, 0.3))
        self.do_fine(sock, rng, got)

    def do_large(self, sock, rng, got):
        sock.sendall(self._answer(got, body=b"l" * rng.randint(1, 1_000_000)))

    def do_chunks(self, sock, rng, got):
        body = chunked(rng, b"c" * rng.randint(0, 100_000), b"x-end: 1\r\n" if rng.random() < 0.5 else b"")
        sock.sendall(self._answer(got, body=body, coding="chunked"))

    def do_interim(self, sock, rng, got):
        for _ in range(rng.randint(1, 4)):
            sock.sendall(rng.choice([b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n", b"HTTP/1.1 100 Go on\r\n\r\n"]))
        self.do_late(sock, rng, got)

    def do_early(self, sock, rng, got):
        sock.sendall(self._answer(got, rng.choice([200, 413, 503])))
        if rng.random() < 0.5:
            raise Over

    def do_fail(self, sock, rng, got):
        status = rng.choice([204, 304, 404, 408, 425, 429, 500, 502, 503, 504, 599])
        sock.sendall(self._answer(got, status, fields=rng.choice([(), [("retry-after", "0")], [("retry-after", "1")]])))

    def do_login(self, sock, rng, got):
        word = rng.choice(["NTLM", "Negotiate", "NTLM TlRMTVNT"])
        sock.sendall(self._answer(got, rng.choice([200, 401]), fields=[("www-authenticate", word)]))

    def do_events(self, sock, rng, got):
        sock.sendall(self._answer(got, body=b"", fields=[("content-type", "text/event-stream")], coding="chunked"))
        if got.method != "HEAD":
            for _ in range(rng.randint(0, 100)):
                sock.sendall(chunked(rng, b"data: x\n\n")[: -len(b"0\r\n\r\n")])
                time.sleep(0.02)
            sock.sendall(b"0\r\n\r\n")

    def do_unsized(self, sock, rng, got):
        sock.sendall(b"HTTP/1.1 200 OK\r\nx-echo: %s\r\n\r\n" % got.get("x-id", "none").encode() + b"u" * 3000)
        raise Over

    def do_close(self, sock, rng, got):
        sock.sendall(self._answer(got, fields=rng.choice([(), [("connection", "close")]])))
        time.sleep(rng.uniform(0, 0.05))
        raise Over

    def do_cut(self, sock, rng, got):
        answer = self._answer(got, body=b"b" * 2000)
        sock.sendall(answer[: rng.randint(0, len(answer) - 1)])
        raise Over

    def do_garbage(self, sock, rng, got):
        sock.sendall(
            rng.choice(
                [
                    rng.randbytes(rng.randint(1, 3000)),
                    b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
                    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
                    b"HTTP/1.1 101 No\r\nupgrade: nothing\r\nconnection: upgrade\r\n\r\n",
                    b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 400 + b"\r\n",
                    b"SSH-2.0-OpenSSH\r\n",
                ]
            )
        )
        time.sleep(rng.uniform(0, 0.1))

    def do_twice(self, sock, rng, got):
        """The second of two pipelined answers must not reach any client."""
        sock.sendall(self._answer(got) * 2)

    def do_stall(self, sock, rng, got):
        answer = self._answer(got, body=b"s" * 20_000)
        sock.sendall(answer[: rng.choice([0, 10, len(answer) - 1])])
        while sock.recv(65536):
            pass
        raise Over

    def do_tunnel(self, sock, rng, got):
        if got.get("upgrade") is None:
            return self.do_fine(sock, rng, got)
        time.sleep(rng.choice([0, rng.uniform(0, 0.3)]))
        sock.sendall(b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
        for _ in range(rng.randint(1, 50)):
            data = sock.recv(65536)
            if not data:
                break
            sock.sendall(data)
        raise Over


# ---- clients ----


class Client:
    """One connection and its random requests. `targets` are the addresses that may be listened on."""

    def __init__(self, crew, number, targets):
        self.crew = crew
        self.source = f"127.0.0.{2 + number % 5}"
        self.targets = targets
        self.numbers = 0
        self.name = f"client{number}"

    def turn(self, rng):
        address = rng.choice(self.targets)
        small = 4096 if rng.random() < 0.2 else None
        wire = Wire(address, None if isinstance(address, str) else self.source, small)
        try:
            wire.socket.settimeout(PATIENCE)
            while self._talk(rng, wire):
                self.crew.counts["kept"] += 1
        finally:
            (abort if rng.random() < 0.3 else socket.socket.close)(wire.socket)

    def _talk(self, rng, wire):
        """Some requests at once and their answers. False: no more on this connection."""
        asked = [self._request(rng, last=False) for _ in range(rng.choice([0, 0, 0, 1, 4, 20]))]
        asked.append(self._request(rng, last=True))
        data = b"".join(each[2] for each in asked)
        self._send(rng, wire, data)
        slow = rng.random() < 0.15
        for method, name, _ in asked:
            if rng.random() < 0.1 or self.crew.over.is_set():  # twenty answers can take a minute
                leave(rng, wire.socket)
                raise Over
            if slow:
                self._read_slowly(rng, wire)
            answer = wire.answer(method)
            self._judge(answer, name)
            if answer.status == 101 or (method == "CONNECT" and answer.status == 200):
                self._tunnel(rng, wire)
                raise Over
            if method == "CONNECT" or answer.get("connection") == "close":
                return False
        return not self.crew.over.is_set() and rng.random() < 0.7

    def _judge(self, answer, name):
        echo = answer.get("x-echo")
        assert echo is None or echo == name, f"{name} got the answer of {echo}"
        self.crew.counts[answer.status] += 1

    def _send(self, rng, wire, data):
        if rng.random() < 0.15:  # not to its end, or not waiting for an answer
            wire.send(data[: rng.choice([rng.randint(0, len(data)), len(data)])])
            time.sleep(rng.choice([0, 0, 0.01, 0.2]))
            leave(rng, wire.socket)
            raise Over
        if rng.random() < 0.3:
            for _ in range(rng.randint(1, 8)):
                size = rng.randint(0, len(data))
                wire.send(data[:size])
                data = data[size:]
                time.sleep(rng.choice([0, 0.001, 0.05]))
        wire.send(data)

    def _read_slowly(self, rng, wire):
        for _ in range(rng.randint(1, 20)):
            if wire.rest or self.crew.over.is_set():
                return
            time.sleep(rng.uniform(0, 0.1))

    def _tunnel(self, rng, wire):
        self.crew.counts["tunnels"] += 1
        for _ in range(rng.randint(0, 10)):
            wire.send(rng.randbytes(rng.choice([1, 100, 50_000])))
            if rng.random() < 0.5:
                wire.socket.recv(65536)
        if rng.random() < 0.3:
            time.sleep(rng.uniform(0, 0.5))
        leave(rng, wire.socket)

    # Kinds of requests. Each returns method, name and bytes.

    def _request(self, rng, last):
        self.numbers += 1
        kinds = [self._plain, self._plain, self._upload, self._charge]
        if last or rng.random() < 0.1:  # a request that ends its connection
            kinds += [self._upgrade, self._connect, self._bad]
        return rng.choice(kinds)(rng, f"{self.name}.{self.numbers}")

    def _plain(self, rng, name):
        method = rng.choice(["GET", "GET", "HEAD", "DELETE", "OPTIONS"])
        return method, name, request(method, rng.choice(PATHS), fields=fields_of(rng, name))

    def _upload(self, rng, name):
        method, path = rng.choice(["POST", "PUT", "PATCH"]), rng.choice(PATHS)
        body = b"u" * rng.choice([0, 1, 10, 1000, 5000, 70_000, 300_000])
        fields = fields_of(rng, name)
        if rng.random() < 0.5:
            return method, name, request(method, path, fields=fields, body=body)
        fields.append(("transfer-encoding", "chunked"))
        trailers = b"x-sum: 1\r\n" if rng.random() < 0.5 else b""
        return method, name, request(method, path, fields=fields) + chunked(rng, body, trailers)

    def _charge(self, rng, name):
        """A few keys for all, so that they meet."""
        return charge(*rng.choice(KEYS))

    def _upgrade(self, rng, name):
        method = rng.choice(["GET", "GET", "POST"])
        fields = UPGRADE + fields_of(rng, name)
        body = b"u" * rng.choice([0, 100, 70_000]) if method == "POST" else None
        return method, name, request(method, rng.choice(PATHS), fields=fields, body=body)

    def _connect(self, rng, name):
        data = request("CONNECT", "tunnel.test:80", "tunnel.test:80", fields_of(rng, name))
        if rng.random() < 0.5:
            data += request(path="/inside")
        return "CONNECT", name, data

    def _bad(self, rng, name):
        data = rng.choice(
            [
                rng.randbytes(rng.randint(1, 2000)),
                b"GET / HTTP/1.1\r\n\r\n",
                b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
                b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
                b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcdefgh\r\n",
                request(path="/" + "x" * 70_000),
                request(path="/../etc"),
                request(fields=[("expect", "miracles")]),
                request("GET", "http://nobody.test/", fields=[("x-id", name)]),
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            ]
        )
        return "GET", name, data


EXTRA = [  # (how likely, the field)
    (0.1, "connection: close"),
    (0.1, "x-request-deadline-ms: 100"),
    (0.15, "expect: 100-continue"),
    (0.05, "authorization: NTLM TlRMTVNTUAAB"),
    (0.05, "authorization: Negotiate YII"),
]


def fields_of(rng, name):
    """Fields that any request may have, in any combination."""
    fields = [tuple(line.split(": ")) for share, line in EXTRA if rng.random() < share]
    if rng.random() < 0.4:
        fields.append(("idempotency-key", f'"{name}"'))
    return [*fields, ("x-id", name)]


def charge(key, user):
    """The same key always has the same payload."""
    name = f"{key}.{user}"
    fields = [("idempotency-key", key), ("authorization", user), ("x-id", name)]
    return "POST", name, request("POST", CHARGE, fields=fields, body=key.encode())


# ---- the gateway ----


def policy(rng, port, other, path, hosts):
    """One that is not like the one before. The first address and the paths are in all of them."""
    addresses = json.dumps([each.name for each in rng.sample(hosts, rng.randint(1, len(hosts)))])
    listen = [f"127.0.0.1:{port}"] + rng.sample([f"127.0.0.1:{other}", f"unix:{path}"], rng.randint(0, 2))
    hedge = f"{{enabled: true, delay: 10ms, percent: {rng.choice([5, 100])}}}"
    lines = [
        f"listen: {json.dumps(listen)}",
        "connect: on",
        "drain: {limit: 3s}",
        "headerTimeout: 1s",
        "idleTimeout: 1s",
        "bodyTimeout: 1s",
        f"maxConnections: {rng.choice([20, 10000, 10000])}",
        f"maxConnectionsPerClient: {rng.choice([5, 1000, 1000])}",
        f"maxTunnels: {rng.choice([2, 100, 100])}",
        f"maxBuffered: {rng.choice(['1MiB', '64MiB'])}",
        f"pool: {{maxPerHost: {rng.choice([2, 20, 1024])}, idle: {rng.choice(['0s', '50ms', '1s'])}}}",
        f"replay: {{perRequest: {rng.choice(['1KiB', '64KiB'])}, total: {rng.choice(['64KiB', '64MiB'])}}}",
        f"idempotencyStore: {{ttl: {rng.choice(['1s', '1h'])}, maxEntries: {rng.choice([8, 1000])}}}",
        f"explain: {rng.choice(['true', 'false'])}",
        f"log: {{access: {rng.choice(['json', 'combined', 'off'])}}}",
        rng.choice(["trust: [127.0.0.0/8]", "trust: []"]),
        "services:",
        "  a:",
        f"    hosts: {addresses}",
        "    match: {prefix: /}",
        "    attemptTimeout: 400ms",
        "    deadline: 1500ms",
        "    initialDelay: 10ms",
        f"    maxRetries: {rng.choice([0, 2, 5])}",
        f"    restart: {{enabled: {rng.choice(['true', 'false'])}}}",
        f"    breaker: {{enabled: {rng.choice(['true', 'false', 'false'])}, waitDurationInOpenState: 100ms}}",
        f"    limit: {{kind: {rng.choice(['slots', 'aimd'])}, maxAnswers: {rng.choice([5, 1000, 1000])}}}",
        f"    outlier: {{enabled: {rng.choice(['true', 'false'])}, baseEjectionTime: 100ms}}",
        "    endpoints:",
        f"      charge: {{match: {{path: {CHARGE}}}, idempotencyKey: required}}",
        f"      hedge: {{match: {{path: /hedge}}, idempotent: true, hedge: {hedge}}}",
        "      stream: {match: {path: /stream}, replay: off}",
        f"      few: {{match: {{path: /few}}, limit: {{kind: slots, min: 1, max: {rng.choice([1, 2])}}}}}",
        "  tunnel.test:",
        f"    idempotencyKey: {rng.choice(['required', 'optional'])}",
        f"    hosts: {addresses}",
    ]
    return "\n".join(lines) + "\n"


def reload(rng, crew, gateway, write):
    """A new policy, or one that is none."""
    time.sleep(rng.uniform(0.02, 0.4))
    good = rng.random() < 0.8
    crew.counts["reloads" if good else "bad reloads"] += 1
    gateway.reload(write(rng) if good else "services: [\n")
    if rng.random() < 0.7:  # else it is seen by the file
        gateway.signal(signal.SIGHUP)


def disturb(rng, crew, hosts):
    """A host is killed and comes back, closes its connections, or sends unsolicited bytes."""
    time.sleep(rng.uniform(0.02, 0.4))
    what, each = rng.choice(["restart", "drop", "say"]), rng.choice(hosts)
    crew.counts[what] += 1
    if what == "restart":
        each.stop()
        time.sleep(rng.uniform(0, 0.6))
        each.start()
    else:
        each.say_something(b"" if what == "drop" else b"HTTP/1.1 408 Too late\r\ncontent-length: 0\r\n\r\n")


def look(rng, admin):
    """A client always polls the admin address."""
    path = rng.choice(["/metrics", "/api/state", "/api/decisions", "/api/history", "/api/policy", "/healthz"])
    with Wire(admin) as wire:
        wire.socket.settimeout(PATIENCE)
        wire.send(request(path=path, host=f"127.0.0.1:{admin}"))
        if rng.random() < 0.2:
            wire.reset()
        else:
            wire.answer()
    time.sleep(rng.uniform(0, 0.3))


GAUGES = (
    "http_client_concurrent_requests",
    "becalm_pending_requests",
    "becalm_parked_calls",
    "becalm_answers_in_progress",
    "becalm_active_requests",
    "becalm_active_retries",
    "becalm_connections",
    "becalm_tunnels",
    "becalm_buffered_bytes",
)


def left(gateway):
    """{gauge: value} of those that are not 0, as /metrics and /api/state say it."""
    found = {row: value for row, value in gateway.metrics().items() if row.split("{")[0] in GAUGES}
    names = {row.split("{")[0] for row in found}
    assert names == set(GAUGES), "a gauge has another name"
    state = json.loads(ask(gateway.admin, path="/api/state", host=f"127.0.0.1:{gateway.admin}").body)
    for name in ("connections", "requests", "replayBytes"):
        found[name] = state[name]
    for service in state["services"]:
        for each in service["hosts"]:
            found[f"{service['name']} {each['name']} inFlight"] = each["inFlight"]
        for each in service["endpoints"]:
            place = f"{service['name']}/{each['name']} "
            for name in ("active", "inFlight", "activeRetries"):
                found[place + name] = each[name]
            found[place + "limit.inFlight"] = each["limit"]["inFlight"]
            found[place + "limit.answers"] = each["limit"]["answers"]
            found[place + "gate.waiting"] = each["gate"]["waiting"]
    return {name: value for name, value in found.items() if value != 0}


def settle(gateway):
    until = time.monotonic() + SETTLE
    while rest := left(gateway):
        assert time.monotonic() < until, f"nobody asks any more, and this is left: {rest}"
        time.sleep(0.1)


class Chaos:
    def __init__(self, make, folder):
        self.seed = os.environ.get("BECALM_CHAOS_SEED") or str(random.SystemRandom().randrange(10**9))
        print(f"BECALM_CHAOS_SEED={self.seed}")
        self.port, other, path = free_port(), free_port(), str(folder / "in")
        addresses = [("127.0.0.1", free_port()), ("127.0.0.1", free_port()), str(folder / "host")]
        self.hosts = [WildHost(f"{self.seed}.{n}", address) for n, address in enumerate(addresses)]
        self.write = lambda rng: policy(rng, self.port, other, path, self.hosts)
        self.first = self.write(random.Random(self.seed))
        self.gateway = make(self.first, workers=2, listen=None)
        self.crew = Crew(self.seed)
        for number in range(CLIENTS):
            client = Client(self.crew, number, [self.port] * 4 + [other, path])
            self.crew.add(client.name, client.turn)
        self.crew.add("reloader", reload, self.crew, self.gateway, self.write)
        self.crew.add("disturber", disturb, self.crew, self.hosts)
        self.crew.add("looker", look, self.gateway.admin)

    def calm(self):
        for each in self.hosts:
            each.calm = True

    def close(self):
        self.crew.over.set()
        for each in self.hosts:
            each.stop()


@pytest.fixture
def chaos(gateway, tmp_path):
    made = Chaos(gateway, tmp_path)
    yield made
    made.close()


def test_nothing_is_left_of_a_chaos(chaos):
    files = chaos.gateway.open_fds()
    chaos.crew.work(SECONDS, chaos.gateway.process)
    assert chaos.gateway.process.poll() is None, chaos.gateway.log()
    chaos.crew.stop()
    print(sorted(chaos.crew.counts.items(), key=str))
    chaos.calm()
    settle(chaos.gateway)
    wait_until(lambda: ask(chaos.port, path="/").status == 200, SETTLE)
    for key, user in KEYS:
        with Wire(chaos.port) as wire:
            method, _, data = charge(key, user)
            assert wire.send(data).answer(method).status != 409, "a key of a call that is over is in flight"
    settle(chaos.gateway)
    chaos.gateway.reload(chaos.first)  # so that it has as many listeners
    chaos.gateway.signal(signal.SIGHUP)
    wait_until(lambda: chaos.gateway.open_fds() <= files, SETTLE)
    chaos.gateway.end()


def test_a_gateway_ends_in_the_middle_of_a_chaos(chaos):
    chaos.crew.work(SECONDS / 5, chaos.gateway.process)
    chaos.gateway.end()
    chaos.crew.stop()
