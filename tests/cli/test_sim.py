# SPDX-License-Identifier: MIT
"""becalm sim, as it is typed. Other tests check that its worlds are true; these check its output."""

import json
import os
import pty
import re
import signal
import subprocess
import time

import pytest

from conftest import GUARD, environment

SHORT = """\
name: short
about: a service that is dead for four seconds
length: 20s
attempts: 3
timeout: 1s
link: {latency: 1ms}
services:
  front: {time: {constant: 1ms}, calls: [back]}
  back: {time: {constant: 2ms}}
clients:
  users: {to: front, rate: 50/s, retries: false}
faults:
  outage: {at: 4s, for: 4s, service: back, dead: true}
"""
NAIVE = """\
short: a service that is dead for four seconds
policy naive, seed 1: 20 s, 1,055 calls, 10,592 events

Success               before  in the fault    60 s after     all calls
                       100 %           0 %         100 %       79.24 %
Recovered 0 s after the fault's end: 99 % success for ten seconds.
No more retries than usual from the fault's end on.
Calls that succeeded took 7.000 ms on average;
half took up to 7.000 ms, 99 % up to 7.000 ms, 99.9 % up to 7.000 ms.

Load               offered mean in fault   worst 5 s  worst second longest queue
front                 50/s        1.000x      1.104x        1.320x             0
back                  50/s        3.000x      2.328x        3.960x             0

Retries              allowed  per first   calls without success, by reason
front                      0        0 %   retries_off 219
back                     438    41.51 %   attempts_spent 219

By the second 0               20 s
fault             ====
success       ████    ████████████  to 100 %
front         ▄▃▄▄▅▄▄▄▅▅▅▃▅▄▄▄▅▃▄▅  to 2x
back          ▂▂▂▂█▆▆▆▃▂▃▂▃▂▂▂▂▂▂▂  to 3.960x
A column is 1 s; below success is the load on each service.
"""
COMPARED = """\
short: a service that is dead for four seconds
20 s, load on back, seed 1

                ---------- load -----------  -------- success --------
policy             mean worst 5 s worst 1 s   before in fault    after  recovers
none             1.000x    1.104x    1.320x    100 %      0 %    100 %       0 s
naive            3.000x    2.328x    3.960x    100 %      0 %    100 %       0 s
"""
TRY = "Try 'becalm sim --help'.\n"


@pytest.fixture
def short(tmp_path):
    (tmp_path / "short.yaml").write_text(SHORT)
    return "short.yaml"


def fine(done):
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_sim__shows_a_run_at_once(becalm, short):
    assert fine(becalm("sim", short, "--policy", "naive")) == NAIVE


def test_sim__draws_in_ascii_where_the_locale_asks_for_it(becalm, short, tmp_path):
    line = [becalm.program, "sim", short, "--policy", "naive"]
    text = subprocess.check_output(line, cwd=tmp_path, env={**environment(), "LC_ALL": "C"}, encoding="utf-8")
    assert text.isascii()
    assert text.split("By the second")[0] == NAIVE.split("By the second")[0]
    assert "\nsuccess       ####    ############  to 100 %\nfront         =-==+===+++-+===+-=+  to 2x\n" in text


def test_sim__without_a_fault_says_so_by_silence(becalm, tmp_path):
    (tmp_path / "calm.yaml").write_text(SHORT.split("faults:")[0])
    text = fine(becalm("sim", "calm.yaml"))
    assert "fault" not in text and "Recovered" not in text
    assert re.search(r"^Load +offered +mean +worst 5 s +worst second +longest queue\nfront +50/s +1\.000x", text, re.M)
    run = json.loads(fine(becalm("sim", "calm.yaml", "--json")))
    assert run["clients"]["success"] == 1 and run["clients"]["success_in_fault"] is None
    assert run["services"]["back"]["amplification"]["mean"] == pytest.approx(1, abs=0.002)


def test_sim__a_fault_to_the_end_has_no_after(becalm, short):
    args = "sim", short, "--policy", "none", "--set", "faults.outage.for=16s"
    text = fine(becalm(*args))
    assert "The fault lasts until the end of the run.\n" in text and "ecovered" not in text
    assert re.search(r"^ +100 % +0 % +- +\d", text, re.M)
    assert json.loads(fine(becalm(*args, "--json")))["clients"]["success_after_fault"] is None


def test_sim__fits_80_columns(becalm, short):
    always = "--set", "faults.outage.at=0s", "--set", "faults.outage.for=20s"
    many = "--compare", "all"
    for args in (), always, many, many + always, many + ("--seeds", "2"), ("--list",):
        for line in fine(becalm("sim", *args, *(() if "--list" in args else (short,)))).splitlines():
            assert len(line) <= 80 and line == line.rstrip(), line


def test_sim__long_names_are_cut_and_control_characters_defused(becalm, tmp_path):
    name = "a-service-with-a-very-long-name"
    text = SHORT.replace("back", name).replace("a service that", '"red \\e[31m" #')
    (tmp_path / "long.yaml").write_text(text)
    out = fine(becalm("sim", "long.yaml"))
    assert "\x1b" not in out and "short: red ?[31m\n" in out
    assert out.count("\n~ry-long-name ") == 3
    assert all(len(line) <= 80 for line in out.splitlines())


def test_sim__the_same_seed_gives_the_same_bytes(becalm, short):
    runs = [fine(becalm("sim", short, "--json", "--series", "--seed", seed)) for seed in (7, 7, 8)]
    assert runs[0] == runs[1] != runs[2]
    assert fine(becalm("sim", short, "--compare", "all")) == fine(becalm("sim", short, "--compare", "all"))


def test_sim__timing_is_on_stderr_alone(becalm, short):
    done = becalm("sim", short, "--policy", "naive", "--timing")
    assert (done.returncode, done.stdout) == (0, NAIVE)
    assert re.fullmatch(r"10592 events in \d+\.\d{3} s of CPU, \d+\.\d\d million a second\n", done.stderr)


def read_all(terminal):
    """All bytes that were written to it: one read may return only the first of several writes."""
    said = b""
    while True:
        try:
            more = os.read(terminal, 16384)
        except OSError:  # Linux: the other side is closed, and all bytes were read
            return said
        if more == b"":
            return said
        said += more


def test_sim__progress_is_for_terminals(becalm, short, tmp_path):
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [becalm.program, "sim", short, "--compare", "none,naive"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=tmp_path,
        env=environment(TERM="xterm"),
        encoding="utf-8",
    )
    os.close(theirs)
    shown = read_all(ours).decode()
    os.close(ours)
    assert done.stdout == COMPARED
    assert shown.startswith("\r\x1b[Ksimulating none, 1 of 2: 0 of 20 s, 0 %")
    assert "\r\x1b[Ksimulating none, 1 of 2: 10 of 20 s, 50 %\r" in shown
    assert re.search(r"simulating naive, 2 of 2: \d+ of 20 s, \d+ %\r\x1b\[K$", shown)


def test_json__has_the_fields_and_nothing_drifts(becalm, short):
    run = json.loads(fine(becalm("sim", short, "--policy", "naive", "--json")))
    assert run == {
        "scenario": "short",
        "seed": 1,
        "policy": "naive",
        "set": [],
        "events": 10592,
        "services": {
            "front": {"amplification": {"mean": 1, "peak_1s": 1.32, "peak_5s": 1.104}, "offered": 50, "queue_max": 0},
            "back": {"amplification": {"mean": 3, "peak_1s": 3.96, "peak_5s": 2.328}, "offered": 50, "queue_max": 0},
        },
        "clients": {
            "calls": 1055,
            "success": 0.792417,
            "success_before_fault": 1,
            "success_in_fault": 0,
            "success_after_fault": 1,
            "failed_locally": 0,
            "recovered_after_s": 0,
            "retries_stop_after_s": 0,
            "latency_mean_ms": 7,
            "latency_p50_ms": 7,
            "latency_p50_in_fault_ms": None,
            "latency_p99_ms": 7,
            "latency_p999_ms": 7,
        },
        "targets": {
            "front": {"retry_ratio": 0, "refused": {}, "ended": {"retries_off": 219}},
            "back": {"retry_ratio": 0.415165, "refused": {}, "ended": {"attempts_spent": 219}},
        },
    }


def test_json__has_figures_of_each_client_where_there_are_several(becalm, tmp_path):
    (tmp_path / "two.yaml").write_text(
        "length: 10s\nservices: {api: {time: {constant: 500ms}}}\n"
        "clients: {hasty: {to: api, rate: 50/s, timeout: 100ms}, calm: {to: api, rate: 100/s}}\n"
    )
    run = json.loads(fine(becalm("sim", "two.yaml", "--policy", "none", "--json", "--series")))
    hasty, calm = run["by_client"]["hasty"], run["by_client"]["calm"]
    assert hasty["success"] == 0 and calm["success"] == 1
    assert hasty["calls"] + calm["calls"] == run["clients"]["calls"]
    assert calm["attempts"] == calm["calls"] and calm["retries"] == 0
    assert calm["latency_p50_ms"] == 501 and hasty["latency_p50_ms"] == 0
    assert calm["success_in_fault"] is None
    assert 0.49 < run["fairness"] <= 0.5  # a fair division gives the hasty one all that it wants, half of the success
    assert sum(run["series"]["by_client"]["calm"]["successes"]) == calm["calls"]
    text = fine(becalm("sim", "two.yaml", "--policy", "none"))
    assert re.search(r"^Clients +calls +ok ", text, re.M) and re.search(r"^calm .* 100 %", text, re.M)
    assert re.search(r"^Fairness (50|49)\.\d+ %", text, re.M)


def test_json__a_fault_of_a_second_has_no_mean(becalm, short):
    args = "sim", short, "--policy", "naive", "--set", "faults.outage.for=1s"
    run = json.loads(fine(becalm(*args, "--json")))
    assert run["services"]["back"]["amplification"]["mean"] is None
    assert re.search(r"^back +50/s +- ", fine(becalm(*args)), re.M)
    row = fine(becalm(*args, "--seeds", "2")).splitlines()[6]
    assert row.split()[:2] == ["naive", "-"]


def test_json__tells_refusals_from_other_ends_and_the_gate_from_its_callers(becalm, tmp_path):
    (tmp_path / "row.yaml").write_text(
        "length: 20s\n"
        "services: {api: {workers: 1, gate: true, row: true, time: {constant: 10ms}}}\n"
        "clients: {users: {to: api, rate: 200/s, callers: 20}}\n"
    )
    run = json.loads(fine(becalm("sim", "row.yaml", "--policy", "none", "--json")))
    api, clients = run["targets"]["api"], run["clients"]
    lost = round(clients["calls"] * (1 - clients["success"]))
    assert sum(api["refused"].values()) + sum(api["ended"].values()) == pytest.approx(lost, abs=1)
    assert "shed" in api["gate"]["refused"] and "shed" not in api["refused"]
    assert "not_listed" in api["gate"]["ended"] and not set(api["ended"]) & set(api["refused"])
    text = fine(becalm("sim", "row.yaml", "--policy", "none"))
    assert re.search(r"^  its gate .*shed", text, re.M)


def test_json__all_calls_of_a_request_are_made_by_one_instance(becalm, tmp_path):
    """Every call fails, and every instance can pay for one retry of each service: one for ten calls of a page."""
    (tmp_path / "pages.yaml").write_text(
        "length: 20s\n"
        "services:\n"
        "  page: {time: {constant: 1ms}, instances: 10000, fanOut: 10, calls: [left, right]}\n"
        "  left: {time: {constant: 10ms}, errors: 100%}\n"
        "  right: {time: {constant: 10ms}, errors: 100%}\n"
        "clients: {users: {to: page, rate: 1/s, retries: false}}\n"
    )
    targets = json.loads(fine(becalm("sim", "pages.yaml", "--json")))["targets"]
    assert (targets["left"]["retry_ratio"], targets["right"]["retry_ratio"]) == (0.1, 0.1)


def test_json__what_callers_refuse_themselves_has_a_share(becalm, short):
    args = "--set", "faults.outage.service=front", "--set", "faults.outage.for=15s"
    run = json.loads(fine(becalm("sim", short, "--json", *args)))
    assert 0 < run["clients"]["failed_locally"] < 1
    assert run["clients"]["latency_p50_in_fault_ms"] is None


def test_json__without_a_fault_nothing_recovers(becalm):
    clients = json.loads(fine(becalm("sim", "benign", "--set", "length=5s", "--json")))["clients"]
    assert clients["recovered_after_s"] is None and clients["retries_stop_after_s"] is None


def test_json__never_is_null(becalm, short):
    clients = json.loads(fine(becalm("sim", short, "--policy", "breaker", "--json", "--set", "length=10s")))["clients"]
    assert clients["recovered_after_s"] is None


def test_json__series_add_up(becalm, short):
    run = json.loads(fine(becalm("sim", short, "--policy", "naive", "--json", "--series")))
    clients = run["series"]["clients"]
    arrivals = {name: service["arrivals"] for name, service in run["series"]["services"].items()}
    assert {len(series) for series in [*clients.values(), *arrivals.values()]} == {20}
    assert sum(clients["calls"]) == run["clients"]["calls"] == sum(arrivals["front"])
    assert sum(clients["successes"]) == 1055 - 219
    assert sum(arrivals["back"]) == 1055 + 438
    back = run["series"]["services"]["back"]
    assert {len(series) for series in back.values()} == {20}
    assert sum(back["retries"]) == 438 and sum(back["good"]) == 1055 - 219 and sum(back["failed"]) == 3 * 219
    assert set(back["budget"]) == {1} and set(back["breaker_open"]) == {0} and set(back["limit"]) == {None}
    assert max(arrivals["back"]) == 3.96 * 50


def test_compare__prints_one_table(becalm, short):
    assert fine(becalm("sim", short, "--compare", "none,naive")) == COMPARED


def test_compare__all_is_every_policy_of_the_list_and_ours_beside_them(becalm, short, tmp_path):
    (tmp_path / "mine.yaml").write_text("defaults: {maxRetries: 0}\n")
    listed = [row["name"] for row in json.loads(fine(becalm("sim", "--list", "--json")))["policies"]]
    assert listed[0] == "none" and listed[-1] == "becalm" and len(listed) == 11
    runs = json.loads(fine(becalm("sim", short, "--compare", "all", "--policy", "mine.yaml", "--json")))
    assert [run["policy"] for run in runs] == listed + ["mine.yaml"]
    assert {run["clients"]["calls"] for run in runs} == {1055}, "every policy meets the same calls"
    rows = fine(becalm("sim", short, "--compare", "all", "--policy", "mine.yaml")).splitlines()[5:-1]
    assert [row.split()[0] for row in rows] == listed + ["mine.yaml"]


def test_compare__names_a_policy_once(becalm, short):
    assert fine(becalm("sim", short, "--compare", "none,naive,none", "--policy", "naive")) == COMPARED


def test_seeds__show_the_spread(becalm, short):
    rows = fine(becalm("sim", short, "--policy", "naive", "--seeds", "3", "--seed", "5")).splitlines()
    assert rows[1] == "20 s, load on back, seeds 5 to 7"
    assert [row.split()[0] for row in rows[5:]] == ["naive", "lowest", "highest"]
    runs = json.loads(fine(becalm("sim", short, "--policy", "naive", "--seeds", "3", "--seed", "5", "--json")))
    assert [run["seed"] for run in runs] == [5, 6, 7]
    peaks = [run["services"]["back"]["amplification"]["peak_1s"] for run in runs]
    shown = [float(row.split("x")[2]) for row in rows[5:]]
    assert shown == pytest.approx([sum(peaks) / 3, min(peaks), max(peaks)], abs=0.0006)


def test_seeds__one_is_an_array_of_one(becalm, short):
    assert len(json.loads(fine(becalm("sim", short, "--seeds", "1", "--json")))) == 1


def test_policy__a_file_is_run_as_written(becalm, short, tmp_path):
    (tmp_path / "file.yaml").write_text(
        "defaults: {maxRetries: 1, initialDelay: 1ms, maxDelay: 1ms, jitter: none, limit: {kind: none},\n"
        "           budget: {kind: none}, breaker: {enabled: false}}\n"
    )
    args = "--policy", "file.yaml", "--set", "clients.users.retries=true"
    run = json.loads(fine(becalm("sim", short, *args, "--json")))
    assert run["policy"] == "file.yaml"
    # Marks travel up, so that the client's own hop does not repeat the retries of the hop below.
    assert run["services"]["back"]["amplification"]["mean"] == pytest.approx(2, abs=0.05)


def test_policy__services_of_the_same_name_have_their_own_rules(becalm, short, tmp_path):
    (tmp_path / "file.yaml").write_text("services: {back: {maxRetries: 0}}\n")
    run = json.loads(fine(becalm("sim", short, "--policy", "file.yaml", "--json")))
    assert run["targets"]["back"]["retry_ratio"] == 0
    args = "--policy", "./file.yaml", "--set", "policy.services.back.maxRetries=2"
    run = json.loads(fine(becalm("sim", short, *args, "--json")))
    assert run["targets"]["back"]["retry_ratio"] > 0


def test_set__changes_the_scenario_and_the_policy(becalm, short):
    run = json.loads(fine(becalm("sim", short, "--json", "--set", "length=10s", "--set", "defaults.maxRetries=0")))
    assert run["clients"]["calls"] < 600
    assert run["targets"]["back"]["retry_ratio"] == 0
    assert json.loads(fine(becalm("sim", short, "--json")))["targets"]["back"]["retry_ratio"] > 0


def test_set__of_the_policy_leaves_a_scenario_without_timeouts_without(becalm):
    plain = becalm("sim", "chain", "--set", "length=65s", "--json")
    same = becalm("sim", "chain", "--set", "length=65s", "--set", "defaults.maxRetries=2", "--json")
    assert same.returncode == 0
    assert {**json.loads(same.stdout), "set": None} == {**json.loads(plain.stdout), "set": None}


def unset(text):
    """Without the line about --set."""
    return re.sub(r"^with --set .*\n", "", text, flags=re.M)


def test_set__of_nothing_new_changes_nothing(becalm, short):
    assert unset(fine(becalm("sim", short, "--set", "defaults.maxRetries=2"))) == fine(becalm("sim", short))


def test_set__is_recorded(becalm, short):
    sets = "length=10s", "defaults.maxRetries=1"
    args = "sim", short, *(word for each in sets for word in ("--set", each))
    assert json.loads(fine(becalm(*args, "--json")))["set"] == list(sets)
    said = "with --set length=10s --set defaults.maxRetries=1\n"
    assert said in fine(becalm(*args)) and said in fine(becalm(*args, "--compare", "none,becalm"))


def test_compare__says_whose_timeout_is_another(becalm, short, tmp_path):
    (tmp_path / "mine.yaml").write_text("defaults: {attemptTimeout: 3s}\n")
    text = fine(becalm("sim", short, "--compare", "none,becalm,mine.yaml"))
    assert text.endswith("\nmine.yaml has its own timeout of an attempt, 3000 ms, instead of the scenario's 1000 ms.\n")
    (tmp_path / "mine.yaml").write_text("defaults: {attemptTimeout: 1s}\n")
    assert "timeout" not in fine(becalm("sim", short, "--compare", "none,becalm,mine.yaml"))


def test_policy__says_whose_timeout_is_another_and_which_services_are_not_there(becalm, short, tmp_path):
    (tmp_path / "mine.yaml").write_text("services: {frnt: {}, back: {attemptTimeout: 300ms}}\ndefaults: {attemptTimeout: 1s}\n")
    done = becalm("sim", short, "--policy", "mine.yaml")
    said = "mine.yaml towards back has its own timeout of an attempt, 300 ms, instead of the scenario's 1000 ms.\n"
    assert said in done.stdout
    said = "becalm sim: warning: mine.yaml: the scenario has no service 'frnt', so its rules are not used\n"
    assert (done.returncode, done.stderr) == (0, said)


def test_compare__tells_files_of_the_same_name_apart(becalm, short, tmp_path):
    for folder in "old", "new":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "policy.yaml").write_text("defaults: {attemptTimeout: 1s}\n")
    text = fine(becalm("sim", short, "--compare", "none,old/policy.yaml,new/policy.yaml"))
    assert re.search(r"^2:policy.yaml  .*\n3:policy.yaml  .*\n2: old/policy.yaml\n3: new/policy.yaml\n", text, re.M)


def test_compare__shows_latency_where_nothing_is_faulty(becalm, tmp_path):
    text = fine(becalm("sim", "queue", "--set", "length=5s", "--compare", "none"))
    assert re.search(r"success +mean +p99 +p99.9\nnone .*100 % +\d+\.\d{3} +\d+\.\d{3} +\d+\.\d{3}$", text, re.M)
    text = fine(becalm("sim", "heavy-endpoint", "--compare", "all", "--set", "length=60s"))
    assert re.search(r"retried worst endpoint\nshared .* 6\.\d\d % +3\d\.\d\d %\ncounted .*%$", text, re.M)
    text = fine(becalm("sim", "twilio", "--compare", "none", "--set", "length=100s"))
    assert re.search(r"executed +repeated\nnone .* [\d,]+ +100$", text, re.M)


def test_compare__says_which_fault_it_is_about(becalm, short):
    sets = "--set", "faults.more={at: 8s, for: 1s, service: back, latency: 1s}", "--set", "faults.z={at: 15s, for: 1s, service: back, dead: true}"
    said = '"The fault" is outage and more, from 4 s to 9 s; figures of it leave out z.\n'
    assert said in fine(becalm("sim", short, *sets))
    assert said in fine(becalm("sim", short, *sets, "--compare", "none,naive"))


def test_sim__a_run_can_end_too_soon(becalm, short):
    args = "sim", short, "--policy", "none", "--set", "length=10s"
    assert "Recovered? Calls succeed at the end, but the run ends less than ten seconds after the recovery.\n" in fine(becalm(*args))
    assert re.search(r"^none .* -$", fine(becalm(*args, "--compare", "none")), re.M)
    assert json.loads(fine(becalm(*args, "--json")))["clients"]["recovered_after_s"] is None


def test_stopped__leaves_nothing_behind(becalm, tmp_path):
    run = subprocess.Popen(
        [becalm.program, "sim", "metastable", "--seeds", "1000", "--html", "page.html"], cwd=tmp_path, stdout=subprocess.PIPE
    )
    deadline = time.monotonic() + 30
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert list(tmp_path.iterdir()), "it has begun"
    run.send_signal(signal.SIGINT)
    assert (run.communicate(timeout=GUARD)[0], run.returncode) == (b"", -signal.SIGINT)
    assert not list(tmp_path.iterdir())


def test_set__reaches_one_service_of_the_built_in_policy(becalm, short):
    args = "sim", short, "--json", "--set", "clients.users.retries=true"
    plain = json.loads(fine(becalm(*args)))["targets"]
    run = json.loads(fine(becalm(*args, "--set", "policy.services.back.maxRetries=0")))["targets"]
    assert plain["back"]["retry_ratio"] > 0 and run["back"]["retry_ratio"] == 0
    assert run["front"]["retry_ratio"] > 0


@pytest.mark.parametrize("scenario", ["metastable-crowd", "heavy-endpoint"])
def test_set__of_nothing_new_changes_no_gate_and_no_endpoint(becalm, scenario):
    args = "sim", scenario, "--policy", "becalm", "--set", "length=62s"
    assert unset(fine(becalm(*args, "--set", "defaults.maxRetries=2"))) == unset(fine(becalm(*args)))


@pytest.mark.parametrize("policy", ["becalm", "file.yaml"])
def test_set__of_a_service_that_is_not_there_is_refused(becalm, short, tmp_path, policy):
    (tmp_path / "file.yaml").write_text("defaults: {maxRetries: 1}\n")
    done = becalm("sim", short, "--policy", policy, "--set", "policy.services.bakc.maxRetries=0")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "becalm sim: --set policy.services.bakc.maxRetries=0: the scenario has no service 'bakc'; "
        "did you mean 'back'?\n" + TRY
    )


def test_set__does_not_touch_what_the_field_defines(becalm, short):
    done = becalm("sim", short, "--policy", "naive", "--set", "defaults.maxRetries=0")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "becalm sim: --set defaults.maxRetries=0 changes becalm or a policy file, and 'naive' is neither\n" + TRY
    )
    rows = fine(becalm("sim", short, "--compare", "naive,becalm", "--set", "defaults.maxRetries=0")).splitlines()
    assert rows[6] == COMPARED.splitlines()[6]


def test_list__names_what_is_built_in(becalm):
    text = fine(becalm("sim", "--list"))
    names = [path.stem for path in sorted((becalm.root / "policies/scenarios").glob("*.yaml"), key=lambda p: p.stem)]
    assert re.findall(r"^  (\S+)", text.split("\nPolicies:\n")[0], re.M) == names
    scenarios = json.loads(fine(becalm("sim", "--list", "--json")))["scenarios"]
    assert [row["name"] for row in scenarios] == names
    assert all(row["about"] for row in scenarios)


def test_list__is_what_shells_complete(becalm):
    listed = json.loads(fine(becalm("sim", "--list", "--json")))
    script = fine(becalm("completion", "bash"))
    assert "'" + " ".join(row["name"] for row in listed["scenarios"]) + "'" in script
    assert "'" + " ".join(row["name"] for row in listed["policies"]) + "'" in script


def test_builtin__runs_from_anywhere(becalm):
    text = fine(becalm("sim", "chain", "--policy", "none", "--set", "length=65s"))
    assert text.startswith("chain: ten services in a row") and "\ns9 " in text


def test_builtin__and_its_file_are_the_same(becalm):
    path = becalm.root / "policies/scenarios/chain.yaml"
    args = "--policy", "sre", "--set", "length=62s"
    assert fine(becalm("sim", path, *args)) == fine(becalm("sim", "chain", *args))


@pytest.mark.parametrize(
    "args, said",
    [
        ((), "which scenario? 'becalm sim --list' names those that are built in"),
        (("chain", "layers"), "unexpected argument 'layers'"),
        (("--list", "chain"), "unexpected argument 'chain'"),
        (("chian",), "there is no scenario 'chian'; did you mean 'chain'?"),
        (("xyzzy",), "there is no scenario 'xyzzy'; --list names them, and files end in .yaml"),
        (("chain", "--policy", "beclam"), "there is no policy 'beclam'; did you mean 'becalm'?"),
        (("chain", "--policy", "xyzzy"), "there is no policy 'xyzzy'; --list names them, and files end in .yaml"),
        (("chain", "--compare", "none,navie"), "there is no policy 'navie'; did you mean 'naive'?"),
        (("chain", "--compare", "none,"), "--compare is 'all' or names with commas between them; 'none,' is not"),
        (("chain", "--seeds", "0"), "--seeds is an integer from 1 to 1000; '0' is not"),
        (("chain", "--seeds", "1001"), "--seeds is an integer from 1 to 1000; '1001' is not"),
        (("chain", "--seed", "-1"), "--seed is an integer from 0 to 9007199254739991; '-1' is not"),
        (("chain", "--series"), "--series needs --json"),
        (("chain", "--html", "-"), "--html writes a file, and '-' is no name for one"),
        (("chain", "--picture", "-"), "--picture writes a file, and '-' is no name for one"),
    ],
)
def test_usage__says_what_is_wrong(becalm, args, said):
    done = becalm("sim", *args)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"becalm sim: {said}\n{TRY}")


def test_broken_scenario__says_where(becalm, tmp_path):
    (tmp_path / "broken.yaml").write_text(SHORT.replace("attempts: 3", "atempts: 3").replace("[back]", "[bakc]"))
    done = becalm("sim", "broken.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.match(r'broken\.yaml:4:1: error: .*"atempts".*"attempts".*\[unknown-key\]\n', done.stderr)
    assert re.search(r"^broken\.yaml:8:\d+: error: .*bakc.*back", done.stderr, re.M)


def test_broken_scenario__is_told_from_top_to_bottom(becalm, tmp_path):
    (tmp_path / "bad.yaml").write_text("length: 9s\nfaults: {x: {at: 1s, for: 1s, service: apy, dead: true}}\nservices: {api: {time: 1}}\nclients: {u: {to: api, rate: x}}\n")
    lines = becalm("sim", "bad.yaml").stderr.splitlines()
    assert [line.split(":")[1] for line in lines[:-1]] == ["2", "3", "4"] and lines[-1] == "3 errors"


def test_time_that_stands_still__is_a_failure_with_a_line(becalm, tmp_path):
    (tmp_path / "still.yaml").write_text(
        "length: 10s\n"
        "services: {api: {time: {constant: 10ms}, errors: 100%}}\n"
        "clients: {users: {to: api, loop: {think: 0s}}}\n"
    )
    assert becalm("sim", "still.yaml").returncode == 0  # an open breaker refuses a caller's call after a moment
    (tmp_path / "policy.yaml").write_text("defaults: {initialDelay: 0s}\n")
    done = becalm("sim", "still.yaml", "--policy", "policy.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"becalm sim: time stands still at \d\.\d{6} s: .* longer than 0s\n", done.stderr)


def test_broken_policy__says_where(becalm, short, tmp_path):
    (tmp_path / "policy.yaml").write_text("defaults:\n  maxRetires: 1\n")
    for args in ("--policy", "policy.yaml"), ("--compare", "none,policy.yaml"):
        done = becalm("sim", short, *args)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("policy.yaml:2:3: error: ") and '"maxRetries"' in done.stderr


def test_broken_set__says_what_would_be_right(becalm, short):
    done = becalm("sim", short, "--set", "length=long")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith('--set:1:1: error: length: "long" is not a duration')


def test_no_such_file__is_a_failure_with_a_line(becalm, short):
    for args in ("nowhere.yaml",), ("./nowhere",), (short, "--policy", "nowhere.yaml"):
        done = becalm("sim", *args)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert "nowhere" in done.stderr and "No such file or directory" in done.stderr
