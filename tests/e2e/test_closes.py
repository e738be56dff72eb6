# SPDX-License-Identifier: MIT
"""Hosts that close kept connections: at the end of their patience, at a restart, and just when a request is on its way.
BECALM_SOAK=1 restarts hosts under 6,500 calls."""

import contextlib
import os
import pathlib
import platform
import random
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest
from conftest import PROGRAM, can_trace, free_port
from host import wait_until
from host_h2 import HostH2
from http2 import Answer, Http2
from load import Load, statuses
from message import Message, request

SOAK = os.environ.get("BECALM_SOAK") == "1"


class Keeper:
    """A host that serves one connection after the other, notes the bytes that it reads, and closes on order."""

    def __init__(self, fields="", close_first=0):
        self.fields = fields
        self.close_first = close_first  # connections that are closed as soon as they are made
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.server.getsockname()[1]
        self.requests = []  # (number of the connection, request)
        self.connections = []
        self.ends = []  # when the gateway closed one
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                made, _ = self.server.accept()
            except OSError:
                return
            self.connections.append(made)
            if len(self.connections) <= self.close_first:
                made.close()
                continue
            threading.Thread(target=self._serve, args=(made, len(self.connections)), daemon=True).start()

    def _serve(self, made, number):
        message, rest = Message(), b""
        while True:
            try:
                data = made.recv(65536)
            except OSError:
                return
            if not data:
                self.ends.append(time.monotonic())
                return
            rest = message.feed(rest + data)
            if message.complete:
                self.requests.append((number, message))
                message = Message()
                try:
                    made.sendall(f"HTTP/1.1 200 OK\r\n{self.fields}content-length: 2\r\n\r\nok".encode())
                except OSError:
                    pass

    def close(self):
        self.server.close()


@pytest.fixture
def keeper():
    made = []

    def make(*args):
        made.append(Keeper(*args))
        return made[-1]

    yield make
    for each in made:
        each.close()


def policy(*hosts, rules=""):
    return f"services:\n  a:\n    hosts: [{', '.join(hosts)}]\n    match: {{prefix: /}}\n    {rules}\n"


@pytest.mark.parametrize("fields", ["timeout=2", "timeout=2, max=100", "max=5,timeout=3"])
def test_a_connection_is_given_up_before_its_host_would_close_it(gateway, keeper, fields):
    host = keeper(f"Keep-Alive: {fields}\r\n")
    made = gateway(policy(host.address))
    begin = time.monotonic()
    assert made.ask().status == made.ask().status == 200
    assert len(host.connections) == 1, "it is used again until then"
    wait_until(lambda: host.ends)
    assert 0.8 < host.ends[0] - begin, "a second or more of it was used"
    assert made.ask().status == 200 and len(host.connections) == 2


@pytest.mark.parametrize("fields", ["max=0", "timeout=0", "timeout=5, max=0"])
def test_a_connection_that_its_host_will_not_use_again_is_not_kept(gateway, keeper, fields):
    host = keeper(f"Keep-Alive: {fields}\r\n")
    made = gateway(policy(host.address))
    assert made.ask().status == made.ask().status == 200
    assert [number for number, _ in host.requests] == [1, 2]


@pytest.mark.parametrize("fields", ["timeout=-1", "timeout=1.5", "timeout=x, max=0", "timeout=60"])
def test_what_says_nothing_changes_nothing(gateway, keeper, fields):
    host = keeper(f"Keep-Alive: {fields}\r\n")
    made = gateway(policy(host.address))
    assert made.ask().status == 200
    time.sleep(1.2)
    assert made.ask().status == 200
    assert [number for number, _ in host.requests] == [1, 1]


# Between the look at a pooled connection and the write to it there are microseconds: strace makes them longer.
DELAY = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=sendmsg", "-e", "inject=sendmsg:delay_enter=700000"]


SENDMSG = {"x86_64": "46", "aarch64": "211"}.get(platform.machine())


def is_delayed(made):
    """Does a thread of it stand before a write?"""
    tasks = pathlib.Path(f"/proc/{made.process.pid}/task")
    return any(
        each.read_text().split()[0] == SENDMSG and (each.parent / "stat").read_text().rsplit(")", 1)[1].split()[0] == "t"
        for each in tasks.glob("*/syscall")
    )


def ask_while_it_closes(made, host, close, body=b"5 euro"):
    """The second POST is about to be written on the pooled connection when the host closes that."""
    with made.wire() as wire:
        assert wire.ask("POST", "/", body=b"1").status == 200
        wait_until(lambda: not is_delayed(made))  # it has written that answer
        wire.send(request("POST", "/", body=body))
        wait_until(lambda: is_delayed(made))
        close(host.connections[0])
        return wire.answer("POST")


@pytest.mark.skipif(not can_trace(), reason="strace can't delay this program's writes")
@pytest.mark.parametrize("fields", ["", "WWW-Authenticate: NTLM\r\n"])  # pooled, and the client's own
def test_a_post_that_its_host_can_not_have_read_is_sent_again(gateway, keeper, fields):
    host = keeper(fields)
    made = gateway(policy(host.address), wrapper=DELAY)

    def close(connection):
        connection.shutdown(socket.SHUT_RD)  # ends the recv() of the thread, so that close() closes
        wait_until(lambda: host.ends)
        connection.close()

    assert ask_while_it_closes(made, host, close).status == 200
    assert [(number, got.body) for number, got in host.requests] == [(1, b"1"), (2, b"5 euro")]
    made.expect_metric(1, "becalm_redone_total")


@pytest.mark.skipif(not can_trace(), reason="strace can't delay this program's writes")
def test_a_post_on_a_fresh_connection_that_is_closed_at_once_was_never_sent(gateway, keeper):
    host = keeper("", 1)
    made = gateway(policy(host.address), wrapper=DELAY)
    assert made.ask("POST", "/", body=b"5 euro").status == 200
    assert [(number, got.body) for number, got in host.requests] == [(2, b"5 euro")]


@pytest.mark.skipif(not can_trace(), reason="strace can't delay this program's writes")
def test_a_post_that_its_host_may_have_read_is_not(gateway, keeper):
    """The host has closed only its own side, and still reads: it may have executed the request."""
    host = keeper()
    made = gateway(policy(host.address), wrapper=DELAY)
    answer = ask_while_it_closes(made, host, lambda connection: connection.shutdown(socket.SHUT_WR))
    assert answer.status == 502 and "not_idempotent" in answer.get("proxy-status")
    wait_until(lambda: len(host.requests) == 2)
    assert [(number, got.body) for number, got in host.requests] == [(1, b"1"), (1, b"5 euro")]


# Rolling restarts.

NODE = """
const http = require("http");
let closing = false;
const server = http.createServer((request, answer) => {
  let length = 0;
  if (closing) answer.setHeader("connection", "close");
  request.on("data", (piece) => (length += piece.length));
  request.on("end", () => setTimeout(() => answer.end(`${length}`), Math.random() * 10));
});
server.listen(Number(process.argv[1]), "127.0.0.1");
process.on("SIGTERM", () => {
  closing = true;
  server.close(() => process.exit(0));
  setInterval(() => server.closeIdleConnections(), 200);
});
"""
PYTHON = """
import asyncio, os, random, signal, sys
idle, busy, closing = set(), set(), False
async def serve(reader, writer):
    idle.add(writer)
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            idle.discard(writer); busy.add(writer)
            length = 0
            for line in head.split(b"\\r\\n"):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if b"\\r\\nexpect: 100-continue\\r\\n" in head.lower():
                writer.write(b"HTTP/1.1 100 Continue\\r\\n\\r\\n")
            await reader.readexactly(length)
            await asyncio.sleep(random.random() * 0.01)
            last = b"connection: close\\r\\n" if closing else b""
            writer.write(b"HTTP/1.1 200 OK\\r\\n%scontent-length: %d\\r\\n\\r\\n%d" % (last, len(str(length)), length))
            await writer.drain()
            busy.discard(writer)
            if closing:
                break
            idle.add(writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    idle.discard(writer); busy.discard(writer)
    writer.close()
async def main():
    global closing
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), reuse_address=True)
    await stop.wait()
    closing = True
    server.close()
    for writer in list(idle):
        writer.close()
    while busy:
        await asyncio.sleep(0.01)
asyncio.run(main())
"""


class Restarted:
    """A host in a process of its own, on one port."""

    def __init__(self, kind):
        self.port = free_port()
        node = ["node", "-e", NODE, "--", str(self.port)]
        self.command = node if kind == "node" else ["/usr/bin/python3", "-c", PYTHON, str(self.port)]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL)
        wait_until(self._listens)

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)

    def restart(self):
        self.stop()
        self.start()


@pytest.mark.skipif("BECALM_SANITIZED" in os.environ, reason="hosts restart faster than such a gateway can look")
@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("kind", ["python", "node"])
def test_rolling_restarts_lose_neither_a_get_nor_a_post(gateway, kind, asks):
    if kind == "node" and shutil.which("node") is None:
        pytest.skip("node is not installed")
    count, rate = (6500, 200) if SOAK else (700, 100)
    hosts = [Restarted(kind) for _ in range(3)]
    made = gateway(policy(*(f"127.0.0.1:{each.port}" for each in hosts), rules=f"expectContinue: {str(asks).lower()}"))
    draw = random.Random(7)

    def one(number):
        body = b"x" * draw.randrange(1, 3000)
        return ("POST", request("POST", "/", body=body)) if number % 10 < 3 else ("GET", request())

    assert statuses(Load(made.port, clients=4, count=200).run_through()) == {200: 200}, "which earns a few retries"
    load = Load(made.port, rate=rate, clients=30, count=count, make=one, seconds=600)
    load.start()
    try:
        while load.is_alive():
            for each in hosts:
                each.restart()
                time.sleep(0.2)
        results = load.finish()
        lost = [result for result in results if result.status != 200]
        told = [(result.number % 10 < 3, result.answer and result.answer.get("proxy-status"), result.error) for result in lost]
        # A host that closes while a POST lies unread in its system's memory resets the connection, and the gateway
        # can't tell that from a host that has read the POST: such a call is given up. This hits a few calls in ten
        # thousand, and none where the gateway probes the connection first.
        unproved = [each for each in told if each[0] and "not_idempotent" in (each[1] or "")]
        assert len(results) == count and len(lost) == len(unproved), (statuses(results), told)
        assert len(unproved) <= (0 if asks else max(3, count // 500)), told
        print(f"{len(unproved)} POSTs of {count} calls were given up")
        print(f"{count} calls, longest {max(result.took for result in results):.3f} s, redone {made.metric('becalm_redone_total')}")
    finally:
        for each in hosts:
            each.stop()


@pytest.mark.skipif(not can_trace(), reason="strace can't see this program's calls")
def test_posts_that_go_out_together_take_one_look_at_their_shared_connection(gateway, tmp_path):
    calls = tmp_path / "calls"
    trace = ["strace", "-D", "-f", "-qq", "-o", str(calls), "-e", "trace=recvfrom"]
    with contextlib.closing(HostH2()) as host:
        made = gateway(policy(host.address, rules="protocol: h2"), wrapper=trace, protocols="[h2, h1]")
        with Http2(made.port) as client:
            assert client.ask().status == 200  # the connection is there
            before = calls.read_text().count("MSG_PEEK")
            streams = [client.connection.get_next_available_stream_id() + 2 * n for n in range(32)]
            for stream in streams:
                head = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/")]
                client.connection.send_headers(stream, head, end_stream=True)
                client.answers[stream] = Answer()
            client.flush()
            assert [client.answer(stream).status for stream in streams] == [200] * 32
        looks = calls.read_text().count("MSG_PEEK") - before
        assert 1 <= looks <= 8  # few, if the kernel has split one write
