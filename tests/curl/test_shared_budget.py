# SPDX-License-Identifier: MIT
"""Programs with libbecalm-curl share a budget through a real Redis: by threads that block, by multi handles, and by
programs with a loop of their own. None of them has a thread for it."""

import subprocess

import pytest
from conftest import Result, command_of, service
from host import Reply, wait_until
from store import redis  # noqa: F401

SHARED = "{kind: none, shared: {percent: 20}}"
RULES = {"maxRetries": 3, "breaker": "{enabled: false}", "limit": "{kind: none}", "maxDelay": "10ms", "attemptTimeout": "60s"}
WAYS = {
    "easy": {"repeat": 60},
    "multi": {"interface": "multi", "at_once": 60},
    "socket": {"interface": "socket", "at_once": 60},
}


def policy(url, **keys):
    """A busy machine takes its time: no answer is late."""
    return f"store: {{redis: '{url}', timeout: 60s}}\n" + service(budget=SHARED, **{**RULES, **keys})


@pytest.fixture
def start(tmp_path):
    """A lab in the background; its result when it is called."""
    running = []

    def begin(text, url, **options):
        folder = tmp_path / f"lab{len(running)}"
        folder.mkdir()
        process = subprocess.Popen(
            command_of(folder, text, url, options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        running.append(process)

        def end():
            out, err = process.communicate(timeout=300)
            assert process.returncode == 0, err
            return Result(out)

        return end

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def test_shared_budget__what_one_program_does_not_need_others_have(host, lab, start, redis):  # noqa: F811
    host.on("/fine", Reply(200, b"fine"))
    host.on("/bad", Reply(503, b"no"))
    start(policy(redis.url), f"http://{host.address}/fine", threads=4, repeat=100000, period_ms=10, quiet=1)
    pot = "becalm:{default}:p:s:200000:100000"
    wait_until(lambda: redis.says("EXISTS", pot) == b":1")
    ends = {way: start(policy(redis.url), f"http://{host.address}/bad", period_ms=50, **more) for way, more in WAYS.items()}
    results = {way: end() for way, end in ends.items()}
    for way, result in results.items():
        assert len(result.calls) == 60
        assert result.count("becalm_redis_up") == 1, way
        assert result.count("becalm_redis_connects_total") == 1, way
        assert result.count("becalm_shared_granted_total") > 0, way
        assert result.count("becalm_shared_told_total") > 0, way
        assert result.count("becalm_shared_live") >= 2, way
    assert sum(len(result.retries) for result in results.values()) > 1.5 * 3 * 60 * 0.2  # more than their own shares
    assert redis.says("HLEN", "becalm:{default}:who") == b":1"  # the others said goodbye


def test_shared_budget__without_its_store_a_program_lives_on_its_own_share(host, lab, redis):  # noqa: F811
    host.on("/", Reply(503, b"no"))
    redis.kill()
    result = lab(policy(redis.url), f"http://{host.address}/", repeat=50, period_ms=10)
    assert 0 < len(result.retries) <= 50 * 0.2 + 2
    assert result.count("becalm_redis_up") == 0
    assert result.count("becalm_redis_errors_total", error="refused") > 0
    assert result.count("becalm_shared_degraded") == 1


@pytest.mark.parametrize("way", WAYS)
def test_shared_budget__a_store_that_hangs_delays_nobody(host, start, redis, way):  # noqa: F811
    host.on("/", Reply(200, b"fine"))
    redis.pause()
    end = start(policy(redis.url), f"http://{host.address}/", period_ms=1, **WAYS[way])
    result = end()
    redis.go_on()
    assert {call["reason"] for call in result.calls} == {"ok"}
    assert result.count("becalm_redis_exchanges_total", result="ok") == 0
    assert result.count("becalm_shared_degraded") == 1


def test_shared_budget__a_name_is_looked_up(host, start, redis):  # noqa: F811
    host.on("/", Reply(200, b"fine"))
    url = f"redis://localhost:{redis.port}"
    end = start(policy(url), f"http://{host.address}/", repeat=2000, period_ms=5, quiet=1)
    wait_until(lambda: redis.says("EXISTS", "becalm:{default}:p:s:200000:100000") == b":1")
    del end


def test_shared_budget__a_forked_program_is_two_instances(host, lab, redis):  # noqa: F811
    host.on("/", Reply(200, b"fine"))
    result = lab(policy(redis.url), f"http://{host.address}/", repeat=100, period_ms=10, forks=1)
    (child,) = result.others
    assert child == {"child_connects": 1, "child_told": child["child_told"], "child_lost": 0}
    assert child["child_told"] > 0
    assert result.count("becalm_redis_connects_total") == 1
    assert result.count("becalm_redis_errors_total") == 0
    assert result.count("becalm_redis_up") == 1


def test_shared_budget__a_store_that_can_t_be_used_is_an_error_of_the_policy(tmp_path, host):
    text = "store: {redis: 'redis://127.0.0.1:1', passwordFile: missing}\n" + service(budget=SHARED)
    done = subprocess.run(command_of(tmp_path, text, f"http://{host.address}/", {}), capture_output=True, text=True)
    assert done.returncode == 1 and "store.passwordFile" in done.stderr
