#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One seed is one run, byte for byte, with every compiler and on every machine: sim.txt has commands, and the SHA-256
of the output of each. `golden.py` compares; `golden.py --write` records the present output, after an intended
change."""

import argparse
import hashlib
import os
import pathlib
import shlex
import subprocess
import sys

LIST = pathlib.Path(__file__).resolve().with_name("sim.txt")
ROOT = LIST.parents[2]  # files that commands name are in there


LONG = ("chain", "cut-off", "metastable", "metastable-crowd", "slowdown")  # other commands show the same sooner


def commands(short=False):
    """[(sum, [words])], in the order of the file. short: without those that take an emulator long."""
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    found = [(line.split()[0], shlex.split(line)[1:]) for line in lines]
    return [(right, words) for right, words in found if not (short and words[1] in LONG)]


def printed(program, words, folder=ROOT):
    """The SHA-256 of the program's output. `program` is a list, so that an emulator may come first."""
    program = [os.path.abspath(word) if os.path.exists(word) else word for word in program]
    environment = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1")
    done = subprocess.run([*program, *words], stdout=subprocess.PIPE, check=True, env=environment, cwd=folder)
    return hashlib.sha256(done.stdout).hexdigest()


def write(program):
    head = [line for line in LIST.read_text().splitlines() if line.startswith("#")]
    lines = [f"{printed(program, words)}  {shlex.join(words)}" for _, words in commands()]
    LIST.write_text("\n".join([*head, *lines]) + "\n")


def main():
    parser = argparse.ArgumentParser(description="Compare what the simulator prints with what it printed before.")
    parser.add_argument("--write", action="store_true", help="take what is printed now as right")
    parser.add_argument("--folder", default=ROOT, help="where the files are that commands name")
    parser.add_argument("--short", action="store_true", help="leave out the long ones")
    parser.add_argument("program", nargs="+", help="the becalm to run, after its emulator if it needs one")
    chosen = parser.parse_args()
    if chosen.write:
        write(chosen.program)
        return 0
    compared = commands(chosen.short)
    wrong = [words for right, words in compared if printed(chosen.program, words, chosen.folder) != right]
    for words in wrong:
        print(f"differs: becalm {shlex.join(words)}")
    print(f"{len(compared)} runs, {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
