# SPDX-License-Identifier: MIT
"""Connections to a host: open streams leave room for others, and the time that a call waits for a connection says
nothing about the service."""

import json
import os
import threading
import time

import pytest
from host import Reply, wait_until
from message import request
from test_admin import target
from test_streams import STREAM, limit, opened

SOAK = os.environ.get("BECALM_SOAK") == "1"
STREAMS = 1100  # more than the connections that are kept when idle
LINE = "attemptTimeout: 600ms\ndeadline: 60s\nmaxRetries: 0\nbreaker: {minimumNumberOfCalls: 2, failureRateThreshold: 50}\n"


def crowd(gateway, count, path="/"):
    """`count` callers at once. Returns their answers."""
    answers = []

    def call():
        answers.append(gateway.ask(path=path))

    threads = [threading.Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.parametrize("role", ["gateway", "sidecar"])
@pytest.mark.parametrize("workers", [1, 2] if SOAK else [2])
def test_a_thousand_streams_leave_room_for_short_calls(pair, role, workers):
    """With nothing written but the role: each stream has a connection, and so has each of the others."""
    gateway, host = pair(f"role: {role}\ndrain: {{limit: 1s}}", workers=workers)
    host.on("/events", STREAM)
    with opened(gateway, STREAMS) as wires:
        wait_until(lambda: limit(gateway)["answers"] == STREAMS, 60)
        assert [gateway.ask().status for _ in range(20)] == [200] * 20
        assert [answer.status for answer in crowd(gateway, 20)] == [200] * 20
        assert host.count("/events") == STREAMS, "none was refused or asked for again"
        assert all(wire.socket.recv(12) == b"HTTP/1.1 200" for wire in wires)
    wait_until(lambda: limit(gateway)["answers"] == 0, 60)
    assert gateway.metric("circuit_breaker_transitions_total") == 0


@pytest.mark.parametrize("role", ["gateway", "sidecar"])
def test_what_waits_in_vain_for_a_connection_is_held_against_nobody(pair, role):
    """The pool is full of streams, as the policy says. The service is well: neither its breaker nor its limit says
    otherwise, and the first call that finds a connection is served."""
    gateway, host = pair(f"role: {role}\npool: {{maxPerHost: 4}}\ndrain: {{limit: 1s}}\nlog: {{access: json}}", rules=LINE)
    host.on("/events", STREAM)
    with opened(gateway, 4):
        wait_until(lambda: limit(gateway)["answers"] == 4)
        before = limit(gateway)["now"]
        answers = crowd(gateway, 30)
        assert [answer.status for answer in answers] == [503] * 30
        assert {json.loads(answer.body)["reason"] for answer in answers} == {"no_connection"}
        assert all(json.loads(answer.body)["attempts"] == 0 for answer in answers)
        assert all("error=connection_limit_reached" in answer.get("proxy-status") for answer in answers)
        assert all(answer.get("retry-after") for answer in answers)
        assert limit(gateway)["now"] == before and limit(gateway)["inFlight"] == 0
        assert target(gateway)["breaker"]["state"] == "CLOSED"
        gateway.expect_metric(30, "becalm_shed_total", reason="no_connection")
    wait_until(lambda: limit(gateway)["answers"] == 0)
    assert gateway.ask().status == 200 and host.count("/") == 1
    wait_until(lambda: len(gateway.access()) >= 31)  # the log is written behind the answers
    lines = [json.loads(line) for line in gateway.access()]
    assert sum(line["reason"] == "no_connection" and line["status"] == 503 for line in lines) == 30


def test_who_gets_a_connection_late_has_all_of_its_time(pair):
    """It waits in line behind a slow call, and its host still gets the deadline of 20 s."""
    gateway, host = pair("pool: {maxPerHost: 1}", rules="attemptTimeout: 20s\ndeadline: 100s\nmaxRetries: 0\n")
    go = threading.Event()
    host.on("/first", Reply(when=go.is_set))
    with gateway.wire() as first, gateway.wire() as second:
        first.send(request(path="/first"))
        host.wait(1)
        second.send(request(path="/second"))
        wait_until(lambda: limit(gateway)["inFlight"] == 2)
        time.sleep(1.5)
        assert host.count() == 1
        go.set()
        assert first.answer().status == 200 and second.answer().status == 200
    assert float(host.got("/second")[0].get("x-request-deadline-ms")) > 19000


def test_idle_connections_beyond_the_usual_are_not_kept(pair):
    """A burst may have as many as it wants; a thousand of them are kept for the next."""
    gateway, host = pair("drain: {limit: 1s}", rules="attemptTimeout: 60s\ndeadline: 100s\n")
    go = threading.Event()
    host.on("/wait", Reply(when=go.is_set))
    with opened(gateway, STREAMS, "/wait") as wires:
        wait_until(lambda: host.count("/wait") == STREAMS, 60)
        assert host.open == STREAMS
        go.set()
        assert all(wire.answer().status == 200 for wire in wires)
        wait_until(lambda: host.open == 1024, what=lambda: host.open)
        assert gateway.ask().status == 200
        assert host.connections == STREAMS, "a kept one was used again"
