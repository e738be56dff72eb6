# SPDX-License-Identifier: MIT
"""becalm sim --graph: an incident in the call graph of one's own policy, without a scenario."""

import json

from conftest import ROOT

POLICY = """
services:
  front: {hosts: ["127.0.0.1:1"], match: {prefix: /f}, calls: [payment, search], traffic: 50/s, maxRetries: 3}
  payment: {hosts: ["127.0.0.1:2", "127.0.0.1:4"], calls: [ledger], maxRetries: 3, instances: 3}
  search: {hosts: ["127.0.0.1:5"]}
  "1:2/x.y": {hosts: ["127.0.0.1:6"], match: {prefix: /odd}}
  ledger: {hosts: ["127.0.0.1:3"], maxRetries: 3}
"""


def write(folder, text=POLICY):
    (folder / "policy.yaml").write_text(text)
    return "policy.yaml"


def test_graph__runs_the_services_of_the_policy_with_its_rules(becalm, tmp_path):
    done = becalm("sim", "--graph", write(tmp_path), "--kill", "ledger", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["scenario"] == "graph" and told["policy"] == "policy.yaml"
    offered = {name: each["offered"] for name, each in told["services"].items()}
    assert offered == {"front": 50, "payment": 50, "search": 50, "ledger": 50, "1:2/x.y": 100}
    clients = told["clients"]
    assert clients["success_before_fault"] > 0.98 and clients["recovered_after_s"] <= 5
    assert 0.6 < clients["success_in_fault"] < 0.7, "two thirds of the calls are to the odd one"
    assert told["services"]["ledger"]["amplification"]["mean"] < 1.1


def test_graph__shows_what_another_policy_would_do_there(becalm, tmp_path):
    done = becalm("sim", "--graph", write(tmp_path), "--kill", "ledger", "--compare", "naive", "--json")
    runs = {each["policy"]: each for each in json.loads(done.stdout)}
    assert set(runs) == {"naive", "policy.yaml"}
    assert runs["naive"]["services"]["ledger"]["amplification"]["mean"] > 10
    said = becalm("sim", "--graph", "policy.yaml", "--kill", "search").stdout
    assert "assumed: each" in said and "search is dead for 30 s" in " ".join(said.split())


def test_graph__what_is_assumed_can_be_set(becalm, tmp_path):
    settings = ["--set", "length=90s", "--set", "faults.kill.for=10s", "--set", "services.ledger.time.exponential=5ms"]
    assert becalm("sim", "--graph", write(tmp_path), "--kill", "ledger", *settings).returncode == 0


def test_graph__a_circle_and_a_service_that_no_file_has_are_no_hindrance(becalm, tmp_path):
    circle = 'services: {a: {hosts: ["127.0.0.1:1"], calls: [b]}, b: {hosts: ["127.0.0.1:2"], calls: [a, elsewhere]}}\n'
    done = becalm("sim", "--graph", write(tmp_path, circle), "--kill", "elsewhere", "--json")
    offered = {name: each["offered"] for name, each in json.loads(done.stdout)["services"].items()}
    assert done.returncode == 0 and offered == {"a": 100, "b": 100, "elsewhere": 100}, "a circle is gone round once"


def told_of(becalm, folder, text, kill, *more):
    done = becalm("sim", "--graph", write(folder, text), "--kill", kill, "--set", "length=70s", *more, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_graph__callers_of_one_service_add_up_and_no_rate_makes_a_run_endless(becalm, tmp_path):
    text = """
services:
  one: {hosts: ["127.0.0.1:1"], match: {prefix: /1}, calls: [both], traffic: 30/s}
  two: {hosts: ["127.0.0.1:2"], match: {prefix: /2}, calls: [both], traffic: 20/s}
  both: {hosts: ["127.0.0.1:3"]}
  big: {hosts: ["127.0.0.1:6"], match: {prefix: /3}, traffic: 50000/s}
"""
    short = [word for each in ("length=3s", "faults.kill.at=1s", "faults.kill.for=1s") for word in ("--set", each)]
    offered = {name: each["offered"] for name, each in told_of(becalm, tmp_path, text, "both", *short)["services"].items()}
    assert offered == {"one": 30, "two": 20, "both": 50, "big": 10000}
    callers = "".join(f'  c{i}: {{hosts: ["127.0.0.1:{i}"], match: {{prefix: /{i}}}, calls: [both], traffic: 300/s}}\n' for i in range(1, 4))
    busy = f'services:\n{callers}  both: {{hosts: ["127.0.0.1:9"]}}\n'
    assert told_of(becalm, tmp_path, busy, "both")["clients"]["success_before_fault"] > 0.99, "it has workers for all of them"


ONE = 'services: {a: {hosts: [%s], match: {prefix: /}, traffic: %s/s}}\n'
HOSTS = ", ".join(f'"127.0.0.1:{i}"' for i in range(1, 5))


def test_graph__a_service_is_as_busy_as_it_says_whatever_its_hosts(becalm, tmp_path):
    """One worker that is 59 % busy: M/M/1 waits 10 ms / (1 - 0.59). As many workers in four hosts are no faster than in one."""
    lone = told_of(becalm, tmp_path, ONE % ('"127.0.0.1:1"', 59), "a")["clients"]["latency_mean_ms"]
    assert 20 < lone < 30
    together = told_of(becalm, tmp_path, ONE % ('"127.0.0.1:1"', 239), "a")["clients"]["latency_mean_ms"]
    apart = told_of(becalm, tmp_path, ONE % (HOSTS, 239), "a")["clients"]["latency_mean_ms"]
    assert 10 < together < apart < lone


def test_graph__instances_and_role_are_those_of_the_policy(becalm, tmp_path):
    """Three instances of a caller have three budgets, and a sidecar is beside each of them: another story, event by event."""
    text = 'services: {a: {hosts: ["127.0.0.1:1"], match: {prefix: /}, calls: [b], instances: %s}, b: {hosts: ["127.0.0.1:2"]}}\n'
    events = [told_of(becalm, tmp_path, each, "b")["events"] for each in (text % 1, text % 3, "role: sidecar\n" + text % 1)]
    assert len(set(events)) == 3, events


def test_graph__every_policy_of_ours_can_be_run(becalm):
    for path in sorted((ROOT / "policies").glob("*.yaml")):
        checked = json.loads(becalm("check", "--json", path).stdout)["amplification"]
        if checked:
            done = becalm("sim", "--graph", path, "--kill", checked[-1]["service"], "--set", "length=70s", "--json")
            assert done.returncode == 0, f"{path}: {done.stderr}"


def test_graph__usage(becalm, tmp_path):
    path = write(tmp_path)
    for args, said in (
        (["--graph", path], "which service shall be dead? --kill NAME"),
        (["--graph", path, "--kill", "leger"], "did you mean 'ledger'?"),
        (["metastable", "--kill", "api"], "--kill needs --graph"),
        (["metastable", "--graph", path, "--kill", "ledger"], "unexpected argument 'metastable'"),
        (["--graph", "metastable", "--kill", "ledger"], "holds a / or ends in .yaml"),
    ):
        done = becalm("sim", *args)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    done = becalm("sim", "--graph", write(tmp_path, "services: {}\n"), "--kill", "a")
    assert done.returncode == 1 and "policy.yaml has no services" in done.stderr
    (tmp_path / 'a"b.yaml').write_text(POLICY)
    assert becalm("sim", "--graph", 'a"b.yaml', "--kill", "ledger", "--set", "length=70s").returncode == 0
    done = becalm("sim", "--graph", write(tmp_path, "services: {a: {maxRetires: 1}}\n"), "--kill", "a")
    assert done.returncode == 1 and "policy.yaml:1:16: error: " in done.stderr
