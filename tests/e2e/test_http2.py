# SPDX-License-Identifier: MIT
"""Clients that speak HTTP/2, by prior knowledge: everything is as over HTTP/1; docs/http2.md."""

import functools
import signal
import socket
import threading

import pytest
from conftest import policy_of
from host import Reply, wait_until
from http2 import CONTINUATION, DATA, GOAWAY, HEADERS, PING, PRIORITY, RST, PREFACE, SETTINGS, WINDOW, Frames, Http2, block, frame, literal, real_clients
from message import signed


@pytest.fixture
def pair(pair):
    return functools.partial(pair, protocols="[h2, h1]")


def test_a_request_and_its_answer(pair):
    gateway, host = pair("log: {access: json}")
    host.on("/x?y=1", Reply(body=b"hello", fields=(("X-Mixed-Case", "1"), ("Connection", "x-hop"), ("X-Hop", "1"))))
    with Http2(gateway.port) as client:
        answer = client.ask(path="/x?y=1", fields=[("user-agent", "t"), ("cookie", "a=1"), ("cookie", "b=2")])
        assert (answer.status, answer.body) == (200, b"hello")
        assert answer.fields["x-mixed-case"] == "1" and "x-hop" not in answer.fields and "connection" not in answer.fields
        assert answer.fields["via"] == "1.1 becalm" and answer.fields["content-length"] == "5"
    (got,) = host.got("/x?y=1")
    assert got.get("host") == "a" and got.get("cookie") == "a=1; b=2" and got.get("via").startswith("2 becalm")
    wait_until(lambda: "HTTP/2.0" in str(gateway.access()))


def test_streams_overtake_each_other(pair):
    gateway, host = pair()
    go = threading.Event()
    host.on("/slow", Reply(body=b"slow", when=go.is_set))
    with Http2(gateway.port) as client:
        slow = client.begin(path="/slow")
        for i in range(50):
            assert client.ask(path=f"/{i}").status == 200
        go.set()
        assert client.answer(slow).body == b"slow"


@pytest.mark.parametrize("length", [0, 1, 5000, 3_000_000])
@pytest.mark.parametrize("known", [True, False])
def test_bodies_of_requests(pair, length, known):
    gateway, host = pair()
    body = signed(b"b" * length) if length else b""
    with Http2(gateway.port) as client:
        fields = [("content-length", str(len(body)))] if known else []
        stream = client.begin("POST", "/up", fields, end=False)
        if body:
            client.body(stream, body)
        else:
            client.connection.end_stream(stream)
            client.flush()
        assert client.answer(stream).status == 200
    assert host.got("/up")[0].body == body


def test_trailers_pass_both_ways(pair):
    gateway, host = pair()
    host.on("/", Reply(body=b"x" * 3000, chunked=True, trailers=(("X-Sum", "3000"),)))
    with Http2(gateway.port) as client:
        stream = client.begin("POST", "/", [("te", "trailers")], end=False)
        client.body(stream, b"abc", trailers=[("x-ours", "1")])
        answer = client.answer(stream)
        assert answer.body == b"x" * 3000 and answer.trailers == {"x-sum": "3000"}
    assert ("x-ours", "1") in host.got("/")[0].trailers


@pytest.mark.parametrize("status, method", [(204, "GET"), (304, "GET"), (200, "HEAD")])
def test_answers_without_a_body(pair, status, method):
    gateway, host = pair()
    host.on("/", Reply(status, body=b"" if status != 200 else b"12345"))
    with Http2(gateway.port) as client:
        answer = client.ask(method)
        assert (answer.status, answer.body, answer.ended) == (status, b"", True)
        assert client.ask(method).status == status, "and the connection lives on"


def test_hints_before_the_answer(pair):
    gateway, host = pair()
    host.on("/", Reply(interim=b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"))
    with Http2(gateway.port) as client:
        answer = client.ask()
        assert (answer.interim, answer.status) == ([103], 200)


def test_a_failed_answer_is_retried_and_explained(pair):
    gateway, host = pair("explain: true")
    host.on("/", Reply(503), Reply(200, b"better"))
    with Http2(gateway.port) as client:
        answer = client.ask()
        assert (answer.status, answer.body) == (200, b"better")
        assert "becalm-explain" in answer.fields
    assert host.count("/") == 2


def test_a_failed_answer_is_told_if_no_better_one_comes(pair):
    gateway, host = pair()
    host.on("/", *[Reply(503, b"no")] * 9)
    with Http2(gateway.port) as client:
        answer = client.ask("POST", body=b"x")
        assert (answer.status, answer.body) == (503, b"no")


def test_our_own_answers(pair):
    gateway, _ = pair()
    with Http2(gateway.port) as client:
        answer = client.ask(path="/%zz")
        assert answer.status == 400 and answer.fields["content-type"] == "application/problem+json"
        assert client.ask().status == 200


def test_a_key_and_its_stored_answer(pair):
    gateway, host = pair("", "idempotencyKey: required")
    host.on("/", Reply(201, b"made"))
    with Http2(gateway.port) as client:
        for i in range(2):
            answer = client.ask("POST", body=b"x", fields=[("idempotency-key", '"k"')])
            assert (answer.status, answer.body) == (201, b"made")
            assert ("replayed" in answer.fields.get("proxy-status", "")) == (i == 1)
    assert host.count("/") == 1


def test_a_key_whose_outcome_nobody_knows_is_held(pair):
    gateway, host = pair("", "idempotencyKey: enforced")
    host.on("/", Reply(cut=0, end="reset"), Reply(201, b"made"))
    with Http2(gateway.port) as client:
        statuses = [client.ask("POST", body=b"x", fields=[("idempotency-key", '"k"')]).status for _ in range(3)]
    assert statuses == [502, 409, 409] and host.count("/") == 1


def test_a_deadline(pair):
    gateway, host = pair("trust: [127.0.0.1]")
    host.on("/", Reply(end="hang", raw=b""))
    with Http2(gateway.port) as client:
        assert client.ask(fields=[("x-request-deadline-ms", "200")]).status == 504


def test_a_reset_ends_the_call(pair):
    gateway, host = pair()
    host.on("/slow", Reply(end="hang", raw=b""))
    with Http2(gateway.port) as client:
        stream = client.begin(path="/slow")
        host.wait(1, "/slow")
        client.reset(stream)
        gateway.expect_metric(0, "becalm_in_flight", service="a")
        assert client.ask().status == 200


def test_a_cut_answer_is_a_reset(pair):
    gateway, host = pair()
    host.on("/", Reply(body=b"x" * 100000, cut=50000, end="close"))
    with Http2(gateway.port) as client:
        answer = client.ask()
        assert answer.status == 200 and not answer.ended and answer.reset is not None
        assert client.ask(path="/next").status == 200


def test_one_slow_stream_blocks_no_other(pair):
    gateway, host = pair()
    host.on("/big", Reply(body=signed(b"b" * 2_000_000)))
    with Http2(gateway.port) as client:
        big = client.connection.get_next_available_stream_id()
        client.shut.add(big)
        assert client.begin(path="/big") == big
        for i in range(20):
            assert client.ask(path=f"/{i}").status == 200
        wait_until(lambda: len(client.answers[big].body) == 65535 or client.ask().status != 200)
        client.shut.clear()
        client.connection.increment_flow_control_window(2**24, big)
        client.flush()
        assert client.answer(big).body == signed(b"b" * 2_000_000)


def test_a_reload_loses_no_stream(pair, host):
    gateway, first = pair()
    go = threading.Event()
    first.on("/slow", Reply(body=b"slow", when=go.is_set))
    with Http2(gateway.port) as client:
        slow = client.begin(path="/slow")
        first.wait(1, "/slow")
        other = host()
        other.on("/who", Reply(body=b"other"))
        gateway.reload(policy_of([other]))
        wait_until(lambda: client.ask(path="/who").body == b"other")
        go.set()
        assert client.answer(slow).body == b"slow"


def test_draining_says_so_twice_and_loses_nothing(pair):
    gateway, host = pair()
    go = threading.Event()
    host.on("/slow", Reply(body=b"slow", when=go.is_set))
    with Frames(gateway.port) as client:
        client.send(frame(HEADERS, 5, 1, block(path="/slow")))
        host.wait(1, "/slow")
        gateway.signal(signal.SIGTERM)
        assert client.next(GOAWAY)[3] == b"\x7f\xff\xff\xff" + bytes(4)
        _, _, _, ping = client.next(PING)
        client.send(frame(HEADERS, 5, 3, block(path="/late")))
        assert client.next(HEADERS)[2] == 3, "it was on its way"
        client.send(frame(PING, 1, 0, ping))
        assert client.next(GOAWAY)[3] == b"\0\0\0\3" + bytes(4)
        go.set()
        slow = next(each for each in client.frames() if each[0] == DATA and each[2] == 1)
        assert slow[3] == b"slow"
        assert client.next(GOAWAY) is None, "then the connection ends"


def test_who_is_idle_is_told_goodbye(pair):
    gateway, _ = pair("idleTimeout: 300ms")
    with Http2(gateway.port) as client:
        assert client.ask().status == 200
        assert client.at_end() and client.goaways == [(0, 1)]


def test_malformed_requests_are_reset(pair):
    gateway, host = pair()
    rows = [
        block() + literal("connection", "close"),
        block() + literal("transfer-encoding", "chunked"),
        block() + literal("Upper", "x"),
        block() + literal("x", "a\r\nb: c"),
        block() + literal("content-length", "5"),
        block(path="http://b/"),
        block(more=[(":path", "/b")]),
    ]
    with Frames(gateway.port) as client:
        for i, row in enumerate(rows):
            client.send(frame(HEADERS, 5, 2 * i + 1, row))
            kind, _, stream, payload = client.next(RST, HEADERS)
            assert (kind, stream, payload) == (RST, 2 * i + 1, b"\0\0\0\1"), i
    assert host.count() == 0


def test_what_http_1_refuses_is_refused(pair):
    gateway, host = pair()
    with Http2(gateway.port) as client:
        assert client.ask(authority="u@a").status == 400
        assert client.ask(fields=[(f"x-{i}", "1") for i in range(200)]).status == 431
        assert client.ask().status == 200
    assert host.count() == 1


def test_a_host_beside_another_authority_is_refused(pair):
    gateway, host = pair()
    with Frames(gateway.port) as client:
        client.send(frame(HEADERS, 5, 1, block() + literal("host", "b")))
        assert client.next(HEADERS)[2] == 1
        assert b"another than the authority" in client.next(DATA)[3]
    assert host.count() == 0


def test_it_begins_with_the_connection_or_not_at_all(pair):
    gateway, _ = pair()
    with gateway.wire() as wire:
        assert wire.ask().status == 200, "and HTTP/1 is spoken as before"
        wire.send(PREFACE)
        assert wire.answer().status == 505


def test_extended_connect_is_neither_announced_nor_taken(pair):
    """Then clients make websockets on a connection of HTTP/1.1 (RFC 8441, 3)."""
    gateway, host = pair("connect: true", protocols="[h2, h1]")
    with Http2(gateway.port) as client:
        assert client.ask().status == 200
        assert client.connection.remote_settings.enable_connect_protocol == 0
    asked = [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":authority", "a"), (":path", "/chat")]
    with Frames(gateway.port) as client:
        client.send(frame(HEADERS, 4, 1, b"".join(literal(*field) for field in asked)))
        assert client.next(RST)[3] == bytes([0, 0, 0, 1])  # PROTOCOL_ERROR
    assert len(host.requests) == 1


def test_connect_is_refused(pair):
    gateway, _ = pair("connect: true")
    with Frames(gateway.port) as client:
        client.send(frame(HEADERS, 4, 1, literal(":method", "CONNECT") + literal(":authority", "a:80")))
        assert client.next(HEADERS)[2] == 1
        assert client.next(RST)[3] == bytes(4), "and the rest of it is not wanted"


@pytest.mark.parametrize(
    "code,frames",
    [
        (5, [frame(HEADERS, 4, 1, block("POST")), frame(RST, 0, 1, b"\0\0\0\x08"), frame(HEADERS, 5, 1, block())]),
        (5, [frame(HEADERS, 4, 1, block("POST")), frame(RST, 0, 1, b"\0\0\0\x08"), frame(DATA, 1, 1, b"x")]),
        (1, [frame(HEADERS, 5, 5, block()), frame(HEADERS, 5, 3, block())]),
        (1, [frame(PRIORITY, 0, 0, b"\0\0\0\0\1")]),
        (1, [frame(PRIORITY, 0, 3, b"\0\0\0\3\1")]),
        (1, [frame(PRIORITY, 0, 3, b"\x80\0\0\1\1"), frame(PRIORITY, 0, 3, b"\x80\0\0\3\1")]),
    ],
)
def test_frames_that_break_the_rules_of_streams_end_the_connection(pair, code, frames):
    """HEADERS on a stream that the peer itself has ended or left out; PRIORITY without a stream."""
    gateway, _ = pair()
    with Frames(gateway.port) as client:
        client.send(b"".join(frames))
        assert client.next(GOAWAY)[3][4:8] == code.to_bytes(4, "big")
    gateway.expect_metric(1, "becalm_h2_goaway_total", why="protocol")


@pytest.mark.parametrize("more", [frame(HEADERS, 5, 1, block()), frame(DATA, 1, 1, b"x"), frame(DATA, 0, 1, b"")])
def test_nothing_comes_behind_the_end_of_an_answered_request(pair, more):
    gateway, _ = pair()
    with Frames(gateway.port) as client:
        client.send(frame(HEADERS, 5, 1, block()))
        while not client.next(DATA)[1] & 1:
            pass
        client.send(more)
        assert client.next(GOAWAY)[3][4:8] == b"\0\0\0\5"


def test_what_was_on_its_way_to_a_stream_that_we_reset_harms_nobody(pair):
    """A body and its trailers after the stream has ended."""
    gateway, _ = pair()
    with Frames(gateway.port) as client:
        client.send(frame(HEADERS, 4, 1, block("POST", path="http://b/")))
        assert client.next(RST)[2] == 1
        client.send(frame(DATA, 0, 1, b"x") + frame(HEADERS, 5, 1, literal("x", "y")) + frame(HEADERS, 5, 3, block()))
        kind, _, stream, _ = client.next(HEADERS, GOAWAY)
        assert (kind, stream) == (HEADERS, 3)


def flood(kind):
    """The first frames, and the frames that are repeated."""
    get = block()
    return {
        "settings": (b"", lambda i: frame(SETTINGS, 0, 0)),
        "pings": (b"", lambda i: frame(PING, 0, 0, b"12345678")),
        "priorities": (b"", lambda i: frame(PRIORITY, 0, 2 * i + 1, b"\0\0\0\0\1")),
        "unknown_frames": (b"", lambda i: frame(0xBE, 0, 0, b"x")),
        "windows": (b"", lambda i: frame(WINDOW, 0, 0, b"\0\0\0\1")),
        "empty_data": (frame(HEADERS, 4, 1, block("POST")), lambda i: frame(DATA, 0, 1)),
        "resets": (b"", lambda i: frame(HEADERS, 5, 2 * i + 1, get) + frame(RST, 0, 2 * i + 1, b"\0\0\0\x08")),
        "faults": (b"", lambda i: frame(HEADERS, 5, 2 * i + 1, get) + frame(WINDOW, 0, 2 * i + 1, b"\x7f\xff\xff\xff")),
        "continuations": (frame(HEADERS, 1, 1, get), lambda i: frame(CONTINUATION, 0, 1, literal("x", "y"))),
        "heads": (b"", lambda i: frame(HEADERS, 5, 1, get + b"\x40\x01x\x7f\xb9\x16" + b"y" * 3000 + b"\xbe" * 8000)),
    }[kind]


@pytest.mark.parametrize(
    "kind", "settings pings priorities unknown_frames windows empty_data resets faults continuations heads".split()
)
def test_floods_are_told_to_calm_down(pair, kind):
    gateway, _ = pair()
    before, again = flood(kind)
    with Frames(gateway.port) as client, Http2(gateway.port) as other:
        client.send(before)
        if kind == "faults":  # one after the other: else there are more streams at once than are allowed
            for i in range(2000):  # 200, and one more for each second that it takes
                client.send(again(i))
                last = client.next(RST, GOAWAY)
                if last[0] == GOAWAY:
                    break
            assert i >= 200
        else:
            client.send(b"".join(again(i) for i in range(1 if kind == "heads" else 1200)))
            last = client.next(GOAWAY)
        assert last is not None and last[3][4:8] == b"\0\0\0\x0b", last
        assert other.ask().status == 200
    gateway.expect_metric(1, "becalm_h2_goaway_total", why=kind)
    wait_until(lambda: gateway.log_lines(kind))


def test_curl_and_nghttp_and_h2load(pair):
    gateway, host = pair()
    real_clients(host, f"http://127.0.0.1:{gateway.port}/", "--http2-prior-knowledge")


def test_streams_and_windows_are_as_the_policy_says(pair):
    edge, host = pair("http2: {streams: 3, window: 2KiB}", protocols="[h2, h1]")
    host.on("/", Reply(body=b"x" * 10_000))
    with Http2(edge.port) as client:
        assert client.ask("POST", body=b"y" * 50_000).body == b"x" * 10_000  # through windows of 2 KiB
        settings = client.connection.remote_settings
        assert (settings.max_concurrent_streams, settings.initial_window_size) == (3, 2048)
    with Frames(edge.port) as peer:
        for number in range(1, 9, 2):  # of four requests that do not end, the last is one too many
            peer.send(frame(HEADERS, 4, number, block("POST")))
        kind, _, _, payload = peer.next(RST, GOAWAY)  # and it has acknowledged that
        assert kind == GOAWAY and payload[:8] == bytes([0, 0, 0, 5, 0, 0, 0, 1])


def test_a_client_that_does_not_acknowledge_settings_is_told_to_go(pair):
    edge, host = pair("headerTimeout: 6s")
    with Http2(edge.port) as client:  # a client that has acknowledged may take its time
        assert client.ask().status == 200
        with socket.create_connection(("127.0.0.1", edge.port), timeout=60) as peer:
            peer.sendall(PREFACE + frame(SETTINGS, 0, 0))
            came = b""
            while piece := peer.recv(65536):
                came += piece
            assert frame(GOAWAY, 0, 0, bytes([0, 0, 0, 0, 0, 0, 0, 4])) in came  # SETTINGS_TIMEOUT
        assert client.ask().status == 200 and not client.goaways
    edge.expect_metric(1, "becalm_h2_goaway_total", why="settings_timeout")


def all_of(port, first):
    """All that is said to a client that begins so."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as peer:
        peer.sendall(first)
        came = b""
        try:
            while piece := peer.recv(65536):
                came += piece
        except ConnectionResetError:
            pass
        return came


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", PREFACE[:-3] + b"XX\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"x"])
def test_an_address_that_speaks_nothing_else_ends_what_does_not_begin_with_the_preface(pair, first):
    edge, host = pair(protocols="[h2]")
    came = all_of(edge.port, first)
    assert b"HTTP/1" not in came and came[3] == SETTINGS
    assert came.endswith(frame(GOAWAY, 0, 0, bytes([0, 0, 0, 0, 0, 0, 0, 1])))  # PROTOCOL_ERROR
    edge.expect_metric(1, "becalm_h2_goaway_total", why="protocol")
    told = "does not speak HTTP/2 to an address that accepts only HTTP/2"
    times = 0 if first.startswith(b"PRI") else 1
    wait_until(lambda: len(edge.log_lines(told)) == times)
    all_of(edge.port, first)  # it is said once
    with Http2(edge.port) as client:
        assert client.ask(path="/x").status == 200
    assert len(edge.told(told, times)) == times
    assert not host.got("/")


def test_who_says_nothing_at_an_address_that_speaks_nothing_else_is_closed_without_a_word_of_http_1(pair):
    edge, _ = pair("headerTimeout: 200ms", protocols="[h2]")
    assert b"HTTP" not in all_of(edge.port, b"")


def test_a_preface_may_come_byte_by_byte(pair):
    for protocols in ("[h2]", "[h2, h1]"):
        edge, host = pair(protocols=protocols)
        with Frames(edge.port, pieces=1) as peer:
            peer.send(frame(HEADERS, 5, 1, block()))
            kind, _, stream, _ = peer.next(HEADERS, GOAWAY)
            assert (kind, stream) == (HEADERS, 1) and len(host.got("/")) == 1
