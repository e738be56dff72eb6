# SPDX-License-Identifier: MIT
"""A new policy, or the end of the gateway, under load: no client notices."""

import ctypes
import errno
import os
import pathlib
import resource
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


def test_an_ejection_stays_with_its_address(gateway, host):
    """In a list of other hosts, and of more; not with the place in the list, at which another host is then."""
    bad, good, new = host(), host(), host()
    bad.on("*", Reply(500))
    rules = "outlier: {baseEjectionTime: 300s}\nbreaker: {enabled: false}"
    made = gateway(policy_of([bad, good], rules=rules))

    def ejected():
        rows = {row: value for row, value in made.metrics().items() if row.startswith("becalm_host_ejected{")}
        return {each: value == 1 for row, value in rows.items() for each in (bad, good, new) if each.address in row}

    wait_until(lambda: made.ask() and ejected()[bad])
    made.reload(policy_of([good, bad, new], rules=rules))
    wait_until(lambda: new in ejected())
    assert ejected() == {good: False, bad: True, new: False}
    made.reload(policy_of([new, good, bad], rules=rules + "\nmaxRetries: 1"))
    wait_until(lambda: list(ejected()) == [new, good, bad])
    assert ejected() == {new: False, good: False, bad: True}
    made.reload(policy_of([new, bad], rules=rules))
    wait_until(lambda: good not in ejected())
    assert ejected() == {new: False, bad: True}
    made.reload(policy_of([new, good], rules=rules))
    wait_until(lambda: good in ejected())
    assert ejected() == {new: False, good: False}, "at the place of a host that was ejected is another one"


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
    assert made.told("becalm.yaml:"), "each broken file is told with its line"


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
    gateway, host = pair(workers=2, delay="20s")  # a busy machine needs some of them to end the load
    go = threading.Event()
    host.on("*", lambda got: Reply(body=signed(got.target.encode()), delay=0.05))
    host.on("/slow", Reply(body=signed(b"slow"), when=go.is_set))
    load = Load(gateway.port, rate=100, seconds=60, make=lambda n: ("GET", request(path=f"/{n}")))
    load.start()
    load.wait(30)
    with gateway.wire() as wire:
        wire.send(request(path="/slow"))
        host.wait(1, "/slow")
        gateway.signal(signal.SIGTERM)
        load.wait(50, since=time.monotonic())
        results = load.stop()
        assert statuses(results) == {200: len(results)}, statuses(results)
        go.set()
        answer = wire.answer()
        assert answer.status == 200 and is_signed(answer.body), "what is in flight is finished"
        assert answer.get("connection") == "close"
    gateway.end()


def refuses(port):
    with socket.socket() as late:
        return late.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_term_lets_an_answer_come_that_is_awaited_when_nothing_new_is_accepted(pair):
    gateway, host = pair()
    go = threading.Event()
    host.on("/slow", Reply(body=signed(b"slow"), when=go.is_set))
    with gateway.wire() as wire:
        wire.send(request(path="/slow"))
        host.wait(1, "/slow")
        gateway.signal(signal.SIGTERM)
        wait_until(lambda: refuses(gateway.port))
        go.set()
        answer = wire.answer()
        assert answer.status == 200 and is_signed(answer.body) and answer.get("connection") == "close"
    gateway.end()


def test_readyz_says_503_while_draining(pair):
    gateway, host = pair(delay="30s")
    with Wire(gateway.admin) as wire:
        assert wire.ask(path="/readyz", host=f"127.0.0.1:{gateway.admin}").status == 200
    gateway.signal(signal.SIGTERM)
    with Wire(gateway.admin) as wire:
        wait_until(lambda: wire.ask(path="/readyz", host=f"127.0.0.1:{gateway.admin}").status == 503)
    assert gateway.ask().status == 200, "and goes on accepting for a while"


def test_idle_connections_do_not_hold_the_end_up(pair):
    gateway, host = pair()
    wires = [gateway.wire() for _ in range(20)]
    for wire in wires:
        assert wire.ask().status == 200
    begin = time.monotonic()
    gateway.end()
    assert time.monotonic() - begin < 25, "drain.limit is 30 s"
    assert all(wire.at_end() for wire in wires)


def test_a_second_term_ends_at_once(pair):
    gateway, host = pair(delay="60s")
    host.on("/slow", Reply(cut=0, end="hang"))
    with gateway.wire() as wire:
        wire.send(request(path="/slow"))
        host.wait(1)
        gateway.signal(signal.SIGTERM)
        wait_until(lambda: gateway.log_lines("draining"))
        assert gateway.process.poll() is None
        gateway.signal(signal.SIGTERM)
        gateway.process.wait(40)
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
        assert time.monotonic() - begin < 50


def test_sockets_handed_over_are_used(host, tmp_path):
    """LISTEN_FDS: systemd holds the socket, so that a restart refuses no client."""
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


class Manager:
    """Where a service manager listens."""

    def __init__(self, path):
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)

    def hears(self, word, seconds=20):
        """The next message that has the word; None: there was none in that time."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                said = self.socket.recv(4096).decode()
            except TimeoutError:
                return None
            if word in said:
                return said
        return None

    def close(self):
        self.socket.close()


@pytest.fixture
def manager(tmp_path):
    made = Manager(tmp_path / "notify")
    yield made
    made.close()


class Stopped:
    """One thread of a process that stands still, as in a debugger, while the others go on."""

    PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self, thread):
        self.thread = thread

    def _ptrace(self, what):
        call = ctypes.CDLL(None, use_errno=True).ptrace
        if call(ctypes.c_long(what), ctypes.c_long(self.thread), None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def __enter__(self):
        try:
            self._ptrace(self.PTRACE_SEIZE)
        except PermissionError:
            pytest.skip("nobody may be traced here")
        self._ptrace(self.PTRACE_INTERRUPT)
        os.waitpid(self.thread, self.WALL)

    def __exit__(self, *_):
        self._ptrace(self.PTRACE_DETACH)


def movers(made):
    """Its two workers and its control thread: the first is main(), the second writes the log."""
    tasks = pathlib.Path(f"/proc/{made.process.pid}/task")

    def named(begin):
        return sorted(int(each.name) for each in tasks.iterdir() if (each / "comm").read_text().startswith(begin))

    wait_until(lambda: len(named("becalm-w")) == 2 and len(named("becalm-control")) == 1)  # they name themselves
    return named("becalm-w") + named("becalm-control")


def test_the_service_manager_is_told(gateway, host, manager):
    made = gateway(policy_of([host()]), env={"NOTIFY_SOCKET": manager.path})
    assert manager.hears("READY=1")
    made.signal(signal.SIGHUP)
    assert "MONOTONIC_USEC=" in manager.hears("RELOADING=1")
    assert "STATUS=policy in force: " in manager.hears("READY=1")
    good = made.path.read_text()
    made.reload("nonsense: 1\n")
    assert "READY=1" not in manager.hears("STATUS=policy refused, the one before stays: "), "nobody had asked"
    made.signal(signal.SIGHUP)
    assert manager.hears("RELOADING=1")
    assert "becalm.yaml:1:" in manager.hears("READY=1\nSTATUS=policy refused, the one before stays: ")
    made.reload(good)
    assert manager.hears("STATUS=policy in force: ")
    threading.Thread(target=made.end).start()
    assert manager.hears("STOPPING=1")
    made.process.wait(20)


def test_a_reload_is_over_when_every_worker_serves_by_it(gateway, host, manager):
    made = gateway(policy_of([host()]), workers=2, env={"NOTIFY_SOCKET": manager.path}, dumpable=True)
    assert manager.hears("READY=1")
    with Stopped(movers(made)[1]):
        made.signal(signal.SIGHUP)
        assert manager.hears("RELOADING=1")
        assert manager.hears("READY=1", seconds=0.5) is None, "one worker still serves by the policy before"
    assert manager.hears("READY=1\nSTATUS=policy in force: ")


@pytest.mark.parametrize("which", [0, 1, 2], ids=["worker 0", "worker 1", "control"])
def test_the_watchdog_is_fed_only_while_every_thread_moves(gateway, host, manager, which):
    env = {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "400000"}
    made = gateway(policy_of([host()]), workers=2, env=env, dumpable=True)
    for _ in range(3):
        assert manager.hears("WATCHDOG=1"), "all are idle, and well"
    with Stopped(movers(made)[which]):
        fed = 0
        while fed < 9 and manager.hears("WATCHDOG=1", seconds=1):
            fed += 1
        assert fed < 9, "more than was on its way"
        made.signal(signal.SIGUSR1)  # the feeder may wake up, but does not feed
        assert manager.hears("WATCHDOG=1", seconds=0.5) is None
    for _ in range(3):
        assert manager.hears("WATCHDOG=1"), "it goes on"


def test_a_signal_that_asks_for_nothing_ends_nothing(gateway, host):
    """USR2 replaces the program elsewhere, or makes it reload. Here it must not end a gateway without a drain."""
    made = gateway(policy_of([host()]))
    for number in (signal.SIGUSR2, signal.SIGUSR1, signal.SIGUSR2):
        made.signal(number)
        assert made.ask().status == 200
    made.signal(signal.SIGTERM)
    assert made.process.wait(60) == 0
    assert made.log().count("SIGUSR2 has no effect") == 1


def test_signals_count_while_fewer_files_may_be_open_than_the_gateway_looks_at(gateway, host):
    """poll() refuses more descriptors than the limit of open files: the gateway must still end."""
    made = gateway(policy_of([host()]))
    before = resource.prlimit(made.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(made.process.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    made.signal(signal.SIGUSR2)  # wakes the gateway, which then looks at its descriptors again
    made.told("SIGUSR2 has no effect")
    made.signal(signal.SIGTERM)
    assert made.process.wait(60) == 0
