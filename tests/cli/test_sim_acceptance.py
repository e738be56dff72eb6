# SPDX-License-Identifier: MIT
"""The quick ones of the acceptance rows: what the default policy must do in the worlds of docs/acceptance.md."""

import os
import sys

import pytest

from conftest import PROGRAM, ROOT

sys.path.insert(0, str(ROOT / "tests/acceptance"))

import acceptance  # noqa: E402
import rows  # noqa: E402

# A sanitized program is slow: it runs a few rows with one seed, whose figures spread further than the mean of ten.
SEEDS = int(os.environ.get("BECALM_SEEDS", acceptance.SEEDS))
FEW = ("A5.C3", "A10", "A12.10", "A15", "A20.C1.50", "A28.50")
PICKED = [row for row in rows.ROWS if row.quick and (SEEDS == acceptance.SEEDS or row.name.startswith(FEW))]


@pytest.mark.parametrize("row", PICKED, ids=lambda row: row.name)
def test_acceptance__holds(row):
    slack = 0 if SEEDS == acceptance.SEEDS else 0.1
    for check, (mean, _) in acceptance.run(PROGRAM, row, SEEDS).items():
        low, high = check.low * (1 - slack) - slack / 10, check.high * (1 + slack) + slack / 10
        assert (
            low <= mean <= high
        ), f"{check.name} is {mean}, not from {check.low} to {check.high}: {acceptance.typed(row)}"


def test_acceptance__every_row_has_a_name_of_its_own():
    names = [row.name for row in rows.ROWS]
    assert len(set(names)) == len(names)


def test_acceptance__a_figure_outside_of_its_range_is_missed():
    check = rows.Check("load", None, 1.0, 1.1)
    assert acceptance.misses({check: (1.05, 0)}) == []
    assert acceptance.misses({check: (1.2, 0)}) == [check]
