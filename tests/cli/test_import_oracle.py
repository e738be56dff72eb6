# SPDX-License-Identifier: MIT
"""becalm import keeps the meaning of the source: (method, host, path) -> hosts, retries, timeouts, conditions, once by
a reader of the source that shares nothing with the importer, once by `becalm check --route` of its output."""

import itertools
import json
import pathlib
import re

import pytest
import yaml

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import" / "corpus"
FILES = sorted(path.name for path in CORPUS.iterdir())
NONE = "none"
NO_ANSWER = {"connect-failure", "refused-stream", "reset", "timeout"}
ISTIO_ON = {"connect-failure", "refused-stream", "unavailable", "cancelled"}


def seconds(text):
    """A duration of any of the products in seconds; 0 is none."""
    total = sum(float(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit] for number, unit in re.findall(r"([\d.]+)(ms|s|m|h)", str(text)))
    return total or NONE


class Answer:
    """The handling of one request."""

    def __init__(self, hosts, retries, attempt=NONE, whole=NONE, on=None):
        self.hosts, self.retries, self.attempt, self.whole = sorted(hosts), retries, attempt, whole
        self.on = None if on is None or retries == 0 else set(on)

    def __repr__(self):
        return f"{self.hosts} retries {self.retries} attempt {self.attempt} whole {self.whole} on {sorted(self.on or [])}"


# ---- hosts ----


def host_rank(pattern, host):
    """How well a host fits a pattern; None: not at all."""
    if pattern == "*":
        return 0
    if pattern.startswith("*."):
        return len(pattern) if host.endswith(pattern[1:]) and len(host) > len(pattern) - 1 else None
    return 1000 if host == pattern else None


def best(groups, host):
    """The groups [(patterns, thing)] whose patterns fit the host best."""
    ranked = [(max((r for r in (host_rank(p, host) for p in patterns) if r is not None), default=None), thing) for patterns, thing in groups]
    ranked = [(rank, thing) for rank, thing in ranked if rank is not None]
    top = max((rank for rank, _ in ranked), default=None)
    return [thing for rank, thing in ranked if rank == top]


# ---- one reader per product ----


def istio(objects, method, host, path, headers):
    services = [o["spec"] for o in objects if o.get("kind") == "VirtualService"]
    for spec in best([(s["hosts"], s) for s in services], host):
        for route in spec["http"]:
            if any(istio_fits(m, method, path, headers) for m in route.get("match", [{}])):
                to = route["route"][0]["destination"]
                retries = route.get("retries")
                on = istio_on(retries.get("retryOn")) if retries else ISTIO_ON
                count = 2 if retries is None else retries.get("attempts", 0)
                attempt = seconds(retries.get("perTryTimeout", 0)) if retries and count else NONE
                return Answer([f"{to['host']}:{to.get('port', {}).get('number', 80)}"], count, attempt, seconds(route.get("timeout", 0)), on)
    return None


def istio_on(text):
    words = set(text.split(",")) if text else set(ISTIO_ON)
    return words | NO_ANSWER if words & {"gateway-error", "reset"} and "5xx" not in words else words


def istio_fits(match, method, path, headers):
    uri = match.get("uri", {})
    return (
        path.startswith(uri.get("prefix", ""))
        and uri.get("exact", path) == path
        and match.get("method", {}).get("exact", method) == method
        and all(headers.get(name) == value["exact"] for name, value in match.get("headers", {}).items())
    )


def envoy(objects, method, host, path, headers):
    document = objects[0]["static_resources"]
    manager = document["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    clusters = {c["name"]: c for c in document["clusters"]}
    for vhost in best([(v["domains"], v) for v in manager["route_config"]["virtual_hosts"]], host):
        for route in vhost["routes"]:
            match, action = route["match"], route["route"]
            wanted = {h["name"]: h["string_match"]["exact"] for h in match.get("headers", [])}
            if not path.startswith(match.get("prefix", "")) or match.get("path", path) != path or wanted.get(":method", method) != method:
                continue
            ends = clusters[action["cluster"]]["load_assignment"]["endpoints"]
            addresses = [e["endpoint"]["address"]["socket_address"] for group in ends for e in group["lb_endpoints"]]
            policy = action.get("retry_policy", vhost.get("retry_policy"))
            return Answer(
                [f"{a['address']}:{a['port_value']}" for a in addresses],
                0 if policy is None else policy.get("num_retries", 1),
                NONE if policy is None else seconds(policy.get("per_try_timeout", 0)),
                seconds(action.get("timeout", "15s")),
                None if policy is None else policy["retry_on"].split(","),
            )
    return None


def gateway_api(objects, method, host, path, headers):
    found = []
    routes = [o["spec"] for o in objects if o.get("kind") == "HTTPRoute"]
    for spec in best([(s["hostnames"], s) for s in routes], host):
        for rule in spec["rules"]:
            for match in rule.get("matches", [{}]):
                how = match.get("path", {"type": "PathPrefix", "value": "/"})
                value = how["value"].rstrip("/")
                exact = how["type"] == "Exact"
                fits = path == how["value"] if exact else path == value or path.startswith(value + "/")
                if fits and match.get("method", method) == method:
                    found.append(((exact, len(value), "method" in match), rule))
    if not found:
        return None
    rule = max(found, key=lambda pair: pair[0])[1]
    to, retry, timeouts = rule["backendRefs"][0], rule.get("retry"), rule.get("timeouts", {})
    return Answer(
        [f"{to['name']}:{to['port']}"],
        0 if retry is None else retry["attempts"],
        seconds(timeouts.get("backendRequest", 0)),
        seconds(timeouts.get("request", 0)),
        None if retry is None else {str(code) for code in retry["codes"]} | NO_ANSWER,
    )


def grpc(objects, method, host, path, headers):
    service, name = path.strip("/").split("/")
    configs = {}
    for config in objects[0]["methodConfig"]:
        for known in config["name"]:
            configs[known.get("service"), known.get("method")] = config
    config = configs.get((service, name)) or configs.get((service, None))
    policy = config.get("retryPolicy")
    on = {code.lower() for code in policy["retryableStatusCodes"]} if policy else None
    if on and "unavailable" in on:
        on |= {"connect-failure", "refused-stream", "reset"}
    return Answer([f"{service}:80"], min(policy["maxAttempts"], 5) - 1 if policy else 0, NONE, seconds(config.get("timeout", 0)), on)


# ---- the comparison ----


def objects_of(name):
    documents = [d for d in yaml.safe_load_all((CORPUS / name).read_text(encoding="utf-8")) if d is not None]
    return [o for d in documents for o in (d["items"] if d.get("kind") == "List" else [d])]


def reader_of(name, host):
    if name.startswith("mixed"):
        return gateway_api if host == "stock.example.com" else istio
    return {"istio": istio, "envoy": envoy, "gateway-api": gateway_api, "grpc": grpc}[re.match(r"istio|envoy|gateway-api|grpc", name)[0]]


REQUESTS = {
    "istio-ingress.yaml": (["shop.example.com", "eu.shop.example.com"], ["/auth", "/authors/1", "/login", "/payments/1", "/payments/refunds/2", "/payments", "/x"]),
    "istio-upload.yaml": (["upload", "reports"], ["/", "/daily", "/daily/x", "/weekly"]),
    "envoy-front.yaml": (
        ["api.example.com", "www.example.com"],
        ["/users/1", "/users", "/login", "/logins/x", "/orders/1", "/carts/1", "/carts/old", "/admin", "/administrators", "/healthz", "/"],
    ),
    "gateway-api-shop.yaml": (
        ["shop.example.com", "www.shop.example.com", "a.example.com"],
        ["/users", "/users/1", "/userss", "/login", "/orders/1", "/orders/legacy", "/carts/2", "/"],
    ),
    "grpc-bank.json": ([""], ["/bank.Ledger/Balance", "/bank.Ledger/Transfer", "/bank.Cards/Charge", "/bank.Cards/Block"]),
    "mixed.yaml": (["cart", "stock.example.com"], ["/", "/x/y"]),
}


def imported_answer(route):
    values = route["values"]
    on = set(re.findall(r"[\w-]+", values["retryOn"]))
    return Answer(route["hosts"], int(values["maxRetries"]), seconds(values["attemptTimeout"]), seconds(values["deadline"]), on)


def same(wanted, got):
    on = wanted.on is None or got.on == wanted.on
    return on and (wanted.hosts, wanted.retries, wanted.attempt, wanted.whole) == (got.hosts, got.retries, got.attempt, got.whole)


def test_oracle__every_file_of_the_corpus_is_asked_about():
    assert FILES == sorted(REQUESTS)


@pytest.mark.parametrize("name", FILES)
def test_oracle__each_request_is_called_as_in_the_source(becalm, tmp_path, name):
    done = becalm("import", CORPUS / name)
    assert done.returncode == 0, done.stderr
    assert all("(500) is retried once per call" in line for line in done.stderr.splitlines() if ": warning:" in line), done.stderr
    (tmp_path / "policy.yaml").write_text(done.stdout, encoding="utf-8")
    hosts, paths = REQUESTS[name]
    wrong = []
    for host, plan in itertools.product(hosts, ([], ["--header", "x-plan: gold"])):
        requests = [(method, path) for method in ("GET", "POST", "DELETE") for path in paths]
        routes = [word for method, path in requests for word in ("--route", f"{method} {path}")]
        answer = becalm("check", "--json", *routes, "--host", host, *plan, tmp_path / "policy.yaml")
        told = json.loads(answer.stdout)["routes"]
        for (method, path), route in zip(requests, told, strict=True):
            wanted = reader_of(name, host)(objects_of(name), method, host, path, {"x-plan": "gold"} if plan else {})
            got = imported_answer(route) if route["service"] is not None else None
            if (wanted is None) != (got is None) or (wanted is not None and not same(wanted, got)):
                wrong.append(f"{method} {host}{path}: the source {wanted}, the policy {got}")
    assert not wrong, "\n".join(wrong)
