# SPDX-License-Identifier: MIT
"""Fixtures for the tests of libbecalm-curl: hosts that misbehave, and a program that calls them. The program is the one
named by BECALM_LAB; the hosts are those of the gateway's tests."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LAB = os.environ.get("BECALM_LAB", str(ROOT / "build/dev/tests/curl_lab"))
sys.path.insert(0, str(HERE.parent / "e2e"))

from host import Host, fill  # noqa: E402

SECONDS = 300  # a guard


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Result:
    """The output of the program: calls, retries, other lines, and the page of metrics."""

    def __init__(self, text):
        self.calls, self.retries, self.others, self.metrics = [], [], [], {}
        for line in text.splitlines():
            if line.startswith("{"):
                item = json.loads(line)
                kind = self.retries if "retry" in item else self.calls if "reason" in item else self.others
                kind.append(item)
            elif line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                self.metrics[name] = float(value)

    @property
    def call(self):
        assert len(self.calls) == 1
        return self.calls[0]

    def count(self, name, **labels):
        """The sum of the samples of this name that have these labels."""
        total = 0
        for sample, value in self.metrics.items():
            if sample.split("{")[0] == name and all(f'{k}="{v}"' in sample for k, v in labels.items()):
                total += value
        return total


@pytest.fixture
def host():
    host = Host()
    yield host
    host.close()


@pytest.fixture
def silent():
    """A port whose queue is full, so that the kernel answers no client."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        crowd = fill(listener)
        yield listener.getsockname()[1]
        for one in crowd:
            one.close()


def command_of(tmp_path, policy, url, options):
    path = tmp_path / "becalm.yaml"
    path.write_text(policy)
    command = [LAB, str(path), url]
    for key, value in options.items():
        for each in value if isinstance(value, list) else [value]:
            command.append(f"{key}={each}")
    return command


@pytest.fixture
def lab(tmp_path):
    def run(policy, url, seconds=SECONDS, **options):
        command = command_of(tmp_path, policy, url, options)
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        assert done.returncode == 0, done.stderr
        return Result(done.stdout)

    return run


def in_time(asks, claim):
    """asks(factor) makes a call with timeouts of `factor` times their usual length, within which an event must happen
    (a connection, a head) for the claim to hold. A busy machine gets more time. Returns the last call."""
    for factor in (1, 4, 16, 64):
        call = asks(factor)
        if claim(call):
            break
    return call


def service(**keys):
    """A policy with one service for all of 127.0.0.1; waits are short and there is always a budget."""
    rules = {"match": "{host: 127.0.0.1}", "initialDelay": "5ms", "budget": "{kind: none}", **keys}
    return "services: {s: {" + ", ".join(f"{key}: {value}" for key, value in rules.items()) + "}}\n"
