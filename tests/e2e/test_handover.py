# SPDX-License-Identifier: MIT
"""Addresses that a gateway gives up while their socket lives on: in systemd, in another process, in another worker. A
dead registration would be called by the next connection, and would take wake-ups that are meant for the successor."""

import os
import signal
import socket
import threading
import time

import pytest
from conftest import free_port, policy_of
from host import Reply, wait_until
from load import Load, reasons, statuses
from message import is_signed, request, signed
from wire import Wire, ask

SOAK = os.environ.get("BECALM_SOAK") is not None


def held_socket(path=None):
    """A listening socket of another process."""
    held = socket.socket(socket.AF_INET if path is None else socket.AF_UNIX)
    held.bind(("127.0.0.1", 0) if path is None else str(path))
    held.listen(1024)
    return held


def address_of(held):
    name = held.getsockname()
    return f"unix:{name}" if isinstance(name, str) else f"{name[0]}:{name[1]}"


def listening(*addresses):
    return "listen: [" + ", ".join(f'"{each}"' for each in addresses) + "]\n"


def reload(gateway, policy):
    """Returns when it is in force, but for workers that still have to be woken."""
    before = len(gateway.log_lines("policy reloaded"))
    gateway.reload(policy)
    gateway.signal(signal.SIGHUP)
    wait_until(lambda: len(gateway.log_lines("policy reloaded")) > before)


def knock(held, count):
    """`count` connections that must not reach the old gateway."""
    knocking = []
    for _ in range(count):
        each = socket.socket(held.family)
        each.setblocking(False)
        each.connect_ex(held.getsockname())
        knocking.append(each)
        time.sleep(0.005)
    for each in knocking:
        each.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_term_with_a_handed_over_socket_loses_no_call(gateway, host, workers):
    """Each gateway is ended under load; its successor has the same socket, and begins before or after that end."""
    there = host()
    there.on("*", lambda got: Reply(body=signed(got.target.encode()), delay=0.01))
    held = held_socket()
    port = held.getsockname()[1]
    policy = listening(address_of(held)) + policy_of([there])

    def start():
        return gateway(policy, listen=None, handed=[held], workers=workers)

    def make(number):
        method = "POST" if number % 10 < 3 else "GET"
        body = b"x" if method == "POST" else None
        return method, request(method, f"/{number}", body=body, fields={"Connection": "close"})

    now = start()
    load = Load(port, clients=8, seconds=120, make=make)  # each asks again when it is answered: no backlog builds up
    load.start()
    for number in range(8 if SOAK else 4):
        time.sleep(0.5)
        if number % 2:
            successor = start()
            now.end()
            now = successor
        else:
            now.signal(signal.SIGTERM)
            now.process.wait(60)  # it takes its time on a busy machine, and a second TERM would end it at once
            now.end()
            now = start()
    time.sleep(0.3)
    results = load.stop()
    held.close()
    # A gateway that ends waits a second for the first byte of a client that has just connected. On a busy machine this
    # process may send nothing for a second.
    heard = [result for result in results if result.status == 200 or result.silent < 0.5]
    assert len(heard) > 100 and statuses(heard) == {200: len(heard)}, (statuses(heard), reasons(heard))
    assert all(is_signed(result.answer.body) for result in heard)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_reload_takes_a_handed_over_address_out(gateway, host, workers):
    there, held, port = host(), held_socket(), free_port()
    both = listening(f"127.0.0.1:{port}", address_of(held)) + policy_of([there])
    one = listening(f"127.0.0.1:{port}") + policy_of([there])
    made = gateway(both, listen=None, handed=[held], workers=workers)
    for _ in range(3):
        assert ask(held.getsockname()[1]).status == 200
        reload(made, one)
        time.sleep(0.1)
        before = made.cpu_seconds()
        knock(held, 20)
        with Wire(held.getsockname()[1]) as wire:
            wire.send(request())
            assert wire.says_nothing(0.3), "nobody listens there any more"
            assert made.cpu_seconds() - before < 0.2, "and nobody is woken for it"
            assert ask(port).status == 200
            reload(made, both)
            assert wire.answer().status == 200, "whoever takes the socket again finds it waiting"
    held.close()


def test_a_reload_takes_a_handed_over_admin_address_out(gateway, host, tmp_path):
    there, held = host(), held_socket(tmp_path / "admin")
    first = f"admin: {address_of(held)}\n" + policy_of([there])
    made = gateway(first, admin=None, handed=[held])
    assert ask(held.getsockname(), path="/healthz", host="localhost").status == 200
    reload(made, "admin: none\n" + policy_of([there]))
    knock(held, 20)
    assert made.ask().status == 200
    assert (tmp_path / "admin").exists(), "the file is not ours to remove"
    reload(made, first)
    assert ask(held.getsockname(), path="/healthz", host="localhost").status == 200
    held.close()


def test_a_reload_takes_a_unix_socket_out(gateway, host, tmp_path):
    """Two workers share the socket: one closes it a moment before the other."""
    there, path, port = host(), str(tmp_path / "s"), free_port()
    both = listening(f"127.0.0.1:{port}", f"unix:{path}") + policy_of([there])
    one = listening(f"127.0.0.1:{port}") + policy_of([there])
    made = gateway(both, listen=None, workers=2)
    over, asked = threading.Event(), []

    def flood():
        while not over.is_set():
            try:
                with Wire(path) as wire:
                    asked.append(wire.ask(fields={"Connection": "close"}).status)
            except (OSError, EOFError):
                time.sleep(0.001)  # it is not there now

    threads = [threading.Thread(target=flood) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for number in range(120 if SOAK else 30):
            reload(made, one if number % 2 == 0 else both)
            time.sleep(0.01)
    finally:
        over.set()
        for thread in threads:
            thread.join(60)
    assert set(asked) == {200} and ask(port).status == 200
    assert made.process.poll() is None
