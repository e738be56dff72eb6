# SPDX-License-Identifier: MIT
"""Hosts that die, hang, reset and lie: no wrong body ever, nothing done twice that must not be, and back at once."""

import json
import random
import select
import socket
import threading
import time

import pytest
from conftest import policy_of
from host import Reply, fill, wait_until
from http2 import Http2
from load import Load, reasons, statuses
from message import is_signed, request, signed
from test_admin import target

QUICK = "initialDelay: 1ms\nmaxDelay: 5ms\nbudget: {kind: none}\nbreaker: {enabled: false}\noutlier: {enabled: false}\n"


def get(path="/"):
    return lambda number: ("GET", request(path=path))


def bodies_are_right(results):
    return all(is_signed(result.answer.body) for result in results if result.status == 200)


def test_a_reset_at_every_byte_of_an_answer_never_shows_a_wrong_body(pair):
    """Cut before its first byte went out, it is retried; later, the client sees the cut."""
    gateway, host = pair(rules=QUICK)
    whole = Reply(body=signed(b"every byte counts"), fields={"X-One": "1"})
    length = len(whole.bytes("GET"))
    head = length - len(whole.body)
    cut_bodies = 0
    for end in ("reset", "close"):
        for at in range(length):
            host.on("/", Reply(body=whole.body, fields=whole.fields, cut=at, end=end), whole)
            with gateway.wire() as wire:
                try:
                    answer = wire.ask()
                    assert answer.status == 200 and answer.body == whole.body, (end, at, answer.start)
                except (EOFError, ConnectionResetError):
                    assert at >= head, (end, at, "nothing had gone out yet")
                    cut_bodies += 1
    assert cut_bodies > 0


def test_a_cut_chunked_answer_is_never_presented_as_whole(pair):
    gateway, host = pair(rules=QUICK)
    whole = Reply(body=signed(b"c" * 2500), chunked=True)
    length = len(whole.bytes("GET"))
    for at in range(60, length, 7):
        host.on("/", Reply(body=whole.body, chunked=True, cut=at, end="close"))
        with gateway.wire() as wire:
            try:
                answer = wire.ask()
            except (EOFError, ConnectionResetError):
                continue
            assert answer.status == 502, (at, answer.start, len(answer.body))


def test_an_http_10_client_of_a_cut_answer_sees_a_reset(pair):
    """Without a length the end of the connection would mean: whole."""
    gateway, host = pair(rules=QUICK)
    host.on("/", Reply(body=signed(b"c" * 300000), chunked=True, cut=200000, end="close"))
    with gateway.wire() as wire:
        wire.send(b"GET / HTTP/1.0\r\nhost: a\r\n\r\n")
        with pytest.raises((ConnectionResetError, EOFError)):
            wire.answer()


def test_a_stale_kept_connection_costs_a_safe_request_nothing(pair):
    gateway, host = pair(rules="maxRetries: 0")
    with gateway.wire() as wire:
        for number in range(50):
            assert wire.ask(path=f"/{number}").status == 200, number
            if number % 3 == 0:
                host.drop_idle()


def test_a_host_that_closes_as_the_request_comes_costs_a_safe_request_nothing(pair):
    """The worst moment: the request is on its way when the connection ends."""
    gateway, host = pair(rules="maxRetries: 0")
    seen = {}

    def reply(got):
        seen[got.connection] = seen.get(got.connection, 0) + 1
        return Reply(cut=0, end="close") if seen[got.connection] == 3 else Reply()

    host.on("*", reply)
    with gateway.wire() as wire:
        assert [wire.ask().status for _ in range(60)] == [200] * 60


class Deaf:
    """A host that accepts when it is told to, and not by itself."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.kept = []
        self.crowd = []

    def answer(self, count):
        for _ in range(count):
            connection, _ = self.socket.accept()
            self.kept.append(connection)
        for connection in self.kept[-count:]:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine")

    def hang_up(self, count):
        """Closes `count` connections on which a request has arrived."""
        while count > 0:
            for connection in select.select(self.kept, [], [], 30)[0]:
                self.kept.remove(connection)
                connection.close()
                count -= 1

    def turn_deaf(self):
        """From here on connections to it neither succeed nor fail: its backlog is full."""
        self.socket.listen(0)
        self.crowd += fill(self.socket)

    def close(self):
        for each in [self.socket, *self.kept, *self.crowd]:
            each.close()


def test_requests_that_want_a_fresh_connection_wait_while_others_are_idle(gateway, host):
    """More of them than may be connecting at once, to a host that does not accept: the worker has time for others."""
    deaf, other = Deaf(), host()
    policy = policy_of([other], rules=QUICK).replace("services:\n", f"""services:
  deaf:
    hosts: ["{deaf.address}"]
    match: {{prefix: /deaf}}
    connectTimeout: 1s
    maxRetries: 0
    outlier: {{enabled: false}}
""")
    through = gateway(policy)
    wires = [through.wire() for _ in range(40)]
    for wire in wires:
        wire.send(request(path="/deaf"))
    deaf.answer(40)
    assert [wire.answer().status for wire in wires] == [200] * 40
    deaf.turn_deaf()
    for wire in wires[:30]:
        wire.send(request(path="/deaf"))
    deaf.hang_up(30)
    assert through.ask(path="/").status == 200
    assert {wire.answer().status for wire in wires[:30]} <= {502, 503, 504}
    assert through.ask(path="/").status == 200
    for each in [*wires, deaf]:
        each.close()


def test_a_stale_connection_does_not_repeat_a_post(pair):
    gateway, host = pair(rules="maxRetries: 0")
    seen = {}

    def reply(got):
        seen[got.connection] = seen.get(got.connection, 0) + 1
        return Reply(cut=0, end="reset") if seen[got.connection] == 3 else Reply()

    host.on("*", reply)
    with gateway.wire() as wire:
        asked = [wire.ask("POST", f"/{n}", body=b"x").status for n in range(60)]
    assert host.count() == 60 and set(asked) == {200, 502}


SLOW_BACKOFF = "initialDelay: 200s\nmaxDelay: 200s\njitter: none\nattemptTimeout: 60s\nbreaker: {enabled: false}\n"


def refusing(host, count):
    hosts = [host() for _ in range(count)]
    for each in hosts:
        each.stop()
    return hosts


@pytest.mark.parametrize("ejection", ["true", "false"])
def test_a_host_that_refuses_is_left_at_once_for_one_that_was_not_tried(gateway, host, ejection):
    """No request was sent, so a backoff would spare no host: it would take 200 s."""
    live, dead = [host(), host()], refusing(host, 1)
    rules = SLOW_BACKOFF + f"deadline: 600s\nbudget: {{kind: none}}\noutlier: {{enabled: {ejection}}}\n"
    made = gateway(policy_of(live + dead, rules=rules))
    began = time.monotonic()
    for number in range(30):
        assert made.ask("POST" if number % 2 else "GET", body=b"pay" if number % 2 else b"").status == 200
    assert time.monotonic() - began < 150
    assert sum(target(made)["retries"]) > 0, "some had gone to the dead one first"


def test_hosts_that_refuse_are_tried_once_each_at_once_and_then_there_is_backoff(gateway, host):
    rules = SLOW_BACKOFF + "deadline: 10s\nmaxRetries: 8\nbudget: {kind: none}\noutlier: {enabled: false}\nrestart: {enabled: false}\n"
    made = gateway(policy_of(refusing(host, 3), rules=rules))
    answer = made.ask()
    assert answer.status in (502, 504) and json.loads(answer.body)["attempts"] == 3, answer.body
    assert json.loads(answer.body)["reason"] == "deadline", "the next one would wait for 200 s"


def test_leaving_a_host_at_once_is_a_retry_and_costs_one(gateway, host):
    """At most maxRetries, and paid from the budget."""
    rules = SLOW_BACKOFF + "deadline: 10s\nmaxRetries: 1\noutlier: {enabled: false}\nrestart: {enabled: false}\n"
    made = gateway(policy_of(refusing(host, 4), rules=rules))
    bodies = [json.loads(made.ask().body) for _ in range(5)]
    assert max(body["attempts"] for body in bodies) == 2 and bodies[0]["reason"] == "attempts_spent"
    assert bodies[-1]["reason"] == "budget_empty"


def test_a_refused_connection_is_retried_for_a_post_too(gateway, host):
    """Never sent is never done."""
    dead, alive = host(), host()
    dead.stop()
    made = gateway(policy_of([dead, alive], rules=QUICK))
    assert [made.ask("POST", body=b"x").status for _ in range(30)] == [200] * 30
    assert alive.count() == 30


def test_a_retry_goes_to_another_host(gateway, host):
    bad, good = host(), host()
    bad.on("/", Reply(503))
    made = gateway(policy_of([bad, good], rules=QUICK))
    assert [made.ask().status for _ in range(50)] == [200] * 50
    assert bad.count() > 0


def test_a_bad_host_is_ejected(gateway, host):
    bad, good, third = host(), host(), host()
    bad.on("/", Reply(503))
    made = gateway(policy_of([bad, good, third], rules="outlier: {baseEjectionTime: 60s}\nbreaker: {enabled: false}"))
    wait_until(lambda: made.ask() and made.metric("becalm_host_ejected", host=bad.address) == 1)
    seen = bad.count()
    for _ in range(60):
        assert made.ask().status == 200
    assert bad.count() == seen, "it still gets calls"


def test_a_killed_host_comes_back_within_two_seconds(pair):
    """Or as soon as a busy machine has answered twenty calls again."""
    gateway, host = pair(rules="restart: {enabled: false}")
    host.on("*", lambda got: Reply(body=signed(got.target.encode())))
    load = Load(gateway.port, rate=100, seconds=120, make=lambda n: ("GET", request(path=f"/{n}")))
    load.start()
    load.wait(50)
    host.stop()
    time.sleep(2)
    host.start()
    back = time.monotonic()
    wait_until(lambda: [result.status for result in load.results[-20:]] == [200] * 20)
    healthy = max(back + 2, time.monotonic())
    load.wait(60, since=healthy)
    results = load.stop()
    assert bodies_are_right(results) and all(
        result.answer is not None for result in results
    ), "every request is answered"
    late = [result for result in results if result.at > healthy]
    assert len(late) > 50 and statuses(late) == {200: len(late)}, statuses(late)
    assert 502 in statuses(results) or 503 in statuses(results)


def test_one_of_three_hosts_is_killed_under_load_and_no_request_fails(gateway, host):
    hosts = [host() for _ in range(3)]
    for each in hosts:
        each.on("*", lambda got: Reply(body=signed(got.target.encode()), delay=0.01))
    made = gateway(policy_of(hosts, rules="initialDelay: 5ms"))
    load = Load(made.port, clients=8, make=lambda n: ("GET", request(path=f"/{n}")))
    load.start()
    for change in (hosts[0].stop, hosts[0].start, load.stop):
        load.wait(200, since=time.monotonic())
        results = change()
    assert statuses(results) == {200: len(results)} and bodies_are_right(results), reasons(results)


def test_half_open_connections_are_found_within_the_timeout(gateway, host):
    """A host behind a firewall that forgot the connection: nothing comes back, not even a reset."""
    there = host()
    made = gateway(
        policy_of([there], rules="attemptTimeout: 2s\ninitialDelay: 1ms\nmaxRetries: 1\nbudget: {kind: none}")
    )
    with made.wire() as wire:
        assert wire.ask().status == 200
        first = there.connections
        there.on("/", lambda got: Reply(cut=0, end="hang") if got.connection <= first else Reply())
        assert wire.ask().status == 200, "the retry does not use the dead connection again"


def test_a_hanging_host_holds_nobody_else_up(gateway, host):
    hangs, well = host(), host()
    hangs.on("*", Reply(cut=0, end="hang"))
    made = gateway(
        f"services:\n  hangs:\n    hosts: [{hangs.address}]\n    match: {{prefix: /hangs}}\n    attemptTimeout: 2s\n"
        f"  well:\n    hosts: [{well.address}]\n    match: {{prefix: /well}}\n"
    )
    stuck = [made.wire().send(request(path="/hangs")) for _ in range(100)]
    results = Load(made.port, rate=100, seconds=1, make=get("/well")).run_through()
    assert statuses(results) == {200: len(results)}
    assert {wire.answer().status for wire in stuck} <= {503, 504}


def test_an_answer_that_stops_in_the_middle_ends_with_the_idle_timeout(pair):
    gateway, host = pair("idleTimeout: 500ms")
    host.on("/", Reply(body=b"x" * 1000, cut=500, end="hang"))
    with gateway.wire() as wire:
        with pytest.raises((EOFError, ConnectionResetError)):
            wire.ask()
    assert gateway.ask(path="/other").status == 200


def test_trailers_that_drip_are_no_progress(pair):
    """Neither for a client of HTTP/1 nor for one of HTTP/2: they are no bytes of a body."""
    gateway, host = pair("idleTimeout: 500ms", protocols="[h2, h1]")
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
    host.on("/", Reply(raw=head + b"a: b\r\n" * 1000, pace=0.05, end="hang"))
    with gateway.wire() as wire, pytest.raises((EOFError, ConnectionResetError)):
        wire.ask()
    with Http2(gateway.port) as client:
        answer = client.ask()
        assert answer.status == 200 and answer.reset is not None and not answer.ended


def test_a_slow_answer_is_not_cut_while_it_goes_on(pair):
    """attemptTimeout is until the head; after it only silence counts."""
    gateway, host = pair("idleTimeout: 10s", rules="attemptTimeout: 1500ms\nmaxRetries: 0")
    host.on("/", Reply(body=b"drop by drop ", pace=0.15))
    assert gateway.ask().body == b"drop by drop "


def test_hedges_answer_for_a_slow_host_and_the_loser_is_cancelled(gateway, host):
    slow, quick = host(), host()
    slow.on("*", Reply(cut=0, end="hang"))
    quick.on("*", Reply(body=b"quick"))
    made = gateway(
        policy_of([slow, quick], "explain: true", "attemptTimeout: 200s\ndeadline: 300s\nhedge: {enabled: true, delay: 50ms, percent: 100, cap: 100}")
    )
    answers = [made.ask() for _ in range(10)]
    assert {answer.body for answer in answers} == {b"quick"}
    assert any("hedge" in answer.get("becalm-explain") for answer in answers)
    wait_until(lambda: slow.open == 0)


def test_clients_that_come_and_go_leave_nothing_behind(pair):
    gateway, host = pair()
    host.on("*", lambda got: Reply(body=signed(b"x" * 20000), delay=random.random() / 50))
    gateway.ask()
    before = gateway.open_fds()
    chance = random.Random(7)

    def come_and_go():
        for _ in range(60):
            with gateway.wire() as wire:
                data = request("PUT", "/x", body=b"y" * 5000)
                wire.send(data[: chance.randrange(len(data) + 1)])
                if chance.random() < 0.5:
                    time.sleep(chance.random() / 30)
                if chance.random() < 0.5:
                    wire.reset()

    threads = [threading.Thread(target=come_and_go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    wait_until(lambda: gateway.open_fds() <= before + host.open)
    assert gateway.ask().status == 200


def test_a_port_that_speaks_nothing_is_a_reset_not_a_crash(gateway):
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen(8)
        made = gateway(
            f"services:\n  a:\n    hosts: ['127.0.0.1:{mute.getsockname()[1]}']\n    match: {{prefix: /}}\n"
            "    maxRetries: 0\n"
        )
        wire = made.wire().send(request())
        mute.accept()[0].close()
        assert wire.answer().status == 502
        wire.close()
