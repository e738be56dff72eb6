# SPDX-License-Identifier: MIT
"""The options of a handle, and their effect: no option is assumed that was not set."""

import re
import subprocess

import pytest
from conftest import LAB, in_time, service
from host import Host, Reply

SEQUENCES = [
    ([], "GET"),
    (["nobody:1"], "HEAD"),
    (["nobody:1", "nobody:0"], "GET"),
    (["nobody:1", "httpget:0"], "HEAD"),
    (["postfields:pay"], "POST"),
    (["postfields:pay", "nobody:0"], "POST"),
    (["postfields:pay", "nobody:1", "nobody:0"], "GET"),
    (["postfields:pay", "httpget:1", "post:1"], "POST"),
    (["postfields:pay", "post:0"], "GET"),
    (["postfields:pay", "postfields"], "POST"),
    (["copypostfields:pay", "copypostfields"], "POST"),
    (["httpget:1", "postfields"], "POST"),
    (["httpget:1", "mimepost"], "POST"),
    (["upload:1"], "PUT"),
    (["upload:1", "nobody:0"], "PUT"),
    (["upload:1", "postfields:pay"], "POST"),
    (["upload:1", "upload:0"], "GET"),
]


@pytest.mark.parametrize("sequence, method", SEQUENCES)
def test_handles__the_method_is_the_one_that_libcurl_sends(host, lab, sequence, method):
    """A retry reports the method as recorded; the host sees the method that libcurl makes of the same options."""
    host.on("/", Reply(503, b""), Reply(200, b""))
    result = lab(service(idempotent="true"), f"http://{host.address}/", set=sequence)
    assert host.requests[0].method == method
    assert [retry["method"] for retry in result.retries] in ([], [method])
    if method in ("GET", "HEAD"):
        assert len(result.retries) == 1 and host.requests[1].method == method


@pytest.mark.parametrize("sequence", [["postfields:pay", "nobody:0"], ["postfields:pay", "postfields"]])
def test_handles__a_post_is_not_repeated_as_if_it_were_a_get(host, lab, sequence):
    host.on("/", Reply(502, b"", end="close"))
    assert lab(service(), f"http://{host.address}/", set=sequence).call["reason"] == "not_idempotent"
    assert host.count() == 1


def test_handles__what_was_set_without_us_stays_set(host, lab):
    """The URL is recorded, and all that is about the answer is not."""
    host.on("/", Reply(200, b"good"))
    result = lab(service(), f"http://{host.address}/", half_plain=1, header="X-Mine: 1", again=1)
    for call in result.calls:
        assert (call["code"], call["body"], call["heads"]) == (0, "good", 1)
    assert [request.get("x-mine") for request in host.requests] == ["1", "1"]
    assert host.requests[0].get("x-request-deadline-ms") is None


def test_handles__an_answer_that_was_not_kept_back_has_been_delivered(host, lab):
    host.on("/", Reply(503, b"busy"), Reply(200, b"good"))
    call = lab(service(), f"http://{host.address}/", half_plain=1).call
    assert (call["status"], call["body"], call["reason"]) == (503, "busy", "answer_delivered")


@pytest.mark.parametrize("half", ["WRITEFUNCTION", "WRITEDATA"])
def test_handles__half_of_what_takes_the_answer_is_left_alone(host, lab, half):
    """A function without its data, or data without its function: no callback could be called."""
    host.on("/", Reply(503, b"busy"), Reply(200, b"good"))
    call = lab(service(), f"http://{host.address}/", only=half).call
    assert (call["status"], call["body"], call["reason"]) == (503, "busy", "answer_delivered")


@pytest.mark.parametrize("half", ["HEADERFUNCTION", "HEADERDATA"])
def test_handles__half_of_what_takes_headers_is_left_alone(host, lab, half):
    host.on("/", Reply(503, b"busy"), Reply(200, b"good"))
    call = lab(service(), f"http://{host.address}/", only=["WRITEFUNCTION", "WRITEDATA", half]).call
    assert (call["status"], call["body"], call["heads"]) == (200, "good", 2)


@pytest.mark.parametrize("half", ["READFUNCTION", "READDATA", "SEEKFUNCTION", "SEEKDATA"])
def test_handles__a_body_of_which_half_was_told_is_not_sent_again(host, lab, half):
    host.on("/", Reply(503, b""))
    call = lab(service(), f"http://{host.address}/", read="data", seek=1, only=["UPLOAD", half]).call
    assert (call["reason"], call["seeks"], bytes(host.requests[0].body)) == ("not_replayable", 0, b"data")


@pytest.mark.parametrize("interface", ["easy", "multi"])
def test_handles__what_is_told_in_a_callback_counts(host, lab, interface):
    """The file is opened when the head has come. libcurl alone goes on with the last setting."""
    host.on("/", Reply(200, b"good"))
    calls = lab(service(), f"http://{host.address}/", interface=interface, late=1, again=1).calls
    assert [call["body"] for call in calls] == ["good"] * (2 if interface == "easy" else 1)
    assert [request.get("x-mine") for request in host.requests[1:]] == ["late"] * (len(calls) - 1)


def test_handles__headers_that_are_told_in_a_callback_are_sent_next(host, lab):
    """The header function was not recorded, so that it sees a redirection before it is followed."""
    host.on("/", Reply(302, b"", {"Location": "/to"}))
    host.on("/to", Reply(200, b"good"))
    call = lab(service(), f"http://{host.address}/", late=1, follow=1, header="X-Mine: early",
               only=["WRITEFUNCTION", "WRITEDATA", "HTTPHEADER"]).call  # fmt: skip
    assert call["body"] == "good"
    assert [request.get("x-mine") for request in host.requests] == ["early", "late"]
    assert [request.get("x-envoy-attempt-count") for request in host.requests] == ["1", "1"]


def test_handles__a_key_needs_headers_that_are_known(host, lab):
    host.on("/", Reply(200, b"good"))
    result = lab(service(), f"http://{host.address}/", half_plain=1, key=1, header="X-Mine: 1")
    assert result.others == [{"no_key": True}]
    assert host.requests[0].get("idempotency-key") is None and host.requests[0].get("x-mine") == "1"


def test_handles__what_was_taken_over_is_given_back(host, lab):
    """After a call the handle is as it was, for libcurl alone: callbacks, headers, timeout."""
    host.on("/", Reply(200, b"good"))
    result = lab(service(connectTimeout="5s"), f"http://{host.address}/", header="X-Mine: 1", again=1)
    assert [(call["body"], call["heads"], call["lines"]) for call in result.calls] == [("good", 1, 3)] * 2
    ours, alone = host.requests
    assert ours.get("x-request-deadline-ms") is not None and alone.get("x-request-deadline-ms") is None
    assert [request.get("x-mine") for request in host.requests] == ["1", "1"]


def test_handles__a_file_is_sent_again_from_where_it_stood(host, lab, tmp_path):
    (tmp_path / "in.txt").write_bytes(b"abcdef")
    host.on("/", Reply(503, b""), Reply(200, b"good"))
    call = lab(service(), f"http://{host.address}/", file=tmp_path / "in.txt", file_from=3).call
    assert call["body"] == "good" and [bytes(request.body) for request in host.requests] == [b"def", b"def"]


@pytest.mark.parametrize("interface", ["easy", "multi"])
def test_handles__a_seek_that_fails_keeps_the_answer(host, lab, interface):
    host.on("/", Reply(503, b"busy"), Reply(200, b"good"))
    call = lab(service(), f"http://{host.address}/", read="data", seek=1, seek_fails=1, interface=interface).call
    assert (call["code"], call["status"], call["body"]) == (0, 503, "busy")
    assert call["reason"] == "not_replayable" and host.count() == 1


def test_handles__a_form_is_sent_again(host, lab):
    host.on("/", Reply(503, b"busy"), Reply(200, b"good"))
    call = lab(service(idempotent="true"), f"http://{host.address}/", form="hello").call
    assert (call["body"], call["attempts"]) == ("good", ["rejected", "ok"])
    assert all(b"hello" in bytes(request.body) for request in host.requests) and host.count() == 2


def test_handles__a_form_that_can_t_go_back_is_not_sent_again(host, lab):
    """libcurl can't be asked before. It sends nothing then."""
    host.on("/", Reply(503, b"busy"), Reply(200, b"good"))
    call = lab(service(idempotent="true"), f"http://{host.address}/", form="hello", form_reads=1).call
    assert (call["code"], call["attempts"]) == (65, ["rejected", "cancelled"])
    assert host.count() == 1 and b"hello" in bytes(host.requests[0].body)


@pytest.mark.parametrize("path, endpoint", [
    ("/x/../pay/1", "pay"), ("/pay/../x", "default"), ("/pay/./1", "pay"), ("/pay/1/..", "pay"), ("/pay/.hidden", "pay"),
])  # fmt: skip
@pytest.mark.parametrize("plain", [0, 1])
def test_handles__dots_in_a_path_lead_where_libcurl_goes(host, lab, path, endpoint, plain):
    host.on("*", Reply(200, b"good"))
    policy = service(endpoints="{pay: {match: {prefix: /pay}}}")
    result = lab(policy, f"http://{host.address}{path}", plain=plain)
    assert result.count("becalm_arrivals_total", endpoint=endpoint) == 1
    assert host.requests[0].target.startswith("/pay") == (endpoint == "pay")


def test_handles__a_path_that_is_sent_with_its_dots_belongs_to_nobody(host, lab):
    host.on("*", Reply(200, b"good"))
    result = lab(service(), f"http://{host.address}/x/../pay", set="path_as_is:1")
    assert host.requests[0].target == "/x/../pay" and result.count("becalm_unrouted_requests_total") == 1


@pytest.mark.parametrize("url", ["http:///127.0.0.1:{}/", "http:/127.0.0.1:{}/", "http://127.0.0.%31:{}/"])
def test_handles__a_host_that_libcurl_reads_is_found(host, lab, url):
    host.on("/", Reply(200, b"good"))
    result = lab(service(), url.format(host.port))
    assert result.call["body"] == "good" and result.count("becalm_arrivals_total", service="s") == 1


@pytest.mark.parametrize("plain", [0, 1])
def test_handles__who_was_led_elsewhere_begins_again_where_it_began(host, lab, plain):
    """Also in two steps, one of them without a host. An URL that was set is where it goes."""
    host.on("/", Reply(302, b"", {"Location": "step/../two?q#f"}))
    host.on("/two?q", Reply(302, b"", {"Location": f"http://localhost:{host.port}/other"}))
    host.on("/other", Reply(200, b"good"))
    result = lab(service(), f"http://{host.address}/", plain=plain, follow=1, repeat=3)
    assert [call["body"] for call in result.calls] == ["good"] * 3 and host.count("/") == 3
    assert result.count("becalm_arrivals_total", service="s") == 3
    assert result.count("becalm_unrouted_requests_total") == 0


def test_handles__the_policy_s_time_to_connect_is_given_back(host, silent, lab):
    """With the same handle libcurl alone waits as long as it was told to: here, until the call's own time is over."""
    policy = service(connectTimeout="50ms", attemptTimeout="20s", deadline="60s", maxRetries=0)

    def ask(factor):
        calls = lab(policy, f"http://127.0.0.1:{silent}/", again=1, timeout_ms=1500 * factor).calls
        assert [call["code"] for call in calls] == [28, 28]
        return [int(re.search(r"after (\d+) m", call["error"])[1]) >= 1000 * factor for call in calls]

    assert in_time(ask, lambda waited: waited == [False, True]) == [False, True]


def test_handles__a_connection_without_a_request_is_refused(host, lab):
    """Its connection would be where no program can get at it."""
    result = lab(service(), f"http://{host.address}/", set=["connect_only:1", "connect_only:0"])
    assert result.others == [{"refused": "connect_only:1"}]


def test_handles__a_form_is_not_hedged(host, lab):
    host.on("/", Reply(200, b"slow", delay=0.3))
    policy = service(hedge="{enabled: true, delay: 20ms, max: 1}", limit="{kind: none}", idempotent="true")
    for options in ({"form": "hello", "form_reads": 1}, {"read": "data"}):
        host.forget()
        assert lab(policy, f"http://{host.address}/", interface="multi", **options).call["body"] == "slow"
        assert host.count() == 1


def test_handles__a_get_that_nobody_has_named_is_repeated_after_redirections(host, lab):
    host.on("/", Reply(302, b"moved", {"Location": "/to"}))
    host.on("/to", Reply(503, b"busy"), Reply(200, b"good"))
    call = lab(service(), f"http://{host.address}/", follow=1).call
    assert (call["body"], call["attempts"]) == ("good", ["rejected", "ok"])


def test_handles__a_get_that_nobody_has_named_is_repeated_after_a_password(host, lab):
    answers = [Reply(503, b"busy"), Reply(200, b"good")]

    def ask(request):
        asks = Reply(401, b"who", {"WWW-Authenticate": 'Basic realm="x"'})
        return asks if request.get("authorization") is None else answers.pop(0)

    host.on("/", ask)
    call = lab(service(), f"http://{host.address}/", password=1).call
    assert (call["body"], call["attempts"]) == ("good", ["rejected", "ok"])


def test_handles__a_plain_get_is_repeated_after_a_redirection(host, lab):
    host.on("/", Reply(302, b"", {"Location": "/to"}))
    host.on("/to", Reply(502, b"", end="close"), Reply(200, b"good"))
    call = lab(service(), f"http://{host.address}/", plain=1, follow=1).call
    assert (call["body"], [request.method for request in host.requests]) == ("good", ["GET"] * 4)


# Recorded as something that may be repeated, and then made a POST without us.
PAST_US = [
    {"only": ["WRITEFUNCTION", "WRITEDATA", "HTTPGET"], "set": ["httpget:1", "postfields:pay"]},
    {"only": ["WRITEFUNCTION", "WRITEDATA", "HTTPGET"], "set": ["httpget:1", "postfields:"]},
    {"only": ["WRITEFUNCTION", "WRITEDATA", "HTTPGET"], "set": ["httpget:1"], "method": "POST"},
    {"only": ["WRITEFUNCTION", "WRITEDATA", "UPLOAD"], "set": ["upload:1", "postfields:pay"]},
]


@pytest.mark.parametrize("options", PAST_US)
@pytest.mark.parametrize("interface", ["easy", "multi"])
def test_handles__a_method_that_was_changed_without_us_is_the_one_that_counts(host, lab, options, interface):
    for reply in (Reply(502, b"bad", end="close"), Reply(cut=0, end="close"), Reply(cut=0, end="hang")):

        def ask(factor, reply=reply):
            host.forget()
            host.on("/", reply)
            policy = service(attemptTimeout=f"{200 * factor}ms")
            call = lab(policy, f"http://{host.address}/", interface=interface, **options).call
            return call["reason"], [request.method for request in host.requests]

        # An attempt that the machine did not bring to the host in time asks again, with more time.
        assert in_time(ask, lambda seen: seen[1] != []) == ("not_idempotent", ["POST"])


@pytest.mark.parametrize("options", PAST_US)
def test_handles__a_post_that_was_recorded_as_something_else_is_not_hedged(host, lab, options):
    host.on("/", Reply(200, b"slow", delay=0.3))
    policy = service(hedge="{enabled: true, delay: 20ms, max: 1, percent: 100, cap: 10}", limit="{kind: none}")
    call = lab(policy, f"http://{host.address}/", interface="multi", **options).call
    assert (call["body"], [request.method for request in host.requests]) == ("slow", ["POST"])


@pytest.mark.parametrize("recorded", [["WRITEFUNCTION", "WRITEDATA", "HTTPGET"], ["URL"]])
def test_handles__a_post_that_was_led_on_as_a_get_was_a_post(host, lab, recorded):
    """libcurl reports GET when it fails, but its first request was executed."""
    host.on("/", Reply(303, b"", {"Location": "/to"}))
    host.on("/to", Reply(503, b"", end="close"))
    call = lab(service(), f"http://{host.address}/", follow=1, only=recorded,
               set=["httpget:1", "postfields:pay"]).call  # fmt: skip
    assert [request.method for request in host.requests] == ["POST", "GET"]
    assert (call["status"], call["reason"]) == (503, "not_idempotent")


@pytest.mark.parametrize("method", [{}, {"method": "PUT"}])
def test_handles__a_body_that_was_set_without_us_is_not_sent_again(host, lab, method):
    """No callback could rewind it to its beginning."""
    host.on("/", Reply(503, b"busy"))
    call = lab(service(), f"http://{host.address}/", read="pay", set=["httpget:1", "upload:1"],
               only=["WRITEFUNCTION", "WRITEDATA", "HTTPGET", "CUSTOMREQUEST"], **method).call  # fmt: skip
    assert (call["reason"], [request.method for request in host.requests]) == ("not_replayable", ["PUT"])


@pytest.mark.parametrize("plain", [0, 1])
def test_handles__a_post_that_was_led_to_a_dead_end_was_sent(host, lab, plain):
    """No process listens there, but a server has answered before: the request may have been sent."""
    host.on("/", Reply(307, b"", {"Location": "http://127.0.0.1:1/"}))
    call = lab(service(), f"http://{host.address}/", data="pay", follow=1, plain=plain).call
    assert (call["code"], call["attempts"], call["reason"]) == (7, ["broken"], "not_idempotent")
    assert host.count() == 1


def test_handles__who_was_sent_before_is_not_taken_for_sent_now(host, lab):
    """The second call of a handle is refused, after the first was answered."""

    def once(request):
        host._server.close()
        return Reply(200, b"good", {"Connection": "close"}, end="close")

    host.on("/", once)
    policy = service(restart="{enabled: false}")
    first, second = lab(policy, f"http://{host.address}/", data="pay", repeat=2).calls
    assert first["body"] == "good" and (second["code"], second["attempts"]) == (7, ["refused"] * 3)


@pytest.mark.parametrize("most", [0, 1])
def test_handles__as_many_connections_are_kept_as_was_told(host, lab, most):
    """Each call needs two connections, one after the other. If only one is kept, every call opens another."""
    host.on("/", Reply(200, b"good"))
    first = Host()
    first.on("/", Reply(302, b"", {"Location": f"http://{host.address}/"}))
    calls = lab(service(), f"http://{first.address}/", follow=1, repeat=5, max_connects=most).calls
    made = first.connections + host.connections
    first.close()
    assert [call["body"] for call in calls] == ["good"] * 5 and (made >= 6 if most else made == 2)


def test_handles__who_gives_no_place_for_what_is_wrong_reads_it_on_stderr(tmp_path):
    path = tmp_path / "becalm.yaml"
    path.write_text("services: {s: {deadlin: 3s}}\n")
    done = subprocess.run([LAB, str(path), "http://127.0.0.1/", "no_place=1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and f"{path}:1:" in done.stderr and "deadlin" in done.stderr
    done = subprocess.run([LAB, str(path) + "x", "http://127.0.0.1/", "no_place=1"], capture_output=True, text=True,
                          timeout=60)  # fmt: skip
    assert done.returncode == 1 and "becalm.yamlx" in done.stderr
