# SPDX-License-Identifier: MIT
"""Slow handshakes and silent connections with TLS and HTTP/2, where places or descriptors are short: others are answered."""

import concurrent.futures
import contextlib
import resource
import select
import ssl
import sys
import threading
import time

import pytest

from conftest import free_port, policy_of
from host import Reply, wait_until
from http2 import HEADERS, PREFACE, SETTINGS, block, frame
from message import Message, request
from test_crowds import CROWD, OTHER, open_now
from wire import Wire

FEW = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)); os.execv(sys.argv[1], sys.argv[1:])"
NO_TIMEOUT = "headerTimeout: 10m\nidleTimeout: 10m"  # none ends them: others would wait for ever


def hello():
    """A client's first flight."""
    there = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), there, server_hostname="a.test")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return there.read()


HELLO = hello()
SAID = {  # kind: in clear text before the handshake; or the protocol behind it, by ALPN or prior knowledge
    "silent": b"",
    "a byte of the hello": HELLO[:1],
    "half a hello": HELLO[:60],
    "a hello": HELLO,
}
SHAKEN = {
    "shaken": b"",
    "half a head": b"GET / HTTP/1.1\r\nhost: a\r\nx:",
}
SHAKEN_H2 = {
    "shaken for h2": b"",
    "half a preface": PREFACE[:10],
    "the preface alone": PREFACE,
    "no acknowledgement": PREFACE + frame(SETTINGS, 0, 0),
    "half a frame": PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, 1, 0) + frame(HEADERS, 5, 1, block())[:20],
    "half a block": PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, 1, 0) + frame(HEADERS, 1, 1, block()),
}
KINDS = [*SAID, *SHAKEN, *SHAKEN_H2]


def context_for(authority, *protocols):
    context = authority.client()
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


def slow_one(authority, port, kind, source=CROWD):
    if kind in SAID:
        return Wire(port, source=source).send(SAID[kind])
    protocols = ["h2"] if kind in SHAKEN_H2 else ["http/1.1"]
    wire = Wire(port, source=source, tls=context_for(authority, *protocols), name="a.test")
    return wire.send({**SHAKEN, **SHAKEN_H2}[kind])


@contextlib.contextmanager
def crowd(authority, port, kind, count):
    wires = []
    try:
        for _ in range(count):
            try:
                wires.append(slow_one(authority, port, kind))
            except TimeoutError:  # a guard
                raise
            except OSError:  # it may be closed for the next already
                pass
        yield wires
    finally:
        for wire in wires:
            wire.close()


@pytest.fixture
def edge(gateway, host, authority):
    """edge(): a gateway with TLS before a plain host."""

    def make(text="", **more):
        this = host()
        made = gateway(policy_of([this], text), tls=authority.issue().tls, protocols="[h2, h1]", **more)
        made.host, made.believes = this, authority.client()
        return made

    return make


def ask(gateway):
    return gateway.ask(source=OTHER, tls=gateway.believes, name="a.test").status


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_slow_handshakes_make_room_for_others(edge, authority, kind, workers):
    gateway = edge("maxConnections: 30\n" + NO_TIMEOUT, workers=workers)
    with crowd(authority, gateway.port, kind, 30):
        wait_until(lambda: open_now(gateway) == 30)
        assert [ask(gateway) for _ in range(10)] == [200] * 10
    assert gateway.metric("becalm_bounds_reached_total", bound="maxConnections", action="refused") == 0


@pytest.mark.parametrize("kind", KINDS)
def test_slow_handshakes_make_room_for_others_where_descriptors_are_fewer_than_places(edge, authority, kind):
    gateway = edge(NO_TIMEOUT, wrapper=[sys.executable, "-c", FEW])
    with crowd(authority, gateway.port, kind, 150):
        assert [ask(gateway) for _ in range(10)] == [200] * 10
    gateway.told("no descriptor is left")


@pytest.mark.parametrize("kind", ["silent", "half a hello", "shaken", "no acknowledgement"])
def test_slow_handshakes_give_up_descriptors_for_connections_to_hosts(edge, authority, kind):
    """There are no new clients: the connected ones send requests at once, and each needs a connection to a host."""
    gateway = edge(NO_TIMEOUT)
    go = threading.Event()
    gateway.host.on("*", Reply(when=go.is_set))
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(gateway.port, source=OTHER, tls=gateway.believes, name="a.test")) for _ in range(8)]
        most = gateway.settled_fds() + 32
        resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE, (most, most))
        stack.enter_context(crowd(authority, gateway.port, kind, 40))
        gateway.told("no descriptor is left")
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(8))
        stack.callback(go.set)
        answers = [pool.submit(wire.send(request()).answer) for wire in wires]
        wait_until(lambda: gateway.host.count() == 8 or any(each.done() for each in answers))  # all at once, or one is refused
        go.set()
        assert [each.result().status for each in answers] == [200] * 8


@contextlib.contextmanager
def storm(authority, port, count):
    """Silent connections; those that are closed are opened again at once."""
    over = threading.Event()

    def come_again():
        wires = []
        while not over.is_set():
            closed = set(select.select([wire.socket for wire in wires], [], [], 0.005 if len(wires) >= count else 0)[0])
            for wire in [each for each in wires if each.socket in closed]:
                wires.remove(wire)
                wire.close()
            with contextlib.suppress(OSError):
                while len(wires) < count:
                    wires.append(slow_one(authority, port, "silent"))
        for wire in wires:
            wire.close()

    threads = [threading.Thread(target=come_again) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_others_are_answered_in_a_storm_of_silent_connections_where_descriptors_are_few(edge, authority):
    """A worker without descriptors does not close its last client's connection while the other worker has all other
    connections."""
    gateway = edge(NO_TIMEOUT, workers=2, wrapper=[sys.executable, "-c", FEW])
    gateway.host.on("*", Reply(end="close"))
    with storm(authority, gateway.port, 75):
        wait_until(lambda: gateway.log_lines("no descriptor is left"))
        assert [ask(gateway) for _ in range(100)] == [200] * 100


@pytest.mark.parametrize("kind", ["silent", "half a hello", "a hello", "shaken", "half a head"])
def test_slow_handshakes_at_the_admin_address_keep_no_probe_out(gateway, host, authority, kind):
    tls, port = authority.issue().tls, free_port()
    text = f"admin: {{address: '127.0.0.1:{port}', tls: {tls}}}\n{NO_TIMEOUT}"
    made = gateway(policy_of([host()], text), admin=None, wrapper=[sys.executable, "-c", FEW])
    with crowd(authority, port, kind, 120), crowd(authority, made.port, "silent", 120):
        for _ in range(5):
            with Wire(port, source=OTHER, tls=authority.client(), name="a.test") as probe:
                assert probe.ask(path="/healthz", host=f"127.0.0.1:{port}").status == 200


@pytest.fixture
def sealed(gateway, host, authority):
    """A gateway that has no descriptor left but that of the reserve for its admin address, which has TLS: one
    connection to it is served at a time."""
    there, port = host(), free_port()
    calls = "attemptTimeout: 1h\ndeadline: 1h\nmaxRetries: 0"  # they stay until they are answered
    tls = f"admin: {{address: '127.0.0.1:{port}', tls: {authority.issue().tls}}}\n"
    made = gateway(policy_of([there], tls + NO_TIMEOUT, calls), admin=None)
    made.admin = port
    go, wires = made.fill_descriptors(there)
    yield made
    go.set()
    for wire in wires:
        wire.close()


def probe_slowly(authority, port, pause):
    """The status of a probe that waits before each of its flights: the hello, the handshake's last one, the request."""
    came, made = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = authority.client().wrap_bio(came, made, server_hostname="a.test")
    answer = Message(answers="GET")

    def step(do):
        while True:
            try:
                return do()
            except ssl.SSLWantReadError:
                pass
            finally:
                if made.pending:
                    pause()
                    wire.send(made.read())
            data = wire.socket.recv(65536)
            came.write(data) if data else came.write_eof()

    with Wire(port, source=OTHER) as wire:
        step(tls.do_handshake)
        step(lambda: tls.write(request("GET", "/healthz", host="localhost")))
        while not answer.complete:
            data = step(lambda: tls.read(65536))
            if not data:
                raise EOFError("closed before its answer")
            answer.feed(data)
    return answer.status


def test_a_slow_probe_has_time_while_no_other_connection_waits(sealed, authority):
    assert probe_slowly(authority, sealed.admin, lambda: time.sleep(0.25)) == 200


def test_each_flight_of_a_probe_has_its_time_while_another_connection_waits(sealed, authority):
    """Two of them together take longer than a silent connection may. A machine that is busy may need too long for one: then the
    probe comes again, as probes do."""

    def succeeds():
        with contextlib.ExitStack() as stack:

            def pause():
                stack.enter_context(Wire(sealed.admin))
                time.sleep(0.08)

            with contextlib.suppress(OSError, EOFError):
                return probe_slowly(authority, sealed.admin, pause) == 200
        return False

    wait_until(succeeds)
