# SPDX-License-Identifier: MIT
"""One connection that always has more to do, and the other connections of its worker: all have their turn. The counts
are far below the measured ones, and far above those of a worker that one connection keeps for itself: one or two."""

import contextlib
import socket
import threading
import time

import pytest
from host import Tunnel, wait_until
from message import request
from wire import Wire

SECONDS = 2
ENOUGH = 8  # answers in that time; the promise is 20: 100 ms each


class Blast:
    """A host that sends for ever, or reads for ever, as fast as it can. Not asyncio: it must be faster than we are."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(64)
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                there, _ = self.socket.accept()
                threading.Thread(target=self._serve, args=(there,), daemon=True).start()

    def _serve(self, there):
        with contextlib.suppress(OSError), there:
            head = b""
            while b"\r\n\r\n" not in head:
                head += there.recv(65536)
            if head.startswith(b"GET"):
                there.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
                while True:
                    there.sendall(bytes(1 << 20))
            while there.recv(1 << 20):
                pass

    def close(self):
        self.socket.close()


class Attack:
    """Does `each` in as many threads again and again, until it is over."""

    def __init__(self, *each):
        self.over = False
        self.count = 0
        self.threads = [threading.Thread(target=self._run, args=(one,), daemon=True) for one in each]

    def _run(self, one):
        with contextlib.suppress(OSError):
            while not self.over:
                one()
                self.count += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        wait_until(lambda: self.count > 20)
        return self

    def __exit__(self, *_):
        self.over = True


def answers(port, path="/", host="a.test"):
    """The number of answers that one client gets, one after the other, and its longest wait."""
    until = time.monotonic() + SECONDS
    count, worst = 0, 0
    with Wire(port) as wire:  # a busy machine gets longer for the same
        while (begin := time.monotonic()) < until or (count < ENOUGH and begin < until + 60):
            assert wire.ask(path=path, host=host).status == 200
            count, worst = count + 1, max(worst, time.monotonic() - begin)
    print(f"{count} answers in {SECONDS} s, the worst after {worst * 1000:.1f} ms")
    return count


def drain(wire):
    return lambda: wire.socket.recv(1 << 20) or time.sleep(0.01)


def policy(host, *more):
    lines = ["idleTimeout: 30s", "services:", f"  a: {{hosts: ['{host.address}'], match: {{host: a.test}}}}"]
    return "\n".join([*lines, *more]) + "\n"


def test_one_that_pipelines_is_not_the_only_one(gateway, host):
    made = gateway(policy(host()))
    wire = made.wire()
    many = request(path="/none", host="nowhere.test") * 4000
    with Attack(lambda: wire.send(many), drain(wire)):
        assert answers(made.port) >= ENOUGH


def test_one_that_pipelines_what_is_answered_by_a_host_is_not_the_only_one(gateway, host):
    made = gateway(policy(host()))
    wire = made.wire()
    many = request() * 4000
    with Attack(lambda: wire.send(many), drain(wire)):
        assert answers(made.port) >= ENOUGH


def test_those_that_were_refused_and_go_on_sending_are_not_the_only_ones(gateway, host):
    made = gateway(policy(host()))
    enough, away = threading.Event(), []

    def refused():
        """Each step is a megabyte more of a connection that was refused, or the next one."""
        wires = []

        def step():
            try:
                if not wires:
                    wires.append(made.wire().send(b"nonsense\r\n\r\n"))
                wires[0].send(bytes(1 if enough.is_set() else 1 << 20))
            except OSError:
                away.extend(wires)
                wires.clear()
            time.sleep(0.02 if enough.is_set() else 0)

        return step

    with Attack(*[refused() for _ in range(4)]):
        assert answers(made.port) >= ENOUGH
        enough.set()  # they go on, but need not be as fast as they can
        wait_until(lambda: len(away) > 4)  # each was sent away in the end
    for wire in away:
        wire.close()


@pytest.mark.parametrize("way", ["down", "up", "tunnel"])
def test_those_that_stream_are_not_the_only_ones(gateway, host, way):
    blast, there = Blast(), host()
    there.on("/ws", Tunnel())
    made = gateway(
        policy(
            there, f"  blast: {{hosts: ['{blast.address}'], match: {{host: blast.test}}, attemptTimeout: 60s}}"
        )
        + "connect: true\n"
    )
    wires = [made.wire() for _ in range(3)]
    if way == "up":
        head = request("POST", host="blast.test", fields={"Content-Length": "1000000000000"})
    elif way == "down":
        head = request(host="blast.test")
    else:
        head = request("CONNECT", "blast.test:80", host="blast.test:80") + request(host="blast.test")
    for wire in wires:
        wire.send(head)
    each = [(lambda w=wire: w.send(bytes(1 << 20))) if way == "up" else drain(wire) for wire in wires]
    with Attack(*each):
        assert answers(made.port) >= ENOUGH
    for wire in wires:
        wire.reset()
    blast.close()


@pytest.mark.parametrize("what", ["/healthz", "/nothing"])
def test_one_that_pipelines_at_the_admin_address_is_not_the_only_one(gateway, host, what):
    made = gateway(policy(host()))
    local = f"127.0.0.1:{made.admin}"
    wire = Wire(made.admin)
    many = request(path=what, host=local) * 2000
    with Attack(lambda: wire.send(many), drain(wire)):
        assert answers(made.admin, "/readyz", local) >= ENOUGH
        made.end()  # and the worker handles orders


def test_those_that_only_connect_are_not_the_only_ones(gateway, host):
    made = gateway(policy(host()))

    def connect():
        wires = []
        with contextlib.suppress(OSError):
            wires += [made.wire() for _ in range(50)]
        for wire in wires:
            wire.reset()

    with Attack(*[connect] * 4):
        assert answers(made.port) >= ENOUGH
