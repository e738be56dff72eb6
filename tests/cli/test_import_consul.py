# SPDX-License-Identifier: MIT
"""becalm import consul: configuration entries in HCL and as objects of Kubernetes, against an oracle that reads the
latter by Consul's documentation, without a look at the importer."""

import pathlib

import pytest
import yaml
from policy_reader import Policy, seconds

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import" / "consul"
HCL = ["shop-router.hcl", "orders-resolver.hcl", "admin-resolver.hcl"]
PATHS = ["/", "/admin", "/admin/x", "/checkout", "/checkout/x", "/orders", "/orders/1", "/orders/late", "/ordersx", "/stream", "/x"]
NO_ANSWER = {"reset", "connect-failure", "refused-stream", "timeout"}


def load():
    entries = {}
    for document in yaml.safe_load_all((FOLDER / "shop.yaml").read_text(encoding="utf-8")):
        entries[document["kind"], document["metadata"]["name"]] = document["spec"]
    return entries


def end_of(entries, name):
    resolver = entries.get(("ServiceResolver", name), {})
    other = resolver.get("redirect", {}).get("service")
    return end_of(entries, other) if other else (name, resolver)


def expected(entries, host, path, method):
    destination = {}
    for route in entries.get(("ServiceRouter", host), {}).get("routes", []):
        http = route["match"]["http"]
        if path.startswith(http.get("pathPrefix", "")) and http.get("pathExact", path) == path and method in http.get("methods", [method]):
            destination = route["destination"]
            break
    service, resolver = end_of(entries, destination.get("service", host))
    whole = destination.get("requestTimeout") or resolver.get("requestTimeout") or "15s"
    on = set(destination.get("retryOn", [])) | ({"connect-failure"} if destination.get("retryOnConnectFailure") else set())
    on |= NO_ANSWER if on & {"reset", "gateway-error"} else set()
    on |= {str(code) for code in destination.get("retryOnStatusCodes", [])}
    return {
        "service": service,
        "attempts": 1 + destination.get("numRetries", 1 if on else 0),
        "deadline": None if whole.startswith("-") else seconds(whole),
        "connect_timeout": seconds(resolver.get("connectTimeout", "5s")),
        "attempt_timeout": None,
        **({"retry_on": on} if on else {}),
    }


@pytest.mark.parametrize("files", [["shop.yaml"], HCL, list(reversed(HCL))], ids=["kubernetes", "hcl", "reversed"])
def test_import_consul__each_request_is_called_as_the_oracle_says(becalm, files):
    done = becalm("import", "--strict", *files, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    policy, entries = Policy(becalm, done.stdout), load()
    for host in ("shop", "orders", "admin"):
        for method in ("GET", "POST"):
            for path in PATHS:
                got, want = policy.call(host, path, method), expected(entries, host, path, method)
                assert got is not None, (method, host, path)
                for key, value in want.items():
                    assert got[key] == value, (method, host, path, key, want, got)


def router(destination, match="{PathPrefix = \"/\"}"):
    return f'Kind = "service-router"\nName = "a"\nRoutes = [{{ Match {{ HTTP {match} }} Destination {{ {destination} }} }}]\n'


@pytest.mark.parametrize(
    "text, warning",
    [
        (router('Service = "b" PrefixRewrite = "/"'), "requests are passed on unchanged"),
        (router('Service = "b" ServiceSubset = "v2"'), "all hosts of a service are called"),
        (router('Service = "b"', '{PathRegex = "/x.*"}'), "so the route is left out"),
        (router('Service = "b"', '{Header = [{Name = "a", Present = true}]}'), "the route is left out"),
        ('Kind = "service-splitter"\nName = "a"\nSplits = [{Weight = 90.5}, {Weight = 9.5, Service = "b"}]\n', "9050 of 10000 to a"),
        ('Kind = "service-resolver"\nName = "a"\nFailover = {"*" = {Datacenters = ["dc2"]}}\n', "its own hosts and no others"),
    ],
)
def test_import_consul__what_would_differ_is_a_warning_and_strict_fails(becalm, text, warning):
    done = becalm("import", "-", stdin=text)
    assert done.returncode == 0 and warning in done.stderr, done.stderr
    assert becalm("import", "--strict", "-", stdin=text).returncode == 1


def test_import_consul__how_a_service_calls_others_is_in_its_defaults(becalm):
    text = """
Kind = "service-defaults"
Name = "web"
UpstreamConfig {
  Overrides = [{
    Name = "db"
    ConnectTimeoutMs = 250
    Limits { MaxConcurrentRequests = 40 MaxPendingRequests = 7 }
    PassiveHealthCheck { MaxFailures = 4 Interval = "20s" MaxEjectionPercent = 30 }
  }]
}
"""
    done = becalm("import", "--strict", "-", stdin=text)
    assert done.returncode == 0, done.stderr
    values = Policy(becalm, done.stdout).call("db", "/")["values"]
    assert (values["connectTimeout"], values["limit.max"], values["gate.maxQueue"]) == ("250ms", "40", "7")
    assert (values["outlier.consecutive5xxErrors"], values["outlier.interval"], values["outlier.maxEjectionPercent"]) == ("4", "20s", "30")


@pytest.mark.parametrize(
    "text, error",
    [
        ('Kind = "service-router"\nName = "a\n', '2:10: error: a text has no end'),
        ('Kind = "service-router"\nRoutes = [1 2]\n', "2:13: error: a list goes on with , or ends with ]"),
        ('Kind = "service-router"\nRoutes {\n', "3:1: error: a block has no end"),
        ('Kind = "service-router"\nName "a"\n', "3:1: error: = or { is expected"),
        ('Kind = "service-router"\nName = "a"\nName = "b"\n', "error: this key is there already"),
        ('Kind = "service-router"\nName = <<EOF\nx\nEOF\n', "2:8: error: a text over several lines is not read"),
        ('Kind = "service-router"\nA = ' + "[" * 40 + "]" * 40, "error: this is nested over 32 levels deep"),
    ],
)
def test_import_consul__what_is_broken_is_said_with_its_place(becalm, text, error):
    done = becalm("import", "-", stdin=text)
    assert done.returncode == 1 and error in done.stderr, done.stderr


def test_import_consul__a_broken_value_ends_nothing_but_itself(becalm):
    done = becalm("import", "-", stdin=router('Service = "b" NumRetries = 3 RequestTimeout = "soon"'))
    assert done.returncode == 1 and 'Destination.RequestTimeout: "soon" is not a duration' in done.stderr
    assert Policy(becalm, done.stdout).call("a", "/")["attempts"] == 4


def test_import_consul__a_file_that_is_no_utf8_is_one_error_with_its_place(becalm, tmp_path):
    (tmp_path / "a.hcl").write_bytes(b'Kind = "service-router"\nName = "a"\nRoutes = [{ Match { HTTP { PathPrefix = "/caf\xe9/" } } }]\n')
    done = becalm("import", "a.hcl", cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert "a.hcl:3:46: error: the byte 0xE9 is no UTF-8; save the file as UTF-8" in done.stderr
