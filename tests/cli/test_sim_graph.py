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
    assert done.returncode == 0 and set(json.loads(done.stdout)["services"]) == {"a", "b", "elsewhere"}


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
    done = becalm("sim", "--graph", write(tmp_path, "services: {a: {maxRetires: 1}}\n"), "--kill", "a")
    assert done.returncode == 1 and "policy.yaml:1:16: error: " in done.stderr
