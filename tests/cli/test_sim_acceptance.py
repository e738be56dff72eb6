# SPDX-License-Identifier: MIT
"""The quick acceptance rows: the requirements of the default policy in the worlds of docs/acceptance.md."""

import os
import sys

import pytest

from conftest import PROGRAM, ROOT

sys.path.insert(0, str(ROOT / "tests/acceptance"))

import acceptance  # noqa: E402
import rows  # noqa: E402

FEW = 3  # seeds that are tried first: the mean of all of the row's counts where these miss, and with full counts


@pytest.mark.parametrize("row", [row for row in rows.ROWS if row.quick], ids=lambda row: row.name)
def test_acceptance__holds(row):
    shown = acceptance.run(PROGRAM, row, None if os.environ.get("BECALM_SOAK") == "1" else FEW)
    if acceptance.misses(shown):
        shown = acceptance.run(PROGRAM, row)
    for check, (mean, _) in shown.items():
        assert (
            check.low <= mean <= check.high
        ), f"{check.name} is {mean}, not from {check.low} to {check.high}: {acceptance.typed(row)}"


def test_acceptance__every_row_has_a_name_of_its_own():
    names = [row.name for row in rows.ROWS]
    assert len(set(names)) == len(names)


def test_acceptance__a_figure_outside_of_its_range_is_missed():
    check = rows.Check("load", None, 1.0, 1.1)
    assert acceptance.misses({check: (1.05, 0)}) == []
    assert acceptance.misses({check: (1.2, 0)}) == [check]


def test_acceptance__a_bound_that_is_not_reached_yet_is_told_and_what_is_reached_holds():
    check = rows.least("success", None, 0.98, 0.5)
    assert (check.low, check.wanted) == (0.5, 0.98)
    assert rows.least("success", None, 0.98).wanted is None
    assert acceptance.misses({check: (0.4, 0)}) == [check]
    assert rows.regret(today=0.2).high == 0.2 and rows.regret().high == 0.01


def test_acceptance__regret_is_how_much_less_than_with_no_policy_and_without_the_gate():
    row = next(row for row in rows.ROWS if row.name == "WR7")
    ((regret, _),) = acceptance.run(PROGRAM, row, 1).values()
    ours, none = (acceptance.shown(PROGRAM, each, 1)[0]["clients"]["success"] for each in (row, acceptance.bare(row)))
    assert regret == none - ours
    assert "--policy none" in acceptance.typed(acceptance.bare(row))
    assert "services.leaf.gate=false" in acceptance.typed(acceptance.bare(row))


def test_acceptance__every_world_is_a_row_and_the_page_says_what_is_missed():
    names = [path.name for path in (ROOT / "tests/scenarios/worlds").glob("*.yaml")]
    files = {f"tests/scenarios/worlds/{name}" for name in names if not name.endswith(".policy.yaml")}
    worlds = [row for row in rows.ROWS if row.scenario in files]
    assert {row.scenario for row in worlds} == files
    page = (ROOT / "docs/acceptance.md").read_text()
    for line in acceptance.page_lines(worlds):
        assert line in page
