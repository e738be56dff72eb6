# SPDX-License-Identifier: MIT
"""Gateways that share a budget through a real Redis, which is killed, hung and misled."""

import os
import re
import signal
import subprocess
import time

import pytest
from conftest import policy_of
from host import Reply, wait_until
from store import SERVER, Redis, Relay, degraded, leased, redis  # noqa: F401: a fixture
from store import rules as shared_rules

SOAK = os.environ.get("BECALM_SOAK") == "1"
pytestmark = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed")


def rules(redis, percent=20):
    """Its store stands in the budget itself: nothing else names it."""
    return shared_rules(percent).replace("shared: {", f'shared: {{redis: "{redis.url}", ')


def caused(gateway):
    """The times that it lost its store, but for those when the machine was busy for longer than a store has to answer."""
    return [line for line in degraded(gateway) if "error=timeout" not in line]


def test_what_one_gateway_does_not_need_another_may_spend(gateway, host, redis):
    """One gateway earns tokens and needs none; all calls of the other gateway fail: it gets more than its own share,
    and both together get no more than the shared percentage."""
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
    wait_until(lambda: len(leased(made)) >= 2)
    assert len(caused(made)) <= 1, "one line when it begins"


def test_a_hung_store_delays_no_call(gateway, host, redis):
    good = host()
    made = gateway(policy_of([good], rules=rules(redis)))
    wait_until(lambda: leased(made))
    redis.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: made.log_lines("degraded to the own share"))
    for _ in range(50):
        assert made.ask().status == 200
    redis.process.send_signal(signal.SIGCONT)
    wait_until(lambda: len(leased(made)) >= 2)


def test_without_a_store_it_starts_and_serves(gateway, host, tmp_path):
    away = Redis(tmp_path)
    made = gateway(policy_of([host()], rules=rules(away)))
    assert made.ask().status == 200
    wait_until(lambda: made.log_lines("degraded to the own share"))


def test_another_percentage_is_another_pot(gateway, host, redis):
    hosts = [host()]
    made = gateway(policy_of(hosts, rules=rules(redis)))
    wait_until(lambda: b"a:200000:" in redis.says("KEYS *:p:*"))
    made.reload(policy_of(hosts, rules=rules(redis, percent=5)))
    wait_until(lambda: b"a:50000:" in redis.says("KEYS *:p:*"))


# Faults of a store. The effect of each ends with its cause, no call waits, and no instance stays degraded.


@pytest.fixture
def relay(redis):
    made = Relay(redis.port)
    yield made
    made.close()


def serves(gateway, calls=20):
    for _ in range(calls):
        assert gateway.ask().status == 200


def exchanges(gateway):
    return gateway.metric("becalm_redis_exchanges_total", result="ok")


def goes_on(gateway, count=3):
    """That many exchanges more succeed."""
    before = exchanges(gateway)
    wait_until(lambda: serves(gateway, 1) or exchanges(gateway) >= before + count)


def test_an_emptied_store_degrades_nobody(gateway, host, redis):
    made = gateway(policy_of([host()], rules=rules(redis)))
    wait_until(lambda: leased(made))
    for command in ("FLUSHALL", "SCRIPT FLUSH", "FLUSHALL"):
        redis.tell(command)
        goes_on(made)
    wait_until(lambda: redis.says("EXISTS becalm:{default}:p:a:200000:100000") == b":1")
    assert not caused(made), made.log()


def test_a_store_that_comes_back_from_an_old_file_has_nobody_degraded_for_long(gateway, host, redis):
    bad = host()
    bad.on("*", Reply(status=503))
    made = gateway(policy_of([bad], rules=rules(redis)))
    wait_until(lambda: leased(made))
    redis.tell("SAVE")
    calls = 0
    while bad.count() - calls < 20:  # the store grants retries that its file does not have
        assert made.ask().status == 503
        calls += 1
    redis.kill()
    wait_until(lambda: degraded(made))
    redis.start()
    wait_until(lambda: len(leased(made)) >= 2)
    before = exchanges(made)
    wait_until(lambda: made.ask().status == 503 and exchanges(made) >= before + 5)
    made.expect_metric(0, "becalm_shared_degraded")
    assert len(caused(made)) <= 1, made.log()


def test_a_promoted_replica_that_has_missed_writes(gateway, host, redis, relay, tmp_path):
    bad = host()
    bad.on("*", Reply(status=503))
    replica = Redis(tmp_path, "--replicaof", "127.0.0.1", redis.port).start()
    try:
        made = gateway(policy_of([bad], rules=rules(relay)))
        wait_until(lambda: leased(made))
        wait_until(lambda: replica.says("EXISTS becalm:{default}:p:a:200000:100000") == b":1")
        replica.pause()
        calls = 0
        while bad.count() - calls < 10:
            assert made.ask().status == 503
            calls += 1
        redis.kill()
        replica.go_on()
        replica.tell("REPLICAOF NO ONE")
        relay.to = replica.port
        relay.cut()
        wait_until(lambda: len(leased(made)) >= 2)
        before = exchanges(made)
        wait_until(lambda: made.ask().status == 503 and exchanges(made) >= before + 3)
        made.expect_metric(0, "becalm_shared_degraded")
        retries, firsts = bad.count() - made.metric("becalm_calls_total"), made.metric("becalm_calls_total")
        # At most one pot is granted twice: half of the earnings of the busiest second, which a fast machine makes
        # large.
        assert retries <= 0.2 * firsts + max(60, 0.1 * firsts), (retries, firsts)
    finally:
        replica.stop()


def test_a_slow_store_is_given_up_and_found_again(gateway, host, relay):
    made = gateway(policy_of([host()], rules=rules(relay)))
    wait_until(lambda: leased(made))
    relay.delay = 4.0
    wait_until(lambda: serves(made, 1) or degraded(made))
    assert "error=timeout" in degraded(made)[0]
    serves(made)
    relay.delay = 0.0
    wait_until(lambda: len(leased(made)) >= 2)


def test_answers_half_a_second_late_degrade_nobody(gateway, host, relay):
    """They are in time: a lease goes on, and retries are granted. (A machine that is busy for longer is a timeout.)"""
    bad = host()
    bad.on("*", Reply(status=503))
    made = gateway(policy_of([bad], rules=rules(relay)))
    wait_until(lambda: leased(made))
    relay.delay = 0.5
    late = made.metric("becalm_redis_seconds_count") - made.metric("becalm_redis_seconds_bucket", le="0.25")
    granted = made.metric("becalm_shared_granted_total")

    def goes_on_late():
        assert made.ask().status == 503
        now = made.metric("becalm_redis_seconds_count") - made.metric("becalm_redis_seconds_bucket", le="0.25")
        return now >= late + 4 and made.metric("becalm_shared_granted_total") >= granted + 4

    wait_until(goes_on_late, what=made.log)
    assert not caused(made), made.log()
    retries, firsts = bad.count() - made.metric("becalm_calls_total"), made.metric("becalm_calls_total")
    assert retries <= 0.2 * firsts + 10, (retries, firsts)


def own_names(file):
    """Runs a program that sees this file as /etc/hosts."""
    wrapper = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f'mount --bind {file} /etc/hosts && exec "$@"', "sh"]
    if subprocess.run([*wrapper, "true"], capture_output=True).returncode != 0:
        pytest.skip("this system allows no name space of its own")
    return wrapper


@pytest.mark.parametrize("old_one", ["is killed", "is demoted"])
def test_the_name_of_a_store_moves(gateway, host, tmp_path, old_one):
    """The name is resolved before each connection, so the gateway reaches its present address."""
    here, there = Redis(tmp_path), Redis(tmp_path, ip="127.0.0.2")
    hosts = tmp_path / "hosts"
    try:
        here.start()
        there.port = here.port
        there.start()
        if there.port != here.port:
            pytest.skip("somebody has the port at the other address")
        hosts.write_text("127.0.0.1 cache.test\n")
        rule = shared_rules().replace("shared: {", f'shared: {{redis: "redis://cache.test:{here.port}", ')
        made = gateway(policy_of([host()], rules=rule), wrapper=own_names(hosts))
        wait_until(lambda: leased(made), what=made.log)
        hosts.write_text("127.0.0.2 cache.test\n")
        if old_one == "is killed":
            here.kill()
        else:  # it is still there, and takes connections, but nothing is written to it any more
            here.tell(f"REPLICAOF 127.0.0.2 {there.port}")
            wait_until(lambda: made.metric("becalm_redis_errors_total", error="READONLY") > 0, what=made.log)
        wait_until(lambda: b"a:200000:" in there.says("KEYS *:p:*") and b"becalm-" in there.says("CLIENT LIST"), what=made.log)
        wait_until(lambda: len(leased(made)) >= 2 and serves(made, 1) is None, what=made.log)
        made.expect_metric(0, "becalm_shared_degraded")
    finally:
        here.stop()
        there.stop()


def test_a_wrong_password_is_named_and_the_right_one_is_found(gateway, host, redis):
    redis.tell("ACL", "SETUSER", "becalm", "on", ">right", "~*", "+@all")
    rule = shared_rules().replace("shared: {", f'shared: {{redis: "redis://becalm:wrong@{redis.address}", ')
    made = gateway(policy_of([host()], rules=rule))
    wait_until(lambda: degraded(made))
    assert "error=WRONGPASS" in degraded(made)[0]
    serves(made)
    redis.tell("ACL", "SETUSER", "becalm", ">wrong")
    wait_until(lambda: leased(made))


def test_while_a_percentage_is_changed_each_gateway_keeps_to_its_own(gateway, host, redis):
    """20 % becomes 5 %, one gateway after the other: each percentage has its own pot, which grants no more than it
    earned."""
    hosts = [host(), host()]
    for each in hosts:
        each.on("*", Reply(status=503))
    fleet = [gateway(policy_of([each], rules=rules(redis))) for each in hosts]
    wait_until(lambda: all(leased(each) for each in fleet))
    calls = 300 if SOAK else 100
    percents, status = [20, 20], [503, 503]
    firsts, retries = {20: 0, 5: 0}, {20: 0, 5: 0}
    begun = time.monotonic()

    def all_call():
        """`calls` calls through each gateway: the total retries of a pot are its share of its total first attempts,
        plus the floor."""
        for which, each in enumerate(hosts):
            before = each.count()
            for _ in range(calls):
                assert fleet[which].ask().status == status[which]
            firsts[percents[which]] += calls
            retries[percents[which]] += each.count() - before - calls
        floor = 4 + (time.monotonic() - begun) / 10  # one in ten seconds; a gateway may begin with one of its own
        for percent in firsts:
            assert retries[percent] <= firsts[percent] * percent / 100 + floor, (percent, firsts, retries)

    def becomes(which, percent):
        fleet[which].reload(policy_of([hosts[which]], rules=rules(redis, percent)))
        wait_until(lambda: fleet[which].metric("becalm_shared_percent") == percent and fleet[which].metric("becalm_shared_degraded") == 0)
        percents[which] = percent

    def call_until_half_is_spent(percent):
        """Calls may be faster than the first exchange with the store, and retries are paid only after it."""
        end = time.monotonic() + 60
        all_call()
        while retries[percent] < firsts[percent] * percent / 200:
            assert time.monotonic() < end, (percent, firsts, retries)
            all_call()

    call_until_half_is_spent(20)
    becomes(0, 5)
    hosts[1].on("*", Reply(status=200))  # it earns at 20 %, but not for the gateway with 5 %
    status[1] = 200
    for _ in range(5):
        call_until_half_is_spent(5)
    hosts[1].on("*", Reply(status=503))
    status[1] = 503
    becomes(1, 5)
    call_until_half_is_spent(5)


def patient(url):
    """A busy machine is no reason to give up the store."""
    return f'store: {{redis: "{url}", timeout: 60s}}'


def records(redis):
    found = redis.says("KEYS", "becalm:{default}:r:*").split(b"\r\n")
    return {each for each in found if each.startswith(b"becalm")}


def counted(redis, record):
    """Does the gateway share the pot? Then its record is in a window."""
    return any(redis.says("GETRANGE", record.decode(), 34, 38)[4:9])


def test_a_name_that_is_given_up_with_its_connection_says_goodbye(gateway, host, redis):
    made = gateway(policy_of([host()], patient(redis.url), shared_rules()))
    wait_until(lambda: leased(made) and records(redis), what=made.log)
    (old,) = records(redis)
    assert counted(redis, old)
    redis.tell("CLIENT", "KILL", "TYPE", "normal")
    wait_until(lambda: len(records(redis)) == 2, what=made.log)
    (new,) = records(redis) - {old}
    wait_until(lambda: not counted(redis, old), what=made.log)
    assert counted(redis, new)


@pytest.mark.parametrize("how", ["it ends", "a reload takes the budget out"])
def test_a_budget_that_ends_says_goodbye(gateway, host, redis, how):
    good = host()
    made = gateway(policy_of([good], patient(redis.url), shared_rules()))
    wait_until(lambda: leased(made) and records(redis), what=made.log)
    (record,) = records(redis)
    assert counted(redis, record)
    if how == "it ends":
        made.end()
    else:
        made.reload(policy_of([good], patient(redis.url)))
    wait_until(lambda: not counted(redis, record), what=made.log)


def test_a_store_that_does_not_answer_is_asked_once(gateway, host, redis, relay):
    """Requests to a store that does not answer do not pile up, though the lease is over and another would be due."""

    def runs():
        found = re.findall(rb"cmdstat_eval(?:sha)?:calls=(\d+)", redis.says("INFO", "commandstats"))
        return sum(map(int, found))

    made = gateway(policy_of([host()], patient(relay.url), shared_rules()))
    wait_until(lambda: leased(made), what=made.log)
    relay.delay = 3600
    wait_until(lambda: made.metric("becalm_shared_degraded") == 1, what=made.log)
    before = runs()
    wait_until(lambda: serves(made, 1) or made.metric("becalm_redis_answer_age_seconds") > 6, what=made.log)
    assert runs() <= before + 1, "but for one that tells who is there"


def test_a_store_that_talks_nonsense_is_left_at_once(gateway, host, relay):
    made = gateway(policy_of([host()], rules=rules(relay)))
    wait_until(lambda: leased(made))
    relay.says = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    wait_until(lambda: serves(made, 1) or degraded(made))
    wait_until(lambda: made.metric("becalm_redis_errors_total", error="nonsense") > 0)
    relay.says = b"*2147483647\r\n"
    before = made.metric("becalm_redis_errors_total", error="nonsense")
    wait_until(lambda: made.metric("becalm_redis_errors_total", error="nonsense") > before + 1)
    serves(made)
    relay.says = None
    wait_until(lambda: len(leased(made)) >= 2)


@pytest.mark.parametrize(
    "begin, error, end",
    [
        ("REPLICAOF 127.0.0.1 1", "READONLY", "REPLICAOF NO ONE"),
        ("CONFIG SET maxmemory 1", "OOM", "CONFIG SET maxmemory 0"),
        ("ACL SETUSER default -set", "NOPERM", "ACL SETUSER default +set"),
    ],
)
def test_a_store_that_refuses_is_named_and_found_again(gateway, host, redis, begin, error, end):
    made = gateway(policy_of([host()], rules=rules(redis)))
    wait_until(lambda: leased(made))
    redis.tell(begin)
    wait_until(lambda: serves(made, 1) or degraded(made))
    wait_until(lambda: made.metric("becalm_redis_errors_total", error=error) > 0 or made.log_lines(f"error={error}"), what=made.log)
    redis.tell(end)
    wait_until(lambda: len(leased(made)) >= 2)


def test_gateways_that_come_and_die_stay_within_the_budget_together(gateway, host, redis):
    """Gateways are replaced one after the other, half of them killed: the retries that they held are granted to no
    other gateway twice. BECALM_SOAK=1: twenty of them, sixty times."""
    size, turns = (20, 60) if SOAK else (3, 6)
    bad = host()
    bad.on("*", Reply(status=503))
    begun = time.monotonic()
    calls = 0
    fleet = [gateway(policy_of([bad], rules=rules(redis))) for _ in range(size)]
    for turn in range(turns):
        wait_until(lambda: all(leased(each) for each in fleet))
        for _ in range(30):
            for each in fleet:
                assert each.ask().status == 503
                calls += 1
        old = fleet.pop(0)
        if turn % 2:
            old.kill()
        else:
            old.end()
        fleet.append(gateway(policy_of([bad], rules=rules(redis))))
    retries = bad.count() - calls
    seconds = time.monotonic() - begun
    # Each lives on its own share before its first answer: one retry of the floor's for each that began.
    assert 0 < retries <= 0.2 * calls + size + turns + seconds / 10, (retries, calls)
