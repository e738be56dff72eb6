# SPDX-License-Identifier: MIT
"""What a caller sees of a call: one answer, its own callbacks, its own result code."""

import socket
import threading

import pytest
from conftest import service
from host import Reply

INTERFACES = ["easy", "multi", "socket"]


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("plain", [0, 1])
def test_calls__a_healthy_call_is_one_attempt(host, lab, interface, plain):
    host.on("/", Reply(200, b"fine"))
    call = lab(service(), f"http://{host.address}/", interface=interface, plain=plain).call
    assert (call["code"], call["status"], call["body"], call["reason"]) == (0, 200, "fine", "ok")
    assert call["attempts"] == ["ok"] and call["heads"] == 1
    assert host.count() == 1


@pytest.mark.parametrize("interface", INTERFACES)
def test_calls__callbacks_see_the_final_answer_only(host, lab, interface):
    host.on("/", Reply(503, b"busy", {"x-a": "1", "x-b": "2"}), Reply(502, b"", end="close"), Reply(200, b"good"))
    result = lab(service(), f"http://{host.address}/", interface=interface)
    call = result.call
    assert (call["code"], call["status"], call["body"], call["bytes"]) == (0, 200, "good", 4)
    assert (call["heads"], call["lines"]) == (1, 3)
    assert call["attempts"] == ["rejected", "broken", "ok"]
    assert [retry["retry"] for retry in result.retries] == [1, 2]


@pytest.mark.parametrize("interface", INTERFACES)
def test_calls__the_last_failed_answer_is_passed_on_whole(host, lab, interface):
    host.on("/", Reply(503, b"x" * 100000))
    call = lab(service(maxRetries=1), f"http://{host.address}/", interface=interface).call
    assert (call["code"], call["status"], call["bytes"], call["heads"]) == (0, 503, 100000, 1)
    assert call["reason"] == "attempts_spent" and len(call["attempts"]) == 2


@pytest.mark.parametrize("length", [0, 100, 40000])
def test_calls__an_answer_that_is_kept_is_given_if_the_retry_is_not_sent_after_all(host, lab, length):
    """One call waits to retry when the other's failure opens the breaker: it gets the 503 that there was, all of it."""
    host.on("/", Reply(503, b"y" * length))
    policy = service(initialDelay="300ms", jitter="none",
                     breaker="{minimumNumberOfCalls: 2, per: attempt, waitDurationInOpenState: 60s}")  # fmt: skip
    calls = lab(policy, f"http://{host.address}/", interface="multi", at_once=2).calls
    for call in calls:
        assert (call["code"], call["status"], call["bytes"], call["heads"]) == (0, 503, length, 1)
        assert call["reason"] == "breaker_open" and len(call["attempts"]) == 1
    assert host.count() == 2 and max(call["took_ms"] for call in calls) >= 300


def test_calls__a_plain_handle_that_got_a_byte_is_not_retried(host, lab):
    host.on("/", Reply(503, b"busy"), Reply(200, b"good"))
    call = lab(service(), f"http://{host.address}/", plain=1).call
    assert (call["status"], call["body"], call["reason"]) == (503, "busy", "answer_delivered")


def test_calls__a_plain_handle_without_a_body_is_retried(host, lab):
    host.on("/", Reply(503, b""), Reply(200, b"good"))
    call = lab(service(), f"http://{host.address}/", plain=1).call
    assert (call["status"], call["body"], call["reason"]) == (200, "good", "ok")


def test_calls__fail_on_error_makes_a_plain_handle_s_errors_retriable(host, lab):
    host.on("/", Reply(503, b"busy"), Reply(200, b"good"))
    call = lab(service(), f"http://{host.address}/", plain=1, fail_on_error=1).call
    assert (call["code"], call["status"], call["body"]) == (0, 200, "good")
    host.on("/", Reply(404, b"no"))
    call = lab(service(), f"http://{host.address}/", plain=1, fail_on_error=1).call
    assert (call["code"], call["status"], call["reason"]) == (22, 404, "permanent")


@pytest.mark.parametrize("interface", INTERFACES)
def test_calls__nobody_listens(host, lab, interface):
    host.stop()
    call = lab(service(), f"http://{host.address}/", interface=interface, method="POST").call
    assert (call["code"], call["reason"]) == (7, "attempts_spent")
    assert call["attempts"] == ["refused"] * 3  # never sent, so that even a POST is tried again


def test_calls__a_name_that_does_not_exist(lab):
    policy = "services: {s: {match: {host: nowhere.invalid}, initialDelay: 1ms}}"
    call = lab(policy, "http://nowhere.invalid/").call
    assert call["code"] == 6 and call["attempts"][0] == "refused"


def test_calls__tls_that_is_none_is_not_retried(lab):
    """Whoever listens there does not wait to be spoken to, and does not speak TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def speak():
            peer, _ = listener.accept()
            with peer:
                peer.sendall(b"220 mail.example ready\r\n" * 10)
                peer.recv(65536)

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        call = lab(service(connectTimeout="20s"), f"https://127.0.0.1:{port}/").call  # certificates take their time to load
        thread.join(20)
    assert call["code"] == 35 and call["attempts"] == ["tls"]


@pytest.mark.parametrize("plain", [0, 1])
def test_calls__a_reset_get_is_retried_and_a_post_is_not(host, lab, plain):
    host.on("/", Reply(cut=0, end="reset"), Reply(200, b"good"))
    assert lab(service(), f"http://{host.address}/", plain=plain).call["body"] == "good"
    host.on("/", Reply(cut=0, end="reset"), Reply(200, b"good"))
    call = lab(service(), f"http://{host.address}/", plain=plain, data="x=1").call
    assert call["reason"] == "not_idempotent" and call["code"] in (52, 56)


def test_calls__a_cut_answer_has_been_delivered(host, lab):
    host.on("/", Reply(200, b"z" * 1000, cut=500, end="close"))
    call = lab(service(), f"http://{host.address}/").call
    assert call["code"] == 18 and call["attempts"] == ["ok"] and call["reason"] == "answer_delivered"


@pytest.mark.parametrize("interface", INTERFACES)
def test_calls__an_attempt_that_hangs_is_cut_and_made_again(host, lab, interface):
    host.on("/", Reply(cut=0, end="hang"), Reply(200, b"good"))
    call = lab(service(attemptTimeout="200ms"), f"http://{host.address}/", interface=interface).call
    assert call["attempts"] == ["timed_out", "ok"] and call["body"] == "good"


@pytest.mark.parametrize("plain", [0, 1])
def test_calls__a_post_that_hangs_is_not_made_again(host, lab, plain):
    host.on("/", Reply(cut=0, end="hang"), Reply(200, b"twice"))
    call = lab(service(attemptTimeout="100ms"), f"http://{host.address}/", plain=plain, data="a=1").call
    assert call["code"] == 28 and call["attempts"] == ["timed_out"]


def test_calls__a_slow_body_is_not_cut_by_the_attempt_s_timeout(host, lab):
    """A head in time is what counts; the rest takes as long as it takes."""
    slow = Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab", end="hang")
    host.on("/", slow)
    for plain in (0, 1):
        call = lab(service(attemptTimeout="100ms", deadline="200ms"), f"http://{host.address}/", plain=plain,
                   cancel_ms=1000).call  # fmt: skip
        assert call["attempts"] == ["ok"] and call["took_ms"] >= 900 and call["code"] == 42


def test_calls__redirections_are_followed_inside_of_an_attempt(host, lab):
    host.on("/", Reply(200, b"arrived"))
    host.on("/from", Reply(302, b"moved", {"Location": "/"}))
    assert lab(service(), f"http://{host.address}/from").call["body"] == "moved"


def test_calls__who_belongs_to_no_service_is_sent_once(host, lab):
    host.on("/", Reply(503, b"busy"))
    call = lab("services: {other: {}}", f"http://{host.address}/").call
    assert (call["status"], call["body"]) == (503, "busy") and host.count() == 1


def test_calls__endpoints_are_found_by_path_method_and_header(host, lab):
    host.on("/", Reply(500))
    policy = service(endpoints="{post: {match: {method: POST}}, tier: {match: {header: {x-tier: gold}}}, "
                               "deep: {match: {prefix: /deep}}}")  # fmt: skip
    for options, endpoint in (({}, "default"), ({"data": "x"}, "post"), ({"header": "X-Tier: gold"}, "tier")):
        result = lab(policy, f"http://{host.address}/", **options)
        assert result.count("becalm_arrivals_total", endpoint=endpoint) == 1, endpoint
    assert lab(policy, f"http://{host.address}/deep/er?q").count("becalm_arrivals_total", endpoint="deep") == 1


def test_calls__a_call_is_cancelled_from_another_thread(host, lab):
    host.on("/", Reply(503, b"busy"))
    waits = lab(service(initialDelay="30s", maxDelay="60s", deadline="200s", jitter="none"), f"http://{host.address}/",
                cancel_ms=300).call  # fmt: skip
    assert (waits["code"], waits["reason"]) == (42, "cancelled") and waits["took_ms"] < 20000
    host.on("/", Reply(cut=0, end="hang"))
    flies = lab(service(attemptTimeout="60s", deadline="100s"), f"http://{host.address}/", cancel_ms=300).call
    assert (flies["code"], flies["reason"]) == (42, "cancelled") and flies["took_ms"] < 20000


def test_calls__connections_are_kept(host, lab):
    host.on("/", Reply(200, b"fine"))
    calls = lab(service(), f"http://{host.address}/", repeat=20).calls
    assert len(calls) == 20 and host.connections == 1
    host.on("/", *[Reply(503, b"busy"), Reply(200, b"fine")] * 5)
    lab(service(), f"http://{host.address}/", repeat=5)
    assert host.connections == 2  # short bodies of failed answers are read to their end


@pytest.mark.parametrize("interface", ["multi", "socket"])
def test_calls__ten_thousand_at_once(host, lab, interface):
    host.on("/", Reply(200, b"fine"))
    result = lab(service(connectTimeout="30s", attemptTimeout="60s", deadline="100s", limit="{kind: none}"),
                 f"http://{host.address}/", interface=interface, at_once=10000, connections=200)  # fmt: skip
    assert [call["reason"] for call in result.calls] == ["ok"] * 10000
    assert host.count() == 10000 and host.connections <= 200


def test_calls__many_threads_share_a_client(host, lab):
    host.on("/", *[Reply(503, b""), Reply(200, b"fine"), Reply(200, b"fine")] * 200)
    result = lab(service(), f"http://{host.address}/", threads=8, repeat=40, operation="many")
    assert len(result.calls) == 320 and {call["code"] for call in result.calls} == {0}
    sent = result.count("http_client_requests_total", operation="many")
    assert sent == host.count() == 320 + result.count("http_client_retry_attempts_total", operation="many")
    assert result.count("http_client_concurrent_requests") == 0
    assert result.count("becalm_active_requests") == 0


def test_calls__a_handle_per_call_fills_no_memory(host, lab):
    host.on("/", Reply(200, b"fine"))
    assert len(lab(service(), f"http://{host.address}/", plain=1, fresh=1, repeat=600).calls) == 600
