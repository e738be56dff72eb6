# SPDX-License-Identifier: MIT
"""The rules for counting regret, apart from running the simulator.

A difference is another policy's success less that of the default, of the same world and seed: above 0 is regret.
"""

import dataclasses
import math
import statistics

FEWEST_CALLS = 150
SEEDS = (3, 5, 8, 12, 16, 20)  # seeds after which worlds are compared; the last is the maximum
NARROW = 0.005
HEALTHY_NONE, FAULT_NONE, BEST = (0.01, 0.05), (0.02, 0.05), (0.05,)
SOON = 5  # seconds in which a world recovers without any policy, and by which the default may be later

# Student's t for a 95 % interval, by degrees of freedom from 1 on.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
STUDENT += (2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093)


def interval(values):
    """The mean, and half the width of its 95 % interval; infinite of one value."""
    if len(values) < 2:
        return values[0], math.inf
    return statistics.fmean(values), STUDENT[len(values) - 2] * statistics.stdev(values) / math.sqrt(len(values))


def is_decided(differences, bounds):
    """Whether more seeds would not say more: the interval is narrow, or has none of the bounds inside."""
    if len(differences) < SEEDS[0]:
        return False
    mean, half = interval(differences)
    return half < NARROW or all(abs(mean - bound) > half for bound in bounds)


def is_surely_fine(successes, bound):
    """Whether no policy can be better by more than the bound, because so little fails."""
    if len(successes) < SEEDS[0]:
        return False
    mean, half = interval([1 - success for success in successes])
    return mean + half < bound


def recovers_late(none, default):
    """Whether a world that recovers soon without a policy does not with the default. Seconds by seed; infinite is
    never. Both are medians: by chance any policy has a single second of 98 %."""
    return statistics.median(none) <= SOON and statistics.median(default) > statistics.median(none) + SOON


def recovers_soon(none):
    return bool(none) and statistics.median(none) <= SOON


@dataclasses.dataclass
class Verdict:
    """The result for one world."""

    name: str
    healthy: bool
    tight: bool
    gate: bool = False
    kind: str = ""
    left_out: str = ""  # why it does not count
    calls: int = 0
    seeds: int = 0
    default: float = 0.0
    none: float = 0.0
    best: str = ""
    best_success: float = 0.0
    than_none: float = 0.0
    than_none_half: float = 0.0
    than_best: float = 0.0
    than_best_half: float = 0.0
    decided: bool = True
    recovery_none: list = dataclasses.field(default_factory=list)
    recovery: list = dataclasses.field(default_factory=list)
    load: float = None
    load_none: float = None
    reasons: dict = dataclasses.field(default_factory=dict)

    @property
    def bounds(self):
        return HEALTHY_NONE if self.healthy else FAULT_NONE

    @property
    def late(self):
        return bool(self.recovery_none) and recovers_late(self.recovery_none, self.recovery)

    @property
    def regret(self):
        """The rank of a world: the loss against no policy first, and half of that against the best."""
        return max(self.than_none, self.than_best / 2)


@dataclasses.dataclass
class Line:
    """One line of the table: how many, of how many, and how many may be."""

    what: str
    count: float
    of: int
    reach: str
    held: bool


def share_line(what, worlds, is_bad, most, of):
    """The number of such worlds; `most` of `of` are allowed."""
    bad = sum(map(is_bad, worlds))
    return Line(what, bad, len(worlds), f"{most} of {of}", bad * of <= most * len(worlds))


def table(verdicts):
    """The lines of a search's table, in the order of docs/regret.md. Tight worlds are not in them."""
    counted = [v for v in verdicts if not v.left_out and not v.tight]
    healthy = [v for v in counted if v.healthy]
    fault = [v for v in counted if not v.healthy]
    soon = [v for v in fault if recovers_soon(v.recovery_none)]
    loads = [v.load for v in fault if v.load is not None]
    lines = [
        share_line("healthy: worse than none by > .01", healthy, lambda v: v.than_none > 0.01, 4, 200),
        share_line("healthy: worse than none by > .05", healthy, lambda v: v.than_none > 0.05, 0, 200),
        share_line("healthy: worse than the best by > .05", healthy, lambda v: v.than_best > 0.05, 8, 200),
        share_line("fault: worse than none by > .02", fault, lambda v: v.than_none > 0.02, 6, 300),
        share_line("fault: worse than none by > .05", fault, lambda v: v.than_none > 0.05, 1, 300),
        share_line("fault: worse than the best by > .05", fault, lambda v: v.than_best > 0.05, 300, 300),
        share_line("none recovers within 5 s, the default 5 s later or never", soon, lambda v: v.late, 0, 300),
    ]
    if loads:
        load = statistics.fmean(loads)
        lines.append(Line("mean load in the fault", load, len(loads), "0.95x", load <= 0.95))
    return lines
