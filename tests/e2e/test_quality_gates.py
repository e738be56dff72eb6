# SPDX-License-Identifier: MIT
"""The nine gates that a resilience change must pass, one test each, with policies/quality-gates.yaml."""

import email.utils
import json
import pathlib
import statistics
import subprocess
import threading
import time

import pytest
from conftest import PROGRAM, ROOT
from host import Reply, wait_until
from load import Load, statuses
from message import request

POLICY = (ROOT / "policies/quality-gates.yaml").read_text()
NO_BUDGET = "defaults.budget.kind=none"
NO_BREAKER = "defaults.breaker.enabled=false"


@pytest.fixture
def gated(gateway, host):
    def make(*sets, instances=1):
        there = host()
        hosts = f'services.dependency.hosts=["{there.address}"]'
        made = [gateway(POLICY, sets=[hosts, *sets]) for _ in range(instances)]
        return (made[0] if instances == 1 else made), there

    return make


def test_gate_1_an_open_breaker_sends_nothing(gated):
    gateway, host = gated()
    host.on("/", Reply(503))
    wait_until(lambda: "breaker_open" in gateway.ask().get("proxy-status", ""))
    seen = host.count()
    host.forget()
    until = time.monotonic() + 0.5  # it is open for 0.8 to 1 s
    refused = 0
    while time.monotonic() < until:
        answer = gateway.ask()
        refused += json.loads(answer.body)["reason"] == "breaker_open"
        assert "attempts=0" in answer.get("becalm-explain")
    assert refused > 5 and host.count() == 0
    assert seen >= 20, "and not before it had reason to"


def test_gate_2_two_instances_do_not_retry_at_the_same_instant(gated):
    """The wait before a retry, 100 times in two gateways that got their requests at the same moment: the
    wait that each chose, and that the host saw no retry before its end. How much later a busy machine sends the retry
    does not matter."""
    gateways, host = gated(NO_BUDGET, NO_BREAKER, instances=2)
    host.on("*", lambda got: Reply(503) if got.get("x-envoy-attempt-count") == "1" else Reply(200))
    for number in range(100):
        both = [
            gateway.wire().send(request(path=f"/{number}", fields={"X-Request-Id": f"{number}-{n}"}))
            for n, gateway in enumerate(gateways)
        ]
        for wire in both:
            assert wire.answer().status == 200
            wire.close()
    waits = {}
    for gateway in gateways:
        wait_until(lambda: len(gateway.log_lines('"message":"retry"')) == 100)
        for line in map(json.loads, gateway.log_lines('"message":"retry"')):
            waits[line["request_id"]] = line["jittered_ms"]
    for number in range(100):
        for who in "01":
            first, second = (each.at for each in host.got(f"/{number}") if each.get("x-request-id") == f"{number}-{who}")
            assert (second - first) * 1000 > waits[f"{number}-{who}"] - 1
    close = sum(abs(waits[f"{number}-0"] - waits[f"{number}-1"]) < 1 for number in range(100))
    assert close <= 20, f"{close} of 100 pairs retried within the same millisecond"
    every = waits.values()
    assert statistics.pstdev(every) > 8 and min(every) < 15 and max(every) > 30, "full jitter: 0 to 50 ms"


def test_gate_3_the_attempt_cap_is_enforced(gated):
    gateway, host = gated(NO_BUDGET, NO_BREAKER)
    host.on("*", Reply(503))
    for number in range(20):
        assert gateway.ask(path=f"/{number}").status == 503
        assert host.count(f"/{number}") == 3


def test_gate_4_the_retry_budget_holds_and_can_be_watched(gated):
    gateway, host = gated(NO_BREAKER)
    host.on("/bad", Reply(503))
    results = Load(gateway.port, count=400, clients=16, make=lambda n: ("GET", request(path="/bad"))).run_through()
    assert statuses(results) == {503: 400}
    retries = host.count() - 400
    assert 0 < retries <= 40 + 10, f"{retries} retries: a tenth of 400, and one for each of the window's 10 seconds"
    gateway.expect_metric(retries, "http_client_retry_attempts_total", service="dependency")
    assert gateway.metric("becalm_retry_overflow_total", service="dependency", reason="budget_empty") > 0
    assert any(row.startswith("becalm_budget_left") for row in gateway.metrics())
    ratio = gateway.metric("becalm_budget_retry_ratio", service="dependency")
    assert 0 < ratio <= 50 / 400


@pytest.mark.parametrize(
    "status", [code for code in (*range(400, 419), 421, 422, 423, 424, 425, 426, 428, 431, 451) if code != 418]
)
def test_gate_5_a_permanent_error_is_not_retried(gated, status):
    gateway, host = gated(NO_BUDGET, NO_BREAKER)
    host.on("/", Reply(status, b"no"))
    answer = gateway.ask()
    assert (answer.status, answer.body, host.count()) == (status, b"no", 1)


def test_gate_5_and_429_is(gated):
    gateway, host = gated(NO_BUDGET, NO_BREAKER)
    host.on("/", Reply(429), Reply(200))
    assert gateway.ask().status == 200 and host.count() == 2


def test_gate_6_the_deadline_is_passed_on_not_a_fresh_timeout(gated):
    """In with 30 s, 0.7 s spent: out with 29.3 s."""
    gateway, host = gated(NO_BUDGET, NO_BREAKER, "defaults.attemptTimeout=40s", "defaults.deadline=40s")
    host.on("/", Reply(503, delay=0.7), Reply(200))
    assert gateway.ask(fields={"X-Request-Deadline-Ms": "30000"}).status == 200
    first, second = (int(got.get("x-request-deadline-ms")) for got in host.requests)
    assert 29000 < first <= 30000 and 20000 < second <= first - 700


def test_gate_7_slow_calls_open_the_breaker(gated):
    told = subprocess.run(
        [PROGRAM, "check", "--explain", "dependency", str(ROOT / "policies/quality-gates.yaml")],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        timeout=60,
    ).stdout
    assert any("slowCallRateThreshold" in line and "80" in line for line in told.splitlines()), "it is configured"
    gateway, host = gated("defaults.breaker.slowCallDurationThreshold=100ms")
    host.on("/", Reply(200, delay=0.2))
    results = Load(gateway.port, count=60, clients=10, make=lambda n: ("GET", request(path="/"))).run_through()
    told = statuses(results)
    assert told[200] >= 16 and told.get(503, 0) > 0, f"all were answered well, and slowly: {told}"
    assert host.count() < 60


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_gate_8_retry_after_is_honoured(gated, form):
    gateway, host = gated(NO_BUDGET, NO_BREAKER)
    now = time.time()
    dates = {
        "Date": email.utils.formatdate(now, usegmt=True),
        "Retry-After": email.utils.formatdate(now + 1, usegmt=True),
    }
    host.on("/", Reply(503, fields={"Retry-After": "1"} if form == "seconds" else dates), Reply(200))
    assert gateway.ask().status == 200
    first, second = host.requests
    assert 1 <= second.at - first.at < 30, "one second, and up to half as much again, and what a busy machine adds"


def test_gate_8_a_wait_beyond_the_deadline_is_passed_on_at_once(gated):
    gateway, host = gated(NO_BUDGET, NO_BREAKER)
    host.on("/", Reply(503, fields={"Retry-After": "100"}))
    begin = time.monotonic()
    answer = gateway.ask()
    assert answer.status == 503 and answer.get("retry-after") == "100" and host.count() == 1
    assert time.monotonic() - begin < 60


def test_gate_9_game_day(gated):
    """A dependency fails for three seconds under load; the curve of its recovery is saved beside the program."""
    gateway, host = gated()
    load = Load(gateway.port, rate=100, seconds=120, make=lambda n: ("GET", request(path="/")))
    load.start()
    begin = time.monotonic()
    load.wait(100)
    host.on("/", Reply(503))
    fault = time.monotonic()
    time.sleep(3)
    host.on("/", Reply(200))
    healed = time.monotonic()
    wait_until(lambda: [result.status for result in load.results[-20:]] == [200] * 20)
    healthy = max(healed + 2, time.monotonic())
    load.wait(120, since=healthy)
    results = load.stop()
    curve = pathlib.Path(PROGRAM).parent / "recovery-curve.csv"
    curve.write_text(curve_of(results, host, begin))
    during = [got for got in host.requests if fault + 1 < got.at < healed]
    assert len(during) < 100, f"the breaker keeps {len(during)} of 200 calls and their retries from it"
    late = [result for result in results if result.at > healthy]
    assert len(late) > 100 and statuses(late) == {200: len(late)}, statuses(late)
    assert all(result.answer is not None for result in results)


def curve_of(results, host, begin):
    """A row for each 100 ms: requests, successes, and requests at the host."""
    rows = ["second,asked,succeeded,sent"]
    last = max(result.at for result in results)
    for tenth in range(int((last - begin) * 10) + 1):
        low, high = begin + tenth / 10, begin + (tenth + 1) / 10
        asked = [result for result in results if low <= result.at < high]
        sent = sum(low <= got.at < high for got in list(host.requests))
        rows.append(f"{tenth / 10:.1f},{len(asked)},{sum(result.status == 200 for result in asked)},{sent}")
    return "\n".join(rows) + "\n"


def test_after_a_blip_retry_traffic_ends_within_max_delay(gated):
    gateway, host = gated(NO_BUDGET, NO_BREAKER)
    host.on("/", Reply(503))
    callers = [threading.Thread(target=gateway.ask) for _ in range(50)]
    for caller in callers:
        caller.start()
    host.wait(50)
    host.on("/", Reply(200))
    over = time.monotonic()
    for caller in callers:
        caller.join(30)
    assert max(got.at for got in host.requests) <= over + 1 + 10, "maxDelay is 1 s; the others are for a busy machine"
    seen = host.count()
    time.sleep(0.3)
    assert host.count() == seen
