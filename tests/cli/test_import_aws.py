# SPDX-License-Identifier: MIT
"""becalm import aws: ~/.aws/config, against Python's own reader of such files and the SDKs' documentation."""

import configparser
import pathlib

import pytest
from policy_reader import Policy

FILE = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import" / "aws" / "config"
STANDARD = {"gateway-error", "500", "429", "reset", "connect-failure", "refused-stream", "timeout"}


def called(becalm, text, *options, code=0):
    done = becalm("import", *options, "-", stdin=text)
    assert done.returncode == code, done.stderr
    done.call = Policy(becalm, done.stdout + "services: {a: {hosts: ['a:80']}}\n").call("a", "/") if done.stdout else None
    return done


def test_import_aws__the_default_profile_is_called_as_the_oracle_says(becalm):
    oracle = configparser.ConfigParser()
    oracle.read_string(FILE.read_text(encoding="utf-8"))
    call = called(becalm, FILE.read_text(encoding="utf-8"), "--strict").call
    assert call["attempts"] == oracle.getint("default", "max_attempts")
    assert oracle.get("default", "retry_mode") == "standard"
    assert call["retry_on"] == STANDARD and call["idempotent"] and call["deadline"] is None and call["attempt_timeout"] is None
    values = call["values"]
    assert (values["budget.kind"], values["budget.capacity"], values["budget.retryCost"], values["budget.timeoutCost"]) == ("aws", "500", "5", "10")
    assert (values["initialDelay"], values["maxDelay"], values["jitter"], values["rate.enabled"]) == ("1s", "20s", "full", "false")


@pytest.mark.parametrize("mode, attempts", [("standard", 3), ("adaptive", 3), ("legacy", 5)])
def test_import_aws__each_mode_has_its_own_attempts(becalm, mode, attempts):
    done = called(becalm, f"[default]\nretry_mode = {mode}\n")
    assert done.call["attempts"] == attempts
    assert (done.call["values"]["rate.enabled"] == "true") == (mode == "adaptive")
    assert ("509" in done.call["retry_on"]) == (mode == "legacy")


def test_import_aws__one_profile_becomes_the_policy(becalm):
    text = "[profile a]\nmax_attempts = 7\nretry_mode = standard\n[default]\nmax_attempts = 2\nretry_mode = standard\n"
    done = called(becalm, text)
    assert done.call["attempts"] == 2 and "[profile a] has no equivalent: one profile becomes the policy: [default]" in done.stderr
    assert called(becalm, "[profile a]\nmax_attempts = 7\n").call["attempts"] == 7


@pytest.mark.parametrize(
    "text, warning", [("retry_mode = standard", "(500) is retried once per call"), ("max_attempts = 2", "legacy differs from SDK to SDK")]
)
def test_import_aws__what_would_differ_is_a_warning_and_strict_fails(becalm, text, warning):
    assert warning in called(becalm, f"[default]\n{text}\n", "--strict", code=1).stderr


@pytest.mark.parametrize(
    "text, error", [("retry_mode = often", "is neither standard, adaptive nor legacy"), ("max_attempts = 0", "is below 1"), ("max_attempts = x", "is not a whole number")]
)
def test_import_aws__what_is_broken_is_said(becalm, text, error):
    done = becalm("import", "-", stdin=f"[default]\n{text}\n")
    assert done.returncode == 1 and error in done.stderr
