# SPDX-License-Identifier: MIT
"""HTTP/2 towards hosts: streams that share a connection, requests that were never sent, windows, resets, and real
servers."""

import os
import shutil
import socket
import subprocess
import threading
import time

import pytest
from conftest import free_port, policy_of, wait_until
from host_h2 import Answer, GoAway, HostH2, Refuse
from http2 import Http2
from wire import Wire, ask

H2 = "protocol: h2\n"


@pytest.fixture
def h2host():
    made = []

    def make(**more):
        made.append(HostH2(**more))
        return made[-1]

    yield make
    for each in made:
        each.close()


def all_at_once(count, work):
    """The results of `count` threads that begin together."""
    results = [None] * count
    gate = threading.Barrier(count)

    def run(n):
        gate.wait(60)
        results[n] = work(n)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return results


def test_h2_hosts__the_goodbye_to_a_host_is_not_written_over_the_end_of_its_answer(gateway, h2host):
    """A reload took it out, and the client takes the last of its answer: that is ready to be written when the host is told."""
    body = bytes(range(256)) * 800
    this, other = h2host(at_end=lambda _: Answer(body=body)), h2host()
    edge = gateway(policy_of([this], "", H2), protocols="[h2, h1]")
    with Http2(edge.port) as client:
        stream = client.begin()
        client.shut.add(stream)
        answer = client.answers[stream]
        client.until(lambda: len(answer.body) == 65535)
        edge.reload(policy_of([other], "", H2))
        while not answer.ended:
            had = len(answer.body)
            client.connection.increment_flow_control_window(10_000, stream)
            client.flush()
            client.until(lambda: len(answer.body) > had or answer.ended)  # noqa: B023
        assert answer.body == body and client.goaways == []
        assert client.ask().status == 200


def test_h2_hosts__a_request_and_its_answer_with_all_their_parts(gateway, h2host):
    this = h2host(
        at_end=lambda asked: Answer(
            body=asked.body, fields=(("x-kind", "b"), ("set-cookie", "a=1"), ("set-cookie", "b=2")), trailers=(("x-sum", "7"),)
        )
    )
    edge = gateway(policy_of([this], "", H2))
    with edge.wire() as wire:
        for size in (0, 1, 16384, 65535, 65536, 300_000, 1_000_000):
            body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
            got = wire.ask("POST", "/p?q=1", host="shop.test", body=body, fields={"X-Mine": "1", "Connection": "x-gone", "X-Gone": "1", "TE": "trailers"})
            assert (got.status, got.body, got.get("x-kind")) == (200, body, "b")
    asked = this.requests[0]
    assert [asked.field(f":{name}") for name in ("method", "scheme", "authority", "path")] == ["POST", "http", "shop.test", "/p?q=1"]
    assert asked.field("x-mine") == "1" and asked.field("x-gone") is None and asked.field("connection") is None and asked.field("host") is None
    assert asked.field("te") == "trailers" and "becalm" in asked.field("via")
    assert len(this.connections) == 1 and not this.errors


def test_h2_hosts__many_streams_share_one_connection_up_to_what_the_host_allows(gateway, h2host):
    """Before the host's SETTINGS only the request that opened the connection is sent; then as many as they allow, and a
    second connection for the rest."""
    begin = threading.Event()
    this = h2host(streams=4, settings_wait=begin, at_end=lambda asked: None)
    edge = gateway(policy_of([this], "pool: {maxPerHost: 2}", H2 + "attemptTimeout: 60s"))
    answers = []
    threads = [threading.Thread(target=lambda n=n: answers.append(edge.ask(path=f"/{n}").status)) for n in range(10)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(this.connections) == 1)
    begin.set()
    wait_until(lambda: len(this.requests) == 8)  # two connections of four
    assert len(this.connections) == 2
    while len(answers) < 10:
        for asked in list(this.requests):
            if asked.ended and not hasattr(asked, "answered"):
                open_now = [each for each in this.requests if each.connection is asked.connection and not hasattr(each, "answered")]
                assert len(open_now) <= 4
                asked.answered = True
                asked.connection.answer(asked, Answer())
        threads[0].join(0.01)
    assert answers == [200] * 10 and len(this.connections) == 2


def test_h2_hosts__one_slow_reader_does_not_stop_the_others_on_its_connection(gateway, h2host):
    big = bytes(8 << 20)
    this = h2host(at_end=lambda asked: Answer(body=big if asked.path == "/big" else b"small"))
    edge = gateway(policy_of([this], "", H2))
    with Wire(edge.port, receive_buffer=4096) as slow:
        slow.send(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_until(lambda: any(connection.left for connection in this.connections))  # its window is used up
        assert [edge.ask(path=f"/{n}").body for n in range(20)] == [b"small"] * 20
        assert len(this.connections) == 1
        assert slow.answer().body == big


def test_h2_hosts__an_upload_waits_for_its_window_and_the_others_do_not(gateway, h2host):
    this = h2host(reads=False, at_end=lambda asked: Answer(body=b"ok"))
    edge = gateway(policy_of([this], "replay: {perRequest: 1KiB}", H2))
    with edge.wire() as slow:
        slow.send(b"PUT /big HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + bytes(60000))
        wait_until(lambda: this.requests and len(this.requests[0].body) == 60000)
        slow.send(bytes(100_000))
        wait_until(lambda: len(this.requests[0].body) == 65535)
        assert edge.ask(path="/small").status == 200 and len(this.connections) == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_h2_hosts__a_refused_stream_is_sent_again_whatever_its_method(gateway, h2host, method):
    this = h2host(at_head=lambda asked: Refuse() if len(this.requests) == 1 else None)
    edge = gateway(policy_of([this], "", H2))
    got = edge.ask(method, body=b"pay" if method == "POST" else None)
    assert got.status == 200 and len(this.requests) == 2
    edge.expect_metric(1, "http_client_retry_attempts_total", service="a")


def test_h2_hosts__a_post_that_was_reset_is_not_sent_again(gateway, h2host):
    this = h2host(at_end=lambda asked: Refuse(code=2))
    edge = gateway(policy_of([this], "", H2))
    assert edge.ask("POST", body=b"pay").status == 502 and len(this.requests) == 1


def test_h2_hosts__what_a_goaway_leaves_out_is_sent_on_another_connection_and_nobody_pays(gateway, h2host):
    this = h2host(at_head=lambda asked: GoAway() if len(this.requests) == 2 else None)
    edge = gateway(policy_of([this], "", H2))
    assert [edge.ask("POST", path=f"/{n}", body=b"pay").status for n in range(3)] == [200] * 3
    assert [asked.path for asked in this.requests] == ["/0", "/1", "/1", "/2"] and len(this.connections) == 2
    assert edge.metric("http_client_retry_attempts_total", service="a") == 0
    edge.expect_metric(1, "becalm_redone_total", service="a")


def test_h2_hosts__a_body_that_streamed_away_is_not_sent_again_after_a_goaway(gateway, h2host):
    """It would be a part of it."""
    this = h2host(at_head=lambda asked: None)
    edge = gateway(policy_of([this], "replay: {perRequest: 1KiB}", H2))
    with edge.wire() as wire:
        wire.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + bytes(5000))
        wait_until(lambda: this.requests and len(this.requests[0].body) == 5000)
        this.connections[0].goaway(0)
        assert wire.answer().status == 502
    assert len(this.requests) == 1


def test_h2_hosts__a_lost_connection_fails_all_of_its_streams_and_only_what_may_be_repeated_is(gateway, h2host):
    this = h2host(at_end=lambda asked: None if len(this.connections) == 1 else Answer())
    edge = gateway(policy_of([this], "", H2 + "attemptTimeout: 60s\nbudget: {kind: none}"))
    methods, results = ["GET", "POST", "GET"], []
    work = lambda method: results.append((method, edge.ask(method, body=b"x" if method == "POST" else None).status))  # noqa: E731
    threads = [threading.Thread(target=work, args=(method,)) for method in methods]
    for thread in threads:
        thread.start()
    wait_until(lambda: sum(1 for asked in this.requests if asked.ended) == 3)
    this.connections[0].close()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == [("GET", 200), ("GET", 200), ("POST", 502)]
    assert sum(1 for asked in this.requests if asked.method == "POST") == 1


def test_h2_hosts__an_answer_that_is_cut_is_cut_for_the_client(gateway, h2host):
    this = h2host(at_end=lambda asked: Answer(body=b"part", end=False))
    edge = gateway(policy_of([this], "", H2))
    with edge.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        came = b""
        while b"part" not in came:
            came += wire.socket.recv(65536)
        this.connections[0].reset(this.requests[0], 2)
        try:
            while more := wire.socket.recv(65536):
                came += more
        except ConnectionResetError:
            pass
        assert b"200" in came and not came.endswith(b"0\r\n\r\n")
    assert len(this.requests) == 1


def test_h2_hosts__a_client_that_goes_resets_its_stream_alone(gateway, h2host):
    this = h2host(at_end=lambda asked: None if asked.path == "/wait" else Answer())
    edge = gateway(policy_of([this], "", H2 + "attemptTimeout: 600s\ndeadline: 600s"))
    with edge.wire() as wire:
        wire.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_until(lambda: this.requests and this.requests[0].ended)
        wire.reset()
        wait_until(lambda: this.requests[0].reset == 8)  # CANCEL
    assert edge.ask(path="/").status == 200 and len(this.connections) == 1


def test_h2_hosts__interim_answers_pass(gateway, h2host):
    this = h2host(at_end=lambda asked: Answer(interim=(103,), body=b"ok"))
    edge = gateway(policy_of([this], "", H2), protocols="[h2, h1]")
    with Http2(edge.port) as client:
        got = client.ask()
        assert (got.interim, got.status, got.body) == ([103], 200, b"ok")


def test_h2_hosts__a_host_that_does_not_speak_it_is_named_in_the_log(gateway):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                peer.recv(65536)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        edge = gateway(f"services: {{a: {{hosts: ['127.0.0.1:{listener.getsockname()[1]}'], match: {{prefix: /}}, protocol: h2, maxRetries: 0}}}}\n")
        assert edge.ask().status == 502
        wait_until(lambda: edge.log_lines("does not speak HTTP/2"))
        assert "a host's answer breaks HTTP/2" in edge.told("does not speak HTTP/2")[0]
        edge.expect_metric(1, "becalm_h2_hosts_ended_total", why="protocol")
        assert edge.metric("becalm_h2_hosts_ended_total") == 1


@pytest.mark.skipif(os.environ.get("BECALM_SOAK") != "1", reason="it waits for ten seconds")
def test_h2_hosts__a_connection_is_pinged_when_nothing_comes_and_streams_wait(gateway, h2host):
    this = h2host(at_end=lambda asked: None if asked.path == "/wait" else Answer())
    edge = gateway(policy_of([this], "", H2 + "attemptTimeout: 60s"))
    with edge.wire() as wire:
        wire.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_until(lambda: this.requests and this.requests[0].ended)
        wait_until(lambda: this.connections[0].pings >= 1, seconds=40)
        this.connections[0].answer(this.requests[0], Answer(body=b"late"))
        assert wire.answer().body == b"late"


def test_h2_hosts__with_tls_the_host_chooses_and_both_sides_may_speak_it(gateway, h2host, host, authority):
    context = authority.issue().server()
    context.set_alpn_protocols(["h2", "http/1.1"])
    this = h2host(tls=context)
    edge = gateway(policy_of([this], "", f"tls: {{ca: {authority.cert}}}"), protocols="[h2, h1]")
    with Http2(edge.port) as client:
        assert client.ask("POST", body=b"x" * 100_000).body == b"x" * 100_000
    assert this.requests[0].field(":scheme") == "https"
    plain = authority.issue().server()
    plain.set_alpn_protocols(["http/1.1"])
    old = host(tls=plain)
    assert gateway(policy_of([old], "", f"tls: {{ca: {authority.cert}}}")).ask().status == 200
    asked = gateway(policy_of([old], "", f"tls: {{ca: {authority.cert}}}\n{H2}"))
    assert asked.ask().status == 502
    wait_until(lambda: asked.log_lines("does not speak HTTP/2"), what=asked.log)


def test_h2_hosts__a_reload_keeps_the_connection_and_the_end_of_the_gateway_says_goodbye(gateway, h2host):
    this = h2host()
    policy = policy_of([this], "", H2)
    edge = gateway(policy)
    assert edge.ask().status == 200
    edge.reload(policy + "log: {access: json}\n")
    wait_until(lambda: edge.ask().status == 200 and edge.access())
    assert len(this.connections) == 1
    edge.end()
    wait_until(lambda: this.connections[0].gone)
    assert this.connections[0].goodbye


@pytest.mark.skipif(shutil.which("nghttpd") is None, reason="nghttpd is not installed")
def test_h2_hosts__nghttpd(gateway, tmp_path):
    (tmp_path / "page").write_bytes(b"n" * 50_000)
    port = free_port()
    server = subprocess.Popen(["nghttpd", "--no-tls", "-d", str(tmp_path), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: subprocess.run(["nghttp", "-n", f"http://127.0.0.1:{port}/page"], capture_output=True).returncode == 0)
        edge = gateway(f"services: {{a: {{hosts: ['127.0.0.1:{port}'], match: {{prefix: /}}, protocol: h2}}}}\n", protocols="[h2, h1]")
        assert [got.body for got in all_at_once(16, lambda _: ask(edge.port, path="/page"))] == [b"n" * 50_000] * 16
        assert edge.ask(path="/none").status == 404
        load = subprocess.run(
            ["h2load", "-n", "200", "-c", "4", "-m", "16", f"http://127.0.0.1:{edge.port}/page"], capture_output=True, text=True, timeout=120
        )
        assert "200 succeeded, 0 failed, 0 errored" in load.stdout, load.stdout
    finally:
        server.kill()
        server.wait(10)


def test_h2_hosts__one_that_asks_for_calm_has_turned_the_call_away(gateway, h2host):
    """As with a 503: a GET is retried, a POST is not, since it may have begun."""
    this = h2host(at_end=lambda asked: Refuse(code=11) if len(this.requests) == 1 else Answer(body=b"ok"))
    edge = gateway(policy_of([this], "log: {access: json}", H2))
    assert edge.ask().body == b"ok" and len(this.requests) == 2
    wait_until(lambda: "outcome=rejected" in edge.log(), what=edge.log)
    this.requests.clear()
    assert edge.ask("POST", body=b"pay").status == 503 and len(this.requests) == 1


class Choosy(HostH2):
    """Chooses HTTP/2 by ALPN, and then wants HTTP/1.1: by a reset of each stream, or a GOAWAY that leaves them all out."""

    def __init__(self, by_goaway, **more):
        self.old = []  # requests over HTTP/1.1
        self.by_goaway = by_goaway
        super().__init__(at_end=self.wants_old, **more)

    def wants_old(self, asked):
        if self.by_goaway:
            asked.connection.h2.close_connection(error_code=13, last_stream_id=0)
            return None
        return Refuse(code=13)

    def serve(self, peer, number):
        if peer.selected_alpn_protocol() == "h2":
            super().serve(peer, number)
            return
        with peer, peer.makefile("rb") as came:
            while line := came.readline():
                length = 0
                while (field := came.readline()) != b"\r\n":
                    length = int(field.split(b":")[1]) if field.lower().startswith(b"content-length") else length
                self.old.append((line.split()[0], came.read(length)))
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold")


@pytest.mark.parametrize("by_goaway", [False, True])
def test_h2_hosts__one_that_wants_http_1_gets_it(gateway, authority, by_goaway):
    context = authority.issue().server()
    context.set_alpn_protocols(["h2", "http/1.1"])
    this = Choosy(by_goaway, tls=context)
    try:
        edge = gateway(policy_of([this], "", f"tls: {{ca: {authority.cert}}}"))
        for n in range(3):  # also a POST: no host has executed it
            assert edge.ask("POST", body=b"pay%d" % n).body == b"old"
        assert this.old == [(b"POST", b"pay%d" % n) for n in range(3)] and len(this.requests) == 1
        edge.expect_metric(1, "becalm_redone_total", service="a")
        assert edge.metric("http_client_retry_attempts_total", service="a") == 0
        bound = gateway(policy_of([this], "", f"tls: {{ca: {authority.cert}}}\nmaxRetries: 0\n{H2}"))
        assert bound.ask("POST", body=b"pay").status == 502  # it was told to speak nothing else
    finally:
        this.close()


class Cancelled:
    """A host whose one connection may have 700 streams and that answers only /next; and a client that has begun 700 and is gone, all at once."""

    STREAMS, ALLOWED, SECOND = 700, 500, 16

    def __init__(self, gateway, h2host):
        self.host = h2host(at_end=lambda asked: Answer(body=b"ok") if asked.path == "/next" else None, streams=self.STREAMS)
        rules = H2 + "attemptTimeout: 600s\ndeadline: 600s\nlimit: {kind: none}\nbreaker: {enabled: false}"
        text = f"pool: {{streams: {self.STREAMS}, maxPerHost: 1}}\nhttp2: {{streams: 1000}}"
        self.edge = gateway(policy_of([self.host], text, rules), protocols="[h2, h1]")
        assert self.edge.ask(path="/next").body == b"ok"  # its SETTINGS are known
        self.connection = self.host.connections[0]
        self.begin(self.STREAMS)
        self.first = [asked for asked in self.host.requests if asked.path == "/wait"]
        self.at = time.monotonic()
        self.client.drop()
        wait_until(lambda: self.resets() >= self.ALLOWED)
        self.fence()

    def begin(self, count):
        before, sent = len(self.host.requests), min(count, self.room())
        self.client = Http2(self.edge.port)
        for _ in range(count):
            self.client.begin(path="/wait")
        wait_until(lambda: sum(asked.ended for asked in self.host.requests[before:]) >= sent)

    def room(self):
        return self.STREAMS - sum(asked.reset is None for asked in self.host.requests if asked.path == "/wait")

    def resets(self):
        return sum(asked.reset is not None for asked in self.host.requests)

    def left(self):
        return [asked for asked in self.first if asked.reset is None]

    def fence(self):
        """When this returns, the host has read all that the gateway sent before it read this."""
        self.connection.fence()


def test_h2_hosts__of_all_that_is_cancelled_at_once_500_streams_are_reset_and_the_others_left_to_end(gateway, h2host):
    """nghttp2 takes 1,000 for an attack (CVE-2023-44487), and a hedge that lost must never look like one."""
    this = Cancelled(gateway, h2host)
    assert {asked.reset for asked in this.first} == {8, None}  # CANCEL
    assert this.ALLOWED <= this.resets() <= this.ALLOWED + this.SECOND * (time.monotonic() - this.at) + 1
    assert this.edge.ask(path="/next").body == b"ok" and len(this.host.connections) == 1
    for asked in this.left():
        this.connection.answer(asked, Answer(body=b"late"))
    assert this.edge.ask(path="/next").body == b"ok" and len(this.host.connections) == 1 and not this.host.errors


def test_h2_hosts__a_stream_that_is_left_to_end_gets_no_window(gateway, h2host):
    this = Cancelled(gateway, h2host)
    asked = this.left()[0]
    this.connection.answer(asked, Answer(body=bytes(1 << 20)))
    this.fence()
    assert len(this.connection.left[asked.stream][0]) == (1 << 20) - 65536
    assert this.edge.ask(path="/next").body == b"ok"


def test_h2_hosts__a_stream_that_is_left_to_end_keeps_its_place_until_then(gateway, h2host):
    this = Cancelled(gateway, h2host)
    left, room = this.left(), this.room()
    before = len(this.host.requests)
    this.begin(room + 1)  # one of them waits in line
    this.client.fence()
    this.fence()
    assert len(this.host.requests) == before + room and len(this.host.connections) == 1
    this.connection.answer(left[0], Answer(body=b"late"))
    wait_until(lambda: len(this.host.requests) == before + room + 1)
    this.client.drop()


def test_h2_hosts__there_are_16_more_resets_each_second(gateway, h2host):
    this = Cancelled(gateway, h2host)
    begun = this.resets()
    while this.resets() < begun + 4:
        assert time.monotonic() < this.at + 300
        before = len(this.host.requests)
        with this.edge.wire() as wire:
            wire.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
            wait_until(lambda: len(this.host.requests) == before + 1 and this.host.requests[-1].ended)
            wire.reset()
        assert this.edge.ask(path="/next").status == 200  # behind it
    assert this.resets() <= this.ALLOWED + this.SECOND * (time.monotonic() - this.at) + 1


def test_h2_hosts__a_request_that_is_not_whole_is_always_reset_and_the_others_pay_for_it(gateway, h2host):
    """Left to end it could be taken for all that was to be said; and a server counts these as well."""
    this = h2host(at_end=lambda asked: None, streams=1000)
    rules = H2 + "attemptTimeout: 600s\ndeadline: 600s\nlimit: {kind: none}\nbreaker: {enabled: false}"
    edge = gateway(policy_of([this], "pool: {streams: 1000, maxPerHost: 1}\nhttp2: {streams: 1000}", rules), protocols="[h2, h1]")
    with Http2(edge.port) as whole:
        for _ in range(60):
            whole.begin(path="/whole")
        wait_until(lambda: sum(asked.ended for asked in this.requests) == 60)
        parts = Http2(edge.port)
        for _ in range(600):
            parts.begin("POST", path="/part", fields=[("content-type", "application/grpc"), ("te", "trailers")], end=False)
        wait_until(lambda: len(this.requests) == 660)
        at = time.monotonic()
        parts.drop()
        wait_until(lambda: sum(asked.reset == 8 for asked in this.requests if asked.path == "/part") == 600)
        whole.drop()
        edge.expect_metric(0, "http_client_concurrent_requests", service="a")
        this.connections[0].fence()
        assert sum(asked.reset is not None for asked in this.requests if asked.path == "/whole") <= 16 * (time.monotonic() - at) + 1


def test_h2_hosts__a_connection_has_as_many_streams_and_as_much_window_as_the_policy_says(gateway, h2host):
    this = h2host(at_end=lambda asked: None)
    edge = gateway(policy_of([this], "pool: {streams: 2}\nhttp2: {window: 4KiB}", H2 + "attemptTimeout: 60s"))
    answers = []
    threads = [threading.Thread(target=lambda n=n: answers.append(edge.ask(path=f"/{n}").body)) for n in range(5)]
    for thread in threads:
        thread.start()
    wait_until(lambda: sum(asked.ended for asked in this.requests) == 5)
    assert sorted(len(connection.asked) for connection in this.connections) == [1, 2, 2]
    for connection in this.connections:
        assert connection.h2.remote_settings.initial_window_size == 4096
    for asked in list(this.requests):
        asked.connection.answer(asked, Answer(body=b"z" * 30_000))
    for thread in threads:
        thread.join(60)
    assert answers == [b"z" * 30_000] * 5


def test_h2_hosts__a_tunnel_is_refused_in_clear_words(gateway, h2host):
    """HTTP/2 would carry it by RFC 8441, which is not spoken here."""
    this = h2host()
    edge = gateway(f"connect: true\nservices: {{a.test: {{hosts: ['{this.address}'], protocol: h2}}}}\n")
    handshake = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    got = edge.ask(fields=handshake)
    assert got.status == 501 and b"tunnel_over_h2" in got.body and not this.requests
    with edge.wire() as wire:
        wire.send(b"CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n")
        assert wire.answer("CONNECT").status == 501
    assert edge.ask(fields={"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": ""}).status == 200
    assert this.requests[0].field("upgrade") is None
