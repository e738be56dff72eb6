# SPDX-License-Identifier: MIT
"""HTTP/1.1 as clients and hosts speak it when they are right."""

import json
import socket
import subprocess

import pytest
from conftest import free_port
from host import Reply, Tunnel, wait_until
from message import is_signed, request, signed
from wire import Wire, ask


def test_a_request_and_its_answer_pass_with_their_fields(pair):
    gateway, host = pair()
    host.on("/x?y=1", Reply(201, b"made", {"X-Answer": "yes", "ETag": '"1"'}))
    answer = gateway.ask("POST", "/x?y=1", body=b"abc", fields={"X-Ask": "why", "Cookie": "a=b"})
    assert (answer.status, answer.body, answer.get("x-answer"), answer.get("etag")) == (201, b"made", "yes", '"1"')
    got = host.requests[0]
    assert (got.method, got.target, got.body, got.get("x-ask")) == ("POST", "/x?y=1", b"abc", "why")
    assert got.get("host") == "a.test" and got.get("cookie") == "a=b"
    assert "becalm" in got.get("via") and "becalm" in answer.get("via")


def test_curl_gets_its_answer(pair):
    gateway, host = pair()
    host.on("/c", Reply(body=signed(b"c" * 100000)))
    got = subprocess.run(
        ["curl", "-sS", "--max-time", "30", f"http://127.0.0.1:{gateway.port}/c"], stdout=subprocess.PIPE
    )
    assert got.returncode == 0 and is_signed(got.stdout)


def test_http_proxy_reaches_a_service_by_its_name(gateway, host):
    """One environment variable makes it an egress sidecar of any program."""
    there = host()
    made = gateway(f"services:\n  orders.test:\n    hosts: [{there.address}]\n")
    done = subprocess.run(
        ["curl", "-sS", "--max-time", "30", "-w", "%{http_code}", "http://orders.test/list"],
        stdout=subprocess.PIPE,
        env={"http_proxy": f"http://127.0.0.1:{made.port}", "PATH": "/usr/bin:/bin"},
    )
    assert done.stdout.endswith(b"200") and there.requests[0].target == "/list"
    assert there.requests[0].get("host") == "orders.test"
    assert made.ask(path="http://elsewhere.test/").status == 404


def test_http_proxy_respects_the_port_of_the_url(gateway, host):
    there, secure = host(), host()
    made = gateway(
        f"services:\n  orders.test:\n    hosts: [{there.address}]\n"
        f"  other: {{hosts: [{secure.address}], match: {{host: 'orders.test:8443'}}}}\n"
        f"  both: {{hosts: [{there.address}, {secure.address}], match: {{host: '*.both.test'}}}}\n"
        f"  any: {{hosts: [{there.address}], match: {{prefix: /any}}}}\n"
    )
    port = there.address.rpartition(":")[2]
    for url, status in (
        ("http://orders.test/", 200),
        ("http://orders.test:80/", 200),
        (f"http://orders.test:{port}/", 200),
        ("http://orders.test:8080/", 404),
        ("http://orders.test:8443/", 200),
        ("http://a.both.test/", 200),
        (f"http://a.both.test:{port}/", 404),
        ("http://elsewhere.test:8080/any", 200),
    ):
        answer = made.ask(path=url)
        assert answer.status == status, url
        if status == 404:
            assert json.loads(answer.body)["reason"] == "other_port"
    assert secure.count() >= 1 and secure.requests[0].get("host") == "orders.test:8443"
    assert made.ask(host="orders.test:8080").status == 200, "Host alone is how the gateway itself was called"


def test_connections_are_kept_on_both_sides(pair):
    gateway, host = pair()
    with gateway.wire() as wire:
        for number in range(20):
            assert wire.ask(path=f"/{number}").status == 200
    assert host.connections == 1 and host.count() == 20


def test_pipelined_requests_are_answered_in_their_order(pair):
    gateway, host = pair()
    host.on("*", lambda got: Reply(body=got.target.encode(), delay=0.05 if got.target == "/0" else 0))
    with gateway.wire() as wire:
        wire.send(b"".join(request(path=f"/{n}") for n in range(50)))
        assert [wire.answer().body for _ in range(50)] == [b"/%d" % n for n in range(50)]


def test_pipelined_bodies_do_not_run_into_each_other(pair):
    gateway, host = pair()
    host.on("*", lambda got: Reply(body=signed(got.body)))
    bodies = [bytes([65 + n]) * (n * 777) for n in range(20)]
    with gateway.wire() as wire:
        wire.send(b"".join(request("PUT", f"/{n}", body=body) for n, body in enumerate(bodies)))
        assert [wire.answer("PUT").body for _ in bodies] == [signed(body) for body in bodies]


def test_head_has_the_length_and_no_body(pair):
    gateway, host = pair()
    host.on("/", Reply(body=b"x" * 1234))
    with gateway.wire() as wire:
        answer = wire.ask("HEAD")
        assert answer.status == 200 and answer.get("content-length") == "1234"
        assert wire.ask().body == b"x" * 1234


@pytest.mark.parametrize("status", [204, 304])
def test_bodiless_answers_end_with_their_head(pair, status):
    gateway, host = pair()
    host.on("/none", Reply(status, fields={"ETag": '"7"'}))
    with gateway.wire() as wire:
        answer = wire.ask(path="/none")
        assert (answer.status, answer.get("etag"), answer.get("transfer-encoding")) == (status, '"7"', None)
        assert wire.ask(path="/after").status == 200
    assert host.connections == 1


def test_a_chunked_answer_passes_with_its_trailers(pair):
    gateway, host = pair()
    body = signed(b"z" * 250000)
    trailers = (("Grpc-Status", "0"), ("Server-Timing", "db;dur=5"), ("X-Unknown", "1"), ("Set-Cookie", "a=b"))
    host.on("/", Reply(body=body, chunked=True, trailers=trailers))
    with gateway.wire() as wire:
        answer = wire.send(request(fields={"TE": "trailers"})).answer()
        assert answer.body == body
        assert answer.trailer("grpc-status") == "0" and answer.trailer("server-timing") == "db;dur=5"
        assert answer.trailer("x-unknown") == "1"
        assert answer.trailer("set-cookie") is None, "credentials do not"
        assert wire.ask().body == body


@pytest.mark.parametrize("size", [0, 9, 200000])
def test_trailers_pass_both_ways_with_their_announcement(pair, size):
    gateway, host = pair()
    trailers = (("X-Sum", "1"), ("Authorization", "x"))
    host.on("/", Reply(body=b"a" * size, chunked=True, trailers=trailers, fields={"Trailer": "X-Sum"}))
    with gateway.wire() as wire:
        wire.send(b"PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntrailer: X-Mine\r\n")
        wire.send(b"te: trailers\r\nconnection: te\r\n\r\n")
        wire.send(b"%x\r\n%s\r\n" % (size, b"q" * size) if size else b"")
        wire.send(b"0\r\nX-Mine: 7\r\nCookie: c\r\nX-Envoy-Attempt-Count: 9\r\n\r\n")
        answer = wire.answer("PUT")
        assert answer.body == b"a" * size and answer.trailers == [("x-sum", "1")] and answer.get("trailer") == "X-Sum"
        assert wire.ask(path="/next").status == 200
    got = host.requests[0]
    assert got.body == b"q" * size and got.trailers == [("x-mine", "7")] and got.get("trailer") == "X-Mine"
    assert got.get("te") == "trailers" and got.get("connection") == "te"
    assert host.requests[1].get("te") is None and host.connections == 1


def test_a_retried_request_has_its_trailers_again(pair):
    gateway, host = pair(rules="maxRetries: 1")
    host.on("/", Reply(503), Reply(body=b"fine"))
    with gateway.wire() as wire:
        wire.send(b"PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Mine: 7\r\n\r\n")
        assert wire.answer("PUT").body == b"fine"
    assert [(got.body, got.trailers) for got in host.requests] == [(b"abc", [("x-mine", "7")])] * 2


def test_trailers_that_connection_may_name_and_those_to_http_10_end_here(pair):
    gateway, host = pair()
    host.on("/", Reply(chunked=True, trailers=(("X-Sum", "1"),), fields={"Connection": "x-sum", "Trailer": "x-sum"}))
    host.on("/old", Reply(chunked=True, trailers=(("X-Sum", "1"),), fields={"Trailer": "x-sum"}))
    with gateway.wire() as wire:
        wire.send(b"PUT / HTTP/1.1\r\nhost: a\r\nconnection: X-MINE\r\ntransfer-encoding: chunked\r\n\r\n")
        wire.send(b"0\r\nx-mine: 7\r\n\r\n")
        assert wire.answer("PUT").trailers == [] and host.requests[0].trailers == []
    old = gateway.ask(path="/old", version="HTTP/1.0")
    assert old.body == b"fine" and old.get("trailer") is None


def test_an_answer_that_ends_with_the_connection_is_passed_whole(pair):
    gateway, host = pair()
    body = signed(b"q" * 70000)
    host.on("/", Reply(body=body, unsized=True, end="close"))
    with gateway.wire() as wire:
        assert wire.ask().body == body
        assert wire.ask().body == body, "the client's connection lives on"


@pytest.mark.parametrize("cut", range(1, 7))
def test_empty_lines_before_a_request_are_skipped_however_they_come(pair, cut):
    gateway, host = pair()
    sent = b"\r\n\r\n" + request(path="/a")
    with gateway.wire() as wire:
        wire.send(sent[:cut])
        assert wire.says_nothing(0.05)
        assert wire.send(sent[cut:]).answer().status == 200
        assert wire.ask(path="/b").status == 200


def test_a_chunked_request_reaches_the_host_whole(pair):
    gateway, host = pair()
    with gateway.wire() as wire:
        wire.send(b"PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in (b"abc", b"d" * 5000, b"e"):
            wire.send(b"%x;ext=1\r\n%s\r\n" % (len(piece), piece))
        wire.send(b"0\r\nX-Trailer: yes\r\n\r\n")
        assert wire.answer("PUT").status == 200
        assert wire.ask(path="/next").status == 200
    assert host.requests[0].body == b"abc" + b"d" * 5000 + b"e"


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_larger_than_the_replay_buffer_streams(pair, chunked):
    gateway, host = pair()
    body = signed(b"s" * 3_000_000)
    with gateway.wire() as wire:
        if chunked:
            wire.send(b"PUT /up HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
            for at in range(0, len(body), 50000):
                piece = body[at : at + 50000]
                wire.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            wire.send(b"0\r\n\r\n")
        else:
            wire.send(request("PUT", "/up", body=body))
        assert wire.answer("PUT").status == 200
        assert wire.ask(path="/next").status == 200
    assert host.requests[0].body == body


@pytest.mark.parametrize("end", ["keep", "close"])
def test_a_host_that_answers_before_the_body_is_there_is_heard(pair, end):
    gateway, host = pair()
    host.on("/up", Reply(403, b"no", early=True, end=end))
    with gateway.wire() as wire:
        wire.send(b"PUT /up HTTP/1.1\r\nhost: a\r\ncontent-length: 10000000\r\n\r\n" + b"x" * 200000)
        answer = wire.answer("PUT")
        assert (answer.status, answer.body) == (403, b"no")


def test_expect_100_continue_is_answered_before_the_body(pair):
    gateway, host = pair()
    with gateway.wire() as wire:
        wire.send(b"PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n")
        assert wire.socket.recv(1000).startswith(b"HTTP/1.1 100")
        answer = wire.send(b"hello").answer("PUT")
        assert answer.status == 200
    assert host.requests[0].body == b"hello" and host.requests[0].get("expect") is None


def test_interim_answers_of_a_host_do_not_hurt(pair):
    gateway, host = pair()
    host.on(
        "/",
        Reply(body=b"done", interim=b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"),
    )
    with gateway.wire() as wire:
        assert wire.ask().body == b"done"
        assert wire.ask().body == b"done"


@pytest.mark.parametrize("status", [200, 299, 404, 503])
def test_a_hosts_phrase_is_kept(pair, status):
    """Of an answer that is passed on at once, and of a failed one that was kept back."""
    gateway, host = pair(rules="maxRetries: 1\nbreaker: {enabled: false}")
    for number, phrase in enumerate(["All is well", "", "Pas trouv\xe9", '"<b>\t!', "p" * 3000]):
        line = f"HTTP/1.1 {status} {phrase}"
        host.on(f"/{number}", Reply(raw=f"{line}\r\nX-A: 1\r\ncontent-length: 4\r\n\r\nfine".encode("latin-1")))
        for method in ("GET", "POST"):
            answer = gateway.ask(method, f"/{number}")
            assert answer.start == line and answer.get("x-a") == "1" and answer.body == b"fine"


def test_a_stored_answer_has_its_phrase_date_and_via_again(pair):
    gateway, host = pair(rules="idempotencyKey: required")
    host.on("/", Reply(raw=b"HTTP/1.1 201 Made of Tea\r\nVia: 1.0 inner\r\ncontent-length: 4\r\n\r\nmade"))
    first, again = (gateway.ask("POST", fields={"Idempotency-Key": "k"}, body=b"b") for _ in range(2))
    assert host.count() == 1 and "replayed" in again.get("proxy-status")
    for answer in (first, again):
        assert answer.start == "HTTP/1.1 201 Made of Tea" and answer.body == b"made"
        assert answer.get("via") == "1.0 inner, 1.1 becalm" and len(answer.all("date")) == 1
    assert first.get("date") == again.get("date")


@pytest.mark.parametrize("status", [200, 304, 503])
def test_via_is_appended_and_date_added_both_once(pair, status):
    gateway, host = pair(rules="maxRetries: 1")
    host.on("/bare", Reply(raw=b"HTTP/1.0 %d X\r\ncontent-length: 0\r\n\r\n" % status, end="close"))
    date = "Sun, 06 Nov 1994 08:49:37 GMT"
    host.on("/full", Reply(status, b"", [("Via", "1.1 inner, 2 cache"), ("Via", "1.0 third"), ("Date", date)]))
    bare = gateway.ask(path="/bare")
    assert bare.get("via") == "1.0 becalm", "the version that the host spoke"
    assert len(bare.all("date")) == 1 and bare.get("date").endswith(" GMT")
    full = gateway.ask(path="/full", fields=[("Via", "1.1 outer"), ("Via", "1.0 edge")])
    assert full.get("via") == "1.1 inner, 2 cache, 1.0 third, 1.1 becalm" and full.all("date") == [date]
    assert host.requests[-1].get("via").startswith("1.1 outer, 1.0 edge, 1.1 becalm (")


def test_http_10_clients_are_served_and_closed(pair):
    gateway, host = pair()
    host.on("/", Reply(body=b"old " * 1000, chunked=True))
    with gateway.wire() as wire:
        answer = wire.send(b"GET / HTTP/1.0\r\nhost: a\r\n\r\n").answer()
        assert (answer.status, answer.body) == (200, b"old " * 1000)
        assert answer.get("transfer-encoding") is None, "HTTP/1.0 knows no chunks"
        assert wire.at_end()


def test_http_10_clients_without_a_host_are_routed_by_path(pair):
    gateway, host = pair()
    with gateway.wire() as wire:
        assert wire.send(b"GET /old HTTP/1.0\r\n\r\n").answer().status == 200


def test_http_10_keep_alive_is_honoured_for_a_sized_answer(pair):
    gateway, host = pair()
    with gateway.wire() as wire:
        wire.send(b"GET / HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n")
        answer = wire.answer()
        assert answer.status == 200
        if answer.get("connection", "").lower() == "keep-alive":
            assert wire.ask(path="/again").status == 200


def test_an_http_10_host_is_understood(pair):
    gateway, host = pair()
    host.on("/", Reply(body=b"old host", version="HTTP/1.0", unsized=True, end="close"))
    with gateway.wire() as wire:
        assert wire.ask().body == b"old host"
        assert wire.ask().body == b"old host"


def test_a_half_closed_client_still_gets_its_answer(pair):
    gateway, host = pair()
    host.on("/", Reply(body=b"late", delay=0.2))
    with gateway.wire() as wire:
        answer = wire.send(request("POST", body=b"abc")).half_close().answer("POST")
        assert answer.body == b"late" and wire.at_end()


def test_nothing_is_begun_for_a_client_that_has_closed_its_side(pair):
    """It may be gone for good: the answer of the running attempt is passed on, and no retry is sent."""
    gateway, host = pair(rules="initialDelay: 10ms\nmaxDelay: 10ms")
    host.on("/", Reply(503, b"busy", delay=0.2))
    with gateway.wire() as wire:
        answer = wire.send(request()).half_close().answer()
        assert (answer.status, answer.body) == (503, b"busy") and "cancelled" in answer.get("proxy-status")
    with gateway.wire() as wire:
        assert wire.send(request(path="/again")).answer().status == 200
    assert host.count("/") == 1


def test_a_client_that_closes_its_side_while_a_retry_waits_gets_the_last_answer(pair):
    gateway, host = pair(rules="initialDelay: 20s\nmaxDelay: 20s\ndeadline: 60s\njitter: none")
    host.on("/", Reply(503, b"busy"))
    with gateway.wire() as wire:
        wire.send(request())
        wait_until(lambda: gateway.metric("becalm_active_retries") == 1)
        answer = wire.half_close().answer()
        assert (answer.status, answer.body) == (503, b"busy") and wire.at_end()
    assert host.count("/") == 1


def test_curl_that_gives_up_causes_no_retry(pair):
    gateway, host = pair(rules="attemptTimeout: 1s\ninitialDelay: 10ms\nmaxDelay: 10ms")
    host.on("/slow", Reply(delay=3))
    got = subprocess.run(["curl", "-sS", "-m", "0.3", f"http://127.0.0.1:{gateway.port}/slow"], stderr=subprocess.PIPE)
    assert got.returncode == 28
    wait_until(lambda: gateway.metric("becalm_active_requests") == 0)
    assert host.count("/slow") == 1


def test_a_half_closed_client_gets_all_pipelined_answers(pair):
    gateway, host = pair()
    with gateway.wire() as wire:
        wire.send(b"".join(request(path=f"/{n}") for n in range(10))).half_close()
        assert [wire.answer().status for _ in range(10)] == [200] * 10
        assert wire.at_end()


def test_connection_close_is_honoured(pair):
    gateway, host = pair()
    with gateway.wire() as wire:
        answer = wire.ask(fields={"Connection": "close"})
        assert answer.status == 200 and answer.get("connection") == "close" and wire.at_end()


def test_every_attempt_has_the_trace_of_its_call(pair):
    gateway, host = pair()
    host.on("/x", Reply(status=503), Reply())
    trace = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "vendor=1"}
    assert gateway.ask(path="/x", fields=trace).status == 200
    attempts = host.got("/x")
    assert len(attempts) == 2
    assert all(each.get(name) == value for each in attempts for name, value in trace.items())


def test_hop_by_hop_fields_end_here(pair):
    gateway, host = pair()
    host.on("/", Reply(fields={"Connection": "X-Hop", "X-Hop": "1", "Keep-Alive": "timeout=5", "X-End": "1"}))
    fields = {
        "Connection": "X-Mine",
        "X-Mine": "1",
        "Keep-Alive": "timeout=1",
        "Proxy-Authorization": "x",
        "X-Far": "1",
    }
    answer = gateway.ask(fields=fields)
    got = host.requests[0]
    assert [got.get(name) for name in ("x-mine", "keep-alive", "proxy-authorization")] == [None] * 3
    assert got.get("x-far") == "1"
    assert [answer.get(name) for name in ("x-hop", "keep-alive")] == [None] * 2 and answer.get("x-end") == "1"


def test_a_client_that_leaves_is_no_failure_of_the_host(pair):
    gateway, host = pair()
    host.on("/slow", Reply(delay=0.3))
    wires = [gateway.wire().send(request(path="/slow")) for _ in range(30)]
    host.wait(30)
    for wire in wires:
        wire.reset()
    assert gateway.ask(path="/fine").status == 200


def test_a_large_answer_passes_to_a_slow_reader(pair):
    gateway, host = pair()
    body = signed(b"L" * 5_000_000)
    host.on("/", Reply(body=body))
    with gateway.wire(receive_buffer=4096) as wire:
        wire.send(request())
        assert wire.answer().body == body


def test_a_websocket_is_tunnelled(pair):
    gateway, host = pair()
    host.on("/ws", Tunnel())
    fields = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "eA==",
        "Sec-WebSocket-Version": "13",
    }
    with gateway.wire() as wire:
        answer = wire.ask(path="/ws", fields=fields)
        assert answer.status == 101 and answer.get("upgrade") == "websocket"
        for size in (1, 100, 300000):
            wire.send(b"w" * size)
            got = wire.rest
            wire.rest = b""
            while len(got) < size:
                got += wire.socket.recv(65536)
            assert got == b"w" * size


def test_early_bytes_of_a_websocket_are_not_lost(pair):
    gateway, host = pair()
    host.on("/ws", Tunnel())
    with gateway.wire() as wire:
        wire.send(request(path="/ws", fields={"Connection": "Upgrade", "Upgrade": "websocket"}) + b"early")
        assert wire.answer().status == 101
        got = wire.rest
        while len(got) < 5:
            got += wire.socket.recv(100)
        assert got == b"early"


@pytest.mark.parametrize("upgrade", ["h2c", "foo"])
def test_other_upgrades_are_not_passed_on(pair, upgrade):
    gateway, host = pair()
    fields = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": upgrade, "HTTP2-Settings": "AAMAAABk"}
    assert gateway.ask(fields=fields).status == 200
    assert host.requests[0].get("upgrade") is None and host.requests[0].get("http2-settings") is None


@pytest.mark.parametrize("upgrade", ["tcp", "SPDY/3.1", "spdy/3.1", "WebSocket"])
def test_upgrades_that_are_named_are_tunnelled(pair, upgrade):
    gateway, host = pair("upgrades: [websocket, TCP, SPDY/3.1]")
    host.on("/exec", Tunnel((("Connection", "Upgrade"), ("Upgrade", upgrade), ("X-A", "1"))))
    with gateway.wire() as wire:
        answer = wire.ask("POST", "/exec", fields={"Connection": "Upgrade", "Upgrade": upgrade}, body=b"")
        assert answer.status == 101 and answer.get("upgrade") == upgrade and answer.get("x-a") == "1"
        assert host.requests[0].get("upgrade") == upgrade
        wire.send(b"ping")
        assert wire.socket.recv(100) == b"ping"


@pytest.mark.parametrize("asked, given", [("tcp", "websocket"), ("websocket", "tcp"), ("tcp, websocket", "tcp"), ("h2c", "h2c")])
def test_a_101_to_another_protocol_is_a_bad_answer(pair, asked, given):
    gateway, host = pair("upgrades: [websocket, tcp]", rules="maxRetries: 0")
    host.on("/", Tunnel((("Connection", "Upgrade"), ("Upgrade", given))))
    assert gateway.ask(fields={"Connection": "Upgrade", "Upgrade": asked}).status == 502


def test_a_101_before_the_request_has_ended_is_a_bad_answer(pair):
    """The rest of the body would be the first bytes of the tunnel."""
    gateway, host = pair(rules="maxRetries: 0\nreplay: off")
    host.on("/", Reply(raw=b"HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", early=True, end="hang"))
    with gateway.wire() as wire:
        wire.send(b"POST / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\ncontent-length: 9\r\n\r\nfour")
        answer = wire.answer()
        assert answer.status == 502 and b"101 before" in answer.body


def test_an_unasked_101_is_a_bad_answer(pair):
    gateway, host = pair(rules="maxRetries: 0")
    host.on("/", Tunnel())
    assert gateway.ask().status == 502


def test_connect_is_refused_unless_allowed(gateway, host):
    there = host()
    made = gateway(f"services:\n  a.test:\n    hosts: [{there.address}]\n")
    with made.wire() as wire:
        answer = wire.send(b"CONNECT a.test:80 HTTP/1.1\r\nhost: a.test:80\r\n\r\n").answer()
        assert answer.status in (403, 405, 501), answer.start
    assert there.connections == 0


def test_connect_is_tunnelled_when_allowed(gateway, host):
    there = host()
    made = gateway(f"connect: on\nservices:\n  a.test:\n    hosts: [{there.address}]\n")
    with made.wire() as wire:
        answer = wire.send(b"CONNECT a.test:80 HTTP/1.1\r\nhost: a.test:80\r\n\r\n").answer("CONNECT")
        assert answer.status == 200
        assert wire.ask(path="/inside").status == 200
    assert there.requests[0].target == "/inside" and there.requests[0].get("via") is None
    with made.wire() as wire:
        assert wire.send(b"CONNECT b.test:80 HTTP/1.1\r\nhost: b.test:80\r\n\r\n").answer().status == 404


def test_it_listens_on_ipv6_and_on_a_unix_socket(gateway, host, tmp_path):
    there = host()
    path = tmp_path / "in.sock"
    port = free_port()
    gateway(
        f"services:\n  a:\n    hosts: [{there.address}]\n    match: {{prefix: /}}\n",
        sets=[f'listen=["[::1]:{port}", "unix:{path}"]'],
        workers=2,
    )
    with Wire(str(path)) as wire:
        assert wire.ask(path="/local").status == 200
    with socket.create_connection(("::1", port), 20) as six:
        six.sendall(b"GET /six HTTP/1.1\r\nhost: a\r\n\r\n")
        assert six.recv(1000).startswith(b"HTTP/1.1 200 ")
    assert there.count("/local") == 1 and there.count("/six") == 1


def test_a_host_may_be_a_name(gateway, host):
    there = host()
    made = gateway(f"services:\n  a:\n    hosts: [localhost:{there.port}]\n    match: {{prefix: /}}\n")
    wait_until(lambda: made.ask().status == 200)


def test_a_request_that_comes_back_is_a_loop(gateway):
    port = free_port()
    gateway(
        f"services:\n  a:\n    hosts: [127.0.0.1:{port}]\n    match: {{prefix: /}}\n    maxRetries: 0\n",
        sets=[f"listen=127.0.0.1:{port}"],
    )
    answer = ask(port)
    assert answer.status == 508, answer.start
    assert b'"reason":"loop"' in answer.body
