# SPDX-License-Identifier: MIT
"""Clients that are slow, deaf or too many: they cost only themselves."""

import resource
import signal
import threading
import time

import pytest
from host import Reply, wait_until
from load import Load, reasons, statuses
from message import request, signed
from wire import Wire

NON_READER_KIB = 256  # the memory that one client may cost that does not read


@pytest.fixture(autouse=True)
def many_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))


def served(gateway, path="/well", rate=50, seconds=2):
    results = Load(gateway.port, rate=rate, seconds=seconds, make=lambda n: ("GET", request(path=path))).run_through()
    assert statuses(results) == {200: len(results)}, reasons(results)
    return True


def test_500_slow_loris_are_cut_off_and_the_others_served(pair):
    gateway, host = pair("headerTimeout: 3s")
    wires = [gateway.wire().send(b"GET / HTTP/1.1\r\nhost: a\r\n") for _ in range(500)]
    assert served(gateway)
    for wire in wires:
        try:
            wire.send(b"x: 1\r\n")
        except OSError:
            pass
    assert served(gateway)
    assert {wire.answer().status for wire in wires} == {408}, "each is told, and cut off"
    for wire in wires:
        wire.close()
    assert host.count("/") == 0


def test_200_clients_that_do_not_read_cost_only_themselves(pair):
    gateway, host = pair("drain: {limit: 1s}\nidleTimeout: 10m", rules="attemptTimeout: 10m\ndeadline: 10m")  # a busy machine takes its time
    big = signed(b"b" * 6_000_000)
    host.on("/big", Reply(body=big))
    assert served(gateway, seconds=0.5)
    before = gateway.resident_kib()
    wires = [gateway.wire(receive_buffer=4096).send(request(path="/big")) for _ in range(200)]
    host.wait(200, "/big")
    time.sleep(1)  # the socket buffers fill up; then, on a busy machine, until the host has time again
    wait_until(lambda: all(gateway.ask(path="/well").status == 200 for _ in range(20)))
    assert served(gateway)
    if not gateway.sanitized():
        grown = gateway.resident_kib() - before
        assert grown < 200 * NON_READER_KIB, f"{grown} KiB for 200 of them"
    assert wires[0].answer().body == big, "and who reads at last gets it all"
    for wire in wires:
        wire.close()


def test_pipelined_requests_are_not_read_ahead_without_end(pair):
    gateway, host = pair()
    host.on("/slow", Reply(delay=2))
    before = gateway.resident_kib()
    wires = []

    def flood(wire):
        wire.socket.settimeout(1)
        try:
            wire.send(request(path="/slow") + request(path="/x") * 50000)
        except OSError:
            pass

    for _ in range(20):
        wires.append(gateway.wire())
    threads = [threading.Thread(target=flood, args=(wire,)) for wire in wires]
    for thread in threads:
        thread.start()
    assert served(gateway, seconds=1)
    if not gateway.sanitized():
        assert gateway.resident_kib() - before < 20 * 512
    for thread in threads:
        thread.join(30)
    for wire in wires:
        wire.close()


def test_a_slow_upload_is_not_the_hosts_fault(pair):
    """The body is larger than the replay buffer, and takes longer than the timeout of an attempt."""
    gateway, host = pair(rules="attemptTimeout: 2s\nbreaker: {minimumNumberOfCalls: 3}\nmaxRetries: 0")
    statuses_seen = []

    def upload():
        with gateway.wire() as wire:
            wire.send(b"PUT /up HTTP/1.1\r\nhost: a\r\ncontent-length: 200000\r\n\r\n")
            try:
                for _ in range(20):
                    wire.send(b"u" * 10000)
                    time.sleep(0.12)
                statuses_seen.append(wire.answer("PUT").status)
            except (OSError, EOFError):
                statuses_seen.append(0)

    threads = [threading.Thread(target=upload) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert gateway.ask(path="/other").status == 200, "the breaker blames the host"
    assert statuses_seen == [200] * 6


def test_out_of_descriptors_it_pauses_without_spinning(pair):
    gateway, host = pair(rules="attemptTimeout: 1h\ndeadline: 1h\nmaxRetries: 0")
    go, wires = gateway.fill_descriptors(host)
    wires += [gateway.wire() for _ in range(150)]
    time.sleep(0.3)
    before, begin = gateway.cpu_seconds(), time.monotonic()
    time.sleep(2)
    used = (gateway.cpu_seconds() - before) / (time.monotonic() - begin)
    if not gateway.sanitized():
        assert used < 0.2, f"{used:.0%} of a core, for nothing"
    admin = Wire(gateway.admin)
    assert (
        admin.ask(path="/healthz", host=f"127.0.0.1:{gateway.admin}").status == 200
    ), "the admin address still answers"
    admin.close()
    go.set()
    for wire in wires:
        wire.close()
    wait_until(lambda: gateway.ask().status == 200)
    assert gateway.process.poll() is None


def test_out_of_descriptors_in_the_middle_of_a_call_is_an_answer(pair):
    """A client is let in, and then there is none left for the host."""
    gateway, host = pair(wrapper=["prlimit", "--nofile=48:48"], rules="maxRetries: 0")
    go = threading.Event()
    host.on("/", Reply(when=go.is_set))
    assert gateway.metric("becalm_connections") == 0  # it is all there is to be opened
    wires = [gateway.wire() for _ in range(48 - gateway.open_fds() - 6)]
    wait_until(lambda: gateway.metric("becalm_connections") == len(wires))
    gateway.stop()
    for wire in wires:  # at once, so that none is idle, and closed for the others
        wire.send(request())
    gateway.signal(signal.SIGCONT)
    go.set()
    told = {wire.answer().status for wire in wires}
    assert told <= {200, 502, 503}, told
    for wire in wires:
        wire.close()
    wait_until(lambda: gateway.ask().status == 200)
