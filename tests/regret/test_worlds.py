# SPDX-License-Identifier: MIT
"""A fixed set of random worlds, in which the regret of the default policy may not grow. Bounds are the present results,
and one more for counts: tighten them when the policy gets better. With BECALM_SOAK=1 it is a large set."""

import os

import pytest

import count
import search
import world as worlds
from test_regret import PROGRAM

LARGE = os.environ.get("BECALM_SOAK") == "1"
SEEDS, EACH = ((1, 2, 3, 4), 300) if LARGE else ((1,), 40)
WHAT = (
    "healthy: worse than none by > .01",
    "healthy: worse than none by > .05",
    "healthy: worse than the best by > .05",
    "fault: worse than none by > .02",
    "fault: worse than none by > .05",
    "fault: worse than the best by > .05",
    "none recovers within 5 s, the default 5 s later or never",
    "mean load in the fault",
)
MOST = {  # where a timeout is written, and where none is: of the small set, of the large set
    True: ((1, 1, 1, 1, 1, 2, 1, 0.87), (24, 13, 25, 16, 10, 35, 2, 0.93)),
    False: ((1, 1, 1, 1, 1, 1, 1, 1.06), (9, 3, 16, 12, 5, 53, 8, 0.96)),
}


@pytest.fixture(scope="module", params=[True, False], ids=["written", "none-written"])
def found(request, tmp_path_factory):
    """Whether a timeout is written, and the verdicts on the worlds."""
    is_written = request.param
    drawn = search.draw_all(SEEDS, EACH)
    if not is_written:
        drawn = {name: worlds.unwritten(world) for name, world in drawn.items()}
    default = "becalm" if is_written else search.UNWRITTEN
    simulator = search.Simulator(PROGRAM, tmp_path_factory.mktemp("worlds"), default=default)
    verdicts = search.search(simulator, drawn, jobs=2)
    search.show(verdicts, 0)
    for verdict in filter(search.is_bad, verdicts):
        print(search.told(verdict) + "\n")
    return is_written, verdicts


@pytest.mark.parametrize("what", WHAT)
def test_worlds__have_no_more_regret_than_before(found, what):
    is_written, verdicts = found
    (line,) = [line for line in count.table(verdicts) if line.what == what]
    assert line.count <= MOST[is_written][LARGE][WHAT.index(what)]


def test_worlds__nearly_all_of_them_count(found):
    _, verdicts = found
    assert sum(bool(verdict.left_out) for verdict in verdicts) <= len(verdicts) / 20
