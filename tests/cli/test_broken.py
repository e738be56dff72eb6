# SPDX-License-Identifier: MIT
"""Broken policy files: each says on top which errors it has and where, `# expect: LINE:COL: code`. Where a comment can't
stand, a file of the same name with .expect says it."""

import json
import pathlib
import re

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "policies/broken"
FILES = sorted(path for path in FOLDER.iterdir() if path.suffix in (".yaml", ".json"))


def expected(path):
    beside = path.with_name(path.name + ".expect")
    if beside.exists():
        lines = beside.read_text().splitlines()
    else:
        lines = re.findall(r"^# expect: (.*?)\r?$", path.read_text("latin-1"), re.M)
    assert lines, "nothing says what is wrong with it"
    return sorted(lines)


def test_broken__there_are_many_of_them():
    assert len(FILES) >= 40


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_broken__each_error_is_found_at_its_place(becalm, path):
    done = becalm("check", "--json", path)
    assert done.returncode == 1
    errors = [f for f in json.loads(done.stdout)["findings"] if f["severity"] == "error"]
    assert sorted(f"{f['line']}:{f['column']}: {f['code']}" for f in errors) == expected(path)
    assert all(f["file"] == str(path) for f in errors)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_broken__a_person_reads_the_same(becalm, path):
    done = becalm("check", path.name, cwd=FOLDER)
    assert done.returncode == 1
    text = done.stdout + done.stderr
    found = re.findall(rf"^{re.escape(path.name)}:(\d+:\d+): error: .*\[([a-z-]+)\]$", text, re.M)
    assert sorted(f"{place}: {code}" for place, code in found) == expected(path)


def test_broken__no_control_character_reaches_the_terminal(becalm, tmp_path):
    (tmp_path / "red.yaml").write_text('defaults: {"\\e[31mmaxRetries": 2, jitter: "\\e]0;title\\a"}\n')
    done = becalm("check", "red.yaml")
    assert done.returncode == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout + done.stderr)
    assert "\\x1b[31mmaxRetries" in done.stdout


@pytest.mark.parametrize("hidden", ["\u202e", "\u2066", "\u200b", "\u061c"])
def test_broken__text_that_turns_or_hides_is_escaped(becalm, tmp_path, hidden):
    wrong = f'defaults: {{"{hidden}maxRetries": 2, jitter: "{hidden}full"}}\n'
    named = f'services: {{a: {{hosts: [h:1], fallback: {{on: [open], status: 503, body: "b{hidden}"}}}}}}\n'
    for text, args in (wrong, ()), (named, ("--explain", "all")), (wrong, ("--format", "github")):
        (tmp_path / "hidden.yaml").write_text(text)
        done = becalm("check", *args, "hidden.yaml")
        assert hidden not in done.stdout + done.stderr
        assert f"\\u{ord(hidden):04x}" in done.stdout


def test_broken__a_file_over_a_mebibyte_is_refused_at_its_start(becalm, tmp_path):
    (tmp_path / "large.yaml").write_text("defaults: {}\n" + "#" * 1024 * 1024)
    done = becalm("check", "large.yaml")
    assert done.returncode == 1
    assert "large.yaml:1:1: error: " in done.stdout + done.stderr
    assert "[too-large]" in done.stdout + done.stderr


def test_broken__a_hundred_errors_are_told_and_the_others_counted(becalm, tmp_path):
    (tmp_path / "many.yaml").write_text("defaults:\n" + "".join(f"  wrong{i}: 1\n" for i in range(150)))
    done = becalm("check", "--json", "many.yaml")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert len(report["findings"]) == 100
    assert report["summary"]["errors"] == 150


@pytest.mark.parametrize(
    "written, meant",
    [
        ("hedge: true", "hedge is a mapping; write {enabled: true}"),
        ("breaker: off", "breaker is a mapping; write {enabled: false}"),
        ("limit: 100", "limit is a mapping; write {kind: fixed, max: 100}"),
        ("budget: 10%", "budget is a mapping; write {percent: 10}"),
        ("gate: 10", "gate is a mapping; write {key: value}"),
        ("budget: [10]", "budget is a mapping; write {key: value}"),
        ("maxRetries: 010", '"010" is not a whole number; write one like 3'),
        ("budget: {percent: 150}", '"150" is not a percentage; write a number from 0 to 100, like 10 or 0.5'),
    ],
)
def test_broken__a_value_in_place_of_a_mapping_is_told_the_mapping(becalm, tmp_path, written, meant):
    (tmp_path / "p.yaml").write_text(f"defaults: {{{written}}}\n")
    done = becalm("check", tmp_path / "p.yaml")
    assert done.returncode == 1 and f"{meant} [wrong-type]" in done.stdout + done.stderr


def test_broken__a_list_of_hosts_that_is_empty_is_called_so(becalm, tmp_path):
    (tmp_path / "p.yaml").write_text("services: {a: {hosts: []}}\n")
    done = becalm("check", "p.yaml")
    assert done.returncode == 1
    assert 'p.yaml:1:23: error: hosts: the list is empty; write at least one address, like ["127.0.0.1:9001"]' in done.stdout + done.stderr


@pytest.mark.parametrize("key, value, most", [("maxRetries", "9" * 20, "1000"), ("deadline", "99999999999h", "24h")])
def test_broken__a_number_with_too_many_digits_is_above_the_most_allowed(becalm, tmp_path, key, value, most):
    """It was said to be no number."""
    (tmp_path / "p.yaml").write_text(f"defaults: {{{key}: {value}}}\n")
    done = becalm("check", "p.yaml")
    assert done.returncode == 1
    assert f"{key}: {value} is above {most}, the most allowed" in done.stdout + done.stderr
