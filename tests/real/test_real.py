# SPDX-License-Identifier: MIT
"""The harness that runs simulated worlds on real proxies: its counts and its comparisons are right. How close the two
are is measured, not tested: a busy machine is late."""

import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HARNESS = ROOT / "bench/real"
PROGRAMS = pathlib.Path(os.environ.get("BECALM", ROOT / "build/dev/becalm")).parent
sys.path.insert(0, str(HARNESS))

import picture  # noqa: E402
import real  # noqa: E402

SMALL = """
length: 5s
timeout: 2s
pool: {maxPerHost: 100}
services:
  front: {time: {constant: 1ms}, role: sidecar, calls: [back], fanOut: 2}
  back: {hosts: 2, workers: 10, queue: {max: 100}, time: {exponential: 5ms}, gate: true, gateRetries: false}
  side: {time: {constant: 1ms}}
clients:
  users: {to: front, rate: 40/s, callers: 2, role: sidecar, timeout: 3s, retries: false}
  others: {to: side, rate: 40/s, role: sidecar, timeout: 500ms, retries: false}
faults:
  errors: {at: 1s, for: 2s, service: back, errors: 30%}
  restart: {at: 1s, for: 100ms, service: side, killHosts: 1}
  swallow: {at: 1100ms, for: 1400ms, service: side, swallow: true}
"""

PLAN = {"seconds": 20, "fault": {"at": 2, "over": 4.5, "service": "api"}, "services": {"api": {"calls": []}}}


def harness(*arguments):
    return subprocess.run([sys.executable, "-B", HARNESS / "real.py", "--programs", PROGRAMS, *arguments],
                          capture_output=True, text=True, timeout=200, check=False)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    (folder / "small.yaml").write_text(SMALL)
    done = harness(folder / "small.yaml", "--runs", "1", "--others", "3", "--json", folder / "all.json",
                   "--picture", folder / "all.svg")
    assert done.returncode == 0, done.stderr
    return {"folder": folder, "out": done.stdout, "result": json.loads((folder / "all.json").read_text())[0]}


# A real run.


def test_real__the_calls_of_each_second_are_those_of_the_simulated_seed(small):
    curves = small["result"]["curves"]
    assert curves["real"][0]["calls"] == curves["paired"][0]["calls"]
    assert curves["real"][0]["calls"] != curves["others"][0]["calls"]


def test_real__every_call_is_answered_once(small):
    run = small["result"]["runs"][0]
    calls, good = (sum(sum(c[name]) for c in run["clients"].values()) for name in ("calls", "successes"))
    assert run["unanswered"] == 0
    assert sum(run["status"].values()) == calls > 100
    assert run["status"]["200"] == good


def test_real__load_proxies_and_services_have_counted_the_same(small):
    run = small["result"]["runs"][0]
    clients = [p for p in run["proxies"] if p["to"] == ["front"]]
    inner = [p for p in run["proxies"] if p["to"] == ["back"] and p["role"] == "sidecar"]
    gates = [p for p in run["proxies"] if p["to"] == ["back"] and p["role"] == "gateway"]
    assert (len(clients), len(inner), len(gates)) == (2, 1, 1)
    assert sum(p["arrivals"] for p in clients) == sum(run["clients"]["users"]["calls"])
    assert sum(p["attempts"] for p in clients) == run["services"]["front"]["requests"]
    assert inner[0]["arrivals"] == 2 * run["services"]["front"]["requests"]
    assert inner[0]["attempts"] == gates[0]["arrivals"]
    assert gates[0]["attempts"] == run["services"]["back"]["requests"]


def test_real__a_fault_comes_and_goes(small):
    back = small["result"]["runs"][0]["services"]["back"]
    assert back["failed"][0] == 0
    assert sum(back["failed"][1:3]) > 5
    assert back["failed"][4] == 0
    assert sum(back["good"]) > 200


def test_real__a_listener_that_swallows_takes_nobody_new(small):
    """Its connections broke when it restarted: a restart alone loses nothing."""
    run = small["result"]["runs"][0]
    others = run["clients"]["others"]
    assert others["successes"][0] > 0
    assert sum(others["successes"]) < sum(others["calls"]) - 10
    assert sum(others["successes"][3:]) > 0, "and when it is over they come in"


def test_real__the_table_has_a_row(small):
    rows = small["out"].splitlines()
    assert len(rows) == 3
    assert rows[2].startswith("| small | ")
    assert rows[2].count("|") == rows[0].count("|") == rows[1].count("|")


def test_real__the_picture_is_well_formed_and_has_both(small):
    tree = xml.etree.ElementTree.parse(small["folder"] / "all.svg")
    classes = [e.get("class") for e in tree.iter() if e.tag.endswith(("polyline", "polygon"))]
    assert classes.count("real") == classes.count("sim") == classes.count("band") == 2


def test_real__a_picture_is_drawn_again_from_what_was_kept(small):
    again = small["folder"] / "again.svg"
    done = harness("--from", small["folder"] / "all.json", "--picture", again)
    assert done.returncode == 0
    assert done.stdout == small["out"]
    assert again.read_text() == (small["folder"] / "all.svg").read_text()


def test_real__proxies_have_the_rules_of_whom_they_stand_for(small):
    proxies, wires = real.wiring(small["result"]["plan"])
    gate, users, other, _, front = proxies
    assert (gate["role"], gate["retries"], gate["timeoutMs"]) == ("gateway", False, 2000)
    assert (users["role"], users["retries"], users["timeoutMs"]) == ("sidecar", False, 3000)
    assert (front["role"], front["retries"], front["timeoutMs"]) == ("sidecar", True, 2000)
    assert front["to"] == {"back": [gate["listen"]]}
    assert f"via users 1 {other['listen']}" in wires
    assert f"host back 1 {gate['to']['back'][1]}" in wires
    assert "maxRetries: 0" in real.proxy_policy(users)
    assert "gatewayRetries: false" in real.proxy_policy(gate)


def test_real__a_caller_that_is_no_proxy_is_told_so(tmp_path):
    file = tmp_path / "library.yaml"
    file.write_text(SMALL.replace("callers: 2, role: sidecar,", "callers: 2,"))
    done = harness(file)
    assert done.returncode == 1
    assert "users: a client needs a rate" in done.stderr


def test_real__without_a_pool_swallowing_is_another_fault_and_it_says_so(tmp_path):
    file = tmp_path / "no-pool.yaml"
    file.write_text(SMALL.replace("pool: {maxPerHost: 100}\n", ""))
    done = harness(file)
    assert done.returncode == 1
    assert "swallow: real connections are kept" in done.stderr


def test_real__every_world_that_comes_with_it_can_be_staged():
    worlds = sorted((HARNESS / "worlds").glob("*.yaml"))
    assert len(worlds) >= 13
    for world in worlds:
        plan = subprocess.run([PROGRAMS / "bench/real/stage", "plan", world], capture_output=True, text=True, check=True)
        assert json.loads(plan.stdout)["seconds"] >= 40


# Comparisons.


def run(load, calls=None, good=None):
    calls = calls or [10] * len(load)
    return {"load": load, "calls": calls, "good": good or calls}


def test_compare__the_error_is_that_of_the_means_in_percent_of_the_simulated():
    assert real.load_error([run([90, 0]), run([110, 0])], [run([100, 0])], 10) == 0
    assert real.load_error([run([90, 100])], [run([100, 100])], 10) == pytest.approx(5)


def test_compare__a_second_with_little_load_counts_against_a_tenth_of_the_offered():
    assert real.load_error([run([3])], [run([1])], 10) == pytest.approx(20)


def test_compare__success_is_in_points_and_seconds_without_calls_do_not_count():
    assert real.success_error([run([0, 0], [10, 0], [5, 0])], [run([0, 0], [10, 0], [8, 0])]) == pytest.approx(30)


def test_compare__noise_is_each_group_of_as_many_against_the_rest():
    groups = list(real.groups([1, 2, 3, 4, 5, 6, 7], 3))
    assert groups == [([1, 2, 3], [4, 5, 6, 7]), ([4, 5, 6], [1, 2, 3, 7])]


def test_compare__recovery_is_the_first_of_ten_good_seconds_from_the_next_whole_one():
    good = [10] * 2 + [0] * 5 + [10] * 13
    assert real.recovery(run([0] * 20, good=good), PLAN) == 2
    assert real.recovery(run([0] * 20), PLAN) == 0
    assert real.recovery(run([0] * 20, good=[0] * 12 + [10] * 8), PLAN) is None


def test_compare__never_is_later_than_everything():
    assert real.middle([None, 1, 2]) == 2
    assert real.middle([None, 1, None]) is None


def test_picture__names_of_worlds_are_escaped():
    one = run([1] * 20)
    result = {"world": "a<b", "service": "x&y", "plan": PLAN, "curves": {"real": [one], "others": [one, one]}}
    tree = xml.etree.ElementTree.fromstring(picture.draw([result]))
    assert "a<b" in [e.text for e in tree.iter()]
