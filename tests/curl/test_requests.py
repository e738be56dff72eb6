# SPDX-License-Identifier: MIT
"""Requests as the service sees them: bodies that are whole, headers that say how much time is left, keys that stay the
same."""

import time

import pytest
from conftest import in_time, service
from host import Reply

HEDGE = "{enabled: true, delay: 50ms, max: 1}"


def body_of(request):
    return bytes(request.body)


@pytest.mark.parametrize("interface", ["easy", "multi"])
def test_requests__a_body_in_memory_is_sent_again(host, lab, interface):
    host.on("/", Reply(503, b""), Reply(200, b"good"))
    call = lab(service(idempotent="true"), f"http://{host.address}/", data="a=1&b=2", interface=interface).call
    assert call["body"] == "good"
    assert [body_of(request) for request in host.requests] == [b"a=1&b=2"] * 2


def test_requests__a_body_from_a_callback_is_sent_again_after_its_seek(host, lab):
    host.on("/", Reply(503, b""), Reply(200, b"good"))
    call = lab(service(), f"http://{host.address}/", read="r" * 5000, seek=1).call
    assert call["body"] == "good" and call["seeks"] >= 1
    assert [body_of(request) for request in host.requests] == [b"r" * 5000] * 2


def test_requests__a_body_that_can_t_go_back_is_not_retried(host, lab):
    host.on("/", Reply(503, b"busy"))
    call = lab(service(), f"http://{host.address}/", read="gone").call
    assert (call["reason"], call["status"], call["body"]) == ("not_replayable", 503, "busy") and host.count() == 1


def test_requests__a_body_that_can_t_go_back_is_retried_if_it_was_never_sent(host, lab):
    host.stop()
    call = lab(service(restart="{enabled: false}"), f"http://{host.address}/", read="gone").call
    assert call["attempts"] == ["refused"] * 3 and call["reason"] == "attempts_spent"


def test_requests__a_plain_handle_s_body_is_not_sent_again(host, lab):
    host.on("/", Reply(503, b""))
    call = lab(service(idempotent="true"), f"http://{host.address}/", data="a=1", plain=1).call
    assert call["reason"] == "not_replayable"


def test_requests__each_attempt_says_how_much_time_is_left(host, lab):
    host.on("/", Reply(503, b"", delay=0.1), Reply(200, b"good"))
    lab(service(attemptTimeout="60s"), f"http://{host.address}/", deadline_ms=30000, header=["x-mine: 1", "Accept:"])
    first, second = [int(request.get("x-request-deadline-ms")) for request in host.requests]
    assert first <= 30000 and second <= first - 100
    assert [request.get("x-envoy-attempt-count") for request in host.requests] == ["1", "2"]
    assert [request.get("x-mine") for request in host.requests] == ["1", "1"]
    assert host.requests[0].get("accept") is None


def test_requests__the_caller_s_own_deadline_header_is_left_alone(host, lab):
    host.on("/", Reply(200))
    lab(service(), f"http://{host.address}/", header="X-Request-Deadline-Ms: 77")
    assert [value for name, value in host.requests[0].fields if name == "x-request-deadline-ms"] == ["77"]


def test_requests__a_deadline_that_is_over_ends_the_attempt(host, lab):
    host.on("/", Reply(cut=0, end="hang"))
    call = in_time(lambda factor: lab(service(), f"http://{host.address}/", deadline_ms=200 * factor).call,
                   lambda call: host.count() == 1)  # fmt: skip
    assert (call["code"], call["reason"]) == (28, "deadline") and host.count() == 1


def test_requests__a_fresh_key_for_each_call_and_the_same_for_its_attempts(host, lab):
    host.on("/", *[Reply(503, b""), Reply(200, b"good")] * 2)
    result = lab(service(), f"http://{host.address}/", data="pay", key=1, repeat=2)
    keys = [request.get("idempotency-key") for request in host.requests]
    assert [call["body"] for call in result.calls] == ["good", "good"]
    assert keys[0] == keys[1] != keys[2] == keys[3] and len(keys[0]) == 38  # a UUID in quotes


def test_requests__a_key_of_the_caller_s_allows_retries_unless_keys_are_off(host, lab):
    host.on("/", Reply(503, b""), Reply(200, b"good"))
    options = {"data": "pay", "header": "Idempotency-Key: abc-1"}
    assert lab(service(), f"http://{host.address}/", **options).call["body"] == "good"
    host.on("/", Reply(503, b""))
    call = lab(service(idempotencyKey="off"), f"http://{host.address}/", **options).call
    assert call["reason"] == "not_idempotent"


def test_requests__a_hedge_overtakes_an_attempt_that_hangs(host, lab):
    host.on("/", Reply(cut=0, end="hang"), Reply(200, b"fast"))
    policy = service(hedge=HEDGE, limit="{kind: none}")
    result = lab(policy, f"http://{host.address}/", interface="multi", set="httpget:1")
    assert (result.call["body"], result.call["status"], result.call["copied"]) == ("fast", 200, True)
    assert result.call["attempts"] == ["cancelled", "ok"] and result.call["heads"] == 1
    assert result.count("becalm_hedges_total", result="won") == 1


def test_requests__the_cookies_of_a_hedge_that_won_are_the_handle_s(host, lab):
    host.on("/", Reply(cut=0, end="hang"), Reply(200, b"fast", {"Set-Cookie": "name=sweet"}))
    policy = service(hedge=HEDGE, limit="{kind: none}")
    call = lab(policy, f"http://{host.address}/", interface="multi", set="httpget:1", cookies=1).call
    assert call["copied"] and call["cookies"] == ["sweet"]


def test_requests__a_hedge_that_was_paused_goes_on(host, lab):
    """Its handle is not the one that the caller knows."""
    host.on("/", Reply(cut=0, end="hang"), Reply(200, b"fast"))
    policy = service(hedge=HEDGE, limit="{kind: none}")
    call = lab(policy, f"http://{host.address}/", interface="multi", set="httpget:1", pauses=1, deadline_ms=20000).call
    assert (call["code"], call["body"], call["copied"]) == (0, "fast", True)


def test_requests__a_hedge_has_the_cookies_of_the_handle(host, lab):
    """And the handle forgets options that are reset."""
    forget = [("Set-Cookie", "session=; Max-Age=0"), ("Set-Cookie", "name=sweet")]
    host.on("/", Reply(cut=0, end="hang"), Reply(200, b"fast", forget))
    policy = service(hedge=HEDGE, limit="{kind: none}")
    call = lab(policy, f"http://{host.address}/", interface="multi", set="httpget:1", cookies=1,
               cookie="Set-Cookie: session=abc; domain=127.0.0.1; path=/").call  # fmt: skip
    assert [request.get("cookie") for request in host.requests] == ["session=abc"] * 2
    assert call["copied"] and call["cookies"] == ["sweet"]


def test_requests__a_hedge_that_lost_writes_no_cookies(host, lab, tmp_path):
    """Its list, without the cookies that the handle has got meanwhile, would replace the caller's file."""
    host.on("/", Reply(200, b"slow", delay=0.5), Reply(cut=0, end="hang"))
    policy = service(hedge=HEDGE, limit="{kind: none}", attemptTimeout="20s", deadline="40s")
    call = lab(policy, f"http://{host.address}/", interface="multi", set="httpget:1", cookies=1, jar=tmp_path / "jar",
               cookie="Set-Cookie: session=abc; domain=127.0.0.1; path=/; Max-Age=1000").call  # fmt: skip
    assert (call["body"], call["copied"], host.count()) == ("slow", False, 2)
    assert (call["cookies"], call["jar"]) == (["abc"], 6)


def test_requests__a_hedge_s_failed_answer_is_given_with_its_status(host, lab):
    """The handle's own attempt hangs, and both hedges fail: the caller asks the handle that has the answer."""
    fields = {"Set-Cookie": "name=sweet"}
    host.on("/", Reply(cut=0, end="hang"), Reply(503, b"busy", fields))
    policy = service(hedge="{enabled: true, delay: 50ms, max: 2, percent: 100, cap: 10}", limit="{kind: none}",
                     maxRetries=2, attemptTimeout="1s", deadline="2s")  # fmt: skip
    call = lab(policy, f"http://{host.address}/", interface="multi", set="httpget:1", cookies=1).call
    assert (call["code"], call["status"], call["body"], call["copied"]) == (0, 503, "busy", True)
    assert call["cookies"] == ["sweet"]


@pytest.mark.parametrize("body", [{}, {"data": "pay"}, {"form": "pay"}, {"read": "pay"}, {"read": "pay", "method": "GET"}])
def test_requests__a_request_that_was_not_told_is_not_hedged(host, lab, body):
    """Before it is sent, it is unknown whether it may be sent twice, and whether both attempts can read its body."""
    host.on("/", Reply(200, b"slow", delay=0.3))
    policy = service(hedge=HEDGE, limit="{kind: none}")
    call = lab(policy, f"http://{host.address}/", interface="multi", body_plain=1, **body).call
    assert (call["body"], call["attempts"]) == ("slow", ["ok"]) and host.count() == 1
    assert bytes(host.requests[0].body).count(b"pay") == (1 if body else 0)


def test_requests__as_many_hedges_as_there_may_be(host, lab):
    """The last of five attempts wins, and each has the key that the first was given."""
    host.on("/", *[Reply(cut=0, end="hang")] * 4, Reply(200, b"fast"))
    policy = service(hedge="{enabled: true, delay: 50ms, max: 4, percent: 100, cap: 10}", limit="{kind: none}")
    result = lab(policy, f"http://{host.address}/", interface="multi", data="pay", key=1)
    assert (result.call["body"], sorted(result.call["attempts"])) == ("fast", ["cancelled"] * 4 + ["ok"])
    assert len({request.get("idempotency-key") for request in host.requests}) == 1


def test_requests__the_blocking_interface_does_not_hedge(host, lab):
    host.on("/", Reply(200, b"slow", delay=0.3))
    policy = service(hedge=HEDGE, limit="{kind: none}")
    assert lab(policy, f"http://{host.address}/", set="httpget:1").call["attempts"] == ["ok"] and host.count() == 1


def test_requests__retry_after_is_waited_for(host, lab):
    host.on("/", Reply(503, b"", {"Retry-After": "1"}), Reply(200, b"good"))
    began = time.monotonic()
    result = lab(service(), f"http://{host.address}/")
    assert result.call["body"] == "good" and time.monotonic() - began >= 1
    assert result.retries[0]["reason"] == "hint" and result.retries[0]["retry_after"] == "1"
    assert result.retries[0]["slept_us"] >= 1000000


def test_requests__a_mark_stops_retries(host, lab):
    host.on("/", Reply(503, b"no more", {"Becalm-Retry": "overloaded; scope=service; reason=shed"}))
    call = lab(service(), f"http://{host.address}/").call
    assert (call["reason"], call["body"]) == ("stopped", "no more") and host.count() == 1


def test_requests__grpc_codes_are_read(host, lab):
    grpc = {"Content-Type": "application/grpc"}
    host.on("/", Reply(200, b"", {**grpc, "grpc-status": "14"}), Reply(200, b"", {**grpc, "grpc-status": "0"}))
    call = lab(service(idempotent="true"), f"http://{host.address}/", data="x").call
    assert call["attempts"] == ["rejected", "ok"]
    host.on("/", Reply(200, b"", {**grpc, "grpc-status": "14", "grpc-retry-pushback-ms": "-1"}))
    assert lab(service(idempotent="true"), f"http://{host.address}/", data="x").call["reason"] == "stopped"


def test_requests__grpc_codes_are_read_from_trailers(host, lab):
    """They come when the answer is on its way: too late for a retry, but not to be counted."""
    grpc = {"Content-Type": "application/grpc"}
    for status, reason in (("14", "answer_delivered"), ("0", "ok")):
        host.on("/", Reply(200, b"message", grpc, chunked=True, trailers=(("grpc-status", status),)))
        call = lab(service(idempotent="true"), f"http://{host.address}/", data="x").call
        assert (call["code"], call["body"], call["reason"]) == (0, "message", reason)


def test_requests__a_call_of_grpc_says_its_time_in_its_own_words(host, lab):
    """Its grpc-timeout is the call's deadline, and each attempt carries the time that is left."""
    grpc = {"Content-Type": "application/grpc"}
    host.on("/", Reply(200, b"", {**grpc, "grpc-status": "14"}, delay=0.1), Reply(200, b"", {**grpc, "grpc-status": "0"}))
    headers = ["x-mine: 1", "Content-Type: application/grpc+proto", "grpc-timeout: 2S", "te: trailers"]
    call = lab(service(idempotent="true", attemptTimeout="60s", deadline="100s"), f"http://{host.address}/", data="x",
               header=headers).call  # fmt: skip
    assert call["attempts"] == ["rejected", "ok"]
    left = []
    for request in host.requests:
        values = [value for name, value in request.fields if name == "grpc-timeout"]
        assert len(values) == 1 and values[0].endswith("u")
        left.append(int(values[0][:-1]))
        assert (request.get("x-mine"), request.get("te")) == ("1", "trailers")
    assert 0 < left[1] <= left[0] - 100000 and left[0] <= 2000000
    assert [request.get("grpc-previous-rpc-attempts") for request in host.requests] == [None, "1"]


def test_requests__grpc_timeout_ends_the_call(host, lab):
    host.on("/", Reply(cut=0, end="hang"))
    headers = ["content-type: application/grpc", "grpc-timeout: 200m"]
    call = lab(service(attemptTimeout="60s", deadline="100s"), f"http://{host.address}/", data="x", header=headers).call
    assert (call["code"], call["reason"]) == (28, "deadline") and call["took_ms"] < 50000
    host.on("/", Reply(200, b"late", delay=0.5))
    headers[0] = "content-type: text/plain"
    call = lab(service(attemptTimeout="60s", deadline="100s"), f"http://{host.address}/", data="x", header=headers).call
    assert call["body"] == "late" and host.requests[-1].get("grpc-timeout") == "200m"  # not ours to read
