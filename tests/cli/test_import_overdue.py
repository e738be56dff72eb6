# SPDX-License-Identifier: MIT
"""becalm import: no product sends a retry beside an attempt that is still in flight, and the imported policy says so,
with `retryOverdue: false`, where a retry could be sent beside one: with retries and a timeout of the attempts."""

import pathlib

import pytest
import yaml

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import"
FILES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file() and "expected" not in path.parts)

ISTIO = "kind: VirtualService\nmetadata: {name: v}\nspec: {hosts: [a], http: [{route: [{destination: {host: a}}], retries: {%s}}]}\n"
ENVOY = "virtual_hosts: [{name: v, domains: [a], routes: [{match: {prefix: /}, route: {cluster: a, %s}}]}]\n"
GATEWAY_API = "kind: HTTPRoute\napiVersion: gateway.networking.k8s.io/v1\nmetadata: {name: r}\nspec: {rules: [{backendRefs: [{name: a, port: 80}], %s}]}\n"
NGINX = "http { upstream u { server a:80; server b:80; } server { location / { proxy_pass http://u; %s } } }\n"
INGRESS = """kind: Ingress
apiVersion: networking.k8s.io/v1
metadata: {name: i, annotations: {%s}}
spec: {rules: [{http: {paths: [{path: /, backend: {service: {name: a, port: {number: 80}}}}]}}]}
"""
HAPROXY = "defaults\n mode http\n %s\nfrontend f\n bind :80\n default_backend b\nbackend b\n server s h:80\n server t i:80\n"
LINKERD = "kind: Service\napiVersion: v1\nmetadata: {name: a, annotations: {%s}}\nspec: {}\n"
RESILIENCE4J = "resilience4j: {%s}\n"
SPRING = "spring: {cloud: {gateway: {httpclient: {%s}, routes: [{id: a, uri: 'http://a', predicates: [Path=/**], filters: [%s]}]}}}\n"
TRAEFIK = """http:
  routers: {r: {rule: 'PathPrefix(`/`)', service: a, middlewares: [%s]}}
  middlewares: {again: {retry: {attempts: 3}}}
  services: {a: {loadBalancer: {serversTransport: t, servers: [{url: 'http://h:80'}]}}}
  serversTransports: {t: {forwardingTimeouts: {%s}}}
"""
KONG = "_format_version: '3.0'\nservices: [{name: a, url: 'http://h:80', retries: %s, routes: [{paths: [/]}]}]\n"
DAPR = """kind: Resiliency
apiVersion: dapr.io/v1alpha1
metadata: {name: r}
spec: {policies: {retries: {r: {policy: constant, maxRetries: 3}}, timeouts: {t: 1s}}, targets: {apps: {a: {%s}}}}
"""
GRPC = """{"methodConfig": [{"name": [{"service": "a"}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "1s", "maxBackoff": "1s",
"backoffMultiplier": 1, "retryableStatusCodes": ["ABORTED"]%s}}]}"""
CONSUL = 'Kind = "service-router"\nName = "a"\nRoutes = [{ Destination { %s } }]\n'
AWS = "[default]\nretry_mode = standard\nmax_attempts = %s\n"


def words(policy):
    """Its text without line ends: a comment may have several lines."""
    return " ".join(policy.replace("#", " ").split())


@pytest.fixture
def keys(becalm):
    """keys(dialect, text): the keys of `defaults:`, those that hold for the first service or its endpoint, and all words."""

    def run(dialect, text):
        done = becalm("import", dialect, "-", stdin=text)
        assert done.returncode == 0, done.stderr
        assert becalm("check", "-", stdin=done.stdout).returncode == 0, done.stdout
        policy = yaml.safe_load(done.stdout)
        defaults = policy.get("defaults") or {}
        service = next(iter((policy.get("services") or {"": {}}).values()))
        endpoint = next(iter(service.get("endpoints", {"": {}}).values()))
        return defaults, {**defaults, **service, **endpoint}, words(done.stdout)

    return run


@pytest.mark.parametrize(
    "dialect, text, product",
    [
        ("istio", ISTIO % "attempts: 3, perTryTimeout: 1s", "Istio"),
        ("envoy", ENVOY % "retry_policy: {num_retries: 3, per_try_timeout: 1s}", "Envoy"),
        ("gateway-api", GATEWAY_API % "retry: {attempts: 3}, timeouts: {backendRequest: 1s}", "the Gateway API"),
        ("nginx", NGINX % "", "nginx"),
        ("ingress-nginx", INGRESS % "", "ingress-nginx"),
        ("haproxy", HAPROXY % "timeout server 1s", "HAProxy"),
        ("linkerd", LINKERD % "retry.linkerd.io/http: 5xx, retry.linkerd.io/timeout: 1s", "Linkerd"),
        ("resilience4j", RESILIENCE4J % "retry: {instances: {a: {}}}, timelimiter: {instances: {a: {}}}", "Resilience4j"),
        ("spring-cloud-gateway", SPRING % ("response-timeout: 1s", "Retry=3"), "Spring Cloud Gateway"),
        ("traefik", TRAEFIK % ("again", "responseHeaderTimeout: 1s"), "Traefik"),
        ("kong", KONG % 3, "Kong"),
        ("dapr", DAPR % "retry: r, timeout: t", "Dapr"),
        ("grpc", GRPC % ', "perAttemptRecvTimeout": "1s"', "gRPC"),
    ],
)
def test_import__a_policy_with_retries_and_a_timeout_sends_no_retry_beside_an_attempt(keys, dialect, text, product):
    _, held, printed = keys(dialect, text)
    assert held["retryOverdue"] is False, printed
    assert f"not written: {product} retries only after an attempt has ended" in printed


@pytest.mark.parametrize(
    "dialect, text",
    [
        ("istio", ISTIO % "attempts: 0, perTryTimeout: 1s"),
        ("envoy", ENVOY % "timeout: 1s"),
        ("gateway-api", GATEWAY_API % "timeouts: {backendRequest: 1s}"),
        ("nginx", NGINX % "proxy_next_upstream off;"),
        ("ingress-nginx", INGRESS % 'nginx.ingress.kubernetes.io/proxy-next-upstream: "off"'),
        ("haproxy", HAPROXY % "timeout server 1s\n retries 0"),
        ("resilience4j", RESILIENCE4J % "timelimiter: {instances: {a: {}}}"),
        ("spring-cloud-gateway", SPRING % ("response-timeout: 1s", "")),
        ("traefik", TRAEFIK % ("", "responseHeaderTimeout: 1s")),
        ("kong", KONG % 0),
        ("dapr", DAPR % "timeout: t"),
        ("aws", AWS % 1),
        ("grpc", "hedgingPolicy: {maxAttempts: 3, hedgingDelay: 1s}"),
        ("istio", "timeout: 1s"),
    ],
)
def test_import__a_policy_without_retries_says_nothing_of_them_beside_an_attempt(keys, dialect, text):
    assert "retryOverdue" not in keys(dialect, text)[2]


@pytest.mark.parametrize(
    "dialect, text",
    [
        ("istio", ISTIO % "attempts: 3"),
        ("istio", ISTIO % "attempts: 3, perTryTimeout: 0s"),
        ("envoy", ENVOY % "retry_policy: {num_retries: 3}"),
        ("gateway-api", GATEWAY_API % "retry: {attempts: 3}, timeouts: {request: 9s}"),
        ("haproxy", HAPROXY % ""),
        ("linkerd", LINKERD % "retry.linkerd.io/http: 5xx, timeout.linkerd.io/request: 1s"),
        ("resilience4j", RESILIENCE4J % "retry: {instances: {a: {}}}"),
        ("spring-cloud-gateway", SPRING % ("", "Retry=3")),
        ("traefik", TRAEFIK % ("again", "")),
        ("dapr", DAPR % "retry: r"),
        ("grpc", GRPC % ""),
        ("consul", CONSUL % "NumRetries = 3"),
        ("aws", AWS % 3),
    ],
)
def test_import__a_policy_whose_attempts_have_no_timeout_says_nothing_of_retries_beside_them(keys, dialect, text):
    _, held, printed = keys(dialect, text)
    assert held["maxRetries"] > 0 and held["attemptTimeout"] == "none", printed
    assert "retryOverdue" not in printed


# ---- where the key stands ----

TWO = """kind: VirtualService
metadata: {name: v}
spec:
  hosts: [shop]
  http:
  - {match: [{uri: {prefix: /a/}}], route: [{destination: {host: a}}], retries: {attempts: 1, perTryTimeout: 1s}}
  - {match: [{uri: {prefix: /b/}}], route: [{destination: {host: b}}], retries: {attempts: %s, perTryTimeout: 2s}}
"""


def test_import__a_policy_all_of_whose_services_wait_with_retries_says_so_once(keys):
    defaults, _, printed = keys("istio", TWO % 2)
    assert defaults["retryOverdue"] is False and printed.count("retryOverdue") == 1


def test_import__a_policy_some_of_whose_services_retry_says_it_in_these(becalm):
    policy = yaml.safe_load(becalm("import", "istio", "-", stdin=TWO % 0).stdout)
    assert "retryOverdue" not in policy["defaults"]
    assert {name: service.get("retryOverdue") for name, service in policy["services"].items()} == {"a": False, "b": None}


def test_import__an_endpoint_that_alone_retries_says_it_itself(becalm):
    text = """kind: VirtualService
metadata: {name: v}
spec:
  hosts: [a]
  http:
  - {match: [{uri: {exact: /x}}], route: [{destination: {host: a}}], retries: {attempts: 1, perTryTimeout: 1s}}
  - {route: [{destination: {host: a}}], retries: {attempts: 0}}
"""
    policy = yaml.safe_load(becalm("import", "istio", "-", stdin=text).stdout)
    (service,) = policy["services"].values()
    (endpoint,) = service["endpoints"].values()
    assert endpoint["retryOverdue"] is False and "retryOverdue" not in service and "retryOverdue" not in policy["defaults"]


def test_import__a_piece_with_retries_waits_with_them_in_every_service(keys):
    defaults, _, printed = keys("istio", "retries: {attempts: 3, perTryTimeout: 1s}")
    assert defaults["retryOverdue"] is False
    assert "not written: the source retries only after an attempt has ended" in printed


def test_import__files_of_two_products_say_it_in_each_service_and_name_neither(becalm):
    route = GATEWAY_API.replace("name: a", "name: c") % "retry: {attempts: 3}, timeouts: {backendRequest: 1s}"
    done = becalm("import", "-", stdin=TWO % 2 + "---\n" + route)
    policy = yaml.safe_load(done.stdout)
    assert {name: service.get("retryOverdue") for name, service in policy["services"].items()} == {"a": False, "b": False, "c": False}
    assert "retryOverdue" not in policy.get("defaults", {})
    assert words(done.stdout).count("not written: the source retries only after an attempt has ended") == 3


def test_import__hedges_of_envoy_are_still_sent_beside_an_attempt(keys):
    text = ENVOY % "retry_policy: {num_retries: 3, per_try_timeout: 1s}, hedge_policy: {hedge_on_per_try_timeout: true}"
    defaults, held, printed = keys("envoy", text)
    assert held["hedge"]["enabled"] is True and held["retryOverdue"] is False and "retryOverdue" not in defaults
    assert "not written: Envoy sends only hedges beside an attempt" in printed


# ---- every file of the corpus ----


def levels(policy):
    """Each place that keys can stand in, as the list of the mappings that hold for it, from the inside to the outside."""
    defaults = policy.get("defaults") or {}
    yield [defaults]
    for service in (policy.get("services") or {}).values():
        yield [service or {}, defaults]
        for endpoint in ((service or {}).get("endpoints") or {}).values():
            yield [endpoint or {}, service or {}, defaults]


def value_of(level, key):
    return next((each[key] for each in level if key in each), None)


@pytest.mark.parametrize("name", FILES)
def test_import__the_key_stands_wherever_a_retry_could_be_sent_beside_an_attempt(becalm, name):
    done = becalm("import", name, cwd=FOLDER)
    policy = yaml.safe_load(done.stdout) if done.returncode == 0 else {}
    services = [level for level in levels(policy) if len(level) == 2]
    for level in levels(policy):
        retries, timeout = value_of(level, "maxRetries"), value_of(level, "attemptTimeout")
        needed = bool(retries) and timeout != "none"
        assert not needed or value_of(level, "retryOverdue") is False, level
        once = len(level) == 1 and all(value_of(each, "maxRetries") and value_of(each, "attemptTimeout") != "none" for each in services)
        assert needed or once or "retryOverdue" not in level[0], level
