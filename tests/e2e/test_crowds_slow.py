# SPDX-License-Identifier: MIT
"""Uploads that drip and answers that are hardly read, by HTTP/2 and HTTP/1, where all places are taken: other
clients are answered. tests/trace/test_readers.c shows that slow lines are left alone."""

import contextlib
import signal
import threading

import h2.settings
import pytest

from host import Reply, wait_until
from http2 import DATA, HEADERS, PREFACE, SETTINGS, WINDOW, Http2, block, frame
from message import request
from test_crowds import CROWD, OTHER, open_now
from wire import Wire

BEGIN = PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, 1, 0)
SMALL_WINDOW = PREFACE + frame(SETTINGS, 0, 0, b"\0\4" + (100).to_bytes(4, "big")) + frame(SETTINGS, 1, 0)
STREAMS = [1, 3, 5]
LARGE = b"x" * 4_000_000


def uploads(wire):
    wire.send(BEGIN + b"".join(frame(HEADERS, 4, each, block("POST", "/up")) for each in STREAMS))


def upload_drips(wire):
    wire.send(b"".join(frame(DATA, 0, each, b"x") for each in STREAMS))


def asks_and_shuts(wire):
    wire.send(SMALL_WINDOW + b"".join(frame(HEADERS, 5, each, block(path="/large")) for each in STREAMS))


def opens_a_byte(wire):
    wire.send(b"".join(frame(WINDOW, 0, each, b"\0\0\0\1") for each in STREAMS))


def asks_for_little(wire):
    """All of the answer is said, and waits for the window."""
    wire.send(SMALL_WINDOW + b"".join(frame(HEADERS, 5, each, block(path="/little")) for each in STREAMS))


def asks(wire):
    wire.send(request(path="/large"))


def reads_a_little(wire):
    wire.socket.recv(200)


DRIPS = {
    "uploads": (uploads, upload_drips),
    "windows of a byte": (asks_and_shuts, opens_a_byte),
    "windows of a byte, and the answer is said": (asks_for_little, opens_a_byte),
    "reads of 200 bytes by HTTP/1": (asks, reads_a_little),
}


@contextlib.contextmanager
def dripping(gateway, kind, count):
    """`count` connections, each of which moves a few bytes, twice a second."""
    begin, drip = DRIPS[kind]
    wires = [Wire(gateway.port, source=CROWD, receive_buffer=4096) for _ in range(count)]
    over = threading.Event()

    def go_on():
        while not over.wait(0.5):
            for wire in wires:
                with contextlib.suppress(OSError):
                    drip(wire)

    for wire in wires:
        begin(wire)
    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield wires
    finally:
        over.set()
        thread.join()
        for wire in wires:
            wire.close()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", DRIPS)
def test_what_hardly_moves_makes_room_for_others(pair, kind, workers):
    gateway, host = pair("maxConnections: 20\nbodyTimeout: 10m\nidleTimeout: 10m", protocols="[h2, h1]", workers=workers)
    host.on("/large", Reply(body=LARGE))
    host.on("/little", Reply(body=b"x" * 1000))
    with dripping(gateway, kind, 20):
        wait_until(lambda: open_now(gateway) == 20)
        wait_until(lambda: gateway.ask(source=OTHER).status == 200)
        assert [gateway.ask(source=OTHER).status for _ in range(10)] == [200] * 10


class Slow(Http2):
    """A client of HTTP/2 with a small window."""

    def __init__(self, gateway, window=100):
        super().__init__(gateway.port)
        self.connection.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.flush()
        self.fence()


def test_an_answer_that_waits_for_its_window_is_no_idle_connection(pair):
    gateway, host = pair("maxConnections: 3", protocols="[h2, h1]")
    host.on("/little", Reply(body=b"x" * 1000))
    with Slow(gateway) as one, Slow(gateway) as two, Slow(gateway) as three:
        clients = [one, two, three]
        for each in clients:
            each.shut.add(each.begin(path="/little"))
            each.until(lambda: each.answers[1].body)
        for _ in range(5):
            assert gateway.ask(source=OTHER).status == 503
        for each in clients:
            each.connection.increment_flow_control_window(1000, 1)
            each.flush()
            assert each.answer(1).body == b"x" * 1000


def test_an_idle_connection_that_is_closed_for_another_is_told(pair):
    gateway, host = pair("maxConnections: 1", protocols="[h2, h1]")
    with Http2(gateway.port) as one:
        assert one.ask().status == 200
        assert gateway.ask(source=OTHER).status == 200
        assert one.at_end() and one.goaways == [(0, 1)]
    assert gateway.metric("becalm_h2_goaway_total", why="goaway") == 1  # counted before it is told


def status(client, stream):
    """After its answer, the connection may be closed for a newer one, before the client has sent its whole body."""
    with contextlib.suppress(ConnectionError):
        client.answer(stream)
    return client.answers[stream].status


def test_a_request_of_http2_that_is_on_its_way_saves_its_connection(pair):
    gateway, host = pair("maxConnections: 4", protocols="[h2, h1]")
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Http2(gateway.port)) for _ in range(4)]
        for each in clients:
            assert each.ask().status == 200
        gateway.stop()
        with Wire(gateway.port, source=OTHER) as other:
            other.send(request())  # its place is wanted before the others' requests are read
            streams = [each.begin() for each in clients]
            gateway.signal(signal.SIGCONT)
            assert [status(each, stream) for each, stream in zip(clients, streams)] == [200] * 4
            assert other.answer().status in (200, 503)
