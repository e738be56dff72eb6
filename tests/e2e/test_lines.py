# SPDX-License-Identifier: MIT
"""Uploads that stop, answers in many pieces, tunnels and hedges that wait in line for a connection."""

import os
import socket
import threading
import time

from host import Reply, wait_until
from load import Load, statuses
from message import request

PATIENT = "attemptTimeout: 30s\ndeadline: 30s\n"  # how slow a busy machine is must not matter
HEDGE = "hedge: {enabled: true, delay: 50ms, percent: 100, cap: 100}\n" + PATIENT


def upload(wire, sent, length=1_000_000):
    wire.send(b"POST /up HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % length)
    wire.send(b"u" * sent)


def test_an_upload_that_stops_is_the_clients_fault(pair):
    gateway, host = pair(text="idleTimeout: 3s", rules="attemptTimeout: 2s\nbreaker: {minimumNumberOfCalls: 1}")
    with gateway.wire() as wire:
        upload(wire, 100_000)
        assert wire.answer("POST").status == 408
    wait_until(lambda: gateway.metric("becalm_active_requests") == 0)
    assert gateway.metric("circuit_breaker_transitions_total") == 0, "the breaker blames the host"
    wait_until(lambda: gateway.ask(path="/other").status == 200)


def status_of_upload(gateway):
    """None: it was answered and closed while we were sending."""
    with gateway.wire() as wire:

        def send():
            try:
                upload(wire, 30_000_000, 30_000_000)
            except OSError:
                pass

        thread = threading.Thread(target=send)
        thread.start()
        try:
            return wire.answer("POST").status
        except (ConnectionError, EOFError):
            return None
        finally:
            thread.join()


def test_a_host_that_does_not_read_an_upload_is_given_up(pair):
    """On a busy machine this test may be silent for 500 ms, which gives a 408: then it tries again."""
    gateway, host = pair(text="idleTimeout: 500ms", rules="maxRetries: 0")
    host.on("/up", Reply(early=True, raw=b"", end="deaf"))
    wait_until(lambda: status_of_upload(gateway) in (504, None))
    wait_until(lambda: gateway.metric("http_client_concurrent_requests") == 0)


def test_a_failed_answer_in_many_chunks_arrives_whole(pair):
    gateway, host = pair(rules="maxRetries: 0")
    body = b"".join(b"%03d," % i for i in range(150))
    chunks = b"".join(b"4\r\n%s\r\n" % body[i : i + 4] for i in range(0, len(body), 4)) + b"0\r\n\r\n"
    head = b"HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n"
    host.on("/", Reply(raw=head + chunks))
    for _ in range(3):
        answer = gateway.ask()
        assert (answer.status, answer.body) == (503, body)


def test_what_is_sent_right_behind_connect_is_not_lost(gateway, host):
    there = host()
    made = gateway(f"connect: on\ndrain: {{limit: 1s}}\nservices:\n  a.test:\n    hosts: [{there.address}]\n")
    assert made.ask(host="a.test").status == 200  # leaves a connection in the pool
    with made.wire() as wire:
        wire.send(
            b"CONNECT a.test:80 HTTP/1.1\r\nhost: a.test:80\r\n\r\nGET /early HTTP/1.1\r\nhost: inside\r\n\r\n"
        )
        assert wire.answer("CONNECT").status == 200
        assert wire.answer().status == 200
    assert there.count("/early") == 1


def test_a_hedge_in_line_for_a_connection_is_not_sent_after_the_answer(pair):
    gateway, host = pair(text="pool: {maxPerHost: 1}", rules=HEDGE)
    host.on("/", Reply(delay=0.15))
    for _ in range(10):
        assert gateway.ask().status == 200
    assert host.count() == 10
    wait_until(lambda: gateway.metric("http_client_concurrent_requests") == 0)


def test_a_hedge_in_line_survives_the_break_of_the_only_connection(pair):
    gateway, host = pair(text="pool: {maxPerHost: 1}", rules=HEDGE)
    host.on("/", Reply(delay=0.15, raw=b"", end="reset"), Reply())
    assert gateway.ask().status in (200, 502)
    assert gateway.ask().status == 200
    wait_until(lambda: gateway.metric("becalm_active_requests") == 0)


def test_connect_goes_where_its_authority_says_or_nowhere(gateway, host):
    there = host()
    made = gateway(f"connect: on\nservices:\n  a:\n    hosts: [{there.address}]\n    match: {{prefix: /}}\n")
    with made.wire() as wire:
        assert wire.send(b"CONNECT evil.test:443 HTTP/1.1\r\nhost: evil.test:443\r\n\r\n").answer().status == 404
    assert there.connections == 0


def test_our_own_lack_of_descriptors_is_not_the_hosts_fault(pair):
    rules = PATIENT + "breaker: {minimumNumberOfCalls: 2}\nmaxRetries: 0"
    gateway, host = pair(rules=rules)
    early = gateway.wire()  # the client is connected, but no descriptor is left for its calls: no other client is idle
    wait_until(lambda: gateway.metric("becalm_connections") == 1)
    go, crowd = gateway.fill_descriptors(host)
    statuses = [early.ask().status for _ in range(5)]
    assert statuses == [503] * 5, statuses
    go.set()
    for wire in [early, *crowd]:
        wire.close()
    wait_until(lambda: gateway.ask().status == 200)
    assert gateway.metric("circuit_breaker_transitions_total") == 0


def test_an_expectation_that_nobody_understands_is_refused(pair):
    gateway, host = pair()
    assert gateway.ask(fields={"Expect": "miracles"}).status == 417
    assert host.count() == 0


def test_hedges_and_attempts_that_were_given_up_are_counted(pair):
    """No host answers before both have a request, so every call has its hedge, however slow the machine is. The gateway
    counts attempts after the answer, so the counts may appear a little later."""
    gateway, host = pair(rules=HEDGE, hosts=2)

    def asked():
        return host[0].count() + host[1].count()

    def hedges(result):
        return gateway.metric("becalm_hedges_total", result=result)

    for calls in range(1, 5):
        both = 2 * calls
        for each in host:
            each.on("/", Reply(when=lambda: asked() >= both))
        assert gateway.ask().status == 200
        wait_until(lambda: hedges("sent") == calls)
        wait_until(lambda: hedges("won") + hedges("lost") == calls)
        assert asked() == both
    wait_until(lambda: gateway.metric("http_client_requests_total") == asked())


class Narrow:
    """A host at a Unix socket with next to no backlog, which serves one connection after the other."""

    def __init__(self, path, pause=0.03):
        self.path = path
        self.pause = pause
        self.served = 0
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen(0)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                made, _ = self.server.accept()
            except OSError:
                return
            with made:
                made.recv(65536)
                time.sleep(self.pause)
                self.served += 1  # before it can be seen
                made.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok")


def test_a_unix_socket_with_a_full_backlog_is_busy_and_not_gone(gateway, tmp_path):
    host = Narrow(tmp_path / "narrow")
    made = gateway(
        f'services:\n  a:\n    hosts: ["unix:{host.path}"]\n    match: {{prefix: /}}\n'
        "    maxRetries: 0\n    attemptTimeout: 30s\n    deadline: 30s\n    limit: {kind: none}\n    breaker: {enabled: false}\n"
    )
    results = Load(made.port, clients=20, count=60).run_through()
    assert statuses(results) == {200: 60} and host.served == 60
    host.server.close()
    os.unlink(host.path)
    assert made.ask().status in (502, 503), "a socket that is not there is"


def test_who_waits_for_a_busy_unix_socket_waits_no_longer_than_its_timeout(gateway, tmp_path):
    path = tmp_path / "deaf"
    with socket.socket(socket.AF_UNIX) as deaf, socket.socket(socket.AF_UNIX) as first:
        deaf.bind(str(path))
        deaf.listen(0)
        first.connect(str(path))
        made = gateway(
            f'services:\n  a:\n    hosts: ["unix:{path}"]\n    match: {{prefix: /}}\n'
            "    maxRetries: 0\n    attemptTimeout: 500ms\n"
        )
        begin = time.monotonic()
        assert made.ask().status == 504
        assert time.monotonic() - begin > 0.4
        before = made.cpu_seconds()
        with made.wire() as wire:
            wire.send(request())
            assert wire.answer().status == 504
        assert made.cpu_seconds() - before < 0.3, "it does not spin"
