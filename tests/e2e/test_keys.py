# SPDX-License-Identifier: MIT
"""Idempotency keys: what makes a POST safe to repeat, and endpoints that insist on one."""

import json

import pytest
from host import Reply, wait_until
from message import request

REQUIRED = """endpoints:
  charge: {match: {method: POST, path: /charge}, idempotencyKey: required}
"""


def charge(gateway, key, body=b"5 euro", **more):
    fields = {"Idempotency-Key": key, **more}
    return gateway.ask("POST", "/charge", body=body, fields=fields)


def test_a_post_without_a_required_key_gets_400(pair):
    gateway, host = pair(rules=REQUIRED)
    answer = gateway.ask("POST", "/charge", body=b"5 euro")
    assert answer.status == 400 and answer.get("content-type") == "application/problem+json"
    assert json.loads(answer.body)["reason"] == "key_required"
    assert host.count() == 0
    assert gateway.ask("POST", "/other", body=b"x").status == 200, "other paths ask for none"


@pytest.mark.parametrize("key", ["", '""', "a b", '"unclosed', "x" * 5000])
def test_a_malformed_key_is_no_key(pair, key):
    gateway, host = pair(rules=REQUIRED)
    assert charge(gateway, key).status in (400, 431)
    assert host.count() == 0


def test_a_key_seen_before_gets_the_stored_answer(pair):
    gateway, host = pair(rules=REQUIRED)
    host.on("/charge", Reply(201, b"charge 1", {"X-Charge": "1"}), Reply(201, b"charge 2"))
    first, second = charge(gateway, '"k1"'), charge(gateway, '"k1"')
    assert (first.status, first.body) == (second.status, second.body) == (201, b"charge 1")
    assert second.get("x-charge") == "1" and "replayed" in second.get("proxy-status")
    assert host.count("/charge") == 1
    assert charge(gateway, '"k2"').body == b"charge 2"
    assert host.requests[0].get("idempotency-key") == '"k1"', "passed on as it came"


def test_a_chunked_answer_is_stored_whole(pair):
    gateway, host = pair(rules=REQUIRED)
    host.on("/charge", Reply(200, b"c" * 30000, chunked=True), Reply(500))
    assert charge(gateway, "k").body == b"c" * 30000
    assert charge(gateway, "k").body == b"c" * 30000
    assert host.count() == 1


def test_a_key_with_another_payload_gets_422(pair):
    gateway, host = pair(rules=REQUIRED)
    assert charge(gateway, '"k"').status == 200
    answer = charge(gateway, '"k"', body=b"500 euro")
    assert answer.status == 422 and json.loads(answer.body)["reason"] == "key_mismatch"
    assert host.count() == 1


def test_a_key_in_flight_gets_409(pair):
    gateway, host = pair(rules=REQUIRED)
    host.on("/charge", Reply(201, b"slow", delay=1))
    with gateway.wire() as wire:
        wire.send(request("POST", "/charge", body=b"5 euro", fields={"Idempotency-Key": '"k"'}))
        host.wait(1)
        answer = charge(gateway, '"k"')
        assert answer.status == 409 and json.loads(answer.body)["reason"] == "key_in_flight"
        assert wire.answer("POST").body == b"slow"
    assert charge(gateway, '"k"').body == b"slow" and host.count() == 1


def test_keys_of_different_people_are_different(pair):
    gateway, host = pair(rules=REQUIRED)
    host.on("/charge", lambda got: Reply(body=got.get("authorization", "nobody").encode()))
    assert charge(gateway, "k", Authorization="ann").body == b"ann"
    assert charge(gateway, "k", Authorization="bob").body == b"bob"
    assert charge(gateway, "k", Cookie="c").body == b"nobody"
    assert charge(gateway, "k", Authorization="ann").body == b"ann"
    assert host.count() == 3


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failure_releases_its_key(pair, status):
    gateway, host = pair(rules=REQUIRED + "maxRetries: 0")
    host.on("/charge", Reply(status, b"no"), Reply(201, b"yes"))
    assert charge(gateway, "k").status == status
    assert charge(gateway, "k").status == 201
    assert charge(gateway, "k").status == 201 and host.count() == 2


def test_a_lost_answer_releases_its_key(pair):
    gateway, host = pair(rules=REQUIRED + "maxRetries: 0")
    host.on("/charge", Reply(cut=0, end="reset"), Reply(201, b"yes"))
    assert charge(gateway, "k").status == 502
    assert charge(gateway, "k").status == 201


def test_a_client_that_leaves_and_asks_again_finds_the_answer(pair):
    """Its connection broke while the host worked: this is what keys are for."""
    gateway, host = pair(rules=REQUIRED)
    host.on("/charge", Reply(201, b"late", delay=0.5), Reply(201, b"second"))
    wire = gateway.wire().send(request("POST", "/charge", body=b"5 euro", fields={"Idempotency-Key": "k"}))
    host.wait(1)
    wire.reset()
    assert charge(gateway, "k").status == 409, "it is still being done"
    wait_until(lambda: charge(gateway, "k").status == 201)
    assert charge(gateway, "k").body == b"late" and host.count() == 1
    wait_until(lambda: gateway.metric("becalm_active_requests") == 0)


def test_a_stored_answer_of_4xx_is_replayed(pair):
    gateway, host = pair(rules=REQUIRED)
    host.on("/charge", Reply(402, b"no money"), Reply(201))
    assert charge(gateway, "k").status == 402
    assert charge(gateway, "k").body == b"no money" and host.count() == 1


def test_a_key_allows_retries_and_is_the_same_on_each(pair):
    gateway, host = pair(rules="initialDelay: 1ms\nbudget: {kind: none}")
    host.on("/pay", Reply(503), Reply(502), Reply(201, b"paid"))
    answer = gateway.ask("POST", "/pay", body=b"5", fields={"Idempotency-Key": '"once"'})
    assert answer.body == b"paid"
    assert [got.get("idempotency-key") for got in host.requests] == ['"once"'] * 3
    assert [got.body for got in host.requests] == [b"5"] * 3


def test_without_a_key_nothing_is_repeated_and_none_is_invented(pair):
    gateway, host = pair(rules="initialDelay: 1ms\nbudget: {kind: none}")
    host.on("/pay", Reply(503))
    assert gateway.ask("POST", "/pay", body=b"5").status == 503
    assert host.count() == 1 and host.requests[0].get("idempotency-key") is None


def test_a_store_that_is_full_says_so(gateway, host):
    there = host()
    there.on("/charge", Reply(201, b"x", delay=1))
    made = gateway(
        "idempotencyStore: {maxEntries: 2}\n"
        f"services:\n  a:\n    hosts: [{there.address}]\n    match: {{prefix: /}}\n    idempotencyKey: required\n"
    )
    wires = [
        made.wire().send(request("POST", "/charge", body=b"", fields={"Idempotency-Key": f"k{n}"})) for n in range(6)
    ]
    statuses = sorted(wire.answer("POST").status for wire in wires)
    assert set(statuses) == {201, 503} and statuses.count(201) >= 2, "what is in flight is never forgotten"
