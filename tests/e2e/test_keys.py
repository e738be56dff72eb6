# SPDX-License-Identifier: MIT
"""Idempotency keys, which make a POST safe to repeat, and endpoints that require one."""

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
        assert answer.get("retry-after") in ("1", "2")
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
    """The connection broke while the host worked: keys exist for this case."""
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
        "idempotencyStore: {maxEntries: 4}\n"
        f"services:\n  a:\n    hosts: [{there.address}]\n    match: {{prefix: /}}\n    idempotencyKey: required\n"
    )
    wires = [
        made.wire().send(request("POST", "/charge", body=b"", fields={"Idempotency-Key": f"k{n}"})) for n in range(6)
    ]
    statuses = sorted(wire.answer("POST").status for wire in wires)
    assert set(statuses) == {201, 503} and statuses.count(201) >= 2, "what is in flight is never forgotten"


# Whose key it is.

def answers_with_what_it_saw(got):
    return Reply(201, "|".join(f"{name}={value}" for name, value in got.fields if name in SEEN).encode())


SEEN = ("host", "authorization", "cookie", "x-api-key", "x-tenant")


def scoped(pair, scope=None):
    more = "" if scope is None else f", keyScope: {scope}"
    gateway, host = pair(rules=REQUIRED.replace("required}", f"required{more}}}"))
    host.on("/charge", answers_with_what_it_saw)
    return gateway, host


def charge_as(gateway, lines, tenant="a.test", body=b"5 euro", path="/charge"):
    fields = [("Idempotency-Key", "order-1"), *lines]
    return gateway.ask("POST", path, body=body, host=tenant, fields=fields)


APART = {
    "a second Cookie line": ([("Cookie", "v=1"), ("Cookie", "user=alice")], [("Cookie", "v=1"), ("Cookie", "user=bob")]),
    "a Cookie line more": ([("Cookie", "v=1")], [("Cookie", "v=1"), ("Cookie", "user=bob")]),
    "an API key": ([("X-Api-Key", "alice")], [("x-api-key", "bob")]),
    "a second API key": ([("X-Api-Key", "a"), ("X-Api-Key", "b")], [("X-Api-Key", "a"), ("X-Api-Key", "c")]),
    "a second Authorization": ([("Authorization", "x"), ("Authorization", "alice")], [("Authorization", "x")]),
    "the order of lines": ([("Authorization", "x"), ("Authorization", "y")], [("Authorization", "y"), ("Authorization", "x")]),
    "an empty one and none": ([("Authorization", "")], []),
    "an empty API key and none": ([("X-Api-Key", "")], []),
    "another field": ([("Authorization", "s")], [("X-Api-Key", "s")]),
    "another field with its name inside": ([("Cookie", "s")], [("Authorization", "s")]),
    "lines that are one when joined": ([("Cookie", "a=1"), ("Cookie", "b=2")], [("Cookie", "a=1; b=2")]),
    "where one line ends": ([("Cookie", "ab"), ("Cookie", "c")], [("Cookie", "a"), ("Cookie", "bc")]),
}


@pytest.mark.parametrize("what", APART)
def test_a_key_is_only_its_owners(pair, what):
    gateway, host = scoped(pair)
    alice, bob = APART[what]
    first, second = charge_as(gateway, alice), charge_as(gateway, bob)
    assert "replayed" not in second.get("proxy-status", "") and first.body != second.body
    assert host.count() == 2
    for who, was in ((alice, first), (bob, second)):
        again = charge_as(gateway, who)
        assert again.body == was.body and "replayed" in again.get("proxy-status")
    assert host.count() == 2


def test_a_key_of_one_tenant_is_none_of_anothers(pair):
    """Host is part of the key: neither its answer, nor that it is there, is told to another tenant."""
    gateway, host = scoped(pair, "none")
    assert charge_as(gateway, [], "tenant-a.test").body == b"host=tenant-a.test"
    assert charge_as(gateway, [], "tenant-b.test").body == b"host=tenant-b.test"
    assert charge_as(gateway, [], "tenant-c.test", body=b"9 euro").status == 201, "no 422 that tells of it"
    for same in ("TENANT-A.test", "tenant-a.test:80", "tenant-a.test.", "tenant-a.test:"):
        assert "replayed" in charge_as(gateway, [], same).get("proxy-status", ""), same
    for other in ("tenant-a.test:8080", "tenant-a", "a.tenant-a.test"):
        assert charge_as(gateway, [], other).body == f"host={other}".encode()
    absolute = charge_as(gateway, [], "tenant-b.test", path="http://tenant-a.test/charge")
    assert absolute.body == b"host=tenant-a.test", "the target's authority is whom the host is told of"


def test_a_key_in_flight_is_not_told_to_others(pair):
    gateway, host = scoped(pair)
    host.on("/charge", Reply(201, b"alice's", delay=1), Reply(201, b"bob's"))
    with gateway.wire() as wire:
        fields = [("Idempotency-Key", "order-1"), ("X-Api-Key", "alice")]
        wire.send(request("POST", "/charge", body=b"5 euro", fields=fields))
        host.wait(1)
        assert charge_as(gateway, [("X-Api-Key", "bob")]).body == b"bob's"
        assert charge_as(gateway, [("X-Api-Key", "alice")]).status == 409
        assert wire.answer("POST").body == b"alice's"


SCOPES = {
    # (scope, alice's headers, headers that are the same in this scope, headers that differ in this scope)
    "authorization": (
        [("Authorization", "a"), ("Cookie", "x=1")],
        [[("Authorization", "a"), ("Cookie", "x=2")], [("Authorization", "a"), ("X-Api-Key", "k")]],
        [[("Authorization", "b"), ("Cookie", "x=1")], [("Cookie", "x=1")], [("Authorization", "a"), ("Authorization", "a")]],
    ),
    "header:X-Tenant": (
        [("x-tenant", "a"), ("Authorization", "x")],
        [[("X-TENANT", "a"), ("Authorization", "y")]],
        [[("X-Tenant", "A")], [], [("X-Tenant", "")], [("X-Tenant", "a"), ("X-Tenant", "b")], [("X_Tenant", "b")]],
    ),
    "cookie:sid": (
        [("Cookie", "sid=a; theme=dark")],
        [[("Cookie", "theme=light; sid=a")], [("Cookie", "theme=x"), ("Cookie", "sid=a")], [("Cookie", "t=1;sid=a")]],
        [
            [("Cookie", "sid=b; theme=dark")],
            [("Cookie", "sid=a; sid=b")],
            [("Cookie", "sid=a; sid=a")],
            [("Cookie", "SID=a")],
            [("Cookie", "sid=")],
            [("Cookie", "x=1,sid=a")],
            [("Cookie", 'x="; sid=a')],
            [("Cookie", "sid=a, sid=b")],
            [("Cookie", "sid")],
            [("Cookie", "x sid=a")],
        ],
    ),
    "none": ([("Authorization", "a")], [[("Authorization", "b")], [], [("Cookie", "sid=1")]], []),
}


@pytest.mark.parametrize("scope", SCOPES)
def test_the_scope_of_keys_can_be_narrowed(pair, scope):
    gateway, host = scoped(pair, scope)
    alice, same, others = SCOPES[scope]
    first = charge_as(gateway, alice)
    for lines in same:
        assert charge_as(gateway, lines).body == first.body, lines
    assert host.count() == 1
    for n, lines in enumerate(others):
        assert "replayed" not in charge_as(gateway, lines).get("proxy-status", ""), lines
        assert host.count() == 2 + n


def test_who_names_no_cookie_is_not_who_hides_it(pair):
    """A Cookie line that can't be parsed is its own scope: its client is not taken for a client without the cookie."""
    gateway, host = scoped(pair, "cookie:sid")
    assert charge_as(gateway, []).status == 201
    for n, hidden in enumerate(("x=1,sid=mallory", 'a="b; sid=mallory', "sid =mallory", "a=b; sid", "=; sid=mallory")):
        assert "replayed" not in charge_as(gateway, [("Cookie", hidden)]).get("proxy-status", ""), hidden
        assert host.count() == 2 + n


def test_a_field_that_the_host_does_not_see_is_nobodys_credential(pair):
    gateway, host = scoped(pair)
    assert charge_as(gateway, []).body == b"host=a.test"
    hidden = charge_as(gateway, [("X-Api-Key", "k"), ("Connection", "x-api-key")])
    assert hidden.body == b"host=a.test" and "replayed" in hidden.get("proxy-status"), "the host would see the same"


def reload_and_wait(gateway, policy, explain):
    gateway.reload(f"explain: {str(explain).lower()}\n{policy}")
    wait_until(lambda: (gateway.ask(path="/other").get("becalm-explain") is not None) == explain)


def test_a_reload_that_changes_the_scope_shows_nobody_older_answers(pair):
    gateway, host = scoped(pair, "none")
    policy = gateway.path.read_text()
    alice, bob = [("Authorization", "alice")], [("Authorization", "bob")]
    assert charge_as(gateway, alice).body == b"host=a.test|authorization=alice"
    for n, scope in enumerate(("authorization", "header:Authorization", "cookie:sid", "credentials")):
        reload_and_wait(gateway, policy.replace("keyScope: none", f"keyScope: {scope}"), n % 2 == 0)
        assert charge_as(gateway, bob).body == b"host=a.test|authorization=bob"
        assert host.count("/charge") == 2 + n
    reload_and_wait(gateway, policy, True)
    assert charge_as(gateway, bob).body == b"host=a.test|authorization=alice", "as the file says again: one for all"


def test_a_flood_of_keys_makes_nobody_pay_twice(gateway, host):
    """Another client's keys, under one name or under many, don't push out the answers of one that has few."""
    there = host()
    there.on("/charge", answers_with_what_it_saw)
    made = gateway(
        "idempotencyStore: {maxEntries: 100}\n"
        f"services:\n  a:\n    hosts: [{there.address}]\n    match: {{prefix: /}}\n    idempotencyKey: required\n"
    )

    def pay(who, key, source):
        with made.wire(source=source) as wire:
            fields = {"Idempotency-Key": key, "Authorization": who}
            return wire.ask("POST", "/charge", body=b"5 euro", fields=fields)

    for n in range(20):
        assert pay("alice", f"k{n}", "127.0.0.2").status == 201
    for n in range(150):
        assert pay("mallory", f"k{n}", "127.0.0.3").status == 201
    for n in range(150):
        assert pay(f"invented {n}", "k", "127.0.0.3").status == 201
    seen = there.count()
    for n in range(20):
        assert "replayed" in pay("alice", f"k{n}", "127.0.0.2").get("proxy-status", "")
    assert there.count() == seen


@pytest.mark.parametrize("status", [401, 403])
def test_a_request_that_the_service_did_not_let_in_keeps_no_key(pair, status):
    gateway, host = pair(rules=REQUIRED.replace("required}", "required, keyScope: none}"))
    host.on("/charge", Reply(status, b"who are you?"), Reply(201, b"yes"))
    assert charge(gateway, "k").status == status
    assert charge(gateway, "k", Authorization="alice").body == b"yes"
