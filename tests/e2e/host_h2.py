# SPDX-License-Identifier: MIT
"""A host that speaks HTTP/2 by python's h2, in clear text or with TLS, and treats each stream as the test orders."""

import dataclasses
import socket
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from accepting import GUARD, Accepting
from host import wait_until


@dataclasses.dataclass
class Asked:
    """A request as it came."""

    connection: "Connection"
    stream: int
    fields: list
    body: bytes = b""
    trailers: dict = dataclasses.field(default_factory=dict)
    all_trailers: list = dataclasses.field(default_factory=list)
    alone: bool = False  # its head has ended it
    ended: bool = False
    refused: bool = False  # by us
    reset: int = None  # the code by which the gateway gave it up
    at: float = dataclasses.field(default_factory=time.monotonic)

    def field(self, name):
        return dict(self.fields).get(name)

    @property
    def method(self):
        return self.field(":method")

    @property
    def path(self):
        return self.field(":path")


@dataclasses.dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    fields: tuple = ()
    trailers: tuple = ()
    interim: tuple = ()  # statuses of 1xx
    hints: tuple = ()  # their fields
    end: bool = True


class Refuse:
    """RST_STREAM with this code, when the head is there."""

    def __init__(self, code=7):
        self.code = code


class GoAway:
    """GOAWAY that leaves out this stream and those behind it; then the streams before it are answered, and the connection ends."""


class Close:
    """The connection is lost, without a word."""


class Wait:
    """Nothing is answered until the test does that itself: Asked.connection.answer(asked, Answer())."""


class Connection:
    def __init__(self, host, peer):
        self.host = host
        self.socket = peer
        self.lock = threading.RLock()
        self.asked = {}
        self.left = {}  # stream: bytes that wait for a window
        self.gone = False
        self.pings = 0
        self.pongs = 0
        self.goodbye = False  # a GOAWAY has come
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8", validate_inbound_headers=False)
        self.h2 = h2.connection.H2Connection(config)
        self.h2.local_settings = h2.settings.Settings(
            client=False,
            initial_values={
                h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: host.streams,
                h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: host.window,
                h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: 65536,
            },
        )

    def flush(self):
        with self.lock:
            data = self.h2.data_to_send()
            if data and not self.gone:
                try:
                    self.socket.sendall(data)
                except OSError:
                    self.gone = True

    def close(self):
        self.gone = True
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def reset(self, asked, code):
        with self.lock:
            self.h2.reset_stream(asked.stream, code)
        self.flush()

    def fence(self):
        """All that the other side said before it reads a PING has come when this returns."""
        with self.lock:
            wanted = self.pongs + 1
            self.h2.ping(wanted.to_bytes(8, "big"))
        self.flush()
        wait_until(lambda: self.pongs >= wanted)

    def goaway(self, last_stream):
        with self.lock:
            self.h2.close_connection(last_stream_id=last_stream)
        self.flush()

    def run(self):
        try:
            if self.host.settings_wait:
                self.host.settings_wait.wait(GUARD)
            self.h2.initiate_connection()
            self.flush()
            while not self.gone:
                data = self.socket.recv(65536)
                if not data:
                    break
                with self.lock:
                    for event in self.h2.receive_data(data):
                        self.take(event)
                self.flush()
        except (OSError, h2.exceptions.ProtocolError) as error:
            self.host.errors.append(error)
        finally:
            self.gone = True
            self.socket.close()

    def take(self, event):
        stream = getattr(event, "stream_id", None)
        asked = self.asked.get(stream)
        if isinstance(event, h2.events.RequestReceived):
            asked = self.asked[stream] = Asked(self, stream, event.headers, alone=event.stream_ended is not None)
            self.host.requests.append(asked)
            reply = self.host.at_head(asked)
            if reply is not None:
                self.do(asked, reply)
        elif isinstance(event, h2.events.DataReceived):
            asked.body += event.data
            if self.host.reads:
                try:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, stream)
                except h2.exceptions.StreamClosedError:
                    pass  # it was reset before this came
        elif isinstance(event, h2.events.TrailersReceived):
            asked.trailers = dict(event.headers)
            asked.all_trailers = list(event.headers)
        elif isinstance(event, h2.events.StreamEnded):
            asked.ended = True
            reply = None if asked.refused else self.host.at_end(asked)  # an answer on it would end the connection
            if reply is not None:
                self.do(asked, reply)
        elif isinstance(event, h2.events.StreamReset):
            if asked:
                asked.reset = event.error_code
        elif isinstance(event, h2.events.WindowUpdated):
            for each in [stream] if stream else list(self.left):
                self.push(each)
        elif isinstance(event, h2.events.PingReceived):
            self.pings += 1
        elif isinstance(event, h2.events.PingAckReceived):
            self.pongs += 1
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goodbye = True

    def do(self, asked, reply):
        if isinstance(reply, Refuse):
            asked.refused = True
            self.h2.reset_stream(asked.stream, reply.code)
        elif isinstance(reply, Close):
            self.flush()
            self.close()
        elif isinstance(reply, GoAway):
            self.flush()
            self.h2.close_connection(last_stream_id=asked.stream - 2)
            self.flush()
            self.close()
        elif isinstance(reply, Answer):
            self.answer(asked, reply)
        self.flush()

    def answer(self, asked, reply):
        with self.lock:
            for status in reply.interim:
                self.h2.send_headers(asked.stream, [(":status", str(status)), *reply.hints])
            bodiless = not reply.body and not reply.trailers and reply.end
            head = [(":status", str(reply.status)), *reply.fields]
            self.h2.send_headers(asked.stream, head, end_stream=bodiless)
            if not bodiless:
                self.left[asked.stream] = (reply.body, reply.trailers, reply.end)
                self.push(asked.stream)
        self.flush()

    def more(self, asked, body=b"", trailers=(), end=True):
        with self.lock:
            before = self.left.get(asked.stream, (b"",))[0]
            self.left[asked.stream] = (before + body, trailers, end)
            self.push(asked.stream)
        self.flush()

    def push(self, stream):
        if stream not in self.left:
            return
        body, trailers, end = self.left[stream]
        try:
            while body:
                room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(body))
                if room == 0:
                    self.left[stream] = (body, trailers, end)
                    return
                self.h2.send_data(stream, body[:room])
                body = body[room:]
            del self.left[stream]
            if end and trailers:
                self.h2.send_headers(stream, list(trailers), end_stream=True)
            elif end:
                self.h2.end_stream(stream)
        except (h2.exceptions.StreamClosedError, h2.exceptions.ProtocolError):
            self.left.pop(stream, None)


class HostH2(Accepting):
    """at_head and at_end get the request and return the reply; None: no reply yet. settings_wait: an event before which
    the host sends nothing, not even SETTINGS. reads: whether windows are opened again."""

    def __init__(self, at_end=None, at_head=None, streams=100, window=65535, tls=None, settings_wait=None, reads=True):
        self.at_end = at_end or (lambda asked: Answer(body=asked.body or b"ok"))
        self.at_head = at_head or (lambda asked: None)
        self.streams, self.window, self.reads = streams, window, reads
        self.settings_wait = settings_wait
        self.requests, self.connections = [], []
        super().__init__(tls)

    def serve(self, peer, number):
        connection = Connection(self, peer)
        self.connections.append(connection)
        connection.run()

    def close(self):
        self.listener.close()
        for connection in self.connections:
            connection.close()
