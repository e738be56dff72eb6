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
from host import Reply, wait_until
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


def restart(load, host, down=0.6, before=1.5, after=2.0):
    """Kills the host under load and starts it again after `down` seconds."""
    load.start()
    time.sleep(before)
    host.kill()
    time.sleep(down)
    host.start()
    host.wait()
    time.sleep(after)
    return load.stop()


def lost(results):
    return [(each.number, each.status, reasons([each])) for each in results if each.status != 200]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_node_service_that_restarts_loses_no_get(gateway, node, workers):
    there = node()
    made = gateway(policy_of([there]), workers=workers)
    results = restart(Load(made.port, rate=100), there)
    assert lost(results) == [] and len(results) > 350
