# SPDX-License-Identifier: MIT
"""becalm import envoy, beyond bootstrap files: dumps of Envoy and istioctl, xDS, EnvoyFilter, TLS; and the summary of
all dialects."""

import json
import resource

import pytest
import yaml
from policy_reader import Policy

TYPE = "type.googleapis.com/envoy."
ROUTES = {
    "name": "80",
    "virtual_hosts": [
        {
            "name": "cart.shop.svc.cluster.local:80",
            "domains": ["cart", "cart:80", "cart.shop.svc.cluster.local"],
            "routes": [
                {
                    "match": {"prefix": "/"},
                    "route": {"cluster": "outbound|80||cart.shop.svc.cluster.local", "timeout": "7s", "retry_policy": {"retry_on": "gateway-error", "num_retries": 4}},
                }
            ],
        },
        {"name": "allow_any", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "PassthroughCluster"}}]},
    ],
}
CLUSTER = {
    "@type": TYPE + "config.cluster.v3.Cluster",
    "name": "outbound|80||cart.shop.svc.cluster.local",
    "type": "EDS",
    "eds_cluster_config": {"service_name": "outbound|80||cart.shop.svc.cluster.local"},
    "connect_timeout": "3s",
    "circuit_breakers": {"thresholds": [{"max_requests": 50}]},
}
ENDPOINTS = {
    "@type": TYPE + "config.endpoint.v3.ClusterLoadAssignment",
    "cluster_name": "outbound|80||cart.shop.svc.cluster.local",
    "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": ip, "port_value": 8080}}}} for ip in ("10.1.0.1", "10.1.0.2")]}],
}
DUMP = {
    "configs": [
        {"@type": TYPE + "admin.v3.BootstrapConfigDump", "bootstrap": {"static_resources": {"clusters": [{"name": "never-read"}]}}},
        {
            "@type": TYPE + "admin.v3.ClustersConfigDump",
            "static_clusters": [{"cluster": {"name": "BlackHoleCluster", "type": "STATIC"}}],
            "dynamic_active_clusters": [{"cluster": CLUSTER}, {"cluster": {"name": "inbound|8080||", "connect_timeout": "1s"}}],
        },
        {"@type": TYPE + "admin.v3.ListenersConfigDump", "dynamic_listeners": [{"active_state": {"listener": {"name": "x", "filter_chains": []}}}]},
        {"@type": TYPE + "admin.v3.RoutesConfigDump", "dynamic_route_configs": [{"version_info": "1", "route_config": ROUTES}]},
    ]
}


def imported(becalm, value, *options, code=0):
    text = value if isinstance(value, str) else json.dumps(value)
    done = becalm("import", *options, "-", stdin=text)
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize(
    "source, hosts",
    [
        (DUMP, ["cart.shop.svc.cluster.local:80"]),
        ({"configs": [*DUMP["configs"], {"@type": TYPE + "admin.v3.EndpointsConfigDump", "dynamic_endpoint_configs": [{"endpoint_config": ENDPOINTS}]}]}, ["10.1.0.1:8080", "10.1.0.2:8080"]),
        ([ROUTES, CLUSTER], ["cart.shop.svc.cluster.local:80"]),
        ({"version_info": "3", "resources": [{"@type": TYPE + "config.route.v3.RouteConfiguration", **ROUTES}, CLUSTER, ENDPOINTS]}, ["10.1.0.1:8080", "10.1.0.2:8080"]),
        ({"resources": [{"name": "a", "version": "1", "resource": each} for each in (CLUSTER, ENDPOINTS, {"@type": TYPE + "config.route.v3.RouteConfiguration", **ROUTES})]}, ["10.1.0.1:8080", "10.1.0.2:8080"]),
        ({"routes": ROUTES["virtual_hosts"][0]["routes"], "clusters": [{**CLUSTER, "load_assignment": ENDPOINTS}]}, ["10.1.0.1:8080", "10.1.0.2:8080"]),
    ],
    ids=["config_dump", "config_dump with endpoints", "istioctl", "xDS", "delta xDS", "routes beside clusters"],
)
def test_import_envoy__what_it_says_of_itself_is_read(becalm, source, hosts):
    done = imported(becalm, source, "--strict")
    policy = Policy(becalm, done.stdout)
    call = policy.call("cart", "/x")
    assert (call["hosts"], call["attempts"], call["deadline"], call["connect_timeout"]) == (hosts, 5, 7, 3)
    assert call["values"]["limit.max"] == "50" and call["retry_on"] == {"gateway-error", "reset", "connect-failure", "refused-stream", "timeout"}
    assert "never-read" not in done.stdout and "inbound" not in done.stdout and "PassthroughCluster:" not in done.stdout


def test_import_envoy__a_filter_of_the_second_version_is_read(becalm):
    """There a filter's settings stand in `config`, without a type."""
    manager = {"name": "envoy.http_connection_manager", "config": {"route_config": ROUTES}}
    listener = {"name": "in", "filter_chains": [{"filters": [manager]}]}
    done = imported(becalm, {"static_resources": {"listeners": [listener], "clusters": [CLUSTER | {"load_assignment": ENDPOINTS}]}})
    assert "maxRetries: 4" in done.stdout and "route_config is read" not in done.stderr


def test_import_envoy__a_list_of_whatever_else_is_no_list_of_objects(becalm):
    assert "the document is not a mapping of keys" in imported(becalm, "[1, 2]", "envoy", code=1).stderr


PATCH = """
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {{name: a}}
spec:
  configPatches:
  - applyTo: {to}
    match: {match}
    patch: {{operation: MERGE, value: {value}}}
"""


def test_import_envoy__a_filter_of_istio_patches_a_cluster(becalm):
    text = PATCH.format(to="CLUSTER", match="{cluster: {service: cart.shop}}", value="{connect_timeout: 2s, circuit_breakers: {thresholds: [{max_retries: 7}]}}")
    values = Policy(becalm, imported(becalm, text, "--strict").stdout).call("cart.shop", "/")["values"]
    assert (values["connectTimeout"], values["budget.kind"], values["budget.minConcurrency"]) == ("2s", "concurrency", "7")


def test_import_envoy__a_filter_of_istio_patches_routes_with_a_warning(becalm):
    text = PATCH.format(to="HTTP_ROUTE", match="{routeConfiguration: {vhost: {name: 'cart:80'}}}", value="{route: {timeout: 9s, retry_policy: {retry_on: reset, num_retries: 1}}}")
    done = imported(becalm, text)
    call = Policy(becalm, done.stdout).call("cart", "/")
    assert (call["attempts"], call["deadline"]) == (2, 9) and "here it holds for the whole service" in done.stderr
    imported(becalm, text, "--strict", code=1)


def test_import_envoy__another_patch_is_named(becalm):
    text = PATCH.format(to="HTTP_FILTER", match="{}", value="{name: x}") + "---\n" + yaml.safe_dump(CLUSTER)
    assert "a patch of HTTP_FILTER is not about retries, or not read" in imported(becalm, text, "--strict").stderr


@pytest.mark.parametrize(
    "socket, lines",
    [
        ("{sni: a.example, common_tls_context: {}}", ["verify: none", "serverName: a.example"]),
        ("{sni: a.example, common_tls_context: {validation_context: {trusted_ca: {filename: ca.pem}}}}", ["ca: ca.pem", "serverName: a.example"]),
        ("{common_tls_context: {tls_certificates: [{certificate_chain: {filename: c.pem}, private_key: {filename: k.pem}}]}}", ["cert: c.pem", "key: k.pem"]),
    ],
)
def test_import_envoy__the_tls_of_a_cluster_is_kept(becalm, socket, lines):
    text = f"static_resources: {{clusters: [{{name: a, transport_socket: {{name: envoy.transport_sockets.tls, typed_config: {socket}}}}}]}}"
    tls = yaml.safe_load(imported(becalm, text, "--strict").stdout)["services"]["a"]["tls"]
    assert {f"{key}: {value}" for key, value in tls.items()} >= set(lines)


@pytest.mark.parametrize(
    "context",
    [
        "{validation_context_sds_secret_config: {name: ca}}",
        "{combined_validation_context: {default_validation_context: {}, validation_context_sds_secret_config: {name: ca}}}",
        "{tls_certificate_sds_secret_configs: [{name: own}]}",
    ],
)
def test_import_envoy__a_secret_that_comes_over_the_wire_is_a_warning_and_never_less_verified(becalm, context):
    text = f"static_resources: {{clusters: [{{name: a, transport_socket: {{name: tls, typed_config: {{sni: a.example, common_tls_context: {context}}}}}}}]}}"
    done = imported(becalm, text, "--strict", code=1)
    assert "come from elsewhere (SDS)" in done.stderr
    assert yaml.safe_load(done.stdout)["services"]["a"]["tls"] == {"serverName": "a.example"}


def test_import_envoy__the_files_of_a_combined_context_are_kept(becalm):
    context = "{combined_validation_context: {default_validation_context: {trusted_ca: {filename: ca.pem}}}}"
    text = f"static_resources: {{clusters: [{{name: a, transport_socket: {{name: tls, typed_config: {{sni: b, common_tls_context: {context}}}}}}}]}}"
    assert yaml.safe_load(imported(becalm, text, "--strict").stdout)["services"]["a"]["tls"] == {"ca": "ca.pem", "serverName": "b"}


@pytest.mark.parametrize(
    "socket, code",
    [("{name: envoy.transport_sockets.raw_buffer}", 0), ("{name: envoy.transport_sockets.alts, typed_config: {handshaker_service: a}}", 1)],
)
def test_import_envoy__a_transport_socket_without_tls_makes_none(becalm, socket, code):
    done = imported(becalm, f"static_resources: {{clusters: [{{name: a, connect_timeout: 1s, transport_socket: {socket}}}]}}", "--strict", code=code)
    assert "tls" not in yaml.safe_load(done.stdout)["services"]["a"]
    assert ("of transport sockets only TLS is read; hosts are called without it" in done.stderr) == (code == 1)


def test_import_envoy__tls_that_is_in_no_file_is_a_warning(becalm):
    text = "static_resources: {clusters: [{name: a, transport_socket: {name: tls, typed_config: {common_tls_context: {validation_context: {trusted_ca: {inline_string: x}}}}}}]}"
    assert "it is in no file: write tls.ca" in imported(becalm, text, "--strict", code=1).stderr


# ---- 500 ----


@pytest.mark.parametrize(
    "text",
    [
        "static_resources: {listeners: [], clusters: [{name: a}]}\nvirtual_hosts: [{domains: [a], routes: [{match: {prefix: /}, route: {cluster: a, retry_policy: {retry_on: 5xx, num_retries: N}}}]}]",
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec: {hosts: [a], http: [{route: [{destination: {host: a}}], retries: {attempts: N, retryOn: '5xx'}}]}",
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a}\nspec: {hostnames: [a.example], rules: [{backendRefs: [{name: a, port: 80}], retry: {attempts: N, codes: [500]}}]}",
        "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: b}\nspec: {targetRefs: [{kind: HTTPRoute, name: a}], retry: {numRetries: N, retryOn: {httpStatusCodes: [500], triggers: [retriable-status-codes]}}}\n---\n"
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a}\nspec: {hostnames: [a.example], rules: [{backendRefs: [{name: a, port: 80}]}]}",
    ],
    ids=["envoy", "istio", "gateway-api", "envoy-gateway"],
)
def test_import__that_a_500_is_retried_once_is_told_where_more_retries_are_written(becalm, text):
    assert "(500) is retried once per call" in imported(becalm, text.replace("N", "3"), "--strict", code=1).stderr
    assert "(500)" not in imported(becalm, text.replace("N", "1"), "--strict").stderr


# ---- annotations, the summary ----

ROUTE = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: a, annotations: {{ {0} }}}}
spec: {{rules: [{{backendRefs: [{{name: a, port: 80}}]}}]}}
"""


@pytest.mark.parametrize(
    "annotation, level",
    [
        ("projectcontour.io/num-retries: '3'", "warning"),
        ("gateway.envoyproxy.io/retry-on: 5xx", "warning"),
        ("example.com/request-timeout: 5s", "warning"),
        ("konghq.com/strip-path: 'true'", "note"),
        ("nginx.ingress.kubernetes.io/proxy-read-timeout: '5'", "warning"),
    ],
)
def test_import__an_annotation_that_nobody_reads_is_named(becalm, annotation, level):
    done = imported(becalm, ROUTE.format(annotation), "--strict", code=1 if level == "warning" else 0)
    assert f"{level}: annotation {annotation.split(':')[0]} has no equivalent: it is not read here" in done.stderr


def test_import__annotations_about_nothing_of_that_are_passed_over(becalm):
    done = imported(becalm, ROUTE.format("kubectl.kubernetes.io/last-applied-configuration: x, app.example/owner: me, retry.linkerd.io/http: 5xx"), "--strict")
    assert "annotation" not in done.stderr


def test_import__ends_with_three_lines(becalm):
    lines = imported(becalm, "virtual_hosts: [{domains: [a], routes: [{match: {prefix: /}, route: {cluster: a}}]}]").stderr.splitlines()
    assert lines[-3:] == [
        "1 service, 1 route; 0 settings left out, 0 values changed",
        "0 warnings: requests are routed or called in another way; 0 notes: routes and calls stay the same",
        "the policy turns off what the source does not configure; to use Becalm's default retries and timeouts, remove the lines that say `not written`",
    ]


def test_import__what_repeats_is_one_line_and_there_are_a_dozen_at_most(becalm):
    clusters = [{"name": f"c{i}", "lb_policy": "MAGLEV", f"odd_{i % 20}": 1, "health_checks": []} for i in range(60)]
    routes = [{"match": {"safe_regex": {"regex": "x"}, "prefix": "/"}, "route": {"cluster": "c1"}}, {"match": {"prefix": "/"}, "route": {"cluster": "c2"}}]
    source = {"static_resources": {"clusters": clusters}, "virtual_hosts": [{"domains": ["a"], "routes": routes}]}
    done = imported(becalm, source)
    lines = done.stderr.splitlines()
    assert len(lines) <= 12 + 1 + 3 and "(60 times)" not in lines[0]
    assert ": warning: match.safe_regex" in lines[0], "warnings come before notes, even if a hundred notes came first"
    assert any("lb_policy" in line and line.endswith(" times)") for line in lines)
    assert "more; the comments in the policy name all of them" in lines[-4]
    summary = json.loads(imported(becalm, source, "--json").stdout)["summary"]
    assert (summary["warnings"], summary["services"], summary["routes"], summary["leftOut"]) == (1, 60, 2, 1) and summary["notes"] > 100


# ---- size ----


def test_import__a_file_of_16_mib_and_2_million_values_takes_no_time_that_grows_with_its_square(becalm, tmp_path):
    rule = "- {{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {{name: s{0}}}, spec: {{host: s{0}, trafficPolicy: {{loadBalancer: {{simple: RANDOM}}, connectionPool: {{tcp: {{maxConnections: 1}}}}}}}}}}\n"
    (tmp_path / "mesh.yaml").write_text("apiVersion: v1\nkind: List\nitems:\n" + "".join(map(rule.format, range(60000))), encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = becalm("import", "mesh.yaml", cwd=tmp_path, timeout=120)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert done.returncode == 1 and "60000 matches of routes are more than a policy has room for" in done.stderr
    assert spent < 25, "it takes 1.5 s; what compares each with each took over half a minute"


def test_import__more_routes_than_a_policy_has_room_for_are_an_error(becalm):
    routes = "".join(f"  - {{match: {{prefix: /p{i}/}}, route: {{cluster: c{i % 50}}}}}\n" for i in range(20001))
    done = becalm("import", "-", stdin="virtual_hosts:\n- domains: ['*']\n  routes:\n" + routes)
    assert done.returncode == 1 and done.stdout == "" and "20001 matches of routes are more than a policy has room for" in done.stderr


# ---- TLS of the others ----


def tls_of(becalm, text, *words, code=0):
    done = becalm("import", *words, "--strict", "-", stdin=text)
    assert done.returncode == code, done.stderr
    (service,) = yaml.safe_load(done.stdout)["services"].values()
    return service.get("tls"), done.stderr


NGINX = "http { upstream u { server a:443; } server { listen 80; location / { proxy_pass https://u; SETTINGS } LOCATION } }"


def test_import__nginx_verifies_no_host_unless_it_is_told_to(becalm):
    assert tls_of(becalm, NGINX.replace("SETTINGS", "").replace("LOCATION", ""), "nginx")[0] == {"verify": "none"}
    settings = "proxy_ssl_verify on; proxy_ssl_trusted_certificate ca.pem; proxy_ssl_name a.example; proxy_ssl_certificate c.pem; proxy_ssl_certificate_key k.pem;"
    tls = tls_of(becalm, NGINX.replace("SETTINGS", settings).replace("LOCATION", ""), "nginx")[0]
    assert tls == {"verify": "full", "ca": "ca.pem", "serverName": "a.example", "cert": "c.pem", "key": "k.pem"}


def test_import__an_upstream_of_nginx_with_and_without_tls_is_a_warning(becalm):
    text = NGINX.replace("SETTINGS", "").replace("LOCATION", "location /p { proxy_pass http://u; }")
    assert "with TLS in one place and without it in another" in tls_of(becalm, text, "nginx", code=1)[1]


HAPROXY = "defaults\n mode http\n option redispatch\n timeout connect 2s\n timeout server 10s\nfrontend f\n bind :80\n default_backend b\nbackend b\n server a 10.0.0.1:443 ssl WORDS\n server b 10.0.0.2:443 OTHER\n"


def test_import__servers_of_haproxy_are_verified_unless_they_say_none(becalm):
    text = HAPROXY.replace("WORDS", "verify required ca-file ca.pem verifyhost a.example crt both.pem").replace("OTHER", "ssl")
    assert tls_of(becalm, text, "haproxy")[0] == {"verify": "full", "ca": "ca.pem", "serverName": "a.example", "cert": "both.pem", "key": "both.pem"}
    assert tls_of(becalm, HAPROXY.replace("WORDS", "verify none").replace("OTHER", "ssl verify none"), "haproxy")[0] == {"verify": "none"}
    assert "with TLS, or none" in tls_of(becalm, HAPROXY.replace("WORDS", "verify none").replace("OTHER", ""), "haproxy", code=1)[1]


RULE = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a}\nspec: {host: a, trafficPolicy: {tls: TLS}}\n"


@pytest.mark.parametrize(
    "tls, want",
    [
        ("{mode: SIMPLE, sni: a.example, caCertificates: ca.pem}", {"verify": "full", "serverName": "a.example", "ca": "ca.pem"}),
        ("{mode: SIMPLE, insecureSkipVerify: true}", {"verify": "none"}),
        ("{mode: MUTUAL, clientCertificate: c.pem, privateKey: k.pem}", {"verify": "full", "cert": "c.pem", "key": "k.pem"}),
        ("{mode: DISABLE}", None),
    ],
)
def test_import__the_tls_of_a_destination_rule_is_kept(becalm, tls, want):
    assert tls_of(becalm, RULE.replace("TLS", tls))[0] == want


@pytest.mark.parametrize("dialect, text", [("istio", "trafficPolicy: {tls: {mode: SIMPLE}, outlierDetection: {}}"),
                                           ("envoy", "{outlier_detection: {}, transport_socket: {name: tls, typed_config: {common_tls_context: {}}}}")])
def test_import__tls_of_no_service_is_a_warning_and_the_rest_is_printed(becalm, dialect, text):
    done = imported(becalm, text, dialect, "--strict", code=1)
    assert "only a service has TLS: write it there" in done.stderr
    assert yaml.safe_load(done.stdout)["defaults"]["outlier"]["consecutive5xxErrors"] == 5


@pytest.mark.parametrize("alone", ["clientCertificate: c.pem", "privateKey: k.pem"])
def test_import__a_certificate_without_its_key_is_a_warning(becalm, alone):
    """A policy with one of them would not be taken."""
    got, said = tls_of(becalm, RULE.replace("TLS", f"{{mode: MUTUAL, {alone}}}"), code=1)
    assert got == {"verify": "full"} and "a certificate and its key belong together: write tls.cert and tls.key" in said


@pytest.mark.parametrize("alone", ["certificate_chain: {filename: c.pem}", "certificate_chain: {inline_string: c}, private_key: {filename: k.pem}"])
def test_import_envoy__a_certificate_without_its_key_is_a_warning(becalm, alone):
    text = f"static_resources: {{clusters: [{{name: a, transport_socket: {{name: tls, typed_config: {{common_tls_context: {{tls_certificates: [{{{alone}}}]}}}}}}}}]}}"
    got, said = tls_of(becalm, text, "envoy", code=1)
    assert got == {"verify": "none"} and "a certificate and its key belong together: write tls.cert and tls.key" in said


def test_import__a_secret_of_kubernetes_is_a_warning(becalm):
    assert "it is a Secret of Kubernetes: write tls.ca" in tls_of(becalm, RULE.replace("TLS", "{mode: SIMPLE, credentialName: c}"), code=1)[1]


def test_import__the_servers_of_haproxy_inherit_tls(becalm):
    text = "defaults\n mode http\n retries 0\nbackend b\n default-server ssl verify none\n server s a:443\n server t b:443\n"
    assert tls_of(becalm, text, "haproxy")[0] == {"verify": "none"}


TRAEFIK = """
http:
  routers: {r: {rule: "PathPrefix(`/`)", service: s}}
  services: {s: {loadBalancer: {serversTransport: t, servers: [{url: "https://a:443"}]}}}
  serversTransports: {t: TLS}
"""


@pytest.mark.parametrize(
    "tls, want, code",
    [
        ("{serverName: a.example}", {"serverName": "a.example"}, 0),
        ("{insecureSkipVerify: true}", {"verify": "none"}, 0),
        ("{insecureSkipVerify: false, rootCAs: [ca.pem]}", {"ca": "ca.pem"}, 0),
        ("{rootCAs: [ca.pem, other.pem]}", {"ca": "ca.pem"}, 1),
    ],
)
def test_import__the_tls_of_a_servers_transport_of_traefik_is_kept(becalm, tls, want, code):
    got, said = tls_of(becalm, TRAEFIK.replace("TLS", tls), "traefik", code=code)
    assert got == want and ("tls.ca is one file: put all authorities into it" in said) == (code == 1)


def test_import__the_tls_of_a_mesh_is_a_warning(becalm):
    assert "the certificates of the mesh are not known here" in tls_of(becalm, RULE.replace("TLS", "{mode: ISTIO_MUTUAL}"), code=1)[1]


# ---- requests that fit no route of their host ----

HOSTS = """
virtual_hosts:
- {name: a, domains: [a.example], routes: [{match: {prefix: /api/}, route: {cluster: api}}REST]}
- {name: rest, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: web}}]}
"""


def test_import__a_request_that_fits_no_route_of_its_host_is_told_where_a_wider_host_takes_it(becalm):
    done = imported(becalm, HOSTS.replace("REST", ""), "--strict", code=1)
    assert "a request to a.example that none of its routes fits is refused there, and here goes to web" in done.stderr
    assert Policy(becalm, done.stdout).call("a.example", "/x")["service"] == "web"
    assert "is refused there" not in imported(becalm, HOSTS.replace("REST", ", {match: {prefix: /}, route: {cluster: api}}"), "--strict").stderr


@pytest.mark.parametrize(
    "rest, told",
    [
        (", {match: {prefix: /, headers: [{name: ':method', string_match: {exact: GET}}]}, route: {cluster: api}}", 1),  # not POST
        (", {match: {prefix: /, headers: [{name: x-a, string_match: {exact: b}}]}, route: {cluster: api}}", 1),
        (", {match: {prefix: /b/}, route: {cluster: api}}, {match: {prefix: /c/}, route: {cluster: api}}", 1),  # once for the host
    ],
)
def test_import__what_a_host_takes_in_part_is_told_once(becalm, rest, told):
    done = imported(becalm, HOSTS.replace("REST", rest), "--strict", code=1)
    assert done.stderr.count("is refused there") == told, done.stderr


def test_import__a_host_beside_another_takes_nothing_of_it(becalm):
    done = imported(becalm, HOSTS.replace("REST", "").replace("'*'", "b.example"), "--strict")
    assert "is refused there" not in done.stderr
