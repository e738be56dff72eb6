# SPDX-License-Identifier: MIT
"""A fixed set of random worlds, in which the regret of the default policy may not grow. Bounds are the present results,
and one more for counts: tighten them when the policy gets better. With BECALM_SOAK=1 it is a large set."""

import os

import pytest

import count
import search
from test_regret import PROGRAM

LARGE = os.environ.get("BECALM_SOAK") == "1"
SEEDS, EACH = ((1, 2, 3, 4), 300) if LARGE else ((1,), 40)
MOST = {  # of the small set, of the large set
    "healthy: worse than none by > .01": (2, 60),
    "healthy: worse than none by > .05": (1, 30),
    "healthy: worse than the best by > .05": (1, 50),
    "fault: worse than none by > .02": (1, 70),
    "fault: worse than none by > .05": (1, 50),
    "fault: worse than the best by > .05": (2, 110),
    "none recovers within 5 s, the default 5 s later or never": (1, 30),
    "mean load in the fault": (0.87, 0.95),
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    simulator = search.Simulator(PROGRAM, tmp_path_factory.mktemp("worlds"))
    found = search.search(simulator, search.draw_all(SEEDS, EACH), jobs=2)
    search.show(found, 0)
    for verdict in filter(search.is_bad, found):
        print(search.told(verdict) + "\n")
    return found


@pytest.mark.parametrize("what", MOST)
def test_worlds__have_no_more_regret_than_before(verdicts, what):
    (line,) = [line for line in count.table(verdicts) if line.what == what]
    assert line.count <= MOST[what][LARGE]


def test_worlds__nearly_all_of_them_count(verdicts):
    assert sum(bool(verdict.left_out) for verdict in verdicts) <= len(verdicts) / 20
