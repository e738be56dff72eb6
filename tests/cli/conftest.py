# SPDX-License-Identifier: MIT
"""Fixtures for the tests of the command. They run the built program, named by BECALM, as a user types it."""

import os
import pathlib
import re
import signal
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BECALM", str(ROOT / "build/dev/becalm"))
# A sanitized program is slow, so slow tests run a short form, except in a soak.
SANITIZED = "BECALM_SANITIZED" in os.environ and os.environ.get("BECALM_SOAK") != "1"
# A shell that starts the tests in the background lets them ignore SIGINT, and so would every program that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

GUARD = 600  # seconds, a guard against hanging: no claim, for a sanitized program on a busy machine may need minutes


def environment(**more):
    """Nothing of the caller's own taste: no colour, no other language."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith("LC_")}
    keep.pop("LANG", None)
    keep.update(LC_ALL="C.UTF-8", NO_COLOR="1", **more)
    return keep


class Tree:
    """All commands, read from --help: {"": text, "plan": text, "plan budget": text, ...}."""

    def __init__(self, run):
        self.help = {}
        self._read(run, [])

    def _read(self, run, path):
        text = run(*path, "--help").stdout
        self.help[" ".join(path)] = text
        for name in re.findall(r"^  (\S+)  +\S", section(text, "Commands"), re.M):
            self._read(run, path + [name])

    def options(self, path):
        """[(letter or None, name, argument or None)] of a command."""
        row = r"^  (?:-(\w),|   ) --([\w-]+)(?: (\S+))?(?:  .*)?$"
        found = re.findall(row, section(self.help[path], "Options"), re.M)
        return [(letter or None, name, argument or None) for letter, name, argument in found]

    def leaves(self):
        """Commands that do something themselves."""
        return [path for path, text in self.help.items() if "\nCommands:\n" not in text]


def section(text, title):
    """The lines of --help under a title, up to the next empty line."""
    match = re.search(rf"^{title}:\n(.*?)(?:\n\n|\Z)", text, re.M | re.S)
    return match.group(1).rstrip("\n") + "\n" if match else ""


@pytest.fixture
def becalm(tmp_path):
    """becalm("check", "policy.yaml"): runs it in an empty folder; returns its output and exit code."""

    def run(*args, stdin=None, env=None, cwd=tmp_path, timeout=GUARD):
        return subprocess.run(
            [PROGRAM, *map(str, args)],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=environment(**(env or {})),
            cwd=cwd,
            timeout=timeout,
        )

    run.program = PROGRAM
    run.root = ROOT
    return run


@pytest.fixture(scope="session")
def commands():
    """The tree of all commands."""

    def run(*args):
        done = subprocess.run([PROGRAM, *args], stdout=subprocess.PIPE, encoding="utf-8", env=environment())
        assert done.returncode == 0, args
        return done

    return Tree(run)
