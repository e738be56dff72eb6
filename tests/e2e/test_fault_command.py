# SPDX-License-Identifier: MIT
"""becalm fault: its options, their effect on the gateway, and that no fault is left behind."""

import json
import signal
import subprocess
import threading

import pytest
from conftest import PROGRAM
from host import wait_until
from test_fault_orders import QUICK, in_force, token  # noqa: F401

SCENARIO = """\
length: 4s
services: {api: {workers: 50, time: {constant: 5ms}}}
clients: {users: {to: api, rate: 50/s}}
faults:
  first: {at: 1s, for: 1s, service: api, dead: true}
  second: {at: 2500ms, for: 500ms, service: api, errors: 50%, flap: {on: 100ms, off: 100ms}}
"""


@pytest.fixture
def fault(pair, token, tmp_path):  # noqa: F811
    """fault(words): the command, told of a gateway with service a."""
    gateway, _ = pair(token, QUICK)

    def run(*words, token=True, code=0):
        more = ["--token-file", str(tmp_path / "token")] if token else []
        done = subprocess.run(
            [PROGRAM, "fault", *words, "--admin", f"127.0.0.1:{gateway.admin}", *more], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == code, (words, done)
        return done.stdout if code == 0 else done.stderr

    run.gateway = gateway
    run.token = tmp_path / "token"
    return run


def test_inject_list_and_clear(fault):
    assert fault("list") == "no fault is in force\n"
    said = fault("inject", "a", "errors=100%", "--status", "503", "--for", "60s", "--header", "x-one: 1", "--header", "x-two", "--name", "game", "--cap", "7")
    assert said == "game: errors of a towards hosts, ends in 60 s, has hit 0 of at most 7\n"
    assert fault.gateway.ask().status == 200
    assert fault.gateway.ask(fields={"x-one": "1", "x-two": ""}).status == 503
    told = json.loads(fault("list", "--json"))["faults"]
    assert told == in_force(fault.gateway) or told[0]["headers"] == ["x-one: 1", "x-two"]
    assert json.loads(fault("inject", "a", "killHosts=1", "--endpoint", "default", "--share", "50%", "--client", "10.0.0.0/8", "--for", "1m", "--json"))["share"] == 0.5
    assert "killHosts of a default towards hosts" in fault("list")
    assert fault("clear", "game") == "" and len(in_force(fault.gateway)) == 1
    assert json.loads(fault("clear", "--json")) == {"cleared": 1}
    assert "towards clients" in fault("inject", "a", "dead", "--towards", "clients", "--for", "10ms")


def test_what_is_wrong_is_said(fault):
    assert "a fault needs an end" in fault("inject", "a", "dead", code=2)
    assert "a service and a fault" in fault("inject", "a", "--for", "1s", code=2)
    assert "no fault" in fault("inject", "a", "x" * 40, "--for", "1s", code=2)
    assert "400: " in fault("inject", "a", "capacity=0.5", "--for", "1s", code=1)
    assert "404: The policy has no service or endpoint of this name" in fault("inject", "b", "dead", "--for", "1s", code=1)
    assert "404: No fault of that name" in fault("clear", "nobody", code=1)
    assert "asks for a token; write --token-file" in fault("list", token=False, code=1)
    assert 'a fault has no key "explode"; becalm-fault(1) lists the keys' in fault("inject", "a", "explode=1", "--for", "1m", code=1)
    assert "one scenario" in fault("play", code=2)
    assert "no gateway can do capacity" in fault("play", "metastable", "--service", "api=a", "--dry-run", code=1)
    assert in_force(fault.gateway) == []


def test_play(fault, tmp_path):
    """The faults come at their time; the seconds are told beside the simulated ones."""
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO)
    planned = fault("play", str(path), "--service", "api=a", "--dry-run").splitlines()
    assert planned == [
        '1.000 s: {"service":"a","name":"play-1","for":"1s","dead":true}',
        '2.500 s: {"service":"a","name":"play-2","for":"500ms","errors":"50.0000%","flap":{"on":"100ms","off":"100ms"}}',
    ]
    seen, over = [], threading.Event()

    def ask():
        while not over.is_set():
            seen.append(fault.gateway.ask().status)

    asker = threading.Thread(target=ask)
    asker.start()
    rows = [json.loads(line) for line in fault("play", str(path), "--service", "api=a", "--json").splitlines()]
    over.set()
    asker.join(20)
    assert 502 in seen and 200 in seen, set(seen)
    assert rows and [row["second"] for row in rows] == sorted(row["second"] for row in rows)
    assert sum(row["failed"] for row in rows) > 0 and all(row["simulated"]["calls"] > 0 for row in rows)
    assert rows[0]["simulated"]["good"] == rows[0]["simulated"]["calls"]
    wait_until(lambda: in_force(fault.gateway) == [])
    ordered = fault.gateway.log_lines("fault ordered")
    assert len(ordered) == 2 and "play-1" in ordered[0] and "play-2" in ordered[1]


def test_play_that_is_told_to_end_clears_what_it_ordered(fault, tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO.replace("at: 1s, for: 1s", "at: 0s, for: 60s").replace("length: 4s", "length: 90s"))
    command = [PROGRAM, "fault", "play", str(path), "--service", "api=a", "--admin", f"127.0.0.1:{fault.gateway.admin}", "--token-file", str(fault.token)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as player:
        wait_until(lambda: len(in_force(fault.gateway)) == 1)
        player.send_signal(signal.SIGINT)
        assert "told to end" in player.communicate(timeout=30)[1] and player.returncode == 1
    assert in_force(fault.gateway) == [] and fault.gateway.ask().status == 200
