# SPDX-License-Identifier: MIT
"""Idempotency keys in a real Redis that forgets: emptied, started without its file or with an old one, a stale replica promoted."""

import collections
import json
import os
import random
import threading
import time

import pytest
from host import Reply, wait_until
from store import SERVER, Redis, Relay, redis  # noqa: F401: a fixture
from test_keys_enforced import ENFORCED, admin, charge, eager, misbehaves, reason
from test_keys_shared import REQUIRED, ask_and_wait, gateway, reason_of, settled, three  # noqa: F401: fixtures

pytestmark = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed")


class Loss:
    """A Redis, the proxy in front of it, and its way to lose data: begin() comes before the lost writes."""

    def __init__(self, how, redis, folder):
        self.how, self.redis, self.folder = how, redis, folder
        self.relay = Relay(redis.port)
        self.replica = None

    def begin(self):
        if self.how == "an old file":
            self.redis.tell("SAVE")
        elif self.how == "a stale replica":
            self.replica = Redis(self.folder, "--replicaof", "127.0.0.1", self.redis.port).start()
            wait_until(lambda: b"master_link_status:up" in self.replica.says("INFO replication"))
            self.replica.tell("REPLICAOF", "NO", "ONE")  # from now on it misses all

    def forget(self):
        if self.how == "flushed":
            self.redis.tell("FLUSHALL")
        elif self.how == "a stale replica":
            self.relay.to = self.replica.port
            self.redis.kill()
        else:
            self.redis.kill()
            self.redis.start()

    def close(self):
        self.relay.close()
        if self.replica is not None:
            self.replica.stop()


@pytest.fixture(params=["flushed", "no file", "an old file", "a stale replica"])
def loss(request, redis, tmp_path):
    made = Loss(request.param, redis, tmp_path)
    yield made
    made.close()


def known(gateway, key, **more):
    """The answer for a key once the store is trusted again."""
    answers = []
    doubts = ("key_store_away", "key_store_forgot")
    wait_until(lambda: answers.append(charge(gateway, key, **more)) or reason_of(answers[-1]) not in doubts)
    return answers[-1]


def test_what_a_store_has_forgotten_is_told_again_and_nothing_is_executed_twice(three, loss):
    (a, b), host = three(count=2, url=loss.relay.url)
    go = threading.Event()
    host.on("/charge", Reply(201, b"before"))
    assert charge(a, "before").status == 201
    assert settled(b, "before").get("idempotent-replayed") == "true"
    loss.begin()
    host.on("/charge", Reply(201, b"done"), Reply(cut=0, end="reset"), Reply(201, b"late", when=go.is_set), Reply(200, b"second"))
    assert charge(a, "done").body == b"done"
    assert charge(a, "reset").status == 502
    wait_until(lambda: reason(charge(b, "reset")) == "key_unknown")
    settled(b, "done")
    with ask_and_wait(a, host, 4) as wire:
        loss.forget()
        answer = known_new(b)
        assert reason(answer) == "key_store_forgot" and answer.status == 503 and int(answer.get("retry-after")) >= 1
        for key, word in (("done", "key_answer_lost"), ("reset", "key_unknown"), ("k", "key_in_flight")):
            assert reason(known(b, key)) == word, key
        assert reason(charge(b, "done", body=b"6 euro")) == "key_mismatch"
        assert reason(charge(b, "done", Authorization="another")) == "key_scope"
        assert json.loads(charge(a, "done").body)["lastStatus"] == 201
        go.set()
        assert wire.answer("POST").body == b"late"
    assert settled(b, "k").body == b"late" and host.count() == 4, "each once"
    if loss.how in ("an old file", "a stale replica"):
        assert charge(b, "before").body == b"before", "what it has not forgotten has its answer"
    wait_until(lambda: a.log_lines("idempotency keys: reported to the store again"))
    assert b.metric("becalm_store_requests_total", result="forgot") >= 1
    wait_until(lambda: json.loads(admin(b, "/api/keys").body)["held"])
    (held,) = json.loads(admin(b, "/api/keys").body)["held"]
    assert held["target"] == "a/charge"


def known_new(gateway):
    """The answer for a new key, while the store is in doubt."""
    answers = []
    wait_until(lambda: answers.append(charge(gateway, "new")) or reason_of(answers[-1]) != "key_store_away")
    return answers[-1]


def test_after_a_lease_new_keys_are_executed_again(three, redis):
    (a, b), host = three(count=2, keys={"lease": "1s"})
    assert charge(a, "k").status == 200
    settled(b, "k")
    redis.tell("FLUSHALL")
    assert reason(known_new(b)) == "key_store_forgot"
    wait_until(lambda: charge(b, "new").status == 200)
    assert reason(known(b, "k")) == "key_answer_lost" and host.count() == 2


def test_required_keys_and_who_lets_calls_pass_do_not_wait(three, redis):
    (a,), host = three(REQUIRED, count=1)
    (b,), _ = three(count=1, keys={"onAway": "local"})
    assert charge(a, "k").status == 200
    assert settled(a, "k").get("idempotent-replayed") == "true", "the store has the answer, which is told behind it"
    redis.tell("FLUSHALL")
    assert charge(a, "k").status == 200 and host.count() == 2, "the service knows its keys"
    assert charge(b, "new").status == 200


def test_a_new_store_is_asked_for_a_lease_whether_anybody_knows_it(gateway, host, tmp_path):
    """An empty store may be one that lost its data, before a gateway has connected that knows the data."""
    empty = Redis(tmp_path).start()
    try:
        there = host()
        one = gateway(f"services:\n  a:\n    hosts: [{there.address}]\n    match: {{prefix: /}}\n    idempotencyKey: enforced\n", url=empty.url)
        assert reason(known_new(one)) == "key_store_forgot" and there.count() == 0
    finally:
        empty.stop()


def test_a_server_that_does_not_tell_its_run_is_trusted_as_far_as_it_can_be(three, redis):
    """Without +info the gateway can't see a restart, but it sees missing keys."""
    redis.tell("ACL SETUSER default -info")
    (a, b), host = three(count=2)
    assert charge(a, "k").status == 200
    settled(b, "k")
    redis.tell("FLUSHALL")
    assert reason(known(b, "k")) == "key_answer_lost" and host.count() == 1


def test_a_release_that_is_forgotten_leaves_the_key_held_and_not_executed(three, redis):
    """The gateway that held the key remembers it, and no gateway remembers the order to release it: that is the safe
    side, and an operator may repeat the order."""
    (a, b), host = three(count=2, keys={"lease": "1s"})
    host.on("/charge", Reply(cut=0, end="reset"), Reply(201, b"again"))
    assert charge(a, "k").status == 502
    wait_until(lambda: reason_of(charge(b, "k")) == "key_unknown")

    def release():
        wait_until(lambda: json.loads(admin(b, "/api/keys").body)["held"])
        (held,) = json.loads(admin(b, "/api/keys").body)["held"]
        before = len(b.log_lines("idempotency key released"))
        assert admin(b, f"/api/keys/{held['id']}", "DELETE").status == 202
        wait_until(lambda: len(b.log_lines("idempotency key released")) > before)

    release()
    redis.tell("FLUSHALL")
    assert reason(known(b, "k")) == "key_unknown" and host.count() == 1
    release()
    assert known(b, "k").body == b"again" and host.count() == 2


def test_what_is_told_again_is_enough_to_doubt(three, tmp_path):
    """A server that does not tell its run, restored from a file: one gateway sees that its end is gone, and new keys wait."""
    store = Redis(tmp_path, "--user", "default", "on", "nopass", "~*", "&*", "+@all", "-info").start()
    try:
        store.tell("HSET", "becalm:{default}:era", "r", "")
        store.tell("SAVE")
        (a, b), host = three(count=2, url=store.url)
        assert charge(a, "k").status == 200, "it is trusted"
        assert settled(b, "k").get("idempotent-replayed") == "true"
        assert charge(a, "another").status == 200, "so it has heard of the end before; one that it has not heard of is written once more"
        store.kill()
        store.start()
        wait_until(lambda: a.log_lines("idempotency keys: reported to the store again"))
        assert reason(known_new(b)) == "key_store_forgot" and host.count() == 2
    finally:
        store.stop()


def test_no_key_is_executed_twice_whatever_hosts_do_and_the_store_forgets(gateway, host, redis, tmp_path):
    """Each key three times at random gateways, and the store is flushed, killed without a file, and set back to an old one."""
    soak = os.environ.get("BECALM_SOAK")
    keys, clients = (10000, 16) if soak else (80, 6)
    draws, executed, lock = random.Random(22), collections.Counter(), threading.Lock()
    there = [host(), host()]
    for one in there:
        one.on("/charge", misbehaves(draws, executed, lock))
    policy = eager(there)
    gateways = [gateway(policy, keys={"timeout": "200ms"}, workers=2) for _ in range(4 if soak else 3)]
    asked = [f"k{n}" for n in range(keys) for _ in range(3)]
    random.Random(5).shuffle(asked)
    statuses = collections.Counter()
    until = time.monotonic() + 3600
    doubts = ("key_store_away", "key_store_forgot")

    def client(mine, number):
        choice = random.Random(number)
        for key in mine:
            said = doubts[0]
            while said in doubts and time.monotonic() < until:  # nothing was done, says the gateway
                try:
                    answer = charge(choice.choice(gateways), key)
                    said = reason_of(answer) or answer.status
                except (OSError, EOFError, AssertionError):
                    said = 0  # an answer that was cut
                if said == "key_store_forgot" and not soak:
                    break  # no client waits until the store is trusted again
                if said in doubts:
                    time.sleep(0.05)
            with lock:
                statuses[said] += 1

    def trouble():
        """Each kind in its turn, after some more answered requests."""
        for turn in range(1, 13 if soak else 2):
            wait_until(lambda turn=turn: sum(statuses.values()) >= turn * 3 * keys // (14 if soak else 3), seconds=1200)
            if turn % 3 == 1:
                redis.tell("FLUSHALL")
            else:
                redis.kill()
                redis.start()  # turn % 3 == 2: with the file of the turn before, or with none
            if turn % 3 == 0:
                redis.tell("SAVE")

    threads = [threading.Thread(target=trouble), *(threading.Thread(target=client, args=(asked[n::clients], n)) for n in range(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(statuses.values()) == 3 * keys
    assert [key for key, count in executed.items() if count > 1] == [], statuses
    assert len(executed) > keys / 8, "many were executed"
    print(dict(statuses), len(executed))
