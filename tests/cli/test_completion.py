# SPDX-License-Identifier: MIT
"""Completion scripts, tried in the shells themselves."""

import subprocess

import pytest

from conftest import GUARD, environment

BASH = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_becalm
printf '%s\\n' "${COMPREPLY[@]}"
"""

# An interactive shell in a pseudo-terminal, into which the words and a tab are typed. Its compadd, by which completion
# functions make their offers, writes these into a file; "end" marks the last one.
ZSH_INNER = """
PS1=
fpath=("$INSTALLED" $fpath)
autoload -U compinit
compinit -D -u
[[ -z $SCRIPT ]] || source "$SCRIPT"
compadd() {
    if [[ " $* " == *" -"[OAD]" "* ]]; then
        builtin compadd "$@"
        return
    fi
    local -a offered
    builtin compadd -O offered "$@"
    [[ -z $offered ]] || print -rl -- $offered >>"$FOUND"
    builtin compadd "$@"
}
capture() {
    _main_complete
    print end >>"$FOUND"
}
zle -C capture complete-word capture
bindkey '^I' capture
print ready >>"$FOUND"
"""
ZSH_OUTER = """
zmodload zsh/zpty zsh/zselect
wait_for() {
    until grep -qx "$1" "$FOUND"; do
        zselect -t 2
        while zpty -r -t shell; do :; done >/dev/null
    done
}
: >"$FOUND"
zpty -b shell zsh -f -i
zpty -w shell "source '$INNER'"
wait_for ready
zpty -n -w shell "$LINE"$'\t'
wait_for end
zpty -d shell
"""


@pytest.fixture
def script(becalm, tmp_path):
    def write(shell):
        done = becalm("completion", shell)
        assert (done.returncode, done.stderr) == (0, "")
        path = tmp_path / f"script.{shell}"
        path.write_text(done.stdout)
        return path

    return write


@pytest.fixture
def bash(script, tmp_path):
    def complete(*words):
        done = subprocess.run(
            ["bash", "--norc", "-c", BASH, "bash", script("bash"), "becalm", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(),
        )
        assert (done.returncode, done.stderr) == (0, ""), words
        return sorted(done.stdout.split("\n")[:-1]) if done.stdout != "\n" else []

    return complete


@pytest.fixture
def zsh(script, tmp_path):
    def complete(line, installed=False):
        (tmp_path / "inner.zsh").write_text(ZSH_INNER)
        (tmp_path / "site-functions").mkdir(exist_ok=True)
        path = script("zsh")
        if installed:
            path.rename(tmp_path / "site-functions/_becalm")
        found = tmp_path / "found"
        subprocess.run(
            ["zsh", "-f", "-c", ZSH_OUTER],
            check=True,
            cwd=tmp_path,
            timeout=GUARD,
            env=environment(
                SCRIPT="" if installed else str(path),
                INSTALLED=str(tmp_path / "site-functions"),
                INNER=str(tmp_path / "inner.zsh"),
                FOUND=str(found),
                LINE=line,
                TERM="dumb",
            ),
        )
        return sorted(set(found.read_text().split("\n")) - {"ready", "end", ""})

    return complete


@pytest.fixture
def fish(script, tmp_path):
    def complete(line):
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {script('fish')}; complete -C '{line}'"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(HOME=str(tmp_path), TERM="dumb"),
        )
        assert (done.returncode, done.stderr) == (0, ""), line
        return sorted(row.split("\t")[0] for row in done.stdout.splitlines())

    return complete


def children(commands, path):
    depth = len(path.split()) + 1
    prefix = path + " " if path else ""
    return sorted(c.split()[-1] for c in commands.help if c.startswith(prefix) and c and len(c.split()) == depth)


def long_options(commands, path):
    return sorted("--" + name for _, name, _ in commands.options(path))


def test_bash__completes_commands(bash, commands):
    assert bash("") == children(commands, "")
    assert bash("ch") == ["check"]
    assert bash("zz") == []


def test_bash__completes_subcommands_and_options_of_every_command(bash, commands):
    for path in commands.help:
        words = path.split()
        if children(commands, path):
            assert bash(*words, "") == children(commands, path), path
        assert bash(*words, "--") == long_options(commands, path), path


def test_bash__completes_files_where_files_are_meant(bash, tmp_path):
    (tmp_path / "my policy.yaml").touch()
    assert bash("check", "my") == ["my policy.yaml"]
    assert bash("check", "--json", "my") == ["my policy.yaml"]
    assert bash("plan", "contention", "my") == []


def test_bash__completes_words(bash):
    assert bash("completion", "") == ["bash", "fish", "zsh"]
    assert bash("completion", "z") == ["zsh"]
    assert "plan" in bash("help", "p")


def test_bash__a_value_is_not_an_option_or_a_command(bash):
    assert bash("plan", "contention", "--clients", "") == []
    assert bash("plan", "contention", "--clients", "=", "") == []
    assert bash("plan", "contention", "--clients", "=") == []


def test_bash__registers_itself(script):
    done = subprocess.run(
        ["bash", "--norc", "-c", 'source "$0"; complete -p becalm', script("bash")], stdout=subprocess.PIPE, text=True
    )
    assert done.stdout == "complete -F _becalm becalm\n"


def test_zsh__the_script_is_valid(script):
    done = subprocess.run(["zsh", "-f", "-n", script("zsh")], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert script("zsh").read_text().startswith("#compdef becalm\n")


def test_zsh__completes_commands_and_subcommands(zsh, commands):
    assert zsh("becalm ") == children(commands, "")
    assert zsh("becalm plan ") == children(commands, "plan")


def test_zsh__finds_the_script_where_it_is_installed(zsh, commands):
    assert zsh("becalm ", installed=True) == children(commands, "")
    assert zsh("becalm plan ", installed=True) == children(commands, "plan")


def test_zsh__completes_options(zsh, commands):
    for path in "check", "plan budget":
        assert zsh(f"becalm {path} --") == long_options(commands, path), path


def test_zsh__completes_words_and_files(zsh, tmp_path):
    (tmp_path / "policy.yaml").touch()
    assert zsh("becalm completion ") == ["bash", "fish", "zsh"]
    assert zsh("becalm check pol") == ["policy.yaml"]


def test_fish__the_script_is_valid(script):
    done = subprocess.run(["fish", "--no-config", "-n", script("fish")], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_fish__completes_commands_subcommands_and_options(fish, commands):
    for path in commands.help:
        line = f"becalm {path} ".replace("  ", " ")
        if children(commands, path):
            assert fish(line) == children(commands, path), path
        assert [word for word in fish(line + "--") if word.startswith("--")] == long_options(commands, path), path


def test_fish__completes_files_where_files_are_meant(fish, tmp_path):
    (tmp_path / "policy.yaml").touch()
    assert fish("becalm check pol") == ["policy.yaml"]
    assert fish("becalm plan contention pol") == []


def test_fish__completes_words(fish):
    assert fish("becalm completion ") == ["bash", "fish", "zsh"]


def test_completion__wants_one_shell_that_it_knows(becalm):
    try_it = "Try 'becalm completion --help'.\n"
    for args, said in [
        ([], "which shell? bash, zsh or fish"),
        (["tcsh"], "unknown shell 'tcsh'; use bash, zsh or fish"),
        (["bash", "zsh"], "unexpected argument 'zsh'"),
    ]:
        done = becalm("completion", *args)
        assert (done.returncode, done.stdout) == (2, ""), args
        assert done.stderr == f"becalm completion: {said}\n{try_it}", args
