# SPDX-License-Identifier: MIT
"""The manual pages: mandoc finds nothing wrong with them, and they know every command and option."""

import re
import subprocess

from conftest import ROOT

PAGES = sorted((ROOT / "man").glob("*.[1-8]"))


def page(name):
    """A page as plain text, its lines joined, as a reader sees it."""
    done = subprocess.run(
        ["mandoc", "-T", "ascii", "-O", "width=200", ROOT / "man" / name], stdout=subprocess.PIPE, text=True, check=True
    )
    return re.sub(r"\s+", " ", re.sub(r".\x08", "", done.stdout))


def test_man__the_pages_are_there():
    names = {path.name for path in PAGES}
    assert names >= {"becalm.1", "becalm-check.1", "becalm-exec.1", "becalm-plan.1", "becalm-import.1", "becalm.yaml.5"}


def test_man__every_page_is_clean():
    for path in PAGES:
        done = subprocess.run(
            ["mandoc", "-T", "lint", "-W", "warning", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert (done.returncode, done.stdout) == (0, ""), path.name


def test_man__every_page_is_installed():
    listed = (ROOT / "CMakeLists.txt").read_text()
    for path in PAGES:
        assert f"man/{path.name}" in listed, path.name


def test_man__becalm_knows_every_command(commands):
    text = page("becalm.1")
    for path in commands.help:
        if path and " " not in path:
            assert re.search(rf" {path} ", text), path


def test_man__every_option_is_on_its_command_s_page(commands):
    for path in commands.help:
        command = path.split()[0] if path else ""
        own = ROOT / f"man/becalm-{command}.1"
        text = page(own.name if own.exists() else "becalm.1")
        assert re.search(rf"\b{re.escape(path)}\b", text), path
        for letter, name, argument in commands.options(path):
            if name == "help" and path:
                continue  # becalm(1) says that every command has it
            assert f"--{name}" in text, f"{path} --{name}"
            if letter:
                assert re.search(rf"-{letter}\b", text), f"{path} -{letter}"


def test_man__becalm_metrics_knows_every_metric():
    text = page("becalm-metrics.7")
    source = "".join(path.read_text() for path in sorted((ROOT / "src/meter").glob("metrics*.c")))
    names = re.findall(r'"((?:becalm|http|circuit|process)_[a-z_]+)"', source)
    assert len(names) > 30
    for name in names:
        assert re.search(rf"\b{name}\b", text), name


def test_man__becalm_sim_knows_every_key_of_a_scenario():
    source = (ROOT / "src/scenario/scenario_schema.c").read_text()
    keys = set(re.findall(r'^ +\{"([a-zA-Z.]+)", FIELD', source, re.M))
    page = (ROOT / "man/becalm-sim.1").read_text()
    listed = set(re.findall(r"^\.(?:It )?Ic ([a-zA-Z.]+)", page, re.M))
    assert len(keys) > 70 and keys <= listed, keys - listed


def test_man__pages_refer_to_pages_that_exist():
    names = {path.name for path in PAGES}
    for path in PAGES:
        for name, section in re.findall(r"^\.Xr (becalm\S*) (\d)", path.read_text(), re.M):
            assert f"{name}.{section}" in names, f"{path.name}: {name}({section})"


def test_man__libbecalm_lists_every_public_header():
    text = page("libbecalm.3")
    for path in sorted((ROOT / "include/becalm").glob("*.h")):
        assert f"<becalm/{path.name}>" in text, path.name


def test_man__the_program_of_libbecalm_compiles(tmp_path):
    source = (ROOT / "man/libbecalm.3").read_text().split(".Bd -literal -offset indent\n", 1)[1].split(".Ed\n", 1)[0]
    (tmp_path / "program.c").write_text(source.replace("\\e", "\\"))
    compiler = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", ROOT / "include"]
    done = subprocess.run([*compiler, tmp_path / "program.c"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
