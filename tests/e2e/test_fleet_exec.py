# SPDX-License-Identifier: MIT
"""`becalm exec` leases retries from a real Redis: all processes of a machine are one instance there."""

import os
import subprocess
import time

import pytest
from conftest import PROGRAM
from host import wait_until
from store import Redis, redis  # noqa: F401

RULES = "maxRetries: 3, initialDelay: 20ms, maxDelay: 30ms, breaker: {enabled: false}, budget: {kind: none, shared: {percent: 20}}"
POT = "becalm:{default}:p:s:200000:100000"


@pytest.fixture
def shared(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o700)
    return folder


def policy(folder, url, more=""):
    path = folder / "becalm.yaml"
    path.write_text(f"store: {{redis: '{url}', timeout: 60s{more}}}\nservices: {{s: {{{RULES}}}}}\n")
    return path


def command(path, *words):
    return [PROGRAM, "exec", "--policy", str(path), "--service", "s", "--quiet", "--", *words]


def run(path, shared, *words):
    environment = {**os.environ, "BECALM_SHARED_DIR": str(shared)}
    return subprocess.run(command(path, *words), capture_output=True, text=True, timeout=120, env=environment)


def instances(redis):  # noqa: F811
    return [key for key in redis.says("KEYS", "becalm:{default}:r:*").split(b"\r\n") if key.startswith(b"becalm")]


def test_exec__processes_of_a_machine_are_one_instance_of_the_store(tmp_path, shared, redis):  # noqa: F811
    path = policy(tmp_path, redis.url)
    began = 0
    while redis.says("EXISTS", POT) != b":1" or began < 20:
        assert run(path, shared, "sh", "-c", "sleep 0.05").returncode == 0
        began += 1
        assert began < 400, "nobody tells the store"
    assert len(instances(redis)) == 1
    assert [name for name in os.listdir(shared) if name.endswith(".lease")]


def test_exec__a_machine_has_what_others_do_not_need(tmp_path, shared, redis):  # noqa: F811
    """Another machine's thousand first attempts pay for more retries than the failures of this one earn."""
    path = policy(tmp_path, redis.url)
    script = tmp_path / "count"
    script.write_text(f'#!/bin/sh\necho x >> {tmp_path}/runs\nsleep 0.02\nexit 1\n')
    script.chmod(0o755)
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    environment = {**os.environ, "BECALM_SHARED_DIR": str(other)}
    fine = subprocess.Popen(
        ["sh", "-c", 'while :; do "$@"; done', "sh", *command(path, "sleep", "0.02")], env=environment
    )
    try:
        wait_until(lambda: redis.says("EXISTS", POT) == b":1")
        calls = 0

        def retries():
            return len((tmp_path / "runs").read_text().split()) - calls

        end = time.monotonic() + 120
        while time.monotonic() < end:
            assert run(path, shared, str(script)).returncode == 1
            calls += 1
            if calls >= 20 and retries() > calls * 0.2 + 4:
                break
        assert retries() > calls * 0.2 + 4, (retries(), calls)
    finally:
        fine.kill()
        fine.wait()
    assert len(instances(redis)) == 2


def test_exec__without_its_store_a_machine_lives_on_its_own_share(tmp_path, shared, redis):  # noqa: F811
    path = policy(tmp_path, redis.url)
    redis.kill()
    runs = tmp_path / "runs"
    for _ in range(40):
        assert run(path, shared, "sh", "-c", f"echo x >> {runs}; sleep 0.02; exit 3").returncode == 3
    retries = len(runs.read_text().split()) - 40
    assert 0 < retries <= 40 * 0.2 + 2


def test_exec__a_store_that_hangs_delays_no_command(tmp_path, shared, redis):  # noqa: F811
    path = policy(tmp_path, redis.url)
    redis.pause()
    done = run(path, shared, "true")  # its timeout is a minute
    redis.go_on()
    assert done.returncode == 0 and done.stderr == ""


def test_exec__a_store_that_can_t_be_used_is_an_error_of_the_policy(tmp_path, shared):
    path = policy(tmp_path, "redis://127.0.0.1:1", ", passwordFile: missing")
    done = run(path, shared, "true")
    assert done.returncode == 125 and "store.passwordFile" in done.stderr


def test_exec__a_lease_that_somebody_damaged_is_not_used(tmp_path, shared, redis):  # noqa: F811
    path = policy(tmp_path, redis.url)
    assert run(path, shared, "true").returncode == 0
    (file,) = [name for name in os.listdir(shared) if name.endswith(".lease")]
    with open(shared / file, "r+b") as lease:
        lease.seek(256)
        lease.write(b"\xff" * 64)
    done = run(path, shared, "sh", "-c", "exit 4")
    assert done.returncode == 4 and "can't be used" in done.stderr and "without retries" in done.stderr
