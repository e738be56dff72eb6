# SPDX-License-Identifier: MIT
"""One host that restarts loses nothing: calls that were never sent wait for it, and a long outage still fails fast."""

import os
import shutil
import signal
import socket
import subprocess
import time

import pytest
from conftest import free_port, policy_of
from host import Reply, Tunnel, fill, wait_until
from load import Load, reasons, statuses
from message import request

SOAK = os.environ.get("BECALM_SOAK") == "1"
NODE = shutil.which("node")
SERVER = """
const http = require('http');
http.createServer((req, res) => {
    let length = 0;
    req.on('data', (data) => { length += data.length; });
    req.on('end', () => res.end('fine ' + length));
}).listen(Number(process.argv[1]), '127.0.0.1');
"""


class Node:
    """A service that is killed and started again, as a process of its own."""

    def __init__(self):
        self.port = free_port()
        self.process = None
        self.start()
        self.wait()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        self.process = subprocess.Popen([NODE, "-e", SERVER, str(self.port)], stdin=subprocess.DEVNULL)

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def wait(self):
        wait_until(self.listens)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)


@pytest.fixture
def node():
    if NODE is None:
        pytest.skip("node is not installed")
    made = []

    def make():
        made.append(Node())
        return made[-1]

    yield make
    for each in made:
        each.kill()


def mixed(number):
    """Three of ten are POSTs."""
    if number % 10 < 3:
        return "POST", request("POST", path=f"/{number}", body=b"x" * 100)
    return "GET", request(path=f"/{number}")


# Calls wait for a service for three quarters of that, or until it has been away for five seconds: on a busy machine it
# takes a while to come back.
PATIENT = "attemptTimeout: 20s\ndeadline: 60s"


def restart(gateway, load, host, down=0.6, before=150, after=200):
    """Kills the host after `before` answers under load, and starts it again after `down` seconds, for `after` more.
    Answers in progress are cut by that and repeated from the budget: so the host is killed while there are few, and no
    request is sent in between."""
    load.start()
    load.wait(before)
    load.held = True
    wait_until(lambda: gateway.metric("http_client_concurrent_requests") <= 3)
    killed = time.monotonic()
    host.kill()
    load.held = False
    time.sleep(down)
    host.start()
    host.wait()
    back = time.monotonic()
    load.away = back - killed
    load.wait(after, since=back)
    return load.stop()


def lost(results):
    return [(each.number, each.status, reasons([each])) for each in results if each.status != 200]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_node_service_that_restarts_loses_no_get(gateway, node, workers):
    there = node()
    made = gateway(policy_of([there], rules=PATIENT), workers=workers)
    load = Load(made.port, rate=100)
    results = restart(made, load, there)
    assert lost(results) == [] and len(results) > 350
    waited = made.metric("http_client_retry_attempts_total") < 20
    assert waited or load.away > 4, "only calls that were cut are retried, unless a busy machine keeps node away for long"
    wait_until(lambda: made.metric("becalm_parked_calls") == 0 < made.metric("becalm_parked_total"))


def test_a_chain_of_three_gateways_loses_no_get(gateway, node):
    there = node()
    made = gateway(policy_of([there], rules=PATIENT))
    for _ in range(2):
        made = gateway(f"services:\n  a:\n    hosts: ['127.0.0.1:{made.port}']\n    match: {{prefix: /}}\n    attemptTimeout: 20s\n    deadline: 60s\n")
    results = restart(made, Load(made.port, rate=100), there)
    assert lost(results) == [] and len(results) > 350


def test_posts_that_were_never_sent_are_not_lost(gateway, host):
    """The host is stopped between two answers, so that no POST is cut by it."""
    there = host()
    made = gateway(policy_of([there], rules=PATIENT))
    load = Load(made.port, rate=100, make=mixed)
    load.start()
    wait_until(lambda: len(load.results) > 50)
    load.held = True
    wait_until(lambda: made.metric("http_client_concurrent_requests") == 0)
    there.stop()
    load.held = False
    time.sleep(0.6)
    there.start()
    load.wait(100, since=time.monotonic())
    assert lost(load.stop()) == []


def test_a_long_outage_fails_fast_and_is_over_at_once(gateway, host):
    seconds = 60 if SOAK else 4
    there = host()
    made = gateway(policy_of([there], rules="attemptTimeout: 1s"))
    load = Load(made.port, rate=100, seconds=seconds + 60)
    load.start()
    load.wait(50)
    down = time.monotonic()
    there.stop()
    time.sleep(seconds - 1)
    load.wait(120, since=down + 1.5)
    time.sleep(1)
    back = time.monotonic()  # before it listens: a call may be answered before this thread has its turn again
    there.start()
    wait_until(lambda: [each.status for each in load.results[-20:]] == [200] * 20)
    healthy = max(back + 2, time.monotonic())
    load.wait(60, since=healthy)
    results = load.stop()
    gone = [each for each in results if down + 1.5 < each.at and each.at + each.took < back]
    assert len(gone) > 100 and all(each.status in (502, 503) for each in gone), statuses(gone)
    waits = made.metric("becalm_parked_total")
    assert waits < len(results) - len(gone), "nobody waits for a service that is gone"
    late = [each for each in results if each.at > healthy]
    assert len(late) > 50 and lost(late) == []


def refusals(gateway):
    """Connections that were refused while calls waited."""
    return gateway.metric("becalm_probes_total")


def test_one_connection_attempt_each_100_ms_whatever_waits(gateway, host):
    there = host()
    made = gateway(policy_of([there], rules=PATIENT), workers=2)
    assert made.ask().status == 200
    there.stop()
    load = Load(made.port, rate=100)
    load.start()
    began = time.monotonic()
    time.sleep(1.2)
    asked, took = refusals(made), time.monotonic() - began
    accepted = there.connections
    there.start()
    load.wait(100, since=time.monotonic())
    results = load.stop()
    assert 2 <= asked <= took * 10 + 8, (asked, took)
    assert there.connections - accepted <= len(results), "one for each call at most, sixteen at once for each worker"
    assert lost(results) == []


@pytest.fixture
def down(gateway, host):
    """down(rules): a gateway whose one host is not there, and the host."""

    def make(rules="", text="", **more):
        there = host()
        rules += "" if "attemptTimeout" in rules else "\n" + PATIENT
        made = gateway(policy_of([there], text=text, rules=rules), **more)
        there.stop()
        return made, there

    return make


def parked(gateway, count):
    wait_until(lambda: gateway.metric("becalm_parked_calls") == count)


def test_a_call_that_waited_in_vain_is_told_so(down):
    gateway, there = down("attemptTimeout: 400ms", text="explain: true")
    began = time.monotonic()
    answer = gateway.ask()
    assert 0.25 < time.monotonic() - began
    assert answer.status == 503
    assert answer.get("proxy-status") == 'becalm; error=destination_unavailable; details="no_host"'
    assert "attempts=0" in answer.get("becalm-explain") and "unasked" in answer.get("becalm-retry")
    wait_until(lambda: gateway.metric("becalm_shed_total", reason="no_host") == 1)


def test_a_retry_from_above_and_one_call_too_many_do_not_wait(down):
    gateway, there = down("gate: {maxQueue: 1}", text="trust: [127.0.0.0/8]")
    with gateway.wire() as first:
        first.send(request())
        parked(gateway, 1)
        assert gateway.ask(fields={"x-envoy-attempt-count": "2"}).status == 503
        assert gateway.ask().status == 503
        assert gateway.metric("becalm_parked_calls") == 1, "while the first one still waits"
        there.start()
        assert first.answer().status == 200


def test_a_client_that_goes_takes_its_call_with_it(down):
    gateway, there = down()
    wire = gateway.wire()
    wire.send(request(path="/gone"))
    parked(gateway, 1)
    wire.reset()
    parked(gateway, 0)
    there.start()
    assert gateway.ask(path="/here").status == 200
    assert there.count("/gone") == 0


def test_a_body_that_streams_waits_with_the_bytes_that_came(down):
    gateway, there = down()
    body = b"0123456789" * 30000  # more than is kept for a second attempt
    with gateway.wire() as wire:
        wire.send(request("POST", fields={"content-length": str(len(body))}))
        wire.send(body[:200000])
        parked(gateway, 1)
        there.start()
        wire.send(body[200000:])
        assert wire.answer("POST").status == 200
    assert [bytes(each.body) for each in there.got()] == [body]


def test_a_keyed_call_waits_and_is_done_once(down):
    gateway, there = down("idempotencyKey: required")
    with gateway.wire() as wire:
        wire.send(request("POST", body=b"x", fields={"idempotency-key": '"k"'}))
        parked(gateway, 1)
        assert gateway.ask("POST", body=b"x", fields={"idempotency-key": '"k"'}).status == 409
        there.start()
        assert wire.answer("POST").status == 200
    assert gateway.ask("POST", body=b"x", fields={"idempotency-key": '"k"'}).status == 200
    assert there.count() == 1


def test_a_retry_that_waits_for_its_host_counts_once(gateway, host):
    """It is sent again each time that the gateway asks whether the host is back, and is still one retry."""
    there = host()
    there.on("/", Reply(503, b"", end="close"), Reply(200, b"back"))
    rules = PATIENT + "\ninitialDelay: 1s\njitter: none"
    made = gateway(policy_of([there], rules=rules))
    with made.wire() as wire:
        wire.send(request())
        wait_until(lambda: there.count() == 1)
        there.stop()
        wait_until(lambda: refusals(made) >= 3)
        there.start()
        assert wire.answer().status == 200
    wait_until(lambda: made.metric("becalm_calls_total", result="after_retry") == 1)
    assert made.metric("http_client_retry_attempts_total") == 1
    assert made.metric("becalm_active_retries") == 0


def test_an_upgrade_waits_too(gateway, host):
    there = host()
    there.on("/ws", Tunnel())
    made = gateway(policy_of([there]))
    there.stop()
    with made.wire() as upgrade:
        upgrade.send(request(path="/ws", fields={"connection": "upgrade", "upgrade": "websocket"}))
        parked(made, 1)
        there.start()
        assert b" 101 " in upgrade.socket.recv(4096)


def test_a_reload_lets_those_who_wait_go_on(down):
    gateway, there = down()
    with gateway.wire() as wire:
        wire.send(request())
        parked(gateway, 1)
        gateway.reload(policy_of([there], rules="maxRetries: 1\n" + PATIENT))
        wait_until(lambda: gateway.log_lines("policy reloaded"))
        there.start()
        assert wire.answer().status == 200
    assert gateway.ask().status == 200


def test_draining_waits_for_those_who_wait(down):
    gateway, there = down()
    with gateway.wire() as wire:
        wire.send(request())
        parked(gateway, 1)
        gateway.signal(signal.SIGTERM)
        wait_until(lambda: gateway.log_lines("draining"))
        there.start()
        answer = wire.answer()
        assert answer.status == 200 and answer.get("connection") == "close"


def test_two_hosts_are_waited_for_only_if_both_refuse(gateway, host):
    hosts = [host(), host()]
    made = gateway(policy_of(hosts, rules="budget: {kind: none}\ninitialDelay: 1ms\nbreaker: {enabled: false}\n" + PATIENT))
    hosts[0].stop()
    assert [made.ask("POST", body=b"x").status for _ in range(20)] == [200] * 20
    assert made.metric("becalm_parked_total") == 0
    hosts[1].stop()
    with made.wire() as wire:
        wire.send(request("POST", body=b"x"))
        parked(made, 1)
        hosts[0].start()
        assert wire.answer("POST").status == 200


def test_a_unix_socket_that_is_not_there_is_waited_for(gateway, tmp_path):
    path = tmp_path / "host"
    made = gateway(f"services:\n  a:\n    hosts: ['unix:{path}']\n    match: {{prefix: /}}\n")
    with made.wire() as wire, socket.socket(socket.AF_UNIX) as there:
        wire.send(request())
        parked(made, 1)
        there.bind(str(path))  # and does not listen: refused, where it was not found before
        time.sleep(0.3)
        there.listen()
        there.settimeout(20)
        connection, _ = there.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            assert wire.answer().status == 200


def test_a_host_that_swallows_connections_is_not_waited_for(gateway):
    """Its backlog is full: the host is up, and busy."""
    with socket.socket() as there:
        there.bind(("127.0.0.1", 0))
        there.listen(0)
        crowd = fill(there)
        port = there.getsockname()[1]
        rules = "maxRetries: 0\nconnectTimeout: 200ms\n"
        made = gateway(f"services:\n  a:\n    hosts: ['127.0.0.1:{port}']\n    match: {{prefix: /}}\n    " + rules.replace("\n", "\n    ").rstrip() + "\n")
        answer = made.ask()
        assert answer.status == 504, answer.start
        assert made.metric("becalm_parked_total") == 0
        for each in crowd:
            each.close()
