# SPDX-License-Identifier: MIT
"""Paths that a service may take for another one: passed on as they came, or refused where rules would differ."""

import json
import shutil
import subprocess

import pytest
from message import request

PAY = """endpoints:
  pay: {match: {prefix: /pay}, idempotencyKey: required}
"""

# All of them are /pay, or below it, to some server.
ALIASES = (
    "//pay",
    "///pay",
    "/./pay",
    "/pay;x",
    "/pay;jsessionid=1",
    "/pay%3bx",
    "/pay%2f",
    "/pay%2F1",
    "/pay%5c",
    "/pay\\",
    "/%2fpay",
    "/\\pay",
    "/;a/pay",
    "/.;a/pay",
    "/%2e/pay",
    "/.%2fpay",
    "/%2570ay",
    "/pay%252f",
    "/pay%00",
    "/pay%3fx",
    "/pay%23",
)
CLIMBING = (
    "/x/../pay",
    "/x/%2e%2e/pay",
    "/x/.%2E/pay",
    "/x/..;/pay",
    "/x/..%2fpay",
    "/x/..\\pay",
    "/x/%252e%252e/pay",
    "/x/..",
    "/..",
)


def post(gateway, path, **more):
    return gateway.ask("POST", path, body=b"5 euro", **more)


@pytest.mark.parametrize("path", ALIASES)
def test_an_alias_of_a_path_does_not_slip_past_its_rule(pair, path):
    gateway, host = pair(rules=PAY)
    assert post(gateway, "/pay").status == 400
    answer = post(gateway, path)
    reason = json.loads(answer.body)["reason"]
    assert answer.status == 400 and reason == "ambiguous_path"
    assert host.count() == 0
    assert post(gateway, "/pay", fields={"Idempotency-Key": "k"}).status == 200
    absolute = post(gateway, "http://a.test" + path)
    assert absolute.status == 400 and host.count() == 1, "in absolute form, too"


@pytest.mark.parametrize("path", CLIMBING)
def test_two_dots_are_refused_in_every_spelling(pair, path):
    gateway, host = pair()
    answer = gateway.ask("GET", path)
    assert answer.status == 400 and json.loads(answer.body)["reason"] == "bad_path"
    assert host.count() == 0


PLAIN = (
    "/repo/./Packages",
    "/api/v4/projects/group%2Fproject",
    "/a//b",
    "/a/.",
    "/a;v=1/b;w=2",
    "/%2e/x",
    "/a\\b",
    "/a%5Cb",
    "/pay/./x//y;z",
    "/pay/a%2Fb?c=//",
    "/100%25",
    "/search%3Fq",
    "/PAY",
    "/pay.",
    "/v1%3Acharge",
)


@pytest.mark.parametrize("path", PLAIN)
def test_a_path_that_leads_to_one_target_is_passed_on_as_it_came(pair, path):
    gateway, host = pair(rules="endpoints:\n  pay: {match: {prefix: /pay}}\n")
    with gateway.wire() as wire:
        wire.send(request("GET", path))
        assert wire.answer().status == 200
    assert host.requests[0].target == path


def test_paths_as_is_compares_what_came_and_refuses_nothing(pair):
    gateway, host = pair("paths: as-is", PAY)
    for path in ("//pay", "/pay;x", "/x/../pay", "/%2e%2e/x"):
        assert post(gateway, path).status == 200
        assert host.requests[-1].target == path
    assert post(gateway, "/pay").status == 400 and post(gateway, "/%70ay").status == 400
    assert gateway.ask("GET", "/%zz").status == 400


def test_what_is_refused_is_in_the_access_log(pair):
    gateway, _ = pair("log: {access: json}", PAY)
    assert post(gateway, "//pay").status == 400
    gateway.end()
    assert any(line.get("reason") == "ambiguous_path" for line in map(json.loads, gateway.access()))


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_gets_a_flat_repository_of_apt(pair):
    gateway, host = pair()
    command = ["curl", "-sS", "--path-as-is", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "20"]
    for proxied in (False, True):
        url = f"http://127.0.0.1:{gateway.port}/repo/./Packages"
        more = ["--proxy", f"http://127.0.0.1:{gateway.port}"] if proxied else []
        got = subprocess.run([*command, *more, url], capture_output=True, text=True, timeout=30)
        assert got.stdout == "200", got
    assert [each.target for each in host.requests] == ["/repo/./Packages"] * 2
