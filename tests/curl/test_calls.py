# SPDX-License-Identifier: MIT
"""A call as its caller sees it: one answer, its own callbacks, its own result code."""

import os
import socket
import threading

import pytest
from conftest import in_time, service
from host import Host, Reply

INTERFACES = ["easy", "multi", "socket"]
SOAK = os.environ.get("BECALM_SOAK") == "1"


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
@pytest.mark.parametrize("answers", [[200], [503, 200]])
def test_calls__what_the_caller_refuses_is_not_given_to_it_again(host, lab, interface, answers):
    host.on("/", *[Reply(status, b"fine") for status in answers])
    call = lab(service(), f"http://{host.address}/", interface=interface, refuses=1).call
    assert (call["code"], call["reason"]) == (23, "answer_delivered")
    assert (call["heads"], call["lines"], call["bytes"]) == (1, 3, 0)
    assert call["attempts"] == (["rejected", "ok"] if len(answers) > 1 else ["ok"])


@pytest.mark.parametrize("interface", INTERFACES)
def test_calls__the_last_failed_answer_is_passed_on_whole(host, lab, interface):
    host.on("/", Reply(503, b"x" * 100000))
    call = lab(service(maxRetries=1), f"http://{host.address}/", interface=interface).call
    assert (call["code"], call["status"], call["bytes"], call["heads"]) == (0, 503, 100000, 1)
    assert call["reason"] == "attempts_spent" and len(call["attempts"]) == 2


@pytest.mark.parametrize("length", [0, 100, 40000])
def test_calls__an_answer_that_is_kept_is_given_if_the_retry_is_not_sent_after_all(host, lab, length):
    """One call waits to retry when the failure of the other call opens the breaker: it gets its whole earlier 503."""
    host.on("/", Reply(503, b"y" * length))
    policy = service(initialDelay="300ms", jitter="none", attemptTimeout="60s", deadline="100s",
                     breaker="{minimumNumberOfCalls: 2, per: attempt, waitDurationInOpenState: 60s}")  # fmt: skip
    calls = lab(policy, f"http://{host.address}/", interface="multi", at_once=2).calls
    for call in calls:
        assert (call["code"], call["status"], call["bytes"], call["heads"]) == (0, 503, length, 1)
        assert call["reason"] == "breaker_open" and len(call["attempts"]) == 1
    assert host.count() == 2 and max(call["took_ms"] for call in calls) >= 300


@pytest.mark.parametrize("pauses", [0, 1])
def test_calls__the_trailers_of_an_answer_that_was_kept_come_after_its_body(host, lab, pauses):
    host.on("/", Reply(503, b"y" * 100, chunked=True, trailers=(("X-T", "1"),)))
    policy = service(initialDelay="300ms", jitter="none", attemptTimeout="60s", deadline="100s",
                     breaker="{minimumNumberOfCalls: 2, per: attempt, waitDurationInOpenState: 60s}")  # fmt: skip
    for call in lab(policy, f"http://{host.address}/", interface="multi", at_once=2, pauses=pauses).calls:
        assert (call["status"], call["bytes"], call["reason"]) == (503, 100, "breaker_open")
        assert call["lines_before"] == 3 < call["lines"]


@pytest.mark.parametrize("alone", [0, 1])
@pytest.mark.parametrize("length", [100, 40000])
@pytest.mark.parametrize("retries", [0, 2])
def test_calls__a_caller_that_pauses_gets_the_answer_when_it_goes_on(host, lab, length, retries, alone):
    """With retries it was kept, and is given when the breaker has opened; without, it comes straight from the host."""
    host.on("/", Reply(503, b"y" * length))
    policy = service(initialDelay="300ms", jitter="none", maxRetries=retries, attemptTimeout="60s", deadline="100s",
                     breaker="{minimumNumberOfCalls: 2, per: attempt, waitDurationInOpenState: 60s}")  # fmt: skip
    calls = lab(policy, f"http://{host.address}/", interface="multi", at_once=2, pauses=1,
                pause_alone=alone).calls  # fmt: skip
    assert [(call["code"], call["status"], call["bytes"]) for call in calls] == [(0, 503, length)] * 2


@pytest.mark.parametrize("alone", [0, 1])
def test_calls__in_a_callback_of_an_answer_that_goes_on_others_wait(host, lab, alone):
    host.on("/", Reply(200, b"y" * 1000))
    result = lab(service(), f"http://{host.address}/", interface="multi", pauses=1, pause_alone=alone, meddles=1)
    assert result.others[0]["meddled"] == [8, 8, 8, 8]  # CURLM_RECURSIVE_API_CALL
    assert (result.call["code"], result.call["bytes"]) == (0, 1000)


def test_calls__little_of_an_answer_that_failed_is_kept(host, lab):
    """The rest waits in the socket: the memory is that of a short one."""
    policy = service(initialDelay="500ms", jitter="none", maxRetries=1)
    used = []
    for length in (10, 32 << 20):
        host.on("/", Reply(503, b"y" * length), Reply(200, b"good"))
        result = lab(policy, f"http://{host.address}/", state=1)
        assert result.call["body"] == "good"
        used.append(result.others[0]["memory_kb"])
    assert used[1] < used[0] + 8000


def test_calls__when_the_breaker_is_told_of_the_call_that_opened_it_is_counted(host, lab):
    host.on("/", Reply(cut=0, end="reset"))
    policy = service(maxRetries=0, breaker="{mode: consecutive, failureThreshold: 1, waitDurationInOpenState: 60s}")
    result = lab(policy, f"http://{host.address}/")
    assert result.call["attempts"] == ["broken"]
    assert result.others == [{"breaker": ["s", "CLOSED", "OPEN"], "active": 0}]


@pytest.mark.parametrize("length", [4, 4 << 20])
def test_calls__a_caller_that_takes_its_time_does_not_make_the_service_slow(host, lab, length):
    host.on("/", Reply(200, b"x" * length))
    policy = service(breaker="{minimumNumberOfCalls: 1, slowCallRateThreshold: 50, slowCallDurationThreshold: 1s}")
    result = lab(policy, f"http://{host.address}/", write_ms=1500)
    assert (result.call["code"], result.call["bytes"], result.others) == (0, length, [])


def test_calls__who_was_refused_is_told_why(host, lab):
    host.on("/", Reply(503, b""))
    policy = service(maxRetries=0, breaker="{minimumNumberOfCalls: 2, waitDurationInOpenState: 60s}")
    *_, call = lab(policy, f"http://{host.address}/", repeat=3).calls
    assert (call["code"], call["reason"]) == (7, "breaker_open") and "breaker" in call["error"]
    host.on("/", Reply(cut=0, end="hang"))
    call = lab(service(attemptTimeout="100ms", maxRetries=0), f"http://{host.address}/").call
    assert call["code"] == 28 and call["error"] not in ("", "stale")
    host.stop()
    assert "connect" in lab(service(maxRetries=0), f"http://{host.address}/").call["error"]  # libcurl's own words


def test_calls__a_connection_that_is_not_made_in_time_was_never_sent(silent, lab):
    """Even a POST is tried again."""
    url = f"http://127.0.0.1:{silent}/"
    policy = service(connectTimeout="100ms", attemptTimeout="20s", deadline="60s", maxRetries=1)
    call = lab(policy, url, data="pay").call
    assert (call["code"], call["attempts"]) == (28, ["refused"] * 2)
    call = lab(service(connectTimeout="20s", attemptTimeout="30s", deadline="60s", maxRetries=1), url, data="pay",
               connect_ms=100).call  # fmt: skip
    assert (call["code"], call["attempts"]) == (28, ["refused"] * 2)  # the handle's own comes first


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("plain", [0, 1])
def test_calls__an_attempt_whose_time_is_over_before_it_has_a_connection_was_never_sent(silent, lab, interface, plain):
    policy = service(connectTimeout="20s", attemptTimeout="100ms", deadline="60s", maxRetries=1)
    call = lab(policy, f"http://127.0.0.1:{silent}/", data="pay", plain=plain, interface=interface).call
    assert (call["code"], call["attempts"], call["reason"]) == (28, ["refused"] * 2, "attempts_spent")


def test_calls__an_attempt_that_hangs_in_its_handshake_was_never_sent(lab):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        policy = service(connectTimeout="60s", attemptTimeout="1s", deadline="100s", maxRetries=0)
        call = lab(policy, f"https://127.0.0.1:{listener.getsockname()[1]}/", data="pay").call
    assert (call["code"], call["attempts"]) == (28, ["refused"])


def test_calls__a_deadline_that_ends_the_connecting_is_nobody_s_failure(silent, lab):
    policy = service(connectTimeout="20s", attemptTimeout="10s", deadline="100ms")
    call = lab(policy, f"http://127.0.0.1:{silent}/", plain=1).call
    assert (call["code"], call["attempts"], call["reason"]) == (28, ["cancelled"], "deadline")


@pytest.mark.parametrize("interface, plain", [("easy", 1), ("multi", 0), ("socket", 1)])
def test_calls__an_upload_has_all_the_time_that_it_needs(host, lab, interface, plain):
    """The attempt's time begins when the request is through: then the host has it all."""
    host.on("/", Reply(200, b"good", delay=0.2))

    def ask(factor):
        host.forget()
        policy = service(attemptTimeout=f"{700 * factor}ms", deadline=f"{800 * factor}ms")
        return lab(policy, f"http://{host.address}/", read="1234", read_ms=250 * factor, plain=plain, interface=interface,
                   header="Expect:").call  # fmt: skip

    call = in_time(ask, lambda call: call["code"] == 0 and call["attempts"] == ["ok"])
    assert (call["code"], call["body"], call["attempts"]) == (0, "good", ["ok"])
    assert bytes(host.requests[0].body) == b"1234" and call["took_ms"] >= 1100


@pytest.mark.parametrize("unsized", [0, 1])
def test_calls__an_upload_that_waits_for_100_continue_has_not_begun(host, lab, unsized):
    """libcurl waits for a second before it sends the body unasked."""
    host.on("/", Reply(200, b"good"))
    call = in_time(lambda factor: lab(service(attemptTimeout=f"{min(600 * factor, 900)}ms"), f"http://{host.address}/",
                                      read="1234", plain=1, unsized=unsized).call,
                   lambda call: call["attempts"] == ["ok"])  # fmt: skip
    assert (call["body"], call["attempts"]) == ("good", ["ok"]) and bytes(host.requests[0].body) == b"1234"


@pytest.mark.parametrize("unsized", [0, 1])
def test_calls__a_host_that_hangs_after_an_upload_is_cut(host, lab, unsized):
    host.on("/", Reply(cut=0, end="hang"))

    def ask(factor):
        policy = service(attemptTimeout=f"{200 * factor}ms", deadline="60s", maxRetries=0)
        return lab(policy, f"http://{host.address}/", read="12345", read_ms=50, plain=1, header="Expect:",
                   unsized=unsized).call  # fmt: skip

    call = in_time(ask, lambda call: call["attempts"] == ["timed_out"])
    assert (call["code"], call["attempts"]) == (28, ["timed_out"]) and 400 <= call["took_ms"] < 60000


@pytest.mark.parametrize("interface, plain", [("easy", 1), ("multi", 0), ("socket", 1)])
@pytest.mark.parametrize("deadline", ["policy", "caller"])
def test_calls__a_body_that_never_begins_is_waited_for_until_the_deadline(host, lab, interface, plain, deadline):
    """The read function has nothing to give, though a body was announced, and the host waits for it. That is no
    failure of the host's."""
    host.on("/", Reply(200, b"good"))
    keys, own = ({"deadline": "1s"}, {}) if deadline == "policy" else ({"deadline": "300s"}, {"deadline_ms": 1000})
    reason = "cancelled" if deadline == "policy" else "deadline"
    call = lab(service(attemptTimeout="400ms", **keys), f"http://{host.address}/", read="", lacks=9, plain=plain,
               interface=interface, header="Expect:", seconds=60, **own).call  # fmt: skip
    assert (call["code"], call["attempts"], call["reason"]) == (28, ["cancelled"], reason)
    assert call["took_ms"] >= 950


@pytest.mark.parametrize("interface, plain", [("easy", 1), ("multi", 0), ("socket", 1)])
def test_calls__the_caller_s_deadline_ends_an_upload_on_its_way(host, lab, interface, plain):
    host.on("/", Reply(200, b"good"))
    call = lab(service(attemptTimeout="5s"), f"http://{host.address}/", read="x" * 3000, read_ms=100, plain=plain,
               interface=interface, header="Expect:", deadline_ms=1000).call  # fmt: skip
    assert (call["code"], call["attempts"], call["reason"]) == (28, ["cancelled"], "deadline")


@pytest.mark.parametrize("kind, head", [
    ("plain", b"Transfer-Encoding: chunked"), ("plain", b"X-Kind: endless"),
    ("answer_only", b"Transfer-Encoding: chunked"), ("recorded", b"X-Kind: endless"),
])  # fmt: skip
def test_calls__an_answer_whose_first_byte_comes_late_is_not_cut(host, lab, kind, head):
    host.on("/", Reply(raw=b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n", end="hang"))
    options = {} if kind == "recorded" else {kind: 1}

    def ask(factor):
        host.forget()
        policy = service(attemptTimeout=f"{300 * factor}ms", deadline=f"{400 * factor}ms")
        call = lab(policy, f"http://{host.address}/", cancel_ms=800 * factor, **options).call
        return call["attempts"], call["code"], call["took_ms"] > 450 * factor

    wanted = (["ok"], 42, True)
    assert in_time(ask, lambda call: call == wanted) == wanted and host.count() == 1


@pytest.mark.parametrize("plain", [0, 1])
@pytest.mark.parametrize("status, attempts", [(503, ["refused"] * 3), (407, ["cancelled"]), (200, ["broken"])])
def test_calls__what_a_proxy_makes_no_tunnel_for_was_never_sent(host, lab, plain, status, attempts):
    """But bytes that went into its tunnel may have been executed."""
    fields = {"Proxy-Authenticate": 'Basic realm="x"', "Connection": "close"}
    host.on("*", Reply(status, b"", fields), Reply(status, b"", fields, end="reset"))
    if status == 200:
        host.on("*", Reply(raw=b"HTTP/1.1 200 Here\r\n\r\n"), Reply(cut=0, end="reset"))
    call = lab(service(match="{host: nowhere.invalid}"), "http://nowhere.invalid/", data="pay", plain=plain,
               proxy=f"http://{host.address}").call  # fmt: skip
    assert call["code"] in (52, 56) and call["attempts"] == attempts
    assert plain or str(status) in call["error"] or status == 200  # libcurl's words


@pytest.mark.parametrize("option", [{"resume": 100}, {"size_max": 2}])
@pytest.mark.parametrize("plain", [0, 1])
def test_calls__an_error_counts_whatever_else_is_wrong_with_it(host, lab, option, plain):
    host.on("/", Reply(503, b"busy"))
    call = lab(service(maxRetries=1), f"http://{host.address}/", plain=plain, **option).call
    assert (call["status"], call["attempts"]) == (503, ["rejected"] * 2)
    host.on("/", Reply(200, b"good"))
    call = lab(service(maxRetries=1), f"http://{host.address}/", plain=plain, **option).call
    assert call["code"] in (33, 63) and call["attempts"] in (["cancelled"], ["ok"])


def test_calls__what_libcurl_says_is_not_overwritten(host, lab):
    host.on("/", Reply(200, b"good"))
    url = f"http://{host.address}/"
    assert "Maximum file size" in lab(service(), url, size_max=2, answer_only=1).call["error"]
    assert "byte ranges" in lab(service(), url, resume=100, answer_only=1).call["error"]
    assert "gave up" not in lab(service(), "http://127.0.0.1:99999/").call["error"]
    assert "gave up" in lab(service(), url, cancel_ms=300, read="1234", read_ms=100).call["error"]


@pytest.mark.parametrize("plain", [0, 1])
def test_calls__a_caller_that_is_too_hasty_for_the_service_harms_no_other(host, lab, plain):
    """Its own timeout is over before answers usually come: that is retried, and no evidence against the host."""
    host.on("/", Reply(200, b"good", delay=0.6))
    policy = service(breaker="{mode: consecutive, failureThreshold: 3}", maxRetries=1, attemptTimeout="60s")
    calls = lab(policy, f"http://{host.address}/", plain=plain, repeat=16, hasty_from=5, hasty=10, timeout_ms=30).calls
    assert [call["reason"] for call in calls] == ["ok"] * 5 + ["attempts_spent"] * 10 + ["ok"]
    assert {call["code"] for call in calls[5:15]} == {28}
    assert {word for call in calls[5:15] for word in call["attempts"]} <= {"timed_out", "refused"}


@pytest.mark.parametrize("plain", [0, 1])
def test_calls__an_answer_that_libcurl_cuts_was_one(host, lab, plain):
    """The host is judged by the head of the answer, in whichever way the head was noticed."""
    host.on("/", Reply(200, b"x" * 50, cut=60, end="hang"))
    call = in_time(lambda factor: lab(service(), f"http://{host.address}/", plain=plain, timeout_ms=600 * factor).call,
                   lambda call: call["attempts"] == ["ok"])  # fmt: skip
    assert (call["code"], call["attempts"], call["reason"]) == (28, ["ok"], "answer_delivered")
    host.on("/", Reply(200, b"z" * 1000, cut=500, end="close"))
    call = lab(service(), f"http://{host.address}/", plain=plain).call
    assert (call["code"], call["attempts"], call["reason"]) == (18, ["ok"], "answer_delivered")


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
    policy = service(restart="{enabled: false}")
    call = lab(policy, f"http://{host.address}/", interface=interface, method="POST").call
    assert (call["code"], call["reason"]) == (7, "attempts_spent")
    assert call["attempts"] == ["refused"] * 3  # never sent, so that even a POST is tried again


def test_calls__a_name_that_does_not_exist(lab):
    policy = "services: {s: {match: {host: nowhere.invalid}, initialDelay: 1ms}}"
    call = lab(policy, "http://nowhere.invalid/").call
    assert call["code"] == 6 and call["attempts"][0] == "refused"


def test_calls__tls_that_is_none_is_not_retried(lab):
    """The server there sends first, and does not speak TLS."""
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


@pytest.mark.parametrize("plain", [0, 1])
def test_calls__a_slow_answer_of_a_quick_host_arrives_where_no_timeout_is_written(host, lab, plain):
    """After many quick calls it is overdue after 5 s, or a little later on a busy machine, and is not cut then."""
    asked = []

    def reply(_):
        asked.append(None)
        return Reply(200, b"fine", delay=0.03 if len(asked) <= 100 else 6)

    host.on("/", reply)
    calls = lab(service(), f"http://{host.address}/", plain=plain, repeat=101).calls
    assert {call["reason"] for call in calls} == {"ok"} and calls[-1]["took_ms"] >= 6000


@pytest.mark.parametrize("interface", ["easy", "multi"])
def test_calls__nothing_is_sent_beside_an_overdue_answer_whose_program_asks_its_own_handle(host, lab, interface):
    """The program did not ask for hedges: status and all else come from the handle that it has called with."""
    asked = []

    def reply(_):
        asked.append(None)
        return Reply(200, b"fine", delay=0.03 if len(asked) != 101 else 7)

    host.on("/", reply)
    many = {"repeat": 101} if interface == "easy" else {"at_once": 101, "period_ms": 30}
    calls = lab(service(), f"http://{host.address}/", interface=interface, **many).calls
    assert {(call["status"], call["body"]) for call in calls} == {(200, "fine")}
    assert len(asked) == 101 and [call["attempts"] for call in calls if call["took_ms"] >= 7000] == [["ok"]]


@pytest.mark.parametrize("interface", INTERFACES)
def test_calls__an_attempt_that_hangs_is_cut_and_made_again(host, lab, interface):
    def ask(factor):
        host.on("/", Reply(cut=0, end="hang"), Reply(200, b"good"))
        return lab(service(attemptTimeout=f"{200 * factor}ms"), f"http://{host.address}/", interface=interface).call

    call = in_time(ask, lambda call: call["attempts"] == ["timed_out", "ok"])
    assert call["attempts"] == ["timed_out", "ok"] and call["body"] == "good"


@pytest.mark.parametrize("plain", [0, 1])
def test_calls__a_post_that_hangs_is_not_made_again(host, lab, plain):
    def ask(factor):
        host.on("/", Reply(cut=0, end="hang"), Reply(200, b"twice"))
        return lab(service(attemptTimeout=f"{100 * factor}ms"), f"http://{host.address}/", plain=plain, data="a=1").call

    call = in_time(ask, lambda call: "refused" not in call["attempts"])  # else there was no time for a connection
    assert call["code"] == 28 and call["attempts"] == ["timed_out"]


@pytest.mark.parametrize("body", [b"", b"ab"])
@pytest.mark.parametrize("plain", [0, 1])
def test_calls__a_slow_body_is_not_cut_by_the_policy_s_times(host, lab, plain, body):
    """Only a head in time counts, also if no callback has seen it; the body may take any time."""
    host.on("/", Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + body, end="hang"))

    def ask(factor):
        policy = service(attemptTimeout=f"{100 * factor}ms", deadline=f"{200 * factor}ms")
        call = lab(policy, f"http://{host.address}/", plain=plain, cancel_ms=1000 * factor).call
        return call["attempts"], call["code"], call["took_ms"] > 250 * factor

    wanted = (["ok"], 42, True)
    assert in_time(ask, lambda call: call == wanted) == wanted


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 302 Found\r\nContent-Length: 4\r\n\r\n"])
def test_calls__half_a_head_and_one_to_be_followed_are_no_answer(host, lab, head):
    host.on("/", Reply(raw=head, end="hang"))
    call = in_time(lambda factor: lab(service(attemptTimeout=f"{100 * factor}ms", maxRetries=0), f"http://{host.address}/",
                                      plain=1, follow=1).call,
                   lambda call: call["attempts"] != ["refused"])  # fmt: skip
    assert (call["code"], call["attempts"]) == (28, ["timed_out"])


@pytest.mark.parametrize("interface", ["easy", "multi"])
@pytest.mark.parametrize("plain", [0, 1])
def test_calls__the_caller_s_deadline_ends_even_an_answer_on_its_way(host, lab, interface, plain):
    host.on("/", Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab", end="hang"))
    call = in_time(lambda factor: lab(service(attemptTimeout="100s", deadline="200s"), f"http://{host.address}/",
                                      plain=plain, interface=interface, deadline_ms=300 * factor).call,
                   lambda call: call["body"] == "ab")  # fmt: skip
    assert (call["code"], call["body"], call["reason"]) == (28, "ab", "answer_delivered")
    assert 250 <= call["took_ms"] < 60000


def test_calls__the_caller_s_deadline_ends_an_answer_that_was_kept(host, lab):
    """No retry was possible any more, and the rest of the 503 does not arrive."""
    raw = b"HTTP/1.1 503 Busy\r\nContent-Length: 10\r\n\r\nbusy"
    host.on("/", Reply(raw=raw, end="hang"), Reply(raw=raw, end="hang"))
    policy = service(initialDelay="200ms", jitter="none", deadline="200s",
                     breaker="{minimumNumberOfCalls: 2, per: attempt, waitDurationInOpenState: 60s}")  # fmt: skip
    wanted = [(28, "busy", "breaker_open")] * 2

    def ask(factor):
        calls = lab(policy, f"http://{host.address}/", interface="multi", at_once=2, deadline_ms=1500 * factor).calls
        return [(call["code"], call["body"], call["reason"]) for call in calls]

    assert in_time(ask, lambda calls: calls == wanted) == wanted


def test_calls__a_deadline_is_for_one_call(host, lab):
    def ask(factor):
        host.on("/", Reply(200, b"good"), Reply(200, b"late", delay=0.5 * factor + 0.5))
        policy = service(attemptTimeout="100s", deadline="200s")
        calls = lab(policy, f"http://{host.address}/", repeat=2, deadline_ms=500 * factor, deadline_once=1).calls
        return [call["body"] for call in calls]

    assert in_time(ask, lambda bodies: bodies[0] == "good") == ["good", "late"]


def test_calls__redirections_are_followed_inside_of_an_attempt(host, lab):
    host.on("/", Reply(200, b"arrived"))
    host.on("/from", Reply(302, b"moved", {"Location": "/"}))
    assert lab(service(), f"http://{host.address}/from").call["body"] == "moved"


WORDS = {
    "Retry-After": ("Retry-After", "3600"),
    "mark": ("Becalm-Retry", "overloaded"),
}


@pytest.fixture
def stranger():
    other = Host()
    yield other
    other.close()


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("plain", [0, 1])
@pytest.mark.parametrize("interface, path", [("easy", "/"), ("multi", "/"), ("easy", "/?" + "long" * 100)])
def test_calls__a_stranger_that_a_redirection_led_to_does_not_speak_for_the_service(
    host, stranger, lab, interface, path, plain, word
):
    name, value = WORDS[word]
    host.on(path, Reply(302, b"", {"Location": f"http://{stranger.address}/to"}))
    stranger.on("/to", Reply(503, b"busy", {name: value}), Reply(200, b"good"))
    url = f"http://{host.address}{path}"
    result = lab(service(), url, interface=interface, plain=plain, follow=1, fail_on_error=1)
    assert result.call["body"] == "good" and result.call["attempts"] == ["rejected", "ok"]
    assert stranger.count("/to") == 2 and result.call["took_ms"] < 10000


@pytest.mark.parametrize("to", ["/to", "//{address}/to", "http://{address}/to"])
def test_calls__behind_a_redirection_within_the_service_its_words_count(host, lab, to):
    """`Retry-After` is too long for the deadline, and ends the call."""
    host.on("/", Reply(302, b"", {"Location": to.format(address=host.address)}))
    host.on("/to", Reply(503, b"busy", {"Retry-After": "3600"}), Reply(200, b"good"))
    call = lab(service(), f"http://{host.address}/", follow=1).call
    assert call["status"] == 503 and call["reason"] == "deadline" and host.count("/to") == 1


def test_calls__who_comes_back_from_a_stranger_is_none(host, stranger, lab):
    host.on("/", Reply(302, b"", {"Location": f"http://{stranger.address}/"}))
    stranger.on("/", Reply(302, b"", {"Location": f"http://{host.address}/back"}))
    host.on("/back", Reply(503, b"busy", {"Retry-After": "3600"}))
    call = lab(service(), f"http://{host.address}/", follow=1).call
    assert call["status"] == 503 and call["reason"] == "deadline"


def test_calls__who_belongs_to_no_service_is_sent_once(host, lab):
    host.on("/", Reply(503, b"busy"))
    result = lab("services: {other: {}}", f"http://{host.address}/", repeat=3, operation="typo")
    assert [(call["status"], call["body"], call["reason"]) for call in result.calls] == [(503, "busy", "retries_off")] * 3
    assert [call["service"] for call in result.calls] == [""] * 3, "and it is told so"
    assert host.count() == 3 and result.count("becalm_unrouted_requests_total") == 3
    assert result.count("becalm_arrivals_total") == 0
    assert lab(service(), f"http://{host.address}/").count("becalm_unrouted_requests_total") == 0


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


STALLS = {
    "before the head": [Reply(cut=0, end="hang")],
    "in the body": [Reply(200, b"x" * 100, cut=60, end="hang")],
    "in an answer that is kept": [Reply(raw=b"HTTP/1.1 503 X\r\nRetry-After: 30\r\nContent-Length: 9\r\n\r\nab", end="hang")],
    "in a wait": [Reply(503, b"busy", {"Retry-After": "30"})],
}


@pytest.mark.parametrize("where, plain", [*((where, 0) for where in STALLS), ("before the head", 1), ("in the body", 1)])
def test_calls__the_progress_function_is_asked_about_once_a_second(host, lab, where, plain):
    """Also while nothing moves: it is how programs give up. In a wait of ours it must have been recorded."""
    host.on("/", *STALLS[where])
    policy = service(attemptTimeout="40s", deadline="100s", maxDelay="60s")
    call = lab(policy, f"http://{host.address}/", plain=plain, abort_ms=500).call
    assert call["code"] == 42 and call["took_ms"] < 20000 and host.count() <= 1


def test_calls__what_was_paused_goes_on_from_the_progress_function(host, lab):
    host.on("/", Reply(200, b"good"))
    assert lab(service(), f"http://{host.address}/", abort_ms=60000, pauses=1).call["body"] == "good"


def test_calls__connections_are_kept(host, lab):
    host.on("/", Reply(200, b"fine"))
    calls = lab(service(), f"http://{host.address}/", repeat=20).calls
    assert len(calls) == 20 and host.connections == 1
    host.on("/", *[Reply(503, b"busy"), Reply(200, b"fine")] * 5)
    lab(service(), f"http://{host.address}/", repeat=5)
    assert host.connections == 2  # short bodies of failed answers are read to their end


@pytest.mark.parametrize("plain", [0, 1])
def test_calls__connections_are_kept_by_a_handle_that_is_reset(host, lab, plain):
    host.on("/", Reply(200, b"fine"))
    calls = lab(service(), f"http://{host.address}/", repeat=5, reset=1, plain=plain).calls
    assert [call["body"] for call in calls] == ["fine"] * 5 and host.connections == 1


@pytest.mark.parametrize("interface", ["multi", "socket"])
def test_calls__thousands_at_once(host, lab, interface):
    """Two thousand calls go the same ways; the cost of more calls is checked with full counts."""
    count = 10000 if SOAK else 2000
    host.on("/", Reply(200, b"fine"))
    result = lab(service(connectTimeout="60s", attemptTimeout="120s", deadline="120s"),
                 f"http://{host.address}/", seconds=140, interface=interface, at_once=count, connections=200)  # fmt: skip
    assert [call["reason"] for call in result.calls] == ["ok"] * count
    assert host.count() == count and host.connections <= 200


@pytest.mark.parametrize("plain", [0, 1])
def test_calls__a_handle_per_call_leaves_nothing_behind(host, lab, plain):
    """Also those that the client is not told the end of: libcurl's own cleanup is enough for them."""
    host.on("/", Reply(200, b"fine"))
    result = lab(service(), f"http://{host.address}/", plain=plain, fresh=1, repeat=300, state=1, descriptors=300)
    assert len(result.calls) == 300 and {call["code"] for call in result.calls} == {0}
    assert result.others[0]["descriptors"] < 150
