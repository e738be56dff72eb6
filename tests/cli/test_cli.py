# SPDX-License-Identifier: MIT
"""The common behaviour of all commands: help, usage errors, exit codes, and output without a reader."""

import os
import re
import subprocess

from conftest import environment, section

TRY = "Try 'becalm --help'.\n"


def test_without_arguments__the_help_is_on_stderr(becalm):
    done = becalm()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == becalm("--help").stdout


def test_a_command_without_its_subcommand__gets_its_help_on_stderr(becalm):
    done = becalm("plan")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == becalm("plan", "--help").stdout


def test_version__first_line_is_name_and_number(becalm):
    version = re.search(r'BECALM_VERSION +"(.*?)"', (becalm.root / "include/becalm/version.h").read_text()).group(1)
    for option in "--version", "-V":
        done = becalm(option)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[0] == f"becalm {version}"


def test_help__lists_the_commands_in_order(commands):
    names = re.findall(r"^  (\S+)", section(commands.help[""], "Commands"), re.M)
    assert names == ["init", "proxy", "top", "doctor", "fault", "demo", "exec", "sim", "check", "diff", "plan", "import", "schema", "rules", "completion", "help"]


def test_help__of_every_command_has_its_parts_and_fits_80_columns(commands):
    assert len(commands.help) > 10
    for path, text in commands.help.items():
        lines = text.splitlines()
        assert lines[0].startswith(f"Usage: becalm {path}".rstrip()), path
        assert lines[1] == "" and lines[2] != "", f"{path}: purpose"
        assert "\nOptions:\n" in text and "\nExamples:\n" in text, path
        assert text.isascii() and text.endswith("\n") and not text.endswith("\n\n"), path
        for line in lines:
            assert len(line) <= 80, f"{path}: {line}"
            assert line == line.rstrip(), f"{path}: blanks at the end: {line!r}"


def test_help__examples_show_the_command(commands):
    for path, text in commands.help.items():
        examples = section(text, "Examples")
        assert f"becalm {path}".rstrip() in examples, path
        assert all(line.startswith("  ") for line in examples.splitlines()), path


def test_help__every_option_is_aligned_and_explained(commands):
    for path in commands.help:
        options = commands.options(path)
        assert options[-1] == ("h", "help", None), path
        explained = set()
        for row in section(commands.help[path], "Options").splitlines():
            option = re.match(r"  (?:-\w,|   ) --\S+(?: \S+)?(  +|$)", row)
            if option is None or option.group(1):
                explained.add((option or re.match(r" +", row)).end())
        assert len(explained) == 1, f"{path}: {explained}"
        names = [name for _, name, _ in options]
        letters = [letter for letter, _, _ in options if letter]
        assert len(set(names)) == len(names) and len(set(letters)) == len(letters), path


def test_help__every_command_that_reports_has_json(commands):
    for path in commands.leaves():
        if path.split()[0] not in ("init", "proxy", "schema", "rules", "completion", "help"):
            assert "json" in [name for _, name, _ in commands.options(path)], path


def test_help__is_the_same_by_all_its_ways(becalm, commands):
    for path, text in commands.help.items():
        words = path.split()
        assert becalm("help", *words).stdout == text, path
        done = becalm(*words, "-h")
        assert (done.returncode, done.stdout, done.stderr) == (0, text, ""), path


def test_unknown_command__names_the_nearest(becalm):
    done = becalm("chek", "x.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "becalm: unknown command 'chek'; did you mean 'check'?\n" + TRY


def test_unknown_command__without_a_near_one_stands_alone(becalm):
    done = becalm("xyzzy")
    assert done.stderr == "becalm: unknown command 'xyzzy'\n" + TRY
    assert becalm("help", "xyzzy").stderr == done.stderr
    assert becalm("").stderr == "becalm: unknown command ''\n" + TRY


def test_messages__what_was_typed_cannot_drive_the_terminal(becalm):
    done = becalm("a\x1b[31m\nb\x7f\u009b\u00e9")
    assert done.stderr == "becalm: unknown command 'a\\x1b[31m\\x0ab\\x7f\\u009b\u00e9'\n" + TRY


def test_unknown_subcommand__names_the_nearest(becalm):
    done = becalm("plan", "amplificaton")
    assert done.returncode == 2
    assert done.stderr == (
        "becalm plan: unknown command 'amplificaton'; did you mean 'amplification'?\nTry 'becalm plan --help'.\n"
    )
    assert becalm("help", "plan", "amplificaton").stderr == done.stderr


def test_unknown_option__names_the_nearest(becalm):
    done = becalm("check", "--jsno", "x.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "becalm check: unknown option '--jsno'; did you mean '--json'?\nTry 'becalm check --help'.\n"
    assert becalm("--hlep").stderr == "becalm: unknown option '--hlep'; did you mean '--help'?\n" + TRY
    assert becalm("-x").stderr == "becalm: unknown option '-x'\n" + TRY


def test_option_before_the_subcommand__says_where_it_belongs(becalm):
    done = becalm("plan", "--json", "budget")
    assert done.returncode == 2
    assert done.stderr == "becalm plan: a command must come before '--json'\nTry 'becalm plan --help'.\n"


def usage(path):
    """The exit code of wrong usage: `exec` leaves the small ones to the command that it runs."""
    return 125 if path == "exec" else 2


def test_every_command__refuses_options_that_it_does_not_have(becalm, commands):
    for path in commands.leaves():
        words = path.split()
        done = becalm(*words, "--frobnicate")
        assert (done.returncode, done.stdout) == (usage(path), ""), path
        assert done.stderr == (
            f"becalm {path}: unknown option '--frobnicate'\nTry 'becalm {path} --help'.\n"
        ), path
        done = becalm(*words, "-~")
        assert done.stderr == f"becalm {path}: unknown option '-~'\nTry 'becalm {path} --help'.\n", path


def test_every_flag__refuses_a_value_and_every_option_wants_one(becalm, commands):
    for path in commands.leaves():
        for letter, name, argument in commands.options(path)[:-1]:
            words = path.split()
            if argument is None:
                said = f"option '--{name}' takes no value"
                done = becalm(*words, f"--{name}=1")
            else:
                said = f"option '--{name}' needs a value: --{name} {argument}"
                done = becalm(*words, f"--{name}")
            assert done.returncode == usage(path), (path, name)
            assert done.stderr.startswith(f"becalm {path}: {said}"), (path, name)
            assert done.stderr.endswith(f"\nTry 'becalm {path} --help'.\n"), (path, name)


def test_closed_stdout__is_a_failure_with_a_line(becalm):
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" --help >&-', becalm.program], stderr=subprocess.PIPE, env=environment(), text=True
    )
    assert done.returncode == 1
    assert done.stderr == "becalm: can't write to standard output: Bad file descriptor\n"


def test_full_disk__is_a_failure_with_a_line(becalm):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [becalm.program, "completion", "zsh"], stdout=full, stderr=subprocess.PIPE, env=environment(), text=True
        )
    assert done.returncode == 1
    assert done.stderr.startswith("becalm: can't write to standard output")
    assert done.stderr.count("\n") == 1


def test_closed_stdin_and_stderr__change_nothing(becalm):
    line = 'exec "$0" --version <&- 2>&-'
    done = subprocess.run(["sh", "-c", line, becalm.program], stdout=subprocess.PIPE, env=environment(), text=True)
    assert done.returncode == 0 and done.stdout.startswith("becalm ")


def test_reader_that_went_away__is_no_message(becalm):
    for shell in '"$0" completion zsh', 'trap "" PIPE; "$0" completion zsh':
        end, other = os.pipe()
        os.close(end)
        done = subprocess.run(
            ["sh", "-c", shell, becalm.program], stdout=other, stderr=subprocess.PIPE, env=environment(), text=True
        )
        os.close(other)
        assert done.returncode != 0 and done.stderr == "", shell
