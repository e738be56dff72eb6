# SPDX-License-Identifier: MIT
"""Oddities of clients and hosts through the gateway, compared with direct access; with BECALM_SOAK=1 through nginx and
HAProxy as well, where they are installed. docs/http1.md has the figures and every row that is not passed on."""

import importlib.util
import json
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

import lab  # noqa: E402
import ways  # noqa: E402
from table import ROWS  # noqa: E402

SPEC = importlib.util.spec_from_file_location("e2e_conftest", HERE.parent / "e2e/conftest.py")
E2E = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(E2E)

PAGE = (ROOT / "docs/http1.md").read_text()


@pytest.fixture(scope="module")
def host():
    made = lab.Host()
    yield made
    made.close()


@pytest.fixture(scope="module")
def becalm(host, tmp_path_factory):
    made = E2E.Gateway(tmp_path_factory.mktemp("becalm"), ways.BECALM.format(host=host.address))
    yield made
    made.end()


def told_status(result):
    """The status that the client got, if there is one."""
    told = result[0][0]
    while isinstance(told, tuple) and len(told) != 6:
        told = told[-1]
    return told


def test_the_table_is_as_large_as_it_says():
    names = [(row.group, row.name) for row in ROWS]
    assert len(names) == len(set(names)) and len(names) >= 140
    assert {row.becalm for row in ROWS} == {"same", "unsafe", "refused", "changed"}
    assert all(row.why for row in ROWS if row.becalm != "same")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.group}: {row.name}")
def test_oddity(row, host, becalm):
    direct = lab.run(row, host, host.port)
    via = lab.run(row, host, becalm.port)
    if row.becalm == "same":
        assert lab.same(direct, via), f"direct: {direct}\nvia: {via}"
        return
    assert not lab.same(direct, via), "it is passed on: say so in the table and in docs/http1.md"
    assert f"| {row.group}: {row.name} |" in PAGE, "docs/http1.md has every row that is not passed on"
    _, status, _, body, _, whole = told_status(via)
    assert whole and status[0] in "45", via
    if row.rule:
        assert row.rule in json.loads(body)["detail"], body
    if row.group.startswith(("request", "targets", "methods")) and "body" not in row.name:
        assert via[1] == [], "it reached the host"


@pytest.mark.skipif(os.environ.get("BECALM_SOAK") != "1", reason="beside nginx and HAProxy with BECALM_SOAK=1")
def test_more_pass_than_through_peers(host, becalm, tmp_path):
    """Prints the table; a peer has three tries at a row, so that a busy machine is not held against it."""
    missing = [name for name in ("nginx", "haproxy") if ways.find(name) is None]
    if missing:
        pytest.skip(f"not installed: {missing}")
    (tmp_path / "nginx").mkdir()
    (tmp_path / "haproxy").mkdir()
    by_way = {"becalm": becalm}
    by_way |= {name: ways.Peer(name, tmp_path / name, host) for name in ("nginx", "haproxy")}
    counts = {name: {"safe": 0, "unsafe": 0} for name in by_way}
    try:
        for row in ROWS:
            direct = lab.run(row, host, host.port)
            kind = "unsafe" if row.becalm == "unsafe" else "safe"
            passed = {}
            for name, way in by_way.items():
                tries = 1 if name == "becalm" else 3
                passed[name] = any(lab.same(direct, lab.run(row, host, way.port)) for _ in range(tries))
                counts[name][kind] += passed[name]
            print(f"{row.group}: {row.name} |", " | ".join("same" if passed[name] else "not" for name in by_way))
    finally:
        for name in ("nginx", "haproxy"):
            by_way[name].end()
    print(len(ROWS), counts)
    for peer in ("nginx", "haproxy"):
        assert counts["becalm"]["safe"] > counts[peer]["safe"], counts
    assert counts["becalm"]["unsafe"] == 0
