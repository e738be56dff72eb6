# SPDX-License-Identifier: MIT
"""Gateways that share a budget through a real Redis, which is killed, hung and misled."""

import signal
import time

import pytest
from conftest import policy_of
from host import Reply, wait_until
from store import SERVER, Redis, leased
from store import rules as shared_rules

pytestmark = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed")


@pytest.fixture
def redis(tmp_path):
    made = Redis(tmp_path)
    made.start()
    yield made
    made.stop()


def rules(redis, percent=20):
    """Its store stands in the budget itself: nothing else names it."""
    return shared_rules(percent).replace("shared: {", f'shared: {{redis: "{redis.url}", ')


def test_what_one_gateway_does_not_need_another_may_spend(gateway, host, redis):
    """One earns and needs nothing; all calls of the other fail: it has more than the share of its own, and both
    together no more than the share of all."""
    good, bad = host(), host()
    bad.on("*", Reply(status=503))
    rich = gateway(policy_of([good], rules=rules(redis)))
    poor = gateway(policy_of([bad], rules=rules(redis)))
    wait_until(lambda: leased(rich) and leased(poor))
    begun = time.monotonic()
    firsts, calls = 0, 0
    while bad.count() - calls <= 0.6 * calls or calls < 20:
        assert time.monotonic() - begun < 60, "it never gets more than its own share"
        for _ in range(20):
            assert rich.ask().status == 200
        assert poor.ask().status == 503
        firsts, calls = firsts + 20, calls + 1
    retries = bad.count() - calls
    seconds = time.monotonic() - begun
    assert retries <= 0.2 * (firsts + calls) + 2 + seconds / 10, (retries, firsts, calls)


def test_a_killed_store_leaves_the_own_share_and_a_new_one_is_found(gateway, host, redis):
    bad = host()
    bad.on("*", Reply(status=503))
    made = gateway(policy_of([bad], rules=rules(redis)))
    wait_until(lambda: leased(made))
    redis.kill()
    wait_until(lambda: made.log_lines("degraded to the own share"))
    before = bad.count()
    for _ in range(100):
        assert made.ask().status == 503
    assert bad.count() - before <= 120 + 2
    redis.start()
    wait_until(lambda: len(leased(made)) == 2)
    assert len(made.log_lines("degraded to the own share")) == 1, "one line when it begins"


def test_a_hung_store_delays_no_call(gateway, host, redis):
    good = host()
    made = gateway(policy_of([good], rules=rules(redis)))
    wait_until(lambda: leased(made))
    redis.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: made.log_lines("degraded to the own share"))
    for _ in range(50):
        assert made.ask().status == 200
    redis.process.send_signal(signal.SIGCONT)
    wait_until(lambda: len(leased(made)) == 2)


def test_without_a_store_it_starts_and_serves(gateway, host, tmp_path):
    away = Redis(tmp_path)
    made = gateway(policy_of([host()], rules=rules(away)))
    assert made.ask().status == 200
    wait_until(lambda: made.log_lines("degraded to the own share"))


def test_another_percentage_is_another_pot(gateway, host, redis):
    hosts = [host()]
    made = gateway(policy_of(hosts, rules=rules(redis)))
    wait_until(lambda: b"a:200000:" in redis.says("KEYS *:b:*"))
    made.reload(policy_of(hosts, rules=rules(redis, percent=5)))
    wait_until(lambda: b"a:50000:" in redis.says("KEYS *:b:*"))
