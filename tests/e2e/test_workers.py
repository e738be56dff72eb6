# SPDX-License-Identifier: MIT
"""Workers share one breaker and one budget, whichever worker has the connection."""

import asyncio
import os
import resource
import socket
import subprocess

from conftest import PROGRAM, policy_of
from host import Reply
from load import Load, statuses
from message import request
from wire import ask


def calls(gateway, count, clients=16):
    """On a connection each, so that both workers get some."""
    make = lambda n: ("GET", request(fields={"Connection": "close"}))  # noqa: E731
    return Load(gateway.port, count=count, clients=clients, make=make).run_through()


def test_two_workers_share_one_breaker(pair):
    gateway, host = pair(
        rules="maxRetries: 0\nbreaker: {failureRateThreshold: 100, slidingWindowType: COUNT_BASED, slidingWindowSize: 40,\n"
        "  minimumNumberOfCalls: 40, waitDurationInOpenState: 60s}",
        workers=2,
    )
    host.on("/", Reply(503, b"down"))
    results = calls(gateway, 120, clients=1)
    assert host.count() == 40, "with a breaker each it would have taken twice as many"
    assert sum(result.answer.body == b"down" for result in results) == 40


def test_two_workers_share_one_budget(pair):
    gateway, host = pair(
        rules="maxRetries: 3\ninitialDelay: 1ms\nbreaker: {enabled: false}\noutlier: {enabled: false}\n"
        "budget: {kind: tokens, capacity: 50, refillPerSecond: 0}",
        workers=2,
    )
    host.on("/", Reply(503))
    results = calls(gateway, 300)
    assert statuses(results) == {503: 300}
    assert host.count() == 300 + 50, "each token is spent once, and no other"


def test_the_counts_of_all_workers_add_up(pair):
    gateway, host = pair(
        rules="maxRetries: 3\ninitialDelay: 1ms\nbreaker: {enabled: false}\noutlier: {enabled: false}\n"
        "budget: {kind: tokens, capacity: 50, refillPerSecond: 0}",
        workers=2,
    )
    host.on("/", Reply(503))
    calls(gateway, 300)
    gateway.expect_metric(50, "http_client_retry_attempts_total", service="a")
    gateway.expect_metric(350, "http_client_requests_total", service="a")
    gateway.expect_metric(300, "http_server_requests_total", service="a", code="503")
    gateway.expect_metric(300, "becalm_calls_total", service="a", result="failed")
    gateway.expect_metric(0, "http_client_concurrent_requests", service="a")


def test_a_second_gateway_on_the_same_address_does_not_start(pair, host):
    """SO_REUSEPORT would let it, and each would get half of the traffic."""
    gateway, there = pair(workers=2)
    done = subprocess.run(
        [
            PROGRAM,
            "proxy",
            "--set",
            f"listen=127.0.0.1:{gateway.port}",
            "--set",
            "admin=127.0.0.1:1",
            str(gateway.path),
        ],
        stderr=subprocess.PIPE,
        timeout=30,
    )
    assert done.returncode == 1 and b"in use" in done.stderr, done.stderr
    assert ask(gateway.port).status == 200


def test_an_admin_address_that_is_in_use_is_told_to_be_the_default(tmp_path):
    """The key is not written in the file, so the message names no line."""
    policy = tmp_path / "p.yaml"
    policy.write_text("services: {a: {}}\n")
    with socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", 9900))
            taken.listen()
        except OSError:
            pass  # another process has the port already
        done = subprocess.run([PROGRAM, "proxy", str(policy)], stderr=subprocess.PIPE, timeout=30)
    assert done.returncode == 1
    assert b"can't listen on 127.0.0.1:9900 (the default of admin): Address already in use" in done.stderr


def test_a_fixed_limit_is_never_exceeded(gateway, host):
    there = host()
    state = {"busy": 0, "most": 0}

    def reply(got):
        state["busy"] += 1
        state["most"] = max(state["most"], state["busy"])
        asyncio.get_running_loop().call_later(0.02, lambda: state.__setitem__("busy", state["busy"] - 1))
        return Reply(delay=0.025)

    there.on("/", reply)
    made = gateway(
        policy_of([there], rules="limit: {kind: fixed, max: 5}\ngate: {maxQueueTime: 10s, targetQueueTime: 10s}"),
        workers=2,
    )
    results = calls(made, 200, clients=40)
    assert statuses(results) == {200: 200} and 2 <= state["most"] <= 5, state


def test_workers__auto_is_as_many_as_the_process_may_run_on(gateway, host):
    """One worker per CPU of its affinity, however many CPUs the machine has."""
    cpu = min(os.sched_getaffinity(0))
    made = gateway(policy_of([host()]), workers="auto", wrapper=["taskset", "-c", str(cpu)])
    assert ", 1 worker\n" in made.log()


def test_workers__a_port_in_use_is_told_at_its_address(host, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "becalm.yaml").write_text(f"admin: none\nlisten:\n  - 127.0.0.1:0\n  - 127.0.0.1:{port}\n")
        done = subprocess.run([PROGRAM, "proxy", tmp_path / "becalm.yaml"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert f"becalm.yaml:4:5: error: can't listen on 127.0.0.1:{port}: Address already in use".encode() in done.stderr


def test_a_gateway_without_descriptors_says_why_it_does_not_start(host, tmp_path):
    """It ended without a word, or said that there was no memory, depending on how many there were."""
    (tmp_path / "becalm.yaml").write_text(policy_of([host()], "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nworkers: 2"))
    ended = 0
    for most in range(6, 20):
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # noqa: E731, B023
        done = subprocess.Popen([PROGRAM, "proxy", "becalm.yaml"], cwd=tmp_path, stderr=subprocess.PIPE, preexec_fn=few)
        told = done.stderr.readline().decode()
        done.terminate()
        done.stderr.close()
        ended += done.wait() == 1
        assert "Too many open files" in told or "1 service from" in told, (most, told)
    assert ended > 5, "there were enough, nearly always"
