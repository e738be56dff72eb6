# SPDX-License-Identifier: MIT
"""A host that misbehaves on order of the test, in the same process."""

import asyncio
import dataclasses
import select
import socket
import struct
import threading
import time

from message import Message, signed
from ports import free_port

PIECE = 256 * 1024
GUARD = 180  # seconds to wait for an event: not a claim, a busy machine may need most of them


@dataclasses.dataclass
class Reply:
    """The host's reply to one request."""

    status: int = 200
    body: bytes = b"fine"
    fields: tuple = ()
    delay: float = 0  # before the first byte
    when: object = None  # a function: nothing is sent before it is true
    chunked: bool = False
    trailers: tuple = ()
    interim: bytes = b""  # sent before the answer, before the request's body is read
    raw: bytes = None  # these bytes instead of an answer
    cut: int = None  # only this number of its bytes
    end: str = "keep"  # then: keep, close, reset, hang, deaf (which reads nothing any more)
    early: bool = False  # do not wait for the request's body
    unsized: bool = False  # the body ends with the connection
    pace: float = 0  # seconds between the bytes of the body
    version: str = "HTTP/1.1"
    made: dict = dataclasses.field(default_factory=dict, compare=False)

    def bytes(self, method):
        """Made once, since hundreds of connections may be sending the same."""
        if method not in self.made:
            self.made[method] = self._make(method)
        return self.made[method]

    def _make(self, method):
        if self.raw is not None:
            return self.raw
        fields = list(self.fields.items() if isinstance(self.fields, dict) else self.fields)
        body = self.body
        if self.chunked:
            fields.append(("Transfer-Encoding", "chunked"))
            pieces = [body[i : i + 1000] for i in range(0, len(body), 1000)]
            body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n"
            body += "".join(f"{name}: {value}\r\n" for name, value in self.trailers).encode() + b"\r\n"
        elif self.status not in (204, 304) and not self.unsized:
            fields.append(("Content-Length", str(len(body))))
        if method == "HEAD" or self.status in (204, 304):
            body = b""
        head = [f"{self.version} {self.status} Whatever"] + [f"{name}: {value}" for name, value in fields]
        return ("\r\n".join(head) + "\r\n\r\n").encode("latin-1") + body


class Tunnel:
    """A reply that answers 101 and then echoes the bytes of the tunnel."""

    def __init__(self, fields=(("Connection", "Upgrade"), ("Upgrade", "websocket"))):
        self.fields = fields


class Host:
    """Listens on a port of 127.0.0.1. on(path, reply...) sets the replies: the last reply is repeated; a function gets
    the request and returns a reply. `requests` are those whose head has come, in their order."""

    def __init__(self, port=None, tls=None, introduced=False):
        """tls: an ssl.SSLContext of a server; None: plain. introduced: each connection begins with a header of the PROXY protocol,
        and its requests have that as `introduced`."""
        self.tls = tls
        self.introduced = introduced
        self.port = port or free_port()
        self.requests = []
        self.connections = 0
        self.open = 0
        self._rules = {}
        self._writers = set()
        self._server = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def on(self, path, *replies):
        self._rules[path] = [0, replies]
        return self

    def count(self, path=None):
        return len(self.got(path))

    def got(self, path=None):
        return [request for request in list(self.requests) if path is None or request.target == path]

    def forget(self):
        self.requests = []

    def wait(self, count, path=None, seconds=GUARD):
        """Waits until `count` requests have arrived."""
        wait_until(lambda: self.count(path) >= count, seconds)

    # Its life.

    def start(self):
        self._do(self._start())

    def stop(self):
        """Stops listening, and resets its connections, like a killed process."""
        self._do(self._stop())

    def drop_idle(self):
        """Closes every connection, as a server does that has waited long enough."""
        self._do(self._drop())

    def say(self, data):
        """Sends unsolicited bytes on every connection."""
        self._do(self._say(data))

    def close(self):
        self.stop()
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _do(self, what):
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(20)

    async def _start(self):
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, backlog=1024, reuse_address=True, ssl=self.tls
        )

    async def _stop(self):
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            _reset(writer)

    async def _say(self, data):
        for writer in list(self._writers):
            writer.write(data)

    async def _drop(self):
        for writer in list(self._writers):
            writer.close()

    async def _end(self):
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    # One connection.

    async def _serve(self, reader, writer):
        self.connections += 1
        self.open += 1
        self._writers.add(writer)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            introduced = await introduction(reader) if self.introduced else None
            rest = b""
            while rest is not None:
                rest = await self._exchange(reader, writer, rest, introduced)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            self._writers.discard(writer)
            writer.close()

    async def _exchange(self, reader, writer, rest, introduced=None):
        """One request and its answer. Returns the bytes behind it; None: the connection is over."""
        request = Message()
        request.connection = self.connections
        request.introduced = introduced
        request.tls = writer.get_extra_info("ssl_object")
        request.peer = (writer.get_extra_info("peername") or (None, 0))[1]  # the connection that it came on, by its port; 0: it has gone already
        rest = request.feed(rest)
        while not request.head_ended:
            rest = await _more(request, reader)
            if rest is None:
                return None
        request.at = time.monotonic()
        self.requests.append(request)
        reply = self._reply(request)
        if isinstance(reply, Tunnel):
            return await _echo(reply, reader, writer, rest)
        if reply.interim:
            writer.write(reply.interim)
        while not request.complete and not reply.early:
            rest = await _more(request, reader)
            if rest is None:
                return None
        if reply.delay:
            await asyncio.sleep(reply.delay)
        while reply.when is not None and not reply.when():
            await asyncio.sleep(0.005)
        data = reply.bytes(request.method)
        length = len(data) if reply.cut is None else min(reply.cut, len(data))
        if reply.pace:
            await _drip(writer, data, reply.pace)
            return rest
        for at in range(0, length, PIECE):
            writer.write(data[at : min(at + PIECE, length)])
            await writer.drain()
        if reply.end == "keep" and request.complete:
            return rest
        if reply.end == "reset":
            await asyncio.sleep(0.001)  # written bytes are sent first
            _reset(writer)
        elif reply.end == "deaf":
            await asyncio.Event().wait()
        elif reply.end == "hang" or reply.end == "keep":
            while await reader.read(65536):
                pass
        return None

    def _reply(self, request):
        rule = self._rules.get(request.target) or self._rules.get("*")
        if rule is None:
            return Reply(body=signed(f"{request.method} {request.target}".encode()))
        reply = rule[1][min(rule[0], len(rule[1]) - 1)]
        rule[0] += 1
        return reply(request) if callable(reply) else reply


async def introduction(reader):
    """(version, content: ("TCP4", its address, its port, our address, our port), or a word)."""
    start = await reader.readexactly(12)
    if start != b"\r\n\r\n\0\r\nQUIT\n":
        line = (start + await reader.readuntil(b"\r\n")).decode() if not start.endswith(b"\r\n") else start.decode()
        words = line.removesuffix("\r\n").split(" ")
        assert words.pop(0) == "PROXY", line
        if words[0] == "UNKNOWN":
            return 1, "UNKNOWN"
        kind, one, other, one_port, other_port = words
        return 1, (kind, one, int(one_port), other, int(other_port))
    command, family, length = struct.unpack("!BBH", await reader.readexactly(4))
    rest = await reader.readexactly(length)
    if command == 0x20 or family == 0:
        assert rest == b"", rest
        return 2, "LOCAL" if command == 0x20 else "UNKNOWN"
    assert command == 0x21, command
    kind, ip = {0x11: (socket.AF_INET, 4), 0x21: (socket.AF_INET6, 16)}[family]
    one, other, *ports = struct.unpack(f"!{ip}s{ip}sHH", rest)
    return 2, ("TCP4" if ip == 4 else "TCP6", socket.inet_ntop(kind, one), ports[0], socket.inet_ntop(kind, other), ports[1])


async def _more(message, reader):
    data = await reader.read(65536)
    return message.feed(data) if data else None


async def _drip(writer, data, pace):
    head = data.index(b"\r\n\r\n") + 4
    writer.write(data[:head])
    for at in range(head, len(data)):
        await asyncio.sleep(pace)
        writer.write(data[at : at + 1])
        await writer.drain()


async def _echo(reply, reader, writer, rest):
    head = "HTTP/1.1 101 Switching Protocols\r\n" + "".join(f"{name}: {value}\r\n" for name, value in reply.fields)
    writer.write(head.encode() + b"\r\n" + rest)
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    return None


def _reset(writer):
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def fill(listener):
    """Connects until the shortest possible accept queue is full, so that the kernel answers no further client. Returns
    the waiting sockets; the caller keeps them as long as the queue shall be full."""
    crowd, unanswered = [], 0
    while unanswered < 3:
        each = socket.socket(listener.family)
        each.setblocking(False)
        each.connect_ex(listener.getsockname())
        unanswered = 0 if select.select([], [each], [], 0.1)[1] else unanswered + 1
        crowd.append(each)
    return crowd


def wait_until(true, seconds=GUARD, what=lambda: ""):
    """Polls `true`; a test that waits for ever is worse than one that fails. `what` describes the last state."""
    until, pause = time.monotonic() + seconds, 0.005
    while not true():
        assert time.monotonic() < until, f"did not come true within {seconds} s {what()}"
        time.sleep(pause)
        pause = min(1.1 * pause, 0.05)  # to look costs a processor that others need
