# SPDX-License-Identifier: MIT
"""tests/users/ROWS.md: each stumble of a newcomer names the test that holds it, and there is such a test."""

import re

from conftest import ROOT

ROWS = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in (ROOT / "tests/users/ROWS.md").read_text().splitlines()
        if re.match(r"\| [a-j]\d+ \|", line)]  # fmt: skip


def test_users__each_row_names_a_test_that_is_there_or_a_reason():
    missing = []
    for row, what, held in ROWS:
        path, _, name = held.partition("::")
        if held.startswith("not: "):
            assert len(held) > 40, f"{row}: a reason is a sentence"
            continue
        source = ROOT / path
        text = source.read_text() if source.exists() else ""
        python_or_c = rf"^(?:def|static void) {re.escape(name)}\("
        in_node = rf'^test\("{re.escape(name)}"'
        if not text or (name and not re.search(f"{python_or_c}|{in_node}", text, re.M)):
            missing.append(f"{row} {what}: {held}")
    assert missing == []


def test_users__no_row_is_missing_or_told_twice():
    rows = [row for row, _, _ in ROWS]
    assert len(rows) == len(set(rows)) > 80
    for letter in "abcdefghij":
        numbers = [int(row[1:]) for row in rows if row[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1)), letter


def test_users__readme_tells_the_decisive_facts_first():
    """README names protocols and platforms before the installation, and its parts come in the order of readers'
    questions."""
    readme = (ROOT / "README.md").read_text()
    parts = re.findall(r"^## (.*)$", readme, re.M)
    assert parts == [
        "What to know first", "Install", "Choose your way", "One minute", "From shadow to enforcing", "Before production", "Deploy and watch",
        "Beside or instead?", "More",
    ]  # fmt: skip
    first = readme[: readme.index("## Install")]
    for fact in ("Linux", "HTTP/1.1", "HTTP/2", "TLS", "0.1.0"):
        assert fact in first, fact
    assert len(readme.splitlines()) <= 150


def test_users__proxy_without_a_file_says_what_to_do(becalm, tmp_path):
    said = becalm("proxy")
    assert said.returncode == 2 and "`becalm init` writes a first one" in said.stderr
    (tmp_path / "becalm.yaml").write_text('services: {a: {hosts: ["127.0.0.1:9"]}}\n')
    said = becalm("proxy")
    assert said.returncode == 2 and "`becalm proxy becalm.yaml` runs the one in this folder" in said.stderr
