# SPDX-License-Identifier: MIT
"""SECURITY.md: each promise names a test that holds it, and there is such a test."""

import re

from conftest import ROOT

PAGE = (ROOT / "SECURITY.md").read_text()
NAMED = re.findall(r"`(tests/[\w/]+\.\w+)::(\w+)`", PAGE)


def test_security__each_test_that_is_named_is_there():
    missing = []
    for path, name in NAMED:
        source = ROOT / path
        text = source.read_text() if source.exists() else ""
        if not re.search(rf"^(?:def|static void) {name}\(", text, re.M):
            missing.append(f"{path}::{name}")
    assert not missing
    assert len(NAMED) > 40


def test_security__each_promise_names_a_test():
    rows = [line for line in PAGE.splitlines() if line.startswith("| must not: ")]
    assert len(rows) > 20
    assert [row for row in rows if "`tests/" not in row] == []
