# SPDX-License-Identifier: MIT
"""A client that speaks HTTP/2: python's h2, and handmade frames that h2 would not send."""

import dataclasses
import socket
import struct
import subprocess

import h2.config
import h2.connection
import h2.events
import h2.settings
from host import Reply
from message import signed

GUARD = 60

DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def literal(name, value):
    """A field that enters no table, without Huffman."""
    return b"\x10" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def block(method="GET", path="/", more=()):
    fields = [(":method", method), (":scheme", "http"), (":authority", "a"), (":path", path), *more]
    return b"".join(literal(name, value) for name, value in fields)


@dataclasses.dataclass
class Answer:
    status: int = 0
    fields: dict = dataclasses.field(default_factory=dict)
    all_fields: list = dataclasses.field(default_factory=list)
    body: bytes = b""
    trailers: dict = dataclasses.field(default_factory=dict)
    all_trailers: list = dataclasses.field(default_factory=list)
    interim: list = dataclasses.field(default_factory=list)
    hints: list = dataclasses.field(default_factory=list)  # the fields of all 1xx
    ended: bool = False
    reset: int = None  # the code


def connect(port, receive_buffer=None, tls=None, session=None):
    """tls: an ssl.SSLContext; the handshake names h2 first, and http/1.1 behind it."""
    made = socket.create_connection(("127.0.0.1", port), timeout=GUARD)
    if receive_buffer:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    if tls is None:
        return made
    try:
        tls.set_alpn_protocols(["h2", "http/1.1"])
        made = tls.wrap_socket(made, server_hostname="a.test", session=session)
        assert made.selected_alpn_protocol() == "h2"
    except BaseException:
        made.close()
        raise
    return made


class Http2:
    """A connection. Windows open as bytes come, unless `shut` has the stream."""

    def __init__(self, port, **more):
        self.socket = connect(port, **more)
        self.scheme = "https" if more.get("tls") else "http"
        self.connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.connection.initiate_connection()
        self.answers = {}
        self.goaways = []  # (code, last stream)
        self.shut = set()
        self.pongs = 0
        self.over = False
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def flush(self):
        self.socket.sendall(self.connection.data_to_send())

    def begin(self, method="GET", path="/", fields=(), end=True, authority="a"):
        return self.send([(":method", method), (":scheme", self.scheme), (":authority", authority), (":path", path), *fields], end)

    def send(self, head, end):
        stream = self.connection.get_next_available_stream_id()
        self.connection.send_headers(stream, head, end_stream=end)
        self.answers[stream] = Answer()
        self.flush()
        return stream

    def body(self, stream, data, end=True, trailers=()):
        while data:
            room = min(self.connection.local_flow_control_window(stream), self.connection.max_outbound_frame_size, len(data))
            if room == 0:
                self.take()
                continue
            self.connection.send_data(stream, data[:room], end_stream=end and not trailers and room == len(data))
            data = data[room:]
            self.flush()
        if trailers:
            self.connection.send_headers(stream, trailers, end_stream=True)
        self.flush()

    def reset(self, stream, code=8):
        self.connection.reset_stream(stream, code)
        self.flush()

    def drop(self):
        """The connection is lost without a word."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def fence(self):
        """All that was said before was read when this returns."""
        wanted = self.pongs + 1
        self.connection.ping(wanted.to_bytes(8, "big"))
        self.flush()
        self.until(lambda: self.pongs >= wanted)

    def take(self):
        """Some bytes, and their meaning."""
        data = b"" if self.over else self.socket.recv(65536)
        if not data:
            self.over = True
            return
        for event in self.connection.receive_data(data):
            self._note(event)
        if not self.over:
            self.flush()

    def _note(self, event):
        stream = getattr(event, "stream_id", None)
        answer = self.answers.setdefault(stream, Answer()) if stream else None
        if isinstance(event, h2.events.ResponseReceived):
            answer.fields = dict(event.headers)
            answer.all_fields = list(event.headers)
            answer.status = int(answer.fields[":status"])
        elif isinstance(event, h2.events.InformationalResponseReceived):
            answer.interim.append(int(dict(event.headers)[":status"]))
            answer.hints += event.headers
        elif isinstance(event, h2.events.DataReceived):
            answer.body += event.data
            if stream not in self.shut:
                self.connection.acknowledge_received_data(event.flow_controlled_length, stream)
            elif event.flow_controlled_length:
                self.connection.increment_flow_control_window(event.flow_controlled_length)
        elif isinstance(event, h2.events.TrailersReceived):
            answer.trailers = dict(event.headers)
            answer.all_trailers = list(event.headers)
        elif isinstance(event, h2.events.StreamEnded):
            answer.ended = True
        elif isinstance(event, h2.events.StreamReset):
            answer.reset = event.error_code
        elif isinstance(event, h2.events.PingAckReceived):
            self.pongs += 1
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaways.append((event.error_code, event.last_stream_id))

    def answer(self, stream):
        """Waits for the end of a stream."""
        answer = self.answers[stream]
        while not answer.ended and answer.reset is None and not self.over:
            self.take()
        return answer

    def until(self, true):
        """Reads frames until the condition holds."""
        while not true():
            assert not self.over, "the connection has ended"
            self.take()

    def ask(self, method="GET", path="/", body=None, **more):
        stream = self.begin(method, path, end=body is None, **more)
        if body is not None:
            self.body(stream, body)
        return self.answer(stream)

    def at_end(self):
        while not self.over:
            self.take()
        return True


class Frames:
    """A connection whose frames are made by hand, and read as they come: (kind, flags, stream, payload)."""

    def __init__(self, port, pieces=None, **more):
        self.socket = connect(port, **more)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""
        first = PREFACE + frame(SETTINGS, 0, 0)
        for at in range(0, len(first), pieces or len(first)):  # each a segment of its own
            self.send(first[at : at + (pieces or len(first))])
        self.next(SETTINGS)
        self.send(frame(SETTINGS, 1, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # the gateway reads no more; its earlier frames are still to be read

    def frames(self):
        while True:
            while len(self.rest) >= 9 and len(self.rest) >= 9 + int.from_bytes(self.rest[:3], "big"):
                length = int.from_bytes(self.rest[:3], "big")
                one, self.rest = self.rest[: 9 + length], self.rest[9 + length :]
                yield one[3], one[4], int.from_bytes(one[5:9], "big"), one[9:]
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                return
            if not data:
                return
            self.rest += data

    def next(self, *kinds):
        """The next of these kinds; None: the connection has ended."""
        return next((each for each in self.frames() if each[0] in kinds), None)


def real_clients(host, url, *curl):
    """curl, nghttp and h2load as clients."""

    def run(*words):
        return subprocess.run(words, capture_output=True, check=True, timeout=GUARD).stdout

    host.on("/", Reply())
    host.on("/big", Reply(body=signed(b"b" * 1_000_000)))
    assert run("curl", "-s", *curl, "-w", "%{http_version} %{http_code}", url) == b"fine2 200"
    assert run("curl", "-s", *curl, url + "big") == signed(b"b" * 1_000_000)
    assert run("nghttp", "-m", "20", url) == b"fine" * 20
    said = run("h2load", "-n", "600", "-c", "6", "-m", "20", url)
    assert b"600 succeeded, 0 failed, 0 errored" in said, said
