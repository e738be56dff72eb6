# SPDX-License-Identifier: MIT
"""becalm import linkerd: ServiceProfiles and annotations, against an oracle of its own."""

import pathlib
import re

import pytest
import yaml
from policy_reader import Policy, seconds

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import" / "linkerd"
CORPUS = sorted(FOLDER.glob("*.yaml"))


def fits(condition, method, path):
    """By the reference of ServiceProfiles: fields side by side must all hold."""
    results = []
    if "method" in condition:
        results.append(condition["method"] == method)
    if "pathRegex" in condition:
        results.append(re.fullmatch(condition["pathRegex"], path) is not None)
    if "all" in condition:
        results.append(all(fits(each, method, path) for each in condition["all"]))
    if "any" in condition:
        results.append(any(fits(each, method, path) for each in condition["any"]))
    return all(results)


def expected(profile, method, path):
    for route in profile["spec"]["routes"]:
        if fits(route["condition"], method, path):
            return route.get("isRetryable", False), seconds(route.get("timeout"))
    return False, None


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_import_linkerd__a_profile_does_what_the_oracle_says(becalm, path):
    done = becalm("import", path.name, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    policy = Policy(becalm, done.stdout)
    profiles = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each["kind"] == "ServiceProfile"]
    assert profiles
    for profile in profiles:
        budget = profile["spec"].get("retryBudget", {"retryRatio": 0.2, "minRetriesPerSecond": 10, "ttl": "10s"})
        for method in ("GET", "POST"):
            for probe in ("/", "/items", "/items/1", "/pictures/1", "/checkout", "/checkout.json", "/checkoutxjson", "/send"):
                retried, timeout = expected(profile, method, probe)
                call = policy.call(profile["metadata"]["name"], probe, method)
                where = (profile["metadata"]["name"], method, probe, call)
                assert (call["attempts"] > 1) == retried and call["deadline"] == timeout, where
                assert call["attempt_timeout"] is None, where
                if retried:
                    assert call["retry_on"] == {"5xx"} and call["idempotent"], where
                values = call["values"]
                assert float(values["budget.percent"].rstrip("%")) == budget["retryRatio"] * 100, where
                assert int(values["budget.minPerSecond"]) == budget["minRetriesPerSecond"], where
                assert seconds(values["budget.window"]) == seconds(budget["ttl"]), where


ROUTE = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: a, annotations: {{ {0} }}}}
spec: {{rules: [{{backendRefs: [{{name: a, port: 80}}]}}]}}
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {{name: a, annotations: {{ {0} }}}}\n"


@pytest.fixture
def imported(becalm):
    def run(form, annotations, *options, code=0):
        text = ", ".join(f'{key}: "{value}"' for key, value in annotations.items())
        done = becalm("import", *options, "-", stdin=form.format(text))
        assert done.returncode == code, done.stderr
        done.call = Policy(becalm, done.stdout).call("a", "/") if done.stdout else None
        return done

    return run


@pytest.mark.parametrize("form", [ROUTE, SERVICE], ids=["HTTPRoute", "Service"])
def test_import_linkerd__annotations_are_read_where_they_stand(imported, form):
    call = imported(form, {"retry.linkerd.io/http": "5xx,429", "retry.linkerd.io/timeout": "300ms", "timeout.linkerd.io/request": "2s"}).call
    assert call["attempts"] == 2 and call["retry_on"] == {"5xx", "429", "timeout"} and call["idempotent"]
    assert (call["attempt_timeout"], call["deadline"]) == (0.3, 2)
    call = imported(form, {"retry.linkerd.io/http": "500-502", "retry.linkerd.io/limit": 3}).call
    assert call["attempts"] == 4 and call["retry_on"] == {"500", "501", "502", "timeout"}


def test_import_linkerd__what_would_differ_is_a_warning_and_strict_fails(imported):
    assert "it begins with the request's end" in imported(SERVICE, {"timeout.linkerd.io/response": "2s"}, "--strict", code=1).stderr


def test_import_linkerd__what_is_broken_is_said(imported):
    assert '"often" is neither 5xx, gateway-error nor a status' in imported(SERVICE, {"retry.linkerd.io/http": "often"}, code=1).stderr


def test_import_linkerd__a_route_that_no_match_can_say_is_left_out(becalm):
    text = (FOLDER / "profiles.yaml").read_text(encoding="utf-8").replace("pathRegex: /items", "pathRegex: '/items/[^/]*'")
    done = becalm("import", "--strict", "-", stdin=text)
    assert done.returncode == 1 and "the route is left out" in done.stderr
    assert Policy(becalm, done.stdout).call("catalogue.shop.svc.cluster.local", "/items/1")["attempts"] == 1


def test_import_linkerd__a_route_without_a_condition_is_left_out(becalm):
    text = (FOLDER / "profiles.yaml").read_text(encoding="utf-8").replace("condition: {method: GET, pathRegex: /items}", "")
    done = becalm("import", "-", stdin=text)
    assert done.returncode == 0 and "<stdin>:8:7: warning: condition has no equivalent" in done.stderr
