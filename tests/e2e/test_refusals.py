# SPDX-License-Identifier: MIT
"""Messages that the gateway refuses: ambiguous framing from either side, and sizes above its caps."""

import json
import signal
import threading
import time

import pytest
from conftest import Gateway, policy_of
from host import Host, Reply, wait_until
from message import BAD_TRAILERS, request

AMBIGUOUS = {
    "length and chunked": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
    "the same length twice": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nabcde",
    "listed lengths": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5, 5\r\n\r\nabcde",
    "a signed length": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +5\r\n\r\nabcde",
    "a negative length": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -5\r\n\r\nabcde",
    "a huge length": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999999999999\r\n\r\n",
    "a hexadecimal length": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0x5\r\n\r\nabcde",
    "identity": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: identity\r\n\r\n",
    "gzip, chunked": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked, chunked": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "xchunked": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked on 1.0": b"POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a tab before a length": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length:\t5\r\n\r\nabcde",
    "a tab behind chunked": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\t\r\n\r\n0\r\n\r\n",
    "a blank before the colon": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length : 5\r\n\r\nabcde",
    "a folded field": b"GET / HTTP/1.1\r\nhost: a\r\nx-a: 1\r\n 2\r\n\r\n",
    "a leading blank": b"GET / HTTP/1.1\r\n host: a\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\nx-a: 1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    "an empty name": b"GET / HTTP/1.1\r\nhost: a\r\n: 1\r\n\r\n",
    "a bare line feed": b"GET / HTTP/1.1\nhost: a\n\n\r\n\r\n",
    "a bare carriage return": b"GET / HTTP/1.1\r\nhost: a\r\nx-a: 1\rx-b: 2\r\n\r\n",
    "a nul byte": b"GET / HTTP/1.1\r\nhost: a\r\nx-a: 1\x002\r\n\r\n",
    "two blanks in the first line": b"GET  / HTTP/1.1\r\nhost: a\r\n\r\n",
    "a blank in the target": b"GET /a b HTTP/1.1\r\nhost: a\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n\r\n",
    "HTTP/1.1 in small letters": b"GET / http/1.1\r\nhost: a\r\n\r\n",
    "a field without a colon": b"GET / HTTP/1.1\r\nhost: a\r\nnonsense\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "a chunk of nonsense size": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n",
    "a chunk size of 0x5": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0x5\r\nabcde\r\n0\r\n\r\n",
    "a chunk without its end": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcde\r\n0\r\n\r\n",
    "a chunk size too large": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    "a chunk with a bare line feed": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\nabc\n0\n\n",
}


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """One gateway for all tests: the bytes of one client must not affect the next."""
    there = Host()
    made = Gateway(tmp_path_factory.mktemp("refusing"), policy_of([there]))
    yield made, there
    made.end()
    there.close()


@pytest.mark.parametrize("what", AMBIGUOUS)
def test_an_ambiguous_request_gets_400_and_the_connection_ends(refusing, what):
    gateway, host = refusing
    before = host.count("/smuggled")
    seen = host.count()
    with gateway.wire() as wire:
        wire.send(AMBIGUOUS[what] + request(path="/smuggled"))
        answer = wire.answer()
        status = (505, 400) if "HTTP" in what else (501, 400) if what in ("identity", "gzip, chunked") else (400, 413)
        assert answer.status in status, (what, answer.start)
        assert answer.get("connection") == "close" and wire.at_end()
        assert answer.get("content-type") == "application/problem+json"
        assert json.loads(answer.body)["status"] == answer.status
        assert "becalm" in answer.get("proxy-status")
    assert host.count("/smuggled") == before, "what came behind it was taken for a request"
    assert host.count() == seen, "it reached the host"
    assert gateway.ask().status == 200


BAD_ANSWERS = {
    "garbage": b"\x00\x01\x02 nonsense\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "another protocol": b"220 mail.example ESMTP\r\n\r\n",
    "HTTP/2": b"HTTP/2.0 200 OK\r\ncontent-length: 0\r\n\r\n",
    "length and chunked": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
    "a signed length": b"HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\nabcde",
    "xchunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a folded field": b"HTTP/1.1 200 OK\r\nx-a: 1\r\n 2\r\ncontent-length: 0\r\n\r\n",
    "a blank before the colon": b"HTTP/1.1 200 OK\r\ncontent-length : 0\r\n\r\n",
    "a bare line feed": b"HTTP/1.1 200 OK\ncontent-length: 0\n\n\r\n\r\n",
    "a nul byte": b"HTTP/1.1 200 OK\r\nx: a\x00b\r\ncontent-length: 0\r\n\r\n",
    "a bad first chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\n" + b"x-a: " + b"a" * 200000,
    "two empty lines before": b"\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    "a line feed before": b"\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    "a status of four digits": b"HTTP/1.1 1000 High\r\ncontent-length: 0\r\n\r\n",
    "257 fields": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 257 + b"\r\n",
    "chunked on 1.0": b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "an unasked 101": b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
}

# Parts of the answer to the client, and of the log line.
RULES = {
    "garbage": "status line",
    "no status": "status",
    "another protocol": "status line",
    "HTTP/2": "status line",
    "length and chunked": "exclude each other",
    "two lengths": "Content-Length is there twice, and differs",
    "a signed length": "Content-Length is not a number",
    "xchunked": "Transfer-Encoding is not chunked",
    "a folded field": "several lines",
    "a blank before the colon": "no proper name",
    "a bare line feed": "status line",
    "a nul byte": "forbidden bytes",
    "a bad first chunk": "chunk's size",
    "a head without end": "too large",
    "two empty lines before": "status line",
    "a line feed before": "status line",
    "a status of four digits": "status line",
    "257 fields": "too many fields",
    "chunked on 1.0": "HTTP/1.0",
    "an unasked 101": "101",
}


@pytest.mark.parametrize("what", BAD_ANSWERS)
def test_an_ambiguous_answer_becomes_502(pair, what):
    gateway, host = pair(rules="maxRetries: 0")
    host.on("/bad", Reply(raw=BAD_ANSWERS[what], end="hang"))
    with gateway.wire() as wire:
        answer = wire.ask(path="/bad")
        assert answer.status == 502, answer.start
        assert "http_protocol_error" in answer.get("proxy-status")
        assert RULES[what] in json.loads(answer.body)["detail"]
        assert wire.ask(path="/good").status == 200, "the client's connection lives on"
    assert host.connections == 2, "the bad connection must not be used again"
    wait_until(lambda: any(RULES[what] in line for line in gateway.log_lines("breaks HTTP/1")))


def test_a_rule_that_is_broken_in_the_middle_of_a_body_is_logged(pair):
    gateway, host = pair("log: {access: json}")
    good, bad = b"3\r\nabc\r\n" * 20000, b"x\r\n"
    host.on("/bad", Reply(raw=b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + good + bad, end="hang"))
    with gateway.wire() as wire, pytest.raises((EOFError, ConnectionResetError)):
        wire.ask(path="/bad")
    wait_until(lambda: any("size is malformed" in line for line in gateway.log_lines("breaks HTTP/1")))
    wait_until(lambda: any("size is malformed" in line for line in gateway.access()))


def test_a_host_that_breaks_a_rule_in_every_answer_does_not_fill_the_log(pair):
    gateway, host = pair("log: {access: json}", rules="maxRetries: 0\nbreaker: {enabled: false}")
    host.on("/bad", Reply(raw=BAD_ANSWERS["two lengths"], end="close"))
    begin = time.monotonic()
    for _ in range(50):
        assert gateway.ask(path="/bad").status == 502
    wait_until(lambda: len([line for line in gateway.access() if "and differs" in line]) == 50)
    assert len(gateway.log_lines("breaks HTTP/1")) <= 2 + (time.monotonic() - begin)


SLOPPY = {
    "the same length twice": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "blanks behind a chunk's size": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5 \t\r\nhello\r\n0 \r\n\r\n",
    "an empty line before": b"\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    "an empty line before each": b"\r\nHTTP/1.1 100 Go on\r\n\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    "status 600": b"HTTP/1.1 600 Odd\r\ncontent-length: 5\r\n\r\nhello",
    "status 999": b"HTTP/1.1 999 Denied\r\ncontent-length: 5\r\n\r\nhello",
    "256 fields": b"HTTP/1.1 200 OK\r\n" + b"set-cookie: a=b\r\n" * 255 + b"content-length: 5\r\n\r\nhello",
}


@pytest.mark.parametrize("what", SLOPPY)
def test_what_hosts_send_sloppily_but_unambiguously_is_taken(pair, what):
    gateway, host = pair(rules="maxRetries: 0\nbreaker: {enabled: false}")
    host.on("/1", Reply(raw=SLOPPY[what]))
    host.on("/2", Reply(raw=SLOPPY[what], pace=0.001) if b"\r\n\r\n" == SLOPPY[what][-9:-5] else Reply(raw=SLOPPY[what]))
    with gateway.wire() as wire:
        for path in ("/1", "/2", "/1"):
            answer = wire.ask(path=path)
            assert answer.body == b"hello", answer.start
            assert str(answer.status) in what or answer.status == 200
            assert len(answer.all("content-length")) <= 1, "never two of them, whatever came"
    assert host.connections == 1, "its connection is used again"
    assert gateway.log_lines("breaks HTTP/1") == []


def test_bytes_behind_an_answer_are_not_the_next_ones(pair):
    gateway, host = pair()
    host.on(
        "/a",
        Reply(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong"),
    )
    host.on("/b", Reply(body=b"right"))
    with gateway.wire() as wire:
        for _ in range(10):
            assert wire.ask(path="/a").body == b"ok"
            assert wire.ask(path="/b").body == b"right"


def test_bytes_that_come_late_behind_an_answer_are_not_the_next_ones(pair):
    gateway, host = pair()
    host.on("/a", Reply(body=b"ok"))
    host.on("/b", Reply(body=b"right"))
    with gateway.wire() as wire:
        for _ in range(20):
            assert wire.ask(path="/a").body == b"ok"
            host.say(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong")
            assert wire.ask(path="/b").body == b"right"


def test_bytes_behind_an_answer_are_not_the_next_ones_of_a_busy_gateway(pair):
    """It learns of the next request first, and then of bytes that are no answer to it: they came before it was sent."""
    gateway, host = pair()
    host.on("/a", Reply(body=b"ok"))
    host.on("/b", Reply(body=b"right"))
    with gateway.wire() as wire:
        for _ in range(3):
            assert wire.ask(path="/a").body == b"ok"
            gateway.stop()
            wire.send(request(path="/b"))
            host.say(b"HTTP/1.1 408 Too Late\r\ncontent-length: 5\r\n\r\nwrong")
            gateway.signal(signal.SIGCONT)
            assert wire.answer().body == b"right"


def test_no_route_is_404_and_never_an_open_proxy(gateway, host):
    there = host()
    made = gateway(f"services:\n  a.test:\n    hosts: [{there.address}]\n    match: {{prefix: /a}}\n")
    for target, name in (("/b", "a.test"), (f"http://{there.address}/b", "x"), ("/", "elsewhere.test")):
        answer = made.ask(path=target, host=name)
        assert answer.status == 404 and "destination_not_found" in answer.get("proxy-status")
        assert json.loads(answer.body)["reason"] == "no_route"
    assert there.connections == 0


def test_a_path_is_matched_as_the_host_would_read_it(gateway, host):
    """A route must not be got around with dots or escapes."""
    public, secret = host(), host()
    made = gateway(
        f"services:\n  public:\n    hosts: [{public.address}]\n    match: {{prefix: /public}}\n"
        f"  secret:\n    hosts: [{secret.address}]\n    match: {{prefix: /secret}}\n"
    )
    for path in ("/public/../secret/x", "/public/%2e%2e/secret/x", "/public/./../secret/x", "//secret/x"):
        made.ask(path=path)
    assert not [got.target for got in public.requests if "secret" in got.target and ".." in got.target]


def test_a_body_above_the_cap_gets_413(pair):
    gateway, host = pair("maxBody: 1000")
    assert gateway.ask("POST", body=b"x" * 1000).status == 200
    with gateway.wire() as wire:
        answer = wire.send(request("POST", body=b"x" * 1001)).answer("POST")
        assert answer.status == 413 and answer.get("connection") == "close" and wire.at_end()
    with gateway.wire() as wire:
        wire.send(
            b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n" + b"200\r\n" + b"x" * 512 + b"\r\n"
        )
        wire.send(b"200\r\n" + b"x" * 512 + b"\r\n")
        assert wire.answer("POST").status == 413 and wire.at_end()
    assert host.count() == 1


def test_a_client_that_sends_on_after_its_refusal_still_reads_it(pair):
    """A close with bytes unread would make its kernel throw the answer away."""
    gateway, host = pair("maxBody: 1000")
    with gateway.wire() as wire:
        wire.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3000000\r\n\r\n")
        for _ in range(30):
            wire.send(b"x" * 100000)
        assert wire.answer("POST").status == 413


def test_a_large_head_gets_431_and_a_long_target_414(pair):
    gateway, host = pair("maxHeaderBytes: 4KiB")
    for lines, status in (((b"x-a: " + b"a" * 5000), 431), (b"\r\n".join(b"x-%d: 1" % n for n in range(600)), 431)):
        with gateway.wire() as wire:
            answer = wire.send(b"GET / HTTP/1.1\r\nhost: a\r\n" + lines + b"\r\n\r\n").answer()
            assert answer.status == status and answer.get("connection") == "close" and wire.at_end()
    with gateway.wire() as wire:
        assert wire.send(b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nhost: a\r\n\r\n").answer().status in (414, 431)
    with gateway.wire() as wire:
        assert wire.send(b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"a" * 100000).answer().status == 431, "no end in sight"
    assert gateway.ask(fields={"x-a": "a" * 3000}).status == 200
    assert host.count() == 1


def test_the_largest_head_that_a_policy_may_allow_is_passed_on_and_no_larger_one(pair):
    """Above 192 KiB it was read beyond the buffer that all connections of a worker share."""
    gateway, host = pair("maxHeaderBytes: 64KiB")
    before, behind = b"GET / HTTP/1.1\r\nhost: a\r\nx-a: ", b"\r\n\r\n"
    most = 64 * 1024 - len(before) - len(behind)
    for length, status in ((most, 200), (most + 1, 431), (most + 300000, 431)):
        with gateway.wire() as wire:
            assert wire.send(before + b"a" * length + behind).answer().status == status, length
    assert host.count() == 1


def test_long_trailers_and_chunk_extensions_are_refused(pair):
    gateway, host = pair()
    for tail in (
        b"3;" + b"e" * 100000 + b"\r\nabc\r\n0\r\n\r\n",
        b"3\r\nabc\r\n0\r\n" + b"x-t: a\r\n" * 20000 + b"\r\n",
    ):
        with gateway.wire() as wire:
            wire.send(b"PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
            wire.send(tail)
            assert wire.answer("PUT").status in (400, 413, 431)
            assert wire.at_end()


def test_what_comes_behind_a_refused_connect_is_no_request(refusing):
    gateway, host = refusing
    seen = host.count()
    with gateway.wire() as wire:
        wire.send(b"CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n" + request(path="/smuggled"))
        answer = wire.answer()
        assert answer.status in (404, 405) and answer.get("connection") == "close" and wire.at_end()
    assert host.count() == seen


@pytest.mark.parametrize("what", BAD_TRAILERS)
def test_bad_trailers_of_a_request_are_refused(refusing, what):
    gateway, host = refusing
    seen = host.count()
    for cut in (1, 4, len(BAD_TRAILERS[what])):
        with gateway.wire() as wire:
            wire.send(b"PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n")
            wire.send(BAD_TRAILERS[what][:cut])
            wire.send(BAD_TRAILERS[what][cut:] + request(path="/smuggled"))
            assert wire.answer("PUT").status == 400
            assert wire.at_end()
    assert host.count() == seen, "it reached the host"


@pytest.mark.parametrize("what", BAD_TRAILERS)
def test_an_answer_with_bad_trailers_is_none(pair, what):
    gateway, host = pair(rules="maxRetries: 0")
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"
    host.on("/bad", Reply(raw=head + BAD_TRAILERS[what], end="hang"))
    with gateway.wire() as wire:
        answer = wire.ask(path="/bad")
        assert answer.status == 502 and "http_protocol_error" in answer.get("proxy-status")
        assert wire.ask(path="/good").status == 200
    assert host.connections == 2, "the bad connection must not be used again"


def test_a_head_that_does_not_come_gets_408(pair):
    gateway, host = pair("headerTimeout: 1s")
    with gateway.wire() as wire:
        answer = wire.send(b"GET / HTTP/1.1\r\nhos").answer()
        assert answer.status == 408 and wire.at_end()
    with gateway.wire() as wire:
        assert wire.ask().status == 200
        answer = wire.send(b"GET / HT").answer()
        assert answer.status == 408, "on a connection that was used before, too"


def test_heads_that_came_while_the_process_stood_still_are_in_time(gateway, host):
    """More connections than one round of events handles: timers run after the events."""
    there = host()
    for seconds in (2, 8, 32, 50):  # until all are connected before the first one's time is over
        made = gateway(policy_of([there], f"headerTimeout: {seconds}s"))
        begin = time.monotonic()
        wires = [made.wire() for _ in range(600)]
        wait_until(lambda: made.metric("becalm_connections") >= 600)
        made.signal(signal.SIGSTOP)
        if all(wire.says_nothing(0) for wire in wires):
            break
        made.signal(signal.SIGCONT)
    for wire in wires:
        wire.send(request())
    time.sleep(max(0, begin + seconds + 1 - time.monotonic()))
    made.signal(signal.SIGCONT)
    assert {wire.answer().status for wire in wires} == {200}
    for wire in wires:
        wire.close()


def test_a_head_that_drips_gets_408_as_well(pair):
    gateway, host = pair("headerTimeout: 500ms")
    with gateway.wire() as wire:
        try:
            for byte in b"GET / HTTP/1.1\r\nhost: a\r\n" + b"x: 1\r\n" * 1000:
                wire.send(bytes([byte]))
                if not wire.says_nothing(0.05):
                    break
        except OSError:
            pass
        assert wire.answer().status == 408


def test_a_body_that_does_not_come_gets_408(pair):
    gateway, host = pair("idleTimeout: 300ms")
    with gateway.wire() as wire:
        wire.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc")
        assert wire.answer("POST").status == 408 and wire.at_end()
    assert host.count() == 0


def test_idle_connections_are_closed_after_their_time(pair):
    gateway, host = pair("idleTimeout: 300ms")
    with gateway.wire() as wire:
        assert wire.ask().status == 200
        assert wire.at_end()


def test_more_connections_than_allowed_get_503(pair):
    gateway, host = pair("maxConnections: 5")
    go = threading.Event()
    host.on("/slow", Reply(when=go.is_set))
    wires = []
    try:
        while len(wires) < 5:
            wires.append(gateway.wire().send(request(path="/slow")))
        host.wait(5)
        with gateway.wire() as sixth:
            answer = sixth.send(request()).answer()
            assert answer.status == 503 and int(answer.get("retry-after")) >= 0
        go.set()
        assert [wire.answer().status for wire in wires] == [200] * 5
        wires.pop().close()
        until = time.monotonic() + 20
        while gateway.ask().status != 200:
            assert time.monotonic() < until
    finally:
        go.set()
        for wire in wires:
            wire.close()


@pytest.mark.parametrize("method", ["BREW", "QUERY", "VERSION-CONTROL", "get", "X_PRIVATE.1!", "A" * 200])
def test_an_unknown_method_is_passed_on_and_never_retried(pair, method):
    gateway, host = pair("log: {access: json}")
    host.on("/", Reply(503))
    host.on("/fine", Reply(body=b"fine"))
    assert gateway.ask(method).status == 503
    assert [got.method for got in host.requests] == [method], "nobody knows whether it may be done twice"
    assert gateway.ask(method, "/fine", body=b"abc").body == b"fine"
    assert host.requests[-1].body == b"abc"


@pytest.mark.parametrize("method", ["connect", "Connect", "CONNECTED"])
def test_only_connect_is_connect(refusing, method):
    gateway, host = refusing
    seen = host.count()
    with gateway.wire() as wire:
        wire.send(request(method, "a.test:80") + request(path="/smuggled"))
        assert wire.answer().status == 400 and wire.at_end()
    assert host.count() == seen
