# SPDX-License-Identifier: MIT
"""How long event streams and tunnels may be silent: longer than other connections, but not for ever."""

import socket
import threading
import time

import pytest

from host import Reply, wait_until
from message import request

SILENT = 1.5  # seconds; more than twice the timeout that would end it
LONG = "idleTimeout: 10m\ndrain: {limit: 1s}\n"
SHORT = "idleTimeout: 500ms\ndrain: {limit: 1s}\n"


def stream(kind="text/event-stream", body=b"data: 1\n\n"):
    return Reply(body=body, fields={"Content-Type": kind}, unsized=True, end="hang")


def read_until(wire, what):
    got = b""
    while what not in got:
        more = wire.socket.recv(65536)
        assert more, got
        got += more
    return got


def listen(gateway, path="/events"):
    wire = gateway.wire().send(request(path=path))
    read_until(wire, b"data: 1\n\n")
    return wire


KINDS = ["text/event-stream", "Text/Event-Stream; charset=utf-8", "text/event-stream ;x=y"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_stream_may_be_silent_for_longer_than_other_answers(pair, kind):
    gateway, host = pair(SHORT)
    host.on("/events", stream(kind))
    host.on("/other", stream("text/event-streams"))
    with listen(gateway) as events, listen(gateway, "/other") as other:
        assert other.at_end()
        assert events.says_nothing(SILENT)


def test_an_event_stream_has_a_time_of_its_own(pair):
    gateway, host = pair(LONG + "streamIdleTimeout: 500ms\n")
    host.on("/events", stream())
    host.on("/other", stream("text/plain"))
    with listen(gateway) as events, listen(gateway, "/other") as other:
        assert events.at_end()
        assert other.says_nothing(0.3)
        wait_until(lambda: gateway.metric("becalm_active_requests") == 1)


def test_events_begin_the_time_anew(pair):
    gateway, host = pair(SHORT + "streamIdleTimeout: 3s\n")
    host.on("/events", Reply(body=b"event", fields={"Content-Type": "text/event-stream"}, pace=0.8))
    assert gateway.ask(path="/events").body == b"event"


def test_a_stream_that_nobody_reads_ends_with_idle_timeout(pair):
    gateway, host = pair(SHORT)
    host.on("/events", stream(body=b"data: 1\n\n" * 1_000_000))
    with gateway.wire(receive_buffer=4096) as wire:
        wire.send(request(path="/events"))
        wait_until(lambda: host.count("/events") == 1)
        wait_until(lambda: gateway.metric("becalm_active_requests") == 0)


def test_a_reload_changes_the_time_of_what_is_open(pair):
    gateway, host = pair(SHORT)
    host.on("/events", stream())
    with listen(gateway) as events:
        assert events.says_nothing(SILENT)
        gateway.reload("streamIdleTimeout: 300ms\n" + gateway.path.read_text())
        assert events.at_end()


class Far:
    """Takes one connection, answers its head (that of an upgrade with 101), and is silent; deaf: reads nothing more."""

    def __init__(self, upgrade, deaf=False):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.upgrade = upgrade
        self.deaf = deaf
        self.made = None
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        self.made = self.listener.accept()[0]
        if self.upgrade:
            self.made.recv(65536)
            self.made.sendall(b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: %s\r\n\r\n" % self.upgrade.encode())
        while not self.deaf and self.made.recv(65536):
            pass

    def close(self):
        self.listener.close()
        if self.made:
            self.made.close()


@pytest.fixture
def tunnel(gateway):
    """tunnel(settings, kind): a gateway, a far end, and the client's wire of an open tunnel between them."""
    fars = []

    def make(text, kind, **more):
        far = Far(None if kind == "CONNECT" else kind, **more)
        fars.append(far)
        made = gateway(f"connect: on\nupgrades: [websocket, tcp]\n{text}services:\n  a.test: {{hosts: ['{far.address}']}}\n")
        wire = made.wire()
        if kind == "CONNECT":
            wire.send(b"CONNECT a.test:80 HTTP/1.1\r\nhost: a.test:80\r\n\r\n")
        else:
            wire.send(request(host="a.test", fields={"Connection": "upgrade", "Upgrade": kind}))
        assert read_until(wire, b"\r\n\r\n").split()[1] in (b"101", b"200")
        return made, far, wire

    yield make
    for far in fars:
        far.close()


TUNNELS = ["websocket", "tcp", "CONNECT"]


@pytest.mark.parametrize("kind", TUNNELS)
def test_a_tunnel_may_be_silent_for_longer_than_other_connections(tunnel, kind):
    _, far, wire = tunnel(SHORT, kind)
    assert wire.says_nothing(SILENT)
    far.made.sendall(b"still here")
    assert wire.socket.recv(100) == b"still here"


@pytest.mark.parametrize("kind", TUNNELS)
def test_a_tunnel_has_a_time_of_its_own(tunnel, kind):
    gateway, _, wire = tunnel(LONG + "tunnelIdleTimeout: 500ms\n", kind)
    assert wire.at_end()
    wait_until(lambda: gateway.metric("becalm_tunnels") == 0)


@pytest.mark.parametrize("side", ["client", "host"])
def test_either_side_of_a_tunnel_keeps_it_open(tunnel, side):
    _, far, wire = tunnel(LONG + "tunnelIdleTimeout: 2s\n", "websocket")
    end = time.monotonic() + 4
    while time.monotonic() < end:
        (wire.socket if side == "client" else far.made).sendall(b"x")
        time.sleep(0.2)
    far.made.sendall(b"end")
    assert b"end" in read_until(wire, b"end")


def test_a_tunnel_with_one_end_closed_ends_with_idle_timeout(tunnel):
    """Half-closed tunnels of peers that are gone would else pile up."""
    gateway, far, wire = tunnel(SHORT, "CONNECT", deaf=True)
    wire.half_close()
    wait_until(lambda: gateway.metric("becalm_tunnels") == 0)


@pytest.mark.parametrize("side", ["client", "host"])
def test_a_tunnel_whose_bytes_nobody_takes_ends_with_idle_timeout(tunnel, side):
    gateway, far, wire = tunnel(SHORT, "websocket", deaf=True)
    sender = wire.socket if side == "host" else far.made
    try:
        for _ in range(1000):
            sender.sendall(b"x" * 65536)
    except OSError:
        pass
    else:
        pytest.fail("64 MB went somewhere")
    wait_until(lambda: gateway.metric("becalm_tunnels") == 0)


def test_a_tunnel_that_was_silent_takes_much_at_once(tunnel):
    """The time before it counts for nothing."""
    gateway, _, wire = tunnel(SHORT, "websocket")
    assert wire.says_nothing(SILENT)
    for _ in range(100):
        wire.send(b"y" * 65536)
    gateway.expect_metric(1, "becalm_tunnels")
