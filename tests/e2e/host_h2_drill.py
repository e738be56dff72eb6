# SPDX-License-Identifier: MIT
"""A host of HTTP/2 with handmade frames, whose connections break at any frame, as a seed chooses. It is honest: it does
not execute a request that it refuses or leaves out of a GOAWAY. It counts executed requests by path, and knows which
requests it may have received, so that a test can tell a lost call from one that no gateway could have saved."""

import collections
import hashlib
import random
import select
import socket
import struct
import threading
import time

import hpack
from accepting import Accepting
from http2 import CONTINUATION, DATA, GOAWAY, HEADERS, PING, PREFACE, RST, SETTINGS, WINDOW, frame, literal

END_STREAM, END_HEADERS = 1, 4
REFUSED = 7
LAST = 2**31 - 1

# The place of the fault: at the n-th frame of that kind, behind its first nine bytes or all of it; or at the n-th
# answer, behind a part of it.
SEEN = ["preface", "settings", "ack", "window", "headers", "data", "end"]
SAID = ["answer_begun", "answer_head", "answer_part", "answer_whole"]
# The kind of the fault. A code: RST_STREAM of the stream that the frame was for.
DEATHS = ["fin", "goaway_fin", "goaway_out_fin", "goaway_out_live", "goaway_all_live", "goaway_twice"]
RESETS = list(range(14)) + [255]


OFTEN = ["headers", "data", "end", *SAID]
ALL = [
    (where, nth, part, what)
    for where in SEEN + SAID
    for nth in ((1, 2, 5) if where in OFTEN else (1,))
    for part in (("begun", "whole") if where in SEEN[1:] else ("whole",))
    for what in DEATHS + (RESETS if where in ("headers", "data", "end", *SAID[1:3]) else [])
]
CALM = (None, 0, None, None)


class Dead(Exception):
    """This connection says nothing more."""


class Stream:
    def __init__(self, number):
        self.number, self.path, self.length, self.body = number, None, 0, hashlib.sha256()
        self.over = False  # answered or reset


class Connection:
    def __init__(self, host, peer, number):
        self.host, self.socket = host, peer
        self.rng = random.Random(f"{host.seed}/{number}")
        self.plan = host.next_plan()
        self.hpack = hpack.Decoder()
        self.streams = {}
        self.highest = 0  # stream that it has heard of
        self.executed = 0  # the highest stream that it has executed
        self.last = LAST  # of a GOAWAY: streams above it are not executed
        self.counts = collections.Counter()
        self.ready = []  # streams to be answered
        self.rest = b""
        self.head = None  # of a frame whose payload was not read yet

    # ---- reading ----

    def read(self, size):
        while len(self.rest) < size:
            if self.ready and not self.waiting():
                self.answer_all()
            data = self.socket.recv(65536)
            if not data:
                raise Dead
            self.rest += data
        got, self.rest = self.rest[:size], self.rest[size:]
        return got

    def waiting(self):
        unsealed = self.host.tls is not None and self.socket.pending() > 0
        return unsealed or bool(select.select([self.socket], [], [], 0)[0])

    def run(self):
        try:
            self.send(frame(SETTINGS, 0, 0, struct.pack(">HI", 3, self.rng.choice([4, 100]))))
            if self.read(len(PREFACE)) != PREFACE:
                raise Dead
            self.at("preface", "whole", None)
            while True:
                self.take(self.read(9))
        except (Dead, OSError):
            self.ready = []
            self.drain()
        finally:
            self.host.lose(self)
            self.socket.close()

    def drain(self):
        """The host executes no further requests, but still counts the written ones."""
        try:
            socket.socket.shutdown(self.socket, socket.SHUT_WR)  # also beneath TLS, whose other way stays open
            while True:
                head = self.head or self.read(9)
                self.head = None
                self.note(head[3], head[4], int.from_bytes(head[5:9], "big"), self.read(int.from_bytes(head[:3], "big")))
        except (Dead, OSError):
            pass

    def take(self, head):
        self.head = head
        length, kind, flags, number = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:9], "big")
        word = {SETTINGS: "ack" if flags & 1 else "settings", WINDOW: "window", HEADERS: "headers", DATA: "data"}.get(kind)
        ends = kind in (HEADERS, DATA) and bool(flags & END_STREAM)
        assert kind != CONTINUATION
        if kind == HEADERS:
            self.highest = max(self.highest, number)
        self.at(word, "begun", number)
        payload = self.read(length)
        self.head = None
        self.note(kind, flags, number, payload)
        if word == "settings":
            self.send(frame(SETTINGS, 1, 0))
        if kind == PING and not flags & 1:
            self.send(frame(PING, 1, 0, payload))
        if kind == RST and number in self.streams:
            self.streams[number].over = True
        if kind == DATA and length:
            self.send(frame(WINDOW, 0, 0, struct.pack(">I", length)) + frame(WINDOW, 0, number, struct.pack(">I", length)))
        self.at(word, "whole", number)
        if ends:
            self.at("end", "begun", number)
            self.execute(number)
            self.at("end", "whole", number)

    def note(self, kind, flags, number, payload):
        """Notes the request of a frame."""
        if kind == HEADERS:
            fields = self.hpack.decode(payload[5:] if flags & 0x20 else payload, raw=False)
            stream = self.streams.setdefault(number, Stream(number))
            stream.path = stream.path or dict(fields)[":path"]
            self.highest = max(self.highest, number)
        elif kind == DATA and number in self.streams:
            self.streams[number].body.update(payload)
            self.streams[number].length += len(payload)

    # ---- its answers ----

    def execute(self, number):
        stream = self.streams[number]
        if number > self.last or stream.over:
            return
        self.executed = max(self.executed, number)
        self.host.execute(stream)
        self.ready.append(stream)
        if self.plan is CALM and self.last == LAST and self.rng.random() < 0.5:
            self.plan_next()

    def plan_next(self):
        self.plan = self.host.next_plan(late=True)
        self.counts.clear()

    def answer_all(self):
        """All that were executed, at once and not in their order."""
        ready, self.ready = self.ready, []
        self.rng.shuffle(ready)
        for stream in ready:
            if not stream.over:
                self.answer(stream)

    def answer(self, stream):
        body = b"done " + stream.path.encode()
        head = frame(HEADERS, END_HEADERS, stream.number, b"\x88" + literal("content-length", str(len(body))))
        parts = [(head[:12], "answer_begun"), (head[12:], "answer_head"), (frame(DATA, 0, stream.number, body[:3]), "answer_part")]
        for data, word in [*parts, (frame(DATA, END_STREAM, stream.number, body[3:]), "answer_whole")]:
            self.send(data)
            stream.over |= word == "answer_whole"
            self.at(word, "whole", stream.number)
            if stream.over and word != "answer_whole":
                return

    def at(self, word, part, number):
        """Is it time for this connection's trouble?"""
        where, nth, which, what = self.plan
        if word is None or word != where or (word in SEEN and word != "preface" and part != which):
            return
        self.counts[word] += 1
        if self.counts[word] < nth:
            return
        self.host.troubles[where, what] += 1
        self.plan = CALM
        self.happens(where, what, number)

    def happens(self, where, what, number):
        if isinstance(what, int):
            self.reset(where, what, number)
        elif what == "fin":
            raise Dead
        elif what == "abort":
            self.host.aborts.append(time.monotonic())
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raise OSError
        elif what.startswith("goaway"):
            self.goaway(what, where == "answer_begun")

    def reset(self, where, code, number):
        """RST_STREAM. A request that was executed, or is half answered, is not refused."""
        stream = self.streams.get(number)
        if stream is None or stream.over or where == "answer_begun" or (code == REFUSED and self.host.is_executed(stream)):
            return
        stream.over = True
        self.host.spoil(stream.path, refused=code == REFUSED)
        self.send(frame(RST, 0, number, struct.pack(">I", code)))
        self.plan_next()

    def goaway(self, what, begun):
        if begun:  # the rest of a frame would be read as another
            raise Dead
        if what == "goaway_twice":
            self.send(frame(GOAWAY, 0, 0, struct.pack(">II", LAST, 0)))
        out = "_out_" in what or what == "goaway_twice"
        self.last = self.rng.choice([self.executed, max(self.executed, self.highest - 2)]) if out else self.highest
        self.send(frame(GOAWAY, 0, 0, struct.pack(">II", self.last, self.rng.choice([0, 0, 2, 11]))))
        if what.endswith("_fin"):
            raise Dead
        # Streams before it are answered; the gateway ends the connection.

    def send(self, data):
        self.socket.sendall(data)


class HostDrill(Accepting):
    """aborts: connections die by a reset, where they otherwise end: then it is unknown which of their bytes were not
    read."""

    def __init__(self, seed, trouble=0.8, aborts=False, tls=None, listener=None):
        self.seed, self.trouble, self.with_aborts = seed, trouble, aborts
        self.rng = random.Random(seed)
        self.lock = threading.Lock()
        self.done = collections.Counter()  # path: how often it was executed
        self.bodies = {}  # path: the digest of the executed request
        self.spoilt = set()  # paths of requests whose fate the gateway can't know
        self.troubles = collections.Counter()
        self.refusals = 0
        self.plans = []  # that come next: all, in an order of the seed's
        self.aborts, self.live = [], set()
        super().__init__(tls, listener)

    def serve(self, peer, number):
        connection = Connection(self, peer, number)
        self.live.add(connection)
        connection.run()

    def next_plan(self, late=False):
        """late: of a connection that has begun."""
        with self.lock:
            if self.rng.random() > self.trouble:
                return CALM
            self.plans = self.plans or self.rng.sample(ALL, len(ALL))
            where, nth, part, what = self.plans.pop()
            if late and where not in OFTEN:
                self.plans.insert(0, (where, nth, part, what))
                return CALM
            return where, nth, part, "abort" if self.with_aborts and what == "fin" else what

    def execute(self, stream):
        with self.lock:
            self.done[stream.path] += 1
            self.bodies[stream.path] = stream.body.hexdigest()

    def is_executed(self, stream):
        with self.lock:
            return self.done[stream.path] > 0

    def spoil(self, path, refused=False):
        with self.lock:
            if refused:
                self.refusals += 1
            else:
                self.spoilt.add(path)

    def lose(self, connection):
        """The fate of streams is unknown that a lost connection has read and no GOAWAY has left out."""
        for stream in connection.streams.values():
            if stream.number <= connection.last and not stream.over and stream.path is not None:
                self.spoil(stream.path)
        self.live.discard(connection)

    def close(self):
        self.listener.close()
        for connection in list(self.live):
            try:
                connection.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
