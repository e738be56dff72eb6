# SPDX-License-Identifier: MIT
"""Answers that stay open: an event stream, a slow reader, a tunnel. The limit counts attempts that wait for an answer's
head; answers in progress have their own count and bound, and keep no other call out."""

import contextlib
import json
import threading
import time

import pytest
from host import Reply, Tunnel, wait_until
from message import request
from test_admin import target

QUICK = "attemptTimeout: 2s\ndeadline: 6s\nmaxRetries: 0\nbreaker: {enabled: false}\n"
STREAM = Reply(body=b"data: 1\n\n", fields={"Content-Type": "text/event-stream"}, unsized=True, end="hang")
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket"}


def limit(gateway):
    return target(gateway)["limit"]


@contextlib.contextmanager
def opened(gateway, count, path="/events", **more):
    """`count` connections with a request each. In the end they are reset: a client that only closes may still be
    reading."""
    wires = [gateway.wire(**more) for _ in range(count)]
    try:
        for wire in wires:
            wire.send(request(path=path))
        yield wires
    finally:
        for wire in wires:
            if wire.socket.fileno() >= 0:
                wire.reset()


def burst(gateway, callers, seconds, path="/"):
    """Callers that send one request after the other. Returns the statuses."""
    until = time.monotonic() + seconds
    statuses = []

    def call():
        while time.monotonic() < until:
            statuses.append(gateway.ask(path=path).status)

    threads = [threading.Thread(target=call) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def ten_in_a_row(gateway):
    return all(gateway.ask(path="/").status == 200 for _ in range(10))


def everybody_is_answered_again(gateway):
    wait_until(lambda: ten_in_a_row(gateway))


def overloaded(each=0.05):
    """A host with one worker: every answer waits for those before it."""
    free_at = 0

    def reply(_):
        nonlocal free_at
        now = time.monotonic()
        free_at = max(free_at, now) + each
        return Reply(delay=free_at - now)

    return reply


# The path that is slow for a while, and the policy whose limit falls because of that: `slots` by a queue, `aimd` by
# timeouts.
SLOWNESS = {"gateway": overloaded, "sidecar": lambda: Reply(delay=30)}


@pytest.mark.parametrize("role", ["gateway", "sidecar"])
def test_subscribers_of_a_stream_keep_nobody_out_after_a_slowness(pair, role):
    gateway, host = pair(f"role: {role}\ndrain: {{limit: 1s}}", rules=QUICK)
    host.on("/events", STREAM)
    with opened(gateway, 20) as wires:
        wait_until(lambda: limit(gateway)["answers"] == 20)
        host.on("*", SLOWNESS[role]())
        for _ in range(10):  # a busy machine asks less in the same time
            burst(gateway, 15, 2.5)
            if limit(gateway)["now"] < 20:
                break
        assert limit(gateway)["now"] < 20, "the slowness was seen"
        host.on("*", Reply())
        everybody_is_answered_again(gateway)
        here = limit(gateway)
        assert here["answers"] == 20 and here["inFlight"] == 0
        assert all(wire.says_nothing(0) or wire.socket.recv(65536) for wire in wires), "the streams are still there"
    wait_until(lambda: limit(gateway)["answers"] == 0)


@pytest.mark.parametrize("role", ["gateway", "sidecar"])
def test_readers_that_take_their_time_keep_nobody_out(pair, role):
    gateway, host = pair(f"role: {role}\ndrain: {{limit: 1s}}", rules=QUICK)
    host.on("/large", Reply(body=b"x" * 8_000_000))
    with contextlib.ExitStack() as readers:
        def begins():
            """On a busy machine the host may need more than an attempt's two seconds for the head: then another one asks."""
            reader = readers.enter_context(opened(gateway, 1, "/large", receive_buffer=4096))[0]
            return reader.socket.recv(12) == b"HTTP/1.1 200"

        for _ in range(60):
            wait_until(begins)
        wait_until(lambda: limit(gateway)["answers"] == 60)
        host.on("*", SLOWNESS[role]())
        burst(gateway, 15, 2.5)
        host.on("*", Reply())
        everybody_is_answered_again(gateway)
        assert limit(gateway)["inFlight"] == 0


def test_tunnels_hold_neither_a_slot_nor_an_answer(pair):
    gateway, host = pair("drain: {limit: 1s}", rules=QUICK + "limit: {kind: fixed, max: 1, maxAnswers: 1}\n")
    host.on("/ws", Tunnel())
    with gateway.wire() as wire:
        wire.send(request(path="/ws", fields=UPGRADE) + b"early")
        wait_until(lambda: host.count("/ws") == 1 and limit(gateway)["inFlight"] == 0)
        assert limit(gateway)["answers"] == 0
        assert gateway.ask().status == 200


def test_a_stream_leaves_a_fixed_limit_to_the_others(pair):
    gateway, host = pair("drain: {limit: 1s}", rules=QUICK + "limit: {kind: fixed, max: 1}\n")
    host.on("/events", STREAM)
    with opened(gateway, 5):
        wait_until(lambda: limit(gateway)["answers"] == 5)
        assert [gateway.ask().status for _ in range(20)] == [200] * 20
        assert limit(gateway) == {
            "kind": "fixed",
            "now": 1,
            "inFlight": 0,
            "answers": 5,
            "maxAnswers": 100000,
            "shared": False,
        }
        gateway.expect_metric(5, "becalm_answers_in_progress", service="a")
        gateway.expect_metric(1, "becalm_limit", service="a")
        assert target(gateway)["inFlight"] == 5, "attempts, as ever"
    wait_until(lambda: gateway.metric("becalm_answers_in_progress", service="a") == 0)


def test_who_waits_for_a_slot_gets_it_with_the_head_of_the_answer_before(pair):
    """Not with its end: the stream never ends."""
    gateway, host = pair(
        "drain: {limit: 1s}",
        rules="limit: {kind: fixed, max: 1}\ngate: {maxQueueTime: 20s}\nattemptTimeout: 60s\ndeadline: 100s\n",
    )
    go = threading.Event()
    host.on("/events", Reply(body=b"data: 1\n\n", unsized=True, end="hang", when=go.is_set))
    with opened(gateway, 1), gateway.wire() as second:
        wait_until(lambda: limit(gateway)["inFlight"] == 1)
        second.send(request())
        wait_until(lambda: target(gateway)["gate"]["waiting"] == 1)
        go.set()
        assert second.answer().status == 200


def test_at_the_bound_of_answers_calls_are_refused_with_its_word(pair):
    gateway, host = pair(
        "drain: {limit: 1s}\nlog: {access: json}", rules=QUICK + "limit: {maxAnswers: 3}\ngate: {maxQueueTime: 200ms}\n"
    )
    host.on("/events", STREAM)
    with opened(gateway, 3) as wires:
        wait_until(lambda: limit(gateway)["answers"] == 3)
        answer = gateway.ask()
        assert answer.status == 503 and json.loads(answer.body)["reason"] == "answers", answer.body
        assert 'details="answers"' in answer.get("proxy-status") and answer.get("retry-after") is not None
        gateway.expect_metric(1, "becalm_shed_total", reason="answers")
        assert host.count("/") == 0
        wires[0].reset()
        wait_until(lambda: limit(gateway)["answers"] == 2)
        assert gateway.ask().status == 200


def test_with_equal_bounds_a_fixed_limit_holds_for_bodies_too(pair):
    """For a service whose bodies are the work: as many requests as it has processes, and not one more."""
    gateway, host = pair(
        "drain: {limit: 1s}",
        rules="limit: {kind: fixed, max: 2, maxAnswers: 2}\ngate: {maxQueueTime: 20s, targetQueueTime: 20s}\n"
        "attemptTimeout: 60s\ndeadline: 100s\n",
    )
    host.on("/events", STREAM)
    with opened(gateway, 2) as wires, gateway.wire() as third:
        wait_until(lambda: limit(gateway)["answers"] == 2)
        third.send(request())
        wait_until(lambda: target(gateway)["gate"]["waiting"] == 1)
        assert third.says_nothing(0.2) and host.count("/") == 0
        wires[0].reset()
        assert third.answer().status == 200


def test_the_loser_of_a_hedge_gives_all_back(pair):
    gateway, host = pair(
        "drain: {limit: 1s}", rules="hedge: {enabled: true, delay: 50ms}\nattemptTimeout: 30s\ndeadline: 60s\n"
    )
    host.on("/events", Reply(end="hang", cut=0), STREAM)
    with opened(gateway, 1) as wires:
        wait_until(lambda: limit(gateway)["answers"] == 1)
        assert host.count("/events") == 2 and limit(gateway)["inFlight"] == 0
        assert wires[0].socket.recv(65536).startswith(b"HTTP/1.1 200")
    wait_until(lambda: limit(gateway)["answers"] == 0)
    assert target(gateway)["inFlight"] == 0


def test_a_stream_after_a_failed_answer_has_one_place(pair):
    gateway, host = pair("drain: {limit: 1s}", rules="initialDelay: 1ms\nmaxDelay: 1ms\nlimit: {kind: fixed, max: 1}\n")
    host.on("/events", Reply(503, b"not now"), STREAM)
    with opened(gateway, 1):
        wait_until(lambda: limit(gateway)["answers"] == 1)
        assert limit(gateway)["inFlight"] == 0 and gateway.ask().status == 200
    wait_until(lambda: limit(gateway)["answers"] == 0)


def test_a_failed_answer_that_is_held_back_holds_no_slot(pair):
    """Its head has come; its body, which decides nothing, drips."""
    gateway, host = pair(
        "drain: {limit: 1s}",
        rules="limit: {kind: fixed, max: 1}\nattemptTimeout: 20s\ndeadline: 60s\nmaxRetries: 0\n",
    )
    host.on("/failed", Reply(503, b"x" * 100, cut=120, end="hang"))
    with opened(gateway, 1, "/failed"):
        wait_until(lambda: limit(gateway)["answers"] == 1)
        assert limit(gateway)["inFlight"] == 0 and gateway.ask().status == 200
    wait_until(lambda: limit(gateway)["answers"] == 0)


def test_a_keyed_answer_whose_client_left_gives_its_place_back(pair):
    gateway, host = pair(
        "drain: {limit: 1s}\nidleTimeout: 2s",
        rules="endpoints:\n  pay: {match: {path: /pay}, idempotencyKey: required}\n",
    )
    host.on("/pay", Reply(body=b"y" * 3000, pace=0.0005))
    wire = gateway.wire()
    wire.send(request("POST", "/pay", body=b"1", fields={"Idempotency-Key": "k"}))
    wait_until(lambda: limit(gateway)["answers"] == 1)
    wire.reset()
    wait_until(lambda: limit(gateway)["answers"] == 0 and limit(gateway)["inFlight"] == 0)


def test_a_reload_and_two_workers_lose_no_count(pair):
    rules = "limit: {kind: fixed, max: 50}\n"
    gateway, host = pair("drain: {limit: 1s}", rules=rules, workers=2)
    host.on("/events", STREAM)
    with opened(gateway, 12):
        wait_until(lambda: limit(gateway)["answers"] == 12)
        gateway.reload(gateway.path.read_text().replace("max: 50", "max: 40"))
        wait_until(lambda: limit(gateway)["now"] == 40)
        assert gateway.ask().status == 200
    wait_until(lambda: target(gateway)["inFlight"] == 0 and limit(gateway)["answers"] == 0)
