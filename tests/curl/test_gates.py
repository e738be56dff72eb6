# SPDX-License-Identifier: MIT
"""The quality gates of a resilience change, for the library: each is asked of real calls to a real host."""

import pytest
from conftest import service
from host import Reply


def test_gates__an_open_breaker_calls_nobody(host, lab):
    host.on("/", Reply(503, b"busy"))
    policy = service(maxRetries=0, breaker="{minimumNumberOfCalls: 5, waitDurationInOpenState: 60s}")
    result = lab(policy, f"http://{host.address}/", repeat=20)
    reasons = [call["reason"] for call in result.calls]
    assert host.count() == 5 and reasons[5:] == ["breaker_open"] * 15
    assert {call["code"] for call in result.calls[5:]} == {7}
    assert result.count("circuit_breaker_state") == 2
    assert result.count("circuit_breaker_transitions_total", to="OPEN") == 1
    assert result.count("becalm_shed_total", reason="breaker_open") == 15


def test_gates__two_clients_do_not_retry_at_the_same_instant(host, lab):
    """Over a hundred calls of each the waits spread over all of the range, and no two programs draw the same."""
    host.on("/", Reply(503, b""))
    policy = service(initialDelay="20ms", maxRetries=1, breaker="{enabled: false}")
    waits = []
    for _ in range(2):
        result = lab(policy, f"http://{host.address}/", interface="multi", at_once=100)
        waits.append([retry["jittered_us"] for retry in result.retries])
        assert len(waits[-1]) == 100
        assert {retry["delay_us"] for retry in result.retries} == {20000}
        quarters = {min(3, wait // 5000) for wait in waits[-1]}
        assert quarters == {0, 1, 2, 3} and max(waits[-1]) <= 20000
    assert len(set(waits[0]) & set(waits[1])) < 20


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_gates__the_attempts_of_a_call_are_counted(host, lab, retries):
    host.on("/", Reply(503, b""))
    call = lab(service(maxRetries=retries), f"http://{host.address}/").call
    assert host.count() == retries + 1 == len(call["attempts"])
    assert call["reason"] == ("attempts_spent" if retries else "retries_off")


def test_gates__there_is_a_budget_and_it_is_seen(host, lab):
    host.on("/", Reply(503, b""))
    policy = service(budget="{kind: tokens, capacity: 5, refillPerSecond: 0}", breaker="{enabled: false}")
    result = lab(policy, f"http://{host.address}/", repeat=20)
    assert host.count() == 20 + 5
    assert result.count("becalm_retry_overflow_total", reason="budget_empty") > 10
    assert result.count("becalm_budget_left") < 1
    assert result.count("http_client_retry_attempts_total") == 5


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 406, 409, 410, 411, 412, 413, 415, 422, 451])
def test_gates__what_stays_wrong_is_not_retried(host, lab, status):
    host.on("/", Reply(status, b"no"))
    call = lab(service(), f"http://{host.address}/").call
    assert (call["status"], call["body"]) == (status, "no") and host.count() == 1


def test_gates__429_is_retried(host, lab):
    host.on("/", Reply(429, b""), Reply(200, b"good"))
    assert lab(service(), f"http://{host.address}/").call["attempts"] == ["rate_limited", "ok"]


def test_gates__the_time_that_is_left_travels_and_is_no_fresh_timeout(host, lab):
    host.on("/", Reply(503, b"", delay=0.2), Reply(503, b"", delay=0.2), Reply(200, b""))
    lab(service(deadline="60s", attemptTimeout="60s"), f"http://{host.address}/")
    left = [int(request.get("x-request-deadline-ms")) for request in host.requests]
    assert left[0] <= 60000 and left[1] <= left[0] - 200 and left[2] <= left[1] - 200


def test_gates__slow_calls_open_the_breaker(host, lab):
    host.on("/", Reply(200, b"late", delay=0.1))
    policy = service(breaker="{slowCallRateThreshold: 50, slowCallDurationThreshold: 20ms, minimumNumberOfCalls: 3, "
                             "waitDurationInOpenState: 60s}")  # fmt: skip
    result = lab(policy, f"http://{host.address}/", repeat=6)
    assert [call["reason"] for call in result.calls] == ["ok"] * 3 + ["breaker_open"] * 3


def test_gates__the_breaker_closes_when_the_service_is_back(host, lab):
    host.on("/", *[Reply(503, b"")] * 3, Reply(200, b"fine"))
    policy = service(maxRetries=0, breaker="{minimumNumberOfCalls: 3, waitDurationInOpenState: 1s}")
    result = lab(policy, f"http://{host.address}/", threads=1, repeat=20, pause_ms=120)
    reasons = [call["reason"] for call in result.calls]
    assert "breaker_open" in reasons and reasons[-1] == "ok"
    assert result.count("circuit_breaker_transitions_total", to="CLOSED") == 1
    assert result.count("circuit_breaker_state") == 0


def test_gates__a_retry_is_told_with_all_its_fields(host, lab):
    host.on("/", Reply(503, b"", {"Retry-After": "0"}), Reply(200, b"good"))
    result = lab(service(), f"http://{host.address}/", operation="checkout", header="X-Request-Id: r-7")
    told = result.retries[0]
    assert (told["operation"], told["service"], told["retry"], told["of"]) == ("checkout", "s", 1, 2)
    assert (told["outcome"], told["status"], told["retry_after"], told["request_id"]) == ("rejected", 503, "0", "r-7")
    assert told["method"] == "GET" and told["slept_us"] >= told["jittered_us"]
    assert result.count("becalm_calls_total", operation="checkout", result="after_retry", reason="ok") == 1
    assert result.count("becalm_calls_total", result="after_retry", reason="ok") == 1
