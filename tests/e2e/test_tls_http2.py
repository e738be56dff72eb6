# SPDX-License-Identifier: MIT
"""Clients that speak HTTP/2 with TLS: ALPN chooses it, and everything is as it is in clear text (test_http2.py)."""

import signal
import ssl
import threading

import pytest
from conftest import policy_of, wait_until
from host import Reply
from http2 import DATA, GOAWAY, HEADERS, PING, PREFACE, Frames, Http2, block, frame, real_clients
from message import signed
from wire import Wire

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.fixture
def edge(gateway, host, authority):
    """edge(): a gateway with TLS that speaks both, before a plain host, and the context of a client that believes it."""

    def make(text="", more="", **options):
        this = host()
        tls = f"{{certificates: [{authority.issue().yaml}]{more}}}"
        made = gateway(policy_of([this], text), tls=tls, **{"protocols": "[h2, h1]", **options})
        made.host, made.believes = this, authority.client()
        return made

    return make


def chosen(gateway, *offers):
    context = gateway.believes
    if offers:
        context.set_alpn_protocols(offers)
    with Wire(gateway.port, tls=context, name="a.test") as wire:
        return wire.socket.selected_alpn_protocol()


def turned_away(gateway, *offers):
    """By TLS itself, in the handshake."""
    try:
        return chosen(gateway, *offers) is None
    except ssl.SSLError:
        return True


def test_tls_http2__alpn_chooses_h2_where_both_speak_it(edge, gateway, host, authority):
    both = edge()
    assert chosen(both) is None
    assert chosen(both, "http/1.1") == "http/1.1"
    assert chosen(both, "http/1.1", "h2") == "h2", "in the order of the gateway"
    assert chosen(both, "h2") == "h2"
    assert chosen(edge(protocols="[h1]"), "h2", "http/1.1") == "http/1.1"


def test_tls_http2__an_address_that_speaks_nothing_else_takes_no_other(edge):
    only = edge(protocols="[h2]")
    assert chosen(only, "http/1.1", "h2") == "h2"
    with pytest.raises(ssl.SSLError, match="NO_APPLICATION_PROTOCOL|alert"):
        chosen(only, "http/1.1")
    with Http2(only.port, tls=only.believes) as client:
        assert client.ask().status == 200
    context = only.believes
    context.set_alpn_protocols([])
    with Wire(only.port, tls=context, name="a.test") as wire:  # it names no protocol, and speaks HTTP/1.1
        wire.send(b"GET /h1 HTTP/1.1\r\nHost: a\r\n\r\n")
        came = b""
        while piece := wire.socket.recv(65536):
            came += piece
    assert b"HTTP/1" not in came and came.endswith(frame(GOAWAY, 0, 0, bytes([0, 0, 0, 0, 0, 0, 0, 1]))) and not only.host.got("/h1")


@pytest.mark.parametrize("version", [V12, V13])
def test_tls_http2__requests_and_answers_of_all_sizes_pass(edge, version):
    gateway = edge("log: {access: json}")
    gateway.believes.minimum_version = gateway.believes.maximum_version = version
    with Http2(gateway.port, tls=gateway.believes) as client:
        for size in [0, 1, 4096, 16384, 65536, 1_000_000]:
            body = signed(b"b" * size)
            gateway.host.on("/x", Reply(body=body))
            answer = client.ask("POST", "/x", body=body)
            assert (answer.status, answer.body) == (200, body)
            assert gateway.host.got("/x")[-1].body == body
    wait_until(lambda: "HTTP/2.0" in str(gateway.access()))


def test_tls_http2__streams_overtake_each_other(edge):
    gateway = edge()
    go = threading.Event()
    gateway.host.on("/slow", Reply(body=b"slow", when=go.is_set))
    with Http2(gateway.port, tls=gateway.believes) as client:
        slow = client.begin(path="/slow")
        streams = [client.begin(path=f"/{i}") for i in range(50)]
        assert [client.answer(each).status for each in streams] == [200] * 50
        go.set()
        assert client.answer(slow).body == b"slow"


def test_tls_http2__a_reader_that_stops_for_a_while_gets_the_whole_answer(edge):
    gateway = edge()
    gateway.host.on("/", Reply(body=signed(b"b" * 8_000_000)))
    with Http2(gateway.port, tls=gateway.believes, receive_buffer=65536) as client:
        client.connection.increment_flow_control_window(2**24)
        stream = client.begin()
        client.connection.increment_flow_control_window(2**24, stream)
        client.flush()
        wait_until(lambda: gateway.metric("becalm_buffered_bytes") > 0)
        assert client.answer(stream).body == signed(b"b" * 8_000_000)
    wait_until(lambda: gateway.metric("becalm_buffered_bytes") == 0)


def test_tls_http2__with_tls_alpn_alone_decides(edge):
    """A client that did not choose HTTP/2 by ALPN can't begin it; a client that chose it can't speak HTTP/1."""
    gateway = edge()
    for offers in (["http/1.1"], None):
        context = gateway.believes
        if offers:
            context.set_alpn_protocols(offers)
        with Wire(gateway.port, tls=context, name="a.test") as wire:
            assert wire.send(PREFACE).answer().status == 505
    wait_until(lambda: gateway.log_lines("must name h2 by ALPN"))
    gateway.believes.set_alpn_protocols(["h2"])
    with Wire(gateway.port, tls=gateway.believes, name="a.test") as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        said = b""
        while data := wire.socket.recv(65536):
            said += data
        assert said[3:4] == b"\4" and b"HTTP/1" not in said
    assert gateway.host.count() == 0


def test_tls_http2__who_says_nothing_after_the_handshake_is_closed_without_a_word_of_http_1(edge):
    gateway = edge("headerTimeout: 300ms")
    gateway.believes.set_alpn_protocols(["h2"])
    with Wire(gateway.port, tls=gateway.believes, name="a.test") as wire:
        assert wire.socket.recv(100) == b""


def test_tls_http2__sessions_are_resumed(edge):
    gateway = edge(workers=2)
    with Http2(gateway.port, tls=gateway.believes) as client:
        assert client.ask().status == 200
        session = client.socket.session
    for _ in range(5):
        with Http2(gateway.port, tls=gateway.believes, session=session) as client:
            assert client.socket.session_reused and client.ask().status == 200
    gateway.expect_metric(5, "becalm_tls_handshakes_total", side="clients", result="resumed")


def test_tls_http2__draining_says_so_twice_and_loses_nothing(edge):
    gateway = edge()
    go = threading.Event()
    gateway.host.on("/slow", Reply(body=b"slow", when=go.is_set))
    with Frames(gateway.port, tls=gateway.believes) as client:
        client.send(frame(HEADERS, 5, 1, block(path="/slow")))
        gateway.host.wait(1, "/slow")
        gateway.signal(signal.SIGTERM)
        assert client.next(GOAWAY)[3] == b"\x7f\xff\xff\xff" + bytes(4)
        client.send(frame(PING, 1, 0, client.next(PING)[3]))
        assert client.next(GOAWAY)[3] == b"\0\0\0\1" + bytes(4)
        go.set()
        assert next(each for each in client.frames() if each[0] == DATA and each[2] == 1)[3] == b"slow"
        assert client.next(GOAWAY) is None, "then the connection ends"


def test_tls_http2__floods_end_here_too(edge):
    gateway = edge()
    with Frames(gateway.port, tls=gateway.believes) as client:
        client.send(b"".join(frame(PING, 0, 0, b"12345678") for _ in range(1200)))
        assert client.next(GOAWAY)[3][4:8] == b"\0\0\0\x0b"
    gateway.expect_metric(1, "becalm_h2_goaway_total", why="pings")


def test_tls_http2__a_reload_begins_it_for_new_connections(gateway, host, authority):
    this, shown = host(), authority.issue()

    def policy(port, protocols):
        return f"listen: [{{address: 127.0.0.1:{port}, tls: {shown.tls}, protocols: {protocols}}}]\n" + policy_of([this])

    made = gateway(policy_of([this]), listen="127.0.0.1")
    port = made.port
    made.end()
    made = gateway(policy(port, "[h1]"), listen=None)
    made.port, made.believes = port, authority.client()
    with Wire(port, tls=authority.client(), name="a.test") as old:
        assert old.ask().status == 200
        made.reload(policy(port, "[h2, h1]"))
        wait_until(lambda: chosen(made, "h2", "http/1.1") == "h2")
        with Http2(port, tls=made.believes) as client:
            assert client.ask().status == 200
        assert old.ask().status == 200
        made.reload(policy(port, "[h2]"))
        wait_until(lambda: turned_away(made, "http/1.1"))
        assert chosen(made, "http/1.1", "h2") == "h2" and old.ask().status == 200


def test_tls_http2__curl_and_nghttp_and_h2load(edge, authority):
    gateway = edge()
    real_clients(gateway.host, f"https://127.0.0.1:{gateway.port}/", "--http2", "--cacert", str(authority.cert))
