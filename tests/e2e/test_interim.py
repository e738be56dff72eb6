# SPDX-License-Identifier: MIT
"""Messages before the answer: 1xx of hosts, Expect of clients; and answers that begin before their request ends."""

import socket
import threading
import time

import pytest
from conftest import policy_of
from host import Reply
from message import request, signed

HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x-hop\r\nX-Hop: 1\r\nBecalm-Retry: spent\r\n\r\n"
PUT = b"PUT /up HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n"
BIG = signed(b"b" * 300000)


def raw_head(wire):
    """The next head, with any status."""
    while b"\r\n\r\n" not in wire.rest:
        data = wire.socket.recv(65536)
        assert data, wire.rest
        wire.rest += data
    head, _, wire.rest = wire.rest.partition(b"\r\n\r\n")
    return head.decode("latin-1").split("\r\n")


def test_hints_come_before_the_answer_and_without_what_is_for_one_connection(pair):
    gateway, host = pair()
    go = threading.Event()
    host.on("/", Reply(body=b"done", interim=HINTS, when=go.is_set))
    with gateway.wire() as wire:
        wire.send(request())
        assert raw_head(wire) == ["HTTP/1.1 103 Early Hints", "Link: </a.css>; rel=preload", "via: 1.1 becalm"]
        go.set()
        answer = wire.answer()
        assert (answer.status, answer.body, answer.interim) == (200, b"done", [])
        assert wire.ask().interim == [103], "and the connection lives on"
    assert host.connections == 1


@pytest.mark.parametrize("interim", [b"HTTP/1.1 102 Processing\r\n\r\n", b"HTTP/1.1 199 Odd\r\ncontent-length: 0\r\n\r\n"])
def test_any_1xx_passes_but_100_and_101(pair, interim):
    gateway, host = pair()
    host.on("/", Reply(body=b"done", interim=interim + b"HTTP/1.1 100 Continue\r\n\r\n" + interim))
    with gateway.wire() as wire:
        for _ in range(2):
            answer = wire.ask()
            assert answer.interim == [int(interim[9:12])] * 2 and answer.body == b"done"


def test_no_1xx_to_a_client_of_http_10(pair):
    gateway, host = pair()
    host.on("/", Reply(body=b"done", interim=HINTS))
    answer = gateway.ask(version="HTTP/1.0")
    assert answer.interim == [] and answer.body == b"done"


def test_few_1xx_pass_and_many_are_no_answer(pair):
    gateway, host = pair(rules="maxRetries: 0")
    host.on("/few", Reply(body=b"done", interim=HINTS * 60))
    host.on("/many", Reply(body=b"done", interim=HINTS * 70))
    answer = gateway.ask(path="/few")
    assert answer.interim == [103] * 16 and answer.body == b"done"
    answer = gateway.ask(path="/many")
    assert answer.status == 502 and b"1xx" in answer.body


def test_hints_of_an_attempt_that_is_retried_do_no_harm(pair):
    gateway, host = pair(rules="maxRetries: 2\nbudget: {kind: none}")
    host.on("/", Reply(503, interim=HINTS), Reply(raw=HINTS, end="reset"), Reply(body=b"done", interim=HINTS))
    with gateway.wire() as wire:
        answer = wire.ask()
        assert (answer.status, answer.body, answer.interim) == (200, b"done", [103] * 3)
        assert wire.ask().body == b"done"


def test_nothing_is_done_twice_behind_a_1xx(pair):
    """A pooled connection that ends behind one was not dead: its host had the request."""
    gateway, host = pair(rules="maxRetries: 0")
    host.on("/ok", Reply(body=b"ok"))
    host.on("/cut", Reply(raw=HINTS, end="close"))
    with gateway.wire() as wire:
        assert wire.ask(path="/ok").status == 200
        assert wire.ask(path="/cut").status == 502
    assert host.count("/cut") == 1


def test_a_client_that_does_not_read_gets_no_pile_of_hints(pair):
    gateway, host = pair()
    fat = b"HTTP/1.1 103 Early Hints\r\nX: " + b"x" * 60000 + b"\r\n\r\n"
    host.on("/", Reply(body=b"y" * 3_000_000, interim=fat * 40))
    before = gateway.resident_kib()
    wires = [gateway.wire(receive_buffer=4096).send(request()) for _ in range(20)]
    host.wait(20)
    time.sleep(0.5)
    if not gateway.sanitized():
        assert gateway.resident_kib() - before < 20 * 1024
    for wire in wires:
        wire.close()


# Expect.


@pytest.mark.parametrize("chunked", [False, True])
def test_expect_of_a_body_that_streams_goes_to_the_host(pair, chunked):
    gateway, host = pair()
    host.on("/up", Reply(body=b"taken", interim=b"HTTP/1.1 100 Go ahead\r\nX-A: 1\r\n\r\n"))
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BIG), BIG) if chunked else BIG
    with gateway.wire() as wire:
        wire.send(PUT + (b"transfer-encoding: chunked\r\n\r\n" if chunked else b"content-length: %d\r\n\r\n" % len(BIG)))
        assert raw_head(wire) == ["HTTP/1.1 100 Continue"]
        answer = wire.send(body).answer("PUT")
        assert (answer.status, answer.body, answer.interim) == (200, b"taken", [])
        assert wire.ask(path="/next").status == 200
    assert host.requests[0].get("expect") == "100-continue" and host.requests[0].body == BIG
    assert host.connections == 1


@pytest.mark.parametrize("status", [401, 413, 417, 200, 503])
def test_a_host_that_answers_by_the_head_alone_spares_the_upload(pair, status):
    gateway, host = pair()
    host.on("/up", Reply(status, b"no", early=True))
    with gateway.wire() as wire:
        wire.send(PUT + b"content-length: 3000000\r\n\r\n")
        answer = wire.answer("PUT")
        assert (answer.status, answer.body, answer.interim) == (status, b"no", [])
        assert answer.get("connection") == "close" and wire.at_end()
    assert host.requests[0].body == b"" and host.count() == 1
    assert gateway.ask(path="/next").status == 200


def test_a_host_that_knows_nothing_of_expect_gets_the_body_after_a_while(pair):
    gateway, host = pair()
    with gateway.wire() as wire:
        wire.send(PUT + b"content-length: %d\r\n\r\n" % len(BIG))
        assert wire.says_nothing(0.5)
        assert raw_head(wire) == ["HTTP/1.1 100 Continue"]
        assert wire.send(BIG).answer("PUT").status == 200
    assert host.requests[0].body == BIG


def test_a_client_that_does_not_wait_for_100_is_served(pair):
    gateway, host = pair()
    host.on("/up", Reply(body=b"taken", interim=b"HTTP/1.1 100 Continue\r\n\r\n", delay=0.2))
    with gateway.wire() as wire:
        answer = wire.send(PUT + b"content-length: %d\r\n\r\n" % len(BIG) + BIG).answer("PUT")
        assert answer.body == b"taken" and wire.ask(path="/next").status == 200
    assert host.requests[0].body == BIG


def test_expect_without_a_host_costs_no_upload(gateway, host):
    there = host()
    made = gateway(f"services:\n  a:\n    hosts: [{there.address}]\n    match: {{prefix: /}}\n    maxRetries: 0\n")
    there.stop()
    with made.wire() as wire:
        wire.send(PUT + b"content-length: 3000000\r\n\r\n")
        answer = wire.answer("PUT")
        assert answer.status in (502, 503) and answer.interim == [] and answer.get("connection") == "close"


def test_a_client_that_leaves_while_it_expects_leaves_nothing_behind(pair):
    gateway, host = pair()
    host.on("/up", Reply(delay=30))
    for n in range(20):
        seen = host.count()
        wire = gateway.wire().send(PUT + b"content-length: 3000000\r\n\r\n")
        if n % 2:
            host.wait(seen + 1)
        if n % 3 == 0:
            wire.reset()
        else:
            wire.close()
    assert gateway.ask(path="/next").status == 200


# Bodies that are not kept.


def test_without_replay_an_answer_begins_before_the_request_has_ended(gateway):
    """A dialogue: each side waits for the next message of the other side."""
    listener = socket.create_server(("127.0.0.1", 0))

    def echo():
        peer, _ = listener.accept()
        with peer, peer.makefile("rwb", buffering=0) as file:
            while file.readline() != b"\r\n":
                pass
            file.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            while (size := int(file.readline(), 16)) > 0:
                data = file.read(size)
                file.readline()
                file.write(b"%x\r\n%s\r\n" % (size, data.upper()))
            file.readline()
            file.write(b"0\r\n\r\n")

    thread = threading.Thread(target=echo, daemon=True)
    thread.start()
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    made = gateway(
        f"services:\n  a:\n    hosts: ['{address}']\n    match: {{prefix: /}}\n"
        "    endpoints:\n      talk: {match: {path: /talk}, replay: off}\n"
    )
    with made.wire() as wire:
        wire.send(b"POST /talk HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        assert raw_head(wire)[0] == "HTTP/1.1 200 OK"
        for word in (b"ping", b"pong", b"and so on"):
            wire.send(b"%x\r\n%s\r\n" % (len(word), word))
            expected = b"%x\r\n%s\r\n" % (len(word), word.upper())
            while len(wire.rest) < len(expected):
                wire.rest += wire.socket.recv(1000)
            assert wire.rest == expected
            wire.rest = b""
        wire.send(b"0\r\n\r\n")
        assert wire.socket.recv(1000) == b"0\r\n\r\n" and wire.at_end()
    thread.join(10)
    listener.close()


def test_without_replay_nothing_is_sent_twice_but_what_was_never_sent(pair, gateway, host):
    made, there = pair(rules="replay: off\nmaxRetries: 2")
    there.on("/up", Reply(503))
    answer = made.ask("PUT", "/up", body=b"small")
    assert answer.status == 503 and there.count("/up") == 1, "not even an idempotent one, and a small body"
    there.on("/none", Reply(503), Reply(body=b"fine"))
    assert made.ask("GET", "/none").body == b"fine", "without a body it is as everywhere"
    assert made.ask("PUT", "/ok", body=b"small").status == 200 and there.requests[-1].body == b"small"
    dead, alive = host(), host()
    dead.stop()
    two = gateway(policy_of([dead, alive], rules="replay: off\nmaxRetries: 2\nbudget: {kind: none}"))
    for n in range(6):
        assert two.ask("PUT", f"/{n}", body=b"b%d" % n).status == 200, "no byte had been sent"
    assert [got.body for got in alive.requests] == [b"b%d" % n for n in range(6)]
