# SPDX-License-Identifier: MIT
"""A new policy, or the end, under load: nobody notices."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from conftest import PROGRAM, free_port, policy_of
from host import Reply, wait_until
from load import Load, statuses
from message import is_signed, request, signed
from wire import Wire


def test_50_reloads_under_load_lose_no_request(gateway, host):
    """Ten of them have a broken file, which changes nothing."""
    hosts = [host(), host()]
    for each in hosts:
        each.on("*", lambda got: Reply(body=signed(got.target.encode()), delay=0.02))
    made = gateway(policy_of(hosts), workers=2)
    load = Load(made.port, rate=100, seconds=60, make=lambda n: ("GET", request(path=f"/{n}")))
    load.start()
    time.sleep(0.3)
    for number in range(50):
        broken = number % 5 == 4
        more = f"maxRetries: {number % 3}\nendpoints:\n  e{number % 4}: {{match: {{path: /e}}}}"
        text = policy_of(hosts[: 1 + number % 2], rules=more)
        made.reload(text if not broken else text + "nonsense: [\n")
        if number % 2 == 0:
            made.signal(signal.SIGHUP)
        time.sleep(0.05 if number % 2 == 0 else 0.2)
    time.sleep(0.5)
    results = load.stop()
    assert len(results) > 200 and statuses(results) == {200: len(results)}
    assert all(is_signed(result.answer.body) for result in results)
    assert made.log_lines("becalm.yaml:"), "each broken file is told with its line"


def test_a_bad_file_keeps_the_policy_and_says_why(pair):
    gateway, host = pair("explain: true")
    assert gateway.ask().get("becalm-explain")
    gateway.reload("services: {a: {hosts: [nonsense:port:x]}}\n")
    wait_until(lambda: "becalm.yaml:1:" in gateway.log())
    assert gateway.ask().get("becalm-explain")


def swap(path, make):
    """Something else takes the file's name."""
    other = path.with_suffix(".other")
    make(other)
    os.rename(other, path)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["fifo", "device"])
@pytest.mark.parametrize("what", ["policy", "token"])
def test_what_is_no_regular_file_is_refused_and_holds_nothing_up(gateway, host, tmp_path, make, what):
    token = tmp_path / "token"
    token.write_text("correct-horse-battery-staple")
    text = policy_of([host()], f"adminTokenFile: {token}")
    there = gateway(text)
    swap(there.path if what == "policy" else token, make)
    for _ in range(2):
        before = len(there.log_lines("policy not reloaded"))
        there.signal(signal.SIGHUP)
        wait_until(lambda count=before: len(there.log_lines("policy not reloaded")) > count)
    assert "it is not a regular file" in there.log()
    assert there.ask().status == 200, "by the policy before"
    swap(there.path, lambda path: path.write_text(text))
    swap(token, lambda path: path.write_text("another"))
    there.signal(signal.SIGHUP)
    wait_until(lambda: there.log_lines("policy reloaded"))
    swap(there.path, os.mkfifo)  # and TERM is heard while it is one


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "directory"])
def test_it_does_not_start_with_what_is_no_regular_file(tmp_path, make):
    make(tmp_path / "p.yaml")
    done = subprocess.run([PROGRAM, "proxy", tmp_path / "p.yaml"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "it is not a regular file" in done.stderr


def test_a_new_policy_takes_effect_by_a_changed_file_alone(pair, host):
    gateway, old = pair()
    new = host()
    new.on("/", Reply(body=b"new"))
    gateway.reload(policy_of([new]))
    wait_until(lambda: gateway.ask().body == b"new")


def test_an_open_breaker_stays_open_over_a_reload(pair):
    gateway, host = pair(rules="maxRetries: 0\nbreaker: {minimumNumberOfCalls: 5, waitDurationInOpenState: 60s}")
    host.on("/", Reply(503))
    for _ in range(6):
        gateway.ask()
    seen = host.count()
    assert seen == 5
    gateway.reload("explain: true\n" + gateway.path.read_text())
    wait_until(lambda: gateway.ask().get("becalm-explain") is not None)
    assert "breaker_open" in gateway.ask().get("proxy-status") and host.count() == seen


def test_a_call_keeps_its_policy_to_its_end(pair, host):
    gateway, old = pair()
    old.on("/slow", Reply(body=b"old", delay=1))
    with gateway.wire() as wire:
        wire.send(request(path="/slow"))
        old.wait(1)
        new = host()
        gateway.reload(policy_of([new]))
        wait_until(lambda: gateway.ask().status == 200 and new.count() > 0)
        assert wire.answer().body == b"old"


def test_term_under_load_loses_nothing(pair):
    gateway, host = pair(workers=2, delay="1500ms")
    host.on("*", lambda got: Reply(body=signed(got.target.encode()), delay=0.05))
    host.on("/slow", Reply(body=signed(b"slow"), delay=2.5))
    load = Load(gateway.port, rate=100, seconds=60, make=lambda n: ("GET", request(path=f"/{n}")))
    load.start()
    time.sleep(0.5)
    with gateway.wire() as wire:
        wire.send(request(path="/slow"))
        host.wait(1, "/slow")
        gateway.signal(signal.SIGTERM)
        time.sleep(0.8)
        results = load.stop()
        assert statuses(results) == {200: len(results)}, statuses(results)
        answer = wire.answer()
        assert answer.status == 200 and is_signed(answer.body), "what is in flight is finished"
        assert answer.get("connection") == "close"
    gateway.end()


def test_readyz_says_503_while_draining(pair):
    gateway, host = pair(delay="2s")
    with Wire(gateway.admin) as wire:
        assert wire.ask(path="/readyz", host=f"127.0.0.1:{gateway.admin}").status == 200
    gateway.signal(signal.SIGTERM)
    time.sleep(0.3)
    with Wire(gateway.admin) as wire:
        assert wire.ask(path="/readyz", host=f"127.0.0.1:{gateway.admin}").status == 503
    assert gateway.ask().status == 200, "and goes on accepting for a while"


def test_idle_connections_do_not_hold_the_end_up(pair):
    gateway, host = pair()
    wires = [gateway.wire() for _ in range(20)]
    for wire in wires:
        assert wire.ask().status == 200
    begin = time.monotonic()
    gateway.end()
    assert time.monotonic() - begin < 10
    assert all(wire.at_end() for wire in wires)


def test_a_second_term_ends_at_once(pair):
    gateway, host = pair(delay="20s")
    host.on("/slow", Reply(cut=0, end="hang"))
    with gateway.wire() as wire:
        wire.send(request(path="/slow"))
        host.wait(1)
        gateway.signal(signal.SIGTERM)
        time.sleep(0.3)
        assert gateway.process.poll() is None
        begin = time.monotonic()
        gateway.signal(signal.SIGTERM)
        gateway.process.wait(15)
        assert time.monotonic() - begin < 10
    gateway.end()


def test_the_drain_limit_ends_what_hangs(gateway, host):
    there = host()
    there.on("/slow", Reply(cut=0, end="hang"))
    made = gateway(policy_of([there], rules="attemptTimeout: 60s\ndeadline: 60s"), sets=["drain.limit=1s"])
    with made.wire() as wire:
        wire.send(request(path="/slow"))
        there.wait(1)
        begin = time.monotonic()
        made.end()
        assert time.monotonic() - begin < 15


def test_sockets_handed_over_are_used(host, tmp_path):
    """LISTEN_FDS: systemd holds the socket, so that a restart refuses nobody."""
    there = host()
    policy = tmp_path / "p.yaml"
    policy.write_text(policy_of([there]))
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    held.listen(16)
    port = held.getsockname()[1]
    start = (
        "import os, sys; os.dup2(int(sys.argv[1]), 3); os.set_inheritable(3, True);"
        "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1'); os.execv(sys.argv[2], sys.argv[2:])"
    )
    sets = [f"listen=127.0.0.1:{port}", f"admin=127.0.0.1:{free_port()}", "drain.delay=0s", "workers=1"]
    options = [word for each in sets for word in ("--set", each)]
    process = subprocess.Popen(
        [sys.executable, "-c", start, str(held.fileno()), PROGRAM, "proxy", *options, str(policy)],
        pass_fds=[held.fileno()],
        stderr=subprocess.PIPE,
    )
    try:
        with Wire(port) as wire:
            assert wire.ask().status == 200
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
        held.close()
    assert process.returncode == 0, said


def test_the_service_manager_is_told(gateway, host, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(20)
        there = host()
        made = gateway(policy_of([there]), env={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        assert b"READY=1" in manager.recv(4096)
        made.signal(signal.SIGHUP)
        said = b""
        while b"READY=1" not in said:
            said += manager.recv(4096) + b"\n"
        assert b"RELOADING=1" in said and b"MONOTONIC_USEC=" in said
        threading.Thread(target=made.end).start()
        while b"STOPPING=1" not in said:
            said += manager.recv(4096) + b"\n"
        made.process.wait(20)
