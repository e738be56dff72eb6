# SPDX-License-Identifier: MIT
"""becalm import resilience4j: application.yml and application.properties, against an oracle that reads them by the rules
of Resilience4j's documentation, without a look at the importer."""

import pathlib
import re

import pytest
import yaml
from policy_reader import Policy, seconds

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import" / "resilience4j"
CORPUS = sorted(path for path in FOLDER.iterdir())
NO_ANSWER = {"connect-failure", "refused-stream", "reset", "timeout"}
EXCEPTIONS = {"IOException": NO_ANSWER, "HttpServerErrorException": {"5xx"}, "TimeoutException": {"timeout"}}
EXCEPTIONS["ConnectException"] = {"connect-failure", "refused-stream"}


def plain(name):
    return re.sub("[-_]", "", name).lower()


def leaves(node, path=()):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*path, *str(key).split(".")))
        if not node:
            yield path, None
    else:
        yield path, node


def load(path):
    """{(module, configs or instances, name): {property: value}}"""
    if path.suffix == ".properties":
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
        found = [(key.split("."), value) for key, value in (line.split("=", 1) for line in lines)]
    else:
        found = [(list(path), value) for path, value in leaves(yaml.safe_load(path.read_text(encoding="utf-8")))]
    out = {}
    for parts, value in found:
        if parts[0] == "resilience4j":
            value = re.sub(r"\$\{\w+:(.*)\}", r"\1", value) if isinstance(value, str) else value
            out.setdefault((plain(parts[1]), parts[2], parts[3]), {})[plain(parts[4])] = value
    return out


class Instance:
    def __init__(self, all_, module, name):
        self.own = all_.get((module, "instances", name))
        base = (self.own or {}).get("baseconfig", "default")
        self.base = all_.get((module, "configs", base), {})

    def get(self, key, otherwise):
        return {**self.base, **(self.own or {})}.get(plain(key), otherwise)


def iso(text):
    return float(text[2:-1]) if str(text).startswith("PT") else seconds(text)


def expected(all_, name):
    retry, limiter = Instance(all_, "retry", name), Instance(all_, "timelimiter", name)
    attempts = int(retry.get("maxAttempts", 3)) if retry.own is not None else 1
    listed = retry.get("retryExceptions", None)
    listed = listed.split(",") if isinstance(listed, str) else listed
    on = {"5xx"} if listed is None else set().union(*(EXCEPTIONS[each.rsplit(".", 1)[1]] for each in listed))
    return {
        "attempts": attempts,
        "attempt_timeout": iso(limiter.get("timeoutDuration", "1s")) if limiter.own is not None else None,
        "deadline": None,
        **({"retry_on": on} if attempts > 1 else {}),
    }


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.suffix[1:])
def test_import_resilience4j__the_policy_does_what_the_oracle_says(becalm, path):
    done = becalm("import", "--strict", path.name, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    policy, all_ = Policy(becalm, done.stdout), load(path)
    names = {name for _, kind, name in all_ if kind == "instances"}
    assert names
    for name in names:
        got = policy.call(name, "/")
        assert got is not None, name
        for key, value in expected(all_, name).items():
            assert got[key] == value, (name, key, value, got)


@pytest.fixture
def imported(becalm):
    def run(text, *options, code=0):
        done = becalm("import", "resilience4j", *options, "-", stdin=text)
        assert done.returncode == code, done.stderr
        done.values = Policy(becalm, done.stdout).call("a", "/")["values"] if done.stdout else None
        return done

    return run


def test_import_resilience4j__waits_are_constant_unless_they_grow(imported):
    values = imported("resilience4j.retry.instances.a: {waitDuration: 20s}").values
    assert (values["growth"], values["initialDelay"], values["maxDelay"], values["jitter"]) == ("constant", "20s", "20s", "none")
    grows = imported("resilience4j.retry.instances.a: {enableExponentialBackoff: true}").values
    assert (grows["growth"], grows["multiplier"], grows["initialDelay"], grows["maxDelay"]) == ("exponential", "1.5", "500ms", "24h")


def test_import_resilience4j__a_breaker_has_its_own_defaults_and_sees_attempts(imported):
    values = imported("resilience4j: {circuitbreaker: {instances: {a: {slidingWindowSize: 7}}}}").values
    assert (values["breaker.per"], values["breaker.slidingWindowSize"], values["breaker.minimumNumberOfCalls"]) == ("attempt", "7", "100")


@pytest.mark.parametrize(
    "text, limit, queue",
    [
        ("bulkhead: {instances: {a: {maxConcurrentCalls: 9}}}", "9", "0"),
        ("bulkhead: {instances: {a: {}}}", "25", "0"),
        ("thread-pool-bulkhead: {instances: {a: {maxThreadPoolSize: 4, queueCapacity: 6}}}", "4", "6"),
    ],
)
def test_import_resilience4j__bulkheads_are_fixed_limits(imported, text, limit, queue):
    values = imported("resilience4j:\n  " + text).values
    assert (values["limit.kind"], values["limit.max"], values["gate.maxQueue"]) == ("fixed", limit, queue)


@pytest.mark.parametrize(
    "text, warning",
    [
        ("resilience4j.ratelimiter.instances.a: {limitForPeriod: 5}", "calls in progress are limited, not calls a second"),
        ("resilience4j.retry.instances.a: {retryExceptions: [com.shop.OutOfStock]}", "its meaning on the wire is not known"),
        ("resilience4j.retry.instances.a: {maxAttempts: '${TIMES}'}", "it is a variable without a value"),
    ],
)
def test_import_resilience4j__what_would_differ_is_a_warning_and_strict_fails(imported, text, warning):
    assert warning in imported(text).stderr
    assert warning in imported(text, "--strict", code=1).stderr


def test_import_resilience4j__what_is_broken_is_said_with_its_place(imported):
    done = imported("resilience4j.retry.instances.a:\n  waitDuration: soon\n", code=1)
    assert '<stdin>:2:17: error: retry.waitDuration: "soon" is not a duration; write it like 500ms [bad-value]' in done.stderr
