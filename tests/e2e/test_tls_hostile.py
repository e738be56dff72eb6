# SPDX-License-Identifier: MIT
"""Peers that use TLS against the gateway: what costs them nothing must not cost it much."""

import contextlib
import socket

import pytest
from accepting import Accepting
from conftest import policy_of, wait_until
from raw_tls import RawTls
from wire import Wire

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
    """Each new key costs us hashes; others have their turn in the meantime, and those who also say something go on."""
    this = edge()
    with raw(this.port) as client:
        for _ in range(5):
            client.update(30)
            client.send(GET)
            assert client.read().startswith(b"HTTP/1.1 200")
        client.update(40)
        client.send(GET)
        assert client.read() == b""


class Rekeys(Accepting):
    """A host that changes its keys before each answer, as often as it is told."""

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
