# SPDX-License-Identifier: MIT
"""One seed is one run, byte for byte: the same with both compilers. tests/golden/arm64.sh asks another processor."""

import json
import sys

import pytest

from conftest import PROGRAM, ROOT, SANITIZED

sys.path.insert(0, str(ROOT / "tests/golden"))

import golden  # noqa: E402


@pytest.mark.parametrize(
    "right, words", golden.commands(short=SANITIZED), ids=lambda value: value[1] if isinstance(value, list) else ""
)
def test_golden__the_run_is_what_it_was(right, words):
    hint = "if it was meant to change: tests/golden/golden.py --write build/dev/becalm"
    assert golden.printed([PROGRAM], words) == right, hint


def test_golden__every_scenario_is_among_them(becalm):
    built_in = {each["name"] for each in json.loads(becalm("sim", "--list", "--json").stdout)["scenarios"]}
    assert built_in == {words[1] for _, words in golden.commands() if "/" not in words[1]}
