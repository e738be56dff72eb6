# SPDX-License-Identifier: MIT
"""Hosts whose names are found late: clients that come at the start of the gateway, or during a reload, do not wait for
them."""

import itertools
import os
import resource
import shutil
import socket
import struct
import subprocess
import threading
import time

import pytest
from conftest import free_port
from host import wait_until
from load import Load, statuses

NUMBERS = itertools.count(53)  # each test has a name server of its own
A = 1
LATE = 0.7  # seconds until an answer, beyond all backoffs of a call


class Names(threading.Thread):
    """A name server: every name is 127.0.0.1, and the answer comes late; names that begin with "no" have no address."""

    def __init__(self):
        super().__init__(daemon=True)
        self.asked = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.address = f"127.{next(NUMBERS)}.{os.getpid() // 254 % 256}.{os.getpid() % 254 + 1}"
        self.socket.bind((self.address, 53))
        self.start()

    def run(self):
        while True:
            try:
                question, peer = self.socket.recvfrom(2000)
            except OSError:
                return
            threading.Timer(LATE, self.answer, (question, peer)).start()

    def answer(self, question, peer):
        end = question.index(0, 12) + 5
        name, kind = question[13 : end - 5], struct.unpack(">H", question[end - 4 : end - 2])[0]
        self.asked.append(name)
        found = kind == A and not name.startswith(b"no")
        code = 3 if name.startswith(b"no") else 0
        record = b"\xc0\x0c" + struct.pack(">HHIH", A, 1, 60, 4) + socket.inet_aton("127.0.0.1")
        head = question[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, int(found), 0, 0)
        try:
            self.socket.sendto(head + question[12:end] + record * found, peer)
        except OSError:
            pass  # the test is over

    def close(self):
        self.socket.close()


@pytest.fixture
def names(tmp_path):
    """The command that runs a program with the test's own name server."""
    script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
    config = tmp_path / "resolv.conf"
    wrapper = ["unshare", "-m", "sh", "-c", script, str(config)]
    config.touch()
    able = os.geteuid() == 0 and shutil.which("unshare") is not None
    if not able or subprocess.run([*wrapper, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs a mount namespace, and port 53")
    server = Names()
    server.wrapper, server.config = wrapper, config
    config.write_text(f"nameserver {server.address}\noptions ndots:0\n")
    yield server
    server.close()


def policy(name, port):
    return f'drain: {{delay: 0s}}\nservices: {{a: {{hosts: ["{name}.test:{port}"], match: {{prefix: /}}}}}}\n'


def test_who_comes_when_the_gateway_starts_waits_for_names(gateway, host, names):
    port = host().address.split(":")[1]
    made = gateway(policy("late", port), wrapper=names.wrapper)
    assert made.ask().status == 200, made.log()


def test_a_reload_to_another_name_loses_nothing(gateway, host, names):
    port = host().address.split(":")[1]
    made = gateway(policy("one", port), wrapper=names.wrapper)
    load = Load(made.port, rate=50)
    load.start()
    for name in ("two", "three"):
        made.reload(policy(name, port))
        wait_until(lambda: name.encode() + b"\x04test" in names.asked)
        time.sleep(0.3)
    results = load.stop()
    assert results and statuses(results) == {200: len(results)}


def test_a_name_without_an_address_keeps_no_gateway_from_starting(gateway, host, names):
    one = host()
    text = policy("nobody", free_port()).replace("services: {", f'services: {{b: {{hosts: ["{one.address}"], match: {{prefix: /b}}}}, ')
    made = gateway(text, wrapper=names.wrapper)
    assert made.ask(path="/b").status == 200
    assert made.ask().status == 502


def outside(there):
    return f'role: sidecar\nservices: {{outside: {{unlisted: pass, match: {{host: "{there}"}}, maxRetries: 0}}}}\n'


def test_name_servers_are_read_at_the_start_where_clients_may_bring_names(gateway, host, names):
    """And never again: when the first name comes, there may be no descriptor for the list."""
    there = f"out.test:{host().address.split(':')[1]}"
    made = gateway(outside(there), wrapper=names.wrapper)
    names.config.write_text("nameserver 127.0.0.1\noptions ndots:0\n")  # nobody is there
    assert made.ask(path=f"http://{there}/", host=there).status == 200, made.log()


def test_a_name_that_came_when_descriptors_were_short_is_found_later(gateway, host, names):
    there = f"out.test:{host().address.split(':')[1]}"
    made = gateway(outside(there), wrapper=names.wrapper)
    before = resource.prlimit(made.process.pid, resource.RLIMIT_NOFILE)
    with made.wire() as client:
        assert client.ask(path="http://127.0.0.1:1/", host="127.0.0.1:1").status == 404  # no name: it is connected
        resource.prlimit(made.process.pid, resource.RLIMIT_NOFILE, (3, before[1]))  # it opens nothing more
        assert client.ask(path=f"http://{there}/", host=there).status == 502
        resource.prlimit(made.process.pid, resource.RLIMIT_NOFILE, before)
    wait_until(lambda: made.ask(path=f"http://{there}/", host=there).status == 200, what=made.log)
