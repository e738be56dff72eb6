# SPDX-License-Identifier: MIT
"""Clients that leave in the middle of something: nothing that goes on without them may hurt the others."""

import json
import signal
import socket

import pytest
from host import GUARD, Reply, Tunnel, fill, wait_until
from message import is_signed, request, signed

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
        self.fillers = fill(self.socket)

    def accept_all(self):
        """Accepts connections until one has come that is not from this test."""
        ours = {filler.getsockname() for filler in self.fillers}
        self.socket.settimeout(GUARD)
        while True:
            there, peer = self.socket.accept()
            if peer not in ours:
                return there
            there.close()

    def close(self):
        for each in [self.socket, *self.fillers]:
            each.close()


def gone(gateway):
    """Waits until the gateway has no client connections any more."""
    wait_until(lambda: gateway.metric("becalm_connections") == 0)


def left(gateway):
    """Waits until no request is in progress any more."""
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
        f"  slow: {{hosts: ['{slow.address}'], match: {{host: slow.test}}, idempotencyKey: required, connectTimeout: 60s,\n"
        "    attemptTimeout: 60s, deadline: 60s}\n"
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


# Calls that hold a key go on without their client, and end.

ORPHAN = "idempotencyKey: required\nlimit: {kind: fixed, max: 1}\nattemptTimeout: 2s\ndeadline: 5s"


def charge(gateway, key="k", **more):
    return gateway.ask("POST", "/charge", body=b"5 euro", fields={"Idempotency-Key": key}, **more)


def leave(gateway, host, when):
    """A client that resets its connection before the answer's head or behind it."""
    go = []
    first = host._rules["/charge"][1][0]
    first.when = lambda: go
    wire = gateway.wire().send(request("POST", "/charge", body=b"5 euro", fields=KEY))
    host.wait(1)
    if when == "head":
        go.append(True)
        while b"\r\n\r\n" not in wire.rest:
            wire.rest += wire.socket.recv(65536)
    wire.reset()
    gone(gateway)
    go.append(True)


@pytest.mark.parametrize("when", ["early", "head"])
@pytest.mark.parametrize("stop", ["stalls", "drips", "never ends"])
def test_an_answer_that_nobody_waits_for_and_that_does_not_end_is_cut(pair, when, stop):
    """Its slot, its connection and its key are free again."""
    gateway, host = pair("idleTimeout: 600ms\n", rules=ORPHAN)
    how = {
        "stalls": Reply(201, b"x" * 100, cut=120, end="hang"),
        "drips": Reply(201, b"x" * 1000, pace=0.1),
        "never ends": Reply(201, b"x" * 3_000_000, cut=2_000_000, end="hang"),
    }
    host.on("/charge", how[stop], Reply(201, b"second"))
    leave(gateway, host, when)
    left(gateway)
    assert charge(gateway).body == b"second"
    assert charge(gateway, "another").status == 201
    wait_until(lambda: host.open <= 1)


@pytest.mark.parametrize("size", [10, 700_000])
def test_a_client_that_leaves_in_the_middle_of_its_answer_finds_it_again(pair, size):
    """The request is not executed twice."""
    gateway, host = pair(rules=ORPHAN)
    host.on("/charge", Reply(201, signed(b"x" * size), chunked=True), Reply(201, b"second"))
    with gateway.wire(receive_buffer=4096) as wire:
        wire.send(request("POST", "/charge", body=b"5 euro", fields=KEY))
        wire.socket.recv(100)
        wire.reset()
    wait_until(lambda: charge(gateway).status == 201)
    answer = charge(gateway)
    assert is_signed(answer.body) and "replayed" in answer.get("proxy-status")
    assert host.count() == 1
    left(gateway)


@pytest.mark.parametrize("rules", ["", "\nhedge: {enabled: true, delay: 50ms}"])
def test_a_host_that_says_nothing_to_a_call_without_client_costs_its_timeouts(pair, rules):
    gateway, hosts = pair("idleTimeout: 1s\n", rules=ORPHAN + rules, hosts=2)
    for host in hosts:
        host.on("/charge", Reply(cut=0, end="deaf"))
    wire = gateway.wire().send(request("POST", "/charge", body=b"x" * 60000, fields=KEY))
    wait_until(lambda: sum(host.count() for host in hosts) >= 1)
    wire.reset()
    left(gateway)


@pytest.mark.parametrize("signals", [1, 2])
def test_a_call_without_client_does_not_hold_the_end_up_for_ever(pair, signals):
    """Once: it ends with its idleTimeout; twice: at once, and nothing is leaked."""
    gateway, host = pair(f"idleTimeout: {'1s' if signals == 1 else '60s'}\n", rules=ORPHAN)
    host.on("/charge", Reply(201, b"x" * 100, cut=120, end="hang"))
    leave(gateway, host, "early")
    wait_until(lambda: gateway.metric("becalm_active_requests") == 1)
    for _ in range(signals):
        gateway.signal(signal.SIGTERM)
        if signals == 2:
            wait_until(lambda: gateway.log_lines("draining"))
    gateway.process.wait(20)
    gateway.end()
