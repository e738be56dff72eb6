# SPDX-License-Identifier: MIT
"""Peers that use TLS against the gateway: frames that cost the peer nothing must not cost the gateway much."""

import contextlib
import socket
import subprocess

import pytest
from accepting import Accepting
from conftest import policy_of, wait_until
from host import Reply
from message import request, signed
from raw_tls import RawTls

GET = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def edge(gateway, host, authority):
    """A gateway with TLS before a plain host."""

    def make(text="", **more):
        return gateway(policy_of([host()], text), tls=authority.issue().tls, **more)

    return make


@contextlib.contextmanager
def raw(port):
    client = RawTls(socket.create_connection(("127.0.0.1", port)))
    try:
        yield client
    finally:
        client.close()


def test_tls_hostile__who_only_changes_keys_is_cut_off(edge):
    """Each new key costs us hashes; other connections have their turn in the meantime, and peers that also send data go
    on."""
    this = edge()
    with raw(this.port) as client:
        for _ in range(5):
            client.update(30)
            client.send(GET)
            assert client.read().startswith(b"HTTP/1.1 200")
        client.update(40)
        client.send(GET)
        assert client.read() == b""


def test_tls_hostile__handshakes_that_are_given_up_leave_nothing(edge):
    """Behind each of the first bytes, and in the middle of a word."""
    this = edge()
    before = this.open_fds()
    hello = bytes.fromhex("16030100310100002d0303") + bytes(32) + bytes.fromhex("000002130101000000")
    for length in range(len(hello)):
        with socket.create_connection(("127.0.0.1", this.port)) as client:
            client.sendall(hello[:length])
    wait_until(lambda: this.open_fds() <= before, what=this.open_fds)  # it may have been starting still


def test_tls_hostile__a_stuck_handshake_does_not_hold_up_the_end(edge):
    """The fixture waits for it, less long than a head may take."""
    this = edge("headerTimeout: 300s")
    with socket.create_connection(("127.0.0.1", this.port)) as silent, socket.create_connection(("127.0.0.1", this.port)) as begun:
        begun.sendall(b"\x16\x03\x01")
        this.end()
        assert silent.recv(100) == b""


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_tls_hostile__records_may_be_as_small_as_a_client_asks_for(gateway, host, authority, version):
    """By the extension max_fragment_length, and each of its own with a few bytes."""
    this = host()
    this.on("/", Reply(body=signed(b"b" * 300_000)))
    edge = gateway(policy_of([this]), tls=authority.issue().tls)
    asks = ["openssl", "s_client", "-quiet", "-connect", f"127.0.0.1:{edge.port}", version, "-maxfraglen", "512"]
    said = subprocess.run(asks, input=request(fields={"Connection": "close"}), capture_output=True, timeout=60).stdout
    assert said.partition(b"\r\n\r\n")[2] == signed(b"b" * 300_000)


ALIENS = [b"\0" * 100, b"\x80\x2e\x01\x03\x01", b"\x15\x03\x01\x00\x02\x02\x28", b"\x17\x03\x03\x00\x05hello", b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\x00\x05\x01\0\0\0\0", b"{"]


def test_tls_hostile__what_is_no_hello_ends_at_once(edge):
    """With an alert at most; it is no reason to wait for headerTimeout, nor to speak HTTP."""
    this = edge("headerTimeout: 300s")
    for alien in ALIENS:
        with socket.create_connection(("127.0.0.1", this.port), timeout=60) as client:
            client.sendall(alien)
            said = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := client.recv(100):
                    said += piece
            assert said == b"" or said[0] == 0x15, alien


class Rekeys(Accepting):
    """A host that updates its keys before each answer, as often as the test orders."""

    def __init__(self, certificate, times):
        self.certificate, self.times = certificate, iter(times)
        super().__init__()

    def serve(self, peer, number):
        server = RawTls(peer, self.certificate)
        while server.read():
            server.update(next(self.times))
            server.send(OK)
        server.close()


def test_tls_hostile__a_host_that_only_changes_keys_is_cut_off(gateway, authority):
    this = Rekeys(authority.issue(), [40, 30, 30, 30])
    edge = gateway(policy_of([this], "", f"tls: {{ca: {authority.cert}, serverName: a.test}}\nmaxRetries: 0"))
    try:
        assert [edge.ask().status for _ in range(4)] == [502, 200, 200, 200] and this.accepted == 2
    finally:
        this.listener.close()
