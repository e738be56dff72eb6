# SPDX-License-Identifier: MIT
"""Idempotency keys that several gateways keep together in a real Redis, which is killed, hung and misled."""

import collections
import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
from conftest import can_trace, policy_of
from host import Reply, wait_until
from http2 import Http2
from message import request
from store import SERVER, Redis, Relay, redis  # noqa: F401: a fixture

# The rules are the same wherever keys are kept: these tests of the store in memory are run with one in Redis, too.
from test_keys_enforced import (  # noqa: F401
    ENFORCED,
    admin,
    charge,
    eager,
    misbehaves,
    reason,
    test_a_client_that_leaves_finds_the_answer_or_that_it_is_unknown,
    test_a_key_is_executed_once_and_replayed,
    test_a_key_of_a_method_that_needs_none_counts,
    test_a_large_error_is_stored_whole,
    test_a_reload_forgets_no_key,
    test_a_scope_that_does_not_change_lets_tokens_rotate,
    test_a_timeout_holds_the_key,
    test_an_answer_that_is_too_large_is_not_asked_for_again,
    test_an_error_of_the_service_is_stored_and_replayed,
    test_another_scope_gets_neither_the_answer_nor_a_second_execution,
    test_nothing_is_repeated_though_the_policy_says_that_it_may_be,
    test_what_the_service_did_not_let_in_may_be_asked_again,
    test_what_was_never_sent_releases_the_key,
)

pytestmark = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed")


def shared(url, tmp_path, timeout="20s", **more):
    """The settings of gateways that keep keys together; a busy machine has all the time that it needs."""
    secret = tmp_path / "secret"
    secret.write_text("a secret that all gateways share\n")
    keys = {"redis": "inherit", "secretFile": secret, "timeout": timeout, **more}
    return [f"store.redis={url}", "store.timeout=30s", *(f"idempotencyStore.{key}={value}" for key, value in keys.items())]


@pytest.fixture
def gateway(gateway, redis, tmp_path):
    """Any gateway of these tests; `keys` are further settings of their store."""
    redis.be_trusted()
    redis.be_trusted("another")

    def make(policy, keys=None, url=None, **more):
        return gateway(policy, sets=shared(url or redis.url, tmp_path, **(keys or {})), **more)

    return make


@pytest.fixture
def three(gateway, host):
    """three(): gateways of one service, and its host."""

    def make(rules=ENFORCED, count=3, **more):
        there = host()
        return [gateway(policy_of([there], rules=rules), **more) for _ in range(count)], there

    return make


def settled(gateway, key, **more):
    """Its answer when no gateway is at it any more: ends are told behind."""
    answers = []
    wait_until(lambda: answers.append(charge(gateway, key, **more)) or reason_of(answers[-1]) != "key_in_flight")
    return answers[-1]


def reason_of(answer):
    return reason(answer) if answer.get("content-type") == "application/problem+json" else None


def test_what_one_gateway_has_done_the_others_replay(three):
    (a, b, c), host = three()
    host.on("/charge", Reply(201, b"charge 1", {"X-Charge": "1"}), Reply(201, b"charge 2"))
    assert charge(a, "k").body == b"charge 1"
    for other in (b, c, a):
        answer = settled(other, "k")
        assert (answer.status, answer.body, answer.get("x-charge")) == (201, b"charge 1", "1")
        assert answer.get("idempotent-replayed") == "true"
    assert reason(charge(b, "k", body=b"6 euro")) == "key_mismatch"
    assert reason(charge(c, "k", Authorization="another")) == "key_scope"
    assert host.count() == 1
    assert b.metric("becalm_store_requests_total", result="answered") >= 1


def ask_and_wait(gateway, host, count=1, **fields):
    """A client whose request has come to the host, and is not answered yet."""
    wire = gateway.wire()
    wire.send(request("POST", "/charge", body=b"5 euro", fields={"Idempotency-Key": "k", **fields}))
    host.wait(count)
    return wire


def test_a_key_that_one_gateway_is_at_is_in_flight_for_the_others(three):
    (a, b, _), host = three()
    go = threading.Event()
    host.on("/charge", Reply(201, b"late", when=go.is_set), Reply(201, b"second"))
    with ask_and_wait(a, host) as wire:
        assert reason(charge(b, "k")) == "key_in_flight"
        go.set()
        assert wire.answer("POST").body == b"late"
    assert settled(b, "k").body == b"late" and host.count() == 1


def test_a_call_that_takes_longer_than_a_lease_is_in_flight_as_long_as_its_gateway_lives(three):
    (a, b), host = three(count=2, keys={"lease": "1s"})
    go = threading.Event()
    host.on("/charge", Reply(201, b"late", when=go.is_set), Reply(201, b"second"))
    with ask_and_wait(a, host) as wire:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            assert reason(charge(b, "k")) in ("key_in_flight", "key_unknown")  # the latter if the machine stood still
            time.sleep(0.1)
        wait_until(lambda: reason(charge(b, "k")) == "key_in_flight")
        go.set()
        assert wire.answer("POST").body == b"late"
    assert settled(b, "k").body == b"late" and host.count() == 1


def test_the_key_of_a_gateway_that_was_killed_is_held_and_an_operator_releases_it_elsewhere(three):
    (a, b, c), host = three(keys={"lease": "1s"})
    host.on("/charge", Reply(201, b"never", when=lambda: False), Reply(201, b"again"))
    with ask_and_wait(a, host):
        a.kill()
    wait_until(lambda: reason(charge(b, "k")) == "key_unknown")
    wait_until(lambda: json.loads(admin(c, "/api/keys").body)["held"])
    (held,) = json.loads(admin(c, "/api/keys").body)["held"]
    assert held["target"] == "a/charge" and held["expiresInSeconds"] > 86000
    assert held["id"] in json.loads(charge(b, "k").body)["detail"]
    c.expect_metric(1, "becalm_store_unknown")
    answer = admin(c, f"/api/keys/{held['id']}", "DELETE")
    assert answer.status == 202 and json.loads(answer.body) == {"ordered": True}
    wait_until(lambda: c.log_lines("idempotency key released"))
    c.expect_metric(0, "becalm_store_unknown")
    assert charge(b, "k", Authorization="another").body == b"again" and host.count() == 2, "nothing of it is left"
    assert admin(c, f"/api/keys/{held['id']}", "DELETE").status == 202
    wait_until(lambda: c.log_lines("idempotency key not released"))


def test_a_gateway_that_was_taken_for_dead_is_at_its_key_again_and_tells_its_answer(three):
    """With an enforced key, no other gateway has sent the request meanwhile."""
    (a, b), host = three(count=2, keys={"lease": "1s"})
    go = threading.Event()
    host.on("/charge", Reply(201, b"late", when=go.is_set), Reply(201, b"second"))
    with ask_and_wait(a, host) as wire:
        a.signal(signal.SIGSTOP)
        wait_until(lambda: reason(charge(b, "k")) == "key_unknown")
        a.signal(signal.SIGCONT)
        wait_until(lambda: reason(charge(b, "k")) == "key_in_flight")
        go.set()
        assert wire.answer("POST").body == b"late"
    wait_until(lambda: charge(b, "k").status == 201)
    assert charge(b, "k").body == b"late" and host.count() == 1
    b.expect_metric(0, "becalm_store_unknown")


REQUIRED = ENFORCED.replace("enforced", "required")


def test_a_required_key_of_a_dead_gateway_begins_anew_and_its_late_end_changes_nothing(three):
    (a, b), host = three(REQUIRED, count=2, keys={"lease": "1s"})
    go = threading.Event()
    host.on("/charge", Reply(201, b"zombie", when=go.is_set), Reply(201, b"second"), Reply(201, b"third"))
    with ask_and_wait(a, host) as wire:
        a.signal(signal.SIGSTOP)
        wait_until(lambda: charge(b, "k").status == 201)
        go.set()
        a.signal(signal.SIGCONT)
        assert wire.answer("POST").body == b"zombie"
    a.expect_metric(1, "becalm_store_fenced_total")
    assert settled(a, "k").body == b"second" and host.count() == 2


def test_a_store_that_was_killed_refuses_enforced_keys_and_nothing_else(three, redis):
    (a, _), host = three(count=2, keys={"lease": "1s"})
    assert charge(a, "k").status == 200
    redis.kill()
    wait_until(lambda: a.log_lines("idempotency keys: the store is away"))
    answer = charge(a, "k2")
    assert answer.status == 503 and reason(answer) == "key_store_away" and int(answer.get("retry-after")) >= 1
    assert a.ask(path="/other").status == 200, "what needs no key goes on"
    assert a.metric("becalm_store_requests_total", result="away") >= 1
    assert host.count("/charge") == 1
    redis.start()
    wait_until(lambda: charge(a, "k2").status == 200)


def test_a_required_key_is_kept_in_memory_while_the_store_is_away(three, redis):
    (a, b), host = three(REQUIRED, count=2)
    host.on("/charge", Reply(201, b"one"), Reply(201, b"two"))
    assert charge(a, "k0").status == 201
    redis.kill()
    assert charge(a, "k").body == b"two"
    assert charge(a, "k").get("idempotent-replayed") == "true" and host.count() == 2
    assert a.metric("becalm_store_requests_total", result="local") >= 2


@pytest.mark.parametrize("away", ["refuse", "local", "pass"])
def test_what_happens_without_the_store_is_the_policys_choice(three, redis, away):
    (a,), host = three(count=1, keys={"onAway": away})
    wait_until(lambda: a.log_lines("idempotency keys: shared in the store"))
    redis.kill()
    wait_until(lambda: a.log_lines("idempotency keys: the store is away"))
    statuses = [charge(a, "k").status for _ in range(2)]
    assert statuses == ([503, 503] if away == "refuse" else [200, 200])
    assert host.count() == {"refuse": 0, "local": 1, "pass": 2}[away]


def test_a_hung_store_lets_a_few_keys_wait_and_then_none(three, redis):
    (a,), host = three(count=1, keys={"timeout": "1s"})
    wait_until(lambda: charge(a, "k").status == 200)
    redis.pause()
    for n in range(6):
        assert reason(charge(a, f"k{n}")) == "key_store_away"
    asked = a.metric("becalm_store_requests_total", result="away")
    begun = time.monotonic()
    for n in range(20):
        assert reason(charge(a, f"k{n}")) == "key_store_away"
    assert time.monotonic() - begun < 20 * 1, "nobody waits for it any more"
    assert a.metric("becalm_store_requests_total", result="away") == asked + 20
    assert a.ask(path="/other").status == 200 and host.count("/charge") == 1
    redis.go_on()
    for n in range(20):
        wait_until(lambda n=n: charge(a, f"k{n}").status == 200)
    assert host.count("/charge") == 21, "what was asked of a hung store was taken back, and executed once"


def test_a_question_of_which_nobody_heard_is_taken_back(three, redis):
    """The store begins the key, and its answer is lost: no host was asked, so the key may be used again."""
    relay = Relay(redis.port)
    try:
        (a,), host = three(count=1, url=relay.url)
        wait_until(lambda: charge(a, "first").status == 200)
        relay.delay = 3600
        with a.wire() as wire:
            wire.send(request("POST", "/charge", body=b"5 euro", fields={"Idempotency-Key": "k"}))
            wait_until(lambda: b":k:" in redis.says("KEYS becalm:*:k:*") and redis.says("KEYS becalm:*:k:*").count(b":k:") == 2)
            relay.delay = 0
            relay.cut()
            assert json.loads(wire.answer("POST").body)["reason"] == "key_store_away"
        wait_until(lambda: charge(a, "k").status == 200)
        assert host.count() == 2
    finally:
        relay.close()


def test_a_client_that_leaves_while_the_store_is_asked_leaves_no_key(three, redis):
    relay = Relay(redis.port)
    try:
        (a,), host = three(count=1, url=relay.url)
        wait_until(lambda: charge(a, "first").status == 200)
        relay.delay = 0.3
        for _ in range(3):
            wire = a.wire().send(request("POST", "/charge", body=b"5 euro", fields={"Idempotency-Key": "k"}))
            wait_until(lambda: redis.says("KEYS becalm:*:k:*").count(b":k:") == 2)
            wire.reset()
            wait_until(lambda: redis.says("KEYS becalm:*:k:*").count(b":k:") == 1)
        relay.delay = 0
        wait_until(lambda: charge(a, "k").status == 200)
        assert host.count() == 2
    finally:
        relay.close()


def test_a_key_in_flight_is_written_again_with_the_next_connection(three, redis):
    """Not only when its lease is due: a store that was emptied meanwhile learns at once that a gateway works on the
    key."""
    (a,), host = three(count=1, keys={"lease": "600s"})
    go = threading.Event()
    host.on("/charge", Reply(201, b"late", when=go.is_set))
    with ask_and_wait(a, host) as wire:
        redis.kill()
        redis.start()
        wait_until(lambda: b":k:" in redis.says("KEYS", "becalm:*"), what=a.log)
        go.set()
        assert wire.answer("POST").body == b"late"


def test_ends_are_told_when_the_store_is_back(three, redis):
    (a, b), host = three(count=2, keys={"lease": "1s"})
    go = threading.Event()
    host.on("/charge", Reply(201, b"done while it was away", when=go.is_set), Reply(201, b"second"))
    with ask_and_wait(a, host) as wire:
        redis.pause()
        go.set()
        assert wire.answer("POST").body == b"done while it was away", "nobody waits for the store"
        redis.go_on()
    wait_until(lambda: charge(b, "k").status == 201)
    assert charge(b, "k").body == b"done while it was away" and host.count() == 1


@pytest.mark.skipif(not can_trace(), reason="strace can't see this program's calls")
def test_a_client_has_its_answer_before_the_store_is_told(gateway, host, tmp_path):
    """A server that wakes up takes the processor from the process that wakes it."""
    calls = tmp_path / "calls"
    there = host()
    trace = ["strace", "-D", "-f", "-qq", "-s", "400", "-o", str(calls), "-e", "trace=sendto,sendmsg"]
    made = gateway(policy_of([there], rules=ENFORCED), wrapper=trace)
    there.on("/charge", Reply(200, b"the answer"))
    assert charge(made, "k").body == b"the answer"
    assert settled(made, "k").get("idempotent-replayed") == "true"
    lines = calls.read_text().splitlines()
    (end,) = [n for n, line in enumerate(lines) if r"$3\r\nend\r\n" in line]
    assert any('"HTTP/1.1 200' in line or "the answer" in line for line in lines[:end]), lines


def test_answers_are_encrypted_and_keys_of_encryption_rotate(three, redis, tmp_path):
    seals = tmp_path / "seals"
    old, new = "old " + "17" * 32 + "\n", "new " + "2a" * 32 + "\n"
    seals.write_text(old)
    (a, b), host = three(count=2, keys={"encryptFile": seals})
    host.on("/charge", Reply(201, b"a very secret answer", {"X-Charge": "secret-too"}), Reply(201, b"second"))
    assert charge(a, "k").body == b"a very secret answer"
    assert settled(b, "k").body == b"a very secret answer"
    (name,) = [word for word in redis.says("KEYS becalm:*:k:*").split(b"\r\n") if b":k:" in word]
    kept = redis.says("HGETALL", name)
    assert b"secret" not in kept and b"5 euro" not in kept and b"old" in kept
    for text, status in ((new + old, 201), (new, 409)):
        seals.write_text(text)
        b.reload("explain: true\n" + b.path.read_text())
        wait_until(lambda: b.ask(path="/other").get("becalm-explain") is not None)
        answer = settled(b, "k")
        assert answer.status == status
        b.reload(b.path.read_text().replace("explain: true\n", ""))
        wait_until(lambda: b.ask(path="/other").get("becalm-explain") is None)
    assert reason(answer) == "key_answer_lost" and json.loads(answer.body)["lastStatus"] == 201
    assert host.count("/charge") == 1


def test_secrets_rotate_and_no_key_is_forgotten(three, redis, tmp_path):
    """Gateways have the new secret one after the other: first as the second line, then as the first."""
    (a, b), host = three(count=2)
    old, new = "a secret that all gateways share\n", "another one that comes after it\n"

    def rotate(gateway, text):
        (tmp_path / "secret").write_text(text)
        shown = "explain: true\n" not in gateway.path.read_text()
        plain = gateway.path.read_text().replace("explain: true\n", "")
        gateway.reload("explain: true\n" + plain if shown else plain)
        wait_until(lambda: (gateway.ask(path="/other").get("becalm-explain") is not None) == shown)

    host.on("/charge", Reply(201, b"one"), Reply(201, b"two"), Reply(cut=0, end="reset"), Reply(201, b"three"), Reply(201, b"four"))
    assert charge(a, "k1").body == b"one"
    settled(b, "k1")
    rotate(b, old + new)  # looks for keys of those that come after
    rotate(a, new + old)
    assert charge(a, "k2").body == b"two"
    for gateway, key, body in ((a, "k1", b"one"), (b, "k1", b"one"), (b, "k2", b"two"), (a, "k2", b"two")):
        assert settled(gateway, key).body == body, (key, body)
    assert charge(a, "k3").status == 502
    rotate(b, new + old)
    wait_until(lambda: reason(charge(b, "k3")) == "key_unknown")
    assert reason(charge(b, "k1", body=b"6 euro")) == "key_mismatch"
    assert reason(charge(b, "k1", Authorization="another")) == "key_scope"
    rotate(b, new)
    assert settled(b, "k2").body == b"two" and host.count("/charge") == 3
    assert charge(b, "k1").body == b"three", "its secret is gone"


def test_a_key_that_is_held_has_its_older_name_while_the_secret_rotates(three, redis, tmp_path):
    (a,), host = three(count=1)
    host.on("/charge", Reply(cut=0, end="reset"), Reply(201, b"again"))
    assert charge(a, "k").status == 502
    wait_until(lambda: reason(charge(a, "k")) == "key_unknown")
    (tmp_path / "secret").write_text("another one that comes after it\na secret that all gateways share\n")
    a.reload("explain: true\n" + a.path.read_text())
    wait_until(lambda: a.ask(path="/other").get("becalm-explain") is not None)
    answer = charge(a, "k")
    assert reason(answer) == "key_unknown"
    wait_until(lambda: json.loads(admin(a, "/api/keys").body)["held"])
    (held,) = json.loads(admin(a, "/api/keys").body)["held"]
    assert held["id"] in json.loads(answer.body)["detail"]
    assert admin(a, f"/api/keys/{held['id']}", "DELETE").status == 202
    wait_until(lambda: a.log_lines("idempotency key released"))
    assert charge(a, "k").body == b"again"


def test_hosts_are_told_which_beginning_of_a_key_a_call_is(three, redis):
    (a, b), host = three(REQUIRED, count=2, keys={"fence": "true", "lease": "1s"})
    fences = []

    def seen(got):
        fences.append(got.get("becalm-key-fence"))
        return Reply(503 if len(fences) < 3 else 201)

    host.on("/charge", seen)
    assert charge(a, "k", **{"becalm-key-fence": "17"}).status == 201, "retried by the gateway"
    assert fences[0] == fences[1] == fences[2] and int(fences[0]) > 17, "one call has one"
    host.on("/charge", Reply(503), seen)
    for one in (b, a, b):
        assert charge(one, f"k{len(fences)}").status == 201
    assert [int(each) for each in fences[2:]] == sorted({int(each) for each in fences[2:]}) and len(fences) == 6
    redis.tell("HSET", "becalm:{default}:era", "n", 9000000000000)  # its clock was ahead
    for one in (a, b):
        assert charge(one, f"k{len(fences)}").status == 201
    assert fences[-2:] == ["9000000000001", "9000000000002"]
    host.on("/other", seen)
    a.ask(path="/other", fields={"becalm-key-fence": "17"})
    assert fences[-1] is None, "nobody else can say it"


def test_without_fence_hosts_are_told_nothing(three):
    (a,), host = three(count=1)
    assert charge(a, "k", **{"becalm-key-fence": "17"}).status == 200
    assert host.requests[-1].get("becalm-key-fence") is None


def test_a_call_waits_until_replicas_have_its_key_and_a_failover_forgets_none(three, redis, tmp_path):
    relay = Relay(redis.port)
    replica = Redis(tmp_path, "--replicaof", "127.0.0.1", redis.port, "--repl-diskless-sync-delay", "0")
    go = threading.Event()
    try:
        (a, b), host = three(count=2, url=relay.url, keys={"replicas": 1, "lease": "1s", "timeout": "2s"})
        assert reason(charge(a, "k")) == "key_store_away" and host.count() == 0, "no replica has it"
        replica.start()
        wait_until(lambda: charge(a, "first").status == 200)
        host.on("/charge", Reply(201, b"late", when=go.is_set), Reply(201, b"second"))
        with ask_and_wait(a, host, 2):
            a.kill()  # with its last write, and no gateway that could write it again
            replica.tell("REPLICAOF", "NO", "ONE")
            relay.to = replica.port
            redis.kill()
            relay.cut()
            told = []
            wait_until(lambda: told.append(reason_of(charge(b, "k"))) or told[-1] == "key_unknown")
        assert host.count() == 2
    finally:
        go.set()
        relay.close()
        replica.stop()


def test_the_script_frees_a_key_only_while_it_is_held(redis):
    """Between an operator's look and the order its owner may have come back."""
    text = (Path(__file__).parents[2] / "src/redis/keys.lua").read_text()
    names = [f"becalm:{{default}}:{name}" for name in ("held", "era", "e:1", "k:" + "a" * 32, "g:" + "b" * 32)]

    def run(what, *words):
        return redis.tell("EVAL", text, 5, *names, what, "", 60000, *words)

    redis.be_trusted()
    mine = ("owner", "print", 1, 60000, "a/charge")
    assert b"begun" in run("begin", *mine, 1)
    assert b"none" in run("free") and b"flight" in run("begin", *mine, 1)
    assert b"ok" in run("end", *mine, "unknown", 0, "", "", "")
    assert b"held" in run("look") and b"held" in run("begin", *mine, 1)
    assert b"ok" in run("renew", *mine) and b"none" in run("free"), "its owner has come back"
    assert b"ok" in run("end", *mine, "answer", 201, "", "fields", "body")
    assert b"none" in run("free") and b"body" in run("begin", *mine, 1)
    for name in (names[2], *names[3:]):
        assert 0 < int(redis.tell("PTTL", name)[1:]) <= 120000, "nothing of it stays for ever"


def test_an_end_that_is_told_once_more_does_not_hold_a_key_that_an_operator_has_released(redis):
    """The answer to the end was lost, and the operator was faster than the next connection."""
    text = (Path(__file__).parents[2] / "src/redis/keys.lua").read_text()
    names = [f"becalm:{{default}}:{name}" for name in ("held", "era", "e:1", "k:" + "a" * 32, "g:" + "b" * 32)]

    def run(what, *words):
        return redis.tell("EVAL", text, 5, *names, what, "", 60000, *words)

    redis.be_trusted()
    mine, others = ("owner", "print", 1, 60000, "a/charge"), ("another", "other print", 1, 60000, "a/charge")
    unknown = ("unknown", 0, "", "", "")
    assert b"begun" in run("begin", *mine, 1) and b"ok" in run("end", *mine, *unknown)
    assert b"ok" in run("free")
    assert b"fenced" in run("end", *mine, *unknown)
    assert b"none" in run("look") and b"none" in run("free")
    assert b"ok" in run("tell", "print", 60000, "a/charge", 0), "nor does one who remembers that it was held"
    assert b"none" in run("look")
    assert b"ok" in run("renew", *mine) and b"flight" in run("begin", *others[:1], *mine[1:], 1), "an owner that lives is at it"
    assert b"ok" in run("end", *mine, *unknown) and b"ok" in run("free")
    assert b"begun" in run("begin", *others, 1), "with another payload, too"
    assert b"fenced" in run("end", *mine, *unknown) and b"flight" in run("begin", *others, 1)
    for name in names[2:]:
        assert 0 < int(redis.tell("PTTL", name)[1:]) <= 120000, "nothing of it stays for ever"


@pytest.mark.parametrize("once, fence, commands", [(1, 0, 6), (0, 0, 5), (1, 1, 7)])
def test_a_beginning_calls_redis_no_more_often_than_it_must(redis, once, fence, commands):
    """A call waits for it."""
    text = (Path(__file__).parents[2] / "src/redis/keys.lua").read_text()
    names = [f"becalm:{{default}}:{name}" for name in ("held", "era", "e:1", "k:" + "a" * 32, "g:" + "b" * 32)]
    redis.be_trusted()
    redis.tell("CONFIG", "RESETSTAT")
    assert b"begun" in redis.tell("EVAL", text, 5, *names, "begin", "", 60000, "owner", "print", once, 60000, "a/charge", 1, fence)
    said = [line for line in redis.says("INFO commandstats").splitlines() if line.startswith(b"cmdstat_")]
    own = (b"cmdstat_eval:", b"cmdstat_config", b"cmdstat_info")
    assert sum(int(line.split(b"calls=")[1].split(b",")[0]) for line in said if not line.startswith(own)) == commands, said
    for name in (names[3], names[4])[: 1 + once]:
        assert 0 < int(redis.tell("PTTL", name)[1:]) <= 60000


def test_hundreds_of_keys_begin_in_one_message(three, redis):
    """They wait for a store that stands still, on one connection, and each gets its own answer."""
    count = 300
    (a, b), host = three(count=2, workers=1)
    host.on("/charge", lambda got: Reply(201, got.get("idempotency-key").encode()))
    assert charge(a, "first").status == 201
    wires = [a.wire() for _ in range(count)]
    redis.pause()
    for n, wire in enumerate(wires):
        wire.send(request("POST", "/charge", body=b"5 euro", fields={"Idempotency-Key": f"k{n}"}))
    wait_until(lambda: a.metric("becalm_arrivals_total") >= 1 + count)
    assert host.count() == 1
    redis.go_on()
    assert [wire.answer("POST").body for wire in wires] == [f"k{n}".encode() for n in range(count)]
    assert {settled(b, f"k{n}").body for n in range(count)} == {f"k{n}".encode() for n in range(count)}
    assert host.count() == 1 + count


def test_what_redis_keeps_tells_nobody_what_was_asked(three, redis):
    (a,), host = three(count=1)
    assert charge(a, "a-key-of-mine", Authorization="Bearer token").status == 200
    names = redis.says("KEYS *")
    assert b"a-key-of-mine" not in names
    for name in (word for word in names.split(b"\r\n") if b":k:" in word):
        kept = redis.says("HGETALL", name)
        assert b"a-key-of-mine" not in kept and b"5 euro" not in kept and b"token" not in kept


def test_an_answer_over_maxAnswer_is_lost_and_not_asked_for_again(three):
    (a, b), host = three(count=2, keys={"maxAnswer": "1KiB"})
    host.on("/charge", Reply(201, b"x" * 2000), Reply(201, b"y" * 1000))
    assert charge(a, "k").body == b"x" * 2000
    assert reason(settled(b, "k")) == "key_answer_lost" and host.count() == 1
    assert charge(a, "small").body == b"y" * 1000
    assert settled(b, "small").body == b"y" * 1000


def test_streams_of_http2_wait_for_the_store_side_by_side(three):
    (a, b), host = three(count=2, protocols="[h2, h1]")
    host.on("/charge", lambda got: Reply(201, got.get("idempotency-key").encode()))
    with Http2(a.port) as first, Http2(b.port) as second:
        streams = [first.begin("POST", "/charge", fields=[("idempotency-key", f"k{n}")]) for n in range(20)]
        assert [first.answer(stream).body for stream in streams] == [f"k{n}".encode() for n in range(20)]

        wait_until(lambda: second.ask("POST", "/charge", fields=[("idempotency-key", "k7")]).body == b"k7")
    assert host.count() == 20


def test_a_key_that_is_held_ends_where_it_began_though_a_reload_names_another_store(three, redis, tmp_path):
    (a, b), host = three(count=2)
    go = threading.Event()
    host.on("/charge", Reply(201, b"late", when=go.is_set), Reply(201, b"second"))
    with ask_and_wait(a, host) as wire:
        a.reload("explain: true\nfleet: another\n" + a.path.read_text())
        wait_until(lambda: a.ask(path="/other").get("becalm-explain") is not None)
        go.set()
        assert wire.answer("POST").body == b"late"
    assert settled(b, "k").body == b"late", "in the name space in which it began"
    assert charge(a, "k").body == b"second" and host.count("/charge") == 2, "another fleet knows nothing of it"


def test_no_key_is_executed_twice_whatever_happens_to_hosts_gateways_and_the_store(gateway, host, redis, tmp_path):
    """Each key three times, at gateways drawn at random, through hosts that reset, cut, fail and answer too late, while
    gateways are killed and replaced, and the store is stopped and, with its file on disk, killed."""
    redis.stop()
    redis = Redis(tmp_path, "--appendonly", "yes", "--appendfsync", "always")
    redis.start()
    redis.be_trusted()
    soak = os.environ.get("BECALM_SOAK")
    keys, clients = (10000, 16) if soak else (120, 6)
    draws, executed, lock = random.Random(18), collections.Counter(), threading.Lock()
    there = [host(), host()]
    for one in there:
        one.on("/charge", misbehaves(draws, executed, lock))
    policy = eager(there)

    def fresh():
        return gateway(policy, url=redis.url, keys={"lease": "1s", "timeout": "200ms"}, workers=2)

    gateways = [fresh() for _ in range(4 if soak else 3)]
    asked = [f"k{n}" for n in range(keys) for _ in range(3)]
    random.Random(3).shuffle(asked)
    statuses = collections.Counter()

    def client(mine, number):
        choice = random.Random(number)
        until = time.monotonic() + (3600 if soak else 120)
        for key in mine:
            said, doubts = "key_store_away", ("key_store_away", "key_store_forgot")
            while said in doubts and time.monotonic() < until:  # nothing was done, says the gateway
                try:
                    with lock:
                        one = choice.choice(gateways)
                    answer = charge(one, key)
                    said = reason_of(answer) or answer.status
                except (OSError, EOFError, AssertionError):
                    said = 0  # an answer that was cut, or a gateway that was killed
                if said in doubts:
                    time.sleep(0.05)
            with lock:
                statuses[said] += 1

    def trouble():
        """Each kind in its turn, after some more answered requests."""
        choice = random.Random(4)
        for turn in range(1, 61 if soak else 7):
            wait_until(lambda turn=turn: sum(statuses.values()) >= turn * 3 * keys // (62 if soak else 8), seconds=600)
            if turn % 3 == 0:
                redis.kill()
                redis.start()
            elif turn % 3 == 1:
                redis.pause()
                time.sleep(choice.uniform(0.1, 1.5))
                redis.go_on()
            else:
                replacement = fresh()
                with lock:
                    victim = choice.randrange(len(gateways))
                    old, gateways[victim] = gateways[victim], replacement
                old.kill()

    troubles = threading.Thread(target=trouble)
    threads = [threading.Thread(target=client, args=(asked[n::clients], n)) for n in range(clients)]
    for thread in (troubles, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    troubles.join()
    assert sum(statuses.values()) == 3 * keys
    assert [key for key, count in executed.items() if count > 1] == [], statuses
    assert len(executed) > keys / 4, "most were executed"
    print(dict(statuses), len(executed))
    for one in gateways:
        one.kill()
    redis.stop()
