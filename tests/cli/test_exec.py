# SPDX-License-Identifier: MIT
"""becalm exec, as typed: codes, output, input, signals, terminals, and shared budgets and breakers. Waits are short,
and no claim is about times."""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import pytest

from conftest import GUARD, PROGRAM, environment

FAST = ["--delay", "1ms", "--jitter", "none"]


@pytest.fixture
def run(becalm, tmp_path):
    """run("-r", "1", "--", "false"): becalm exec with a shared directory of its own."""
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)

    def go(*args, env=None, **more):
        return becalm("exec", *args, env={"BECALM_SHARED_DIR": str(shared), **(env or {})}, **more)

    go.shared = shared
    go.environment = environment(BECALM_SHARED_DIR=str(shared))
    return go


def sh(script):
    return ["--", "sh", "-c", script]


def start(run, *args, **more):
    return subprocess.Popen(
        [PROGRAM, "exec", *map(str, args)],
        stdin=more.pop("stdin", subprocess.DEVNULL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=run.environment,
        **more,
    )


def in_time(runs, *claims):
    """runs("500ms") runs something with that timeout, in which a command must have come so far that the claims about
    its end hold. How far it comes in which time is the machine's business: a busy one gets more. The last end."""
    for timeout in ("500ms", "2s", "8s", "32s"):
        done = runs(timeout)
        if all(claim(done) for claim in claims):
            break
    return done


def until(claim, seconds=GUARD):
    """Waits until it holds; generous, because sanitizers and a busy machine are slow."""
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


# ---- attempts and codes ----


def test_exec__runs_a_command_that_succeeds_once_and_says_nothing(run):
    done = run(*sh("echo out; echo err >&2"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "out\n", "err\n")


def test_exec__retries_until_it_succeeds(run):
    done = run(*FAST, "-r", "5", *sh('echo $BECALM_ATTEMPT; test "$BECALM_ATTEMPT" = 2'))
    assert (done.returncode, done.stdout) == (0, "0\n1\n2\n")
    assert done.stderr == (
        "becalm exec: sh exited with 1; retry 1 of 5 in 1ms\nbecalm exec: sh exited with 1; retry 2 of 5 in 2ms\n"
    )


def test_exec__exits_with_the_code_of_the_command_when_attempts_are_spent(run):
    done = run(*FAST, *sh("echo x; exit 7"))
    assert (done.returncode, done.stdout) == (7, "x\nx\nx\n")
    assert done.stderr.endswith(
        "sh exited with 7; gave up after 3 attempts: every attempt that the policy allows was made (attempts_spent)\n"
    )


def test_exec__quiet_says_nothing(run):
    done = run("--quiet", *FAST, "--", "false")
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    "args, code, line",
    [
        (["--timeout", "30ms", "-r", "0", "--", "sleep", "100"], 124, "sleep took too long and was stopped; gave up "),
        (["--deadline", "30ms", "--", "sleep", "100"], 124, "sleep took too long and was stopped; gave up "),
        (["--", "no-such-command"], 127, "no-such-command could not be started: No such file or directory; gave up "),
    ],
)
def test_exec__quiet_says_what_the_command_can_t(run, args, code, line):
    done = run("--quiet", *FAST, *args)
    assert done.returncode == code
    assert done.stderr.startswith(f"becalm exec: {line}") and done.stderr.count("\n") == 1
    assert json.loads(run("--json", *FAST, *args).stderr)["exit_code"] == code  # and there nothing but the report


def test_exec__takes_the_command_s_own_options_without_dashes_before_it(run):
    done = run("-q", "-r", "0", "sh", "-c", "echo $#; exit 4", "-r", "-q", "--", "x")
    assert (done.returncode, done.stdout) == (4, "3\n")


def test_exec__passes_any_number_of_arguments_on(run):
    done = run("--", "sh", "-c", "echo $#", "sh", *range(1000))
    assert done.stdout == "1000\n"


@pytest.mark.parametrize(
    ("codes", "code", "attempts"),
    [("1,75", 75, 3), ("1,75", 2, 1), ("false", 9, 3), ("true", 9, 1), ("2-4", 3, 3), ("2-4", 5, 1), ("fail", 255, 3), ("128-255", 137, 3)],
)
def test_exec__retries_only_the_codes_it_is_told(run, codes, code, attempts):
    done = run(*FAST, "--retry-on", codes, *sh(f"echo x; exit {code}"))
    assert (done.returncode, done.stdout) == (code, "x\n" * attempts)
    assert ("(not_listed)" in done.stderr) == (attempts == 1)


def test_exec__until_it_fails_is_a_choice_of_codes(run):
    done = run("-q", *FAST, "-r", "9", "--success-on", "fail", "--retry-on", "success", *sh("exit $((BECALM_ATTEMPT / 2))"))
    assert done.returncode == 1


def test_exec__another_code_may_be_success(run):
    done = run(*FAST, "--success-on", "0,3", *sh("echo x; exit 3"))
    assert (done.returncode, done.stdout, done.stderr) == (3, "x\n", "")


def test_exec__a_code_of_ours_is_no_success_of_the_command(run):
    args = ["-q", "-r", "0", "--success-on", "1-255"]
    assert run(*args, "--", "no-such-command").returncode == 127
    assert run(*args, "-t", "30ms", "--", "sleep", "1000").returncode == 124
    assert run(*args, *sh("exit 127")).returncode == 127


@pytest.mark.parametrize("codes", ["", "x", "1,", ",1", "256", "5-2", "1-", "-1", "1 2", "0x1"])
def test_exec__a_bad_list_of_codes_is_wrong_usage(run, codes):
    for option in ("--retry-on", "--success-on"):
        done = run(option, codes, "--", "true")
        assert done.returncode == 125 and f"{option}: '{codes}' is no list of exit codes" in done.stderr


def test_exec__a_command_that_is_not_there_is_127_and_not_retried(run):
    done = run(*FAST, "--", "no-such-command")
    assert done.returncode == 127
    assert done.stderr.count("\n") == 1 and "could not be started: No such file or directory" in done.stderr


def test_exec__a_line_for_the_shell_is_told_where_it_belongs(run):
    assert run("--", "ls | wc -l").stderr.endswith("(not_listed); a line for the shell is run by sh: -- sh -c 'LINE'\n")
    assert "sh -c" not in run("--", "no-such-command").stderr


def test_exec__an_option_that_is_nearly_right_is_named(run):
    assert "did you mean '--retries'?" in run("--retry", "2", "--", "true").stderr


def test_exec__a_budget_that_has_earned_nothing_is_explained(run, tmp_path):
    (tmp_path / "earned.yaml").write_text('services: {a: {hosts: ["127.0.0.1:1"], initialDelay: 1ms}}\n')
    done = run("-p", tmp_path / "earned.yaml", "-s", "a", "-r", "3", "--", "false")
    assert done.stderr.endswith("(budget_empty); runs that succeed pay for retries here, see --budget\n")
    tokens = run(*FAST, "-r", "9", "--budget", "t", "--set", "budget.capacity=1", "--set", "budget.refillPerSecond=0", "--", "false")
    assert tokens.stderr.endswith("(budget_empty)\n")


def test_exec__a_file_that_can_t_be_run_is_126(run, tmp_path):
    (tmp_path / "plain").write_text("x")
    assert run("-q", "--", tmp_path / "plain").returncode == 126


def test_exec__what_is_not_there_is_retried_if_asked(run, tmp_path):
    script = tmp_path / "late"
    waiter = start(run, "--delay", "20ms", "--growth", "constant", "-r", "1000", "--retry-on", "127", "--", script)
    script.with_suffix(".new").write_text("#!/bin/sh\necho there\n")
    script.with_suffix(".new").chmod(0o755)
    script.with_suffix(".new").rename(script)
    assert waiter.communicate(timeout=GUARD)[0] == "there\n" and waiter.returncode == 0


@pytest.mark.parametrize("args", [[], ["--"], ["--nonsense", "--", "true"], ["--retries", "x", "--", "true"]])
def test_exec__wrong_usage_is_125(run, args):
    assert run(*args).returncode == 125


def test_exec__a_wait_without_a_unit_is_refused_with_what_is_right(run):
    done = run("--delay", "5", "--", "true")
    assert done.returncode == 125
    assert done.stderr.startswith('becalm exec: --delay: "5" is not a duration; write a number with its unit')
    done = run("--delay", "5s", "--set", "maxRetries=x", "--", "true")
    assert done.stderr.startswith('becalm exec: maxRetries: "x"')  # each as it was typed


def test_exec__an_assignment_without_a_value_is_named_as_typed(run):
    done = run("--set", "maxRetries", "--", "true")
    assert done.returncode == 125
    assert done.stderr.startswith("becalm exec: --set: 'maxRetries' is no assignment; write KEY=VALUE")


@pytest.mark.parametrize("part, key", [("budget", "budget.capacity=10"), ("breaker", "breaker.failureThreshold=5")])
def test_exec__numbers_of_what_has_no_name_are_refused_and_not_ignored(run, part, key):
    done = run("--set", key, "--", "true")
    assert done.returncode == 125
    assert done.stderr.startswith(f"becalm exec: --set {key} needs --{part} NAME")
    assert run("--set", key, f"--{part}", "x", "--", "true").returncode == 0


@pytest.mark.parametrize("wait, said", [("987ms", "987ms"), ("1971ms", "1.97s"), ("36471ms", "36.4s")])
def test_exec__waits_are_told_in_few_digits(run, wait, said):
    child = start(run, "--delay", wait, "--max-delay", "1h", "--jitter", "none", "--", "false")
    assert child.stderr.readline() == f"becalm exec: false exited with 1; retry 1 of 2 in {said}\n"
    child.terminate()
    child.communicate(timeout=GUARD)


def test_exec__no_wait_is_longer_than_max_delay_although_the_first_would_be(run):
    done = run("--max-delay", "2ms", "--jitter", "none", "--", "false")
    assert done.returncode == 1
    assert "retry 1 of 2 in 2ms\n" in done.stderr and "retry 2 of 2 in 2ms\n" in done.stderr


@pytest.mark.parametrize("option", [("--jitter", "full"), ("--growth", "linear"), ("--max-delay", "1s"), ("--multiplier", "3")])
def test_exec__a_list_of_delays_is_waited_as_it_stands(run, option):
    done = run("--delay", "1s,2s", *option, "--", "true")
    assert done.returncode == 125
    assert done.stderr.startswith(f"becalm exec: a list of delays is waited as it stands, without {option[0]}\n")


def test_exec__a_killed_command_is_128_and_its_signal_and_is_retried(run):
    done = run(*FAST, *sh("echo x; kill -9 $$"))
    assert (done.returncode, done.stdout) == (137, "x\n" * 3)
    assert "sh was killed by signal 9 (Killed); retry 1 of 2" in done.stderr


def test_exec__a_code_above_128_alone_is_not_called_a_signal(run):
    done = run(*FAST, "-r", "1", *sh("exit 255"))  # as ssh exits when it can't connect
    assert done.stderr.startswith("becalm exec: sh exited with 255; retry 1 of 1 in 1ms\nbecalm exec: sh exited with 255;")


def test_exec__whose_reader_has_gone_is_not_retried(run, tmp_path):
    out = tmp_path / "codes"
    subprocess.run(
        ["sh", "-c", f"{{ {PROGRAM} exec -- yes; echo $? >{out}; }} | head -1"], env=run.environment, timeout=GUARD, check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL),
    )
    assert out.read_text() == "141\n"


# ---- waits ----


def waits(run, *args):
    report = json.loads(run("--json", *args, "--", "false").stderr)
    return [attempt["waited_ms"] for attempt in report["attempts"][1:]]


def test_exec__a_list_of_delays_is_waited_in_order_and_the_last_one_stays(run):
    measured = waits(run, "--delay", "1ms,20ms,40ms", "-r", "4")
    assert len(measured) == 4
    for waited, least in zip(measured, [1, 20, 40, 40]):
        assert waited >= least


@pytest.mark.parametrize("delays", ["1s,", "1s,x", ",", ",".join(["1s"] * 65)])
def test_exec__a_bad_list_of_delays_is_wrong_usage(run, delays):
    assert run("--delay", delays, "--", "true").returncode == 125


def test_exec__growth_and_jitter_have_the_names_of_the_policy(run):
    for args in (["--growth", "linear"], ["--growth", "constant"], ["--growth", "exponential", "--multiplier", "1.5"]):
        assert len(waits(run, "--delay", "1ms", "--max-delay", "5ms", "--jitter", "none", *args)) == 2
    for jitter in ("full", "none", "equal", "decorrelated", "proportional"):
        assert len(waits(run, "--delay", "1ms", "--max-delay", "2ms", "--jitter", jitter)) == 2
    assert 'jitter: "ful" is not known here; write full, none' in run("--jitter", "ful", "--", "true").stderr


def test_exec__a_delay_beyond_the_built_in_cap_is_fine(run):
    assert run("--delay", "1m", "--", "true").returncode == 0


def test_exec__unlimited_retries_go_beyond_what_a_policy_may_say(run):
    done = run("-q", "--delay", "0ms", "-r", "unlimited", *sh('test "$BECALM_ATTEMPT" = 1100'))
    assert done.returncode == 0


# ---- time ----


def test_exec__an_attempt_that_takes_too_long_is_stopped_and_retried(run):
    script = 'echo $BECALM_ATTEMPT; test "$BECALM_ATTEMPT" = 1 || exec sleep 100'
    done = in_time(lambda timeout: run(*FAST, "--timeout", timeout, "-r", "1", *sh(script)),
                   lambda done: (done.returncode, done.stdout) == (0, "0\n1\n"))  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "0\n1\n")
    assert "sh took too long and was stopped; retry 1 of 1" in done.stderr


def test_exec__when_the_last_attempt_took_too_long_it_is_124(run):
    assert run("-q", *FAST, "--timeout", "30ms", "-r", "1", "--", "sleep", "100").returncode == 124


def test_exec__timeouts_are_not_retried_when_only_other_codes_are(run):
    def hangs(timeout, *args):
        return run(*FAST, "--timeout", timeout, *args, *sh("echo x; exec sleep 100"))

    done = in_time(lambda timeout: hangs(timeout, "--retry-on", "1"), lambda done: done.stdout == "x\n")
    assert (done.returncode, done.stdout) == (124, "x\n")
    done = in_time(lambda timeout: hangs(timeout, "--retry-on", "124", "-r", "1"), lambda done: done.stdout == "x\nx\n")
    assert (done.returncode, done.stdout) == (124, "x\nx\n")


def test_exec__the_deadline_ends_an_attempt_with_124(run):
    done = run("--deadline", "100ms", "--", "sleep", "100")
    assert done.returncode == 124 and "(deadline)" in done.stderr


def test_exec__the_deadline_ends_retries_with_124(run):
    done = run("--delay", "20ms", "--growth", "constant", "-r", "1000", "--deadline", "300ms", "--", "false")
    assert done.returncode == 124 and done.stderr.endswith("(deadline)\n")


def test_exec__the_command_learns_how_much_time_is_left(run):
    script = 'echo "${BECALM_DEADLINE_MS-none}"'
    assert run(*sh(script)).stdout == "none\n"
    assert 50_000 < int(run("--deadline", "1m", *sh(script)).stdout) <= 60_000
    assert int(run("--deadline", "1m", "--timeout", "20s", *sh(script)).stdout) <= 20_000


def test_exec__a_deadline_from_above_counts(run):
    done = run("--deadline", "1m", *sh('echo "$BECALM_DEADLINE_MS"'), env={"BECALM_DEADLINE_MS": "9000"})
    assert int(done.stdout) <= 9000
    done = run("--", "true", env={"BECALM_DEADLINE_MS": "0"})
    assert done.returncode == 124 and "true was not run" in done.stderr
    assert run("--", "true", env={"BECALM_DEADLINE_MS": "soon"}).returncode == 0


def test_exec__who_does_not_hear_term_is_killed(run):
    script = 'trap "" TERM; while :; do sleep 0.05; done'
    done = run("-q", "-r", "0", "--timeout", "500ms", "--kill-after", "50ms", *sh(script))
    assert done.returncode == 124


def alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_exec__a_timeout_ends_grandchildren_too_even_deaf_ones(run, tmp_path):
    note = tmp_path / "pid"
    script = f'sh -c \'trap "" TERM; echo $$ >{note}; while :; do sleep 0.05; done\' & wait'
    done = in_time(lambda timeout: run("-q", "-r", "0", "--timeout", timeout, "--kill-after", "50ms", *sh(script)),
                   lambda _: note.exists() and note.read_text())  # fmt: skip
    assert done.returncode == 124
    until(lambda: not alive(int(note.read_text())))


def test_exec__a_grandchild_gets_its_time_between_term_and_kill(run, tmp_path):
    note = tmp_path / "note"
    tidy = f'trap "echo tidied >>{note}; exit" TERM; sleep 30 >/dev/null 2>&1 & echo ready >{note}; wait'
    done = in_time(lambda timeout: run("-q", "-r", "0", "--timeout", timeout, "--kill-after", "5m", "--", "sh", "-c",
                                       f"sh -c '{tidy}' & wait"),
                   lambda _: note.exists() and "ready" in note.read_text())  # fmt: skip
    assert done.returncode == 124 and note.read_text() == "ready\ntidied\n"


def test_exec__a_stopped_command_hears_the_term_of_its_timeout(run, tmp_path):
    note = tmp_path / "note"
    script = f'trap "echo tidied >{note}; exit" TERM; kill -STOP $$; while :; do sleep 0.02; done'
    done = in_time(lambda timeout: run("-q", "-r", "0", "--timeout", timeout, "--kill-after", "5m", *sh(script)),
                   lambda _: note.exists())  # fmt: skip
    assert done.returncode == 124 and note.read_text() == "tidied\n"


# ---- the environment ----


def test_exec__every_attempt_has_the_same_key_and_every_call_another(run):
    keys = [run("-q", *FAST, *sh("echo $BECALM_IDEMPOTENCY_KEY; exit 1")).stdout.split() for _ in range(2)]
    assert [len(set(of_call)) for of_call in keys] == [1, 1] and keys[0][0] != keys[1][0]
    assert len(keys[0]) == 3 and len(keys[0][0]) == 36


def test_exec__a_key_from_above_is_kept_so_that_nested_calls_have_one(run):
    inner = f"{PROGRAM} exec -q --delay 1ms -r 1 -- sh -c 'echo $BECALM_IDEMPOTENCY_KEY; exit 1'"
    keys = run("-q", *FAST, "-r", "1", *sh(inner)).stdout.split()
    assert len(keys) == 4 and len(set(keys)) == 1
    own = "order-17-" + "x" * 200
    assert run(*sh("echo $BECALM_IDEMPOTENCY_KEY"), env={"BECALM_IDEMPOTENCY_KEY": own}).stdout == own + "\n"
    assert len(run(*sh("echo $BECALM_IDEMPOTENCY_KEY"), env={"BECALM_IDEMPOTENCY_KEY": ""}).stdout) == 37


# ---- standard input ----


def test_exec__a_pipe_is_replayed_to_every_attempt(run):
    text = "".join(f"line {i}\n" for i in range(20_000))
    done = run("-q", *FAST, *sh("sha1sum; exit 1"), stdin=text)
    assert len(done.stdout.splitlines()) == 3 and len(set(done.stdout.splitlines())) == 1


def test_exec__what_one_attempt_did_not_read_the_next_one_does(run):
    done = run("-q", *FAST, "-r", "1", *sh('if [ $BECALM_ATTEMPT = 0 ]; then read a; exit 1; else cat; fi'), stdin="a\nb\n")
    assert done.stdout == "a\nb\n"


def test_exec__an_empty_pipe_ends_at_once_in_every_attempt(run):
    done = run("-q", *FAST, *sh("cat; echo end; exit 1"), stdin="")
    assert done.stdout == "end\n" * 3


def test_exec__more_input_than_the_cap_passes_through_and_is_not_replayed(run):
    text = "x" * 300_000
    done = run(*FAST, "--stdin-max", "100kB", *sh("wc -c; exit 1"), stdin=text)
    assert (done.returncode, done.stdout.strip()) == (1, "300000")
    assert done.stderr.endswith("its standard input was longer than --stdin-max (not_replayable)\n")


def test_exec__the_cap_of_input_is_the_one_that_was_asked_for(run):
    for length, attempts in [(100_000, 3), (100_001, 1)]:
        done = run("-q", *FAST, "--stdin-max", "100kB", *sh("wc -c; exit 1"), stdin="x" * length)
        assert done.stdout.split() == [str(length)] * attempts


def test_exec__a_file_is_rewound_whatever_its_size(run, tmp_path):
    (tmp_path / "file").write_text("skip\n" + "y" * 300_000)
    script = f"{{ read skipped; {PROGRAM} exec -q --delay 1ms --stdin-max 10 -- sh -c 'cat | wc -c; exit 1'; }} <{tmp_path}/file"
    done = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, encoding="utf-8", env=run.environment, timeout=GUARD)
    assert done.stdout.split() == ["300000"] * 3


def test_exec__without_standard_input_there_is_nothing_to_read(run):
    done = run("--no-stdin", "--", "cat", stdin="x")
    assert (done.returncode, done.stdout) == (0, "")


def test_exec__a_command_that_closes_its_input_is_not_disturbed(run):
    done = run(*sh("exec <&-; sleep 0.05; echo fine"), stdin="x" * 500_000)
    assert (done.returncode, done.stdout) == (0, "fine\n")


def test_exec__closed_descriptors_harm_nothing(run):
    script = f"{PROGRAM} exec -- sh -c 'exit 5' <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", script], env=run.environment, timeout=GUARD).returncode == 5


# ---- output ----

NOISY = 'echo "out $BECALM_ATTEMPT"; echo "err $BECALM_ATTEMPT" >&2; test "$BECALM_ATTEMPT" = 1'


def test_exec__shows_all_attempts_or_the_last_alone_or_standard_output_once(run):
    shown = {word: run("-q", *FAST, "--output", word, *sh(NOISY)) for word in ("all", "last", "once")}
    assert [(done.stdout, done.stderr) for done in shown.values()] == [
        ("out 0\nout 1\n", "err 0\nerr 1\n"),
        ("out 1\n", "err 1\n"),
        ("out 1\n", "err 0\nout 0\nerr 1\n"),
    ]
    assert run("--output", "first", "--", "true").returncode == 125


@pytest.mark.parametrize("args", [["--output", "last"], ["--output", "last", "--output-max", "1KiB"], ["--fail-if", "never"]])
def test_exec__two_streams_that_go_to_one_place_stay_in_order(run, args):
    script = "i=0; while test $i -lt 500; do echo out $i; echo err $i >&2; i=$((i + 1)); done"
    done = subprocess.run(
        [PROGRAM, "exec", *args, *sh(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=run.environment,
        timeout=GUARD,
        check=True,
    )
    assert done.stdout == "".join(f"out {i}\nerr {i}\n" for i in range(500))


def test_exec__what_is_too_much_to_keep_is_shown_and_not_retried(run):
    done = run(*FAST, "--output", "last", "--output-max", "1kB", *sh("seq 100000; exit 1"))
    assert done.returncode == 1 and done.stdout == "".join(f"{i}\n" for i in range(1, 100_001))
    assert done.stderr.endswith("it printed more than --output-max, which was shown (answer_delivered)\n")


def test_exec__a_reader_that_goes_away_ends_the_command_also_through_us(run):
    script = f"{PROGRAM} exec -q --output last --output-max 1kB -- yes | head -1"
    done = subprocess.run(
        ["sh", "-c", script], stdout=subprocess.PIPE, encoding="utf-8", env=run.environment, timeout=GUARD,
        preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL),
    )
    assert done.stdout == "y\n"


def test_exec__without_a_reader_the_code_is_still_the_command_s(run):
    process = start(run, "--output", "last", "-r", "0", *sh("read x; echo out; exit 6"), stdin=subprocess.PIPE)
    process.stdout.close()
    process.stderr.close()
    process.stdin.close()
    assert process.wait(timeout=GUARD) == 6


@pytest.mark.parametrize("args", [["--output", "last"], ["--output", "once"], ["--fail-if", "never"]])
def test_exec__output_that_can_t_be_written_is_a_failure_of_ours(run, args):
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "exec", "-q", *args, "--", "echo", "hi"], stdout=full, stderr=subprocess.PIPE,
                              encoding="utf-8", env=run.environment, timeout=GUARD)
    assert (done.returncode, done.stderr) == (
        125, "becalm exec: the output of echo can't be written: No space left on device\n",
    )


def test_exec__a_grandchild_that_keeps_the_pipe_open_holds_nobody_up(run, tmp_path):
    note = tmp_path / "pid"
    done = run("-q", *FAST, "--output", "last", "-r", "1", *sh(f"sleep 1000 & echo $! >>{note}; echo out; exit 1"))
    assert (done.returncode, done.stdout) == (1, "out\n")
    pids = [int(pid) for pid in note.read_text().split()]
    assert len(pids) == 2
    for pid in pids:
        assert alive(pid)  # a background process of the command may live on
        os.kill(pid, signal.SIGKILL)


def test_exec__what_a_grandchild_prints_right_after_is_taken_too(run):
    """Within a moment, which a busy machine may need for less: it is taken when it comes in time."""
    script = "(sleep 0.02; echo late) & echo early"
    for _ in range(20):
        done = run("--output", "last", *sh(script))
        assert done.stdout in ("early\nlate\n", "early\n")
        if done.stdout != "early\n":
            return
    raise AssertionError("it is never taken")


# ---- patterns ----


def test_exec__a_failure_is_retried_only_if_its_output_matches(run):
    for stream in ("", ">&2"):
        done = run(*FAST, "--retry-if", "reset|timed? ?out", *sh(f"echo connection reset by peer {stream}; exit 1"))
        assert "gave up after 3 attempts" in done.stderr
    done = run(*FAST, "--retry-if", "^reset", *sh("echo connection reset; exit 1"))
    assert "gave up after 1 attempt:" in done.stderr and "(not_listed)" in done.stderr


def test_exec__codes_and_pattern_together_are_either(run):
    for code, line, attempts in [(75, "x", 3), (1, "busy", 3), (1, "x", 1)]:
        done = run(*FAST, "--retry-on", "75", "--retry-if", "busy", *sh(f"echo {line}; exit {code}"))
        assert done.stdout == f"{line}\n" * attempts


def test_exec__output_may_turn_a_success_into_a_failure(run):
    done = run(*FAST, "--fail-if", "^ERROR", *sh("echo ERROR; exit 0"))
    assert (done.returncode, done.stdout) == (1, "ERROR\n" * 3)
    assert "sh exited with 0, but its output matches --fail-if; retry 1 of 2 in 1ms\n" in done.stderr
    assert run(*FAST, "--fail-if", "^ERROR", *sh("echo no ERROR")).returncode == 0


def test_exec__output_may_forbid_retries(run):
    done = run(*FAST, "--stop-if", "denied", *sh("printf 'permission denied'; exit 1"))
    assert done.stdout == "permission denied" and "1 attempt: its output matches --stop-if (stopped)" in done.stderr


def test_exec__output_passes_as_it_comes_while_it_is_searched(run):
    process = start(run, "--fail-if", "never", *sh("echo first; read x; echo $x"), stdin=subprocess.PIPE)
    assert process.stdout.readline() == "first\n"  # it waits for us, so this was not kept back
    assert process.communicate("second\n", timeout=GUARD)[0] == "second\n"


def test_exec__lines_without_end_and_bytes_of_any_kind_are_fine(run):
    script = "head -c 1000000 /dev/zero; printf '\\377\\n'; head -c 5000 /dev/zero | tr '\\0' a; printf needle"
    done = subprocess.run(
        [PROGRAM, "exec", "-q", "--delay", "1ms", "-r", "1", "--fail-if", "needle", *sh(script)],
        stdout=subprocess.PIPE, env=run.environment, timeout=GUARD,
    )
    assert done.returncode == 1 and done.stdout == 2 * (b"\0" * 1_000_000 + b"\xff\n" + b"a" * 5000 + b"needle")


def test_exec__a_match_is_found_wherever_in_a_long_line_it_lies(run):
    for before in range(4090, 4097):
        done = run("-q", "-r", "0", "--fail-if", "need+le", *sh(f"head -c {before} /dev/zero | tr '\\0' a; echo needle; :"))
        assert done.returncode == 1, before


def test_exec__a_line_has_one_beginning_and_one_end_however_long_it_is(run):
    long = "head -c 10000 /dev/zero | tr '\\0' a; echo; :"
    for pattern, code in [("^a{100}", 1), ("a$", 1), ("^$", 0), ("^b|b$", 0)]:
        assert run("-q", "-r", "0", "--fail-if", pattern, *sh(long)).returncode == code, pattern
    pieces = "head -c 2048 /dev/zero | tr '\\0' c; head -c 2048 /dev/zero | tr '\\0' a; echo bd"
    assert run("-q", "-r", "0", "--fail-if", "^a|^b|a$", *sh(pieces)).returncode == 0


def test_exec__a_dot_matches_any_byte(run):
    for locale in ("C.UTF-8", "C"):
        done = subprocess.run([PROGRAM, "exec", "-q", "-r", "0", "--fail-if", "^x.y$", *sh("printf 'x\\377y\\n'")],
                              stdout=subprocess.DEVNULL, env={**run.environment, "LC_ALL": locale}, timeout=GUARD)
        assert done.returncode == 1
    assert run("-q", "-r", "0", "--fail-if", "f\u00fcr", *sh("echo f\u00fcr")).returncode == 1


def test_exec__a_pattern_that_is_none_is_wrong_usage(run):
    done = run("--retry-if", "a(b", "--", "true")
    assert done.returncode == 125 and "--retry-if: 'a(b': " in done.stderr


# ---- signals ----


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_exec__a_signal_ends_the_waiting_at_once(run, number):
    process = start(run, "--delay", "1h", "--jitter", "none", "--", "false")
    assert "retry 1 of 2 in 1h" in process.stderr.readline()
    process.send_signal(number)
    _, err = process.communicate(timeout=GUARD)
    assert process.returncode == 128 + number and err == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_exec__a_signal_is_passed_on_to_the_whole_group(run, number, tmp_path):
    script = f'sh -c "echo \\$\\$ >{tmp_path}/pid; echo ready; exec sleep 1000"; echo never'
    process = start(run, *FAST, *sh(script))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=GUARD)
    assert process.returncode == 128 + number and out == ""
    until(lambda: not alive(int((tmp_path / "pid").read_text())))


def test_exec__a_command_that_ends_tidily_when_told_keeps_its_own_code(run):
    process = start(run, *FAST, *sh('trap "echo bye; exit 3" TERM; sleep 30 >/dev/null 2>&1 & echo ready; wait'))
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    assert process.communicate(timeout=GUARD)[0] == "bye\n" and process.returncode == 3


DEAF = 'trap "" INT TERM HUP QUIT; '


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_exec__who_does_not_hear_that_signal_is_killed_with_its_group(run, number, tmp_path):
    deaf = "while :; do sleep 0.05; done"
    script = f"sh -c 'echo $$ >{tmp_path}/pid; echo ready; {deaf}' & {deaf}"
    process = start(run, *FAST, "--kill-after", "50ms", *sh(DEAF + script))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=GUARD)
    assert (process.returncode, out, err) == (128 + signal.SIGKILL, "", "")
    until(lambda: not alive(int((tmp_path / "pid").read_text())))


def test_exec__who_is_told_to_end_may_take_longer_than_at_a_timeout(run):
    process = start(run, *FAST, *sh('trap "sleep 6; exit 3" TERM; echo ready; while :; do sleep 0.05; done'))
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    process.communicate(timeout=GUARD)
    assert process.returncode == 3


def test_exec__who_is_killed_after_a_signal_has_not_timed_out(run):
    process = start(run, *FAST, "--kill-after", "50ms", "--timeout", "1m", "--json", *sh(DEAF + "echo ready; sleep 1000"))
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    report = json.loads(process.communicate(timeout=GUARD)[1])
    assert (report["reason"], report["exit_code"], report["last_code"]) == ("cancelled", 137, 137)


def test_exec__other_signals_are_passed_on_and_end_nothing(run):
    process = start(run, *FAST, *sh('trap "echo usr1; exit 0" USR1; sleep 30 >/dev/null 2>&1 & echo ready; wait'))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGUSR1)
    assert process.communicate(timeout=GUARD)[0] == "usr1\n" and process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_exec__an_ignored_signal_stays_ignored_as_nohup_wants(run, number):
    script = 'echo ready; read x; echo "went on"; test "$BECALM_ATTEMPT" = 1'  # a call that was told to end has no retry
    process = start(run, *FAST, *sh(script), stdin=subprocess.PIPE,
                    preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out = process.communicate("x\n", timeout=GUARD)[0]
    assert (process.returncode, out) == (0, "went on\nready\nwent on\n")


def test_exec__an_ignored_signal_does_not_end_a_wait(run):
    process = start(run, "--delay", "300ms", "--jitter", "none", "-r", "1", *sh('test "$BECALM_ATTEMPT" = 1'),
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert "retry 1 of 1" in process.stderr.readline()
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=GUARD)
    assert process.returncode == 0


def test_exec__the_command_s_signals_are_as_we_found_them(run):
    script = "import signal; print(signal.pthread_sigmask(0, []), signal.getsignal(signal.SIGUSR2).name)"
    plain = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, encoding="utf-8").stdout
    assert run("--", sys.executable, "-c", script).stdout == plain


def asleep():
    """Both ends of a pipe that is full."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        pass
    os.set_blocking(writer, True)
    return reader, writer


@pytest.mark.parametrize(
    "args",
    [
        ["-r", "9", *FAST, *sh("echo $$ >$PIDS; exit 1")],
        ["--fail-if", "never", *sh("echo $$ >$PIDS; exec yes")],
        ["--output", "last", *sh("echo $$ >$PIDS; exec yes")],
        ["--output", "last", *sh("head -c 300000 /dev/zero; echo $$ >$PIDS; exec sleep 1000")],
    ],
)
def test_exec__a_reader_that_sleeps_keeps_nobody_from_ending_us(run, tmp_path, args):
    reader, writer = asleep()
    pids = tmp_path / "pids"
    report = tmp_path / "report"
    going = subprocess.Popen(
        [PROGRAM, "exec", "--report", report, *args],
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=writer,
        env={**run.environment, "PIDS": str(pids)},
    )
    os.close(writer)
    until(lambda: pids.exists() and pids.read_text())
    if "-r" in args:  # the command is to end first, and the line about it to be written
        until(lambda: not pathlib.Path(f"/proc/{pids.read_text().strip()}").exists())
    time.sleep(0.1)  # until it waits for the reader, if it does
    going.terminate()
    assert going.wait(GUARD) == 143
    assert json.loads(report.read_text())["attempt_count"] == 1  # none began after the signal
    os.close(reader)


def test_exec__a_reader_that_sleeps_does_not_stop_the_clock(run, tmp_path):
    pids = tmp_path / "pids"
    args = ["--output", "last", "--output-max", "100KiB", "-t", "2s", "-r", "0"]
    going = start(run, *args, *sh(f"echo $$ >{pids}; exec yes"))
    until(lambda: pids.exists() and pids.read_text())
    until(lambda: not pathlib.Path(f"/proc/{pids.read_text().strip()}").exists())
    out = going.communicate(timeout=GUARD)[0]
    assert going.returncode == 124 and len(out) > 100 << 10 and set(out) == set("y\n")


# ---- a terminal ----


class Terminal:
    """A command with a terminal of its own, as a person sees it."""

    def __init__(self, run, *command):
        self.pid, self.fd = pty.fork()
        self.seen = ""
        self.before = ""  # the text before the last expected one
        if self.pid == 0:
            os.execvpe(command[0], [str(word) for word in command], {**run.environment, "PS1": "@ ", "TERM": "dumb"})

    def expect(self, text):
        end = time.monotonic() + GUARD
        while text not in self.seen:
            assert time.monotonic() < end and select.select([self.fd], [], [], GUARD)[0], self.seen
            try:
                self.seen += os.read(self.fd, 4096).decode()
            except OSError:  # the other side has closed it
                assert text in self.seen, self.seen
        self.before, self.seen = self.seen.split(text, 1)

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def test_exec__a_command_can_read_the_terminal_in_every_attempt(run):
    typed = Terminal(run, PROGRAM, "exec", *FAST, *sh('echo "ask $BECALM_ATTEMPT"; read x; echo "got $x"; exit 1'))
    for attempt, word in enumerate(["one", "two", "three"]):
        typed.expect(f"ask {attempt}\r\n")
        typed.type(word + "\n")
        typed.expect(f"got {word}\r\n")
    typed.expect("gave up after 3 attempts")
    assert typed.end() == 1


# No shell forks here at the moment in which a key is pressed: dash loses signals then, with or without us.
def test_exec__ctrl_c_ends_everything_whether_the_command_has_the_terminal_or_not(run):
    for script in ("echo ready; exec sleep 1000", "read x; echo ready; exec sleep 1000"):
        typed = Terminal(run, PROGRAM, "exec", "-r", "9", *sh(script))
        typed.type("x\n")
        typed.expect("ready\r\n")
        typed.type("\x03")
        assert typed.end() == -signal.SIGINT  # a shell calls it 130, and ends its loop


@pytest.mark.parametrize("reads", [False, True])
def test_exec__ctrl_z_stops_it_and_fg_goes_on(run, tmp_path, reads):
    script, go = tmp_path / "job.py", tmp_path / "go"
    os.mkfifo(go)
    ask = "input()" if reads else "0"
    script.write_text(f"{ask}; print('ready', flush=True); open('{go}').read(); {ask}; print('end')")
    shell = Terminal(run, "bash", "--norc", "--noediting", "-i")
    shell.expect("@ ")
    shell.type(f"{PROGRAM} exec -- {sys.executable} {script}\n")
    if reads:
        shell.type("x\n")
    shell.expect("ready\r\n")
    shell.type("\x1a")
    shell.expect("Stopped")
    shell.expect("@ ")
    shell.type("fg\n")
    shell.expect("job.py\r\n")  # now the job has the terminal, and not the shell
    go.write_text("on")
    if reads:
        shell.type("y\n")
    shell.expect("end\r\n")
    shell.type("exit\n")
    shell.end()


@pytest.mark.parametrize("reads", [False, True])
def test_exec__ctrl_z_stops_nothing_where_no_shell_could_let_it_go_on(run, tmp_path, reads):
    go = tmp_path / "go"
    os.mkfifo(go)
    ask = "read x; " if reads else ""
    typed = Terminal(run, PROGRAM, "exec", *sh(f"{ask}echo ready; exec cat {go}"))
    if reads:
        typed.type("x\n")
    typed.expect("ready\r\n")
    typed.type("\x1a")
    typed.expect("^Z")
    go.write_text("end\n")
    typed.expect("end\r\n")
    assert typed.end() == 0


def test_exec__a_command_with_the_terminal_that_stops_itself_gives_it_back(run):
    shell = Terminal(run, "bash", "--norc", "--noediting", "-i")
    shell.expect("@ ")
    shell.type(f"{PROGRAM} exec -- sh -c 'read x; kill -STOP $$; echo $x again'\n")
    shell.type("here\n")
    shell.expect("Stopped")  # as top(1) does when Ctrl-Z is typed
    shell.expect("@ ")
    shell.type("fg\n")
    shell.expect("here again\r\n")
    shell.type("exit\n")
    shell.end()


def test_exec__a_terminal_that_a_shell_took_meanwhile_is_left_to_it(run, tmp_path):
    go = tmp_path / "go"
    shell = Terminal(run, "bash", "--norc", "--noediting", "-i")
    shell.expect("@ ")
    wait = f"until test -e {go}; do sleep 0.01; done"
    shell.type(f"{PROGRAM} exec -d 100s -- sh -c 'read x; echo $x $PPID.; {wait}; exit 1'\n")
    shell.type("process\n")
    shell.expect("process\r\nprocess ")
    shell.expect(".")
    number = int(shell.before)
    os.kill(number, signal.SIGSTOP)
    shell.expect("Stopped")
    shell.expect("@ ")
    shell.type("bg\n")
    shell.expect("&\r\n")
    shell.expect("@ ")  # bash is at its prompt: nothing of its own comes between the lines below
    go.touch()
    shell.expect("retry 1 of 2")
    for word in ("one", "two", "three"):
        shell.type(f"echo {word}\n")
        shell.expect(f"echo {word}\r\n{word}\r\n@ ")
    os.kill(number, signal.SIGTERM)
    shell.type("exit\n")
    shell.end()


def test_exec__the_terminal_is_as_before_when_a_command_was_killed_at_its_prompt(run):
    ask = 'if test "$BECALM_ATTEMPT" = 0; then read x; stty -echo; kill -9 $$; fi; stty -a; exec sleep 1000'
    typed = Terminal(run, PROGRAM, "exec", *FAST, *sh(ask))
    typed.type("x\n")
    typed.expect("retry 1 of 2")
    typed.expect(" echo ")  # and not " -echo "
    typed.type("\x03")
    typed.end()


def test_exec__a_command_hears_of_a_new_size_of_the_terminal(run):
    script = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done"
    typed = Terminal(run, PROGRAM, "exec", *sh(script))
    typed.expect("ready\r\n")
    fcntl.ioctl(typed.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    typed.expect("33 77\r\n")
    assert typed.end() == 0


def test_exec__one_inside_another_can_read_the_terminal(run):
    typed = Terminal(run, PROGRAM, "exec", "--", PROGRAM, "exec", *sh('read x; echo "got $x"'))
    typed.type("word\n")
    typed.expect("got word\r\n")
    assert typed.end() == 0


@pytest.mark.parametrize(
    "key, script, code",
    [
        ("\x1c", "ulimit -c 0; read x; echo ready; exec sleep 1000", 128 + signal.SIGQUIT),
        ("\x03", "trap 'exit 130' INT; read x; echo ready; read y", -signal.SIGINT),
    ],
)
def test_exec__a_key_that_ends_the_command_with_the_terminal_ends_us_too(run, key, script, code):
    typed = Terminal(run, PROGRAM, "exec", "-r", "9", *FAST, *sh(script))
    typed.type("x\n")
    typed.expect("ready\r\n")
    typed.type(key)
    assert typed.end() == code


# ---- shared budgets and breakers ----

BUDGET = ["--budget", "b", "--set", "budget.capacity=3", "--set", "budget.refillPerSecond=0"]


def test_exec__a_budget_is_one_for_all_processes(run):
    first = run(*FAST, "-r", "9", *BUDGET, *sh("echo x; exit 1"))
    second = run(*FAST, "-r", "9", *BUDGET, *sh("echo x; exit 1"))
    assert (first.stdout, second.stdout) == ("x\n" * 4, "x\n")
    assert "(budget_empty)" in first.stderr and "(budget_empty)" in second.stderr
    assert run(*FAST, "-r", "1", "--budget", "other", *sh("echo x; exit 1")).stdout == "x\nx\n"


def test_exec__a_budget_may_come_back_slower_than_one_a_second(run):
    hourly = ["--budget", "hourly", "--set", "budget.capacity=2", "--set", "budget.refillEvery=6m"]
    assert run(*FAST, "-r", "9", *hourly, *sh("echo x; exit 1")).stdout == "x\n" * 3
    assert run(*FAST, "-r", "9", *hourly, *sh("echo x; exit 1")).stdout == "x\n"
    quick = ["--budget", "quick", "--set", "budget.capacity=2", "--set", "budget.refillEvery=1ms"]
    assert run(*FAST, "-r", "9", "--delay", "5ms", *quick, *sh("echo x; exit 1")).stdout == "x\n" * 10


def test_exec__a_hundred_processes_at_once_stay_within_one_budget(run):
    args = [*FAST, "-q", "-r", "3", "--budget", "b", "--set", "budget.capacity=40", "--set", "budget.refillPerSecond=0"]
    processes = [start(run, *args, *sh("echo $BECALM_ATTEMPT; exit 1")) for _ in range(100)]
    attempts = "".join(process.communicate(timeout=GUARD)[0] for process in processes).split()
    assert attempts.count("0") == 100
    assert len(attempts) == 140  # exactly: all tokens were spent, and no more


def test_exec__a_process_killed_at_any_moment_leaves_the_budget_usable(run):
    args = ["-q", "--delay", "1ms", "--growth", "constant", "-r", "1000", "--budget", "b", "--set", "budget.capacity=60",
            "--set", "budget.refillPerSecond=0"]
    count = run.shared.parent / "count"
    processes = [start(run, *args, *sh(f"echo x >>{count}; exit 1")) for _ in range(10)]
    until(lambda: count.exists() and len(count.read_text()) > 20)
    for process in processes:
        process.kill()
        process.communicate()
    done = run(*args, *sh(f"echo x >>{count}; exit 1"))
    assert done.returncode == 1 and "can't be used" not in done.stderr
    until(lambda: len(count.read_text().split()) >= 11)
    assert len(count.read_text().split()) <= 71  # eleven first attempts and sixty retries


def test_exec__a_token_of_a_retry_that_was_never_sent_comes_back(run):
    process = start(run, "--delay", "1h", "--jitter", "none", *BUDGET, "--", "false")
    process.stderr.readline()
    process.terminate()
    process.communicate(timeout=GUARD)
    assert run("-q", *FAST, "-r", "9", *BUDGET, *sh("echo x; exit 1")).stdout == "x\n" * 4


def test_exec__other_numbers_keep_what_is_left(run):
    run("-q", *FAST, "-r", "9", *BUDGET, "--", "false")
    other = ["--budget", "b", "--set", "budget.capacity=100", "--set", "budget.refillPerSecond=0"]
    done = run(*FAST, *other, *sh("echo x; exit 1"))
    assert done.stdout == "x\n"
    assert "budget 'b' had other settings until now; its present state is kept" in done.stderr
    assert "other numbers" not in run(*FAST, *other, *sh("exit 1")).stderr


BREAKER = ["--breaker", "db", "--set", "breaker.mode=consecutive", "--set", "breaker.failureThreshold=2",
           "--set", "breaker.waitDurationInOpenState=1h"]


def test_exec__a_breaker_that_others_opened_refuses_with_125(run):
    for _ in range(2):
        assert run("-q", "-r", "0", *BREAKER, "--", "false").returncode == 1
    done = run("-q", *BREAKER, *sh("echo never"))  # the command can't say it itself
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == "becalm exec: sh was not run: the circuit breaker is open (breaker_open)\n"


@pytest.mark.parametrize(
    "command", [["no-such-command"], ["sh", "-c", "no-such-command"], ["/etc/passwd"], ["sh", "-c", "kill -PIPE $$"]]
)
def test_exec__what_says_nothing_about_the_service_does_not_open_its_breaker(run, command):
    breaker = ["-q", "-r", "0", *BREAKER]
    for _ in range(3):
        assert run(*breaker, "--", *command).returncode in (126, 127, 141)
    for _ in range(3):
        run(*breaker, "--", "false")
    assert run(*breaker, "--", "true").returncode == 125  # as a failure does


def test_exec__a_command_that_hangs_until_the_deadline_is_a_failure_to_the_breaker(run):
    breaker = ["-q", *BREAKER]
    for _ in range(2):
        assert run(*breaker, "-D", "50ms", "--", "sleep", "1000").returncode == 124
    assert run(*breaker, "--", "true").returncode == 125


def test_exec__a_breaker_lets_successes_through(run):
    for _ in range(5):
        assert run("-q", "-r", "0", *BREAKER, "--", "true").returncode == 0
        run("-q", "-r", "0", *BREAKER, "--", "false")


# Ways to damage the file: the change of its bytes, and the message.
DAMAGE = {
    "empty": (lambda data: b"", "it is too short"),
    "cut": (lambda data: data[:300], "it does not have the size that it says"),
    "longer": (lambda data: data + b"x", "it does not have the size that it says"),
    "text": (lambda data: b"hello\n" * 200, "it does not begin like a shared file of becalm"),
    "zeros": (lambda data: bytes(len(data)), "it does not begin like a shared file of becalm"),
    "no version": (lambda data: data[:8] + b"\0\0\0\0" + data[12:], "its head is damaged"),
    "newer": (lambda data: data[:8] + b"\xff\0\0\0" + data[12:], "it is of a newer version of becalm"),
    "kind": (lambda data: data[:12] + b"\2\0\0\0" + data[16:], "it is of another kind"),
    "policy": (lambda data: data[:72] + b"\xff" * 72 + data[144:], "its head is damaged"),
    "tokens": (lambda data: data[:256] + b"\xff" * 8 + data[264:], "its contents are damaged"),
    "window": (lambda data: data[:320] + b"\xff" * 32 + data[352:], "its contents are damaged"),
    "rest": (lambda data: data[:256] + b"\xff" * (len(data) - 256), "its contents are damaged"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_exec__a_damaged_file_is_said_in_one_line_and_the_command_runs_once(run, damage):
    change, said = DAMAGE[damage]
    run("-q", *FAST, *BUDGET, "--", "false")
    file = run.shared / "b.budget"
    data = change(file.read_bytes())
    file.write_bytes(data)
    done = run(*FAST, *BUDGET, *sh("echo x; exit 1"))
    assert (done.returncode, done.stdout) == (1, "x\n")
    assert done.stderr.splitlines()[0] == (
        f"becalm exec: budget 'b' can't be used: {file}: {said} (remove it to begin anew); "
        "the command runs once, without retries"
    )
    assert file.read_bytes() == data  # the file stays as it is, for the operator
    assert run("--quiet", *FAST, *BUDGET, "--", "true").returncode == 0


def test_exec__what_can_t_be_made_is_said_without_advice_to_remove_it(run):
    (run.shared / ".new").mkdir()  # where a new file is written
    done = run(*BUDGET, *FAST, *sh("echo x; exit 1"))
    assert (done.stdout, done.stderr.splitlines()[0]) == (
        "x\n",
        f"becalm exec: budget 'b' can't be used: {run.shared}/b.budget: it can't be made: File exists; "
        "the command runs once, without retries",
    )


def test_exec__a_file_of_before_the_last_boot_is_made_anew(run):
    run("-q", *FAST, "-r", "9", *BUDGET, "--", "false")
    file = run.shared / "b.budget"
    data = file.read_bytes()
    file.write_bytes(data[:32] + b"00000000" + data[40:])
    done = run("-q", *FAST, "-r", "9", *BUDGET, *sh("echo x; exit 1"))
    assert (done.stdout, done.stderr) == ("x\n" * 4, "")


def test_exec__a_file_of_an_older_version_is_made_anew_and_said_once(run):
    run("-q", *FAST, "-r", "9", *BUDGET, "--", "false")
    file = run.shared / "b.budget"
    data = file.read_bytes()
    file.write_bytes(data[:8] + b"\1\0\0\0" + b"\xff" * 500)  # of another size, too
    done = run(*FAST, "-r", "9", *BUDGET, *sh("echo x; exit 1"))
    assert done.stdout == "x\n" * 4
    assert done.stderr.startswith("becalm exec: budget 'b' was of an older version of becalm; it begins anew\n")
    assert "older" not in run(*FAST, *BUDGET, "--", "false").stderr
    assert len(file.read_bytes()) == len(data)


def test_exec__a_file_that_others_may_open_is_not_used(run):
    run("-q", *BUDGET, "--", "true")
    (run.shared / "b.budget").chmod(0o666)
    assert "other users may open it" in run(*BUDGET, "--", "true").stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_exec__a_file_or_directory_of_another_user_is_not_used(run):
    run("-q", *BUDGET, "--", "true")
    os.chown(run.shared / "b.budget", 65534, 65534)
    assert "it belongs to another user" in run(*BUDGET, "--", "true").stderr
    os.chown(run.shared, 65534, 65534)
    done = run(*BUDGET, "--", "true")
    assert done.returncode == 0 and f"{run.shared} is not this user's alone (mode 0700)" in done.stderr


def test_exec__links_and_what_is_no_file_are_not_followed(run, tmp_path):
    file = run.shared / "b.budget"
    file.symlink_to(tmp_path / "elsewhere")
    assert "it is a link" in run(*BUDGET, "--", "true").stderr and not (tmp_path / "elsewhere").exists()
    file.unlink()
    os.mkfifo(file, 0o600)
    assert "it is no plain file" in run(*BUDGET, "--", "true").stderr
    file.unlink()
    file.mkdir()
    assert "can't be used" in run(*BUDGET, "--", "true").stderr


def test_exec__a_file_that_is_cut_while_in_use_ends_the_retries_and_kills_nobody(run):
    file = run.shared / "b.budget"
    done = run(*FAST, "-r", "9", *BUDGET, *sh(f"echo x; : >{file}; exit 4"))
    assert (done.returncode, done.stdout) == (4, "x\n")
    assert done.stderr.splitlines()[0] == f"becalm exec: sh: {file}: it was cut short while in use; there are no more retries"


def test_exec__any_name_is_one_file_in_the_directory(run):
    for name in ("..", "../x", "a/b", ".hidden", "with space", "\u00e4"):
        assert run("--budget", name, "--", "true").stderr == ""
    assert sorted(os.listdir(run.shared)) == sorted(
        ["%2E..budget", "%2E.%2Fx.budget", "a%2Fb.budget", "%2Ehidden.budget", "with%20space.budget", "%C3%A4.budget"]
    )
    assert run("--budget", "", "--", "true").returncode == 125
    assert run("--budget", "x" * 81, "--", "true").returncode == 125


def test_exec__a_file_that_is_damaged_while_in_use_ends_the_retries(run):
    file = run.shared / "b.budget"
    scramble = f"dd if=/dev/urandom of={file} bs=$(stat -c %s {file}) count=1 conv=notrunc status=none"
    done = run(*FAST, "-r", "9", *BUDGET, *sh(f"echo x; {scramble}; exit 4"))
    assert (done.returncode, done.stdout) == (4, "x\n")
    assert done.stderr.splitlines()[0] == f"becalm exec: sh: {file}: it was damaged while in use; there are no more retries"


def test_exec__processes_that_come_with_other_numbers_stay_within_one_budget(run):
    def args(capacity):
        return [*FAST, "--growth", "constant", "-q", "-r", "9", "--budget", "b", "--set", f"budget.capacity={capacity}",
                "--set", "budget.refillPerSecond=0"]

    processes = [start(run, *args(5 + i % 2), *sh("echo $BECALM_ATTEMPT; exit 1")) for i in range(20)]
    attempts = "".join(process.communicate(timeout=GUARD)[0] for process in processes).split()
    assert attempts.count("0") == 20
    assert 1 <= len(attempts) - 20 <= 6


def test_exec__a_file_that_is_removed_while_in_use_is_followed_by_all(run):
    go = run.shared.parent / "go"
    args = [*FAST, "-q", "-r", "9", "--budget", "b", "--set", "budget.capacity=5", "--set", "budget.refillPerSecond=0"]
    script = f"echo $BECALM_ATTEMPT; while ! test -e {go}; do sleep 0.02; done; exit 1"
    processes = [start(run, *args, *sh(script)) for _ in range(10)]
    for process in processes:
        assert process.stdout.readline() == "0\n"
    (run.shared / "b.budget").unlink()
    go.touch()
    retries = "".join(process.communicate(timeout=GUARD)[0] for process in processes).split()
    assert len(retries) == 5  # of the new file; no process spends from the old one, or from its own


def test_exec__the_shared_directory_may_be_named_by_an_option(run, tmp_path):
    (tmp_path / "other").mkdir(mode=0o700)
    assert run(*BUDGET, "--shared-dir", tmp_path / "other", "--", "true").stderr == ""
    assert (os.listdir(tmp_path / "other"), os.listdir(run.shared)) == (["b.budget"], [])


def test_exec__a_shared_directory_that_is_not_there_or_open_to_others_is_not_used(run, tmp_path):
    done = run(*FAST, *BUDGET, *sh("echo x; exit 1"), env={"BECALM_SHARED_DIR": str(tmp_path / "gone")})
    assert done.stdout == "x\n" and f"can't open {tmp_path}/gone: No such file" in done.stderr
    run.shared.chmod(0o755)
    done = run(*FAST, *BUDGET, *sh("echo x; exit 1"))
    assert done.stdout == "x\n" and f"{run.shared} is not this user's alone (mode 0700)" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become two users")
def test_exec__users_of_one_group_share_a_directory_of_it(run):
    def run_as(user, *command):
        return subprocess.run(
            ["setpriv", f"--reuid={user}", "--regid=4242", "--clear-groups", *command], stdin=subprocess.DEVNULL, cwd="/",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=GUARD, env=run.environment,
        )

    if run_as(4001, "test", "-x", PROGRAM).returncode != 0:
        pytest.skip("the program is where other users can't run it")
    with tempfile.TemporaryDirectory() as directory:  # not below tmp_path, which no other user may enter
        os.chown(directory, 0, 4242)
        os.chmod(directory, 0o2770)
        command = [PROGRAM, "exec", *FAST, "-r", "9", "--shared-dir", directory, *BUDGET, *sh("echo x; exit 1")]
        first, second = run_as(4001, *command), run_as(4002, *command)
    assert (first.stdout, second.stdout) == ("x\n" * 4, "x\n")
    assert "(budget_empty)" in second.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become two users")
@pytest.mark.parametrize("runtime", [False, True])
def test_exec__a_directory_that_another_user_made_first_takes_no_retries_away(run, runtime):
    user = 400000 + os.getpid()  # of no other user
    folder = pathlib.Path(f"/tmp/becalm-{user}")
    session = pathlib.Path(tempfile.mkdtemp())
    os.chown(session, user, user)
    environ = {key: value for key, value in run.environment.items() if key not in ("BECALM_SHARED_DIR", "XDG_RUNTIME_DIR")}
    if runtime:
        environ["XDG_RUNTIME_DIR"] = str(session)

    def run_as(*command):
        return subprocess.run(
            ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command], stdin=subprocess.DEVNULL,
            cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=GUARD, env=environ,
        )

    try:
        if run_as("test", "-x", PROGRAM).returncode != 0:
            pytest.skip("the program is where other users can't run it")
        folder.mkdir(mode=0o755)  # by another user: /tmp is sticky, so only that user can undo it
        folder.with_name(folder.name + ".1").symlink_to("/etc")
        command = [PROGRAM, "exec", *FAST, "-r", "9", *BUDGET, *sh("echo x; exit 1")]
        first, second = run_as(*command), run_as(*command)
        assert (first.stdout, second.stdout) == ("x\n" * 4, "x\n"), first.stderr
        assert "(budget_empty)" in second.stderr, "both share it"
        assert (session / "becalm/b.budget").exists() == runtime
        assert folder.with_name(folder.name + ".2").exists() == (not runtime)
    finally:
        folder.with_name(folder.name + ".1").unlink(missing_ok=True)
        for path in (folder, folder.with_name(folder.name + ".2"), session):
            shutil.rmtree(path, ignore_errors=True)


# ---- a policy file ----

POLICY = """
version: 1
gatewayRetries: false
services:
  db:
    maxRetries: 1
    initialDelay: 1ms
    attemptTimeout: 20s
    budget: {kind: tokens, capacity: 2, refillPerSecond: 0}
    breaker: {mode: consecutive, failureThreshold: 50}
    endpoints:
      migrate: {match: {path: /migrate}, maxRetries: 3, budget: {level: both, capacity: 100}, retryOn: [reset]}
"""


@pytest.fixture
def policy(tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return file


def test_exec__takes_everything_from_a_policy(run, policy):
    done = run("--policy", policy, "--service", "db", *sh("echo $((BECALM_DEADLINE_MS > 10000)); exit 1"))
    assert done.stdout == "0\n" * 2 or done.stdout == "1\n" * 2
    assert sorted(os.listdir(run.shared)) == ["db.breaker", "db.budget"]
    assert "(attempts_spent)" in done.stderr
    run("-p", policy, "-s", "db", "--", "false")
    assert "(budget_empty)" in run("-p", policy, "-s", "db", "--", "false").stderr


def test_exec__what_a_policy_does_not_write_does_not_bound_a_command(run, tmp_path):
    file = tmp_path / "silent.yaml"
    file.write_text("services: {quiet: {}, timed: {attemptTimeout: 9s}}\n")
    for service, told in (("quiet", ""), ("timed", "set")):
        assert run("--policy", file, "--service", service, *sh("echo ${BECALM_DEADLINE_MS:+set}")).stdout == told + "\n"


def test_exec__an_endpoint_may_have_two_budgets(run, policy):
    done = run("-p", policy, "-s", "db/migrate", *sh("echo x; exit 1"))
    assert (done.stdout, "(budget_empty)" in done.stderr) == ("x\n" * 3, True)  # the service's two tokens
    assert sorted(os.listdir(run.shared)) == ["db%2Fmigrate.breaker", "db%2Fmigrate.budget", "db.budget"]


def test_exec__names_in_a_policy_may_have_slashes_and_dots_of_their_own(run, tmp_path):
    file = tmp_path / "names.yaml"
    file.write_text(
        "version: 1\nservices:\n  eu/pay.v2:\n    maxRetries: 1\n    initialDelay: 1ms\n    budget: {kind: none}\n"
        "    endpoints: {admin/refund: {match: {path: /refund}, maxRetries: 3}}\n"
    )
    for target, retries in (("eu/pay.v2", 1), ("eu/pay.v2/admin/refund", 3)):
        args = ["-p", file, "-s", target, "--set", "breaker.enabled=false"]
        assert run(*args, *sh("echo x; exit 1")).stdout == "x\n" * (1 + retries)
        assert run(*args, "-r", "0", *sh("echo x; exit 1")).stdout == "x\n"


def test_exec__options_win_over_the_policy(run, policy):
    done = run("-p", policy, "-s", "db", "-r", "0", "--set", "budget.kind=none", *sh("echo x; exit 1"))
    assert done.stdout == "x\n" and sorted(os.listdir(run.shared)) == ["db.breaker"]


def test_exec__timeouts_are_retried_as_the_policy_says(run, policy):
    args = ["-q", "-p", policy, "-r", "1"]
    for where, out in (("db", "x\nx\n"), ("db/migrate", "x\n")):
        hangs = lambda timeout: run(*args, "--timeout", timeout, "-s", where, *sh("echo x; exec sleep 100"))  # noqa: E731
        assert in_time(hangs, lambda done: done.stdout == out).stdout == out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--service", "db"], "--service needs --policy FILE"),
        (["--policy", "policy.yaml"], "--policy needs --service NAME"),
        (["--policy", "policy.yaml", "--service", "bd"], "policy.yaml has no service or endpoint 'bd'"),
        (["--policy", "policy.yaml", "--service", "db/x"], "policy.yaml has no service or endpoint 'db/x'"),
        (["--policy", "none.yaml", "--service", "db"], "none.yaml"),
        (["--set", "maxRetrys=1"], "maxRetries"),
        (["--delay", "1s", "--max-delay", "1ms"], "--max-delay is below --delay"),
        (["--set", "budget.kind=concurrency", "--budget", "b"], "concurrency counts calls in progress"),
    ],
)
def test_exec__what_is_wrong_with_a_policy_is_said_and_nothing_runs(run, policy, args, said):
    done = run(*args, *sh("echo never"))
    assert (done.returncode, done.stdout) == (125, "") and said in done.stderr


# ---- the report ----


def test_exec__the_report_tells_every_attempt(run):
    done = run("--json", *FAST, "-r", "1", *sh("exit $((7 + BECALM_ATTEMPT))"))
    report = json.loads(done.stderr)
    assert (report["command"], report["reason"], report["exit_code"], report["attempt_count"]) == (
        "sh", "attempts_spent", 8, 2,
    )
    assert [(a["attempt"], a["outcome"], a["code"]) for a in report["attempts"]] == [(0, "broken", 7), (1, "broken", 8)]
    assert (report["have"], report["need"]) == (2, 2)


def test_exec__the_report_may_go_to_a_file(run, tmp_path):
    file = tmp_path / "report.json"
    done = run("--report", file, "--name", "job", *FAST, "--growth", "constant", "-r", "unlimited", *sh("exit $((BECALM_ATTEMPT < 20))"))
    report = json.loads(file.read_text())
    assert (done.returncode, report["command"], report["reason"], report["attempt_count"]) == (0, "job", "ok", 21)
    assert [a["attempt"] for a in report["attempts"]] == [0, 1, 2, 3, 4, 5, 6, 20]
    assert done.stderr.startswith("becalm exec: job exited with 1; retry 1 in ")
    done = run("--report", tmp_path / "no" / "such", "-r", "0", *sh("exit 3"))
    assert done.returncode == 3


def test_exec__metrics_of_a_run_go_to_a_file_for_node_exporter(run, tmp_path):
    file = tmp_path / "job.prom"
    before = int(time.time())
    done = run("--textfile", file, "--name", 'a "job"\\n\u00e4', "-q", *FAST, "-r", "1", *sh("exit $((7 + BECALM_ATTEMPT))"))
    assert done.returncode == 8
    label = 'command="a \\"job\\"\\\\n??"'
    rows = dict(line.rsplit(" ", 1) for line in file.read_text().splitlines() if not line.startswith("#"))
    moment = float(rows.pop(f"becalm_exec_last_end_timestamp_seconds{{{label}}}"))
    assert before <= moment <= time.time() and float(rows.pop(f"becalm_exec_last_duration_seconds{{{label}}}")) > 0
    assert rows == {
        f"becalm_exec_last_success{{{label}}}": "0",
        f"becalm_exec_last_exit_code{{{label}}}": "8",
        f"becalm_exec_last_attempts{{{label}}}": "2",
        f'becalm_exec_last_reason{{{label},reason="attempts_spent"}}': "1",
    }
    if shutil.which("promtool"):
        checked = subprocess.run(["promtool", "check", "metrics"], input=file.read_bytes(), capture_output=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr
    assert run("--textfile", file, *FAST, "--", "true").returncode == 0
    assert 'becalm_exec_last_success{command="true"} 1\n' in file.read_text() and {each.name for each in tmp_path.iterdir()} <= {"job.prom", "shared"}
    done = run("--textfile", tmp_path / "no" / "such", "-r", "0", *sh("exit 3"))
    assert done.returncode == 3 and "No such file" in done.stderr


def test_exec__the_report_of_what_was_not_run_has_no_code(run):
    done = run("--json", "--", "true", env={"BECALM_DEADLINE_MS": "0"})
    report = json.loads(done.stderr)
    assert (done.returncode, report["reason"], report["last_code"], report["attempts"]) == (124, "deadline", None, [])


# ---- --list-budgets ----


def listed(run, *more):
    done = run("--list-budgets", "--json", *more)
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    assert page["directory"] == str(run.shared)
    return {(each["name"], each["kind"]): each for each in page["shared"]}


def test_exec__lists_what_is_shared_and_what_is_left(run):
    assert run("--list-budgets").stdout == f"{run.shared}: nothing is shared\n"
    slow = ["--set", "budget.capacity=10", "--set", "budget.refillEvery=24h"]
    run(*FAST, "-r", "3", "--budget", "pay/night ly", *slow, *sh("exit 1"))
    opens = ["--breaker", "db", "--set", "breaker.mode=consecutive", "--set", "breaker.failureThreshold=1", "--set", "breaker.waitDurationInOpenState=1h"]
    run("-r", "0", *opens, *sh("exit 1"))
    budget = listed(run)["pay/night ly", "budget"]
    assert 7 <= budget.pop("left") < 7.05, "a day brings one back"
    assert budget == {"name": "pay/night ly", "kind": "budget", "file": f"{run.shared}/pay%2Fnight%20ly.budget", "cap": 10}
    breaker = listed(run)["db", "breaker"]
    assert breaker["state"] == "OPEN" and 1000 < breaker["retestInSeconds"] < 6000
    lines = run("--list-budgets").stdout.splitlines()
    assert lines[0] == f"{run.shared}: shared budgets and breakers"
    assert lines[1].split(maxsplit=2)[:2] == ["db", "breaker"] and re.search(r" OPEN, tries again in \d+(\.\d+)?[mhs]", lines[1])
    assert lines[2].endswith("budget   7.0 of 10.0 retries left") and len(lines) == 3
    run(*FAST, "-r", "7", "--budget", "pay/night ly", *slow, *sh("exit 1"))
    assert run("--list-budgets").stdout.splitlines()[2].endswith("0.0 of 10.0 retries left: no retry now")


def test_exec__listing_changes_nothing_and_tells_what_is_not_fit(run):
    run("-r", "0", "--budget", "good", *sh("exit 0"))
    (run.shared / "cut.budget").write_bytes(b"becalm")
    (run.shared / "cut.budget").chmod(0o600)
    (run.shared / "notes.txt").write_text("mine")
    (run.shared / "link.breaker").symlink_to("good.budget")
    (run.shared / "bell%07.budget").write_bytes(b"x")
    (run.shared / "is%.budget").write_bytes(b"x")  # no name becomes such a file

    def files():
        return {path.name: (path.lstat().st_ino, path.lstat().st_mode, path.lstat().st_size, path.lstat().st_mtime_ns) for path in run.shared.iterdir()}

    before = files()
    page = listed(run)
    assert set(page) == {("good", "budget"), ("cut", "budget"), ("link", "breaker"), ("bell\a", "budget")}
    assert "too short" in page["cut", "budget"]["error"] and "link" in page["link", "breaker"]["error"]
    assert "error" not in page["good", "budget"]
    assert "bell?" in run("--list-budgets").stdout
    assert files() == before


def test_exec__listing_makes_no_directory_and_runs_nothing(becalm, run, tmp_path):
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    done = becalm("exec", "--list-budgets", "--shared-dir", nowhere / "none")
    assert done.returncode == 125 and "No such file" in done.stderr
    done = run("--list-budgets", *sh("touch made"), cwd=tmp_path)
    assert done.returncode == 125 and "runs no command" in done.stderr and not (tmp_path / "made").exists()
