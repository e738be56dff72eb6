# SPDX-License-Identifier: MIT
"""Clients that leave in the middle of something: nothing that goes on without them may hurt the others."""

import json
import socket

import pytest
from host import Reply, Tunnel, wait_until
from message import request

KEY = {"Idempotency-Key": "k"}
UPGRADE = {"Upgrade": "websocket", "Connection": "upgrade"}
REQUIRED = "idempotencyKey: required"


class Backlog:
    """A host that listens and does not accept: connections to it are made when it begins to."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(0)
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.fillers = []
        for _ in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(self.socket.getsockname())
            self.fillers.append(filler)

    def accept_all(self):
        """Takes everybody in, until somebody has come who is none of ours."""
        ours = {filler.getsockname() for filler in self.fillers}
        self.socket.settimeout(20)
        while True:
            there, peer = self.socket.accept()
            if peer not in ours:
                return there
            there.close()

    def close(self):
        for each in [self.socket, *self.fillers]:
            each.close()


def gone(gateway):
    """Until the gateway has seen that nobody is connected any more."""
    wait_until(lambda: gateway.metric("becalm_connections") == 0)


def left(gateway):
    """Until nothing is done for anybody any more."""
    wait_until(lambda: gateway.metric("becalm_active_requests") == 0)
    wait_until(lambda: gateway.metric("http_client_concurrent_requests") == 0)


@pytest.mark.parametrize("rules", [REQUIRED, "idempotencyKey: optional"])
@pytest.mark.parametrize("leave", ["reset", "close", "half_close"])
def test_a_keyed_upgrade_whose_client_has_left_opens_no_tunnel(pair, rules, leave):
    gateway, host = pair(rules=rules)
    go = []
    host.on("/ws", Reply(raw=b"HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", when=lambda: go))
    wire = gateway.wire().send(request(path="/ws", fields={**KEY, **UPGRADE}))
    host.wait(1)
    getattr(wire, leave)()
    if leave == "reset":
        gone(gateway)
    go.append(True)
    assert gateway.ask(path="/other").status == 200
    if leave == "half_close":
        assert wire.answer().status == 101
        wire.close()
    left(gateway)
    assert gateway.process.poll() is None


def test_a_keyed_connect_whose_client_has_left_opens_no_tunnel(gateway, host):
    other, slow = host(), Backlog()
    made = gateway(
        "connect: true\nservices:\n"
        f"  slow: {{hosts: ['{slow.address}'], match: {{host: slow.test}}, idempotencyKey: required, connectTimeout: 20s,\n"
        "    attemptTimeout: 20s, deadline: 20s}\n"
        f"  a: {{hosts: ['{other.address}'], match: {{prefix: /}}}}\n"
    )
    try:
        wire = made.wire().send(request("CONNECT", "slow.test:80", host="slow.test:80", fields=KEY))
        wait_until(lambda: made.metric("http_client_concurrent_requests") == 1)
        wire.reset()
        gone(made)
        slow.accept_all().close()
        assert made.ask().status == 200
    finally:
        slow.close()


def test_a_keyed_connect_and_a_keyed_upgrade_still_open_tunnels(gateway, host):
    there = host()
    there.on("/ws", Tunnel())
    made = gateway(
        "connect: true\n"
        f"services: {{a: {{hosts: ['{there.address}'], match: {{host: a.test}}, idempotencyKey: required}}}}\n"
    )
    for _ in range(2):  # the key is not in flight, and not answered either
        with made.wire() as wire:
            assert wire.ask("CONNECT", "a.test:80", host="a.test:80", fields=KEY).status == 200
            assert wire.ask(path="/through").status == 200
        with made.wire() as wire, made.wire() as same:
            for each in (wire, same):
                assert each.ask(path="/ws", host="a.test", fields={**KEY, **UPGRADE}).status == 101
                each.send(b"hello")
                assert each.socket.recv(5) == b"hello"


def test_an_upgrade_that_would_need_its_key_is_refused(pair):
    """A POST that may be done once only, and has no answer that could be stored."""
    gateway, host = pair(rules=REQUIRED)
    answer = gateway.ask("POST", "/ws", body=b"", fields={**KEY, **UPGRADE})
    assert answer.status == 400 and json.loads(answer.body)["reason"] == "key_on_upgrade"
    assert host.count() == 0
