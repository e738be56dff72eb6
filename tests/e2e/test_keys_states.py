# SPDX-License-Identifier: MIT
"""An enforced key in each of its states, while its gateway, the store, or both are killed and started again; and long
and similar keys."""

import json
import threading

import pytest
from conftest import free_port, policy_of
from host import Reply, wait_until
from message import request
from store import SERVER, Redis, Relay
from test_keys_enforced import ENFORCED, charge, reason
from test_keys_shared import gateway, reason_of, settled, three  # noqa: F401: fixtures

pytestmark = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed")
PASSING = ("key_in_flight", "key_store_away", "key_store_forgot")


@pytest.fixture
def redis(tmp_path):
    """One that keeps all that it has acknowledged."""
    made = Redis(tmp_path, "--appendonly", "yes", "--appendfsync", "always")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def relay(redis):
    made = Relay(redis.port)
    yield made
    made.close()


class Call:
    """A client that asks the first of some gateways, which reaches the store through a relay. One method for each state brings it there."""

    def __init__(self, gateway, host, redis, relay):
        self.gateway, self.host, self.redis, self.relay = gateway, host, redis, relay
        self.go = threading.Event()
        self.wire = None

    def send(self):
        self.wire = self.gateway.wire().send(request("POST", "/charge", body=b"5 euro", fields={"Idempotency-Key": "k"}))

    def begun(self):
        """In the store; its gateway has not heard of it, and has sent nothing."""
        self.relay.delay = 3600
        self.send()
        wait_until(lambda: b":k:" in self.redis.says("KEYS becalm:*:k:*"))

    def sent(self):
        self.host.on("/charge", Reply(201, b"once", when=self.go.is_set), Reply(200, b"twice"))
        self.send()
        self.host.wait(1)

    def answered(self):
        """Its client has the answer, and the store has not."""
        self.sent()
        there = self.relay.to
        self.relay.to = free_port()  # no process listens
        self.relay.cut()
        self.go.set()
        assert self.wire.answer("POST").body == b"once"
        self.relay.to = there if self.gateway_lives else self.relay.to

    def stored(self):
        self.host.on("/charge", Reply(201, b"once"), Reply(200, b"twice"))
        assert charge(self.gateway, "k").body == b"once"
        assert settled(self.gateway, "k").get("idempotent-replayed") == "true"

    def held(self):
        self.host.on("/charge", Reply(cut=0, end="reset"), Reply(200, b"twice"))
        assert charge(self.gateway, "k").status == 502
        wait_until(lambda: reason(charge(self.gateway, "k")) == "key_unknown")


# The final answer to a repeat, and the number of executions by then, with a living gateway and with a killed one.
STATES = {
    "begun": ((b"once", 1), ("key_unknown", 0)),
    "sent": ((b"once", 1), ("key_unknown", 1)),
    "answered": ((b"once", 1), ("key_unknown", 1)),
    "stored": ((b"once", 1), (b"once", 1)),
    "held": (("key_unknown", 1), ("key_unknown", 1)),
}


def ends_as(gateway):
    """The answer for the key once no request is in flight any more."""
    answers = []
    wait_until(lambda: answers.append(charge(gateway, "k")) or reason_of(answers[-1]) not in PASSING, what=lambda: answers[-1].body)
    return reason_of(answers[-1]) or answers[-1].body


@pytest.mark.parametrize("killed", ["the gateway", "the store", "both"])
@pytest.mark.parametrize("state", STATES)
def test_whoever_is_killed_a_key_is_executed_once_at_most(gateway, host, redis, relay, state, killed):
    there = host()
    policy = policy_of([there], rules=ENFORCED)
    # A gateway that lives has to renew its lease, however busy the machine is; one that was killed is waited for.
    lease = "8s" if killed == "the store" else "1s"
    first = gateway(policy, url=relay.url, keys={"lease": lease})
    other = gateway(policy, keys={"lease": lease})
    wait_until(lambda: first.log_lines("idempotency keys: shared in the store"))
    there.on("/charge", Reply(201, b"once"), Reply(200, b"twice"))
    call = Call(first, there, redis, relay)
    call.gateway_lives = killed == "the store"
    getattr(call, state)()
    if killed != "the store":
        first.kill()
    if killed != "the gateway":
        redis.kill()
        relay.cut()
        redis.start()
    relay.delay = 0
    call.go.set()
    outcome, executions = STATES[state][not call.gateway_lives]
    again = gateway(policy, keys={"lease": lease})  # as after a new start
    for each in (other, again, *([first] if call.gateway_lives else [])):
        assert ends_as(each) == outcome
        assert there.count() == executions
    if call.wire is not None:
        call.wire.close()


def test_a_key_whose_time_is_over_before_its_call_is_not_executed_beside_it(three):
    (a, b), host = three(count=2, keys={"lease": "1s", "ttl": "1s"})
    go, asked = threading.Event(), []
    host.on("/charge", Reply(201, b"once", when=go.is_set), Reply(200, b"after its time"))
    with a.wire() as wire:
        wire.send(request("POST", "/charge", body=b"5 euro", fields={"Idempotency-Key": "k"}))
        host.wait(1)
        seconds = threading.Timer(4, asked.append, [True])
        seconds.start()
        while not asked:
            assert reason(charge(b, "k")) in ("key_in_flight", "key_unknown")  # the latter if the machine stood still
        assert host.count() == 1
        go.set()
        assert wire.answer("POST").body == b"once"
    wait_until(lambda: charge(b, "k").body == b"after its time")
    assert host.count() == 2, "its time begins with its end, and then is over"


@pytest.mark.parametrize("size, status", [(255, 200), (256, 400), (6000, 400)])
def test_the_longest_key_is_said(three, size, status):
    (a, b), host = three(count=2)
    answer = charge(a, "k" * size)
    assert answer.status == status and host.count() == (status == 200)
    if status == 200:
        assert settled(b, "k" * size).get("idempotent-replayed") == "true"
        assert charge(b, "k" * (size - 1) + "l").status == 200 and host.count() == 2, "its last letter counts"
    else:
        assert "255" in json.loads(answer.body)["detail"], answer.body


def test_all_of_a_long_scope_counts(three):
    """As many lines and bytes as a request may have."""
    (a, b), host = three(count=2)
    lines = [("Cookie", f"c{n}={'x' * 100}") for n in range(90)]
    for last, expected in (("y", None), ("y", None), ("z", "key_scope")):
        fields = [("Idempotency-Key", "k"), ("Authorization", "t" * 6000), *lines, ("X-Api-Key", last)]
        answers = []
        wait_until(lambda fields=fields: answers.append(b.ask("POST", "/charge", body=b"5", fields=fields)) or reason_of(answers[-1]) != "key_in_flight")
        assert reason_of(answers[-1]) == expected
    assert host.count() == 1


@pytest.mark.parametrize(
    "one, two",
    [
        (("/charge?a", b"bc"), ("/charge?ab", b"c")),
        (("/charge?", b"a"), ("/charge?a", b"")),
        (("/charge", b"\0"), ("/charge", b"")),
        (("/charge?\0".replace("\0", "%00"), b"x"), ("/charge?", b"%00x")),
    ],
)
def test_requests_that_are_the_same_bytes_when_joined_are_others(three, one, two):
    (a,), host = three(count=1)
    assert a.ask("POST", one[0], body=one[1], fields={"Idempotency-Key": "k"}).status == 200
    for path, body in (one, two):
        answers = []
        wait_until(lambda path=path, body=body: answers.append(a.ask("POST", path, body=body, fields={"Idempotency-Key": "k"})) or reason_of(answers[-1]) != "key_in_flight")
        assert (reason_of(answers[-1]) == "key_mismatch") == ((path, body) == two)
    assert host.count() == 1
