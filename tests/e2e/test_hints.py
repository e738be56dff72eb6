# SPDX-License-Identifier: MIT
"""Retry-After and pushback: the calls that they concern. A rate limit (429) concerns the client that sent the request,
an overloaded host (503) all calls to it, but never beyond their deadlines."""

import itertools
import time

import pytest
from host import Reply

RULES = "initialDelay: 5ms\nmaxDelay: 10ms\n"
GRPC = {"Content-Type": "application/grpc"}


def every_tenth_fails_once():
    """502 for each tenth request, and success when it is repeated."""
    number = itertools.count(1)
    return lambda _: Reply(502, b"broken") if next(number) % 11 == 10 else Reply()


def statuses(gateway, count, source):
    return [gateway.ask(path="/b", source=source).status for _ in range(count)]


@pytest.mark.parametrize("role", ["gateway", "sidecar"])
@pytest.mark.parametrize("after", ["3600", "20", "Fri, 31 Dec 2099 23:59:59 GMT"])
def test_a_429_to_one_client_leaves_the_retries_of_the_others(pair, role, after):
    gateway, host = pair(f"role: {role}", rules=RULES)
    host.on("/a", Reply(429, b"slow down", {"Retry-After": after}))
    host.on("/b", every_tenth_fails_once())
    limited = gateway.ask(path="/a", source="127.0.0.2")
    assert limited.status == 429 and limited.get("retry-after") is not None, "its own call is told"
    began = time.monotonic()
    assert statuses(gateway, 60, "127.0.0.3") == [200] * 60
    assert time.monotonic() - began < 60, "and not by waiting"
    assert host.count("/b") > 60, "there was something to retry"


def test_the_call_that_got_the_429_waits_as_long_as_it_was_told(pair):
    gateway, host = pair(rules=RULES)
    host.on("/a", Reply(429, b"", {"Retry-After": "1"}), Reply())
    answer = gateway.ask(path="/a")
    assert answer.status == 200
    first, second = host.got("/a")
    assert second.at - first.at >= 1


def test_a_503_counts_for_all_but_forbids_no_retry_that_fits(pair):
    gateway, host = pair(rules=RULES + "deadline: 2s\nattemptTimeout: 2s\n")
    host.on("/busy", Reply(503, b"busy", {"Retry-After": "60"}))
    host.on("/b", every_tenth_fails_once())
    busy = gateway.ask(path="/busy", source="127.0.0.2")
    assert busy.status == 503 and busy.get("retry-after") == "60"
    assert statuses(gateway, 12, "127.0.0.3") == [200] * 12
    times = [got.at for got in host.got("/b")]
    assert len(times) == 13 and times[10] - times[9] > 0.5, "it was spared for a while: half of what was left"


@pytest.mark.parametrize("code, everybodys", [("8", False), ("14", True)])
def test_a_pushback_is_everybodys_only_if_the_service_is_unavailable(pair, code, everybodys):
    gateway, host = pair(rules=RULES + "deadline: 4s\nattemptTimeout: 4s\n")
    pushed = (("Content-Type", "application/grpc"), ("grpc-status", code), ("grpc-retry-pushback-ms", "60000"))
    host.on("/a", Reply(200, b"", pushed))
    host.on("/b", Reply(502, b"broken"), Reply())
    answer = gateway.ask("POST", "/a", body=b"", fields={**GRPC, "Idempotency-Key": '"1"'})
    assert answer.get("grpc-status") == code
    assert gateway.ask(path="/b").status == 200
    first, second = host.got("/b")
    assert (second.at - first.at > 1) == everybodys
