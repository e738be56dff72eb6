# SPDX-License-Identifier: MIT
"""becalm import kong: kong.yml, against an oracle that reads it by the rules of Kong's documentation, without a look at
the importer."""

import pathlib
import urllib.parse

import pytest
import yaml
from policy_reader import Policy

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import" / "kong"
CORPUS = sorted(FOLDER.glob("*.yaml"))
ON = {"connect-failure", "refused-stream", "reset", "timeout"}
HOSTS = ["shop.example", "eu.shop.example", "pay.shop.example", "elsewhere.example"]
PATHS = ["/", "/orders", "/orders/1", "/ordersx", "/carts", "/carts/1", "/pictures/1", "/ledger/x", "/reports", "/reports/daily", "/x"]


def load(path):
    services, upstreams = {}, {}
    documents = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]
    for document in documents:
        for service in document.get("services", []):
            services[service["name"]] = service
        for upstream in document.get("upstreams", []):
            upstreams[upstream["name"]] = upstream
    routes = [(route, service) for service in services.values() for route in service.get("routes", [])]
    for document in documents:
        routes += [(route, services[route["service"]["name"]]) for route in document.get("routes", [])]
    return routes, upstreams


def host_fits(want, host):
    return host == want or (want.startswith("*.") and host.endswith(want[1:]))


def chosen(routes, host, path, method):
    """The order of the traditional router: more conditions first, then plain hosts, then longer paths."""
    best = None
    for number, (route, service) in enumerate(routes):
        for prefix in route.get("paths", [None]):
            fits = (prefix is None or path.startswith(prefix)) and method in route.get("methods", [method])
            if not fits or not any(host_fits(want, host) for want in route.get("hosts", [host])):
                continue
            conditions = sum(bool(route.get(key)) for key in ("paths", "methods", "hosts", "headers"))
            plain = "hosts" in route and not any("*" in want for want in route["hosts"])
            key = (conditions, plain, len(prefix or ""), -number)
            if best is None or key > best[0]:
                best = (key, service)
    return best and best[1]


def hosts_of(service, upstreams):
    url = urllib.parse.urlsplit(service.get("url", f"{service.get('protocol', 'http')}://{service.get('host')}"))
    port = url.port or service.get("port") or (443 if url.scheme == "https" else 80)
    before = "https://" if url.scheme == "https" else ""
    if url.hostname in upstreams:
        return sorted(before + each["target"] for each in upstreams[url.hostname]["targets"] if each.get("weight", 100) > 0)
    return [f"{before}{url.hostname}:{port}"]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_import_kong__each_request_is_called_as_the_oracle_says(becalm, path):
    done = becalm("import", "--strict", path.name, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    policy, (routes, upstreams) = Policy(becalm, done.stdout), load(path)
    for host in HOSTS:
        for method in ("GET", "HEAD", "POST", "DELETE"):
            for probe in PATHS:
                service, got = chosen(routes, host, probe, method), policy.call(host, probe, method)
                where = (method, host, probe, got, service)
                assert (service is None) == (got is None), where
                if service is None:
                    continue
                assert got["hosts"] == hosts_of(service, upstreams), where
                assert got["attempts"] == 1 + service.get("retries", 5), where
                assert got["attempt_timeout"] == service.get("read_timeout", 60000) / 1000, where
                assert got["connect_timeout"] == service.get("connect_timeout", 60000) / 1000, where
                assert got["deadline"] is None and not got["idempotent"] and got["values"]["initialDelay"] == "0", where
                assert got["retry_on"] == ON, where


def imported(becalm, service, *options, code=0, more=""):
    text = f'_format_version: "3.0"\nservices:\n- {service}\n{more}'
    done = becalm("import", *options, "-", stdin=text)
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize(
    "service, warning",
    [
        ("{name: a, url: 'http://a/v1', routes: [{paths: [/]}]}", "there /v1 is put before the path"),
        ("{name: a, url: 'http://a', routes: [{paths: [/x]}]}", "the beginning of the path that a route names is taken off"),
        ("{name: a, url: 'http://a', routes: [{paths: ['~/x/\\d+']}, {paths: [/]}]}", "a regular expression, so the path is left out"),
        ("{name: a, url: 'http://a', routes: [{headers: {a: [b], c: [d]}}, {paths: [/]}]}", "one header and its whole value"),
        ("{name: a, url: 'http://a', routes: [{hosts: ['shop.*']}, {paths: [/]}]}", "a host is matched whole"),
        ("{name: a, url: 'http://a', routes: [{snis: [a.example]}, {paths: [/]}]}", "an endpoint can't have this condition"),
    ],
)
def test_import_kong__what_would_differ_is_a_warning_and_strict_fails(becalm, service, warning):
    assert warning in imported(becalm, service).stderr
    assert warning in imported(becalm, service, "--strict", code=1).stderr


def test_import_kong__a_route_whose_host_no_match_can_say_takes_nobody_elses_requests(becalm):
    done = imported(becalm, "{name: a, url: 'http://a', routes: [{hosts: ['shop.*']}, {paths: [/a], strip_path: false}]}")
    assert Policy(becalm, done.stdout).call("shop.example", "/b") is None


def test_import_kong__hosts_with_tls_are_not_verified_unless_it_is_written(becalm):
    values = imported(becalm, "{name: a, url: 'https://a.example', routes: [{paths: [/]}]}").stdout
    assert '"https://a.example:443"' in values and "verify: none" in values
    for verify, said in (("true", False), ("false", True)):
        values = imported(becalm, f"{{name: a, url: 'https://a.example', tls_verify: {verify}, routes: [{{paths: [/]}}]}}").stdout
        assert ("verify: none" in values) == said


def test_import_kong__failures_in_a_row_leave_a_host_out(becalm):
    done = imported(
        becalm,
        "{name: a, host: u, routes: [{paths: [/]}]}",
        more="upstreams:\n- {name: u, targets: [{target: 'b:80'}], healthchecks: {passive: {unhealthy: {http_failures: 7, timeouts: 3}}}}\n",
    )
    assert "consecutive5xxErrors: 3" in done.stdout and "a host comes back by itself" in done.stderr


def test_import_kong__a_broken_value_ends_nothing_but_itself(becalm):
    done = imported(becalm, "{name: a, url: 'http://a', retries: many, routes: [{paths: [/]}]}", code=1)
    assert '<stdin>:3:39: error: service.retries: "many" is not a whole number [bad-value]' in done.stderr
    assert Policy(becalm, done.stdout).call("a", "/")["attempts"] == 6


def test_import_kong__a_route_to_no_service_is_left_out(becalm):
    done = imported(becalm, "{name: a, url: 'http://a', routes: [{paths: [/]}]}", more="routes:\n- {paths: [/b], service: {name: b}}\n")
    assert "no service of the files has this name" in done.stderr
