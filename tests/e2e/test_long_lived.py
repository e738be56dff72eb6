# SPDX-License-Identifier: MIT
"""Connections and streams that live long: reloads, one quickly after the other, disturb none of them, and a drain lets each come to its end.
BECALM_SOAK=1 reloads 200 times."""

import os
import signal
import socket
import threading

import pytest
from conftest import policy_of, wait_until
from h2.connection import ConnectionState
from host_h2 import Answer, HostH2
from http2 import Http2
from message import request

RELOADS = 200 if os.environ.get("BECALM_SOAK") == "1" else 40
CLOSES = b"\x88\x02\x03\xe8"


class Echo:
    """A host whose connections become tunnels, which echo their bytes."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        try:
            while True:
                threading.Thread(target=self._serve, args=self.server.accept()[:1], daemon=True).start()
        except OSError:
            pass  # it is closed

    def _serve(self, made):
        with made:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += made.recv(1)
            made.sendall(b"HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
            try:
                while data := made.recv(65536):
                    made.sendall(data)
            except OSError:
                pass

    def close(self):
        self.server.close()


class Patient(Http2):
    """To python's h2 a connection is over with a GOAWAY, although its streams go on (RFC 9113, 6.8): here it is not. So it gets frame by frame."""

    buffer = b""

    def take(self):
        data = self.socket.recv(65536)
        assert data, "the connection has ended"
        self.buffer += data
        while len(self.buffer) >= 9 and len(self.buffer) >= (size := 9 + int.from_bytes(self.buffer[:3], "big")):
            one, self.buffer = self.buffer[:size], self.buffer[size:]
            for event in self.connection.receive_data(one):
                self._note(event)
            self.connection.state_machine.state = ConnectionState.CLIENT_OPEN
            self.flush()


class Websocket:
    def __init__(self, edge):
        self.wire = edge.wire()
        self.wire.send(request(path="/ws", fields={"Connection": "Upgrade", "Upgrade": "websocket"}))
        assert self.wire.answer().status == 101

    def turn(self, number):
        said = b"\x82\x04%04d" % number
        self.wire.send(said)
        self.until(len(said))
        assert self.wire.rest == said
        self.wire.rest = b""

    def until(self, length):
        while len(self.wire.rest) < length:
            data = self.wire.socket.recv(65536)
            assert data, "the tunnel has ended"
            self.wire.rest += data

    def end(self):
        self.wire.send(CLOSES)
        self.until(len(CLOSES))
        assert self.wire.rest == CLOSES
        self.wire.socket.close()


class Stream:
    """An answer whose host says something now and then; to clients of HTTP/2, or of HTTP/1 as chunks."""

    def __init__(self, host, path):
        wait_until(lambda: [each for each in host.requests if each.path == path])
        (self.asked,) = [each for each in host.requests if each.path == path]
        self.said = b""

    def say(self, number, end=False):
        part = b"data: %d\n\n" % number
        self.said += part
        self.asked.connection.more(self.asked, part, end=end)


class Events(Stream):
    def __init__(self, edge, host, number):
        self.wire = edge.wire()
        self.wire.send(request(path=f"/events{number}"))
        super().__init__(host, f"/events{number}")
        self.got = b""

    def turn(self, number, end=False):
        self.say(number, end)
        wanted = b"data: %d\n\n" % number
        while wanted not in self.got or (end and not self.got.endswith(b"0\r\n\r\n")):
            data = self.wire.socket.recv(65536)
            assert data, "the answer has ended"
            self.got += data

    def end(self):
        self.turn(10_000, end=True)
        self.wire.socket.close()


class Streamed(Stream):
    """A client whose own stream goes on, too: the host gets its bytes and answers them."""

    def __init__(self, client, host, number):
        self.client = client
        self.stream = client.begin("POST", f"/lab.Lab/Both{number}", [("content-type", "application/grpc"), ("te", "trailers")], end=False)
        super().__init__(host, f"/lab.Lab/Both{number}")

    def turn(self, number):
        heard = len(self.asked.body)
        self.client.body(self.stream, b"\0\0\0\0\1x", end=False)
        wait_until(lambda: len(self.asked.body) == heard + 6 or self.asked.reset is not None, what=lambda: self.asked.body)
        self.say(number)
        self.client.until(lambda: self.client.answers[self.stream].body == self.said)

    def end(self):
        self.client.body(self.stream, b"\0\0\0\0\1x")
        wait_until(lambda: self.asked.ended)
        self.asked.connection.more(self.asked, b"", trailers=(("grpc-status", "0"),))
        answer = self.client.answer(self.stream)
        assert (answer.ended, answer.reset, answer.body) == (True, None, self.said)
        assert answer.trailers == {"grpc-status": "0"} and self.asked.reset is None


def policy(echo, hosts, number):
    """Each fourth takes out the host that all streams are on."""
    text = policy_of([hosts[number % 4 == 3]], "upgrades: [websocket]", f"protocol: h2\nmaxRetries: {number % 3}\nattemptTimeout: 100s\ndeadline: 300s")
    return text + f"  tunnels:\n    hosts: ['{echo.address}']\n    match: {{path: /ws}}\n    maxRetries: {number % 2}\n"


@pytest.mark.parametrize("workers", [1, 2])
def test_long_lived__reloads_disturb_nobody_and_a_drain_lets_all_end(gateway, workers):
    kinds = {True: "application/grpc", False: "text/event-stream"}
    host = HostH2(at_head=lambda asked: Answer(end=False, fields=(("content-type", kinds["lab" in asked.path]),)), at_end=lambda asked: None)
    echo, spare = Echo(), HostH2()
    edge = gateway(policy(echo, (host, spare), 0), workers=workers, protocols="[h2, h1]", sets=["drain.limit=300s"])
    with Patient(edge.port) as one, Patient(edge.port) as other:
        lives = [Websocket(edge), Websocket(edge), Events(edge, host, 1), Events(edge, host, 2)]
        lives += [Streamed(one, host, 3), Streamed(one, host, 4), Streamed(other, host, 5)]
        for number in range(RELOADS):
            edge.reload(policy(echo, (host, spare), number + 1))
            edge.signal(signal.SIGHUP)
            edge.told("policy reloaded", number + 1)
            lives[number % len(lives)].turn(number)
        for each in lives:
            each.turn(RELOADS)
        edge.signal(signal.SIGTERM)
        one.until(lambda: one.goaways)
        for each in lives:
            each.turn(RELOADS + 1)
        for each in reversed(lives):
            each.end()
    edge.end()
    assert not [error for error in host.errors if not isinstance(error, OSError)]
    for each in (host, spare, echo):
        each.close()
