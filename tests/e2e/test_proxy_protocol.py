# SPDX-License-Identifier: MIT
"""A load balancer that passes bytes on says whose they are, by the PROXY protocol, before TLS and HTTP."""

import re
import resource
import signal
import socket
import struct

import pytest
from conftest import free_port
from host import Reply, wait_until
from message import request
from wire import Wire, ask

V1 = b"PROXY TCP4 203.0.113.9 192.0.2.2 56324 443\r\n"
V2 = b"\r\n\r\n\0\r\nQUIT\n" + b"\x21\x11" + struct.pack("!H", 12) + socket.inet_aton("203.0.113.9") + socket.inet_aton("192.0.2.2") + struct.pack("!HH", 56324, 443)
LOCAL = b"\r\n\r\n\0\r\nQUIT\n" + b"\x20\0\0\0"


def is_closed(wire):
    """By a reset, where something was not read."""
    try:
        return wire.socket.recv(1) == b""
    except ConnectionError:
        return True


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def balanced(gateway, host):
    """A gateway whose listener for its one service wants the header, and the port of that."""

    def make(text="", more=""):
        there = host()
        port = free_port()
        here = gateway(f"{text}services:\n  a: {{hosts: ['{there.address}'], listen: {{address: '127.0.0.1:{port}', proxyProtocol: true{more}}}}}\n")
        here.there, here.balanced = there, port
        return here

    return make


@pytest.mark.parametrize(("header", "address"), [(V1, "203.0.113.9"), (V2, "203.0.113.9"), (LOCAL, "127.0.0.1"), (b"PROXY UNKNOWN\r\n", "127.0.0.1")])
def test_the_address_in_the_header_is_the_clients(balanced, header, address):
    here = balanced("log: {access: json}\n")
    with Wire(here.balanced) as wire:
        assert wire.send(header).ask().status == 200
        assert wire.ask(path="/again").status == 200  # once for the connection
    assert [each.get("x-forwarded-for") for each in here.there.requests] == [address] * 2
    here.end()
    assert all(f'"peer":"{address}"' in line for line in here.access()), here.access()


def test_it_may_come_byte_by_byte_and_together_with_the_request(balanced):
    here = balanced()
    with Wire(here.balanced) as wire:
        for at in range(len(V2)):
            wire.send(V2[at : at + 1])
        assert wire.ask().status == 200
    with Wire(here.balanced) as wire:
        assert wire.send(V1 + request()).answer().status == 200


def test_trust_is_asked_of_the_client_and_not_of_the_balancer(balanced):
    here = balanced("trust: [127.0.0.0/8]\n")
    with Wire(here.balanced) as wire:
        wire.send(V1).ask(fields={"X-Forwarded-For": "8.8.8.8"})
    with Wire(here.balanced) as wire:
        wire.send(LOCAL).ask(fields={"X-Forwarded-For": "8.8.8.8"})
    assert [each.get("x-forwarded-for") for each in here.there.requests] == ["203.0.113.9", "8.8.8.8, 127.0.0.1"]


@pytest.mark.parametrize("first", [request(), b"PROXY TCP4 nonsense\r\n", b"\r\n\r\n\0\r\nQUIT\n\x99\0\0\0"])
def test_who_says_something_else_is_closed_and_told_once(balanced, first):
    here = balanced()
    for _ in range(2):
        with Wire(here.balanced) as wire:
            wire.send(first)
            assert is_closed(wire)
    assert here.there.count() == 0
    wait_until(lambda: len(here.log_lines("PROXY protocol")) == 1)
    assert ask(here.port, host="a").status == 200  # the other listener does not expect the header


def test_who_says_nothing_is_closed_after_header_timeout_and_at_the_end(balanced):
    here = balanced("headerTimeout: 100ms\n")
    with Wire(here.balanced) as wire:
        assert is_closed(wire.send(b"PROXY TCP4 1"))
    here = balanced()
    with Wire(here.balanced) as wire:
        wire.send(b"PROXY TCP4 1")
        here.end()
        assert is_closed(wire)


def test_who_says_it_when_the_listener_has_gone_is_closed(balanced):
    here = balanced()
    with Wire(here.balanced) as wire:
        wire.send(V1[:10])
        here.reload(re.sub(", listen: {.*?}", "", here.path.read_text()))
        wait_until(lambda: not listens(here.balanced))  # by no worker any more
        assert is_closed(wire.send(V1[10:]))


def test_tls_comes_behind_it(gateway, host, authority, tmp_path):
    there = host().on("/", Reply(200, body=b"sealed"))
    shown = authority.issue()
    port = free_port()
    gateway(
        f"services:\n  a: {{hosts: ['{there.address}'],"
        f" listen: {{address: '127.0.0.1:{port}', proxyProtocol: true, tls: {shown.tls}}}}}\n"
    )
    with Wire(port) as wire:
        wire.send(V2)
        wire.socket = authority.client().wrap_socket(wire.socket, server_hostname="a.test")
        assert wire.ask(host="a.test").body == b"sealed"
    assert there.requests[0].get("x-forwarded-for") == "203.0.113.9" and there.requests[0].get("x-forwarded-proto") == "https"


def test_connections_that_say_nothing_make_room_for_others_where_descriptors_are_few(balanced):
    """No timeout ends them, and they have no place among maxConnections."""
    here = balanced("headerTimeout: 10m\n")
    most = here.settled_fds() + 30
    resource.prlimit(here.process.pid, resource.RLIMIT_NOFILE, (most, most))
    wires = [Wire(here.balanced, source="127.0.0.2") for _ in range(60)]
    for _ in range(5):
        with Wire(here.balanced) as wire:
            assert wire.send(V2).ask().status == 200
    for wire in wires:
        wire.close()


def test_a_header_that_has_come_is_read_though_its_connection_would_be_closed_for_another(balanced):
    """Both came while the gateway stood still, the other connection first."""
    here = balanced("headerTimeout: 10m\n")
    with Wire(here.balanced) as silent:
        most = here.settled_fds()
        resource.prlimit(here.process.pid, resource.RLIMIT_NOFILE, (most, most))
        here.stop()
        with Wire(here.balanced, source="127.0.0.2"):
            silent.send(V2 + b"GET / HTTP/1.1\r\n\r\n")  # is answered without a connection to a host
            here.signal(signal.SIGCONT)
            assert silent.answer().status == 400
