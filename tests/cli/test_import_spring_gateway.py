# SPDX-License-Identifier: MIT
"""becalm import spring-cloud-gateway: routes of an application.yml, against an oracle that reads them by its reference,
without a look at the importer."""

import pathlib

import pytest
import yaml
from policy_reader import Policy, seconds

FILE = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import" / "spring-cloud-gateway" / "application.yml"
HOSTS = ["shop.example", "eu.shop.example", "elsewhere.example"]
PATHS = ["/", "/orders", "/orders/1", "/ordersx", "/orders/early", "/orders/early/1", "/orders/late", "/carts/1", "/reports", "/reports/1"]
STATUSES = {"BAD_GATEWAY": "502"}


def path_fits(pattern, path):
    return path == pattern[:-3] or path.startswith(pattern[:-2]) if pattern.endswith("/**") else path == pattern


def predicate_fits(text, host, path, method):
    name, _, values = text.partition("=")
    values = [value.strip() for value in values.split(",")]
    if name == "Path":
        return any(path_fits(value, path) for value in values)
    if name == "Host":
        return any(host == value[3:] or host.endswith(value[2:]) for value in values)
    return method in values


def retry_of(route):
    for each in route.get("filters", []):
        if isinstance(each, str) and each.startswith("Retry="):
            return {"retries": int(each[6:])}
        if not isinstance(each, str):
            return each["args"]
    return None


def expected(gateway, host, path, method):
    for route in sorted(gateway["routes"], key=lambda route: route.get("order", 0)):
        if not all(predicate_fits(each, host, path, method) for each in route["predicates"]):
            continue
        retry = retry_of(route) or {}
        retried = retry and method in retry.get("methods", "GET").split(",")
        millis = route.get("metadata", {}).get("response-timeout")
        want = {
            "attempts": 1 + retry["retries"] if retried else 1,
            "attempt_timeout": millis / 1000 if millis else seconds(gateway["httpclient"]["response-timeout"]),
            "connect_timeout": gateway["httpclient"]["connect-timeout"] / 1000,
            "deadline": None,
        }
        if retried:
            extra = {STATUSES.get(each, each) for each in retry.get("statuses", "").split(",") if each}
            want["retry_on"] = {"5xx", "connect-failure", "refused-stream", "reset", "timeout"} | extra
            want["idempotent"] = "POST" in retry.get("methods", "GET")
        return route["uri"], want
    return None, None


def test_import_spring_gateway__each_request_is_called_as_the_oracle_says(becalm):
    done = becalm("import", "--strict", FILE.name, cwd=FILE.parent)
    assert done.returncode == 0, done.stderr
    gateway = yaml.safe_load(FILE.read_text(encoding="utf-8"))["spring"]["cloud"]["gateway"]
    policy, hosts = Policy(becalm, done.stdout), {"http://orders.internal:8081": "orders.internal:8081", "https://reports.internal": "https://reports.internal:443"}
    hosts |= {"http://early.internal": "early.internal:80", "http://late.internal": "late.internal:80", "lb://web": None}
    for host in HOSTS:
        for method in ("GET", "POST", "PUT"):
            for path in PATHS:
                uri, want = expected(gateway, host, path, method)
                got = policy.call(host, path, method)
                assert got is not None, (method, host, path)
                assert got["hosts"] == ([hosts[uri]] if hosts[uri] else []), (method, host, path, uri, got)
                for key, value in want.items():
                    assert got[key] == value, (method, host, path, key, value, got)


def imported(becalm, route, *options, code=0):
    done = becalm("import", *options, "-", stdin=f"spring.cloud.gateway.routes:\n- {route}\n")
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize(
    "route, warning",
    [
        ("{uri: 'http://a', filters: [StripPrefix=1]}", "requests are passed on unchanged"),
        ("{uri: 'http://a', filters: [{name: CircuitBreaker, args: {name: x}}]}", "its time limit (1s if none is written)"),
        ("{uri: 'http://a', filters: [Retry=3]}", "(500) is retried once per call"),
        ("{uri: 'http://a', predicates: ['Query=red']}", "an endpoint can't have the condition Query"),
        ("{uri: 'http://a', predicates: ['Path=/a/{id},/b']}", "no match can be the pattern /a/{id}"),
        ("{uri: 'forward:/x'}", "the application answers by itself"),
        ("{uri: 'http://a', filters: [{name: Retry, args: {retries: 1, exceptions: com.shop.Odd}}]}", "what com.shop.Odd means"),
    ],
)
def test_import_spring_gateway__what_would_differ_is_a_warning_and_strict_fails(becalm, route, warning):
    done = becalm("import", "--strict", "-", stdin=f"spring.cloud.gateway.routes:\n- {route}\n- {{uri: 'http://b', predicates: ['Path=/b']}}\n")
    assert done.returncode == 1 and warning in done.stderr, done.stderr


def test_import_spring_gateway__it_stands_beside_resilience4j_in_one_file(becalm):
    text = "spring.cloud.gateway.routes: [{uri: 'http://a:1', predicates: ['Path=/**']}]\nresilience4j.retry.instances.b: {maxAttempts: 2}\n"
    done = becalm("import", "--strict", "-", stdin=text)
    assert done.returncode == 0, done.stderr
    policy = Policy(becalm, done.stdout)
    assert policy.call("x", "/")["hosts"] == ["a:1"] and policy.call("b", "/")["attempts"] == 2


def test_import_spring_gateway__a_broken_value_ends_nothing_but_itself(becalm):
    done = imported(becalm, "{uri: 'http://a', filters: [{name: Retry, args: {retries: 1, statuses: SOMETIMES}}]}", code=1)
    assert '"SOMETIMES" is no status' in done.stderr
    assert Policy(becalm, done.stdout).call("x", "/")["attempts"] == 2
