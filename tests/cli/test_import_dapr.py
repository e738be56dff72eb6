# SPDX-License-Identifier: MIT
"""becalm import dapr: Resiliency, against an oracle that reads it by Dapr's documentation, without a look at the importer."""

import pathlib
import re

import pytest
import yaml
from policy_reader import Policy, seconds

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import" / "dapr"
NO_ANSWER = {"connect-failure", "refused-stream", "reset", "timeout"}
GRPC = {4: "deadline-exceeded", 14: "unavailable"}


def numbers(text):
    for part in text.split(","):
        low, _, high = part.partition("-")
        yield from range(int(low), int(high or low) + 1)


def expected(policies, target):
    retry = policies["retries"].get(target.get("retry"), {"maxRetries": 0})
    matching = retry.get("matching", {})
    on = NO_ANSWER | {str(code) for code in numbers(matching["httpStatusCodes"])} if matching else set()
    if "599" in on:
        on = {code for code in on if not code.startswith("5")} | {"5xx"}
    on |= {GRPC[code] for code in numbers(matching.get("gRPCStatusCodes", "4,14"))} if "gRPCStatusCodes" in matching else set()
    return {
        "attempts": 1 + retry["maxRetries"],
        "attempt_timeout": seconds(policies["timeouts"].get(target.get("timeout"))),
        "deadline": None,
        **({"retry_on": on, "idempotent": True} if on else {}),
    }


def test_import_dapr__each_app_is_called_as_the_oracle_says(becalm):
    done = becalm("import", "--strict", "shop.yaml", cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    spec = yaml.safe_load((FOLDER / "shop.yaml").read_text(encoding="utf-8"))["spec"]
    policy = Policy(becalm, done.stdout)
    for name, target in spec["targets"]["apps"].items():
        got = policy.call(name, "/")
        for key, value in expected(spec["policies"], target).items():
            assert got[key] == value, (name, key, value, got)
        breaker, values = spec["policies"]["circuitBreakers"].get(target.get("circuitBreaker")), got["values"]
        if breaker is not None:
            sign, number = re.fullmatch(r"consecutiveFailures (>=?) (\d+)", breaker.get("trip", "consecutiveFailures > 5")).groups()
            assert values["breaker.mode"] == "consecutive" and values["breaker.per"] == "attempt"
            assert int(values["breaker.failureThreshold"]) == int(number) + (sign == ">")
            assert int(values["breaker.successThreshold"]) == breaker.get("maxRequests", 1)
            assert seconds(values["breaker.waitDurationInOpenState"]) == seconds(breaker.get("timeout", "60s"))
        retry = spec["policies"]["retries"].get(target.get("retry"))
        if retry and retry.get("policy") == "exponential":
            assert (values["growth"], values["initialDelay"], values["multiplier"], values["maxDelay"]) == ("exponential", "500ms", "1.5", retry["maxInterval"])
        elif retry:
            assert (values["growth"], values["initialDelay"], values["jitter"]) == ("constant", retry.get("duration", "5s"), "none")


FORM = """
apiVersion: dapr.io/v1alpha1
kind: Resiliency
metadata: {{name: a}}
spec:
  policies: {{{0}}}
  targets: {{apps: {{a: {{{1}}}}}}}
"""


@pytest.mark.parametrize(
    "policies, target, warning",
    [
        ("retries: {r: {matching: {httpStatusCodes: '503'}}}", "retry: r", "the source retries without end"),
        ("retries: {r: {maxRetries: 1}}", "retry: r", "every 4xx is retried there"),
        ("retries: {r: {maxRetries: 3, matching: {httpStatusCodes: '500'}}}", "retry: r", "(500) is retried once per call"),
        ("retries: {r: {maxRetries: 1, matching: {httpStatusCodes: '302'}}}", "retry: r", "only statuses from 400 to 599"),
        ("circuitBreakers: {c: {trip: totalFailures > 5}}", "circuitBreaker: c", "only consecutiveFailures > N is read"),
        ("circuitBreakers: {c: {interval: 8s}}", "circuitBreaker: c", "not forgotten after a time"),
        ("timeouts: {t: 5s}", "timeout: u", "no policy of the object has this name"),
    ],
)
def test_import_dapr__what_would_differ_is_a_warning_and_strict_fails(becalm, policies, target, warning):
    done = becalm("import", "--strict", "-", stdin=FORM.format(policies, target))
    assert done.returncode == 1 and warning in done.stderr, done.stderr
    assert becalm("import", "-", stdin=FORM.format(policies, target)).returncode == 0


def test_import_dapr__a_broken_value_ends_nothing_but_itself(becalm):
    done = becalm("import", "-", stdin=FORM.format("timeouts: {t: soon}, retries: {r: {maxRetries: 2, matching: {httpStatusCodes: '503,many'}}}", "timeout: t, retry: r"))
    assert done.returncode == 1 and '"soon" is not a duration' in done.stderr and '"many" is no code' in done.stderr
    assert Policy(becalm, done.stdout).call("a", "/")["attempts"] == 3


@pytest.mark.parametrize("most, first, cap", [("100ms", "100ms", "100ms"), ("500ms", "500ms", "500ms"), ("1/s", "500ms", "1m")])
def test_import_dapr__no_first_wait_is_above_the_longest(becalm, most, first, cap):
    text = f"""apiVersion: dapr.io/v1alpha1
kind: Resiliency
metadata: {{name: r}}
spec:
  policies: {{retries: {{r: {{policy: exponential, maxInterval: {most}, maxRetries: 3}}}}}}
  targets: {{apps: {{a: {{retry: r}}}}}}
"""
    done = becalm("import", "-", stdin=text)
    assert f"initialDelay: {first}" in done.stdout and f"maxDelay: {cap}" in done.stdout, done.stdout + done.stderr
    assert (done.returncode == 1) == ("/" in most)
    assert becalm("check", "-", stdin=done.stdout).returncode == 0
