# SPDX-License-Identifier: MIT
"""becalm import of Envoy Gateway's BackendTrafficPolicy, with the routes that it targets, against an oracle of its own."""

import pathlib

import pytest
import yaml
from policy_reader import Policy, seconds

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import" / "envoy-gateway"
CORPUS = sorted(FOLDER.glob("*.yaml"))
DEFAULT_ON = {"connect-failure", "refused-stream", "unavailable", "cancelled", "retriable-status-codes", "503"}

POLICY = """
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: p}
spec: {targetRefs: [{kind: HTTPRoute, name: r}], retry: {numRetries: 7}}
"""
ROUTE = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s}
spec: {rules: [{backendRefs: [{name: a, port: 80}]%s}]}
"""


def chosen(policies, route):
    """The policy for the route, else the one for its Gateway."""
    gateways = {each["name"] for each in route["spec"].get("parentRefs", [])}
    for kind, names in ((route["kind"], {route["metadata"]["name"]}), ("Gateway", gateways)):
        for policy in policies:
            refs = policy["spec"].get("targetRefs") or [policy["spec"]["targetRef"]]
            if any(ref["kind"] == kind and ref["name"] in names for ref in refs):
                return policy["spec"]
    return None


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_import_envoy_gateway__routes_are_called_as_the_oracle_says(becalm, path):
    done = becalm("import", "--strict", path.name, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    policy = Policy(becalm, done.stdout)
    objects = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    policies = [each for each in objects if each["kind"] == "BackendTrafficPolicy"]
    for route in (each for each in objects if each["kind"] == "HTTPRoute"):
        spec = chosen(policies, route)
        retry, timeout = spec["retry"], spec.get("timeout", {})
        on = retry.get("retryOn")
        rule = route["spec"]["rules"][0]
        got = policy.call(route["spec"]["hostnames"][0], rule["matches"][0]["path"]["value"] + "/x")
        backend = rule["backendRefs"][0]
        assert got["hosts"] == [f"{backend['name']}:{backend['port']}"]
        assert got["attempts"] == 1 + retry.get("numRetries", 2), got
        assert got["retry_on"] == ({*on["triggers"], *map(str, on["httpStatusCodes"])} if on else DEFAULT_ON), got
        assert got["attempt_timeout"] == seconds(retry.get("perRetry", {}).get("timeout")), got
        assert got["deadline"] == seconds(timeout.get("http", {}).get("requestTimeout")), got
        limit = spec.get("circuitBreaker", {}).get("maxParallelRequests")
        assert limit is None or got["values"]["limit.max"] == str(limit)


def test_import_envoy_gateway__the_routes_own_retry_wins(becalm):
    done = becalm("import", "-", stdin=POLICY + ROUTE % ("r", ", retry: {attempts: 1}"))
    assert done.returncode == 0, done.stderr
    assert Policy(becalm, done.stdout).call("a", "/")["attempts"] == 2


def test_import_envoy_gateway__a_policy_for_a_route_that_is_not_there_is_told(becalm):
    done = becalm("import", "--strict", "-", stdin=POLICY + ROUTE % ("other", ""))
    assert done.returncode == 1 and "none of the routes is its target" in done.stderr
    assert Policy(becalm, done.stdout).call("a", "/")["attempts"] == 1
    alone = becalm("import", "-", stdin=POLICY)
    assert "here it holds for all services" in alone.stderr and "maxRetries: 7" in alone.stdout


@pytest.mark.parametrize(
    "passive, count, said",
    [
        ("consecutive5XxErrors: 7", "7", None),
        ("consecutiveGatewayErrors: 2", "2", "every 5xx counts here, not 502, 503 and 504 alone"),
        ("consecutiveGatewayErrors: 9", "5", None),
        ("splitExternalLocalOriginErrors: true", "5", "failures to connect count like 5xx"),
        ("failurePercentageThreshold: 30", "5", "hosts are ejected by failures in a row"),
    ],
)
def test_import_envoy_gateway__passive_checks_eject_as_there_or_a_warning_says_what_differs(becalm, passive, count, said):
    spec = f"spec: {{healthCheck: {{passive: {{{passive}}}}}, "
    done = becalm("import", "--strict", "-", stdin=POLICY.replace("spec: {", spec) + ROUTE % ("r", ""))
    assert done.returncode == (0 if said is None else 1)
    assert said is None or said in done.stderr
    values = Policy(becalm, done.stdout).call("a", "/")["values"]
    assert (values["outlier.consecutive5xxErrors"], values["outlier.interval"]) == (count, "3s")
