# SPDX-License-Identifier: MIT
"""Deadlines, attempt counts and marks that callers send: the peers whose headers count, and no harm to other calls."""

import time

import pytest
from conftest import free_port, policy_of
from host import Reply, wait_until
from load import Load, statuses
from message import request
from wire import Wire

TRUST = "trust: [127.0.0.0/8]"


def left(got):
    return int(got.get("x-request-deadline-ms"))


def test_every_attempt_is_told_what_is_left(pair):
    gateway, host = pair(TRUST, rules="attemptTimeout: 20s\ninitialDelay: 1ms\nbudget: {kind: none}")
    host.on("/", Reply(503, delay=0.4), Reply(503, delay=0.4), Reply(200))
    assert gateway.ask(fields={"X-Request-Deadline-Ms": "5000"}).status == 200
    first, second, third = (left(got) for got in host.requests)
    assert 4000 < first <= 5000 and second <= first - 400 and third <= second - 400


def test_the_policys_own_deadline_is_told_when_nobody_sent_one(pair):
    gateway, host = pair(TRUST, rules="attemptTimeout: 20s\ndeadline: 7s")
    gateway.ask()
    assert 6000 < left(host.requests[0]) <= 7000


def test_each_service_is_told_its_own_time(gateway, host):
    """Lines that were written for one request serve the next: but never one with another time, or a service that is told less."""
    one = host()
    rules = {"a": "attemptTimeout: 4s", "b": "attemptTimeout: 14s", "c": "attemptTimeout: 4s, send: [deadline]"}
    services = [f"  {name}: {{hosts: ['{one.address}'], match: {{prefix: /{name}}}, {rule}}}" for name, rule in rules.items()]
    front = gateway("\n".join(["services:", *services, ""]))
    for name in "aabbccabcbac":
        assert front.ask(path=f"/{name}").status == 200
        got = one.requests[-1]
        assert (left(got) > 4000) == (name == "b")
        assert [got.get("via") is None, got.get("x-envoy-attempt-count") is None] == [name == "c"] * 2


def test_the_least_of_all_dialects_wins_and_each_is_written_again(pair):
    gateway, host = pair(TRUST, rules="attemptTimeout: 20s")
    fields = {
        "X-Request-Deadline-Ms": "9000",
        "Grpc-Timeout": "3S",
        "X-Envoy-Expected-Rq-Timeout-Ms": "8000",
        "Baggage": "user=7,deadline-ms=6000",
    }
    gateway.ask(fields=fields)
    got = host.requests[0]
    assert 2000 < left(got) <= 3000
    assert 2000 < int(got.get("x-envoy-expected-rq-timeout-ms")) <= 3000
    assert got.get("grpc-timeout")[-1] in "mun" and "user=7" in got.get("baggage")
    assert "6000" not in got.get("baggage") and "9000" not in str(got.fields)


def test_a_deadline_that_has_passed_is_504_and_no_attempt(pair):
    gateway, host = pair(f"explain: true\n{TRUST}")
    answer = gateway.ask(fields={"X-Request-Deadline-Ms": "0"})
    assert answer.status == 504 and 'details="deadline"' in answer.get("proxy-status")
    assert "proxy_internal_response" in answer.get("proxy-status")
    assert host.count() == 0 and "attempts=0" in answer.get("becalm-explain")


def test_a_deadline_ends_the_call_in_its_time(pair):
    gateway, host = pair(TRUST)
    host.on("/", Reply(cut=0, end="hang"))
    begin = time.monotonic()
    answer = gateway.ask(fields={"X-Request-Deadline-Ms": "300"})
    assert answer.status == 504 and 0.25 < time.monotonic() - begin < 30


def test_a_client_with_1_ms_deadlines_changes_nobody_elses_success(pair):
    gateway, host = pair(TRUST)
    host.on("*", Reply(delay=0.05))
    greedy = Load(
        gateway.port,
        rate=100,
        seconds=4,
        make=lambda n: ("GET", request(path="/greedy", fields={"X-Request-Deadline-Ms": "1"})),
    )
    greedy.start()
    time.sleep(1)
    results = Load(gateway.port, rate=50, seconds=2, make=lambda n: ("GET", request(path="/fine"))).run_through()
    assert statuses(results) == {200: len(results)}, statuses(results)
    told = statuses(greedy.finish())
    # 200: the answer was there when a busy gateway came to look; 503: a busy machine was slow enough for the limit to refuse the greedy one
    assert set(told) <= {200, 503, 504} and told[504] > 0, told


UNTRUSTED = {
    "X-Request-Deadline-Ms": "1",
    "Grpc-Timeout": "1m",
    "X-Envoy-Expected-Rq-Timeout-Ms": "1",
    "Baggage": "deadline-ms=1,user=7",
    "X-Envoy-Attempt-Count": "3",
    "Grpc-Previous-Rpc-Attempts": "2",
    "Becalm-Retry": "overloaded; scope=service",
}


def test_deadline_attempt_and_mark_of_untrusted_clients_have_no_effect(gateway, host):
    there = host()
    there.on("/", Reply(503, delay=0.1), Reply(200))
    made = gateway(
        policy_of([there], "trust: [10.0.0.0/8]", "initialDelay: 1ms\nbudget: {kind: none}\nattemptTimeout: 9s")
    )
    assert made.ask(fields=UNTRUSTED).status == 200, "not cut at 1 ms, and retried as a first attempt is"
    for number, got in enumerate(there.requests):
        assert left(got) > 5000, "the host is told the policy's deadline"
        assert got.get("x-envoy-attempt-count") == str(number + 1)
        assert [got.get(name) for name in ("becalm-retry", "grpc-timeout", "x-envoy-expected-rq-timeout-ms")] == [
            None
        ] * 3
        assert got.get("baggage") == "user=7"
    assert len(there.requests) == 2


@pytest.mark.parametrize("name", ["X-Request-Deadline-Ms", "Grpc-Timeout", "X-Envoy-Expected-Rq-Timeout-Ms"])
@pytest.mark.parametrize("value", ["", "nonsense", "-5", "1e9", "99999999999999999999999", "5 5"])
def test_a_deadline_that_can_not_be_read_is_ignored(pair, name, value):
    gateway, host = pair(TRUST)
    assert gateway.ask(fields={name: value}).status == 200
    assert left(host.requests[0]) > 0


def test_attempts_are_counted_for_the_host(pair):
    gateway, host = pair(TRUST, rules="initialDelay: 1ms\nbudget: {kind: none}")
    host.on("/", Reply(503), Reply(503), Reply(200))
    gateway.ask()
    assert [got.get("x-envoy-attempt-count") for got in host.requests] == ["1", "2", "3"]


def believed(ask, host):
    """Does the host get a client's deadline of 3 s?"""
    host.forget()
    ask({"X-Request-Deadline-Ms": "3000", "X-Envoy-Attempt-Count": "7"})
    return left(host.requests[0]) <= 3000


@pytest.mark.parametrize(
    ("text", "of_loopback", "of_unix"),
    [
        ("", False, False),
        ("role: gateway", False, False),
        ("role: sidecar", True, True),
        ("role: sidecar\ntrust: []", False, False),
        ("trust: [127.0.0.0/8]", True, False),
        ("trust: [unix]", False, True),
        ("role: sidecar\ntrust: [10.0.0.0/8]", False, False),
    ],
)
def test_whom_a_gateway_and_a_sidecar_believe(gateway, host, tmp_path, text, of_loopback, of_unix):
    there = host()
    policy = policy_of([there], text, "attemptTimeout: 9s\ndeadline: 9s")
    port = free_port()
    gateway(policy, sets=[f'listen=["127.0.0.1:{port}", "unix:{tmp_path}/in"]'])
    for address, expected in ((port, of_loopback), (f"{tmp_path}/in", of_unix)):
        with Wire(address) as wire:
            assert believed(lambda fields: wire.ask(fields=fields), there) == expected, address


def test_a_reload_changes_whom_it_believes(pair):
    gateway, host = pair(rules="attemptTimeout: 9s\ndeadline: 9s")
    with gateway.wire() as wire:
        assert not believed(lambda fields: wire.ask(fields=fields), host)
        gateway.reload(f"{TRUST}\n{gateway.path.read_text()}")
        wait_until(lambda: believed(lambda fields: wire.ask(fields=fields), host))
