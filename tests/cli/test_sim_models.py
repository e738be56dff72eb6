# SPDX-License-Identifier: MIT
"""The output of becalm sim for races, herds and charges, and for a scenario's own policies."""

import json

import pytest

HERD = """\
herd: a service with ten thousand connections is down for one second
policy capped-jitter, seed 1: 55 s, 10,000 connections, 178,559 events

Connected             before  in the fault    60 s after  all the time
                       100 %           0 %       98.93 %       97.32 %
Recovered 2 s after the fault's end: 99 % connected for ten seconds.

Recoveries            up at  in worst 100 ms       bears   then
presence             11.0 s              640       1,000   stayed up

Retries              allowed  per first
presence              49,519   495.19 %

By the second 0                       55 s
fault              =
connected     █████▂██████████████████████  to 100 %
A column is 2 s.
"""


def fine(done):
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_sim_models__a_herd_is_shown_at_once(becalm):
    assert fine(becalm("sim", "herd")) == HERD
    text = fine(becalm("sim", "herd", "--policy", "no-jitter"))
    assert "presence             11.0 s           10,000       1,000   fell over after 0.5 s\n" in text
    assert "Not recovered within this run: no ten seconds in a row with 99 % connected.\n" in text


def test_sim_models__a_race_has_an_end(becalm):
    text = fine(becalm("sim", "contention"))
    assert "All calls had ended after 3,087 ms, with 336 attempts at row.\n" in text
    assert "Load" not in text and "By the second" not in text
    run = json.loads(fine(becalm("sim", "contention", "--json")))
    assert (run["policy"], run["services"]["row"]["attempts"]) == ("full", 336)
    assert run["clients"]["completed_after_ms"] == 3086.608


def test_sim_models__a_race_that_has_no_end_says_so(becalm):
    late = "contention", "--set", "length=1s", "--set", "clients.writers.loop.think=50s", "--set", "clients.writers.calls=3"
    assert "Not all calls have ended in this time.\n" in fine(becalm("sim", *late))
    assert json.loads(fine(becalm("sim", *late, "--json")))["clients"]["completed_after_ms"] is None
    assert "never" in fine(becalm("sim", *late, "--compare", "full"))


def test_sim_models__charges_are_counted(becalm):
    text = fine(becalm("sim", "twilio"))
    assert "Done once?        operations      executed    more than once        most often\n" in text
    services = json.loads(fine(becalm("sim", "twilio", "--json")))["services"]
    assert services["charge"]["effects"]["more_than_once"] == 100
    keyed = services["keyed-charge"]["effects"]
    assert (keyed["executed"], keyed["more_than_once"], keyed["most_often"]) == (keyed["operations"], 0, 1)
    assert "effects" not in services["balance"]


@pytest.mark.parametrize("scenario", ["contention", "herd", "twilio"])
def test_sim_models__fit_80_columns(becalm, scenario):
    for more in ((), ("--compare", "all"), ("--compare", "all", "--seeds", "2")):
        for line in fine(becalm("sim", scenario, *more)).splitlines():
            assert len(line) <= 80, line


def test_sim_models__all_are_the_policies_that_the_scenario_brings(becalm):
    rows = fine(becalm("sim", "herd", "--compare", "all")).splitlines()[3:]
    assert [row.split()[0] for row in rows] == ["policy", "no-jitter", "full-jitter", "capped-jitter"]
    assert json.loads(fine(becalm("sim", "herd", "--policy", "full-jitter", "--json")))["policy"] == "full-jitter"
    done = becalm("sim", "herd", "--policy", "ful-jitter")
    assert done.returncode == 2
    assert "there is no policy 'ful-jitter'; did you mean 'full-jitter'?" in done.stderr


def test_sim_models__a_policy_of_the_scenario_is_changed_by_its_path(becalm):
    text = fine(becalm("sim", "herd", "--set", "policies.capped-jitter.limit.max=2"))
    assert "presence             11.0 s               80       1,000   stayed up\n" in text
