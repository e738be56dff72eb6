# SPDX-License-Identifier: MIT
"""Wall clocks that are wrong: that of a real Redis which gateways share, and that of a gateway."""

import json
import os
import shutil
import struct
import subprocess
import threading
from pathlib import Path

import pytest
from conftest import policy_of
from host import Reply, wait_until
from store import SERVER, Redis, leased
from test_keys_enforced import ENFORCED, admin, charge, reason
from test_keys_shared import ask_and_wait, gateway, reason_of, settled, three  # noqa: F401: fixtures

COMPILER = os.environ.get("CC") or shutil.which("cc")
pytestmark = [
    pytest.mark.skipif(SERVER is None, reason="redis-server is not installed"),
    pytest.mark.skipif(COMPILER is None, reason="no C compiler"),
]
HOUR = 3600
SHARED = ENFORCED.replace("kind: none", "kind: none, shared: {percent: 20}")


class Clock:
    """The clock of programs with this environment: set() shifts it by some seconds, while they run."""

    def __init__(self, folder):
        library = folder / "clock.so"
        subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", library, Path(__file__).with_name("clock.c")], check=True)
        self.path = folder / "clock"
        self.path.write_bytes(struct.pack("q", 0))
        self.env = {"LD_PRELOAD": str(library), "BECALM_CLOCK": str(self.path)}

    def set(self, wrong):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("q", wrong))


@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path)


@pytest.fixture
def redis(tmp_path, clock):
    """One with that clock."""
    made = Redis(tmp_path, env=clock.env)
    made.start()
    yield made
    made.stop()


def executed(gateway, key):
    """A new key, as soon as the store begins one."""
    answers = []
    wait_until(lambda: answers.append(charge(gateway, key)) or answers[-1].status == 200, what=lambda: answers[-1].body)


def held_by_a_reset(gateway, host, key):
    host.on("/charge", Reply(cut=0, end="reset"), Reply(200))
    assert charge(gateway, key).status == 502
    wait_until(lambda: reason(charge(gateway, key)) == "key_unknown")


def times_left(redis):
    """In seconds, of all records and guards."""
    names = [word for word in redis.says("KEYS", "becalm:*:[kg]:*").split(b"\r\n") if word.startswith(b"becalm")]
    return [int(redis.says("PTTL", name)[1:]) / 1000 for name in names]


@pytest.mark.parametrize("wrong", [-HOUR, HOUR, 30 * HOUR, 90 * HOUR])
def test_a_store_whose_clock_is_set_executes_no_key_twice(three, redis, clock, wrong):
    """Keys live for 24 hours by default: keys and counts end, keys alone, or none. Both gateways have seen the clock before it is set, and
    have a lease's time to notice it, also on a machine that stands still for seconds."""
    (a, b), host = three(count=2, keys={"lease": "8s"})
    go = threading.Event()
    executed(a, "done")
    held_by_a_reset(a, host, "reset")
    for each in (a, b):
        each.expect_metric(1, "becalm_store_unknown")  # it has listed
    before = host.count()
    host.on("/charge", Reply(201, b"late", when=go.is_set), Reply(200))
    with ask_and_wait(a, host, before + 1) as wire:
        clock.set(wrong)
        executed(b, "new")
        assert host.count() == before + 2, "this one, and none of those before"
        for key, words in (("done", (None, "key_answer_lost")), ("reset", ("key_unknown",)), ("k", ("key_in_flight", "key_unknown"))):
            assert reason_of(charge(b, key)) in words, key
        go.set()
        assert wire.answer("POST").body == b"late"
    wait_until(lambda: charge(b, "k").body == b"late")
    assert host.count() == before + 2
    wait_until(lambda: len(times_left(redis)) == 8 and min(times_left(redis)) > 23.5 * HOUR, what=lambda: times_left(redis))


def test_a_store_whose_clock_is_set_back_does_not_refuse_new_keys_for_as_long(three, redis, clock):
    """It did not trust itself when it began, by the clock of then."""
    clock.set(2 * HOUR)
    (a,), host = three(count=1, keys={"lease": "1s"})
    redis.tell("FLUSHALL")
    executed(a, "before")
    clock.set(0)
    executed(a, "after")
    assert host.count() == 2


def test_a_key_of_an_owner_that_died_is_not_in_flight_for_as_long_as_the_clock_was_set_back(redis, clock):
    """A lease ends one lease time after a gateway has asked for the key. A lease that is longer by less than a minute
    may be that of another gateway."""
    text = (Path(__file__).parents[2] / "src/redis/keys.lua").read_text()
    names = [f"becalm:{{default}}:{name}" for name in ("held", "era", "e:1", "k:" + "a" * 32, "g:" + "b" * 32)]

    def run(what, lease, *more):
        return redis.tell("EVAL", text, 5, *names, what, "", lease, "owner", "print", 1, HOUR * 1000, "a/charge", *more)

    for back, asked, lease, word in ((HOUR, 20, 60, b"flight"), (HOUR, 61, 60, b"held"), (0, 30, 10, b"flight")):
        clock.set(back)
        redis.tell("FLUSHALL")
        redis.be_trusted()
        assert b"begun" in run("begin", 60000, 1, 0)
        clock.set(0)
        assert b"flight" in run("begin", lease * 1000, 1, 0)
        clock.set(asked)
        assert word in run("begin", lease * 1000, 1, 0), (back, asked)
        assert b"ok" in run("renew", 60000) and b"flight" in run("begin", 60000, 1, 0), "its owner lives"


def test_who_has_listed_before_sees_a_clock_that_was_set_and_who_has_not_trusts_it(redis):
    """Each row: the time of the asker's clock, in seconds from now, and the answer for a new key. No gateway has listed
    keys for an hour."""
    text = (Path(__file__).parents[2] / "src/redis/keys.lua").read_text()
    names = [f"becalm:{{default}}:{name}" for name in ("held", "era", "e:1", "k:" + "a" * 32, "g:" + "b" * 32)]
    now = int(redis.says("TIME").split(b"\r\n")[2])
    for thinks, word in ((0, b"begun"), (-30, b"begun"), (-100, b"forgot"), (HOUR, b"begun"), (None, b"begun")):
        redis.tell("FLUSHALL")
        redis.be_trusted()
        redis.tell("HSET", names[1], "c", (now - HOUR) * 1000)
        clock = "" if thinks is None else (int(redis.says("TIME").split(b"\r\n")[2]) + thinks) * 1000
        assert b"list" in redis.tell("EVAL", text, 3, *names[:3], "list", "", 60000, 0, 60000, clock)
        assert word in redis.tell("EVAL", text, 5, *names, "begin", "", 60000, "owner", "print", 1, 60000, "a/charge", 2, 0), thinks
    for sure, word in ((1, b"begun"), (2, b"forgot")):
        redis.tell("FLUSHALL")
        redis.be_trusted()
        redis.tell("HSET", names[1], "c", (now - HOUR) * 1000)
        assert word in redis.tell("EVAL", text, 5, *names, "begin", "", 60000, "owner", "print", 1, 60000, "a/charge", sure, 0), sure


@pytest.mark.parametrize("wrong", [-HOUR, 30 * HOUR])
def test_a_gateway_whose_clock_is_set_keeps_its_keys_and_its_budget(gateway, host, tmp_path, wrong):
    if "BECALM_SANITIZED" in os.environ:
        pytest.skip("a sanitizer wants to be the first library")
    there = host()
    own = tmp_path / "own"
    own.mkdir()
    clock = Clock(own)  # the store's is another one
    one = gateway(policy_of([there], rules=SHARED), env=clock.env)
    executed(one, "done")
    wait_until(lambda: leased(one))
    clock.set(wrong)
    assert settled(one, "done").get("idempotent-replayed") == "true" and there.count() == 1
    executed(one, "new")
    (store,) = json.loads(admin(one, "/api/state").body)["stores"]
    assert store["up"] and there.count() == 2
