# SPDX-License-Identifier: MIT
"""The search for regret: its rules of counting, its worlds, how it makes them smaller, and the program as it is typed."""

import hashlib
import json
import math
import os
import pathlib
import subprocess
import sys

import pytest

import compare
import count
import minimise
import search
import world as worlds

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BECALM", str(ROOT / "build/dev/becalm"))
GATE = """
length: 60s
timeout: 1s
services: {api: {time: {exponential: 50ms}, workers: 2, gate: true}}
clients: {users: {to: api, rate: 60/s, callers: 5}}
"""


@pytest.fixture
def simulator(tmp_path):
    return search.Simulator(PROGRAM, tmp_path)


# Counting.


def test_count__an_interval_is_students():
    mean, half = count.interval([0.1, 0.2, 0.3])
    assert mean == pytest.approx(0.2)
    assert half == pytest.approx(4.303 * 0.1 / math.sqrt(3))


def test_count__one_value_has_no_interval():
    assert count.interval([0.5]) == (0.5, math.inf)


def test_count__two_seeds_decide_nothing():
    assert not count.is_decided([0, 0], (0.01,))
    assert count.is_decided([0, 0, 0], (0.01,))


def test_count__an_interval_that_excludes_every_bound_decides():
    wide = [0.2, 0.3, 0.4]  # 0.3 +- 0.25
    assert count.is_decided(wide, (0.01,))
    assert not count.is_decided(wide, (0.01, 0.06))


def test_count__a_narrow_interval_decides_although_the_bound_is_inside():
    assert count.is_decided([0.009, 0.010, 0.011], (0.01,))
    assert not count.is_decided([0.005, 0.010, 0.015], (0.01,))


def test_count__who_fails_less_than_the_bound_can_not_be_beaten_by_it():
    assert count.is_surely_fine([0.999, 0.998, 0.999], 0.01)
    assert not count.is_surely_fine([0.999, 0.998], 0.01)
    assert not count.is_surely_fine([0.999, 0.985, 0.999], 0.01)


def test_count__late_is_five_seconds_after_a_world_that_recovers_by_itself():
    assert not count.recovers_late([0, 1, 2], [6, 6, 6])
    assert count.recovers_late([0, 1, 2], [6, 7, 7])
    assert count.recovers_late([0, 0, 0], [math.inf] * 3)
    assert not count.recovers_late([6, 7, 8], [math.inf] * 3)
    assert not count.recovers_late([0, 0, 0], [0, 0, math.inf])


def verdict(**more):
    return count.Verdict(**{"name": "x", "healthy": True, "tight": False, **more})


def test_count__the_table_counts_what_is_beyond_a_bound():
    found = [verdict(than_none=0.01), verdict(than_none=0.011), verdict(than_none=0.2, than_best=0.06)]
    lines = {line.what: line for line in count.table(found)}
    assert lines["healthy: worse than none by > .01"].count == 2
    assert lines["healthy: worse than none by > .05"].count == 1
    assert lines["healthy: worse than the best by > .05"].count == 1
    assert lines["fault: worse than none by > .02"].of == 0


def test_count__the_table_leaves_out_tight_worlds_and_those_without_a_figure():
    found = [verdict(than_none=1, tight=True), verdict(than_none=1, left_out="few calls"), verdict()]
    line = count.table(found)[0]
    assert (line.count, line.of) == (0, 1)


def test_count__a_share_is_held_in_proportion():
    bad = [verdict(than_none=1)] * 4
    assert count.share_line("x", bad + [verdict()] * 196, lambda v: v.than_none > 0, 4, 200).held
    assert not count.share_line("x", bad + [verdict()] * 195, lambda v: v.than_none > 0, 4, 200).held


def test_count__loads_are_those_of_worlds_with_a_fault():
    found = [verdict(load=9.0), verdict(healthy=False, load=0.5), verdict(healthy=False, load=1.5)]
    line = count.table(found + [verdict(healthy=False)])[-1]
    assert (line.count, line.of, line.held) == (1.0, 2, False)


# Worlds.


def test_world__the_same_seed_is_the_same_world_for_ever():
    drawn = "".join(worlds.text(worlds.draw(1, number)) for number in range(300))
    assert hashlib.sha256(drawn.encode()).hexdigest() == "cc88e9b2e40e1506689614981a37388d8f5183823672ee26e79380727b429e77"


def test_world__every_number_and_seed_is_another_world():
    drawn = {worlds.text(worlds.draw(seed, number)) for seed in (1, 2) for number in range(100)}
    assert len(drawn) == 200


def test_world__all_shapes_and_faults_are_drawn():
    drawn = [worlds.draw(1, number) for number in range(400)]
    kinds = [search.kind(each) for each in drawn]
    assert {each.split(",")[0] for each in kinds} == set(worlds.SHAPES)
    harms = {key for each in drawn for fault in each.get("faults", {}).values() for key in fault}
    assert harms >= set(worlds.FAULTS) - {"ramp"}
    assert any(len(each.get("faults", {})) == 5 for each in drawn)  # the ramp
    assert {key for each in drawn for key in each["services"]["leaf"]["time"]} >= {"constant", "pareto", "mixture"}
    assert 0.2 < sum(map(worlds.has_gate, drawn)) / len(drawn) < 0.5
    assert 0.4 < sum(map(worlds.has_fault, drawn)) / len(drawn) < 0.7
    flapping = sum("flapping" in kind for kind in kinds) / sum(map(worlds.has_fault, drawn))
    assert 0.15 < flapping < 0.35


def test_world__the_simulator_takes_what_is_drawn(simulator):
    for number in range(60):
        world = {**worlds.draw(3, number), "length": "600s"}
        world["clients"]["users"] = {**world["clients"]["users"], "calls": 1}
        simulator.run(world, ["none"], 1)


def test_world__what_is_written_is_read_back():
    for number in range(100):
        world = worlds.draw(2, number)
        assert worlds.read(worlds.text(world, "a comment\nof two lines")) == world


def test_world__files_written_by_hand_are_read():
    read = worlds.read('about: "what: it is, {all}" # a comment\nservices:\n  a:\n    calls: [b, c]\n  b: {n: 3}\n')
    assert read == {"about": '"what: it is, {all}"', "services": {"a": {"calls": ["b", "c"]}, "b": {"n": 3}}}


CALLERS = """
services: {top: {calls: [left, right]}, left: {calls: [leaf], role: gateway}, right: {calls: [leaf]}, leaf: {gate: true}}
clients: {users: {to: top}, others: {to: top, role: library}}
"""


def test_world__a_role_is_that_of_all_who_call_and_have_none():
    world = worlds.read(CALLERS)
    settled = worlds.with_role(world, "sidecar")
    roles = {name: each.get("role") for part in ("services", "clients") for name, each in settled[part].items()}
    assert roles == {
        "top": "sidecar",
        "left": "gateway",
        "right": "sidecar",
        "leaf": None,
        "users": "sidecar",
        "others": "library",
    }
    assert world == worlds.read(CALLERS)  # as it was


def without_role(world):
    bare = json.loads(json.dumps(world))
    for each in [*bare["services"].values(), *bare["clients"].values()]:
        each.pop("role", None)
    return bare


def test_world__nothing_but_the_role_of_callers_is_added():
    for name, world in search.draw_all((1, 2), 50).items():
        drawn = worlds.draw(*map(int, name.split("/")))
        assert world != drawn and without_role(world) == drawn


def test_world__the_callers_that_are_drawn_are_sidecars_or_all_libraries():
    for role, drawn in (("sidecar", search.draw_all((1,), 50)), ("library", search.draw_all((1,), 50, "library"))):
        for world in drawn.values():
            callers = [each for each in world["services"].values() if "calls" in each] + list(world["clients"].values())
            assert {each["role"] for each in callers} == {role}


@pytest.mark.parametrize(
    "time, p90",
    (
        ({"constant": "10ms"}, 0.010),
        ({"exponential": "10ms"}, 0.02303),
        ({"lognormal": {"median": "10ms", "sigma": "0.5"}}, 0.01898),
        ({"pareto": {"least": "10ms", "alpha": "2"}}, 0.03162),
        ({"normal": {"mean": "10ms", "deviation": "2ms"}}, 0.01256),
        ({"mixture": {"a": {"weight": 80, "constant": "1ms"}, "b": {"weight": 20, "exponential": "1s"}}}, 0.6931),
    ),
)
def test_world__nine_tenths_of_a_time_are_below_its_p90(time, p90):
    assert worlds.below(time, p90 * 1.001) >= 0.9
    assert worlds.below(time, p90 * 0.999) < 0.9


def test_world__a_timeout_below_the_p90_is_tight():
    def world(timeout, **more):
        text = f"timeout: {timeout}\nservices: {{top: {{time: {{constant: 10ms}}, calls: [api]}},"
        text += " api: {time: {constant: 50ms}}}\nclients: {users: {to: top}}\n"
        read = worlds.read(text)
        read["services"]["api"].update(more)
        return read

    assert worlds.is_tight(world("50ms"))  # the way takes 12 ms
    assert not worlds.is_tight(world("63ms"))
    heavy = {"heavy": {"share": "11%", "time": {"constant": "1s"}}}
    assert worlds.is_tight(world("63ms", endpoints=heavy))


# Runs.


class Noting(search.Simulator):
    """A simulator that notes its calls."""

    def __init__(self, *args):
        super().__init__(*args)
        self.asked = []

    def run(self, world, policies, first, seeds=1):
        self.asked.append((tuple(policies), worlds.has_gate(world), range(first, first + seeds)))
        return super().run(world, policies, first, seeds)


def test_search__others_run_without_the_gate_and_the_default_with_it(tmp_path):
    noting = Noting(PROGRAM, tmp_path)
    search.judge(noting, "x", worlds.read(GATE))
    assert noting.asked
    for policies, gate, _ in noting.asked:
        assert gate == (policies == ("becalm",))


BAD = GATE.replace("60/s", "100/s").replace("gate: true", "errors: 20%")  # two and a half times its capacity


def test_search__the_best_other_is_chosen_on_other_seeds_than_it_is_compared_on(tmp_path):
    noting = Noting(PROGRAM, tmp_path)
    found = search.judge(noting, "x", worlds.read(BAD))
    also_ran = set(search.OTHERS) - {"none", found.best}
    chosen = {seed for policies, _, seeds in noting.asked if also_ran & set(policies) for seed in seeds}
    compared = {seed for policies, _, seeds in noting.asked if "becalm" in policies for seed in seeds}
    assert chosen and not chosen & compared
    assert {p for policies, _, _ in noting.asked for p in policies} == {*search.OTHERS, "becalm"}
    assert compared == set(range(1, found.seeds + 1))


def test_search__all_policies_have_the_same_seeds(tmp_path):
    noting = Noting(PROGRAM, tmp_path)
    trial = search.Trial(noting, worlds.read(BAD))
    trial.more(("becalm", "none"), 3)
    trial.more(("becalm", "none", "aws"), 5)
    for runs in trial.runs.values():
        assert [run["seed"] for run in runs] == [1, 2, 3, 4, 5]


def test_search__a_world_that_is_clearly_fine_takes_three_seeds_of_two_policies(tmp_path):
    noting = Noting(PROGRAM, tmp_path)
    found = search.judge(noting, "x", worlds.read(GATE.replace("gate: true", "").replace("2,", "20,")))
    assert noting.asked == [(("becalm", "none"), False, range(1, 4))]
    assert (found.seeds, found.left_out, found.decided) == (3, "", True)


def test_search__a_world_of_few_calls_is_left_out(simulator):
    assert search.judge(simulator, "x", worlds.read(GATE.replace("60/s", "2/s"))).left_out == "few calls"


def test_search__a_world_that_the_simulator_refuses_is_left_out_and_says_why(simulator):
    found = search.judge(simulator, "x", worlds.read(GATE.replace("workers: 2", "staff: 2")))
    assert found.left_out.startswith("refused: world:") and "staff" in found.left_out


def test_search__a_storm_costs_no_more_than_it_may(tmp_path):
    storm = worlds.read((ROOT / "policies/scenarios/metastable.yaml").read_text())
    with pytest.raises(search.Costly):
        search.Simulator(PROGRAM, tmp_path, 1).run(storm, ["naive"], 1, 100)


def test_search__says_how_the_default_did_against_both(simulator):
    found = search.judge(simulator, "x", worlds.read(BAD))
    runs = simulator.run(worlds.read(BAD), ["becalm", "none", found.best], 1, found.seeds)
    mean = {policy: sum(map(search.success, runs[policy])) / found.seeds for policy in runs}
    assert found.default == pytest.approx(mean["becalm"])
    assert found.than_none == pytest.approx(mean["none"] - mean["becalm"])
    assert found.than_best == pytest.approx(mean[found.best] - mean["becalm"])
    assert sum(found.reasons.values()) > 0


SLOW = """
length: 120s
timeout: 1s
services: {api: {time: {constant: 3s}}}
clients: {users: {to: api, rate: 3/s}}
"""


def test_search__a_default_that_nobody_has_told_a_timeout_learns_it(simulator, tmp_path):
    world = worlds.unwritten(worlds.read(SLOW))
    learns = search.Simulator(PROGRAM, tmp_path, default=search.UNWRITTEN)
    assert search.judge(simulator, "x", worlds.read(SLOW)).default < 0.01
    assert search.judge(learns, "x", worlds.read(SLOW)).default > 0.99
    found = search.judge(learns, "x", world)
    assert (found.default, found.none) == pytest.approx((1, 1), abs=0.01)


HANGS = """
length: 60s
timeout: 1s
services: {api: {time: {constant: 5ms}, hangs: {percent: 1%, time: 600s}}}
clients: {users: {to: api, rate: 50/s}}
"""


def test_search__a_sidecar_sends_attempts_beside_overdue_ones_and_a_library_does_not(tmp_path):
    learns = search.Simulator(PROGRAM, tmp_path, default=search.UNWRITTEN)
    for role, least, most in (("sidecar", 0.999, 1), ("library", 0.98, 0.995)):
        world = worlds.with_role(worlds.unwritten(worlds.read(HANGS)), role)
        assert least <= search.judge(learns, "x", world).default <= most


# Smaller worlds.


def test_minimise__takes_away_what_does_not_matter():
    """Here regret comes of wide pages alone."""
    wide = next(w for w in (worlds.draw(1, n) for n in range(400)) if w["services"].get("page", {}).get("fanOut", 0) >= 60)

    def judge(each):
        regret = 0.3 if each["services"].get("page", {}).get("fanOut", 1) >= 12 else 0.0
        return verdict(healthy=not worlds.has_fault(each), than_none=regret)

    small = minimise.minimise(wide, judge)
    assert 12 <= small["services"]["page"]["fanOut"] < 24
    assert "faults" not in small and "hangs" not in small["services"]["leaf"] and "link" not in small
    assert "callers" not in small["clients"]["users"] and "instances" not in small["services"]["page"]
    assert worlds.seconds(small["length"]) < worlds.seconds(wide["length"])
    assert len(worlds.text(small)) < len(worlds.text(wide)) / 2


def test_minimise__keeps_a_fault_and_a_hop_that_matter():
    chain = next(w for w in (worlds.draw(1, n) for n in range(400)) if "s2" in w["services"] and worlds.has_fault(w))

    def judge(each):
        matters = len(each["services"]) >= 3 and worlds.has_fault(each)
        return verdict(healthy=not worlds.has_fault(each), than_none=0.3 if matters else 0.0)

    small = minimise.minimise(chain, judge)
    assert len(small["services"]) == 3 and worlds.has_fault(small)
    assert small["clients"]["users"]["to"] == next(iter(small["services"]))


def test_minimise__callers_keep_their_role():
    chain = next(w for w in search.draw_all((1,), 400).values() if "s2" in w["services"])
    small = minimise.minimise(chain, lambda each: verdict(than_none=0.3 if len(each["services"]) >= 3 else 0.0))
    callers = [each for each in small["services"].values() if "calls" in each] + list(small["clients"].values())
    assert len(callers) == 3 and {each["role"] for each in callers} == {"sidecar"}
    assert worlds.text(small).count("role: sidecar") == 3


@pytest.mark.parametrize(
    "more, stays",
    (
        ({"than_none": 0.25}, True),
        ({"than_none": 0.2}, False),
        ({"than_none": 0.25, "than_none_half": 0.26}, False),
        ({"than_none": 0.3, "left_out": "few calls"}, False),
        ({"than_none": 0.3, "tight": True}, False),
    ),
)
def test_minimise__regret_stays_if_most_of_it_is_there_for_certain(more, stays):
    assert minimise.stays(verdict(**more), verdict(than_none=0.3), "than_none") == stays


# Two programs.


def test_compare__each_program_runs_its_default_and_the_new_one_runs_none_without_a_gate(tmp_path):
    old, new = (Noting(PROGRAM, tmp_path) for _ in range(2))
    pair = compare.compare(old, new, "x", worlds.read(GATE), 4)
    assert pair.left_out == "" and pair.new.seeds == pair.old.seeds == 4
    assert {(policies, gate) for policies, gate, _ in old.asked} == {(("becalm",), True)}
    assert {(policies, gate) for policies, gate, _ in new.asked} == {(("becalm",), True), (("none",), False)}
    for noting in (old, new):
        for wanted in {policies for policies, _, _ in noting.asked}:
            seeds = [seed for policies, _, seeds in noting.asked if policies == wanted for seed in seeds]
            assert seeds == [1, 2, 3, 4]


def test_compare__a_program_is_held_against_the_same_figures_as_in_a_search(simulator):
    pair = compare.compare(simulator, simulator, "x", worlds.read(BAD), count.SEEDS[-1])
    found = search.judge(simulator, "x", worlds.read(BAD))
    runs = simulator.run(worlds.read(BAD), ["becalm", "none"], 1, count.SEEDS[-1])
    assert pair.old == pair.new and pair.move == 0
    assert pair.new.default == pytest.approx(sum(map(search.success, runs["becalm"])) / count.SEEDS[-1])
    assert pair.new.than_none == pytest.approx(sum(map(search.success, runs["none"])) / count.SEEDS[-1] - pair.new.default)
    assert (pair.new.healthy, pair.new.gate, pair.new.kind) == (found.healthy, found.gate, found.kind)


@pytest.mark.parametrize(
    "change, why",
    (
        (("60/s", "2/s"), "few calls"),
        (("timeout: 1s", "timeout: 60ms"), "tight timeout"),
        (("workers: 2", "staff: 2"), "refused by the new program: world:"),
    ),
)
def test_compare__leaves_out_what_a_search_leaves_out(simulator, change, why):
    pair = compare.compare(simulator, simulator, "x", worlds.read(GATE.replace(*change)), 3)
    assert pair.left_out.startswith(why)


def moved(name, by):
    return compare.Pair(name, verdict(default=0.5), verdict(default=0.5 + by))


def test_compare__the_largest_moves_come_first_and_small_ones_not_at_all():
    pairs = [moved("a", 0.006), moved("b", -0.2), moved("c", 0.0049), moved("d", 0.1), moved("e", 0)]
    assert [pair.name for pair in compare.moves(pairs)] == ["b", "d", "a"]


# The program as it is typed.


def typed(*words, cwd):
    done = subprocess.run(
        [sys.executable, "-B", ROOT / "tests/regret/search.py", "--program", PROGRAM, *map(str, words)],
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def without_time(shown):
    return [line for line in shown.splitlines() if " worlds in " not in line]


@pytest.mark.parametrize("more, none", (([], 0), (["--unwritten"], 1)))
def test_program__counts_worlds_where_no_timeout_is_written(tmp_path, more, none):
    (tmp_path / "slow.yaml").write_text(SLOW)
    typed("--file", "slow.yaml", "--quiet", "--json", "all.json", *more, cwd=tmp_path)
    (found,) = json.loads((tmp_path / "all.json").read_text())
    assert found["none"] == pytest.approx(none, abs=0.01)


def test_program__prints_a_table_and_writes_the_worst_worlds(tmp_path):
    shown = typed(5, "--worlds", 6, "--worst", "worst", "--json", "all.json", cwd=tmp_path)
    assert "healthy: worse than none by > .01" in shown and "6 worlds in" in shown
    verdicts = json.loads((tmp_path / "all.json").read_text())
    assert [v["name"] for v in verdicts] == [f"5/{number}" for number in range(6)]
    for file in (tmp_path / "worst").iterdir():
        assert "regret" in file.read_text() and "role: sidecar" in file.read_text()
        subprocess.run([PROGRAM, "sim", file, "--compare", "none,becalm"], check=True, stdout=subprocess.DEVNULL)


def test_program__writes_the_worst_worlds_of_libraries_with_their_role(tmp_path):
    typed(5, "--worlds", 6, "--worst", "worst", "--library", "--quiet", cwd=tmp_path)
    (first, *_) = (tmp_path / "worst").iterdir()
    assert "role: library" in first.read_text() and "sidecar" not in first.read_text()


def test_program__says_the_same_whatever_runs_at_once(tmp_path):
    one = typed(5, "--worlds", 3, "--quiet", cwd=tmp_path)
    two = typed(5, "--worlds", 3, "--quiet", "--jobs", 2, cwd=tmp_path)
    assert without_time(one) == without_time(two)


def test_program__begins_no_world_after_its_time(tmp_path):
    assert typed(5, "--worlds", 6, "--time", 0, cwd=tmp_path).count("\n0 worlds in") == 1


def test_program__counts_and_minimises_files(tmp_path):
    (tmp_path / "bad.yaml").write_text(BAD)
    assert "1 worlds in" in typed("--file", "bad.yaml", cwd=tmp_path)
    small = typed("--minimise", "bad.yaml", "--time", 5, cwd=tmp_path)
    (tmp_path / "small.yaml").write_text(small)
    assert worlds.read(small)["services"]
    subprocess.run([PROGRAM, "sim", "small.yaml"], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)


WORSE = """#!/usr/bin/python3
import json, subprocess, sys
done = subprocess.run([{program!r}, *sys.argv[1:]], capture_output=True, encoding="utf-8")
runs = json.loads(done.stdout) if "--json" in sys.argv else done.stdout
for run in runs if isinstance(runs, list) else []:
    run["clients"]["success"] -= 0.1 * (run["policy"] == "becalm")
print(json.dumps(runs) if "--json" in sys.argv else runs)
"""


NOTES = """#!/bin/sh
[ "$1" != sim ] || cp "$2" {folder}/world
exec {program} "$@"
"""


def compared(*words, cwd):
    command = [sys.executable, "-B", ROOT / "tests/regret/compare.py", *map(str, words)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", cwd=cwd)


def test_program__compares_two_programs(tmp_path):
    worse = tmp_path / "worse"
    worse.write_text(WORSE.format(program=PROGRAM))
    worse.chmod(0o755)
    (tmp_path / "fine.yaml").write_text(GATE.replace("gate: true", "").replace("2,", "20,"))
    done = compared(worse, PROGRAM, "--file", "fine.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = {line[:58].strip(): line[58:].split("  ") for line in done.stdout.splitlines()}
    found = {what: [each.strip() for each in figures if each] for what, figures in rows.items()}
    assert found["healthy: worse than none by > .01"] == found["healthy: worse than none by > .05"] == ["1 of 1", "0 of 1"]
    assert found["healthy: mean success (none 1.0000)"] == ["0.9000", "1.0000"]
    assert "1 worlds moved by more than 0.005: 1 up, 0 down" in done.stdout
    assert "+0.1000  fine.yaml  none 1.0000  old 0.9000  new 1.0000  one, healthy" in done.stdout


def test_program__the_same_program_twice_moves_no_world_of_those_that_a_search_draws(tmp_path):
    done = compared(PROGRAM, PROGRAM, "--seed", 5, "--worlds", 6, "--seeds", 3, "--unwritten", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\n0 worlds moved" in done.stdout and "\n6 worlds in" in done.stdout
    for line in done.stdout.splitlines()[1:]:
        if " of " in line[58:]:
            old, new = line[58:].strip().split("  ", 1)
            assert old.strip() == new.strip()


def test_program__compares_sidecars_or_libraries(tmp_path):
    noted = tmp_path / "noted"
    noted.write_text(NOTES.format(program=PROGRAM, folder=str(tmp_path)))
    noted.chmod(0o755)
    for more, role in (([], "sidecar"), (["--library"], "library")):
        done = compared(noted, PROGRAM, "--seed", 5, "--worlds", 3, "--seeds", 1, *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"role: {role}" in (tmp_path / "world").read_text()


@pytest.mark.parametrize(
    "words, said",
    (
        (["nowhere/becalm", PROGRAM], "argument OLD: nowhere/becalm is no program that can be run"),
        ([PROGRAM, "true"], "argument NEW: true is no becalm"),
        ([PROGRAM, PROGRAM, "--seeds", "21"], "argument --seeds: 21 is not 1 to 20"),
        ([PROGRAM, PROGRAM, "--file", "nowhere.yaml"], "nowhere.yaml"),
    ),
)
def test_program__says_what_is_wrong_with_a_comparison(tmp_path, words, said):
    done = compared(*words, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_program__says_why_no_world_can_be_compared(tmp_path):
    (tmp_path / "few.yaml").write_text(GATE.replace("60/s", "2/s"))
    done = compared(PROGRAM, PROGRAM, "--file", "few.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "compare.py: no world can be compared; few.yaml: few calls\n")
