# SPDX-License-Identifier: MIT
"""idempotencyKey: enforced: the gateway is the only guard of a service that knows no keys."""

import collections
import json
import os
import random
import threading

import pytest
from host import Reply, wait_until
from message import request
from wire import ask

ENFORCED = """initialDelay: 1ms
budget: {kind: none}
maxRetries: 3
endpoints:
  charge: {match: {method: POST, path: /charge}, idempotencyKey: enforced}
"""


def charge(gateway, key, body=b"5 euro", **more):
    return gateway.ask("POST", "/charge", body=body, fields={"Idempotency-Key": key, **more})


def admin(gateway, path, method="GET", **more):
    return ask(gateway.admin, method, path, host=f"127.0.0.1:{gateway.admin}", **more)


def reason(answer):
    return json.loads(answer.body)["reason"]


def test_a_key_is_executed_once_and_replayed(pair):
    gateway, host = pair(rules=ENFORCED)
    host.on("/charge", Reply(201, b"charge 1", {"X-Charge": "1"}), Reply(201, b"charge 2"))
    first, second = charge(gateway, "k1"), charge(gateway, "k1")
    assert (first.status, first.body) == (second.status, second.body) == (201, b"charge 1")
    assert second.get("idempotent-replayed") == "true" and "replayed" in second.get("proxy-status")
    assert first.get("idempotent-replayed") is None
    assert charge(gateway, "k1", body=b"6 euro").status == 422
    assert host.count() == 1


def test_a_replay_sets_no_cookie(pair):
    gateway, host = pair(rules=ENFORCED)
    cookies = (("Set-Cookie", "session=1"), ("X-Charge", "1"), ("set-cookie", "other=2"))
    host.on("/charge", Reply(201, b"charged", cookies), Reply(500, b"failed", cookies))
    for key, status in (("k1", 201), ("k2", 500)):
        first, second = charge(gateway, key), charge(gateway, key)
        assert first.get("set-cookie") is not None and second.get("set-cookie") is None
        assert (second.status, second.get("x-charge"), second.get("idempotent-replayed")) == (status, "1", "true")


def test_with_expectContinue_what_no_host_has_asked_for_is_sent_again_and_what_one_has_is_held(pair):
    gateway, host = pair(rules="expectContinue: on\n" + ENFORCED)
    go_on = b"HTTP/1.1 100 Continue\r\n\r\n"
    host.on("/charge", Reply(cut=0, early=True, end="reset"), Reply(201, b"charged", interim=go_on))
    assert charge(gateway, "k1").body == b"charged"
    assert [got.body for got in host.got("/charge")] == [b"", b"5 euro"], "the first was never asked for its body"
    assert charge(gateway, "k1").get("idempotent-replayed") == "true"
    host.on("/charge", Reply(cut=0, interim=go_on, end="reset"), Reply(201, b"again"))
    assert charge(gateway, "k2").status == 502
    assert reason(charge(gateway, "k2")) == "key_unknown" and host.count("/charge") == 3


def test_a_post_without_a_key_is_refused(pair):
    gateway, host = pair(rules=ENFORCED)
    answer = gateway.ask("POST", "/charge", body=b"5 euro")
    assert answer.status == 400 and reason(answer) == "key_required" and host.count() == 0


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_error_of_the_service_is_stored_and_replayed(pair, status):
    gateway, host = pair(rules=ENFORCED)
    host.on("/charge", Reply(status, b"charged, then failed"), Reply(201, b"charged again"))
    for _ in range(3):
        answer = charge(gateway, "k")
        assert (answer.status, answer.body) == (status, b"charged, then failed")
    assert host.count() == 1, "neither the gateway nor the client repeats it"


def test_a_large_error_is_stored_whole(pair):
    gateway, host = pair(rules=ENFORCED)
    host.on("/charge", Reply(500, b"e" * 50000, chunked=True), Reply(201))
    assert charge(gateway, "k").body == b"e" * 50000
    assert charge(gateway, "k").body == b"e" * 50000 and host.count() == 1


@pytest.mark.parametrize("status", [401, 403, 429])
def test_what_the_service_did_not_let_in_may_be_asked_again(pair, status):
    gateway, host = pair(rules=ENFORCED)
    host.on("/charge", Reply(status, b"no"), Reply(201, b"yes"))
    assert charge(gateway, "k").status == status
    assert charge(gateway, "k").status == 201 and host.count() == 2


LOST = {
    "reset": Reply(cut=0, end="reset"),
    "closed": Reply(cut=0, end="close"),
    "half an answer": Reply(201, b"x" * 1000, cut=500, end="reset"),
}


@pytest.mark.parametrize("how", LOST)
def test_an_unknown_outcome_holds_the_key(pair, how):
    gateway, host = pair(rules=ENFORCED)
    host.on("/charge", LOST[how], Reply(201, b"again"))
    with gateway.wire() as wire:
        wire.send(request("POST", "/charge", body=b"5 euro", fields={"Idempotency-Key": "k"}))
        try:
            assert wire.answer("POST").status == (201 if how == "half an answer" else 502)
        except (EOFError, ConnectionError, AssertionError):
            assert how == "half an answer"
    wait_until(lambda: gateway.metric("becalm_store_unknown") == 1)
    for _ in range(3):
        answer = charge(gateway, "k")
        assert answer.status == 409 and reason(answer) == "key_unknown"
    assert host.count() == 1


def test_a_timeout_holds_the_key(pair):
    gateway, host = pair(rules="attemptTimeout: 300ms\n" + ENFORCED)
    host.on("/charge", Reply(201, b"late", delay=30), Reply(201, b"again"))
    assert charge(gateway, "k").status == 504
    answer = charge(gateway, "k")
    assert answer.status == 409 and reason(answer) == "key_unknown"
    assert host.count() == 1
    assert gateway.metric("becalm_store_requests_total", result="unknown") == 1


def test_what_was_never_sent_releases_the_key(gateway, host):
    """Refused connections are retried, and in the end the key is as if it had never been used."""
    there = host()
    made = gateway(
        f"services:\n  a:\n    hosts: [{there.address}]\n    match: {{prefix: /}}\n    idempotencyKey: enforced\n"
        "    deadline: 300ms\n    breaker: {enabled: false}\n    outlier: {enabled: false}\n"
    )
    there.stop()
    assert charge(made, "k").status in (502, 503, 504)
    made.expect_metric(0, "becalm_store_entries")
    there.start()
    wait_until(lambda: charge(made, "k").status == 200)
    assert there.count("/charge") == 1


def test_nothing_is_repeated_though_the_policy_says_that_it_may_be(pair):
    """idempotent: true, a hedge and a 409 in retryOn count for less than the promise."""
    rules = ENFORCED.replace("enforced}", "enforced, idempotent: true, hedge: {enabled: true, delay: 1ms}, retryOn: [409, 503]}")
    gateway, host = pair(rules=rules)
    host.on("/charge", Reply(503, b"no", delay=0.2), Reply(409, b"no"), Reply(201))
    assert charge(gateway, "k1").status == 503
    assert charge(gateway, "k2").status == 409
    assert host.count() == 2


def test_an_answer_that_is_too_large_is_not_asked_for_again(pair):
    gateway, host = pair(rules=ENFORCED)
    host.on("/charge", Reply(202, b"x" * 1200000), Reply(201))
    assert len(charge(gateway, "k").body) == 1200000
    answer = charge(gateway, "k")
    assert answer.status == 409 and reason(answer) == "key_answer_lost"
    assert json.loads(answer.body)["lastStatus"] == 202 and host.count() == 1


def test_another_scope_gets_neither_the_answer_nor_a_second_execution(pair):
    gateway, host = pair(rules=ENFORCED)
    host.on("/charge", Reply(201, b"ann's"), Reply(201, b"bob's"))
    assert charge(gateway, "k", Authorization="ann, token 1").body == b"ann's"
    for other in ({"Authorization": "ann, token 2"}, {"Authorization": "ann, token 1", "Cookie": "_ga=2"}, {}):
        answer = charge(gateway, "k", **other)
        assert answer.status == 422 and reason(answer) == "key_scope", other
    assert host.count() == 1
    assert charge(gateway, "k", body=b"7 euro", Authorization="bob").body == b"bob's", "another request of another user"
    assert gateway.metric("becalm_store_requests_total", result="scope") == 3


def test_a_scope_that_does_not_change_lets_tokens_rotate(pair):
    gateway, host = pair(rules=ENFORCED.replace("enforced}", "enforced, keyScope: 'header:x-tenant'}"))
    host.on("/charge", Reply(201, b"first"), Reply(201, b"second"))
    for token in ("a", "b", "c"):
        assert charge(gateway, "k", Authorization=token, **{"X-Tenant": "t"}).body == b"first"
    assert host.count() == 1


def test_a_client_that_leaves_finds_the_answer_or_that_it_is_unknown(pair):
    gateway, host = pair(rules=ENFORCED)
    host.on("/charge", Reply(201, b"late", delay=0.5), Reply(201, b"second"))
    wire = gateway.wire().send(request("POST", "/charge", body=b"5 euro", fields={"Idempotency-Key": "k"}))
    host.wait(1)
    wire.reset()
    wait_until(lambda: charge(gateway, "k").status == 201)
    assert charge(gateway, "k").body == b"late" and host.count() == 1


def test_an_answer_that_is_too_large_for_a_client_that_left_is_not_asked_for_again(pair):
    gateway, host = pair(rules=ENFORCED)
    host.on("/charge", Reply(202, b"x" * 3000000), Reply(201, b"second"))
    wire = gateway.wire().send(request("POST", "/charge", body=b"5 euro", fields={"Idempotency-Key": "k"}))
    host.wait(1)
    wire.reset()
    wait_until(lambda: reason(charge(gateway, "k")) != "key_in_flight")
    assert reason(charge(gateway, "k")) in ("key_answer_lost", "key_unknown") and host.count() == 1


@pytest.mark.parametrize("method", ["PUT", "DELETE", "GET"])
def test_a_key_of_a_method_that_needs_none_counts(pair, method):
    """Without one it is retried as ever."""
    gateway, host = pair(rules="initialDelay: 1ms\nbudget: {kind: none}\nidempotencyKey: enforced")
    host.on("/charge", Reply(503, b"busy"), Reply(503, b"busy"), Reply(200, b"fine"))
    for _ in range(2):
        assert gateway.ask(method, "/charge", fields={"Idempotency-Key": "k"}).status == 503
    assert host.count() == 1
    assert gateway.ask(method, "/charge").status == 200 and host.count() == 3


def test_a_reload_forgets_no_key(pair):
    """A change of keyScope: a request that was executed under the older scope is not executed again."""
    gateway, host = pair(rules=ENFORCED)
    host.on("/charge", Reply(201, b"first"), Reply(201, b"second"))
    assert charge(gateway, "k", Authorization="ann").body == b"first"
    policy = gateway.path.read_text()
    gateway.reload("explain: true\n" + policy.replace("enforced}", "enforced, keyScope: none}"))
    wait_until(lambda: gateway.ask(path="/other").get("becalm-explain") is not None)
    assert reason(charge(gateway, "k", Authorization="ann")) == "key_scope"
    gateway.reload(policy)
    wait_until(lambda: gateway.ask(path="/other").get("becalm-explain") is None)
    assert charge(gateway, "k", Authorization="ann").body == b"first"
    assert host.count("/charge") == 1


def hold_one(gateway, host, key):
    host.on("/charge", Reply(cut=0, end="reset"), Reply(201, b"again"))
    assert charge(gateway, key).status == 502
    wait_until(lambda: gateway.metric("becalm_store_unknown") >= 1)


def test_an_operator_sees_held_keys_and_releases_one(pair):
    gateway, host = pair(rules=ENFORCED)
    hold_one(gateway, host, "k")
    listed = json.loads(admin(gateway, "/api/keys").body)
    assert listed["unknown"] == 1 and len(listed["held"]) == 1
    held = listed["held"][0]
    assert held["target"].endswith("/charge") and held["expiresInSeconds"] > 86000 and "k" not in held
    assert held["id"] in json.loads(charge(gateway, "k").body)["detail"], "who is refused can name it"
    for wrong, status in (("0" * 32, 404), ("k", 400), (held["id"] + "0", 400)):
        assert admin(gateway, f"/api/keys/{wrong}", "DELETE").status == status
    assert admin(gateway, f"/api/keys/{held['id']}", "POST").status == 405
    assert admin(gateway, f"/api/keys/{held['id']}", "DELETE").status == 200
    gateway.expect_metric(0, "becalm_store_unknown")
    assert charge(gateway, "k").body == b"again" and host.count() == 2
    answer = admin(gateway, f"/api/keys/{held['id']}", "DELETE")
    assert answer.status == 409, "it has its answer now"


def test_a_key_is_released_only_with_the_token_of_orders(pair, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret\n")
    gateway, host = pair(rules=ENFORCED, text=f"adminTokenFile: {token}\n")
    host.on("/charge", Reply(cut=0, end="reset"))
    assert charge(gateway, "k").status == 502
    bearer = {"Authorization": "Bearer secret"}
    wait_until(lambda: json.loads(admin(gateway, "/api/keys", fields=bearer).body)["unknown"] == 1)
    held = json.loads(admin(gateway, "/api/keys", fields=bearer).body)["held"][0]["id"]
    assert admin(gateway, "/api/keys").status == 401
    assert admin(gateway, f"/api/keys/{held}", "DELETE").status == 401
    there = {**bearer, "Origin": "http://evil.test"}
    assert admin(gateway, f"/api/keys/{held}", "DELETE", fields=there).status == 403
    assert admin(gateway, f"/api/keys/{held}", "DELETE", fields=bearer).status == 200


def test_a_flood_is_refused_and_forgets_nobody(gateway, host):
    there = host()
    made = gateway(
        "idempotencyStore: {maxEntries: 40}\n"
        f"services:\n  a:\n    hosts: [{there.address}]\n    match: {{prefix: /}}\n    idempotencyKey: enforced\n"
    )

    def pay(who, key, source):
        with made.wire(source=source) as wire:
            fields = {"Idempotency-Key": key, "Authorization": who}
            return wire.ask("POST", "/charge", body=who.encode(), fields=fields)

    for n in range(10):
        assert pay("alice", f"k{n}", "127.0.0.2").status == 200
    flood = [pay("mallory", f"m{n}", "127.0.0.3").status for n in range(60)]
    assert flood.count(503) > 20 and flood[0] == 200
    assert pay("bob", "k", "127.0.0.4").status == 200, "there is room left for others"
    seen = there.count()
    for n in range(10):
        assert pay("alice", f"k{n}", "127.0.0.2").get("idempotent-replayed") == "true"
    assert there.count() == seen


def eager(there):
    """Enforced keys at two hosts, and a policy that retries as much as possible: no other rule refuses retries."""
    return (
        f"services:\n  a:\n    hosts: [{there[0].address}, {there[1].address}]\n    match: {{prefix: /}}\n"
        "    idempotencyKey: enforced\n    maxRetries: 3\n    initialDelay: 1ms\n    attemptTimeout: 400ms\n"
        "    budget: {kind: none}\n    breaker: {enabled: false}\n    limit: {kind: none}\n    outlier: {enabled: false}\n"
    )


def misbehaves(draws, executed, lock):
    """A host that executes each request and then misbehaves at random: it knows no keys."""

    def answer(got):
        with lock:
            executed[got.get("idempotency-key")] += 1
            draw = draws.random()
        if draw < 0.15:
            return Reply(cut=0, end="reset")
        if draw < 0.25:
            return Reply(cut=0, end="close")
        if draw < 0.35:
            return Reply(500, b"charged, then failed")
        if draw < 0.4:
            return Reply(503, b"charged, then failed", {"Retry-After": "0"})
        if draw < 0.45:
            return Reply(201, b"x" * 3000, cut=1000, end="reset")
        if draw < 0.5:
            return Reply(201, b"late", delay=1)
        return Reply(201, b"charged")

    return answer


def test_no_key_is_executed_twice_whatever_the_hosts_do(gateway, host):
    """Each key three times, by several clients at once, through hosts that reset, cut, fail and answer too late."""
    keys = 10000 if os.environ.get("BECALM_SOAK") else 150
    draws, executed, lock = random.Random(18), collections.Counter(), threading.Lock()
    there = [host(), host()]
    for one in there:
        one.on("/charge", misbehaves(draws, executed, lock))
    made = gateway(
        f"services:\n  a:\n    hosts: [{there[0].address}, {there[1].address}]\n    match: {{prefix: /}}\n"
        "    idempotencyKey: enforced\n    maxRetries: 3\n    initialDelay: 1ms\n    attemptTimeout: 400ms\n"
        "    budget: {kind: none}\n    breaker: {enabled: false}\n    limit: {kind: none}\n    outlier: {enabled: false}\n"
    )
    asked = [f"k{n}" for n in range(keys) for _ in range(3)]
    random.Random(3).shuffle(asked)
    statuses = collections.Counter()

    def client(mine):
        for key in mine:
            try:
                status = charge(made, key).status
            except (OSError, EOFError, AssertionError):
                status = 0  # an answer that was cut
            with lock:
                statuses[status] += 1

    threads = [threading.Thread(target=client, args=(asked[n::6],)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(statuses.values()) == 3 * keys
    assert set(executed) == {f"k{n}" for n in range(keys)}, "each was executed"
    assert [key for key, count in executed.items() if count > 1] == []
    assert statuses[409] > 0 and statuses[201] > 0 and statuses[500] > 0
