# SPDX-License-Identifier: MIT
"""README and the pages: short enough, every link leads somewhere, every page is in the index, and what they show is right."""

import re
import subprocess
from xml.etree import ElementTree

import pytest
import yaml

from conftest import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
FIRST = [ROOT / "README.md", *(ROOT / f"docs/{name}.md" for name in ("tutorial", "migrate", "files", "policy", "kubernetes", "pipelines"))]


def anchors(page):
    """As GitHub makes them."""
    found = set()
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    for title in re.findall(r"^#+ (.+)$", text, re.M):
        plain = re.sub(r"[`*]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages__every_link_leads_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = page if path == "" else (page.parent / path).resolve()
        assert there.exists(), target
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), target


def test_pages__readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_pages__the_index_has_every_page():
    index = (ROOT / "docs/README.md").read_text()
    for page in sorted((ROOT / "docs").glob("*.md")):
        assert page.name == "README.md" or f"({page.name}" in index, page.name


def test_pages__the_policies_that_they_show_are_right(becalm, tmp_path):
    shown = 0
    for page in FIRST:
        for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.S | re.M):
            tree = yaml.safe_load(block)
            if not isinstance(tree, dict) or not set(tree) <= {"listen", "defaults", "services", "explain", "include", "version"}:
                continue
            shown += 1
            (tmp_path / "conf.d").mkdir(exist_ok=True)
            (tmp_path / "shown.yaml").write_text(block)
            env = {"PAYMENT_HOST": "10.0.0.1:80", "REDIS": "secret"}
            block = re.sub(r"\$\{file:[^}]*\}", "${REDIS}", block)
            (tmp_path / "shown.yaml").write_text(block)
            done = becalm("check", "shown.yaml", env=env)
            assert done.returncode == 0, (page.name, block, done.stdout)
    assert shown >= 8


def test_pages__readme_s_minute_has_a_policy_that_is_right(becalm, tmp_path):
    (policy,) = re.findall(r"<<'YAML'\n(.*?)^YAML", (ROOT / "README.md").read_text(), re.S | re.M)
    (tmp_path / "becalm.yaml").write_text(policy)
    assert becalm("check", "--strict", "becalm.yaml").returncode == 0


def test_pages__every_command_that_readme_names_is_there(commands):
    named = set(re.findall(r"`becalm ([a-z]+)", (ROOT / "README.md").read_text()))
    assert named and named <= {path.split()[0] for path in commands.help if path}


def test_pages__the_moving_picture_is_what_the_simulator_says(becalm):
    """make picture draws it again. It moves by itself: no script, and nothing that it would fetch."""
    drawn = subprocess.run([ROOT / "tools/animate", becalm.program], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert drawn == (ROOT / "docs/images/storm.svg").read_text(), "make picture"
    picture = ElementTree.fromstring(drawn)
    moving = picture.findall(".//{*}animate")
    assert len(moving) > 20 and picture.find("{*}title").text
    for each in moving:
        keys, values = each.get("keyTimes").split(";"), each.get("values").split(";")
        assert len(keys) == len(values) and keys[0] == "0" and keys[-1] == "1" and [float(key) for key in keys] == sorted(map(float, keys))
    assert not picture.findall(".//{*}script") and "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    assert "storm.svg" in (ROOT / "README.md").read_text().split("## ")[0]
