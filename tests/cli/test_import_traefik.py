# SPDX-License-Identifier: MIT
"""becalm import traefik: dynamic configuration and IngressRoutes, against an oracle that evaluates the rules as Python, by
Traefik's documentation, without a look at the importer."""

import pathlib
import re
import urllib.parse

import pytest
import yaml
from policy_reader import Policy, seconds

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import" / "traefik"
CORPUS = sorted(FOLDER.glob("*.yaml"))
HOSTS = ["shop.example", "www.shop.example", "elsewhere.example"]
PATHS = ["/", "/api", "/apis", "/api/orders", "/api/orders/1", "/reports", "/reports/1", "/cart", "/cart/1", "/basket/1", "/x"]


def fits(rule, host, path, method):
    """A rule is an expression of Python, once its operators are written in Python's words."""
    words = {
        "Host": lambda *names: host in names,
        "PathPrefix": lambda *starts: path.startswith(starts),
        "Path": lambda *paths: path in paths,
        "Method": lambda *methods: method in methods,
    }
    text = re.sub(r"`([^`]*)`", lambda found: repr(found[1]), rule).replace("&&", " and ").replace("||", " or ")
    return eval(text, {"__builtins__": {}}, words)


def address(url):
    parts = urllib.parse.urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{'https://' if parts.scheme == 'https' else ''}{parts.hostname}:{port}"


def load(path):
    """Routers as (rule, priority, hosts, the retry middleware, the transport)."""
    documents = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]
    found, middlewares = [], {}
    for document in documents:
        if document.get("kind") == "Middleware":
            middlewares[document["metadata"]["name"]] = document["spec"]
        middlewares |= document.get("http", {}).get("middlewares", {})

    def retry_of(names):
        for name in names:
            node = middlewares[name]
            inner = node.get("retry") or retry_of(node.get("chain", {}).get("middlewares", []))
            if inner:
                return inner
        return None

    for document in documents:
        http = document.get("http", {})
        for router in http.get("routers", {}).values():
            balancer = http["services"][router["service"].split("@")[0]]["loadBalancer"]
            transport = http.get("serversTransports", {}).get(balancer.get("serversTransport"), {}).get("forwardingTimeouts", {})
            hosts = sorted(address(each["url"]) for each in balancer["servers"])
            found.append((router["rule"], router.get("priority", len(router["rule"])), hosts, retry_of(router.get("middlewares", [])), transport))
        if document.get("kind") == "IngressRoute":
            for route in document["spec"]["routes"]:
                to = route["services"][0]
                hosts = [f"{to['name']}.{document['metadata']['namespace']}:{to['port']}"]
                retry = retry_of([each["name"] for each in route.get("middlewares", [])])
                found.append((route["match"], len(route["match"]), hosts, retry, {}))
    return found


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_import_traefik__each_request_is_called_as_the_oracle_says(becalm, path):
    done = becalm("import", "--strict", path.name, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    policy, routers = Policy(becalm, done.stdout), load(path)
    for host in HOSTS:
        for method in ("GET", "POST"):
            for probe in PATHS:
                fitting = [router for router in routers if fits(router[0], host, probe, method)]
                got = policy.call(host, probe, method)
                assert bool(fitting) == (got is not None), (method, host, probe, got)
                if not fitting:
                    continue
                _, _, hosts, retry, transport = max(fitting, key=lambda router: router[1])
                where = (method, host, probe, got, hosts)
                assert got["hosts"] == hosts, where
                assert got["attempts"] == (retry["attempts"] if retry else 1), where
                assert got["connect_timeout"] == seconds(transport.get("dialTimeout", "30s")), where
                assert got["attempt_timeout"] == seconds(transport.get("responseHeaderTimeout")), where
                assert got["deadline"] is None and not got["idempotent"], where
                if retry:
                    values, wait = got["values"], seconds(retry.get("initialInterval", "0s"))
                    assert got["retry_on"] == {"connect-failure", "refused-stream"}, where
                    assert seconds(values["initialDelay"]) == wait, where
                    if wait:
                        assert float(values["multiplier"]) == pytest.approx(2 ** (1 / (retry["attempts"] - 1)), abs=2e-6), where
                        assert values["jitter"] == "proportional", where


FORM = """
http:
  routers: {{a: {{rule: "{rule}", service: a, middlewares: [m]}}}}
  middlewares: {{m: {middleware}}}
  services: {{a: {{loadBalancer: {{servers: [{{url: "http://a:80"}}]}}}}}}
"""


@pytest.fixture
def imported(becalm):
    def run(middleware="{compress: {}}", *options, rule="PathPrefix(`/`)", code=0):
        done = becalm("import", *options, "-", stdin=FORM.format(rule=rule, middleware=middleware))
        assert done.returncode == code, done.stderr
        call = Policy(becalm, done.stdout).call("a", "/") if done.stdout else None
        done.call, done.values = call, call and call["values"]
        return done

    return run


@pytest.mark.parametrize(
    "middleware, warning",
    [
        ("{stripPrefix: {prefixes: [/a]}}", "requests are passed on unchanged"),
        ("{redirectScheme: {scheme: https}}", "Becalm sends neither redirects nor fixed answers"),
        ("{retry: {attempts: 3, timeout: 5s}}", "it ends the retrying, not the attempt that runs"),
        ("{retry: {attempts: 3, status: ['500-504']}}", "an error of the application (500) is retried once per call"),
        ("{retry: {}}", "it has no attempts"),
        ("{buffering: {retryExpression: 'ResponseCode() == 503'}}", "only IsNetworkError() && Attempts() < N is read"),
        ("{circuitBreaker: {expression: 'NetworkErrorRatio() > 0.3'}}", "every 5xx counts here"),
        ("{circuitBreaker: {expression: 'NetworkErrorRatio() > 0.3 && LatencyAtQuantileMS(50.0) > 100'}}", "it is left out"),
        ("{inFlightReq: {amount: 10, sourceCriterion: {ipStrategy: {depth: 1}}}}", "for all clients together"),
    ],
)
def test_import_traefik__what_would_differ_is_a_warning_and_strict_fails(imported, middleware, warning):
    assert warning in imported(middleware).stderr
    assert warning in imported(middleware, "--strict", code=1).stderr


def test_import_traefik__statuses_and_methods_of_a_retry_are_kept(imported):
    call = imported("{retry: {attempts: 2, status: ['502-503', '429'], disableRetryOnNetworkError: true, retryNonIdempotentMethod: true}}", "--strict").call
    assert call["retry_on"] == {"502", "503", "429", "connect-failure", "refused-stream", "reset"} and call["idempotent"] and call["attempts"] == 2
    assert imported("{retry: {attempts: 2, status: ['500-599']}}").call["retry_on"] == {"5xx", "connect-failure", "refused-stream", "reset", "timeout"}


def test_import_traefik__network_errors_are_repeated_by_buffering(imported):
    assert imported("{buffering: {retryExpression: 'IsNetworkError() && Attempts() < 3'}}").call["attempts"] == 3
    assert imported("{buffering: {retryExpression: 'IsNetworkError() && Attempts() <= 3'}}").call["attempts"] == 4


def test_import_traefik__a_breaker_opens_at_shares_of_failures_and_of_slow_calls(imported):
    text = "{circuitBreaker: {expression: 'ResponseCodeRatio(500, 600, 0, 600) > 0.25 || LatencyAtQuantileMS(75.0) > 150', fallbackDuration: 30s}}"
    values = imported(text, "--strict").values
    assert (values["breaker.failureRateThreshold"], values["breaker.slowCallRateThreshold"]) == ("25", "25")
    assert (values["breaker.slowCallDurationThreshold"], values["breaker.waitDurationInOpenState"]) == ("150ms", "30s")


def test_import_traefik__requests_in_flight_are_limited(imported):
    values = imported("{inFlightReq: {amount: 10}}", "--strict").values
    assert (values["limit.kind"], values["limit.max"], values["gate.maxQueue"]) == ("fixed", "10", "0")


@pytest.mark.parametrize("rule", ["!Path(`/x`)", "PathRegexp(`^/x`)", "Host(`a`) && Host(`b`)", "Path(`/x`", "nonsense", "Query(`a`, `b`)"])
def test_import_traefik__a_rule_that_no_match_can_say_leaves_the_router_out(imported, rule):
    done = imported(rule=rule, code=1)
    assert "the route is left out" in done.stderr and done.call is None


def test_import_traefik__a_middleware_that_is_not_there_is_named(becalm):
    text = FORM.format(rule="PathPrefix(`/`)", middleware="{compress: {}}").replace("middlewares: [m]", "middlewares: [other@docker]")
    done = becalm("import", "--strict", "-", stdin=text)
    assert done.returncode == 1 and 'the middleware "other@docker" is not in the files' in done.stderr


def test_import_traefik__shares_go_to_the_heaviest(becalm):
    text = """
http:
  routers: {a: {rule: "PathPrefix(`/`)", service: both}}
  services:
    both: {weighted: {services: [{name: a, weight: 1}, {name: b, weight: 3}]}}
    a: {loadBalancer: {servers: [{url: "http://a:80"}]}}
    b: {loadBalancer: {servers: [{url: "http://b:80"}]}}
"""
    done = becalm("import", "-", stdin=text)
    assert "1 of 4 to a, 3 of 4 to b" in done.stderr
    assert Policy(becalm, done.stdout).call("x", "/")["hosts"] == ["b:80"]


def test_import_traefik__routers_that_only_their_entry_point_tells_apart_are_a_warning(becalm):
    text = """
http:
  routers:
    a: {rule: "PathPrefix(`/`)", service: a, entryPoints: [one]}
    b: {rule: "PathPrefix(`/`)", service: b, entryPoints: [two]}
  services:
    a: {loadBalancer: {servers: [{url: "http://a:80"}]}}
    b: {loadBalancer: {servers: [{url: "http://b:80"}]}}
"""
    done = becalm("import", "--strict", "-", stdin=text)
    assert done.returncode == 1 and "only its entry point tells it from the one at line 4" in done.stderr
