# SPDX-License-Identifier: MIT
"""Worlds in which a policy that is too careful was the outage, on the real libbecalm-curl, sidecar and gateway: pages
whose service hung, a service that is slow by nature, and tenants of which one gets a Retry-After. They need minutes and
a machine that is not busy, so BECALM_SOAK=1 runs them; `-s` prints the figures. tests/curl/test_lines.py and
tests/e2e/test_hints.py have the short forms."""

import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ.get("BECALM", ROOT / "build/dev/becalm")).parent
sys.path[:0] = [str(ROOT / "bench/real"), str(ROOT / "tests/e2e")]

import real  # noqa: E402
from host import Host, Reply, wait_until  # noqa: E402
from load import Load, success  # noqa: E402
from message import request  # noqa: E402

pytestmark = pytest.mark.skipif(os.environ.get("BECALM_SOAK") != "1", reason="BECALM_SOAK=1 runs it")

PAGES = """
about: pages of 30 calls, one each 2 s; the leaf is unreachable for 30 s
length: 180s
timeout: 1s
services:
  page: {time: {constant: 1ms}, role: sidecar, fanOut: 30, calls: [leaf]}
  leaf: {time: {exponential: 20ms}}
clients: {users: {to: page, rate: 30/m, role: sidecar, retries: false}}
faults: {cut: {at: 30s, for: 30s, service: leaf, partition: true}}
"""


class Options:
    programs = PROGRAMS
    real_time = False


def told(world, share, bound):
    print(f"{world}: {share:.4f}, at least {bound} wanted")
    assert share >= bound


def staged(file, first=0):
    """The share of calls that succeed, of those that begin in this second or later."""
    lab = real.Lab(Options, file)
    run = real.curves(lab.run(1), real.watched(lab.plan))
    return sum(run["good"][first:]) / sum(run["calls"][first:])


def calls_in_fault(calls, over):
    return [call["reason"] for call in calls if over - 7 < call["at_ms"] / 1000 < over]


# ---- world 1: pages, and a service that hangs ----


@pytest.mark.parametrize("way", ["easy", "multi"])
def test_drill__pages_of_a_program_are_whole_after_a_hang(tmp_path, way):
    """Thirty threads, a page every 2 s for 80 s; the service hangs for 8 s. The default policy and libbecalm-curl."""
    pages, host = 40, Host()
    host.on("/", Reply(200, b"fine"))
    policy = tmp_path / "becalm.yaml"
    policy.write_text("services: {s: {match: {host: 127.0.0.1}, attemptTimeout: 1s}}\n")
    many = ["threads=30", f"repeat={pages}" if way == "easy" else f"at_once={pages}"]
    command = [PROGRAMS / "tests/curl_lab", policy, f"http://{host.address}/", f"interface={way}", "period_ms=2000", *many]
    back_at = []

    def fault():
        wait_until(lambda: host.count() >= 30 * 10)
        time.sleep(1)  # halfway to the next page, and so it ends: one that begins in the second after it is lost
        host.on("/", Reply(200, b"fine", delay=600))
        time.sleep(8)
        host.on("/", Reply(200, b"fine"))
        back_at.append(time.monotonic())

    thread = threading.Thread(target=fault)
    thread.start()
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    thread.join()
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    calls = [line for line in lines if "reason" in line and "retry" not in line]
    assert len(calls) == 30 * pages
    began = min(each.at for each in host.requests) - min(call["at_ms"] for call in calls) / 1000
    after = [call["reason"] for call in calls if call["at_ms"] / 1000 > back_at[0] - began]
    host.close()
    assert len(after) >= 700 and set(calls_in_fault(calls, back_at[0] - began)) != {"ok"}
    told(f"pages of libbecalm-curl ({way}), calls after the hang", after.count("ok") / len(after), 0.98)


def test_drill__pages_of_a_sidecar_are_whole_after_an_outage(tmp_path):
    file = tmp_path / "pages.yaml"
    file.write_text(PAGES)
    told("whole pages of a sidecar, after the outage", staged(file, 60), 0.98)


# ---- world 3: slow, and well ----


def test_drill__a_slow_service_behind_a_gateway_is_not_cut(tmp_path):
    told("a slow service behind a gateway", staged(real.WORLDS / "slow-gateway.yaml"), 0.98)


# ---- world 6: tenants ----


def test_drill__a_tenant_that_is_told_to_wait_takes_no_retries_from_another(tmp_path):
    """A gets 429 and Retry-After: 60 once a second; one in ten answers to B is an error; 1,600 calls of B in 40 s."""
    host, draw = Host(), random.Random(6)
    host.on("/a", Reply(429, b"slow down", {"Retry-After": "60"}))
    host.on("/b", lambda _: Reply(502, b"broken") if draw.random() < 0.1 else Reply())
    listen = real.address()
    policy = tmp_path / "becalm.yaml"
    policy.write_text(f"listen: {listen}\nadmin: {real.address()}\nservices: {{s: {{hosts: ['{host.address}'], match: {{prefix: /}}}}}}\n")
    gateway = subprocess.Popen([PROGRAMS / "becalm", "proxy", policy], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        real.listening(listen)
        at, port = listen.split(":")
        a, b = (Load(int(port), host=at, rate=rate, seconds=40, make=lambda _, path=path: ("GET", request(path=path)))
                for rate, path in ((1, "/a"), (40, "/b")))
        a.start()
        answers = b.run_through()
        assert {result.status for result in a.stop()} == {429}
    finally:
        real.end(gateway)
        host.close()
    assert len(answers) >= 1500
    told("the tenant beside one that is told to wait", success(answers), 0.99)
