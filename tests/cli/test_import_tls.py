# SPDX-License-Identifier: MIT
"""becalm import: where clients come in with TLS (Istio's Gateway, listeners of Envoy), which names hosts must have, and the numbers of HTTP/2."""

import pathlib

import pytest
import yaml

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "policies/import"
VIA = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec: {hosts: [a], http: [{route: [{destination: {host: a}}]}]}\n---\n"
GATEWAY = VIA + "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: g}\nspec: {servers: [SERVERS]}\n"
FILES = "serverCertificate: a.pem, privateKey: a.key"
RULE = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a}\nspec: {host: a, trafficPolicy: POLICY}\n"


def imported(becalm, text, *options, code=0):
    """The policy, and the messages of the import."""
    done = becalm("import", *options, "-", stdin=text)
    assert done.returncode == code, done.stderr
    return yaml.safe_load(done.stdout), done.stderr


def server(tls, port=443, protocol="HTTPS", hosts="'*'", more=""):
    return f"{{port: {{number: {port}, protocol: {protocol}}}, hosts: [{hosts}], tls: {{{tls}}}{more}}}"


def listen(becalm, servers, *options, code=0):
    policy, said = imported(becalm, GATEWAY.replace("SERVERS", servers), *options, code=code)
    return policy.get("listen"), said


# ---- Istio's Gateway ----


def test_import_tls__a_gateway_with_tls_becomes_listen(becalm):
    got, _ = listen(becalm, server(f"mode: SIMPLE, {FILES}"), "--strict")
    assert got == [{"address": "0.0.0.0:443", "tls": {"certificates": [{"cert": "a.pem", "key": "a.key"}]}, "protocols": ["h2", "h1"]}]


def test_import_tls__without_tls_listen_stays_the_users(becalm):
    got, said = listen(becalm, "{port: {number: 80, protocol: HTTP}, hosts: ['*']}", "--strict")
    assert got is None and "`listen` sets the addresses that Becalm listens on" in said


def test_import_tls__with_tls_on_one_port_all_ports_are_written(becalm):
    got, _ = listen(becalm, server(f"mode: SIMPLE, {FILES}") + ", {port: {number: 80, protocol: HTTP}, hosts: ['*'], bind: 10.0.0.1}", "--strict")
    assert [each["address"] for each in got] == ["0.0.0.0:443", "10.0.0.1:80"] and "tls" not in got[1]


@pytest.mark.parametrize("lost", ["mode: PASSTHROUGH", "mode: ISTIO_MUTUAL", f"mode: MUTUAL, {FILES}", "mode: SIMPLE"])
def test_import_tls__a_port_whose_tls_is_lost_is_never_opened_without_it(becalm, lost):
    got, said = listen(becalm, server(f"mode: SIMPLE, {FILES}") + ", " + server(lost, port=8443), "--strict", code=1)
    assert [each["address"] for each in got] == ["0.0.0.0:443"] and "its port is left out" in said


@pytest.mark.parametrize("mode, auth", [("MUTUAL", "required"), ("OPTIONAL_MUTUAL", "optional")])
def test_import_tls__a_gateway_that_asks_for_certificates_asks_for_them(becalm, mode, auth):
    got, _ = listen(becalm, server(f"mode: {mode}, {FILES}, caCertificates: ca.pem"), "--strict")
    assert got[0]["tls"]["clientCa"] == "ca.pem" and got[0]["tls"]["clientAuth"] == auth


def test_import_tls__without_an_authority_nobody_comes_in_unasked(becalm):
    got, said = listen(becalm, server(f"mode: MUTUAL, {FILES}"), "--strict", code=1)
    assert got is None and "its port is left out" in said


def test_import_tls__the_servers_of_one_port_share_its_certificates(becalm):
    other = "mode: SIMPLE, serverCertificate: b.pem, privateKey: b.key"
    got, _ = listen(becalm, server(f"mode: SIMPLE, {FILES}", hosts="a.example") + ", " + server(other, hosts="shop/b.example"), "--strict")
    assert len(got) == 1 and [each["cert"] for each in got[0]["tls"]["certificates"]] == ["a.pem", "b.pem"]
    assert got[0]["tls"]["strictSni"] is True
    got, _ = listen(becalm, server(f"mode: SIMPLE, {FILES}", hosts="a.example") + ", " + server(other, hosts="shop/*"), "--strict")
    assert "strictSni" not in got[0]["tls"]


def test_import_tls__a_secret_is_expected_as_a_folder_with_a_warning(becalm):
    got, said = listen(becalm, server("mode: MUTUAL, credentialName: shop-cert"), "--strict", code=1)
    assert got[0]["tls"] == {
        "certificates": [{"cert": "shop-cert/tls.crt", "key": "shop-cert/tls.key"}],
        "clientCa": "shop-cert/ca.crt",
        "clientAuth": "required",
    }
    assert "it is a Secret of Kubernetes: mount it as the folder shop-cert beside the policy" in said


@pytest.mark.parametrize("written, want, code", [("TLSV1_3", "1.3", 0), ("TLSV1_2", "1.2", 0), ("TLS_AUTO", None, 0), ("TLSV1_0", None, 1)])
def test_import_tls__the_oldest_version_is_kept_or_told(becalm, written, want, code):
    got, said = listen(becalm, server(f"mode: SIMPLE, {FILES}, minProtocolVersion: {written}"), "--strict", code=code)
    assert str(got[0]["tls"].get("minVersion")) == str(want) and ("TLS 1.2 is the oldest" in said) == (code == 1)


@pytest.mark.parametrize(
    "servers, words",
    [
        (server("mode: PASSTHROUGH"), "TLS is not passed through; its port is left out"),
        (server("mode: ISTIO_MUTUAL"), "the certificates of the mesh are not known here; its port is left out"),
        (server("httpsRedirect: true", port=80, protocol="HTTP"), "requests without TLS are passed on"),
        (server(f"mode: MUTUAL, {FILES}, caCertificates: ca.pem, subjectAltNames: [x]"), "clients with any certificate of clientCa can connect"),
        (server(f"mode: SIMPLE, {FILES}", more=", bind: example.com"), "is no address to listen on"),
        (server(f"mode: SIMPLE, {FILES}", port=70000), "is no address to listen on"),
    ],
)
def test_import_tls__what_a_gateway_does_and_becalm_does_not_is_a_warning(becalm, servers, words):
    assert words in listen(becalm, servers, "--strict", code=1)[1]


def test_import_tls__ports_that_do_not_speak_http_are_notes(becalm):
    got, said = listen(becalm, server(f"mode: SIMPLE, {FILES}") + ", {port: {number: 9000, protocol: TCP}, hosts: ['*']}", "--strict")
    assert len(got) == 1 and "only HTTP is retried; the port is left out" in said


def test_import_tls__a_gateway_of_the_gateway_api_is_not_istios(becalm):
    text = VIA + "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: g}\nspec: {listeners: [{port: 443, protocol: HTTPS}]}\n"
    policy, said = imported(becalm, text)
    assert "listen" not in policy and 'kind "Gateway"' in said


# ---- hosts: names, protocol, numbers ----


@pytest.mark.parametrize(
    "tls, name, code",
    [
        ("{mode: SIMPLE, subjectAltNames: [x.example]}", "x.example", 0),
        ("{mode: SIMPLE, sni: x.example, subjectAltNames: [y.example, x.example]}", "x.example", 1),
        ("{mode: SIMPLE, sni: x.example, subjectAltNames: [x.example]}", "x.example", 0),
        ("{mode: SIMPLE, sni: x.example, subjectAltNames: [y.example]}", "x.example", 1),
        ("{mode: SIMPLE, subjectAltNames: ['spiffe://a/b']}", None, 1),
    ],
)
def test_import_tls__the_name_of_a_host_is_the_one_that_is_asked_for(becalm, tls, name, code):
    policy, said = imported(becalm, RULE.replace("POLICY", f"{{tls: {tls}}}"), "--strict", code=code)
    assert policy["services"]["a"]["tls"].get("serverName") == name and ("subjectAltNames has no equivalent" in said) == (code == 1)


@pytest.mark.parametrize("word, want", [("UPGRADE", "h2"), ("DO_NOT_UPGRADE", "h1"), ("DEFAULT", None)])
def test_import_tls__the_protocol_of_a_destination_rule_is_kept(becalm, word, want):
    policy, _ = imported(becalm, RULE.replace("POLICY", f"{{connectionPool: {{http: {{h2UpgradePolicy: {word}, maxConcurrentStreams: 7}}}}}}"), "--strict")
    assert policy["services"]["a"].get("protocol") == want and policy["pool"] == {"streams": 7}


def test_import_tls__the_protocol_of_all_services_is_a_warning(becalm):
    _, said = imported(becalm, "trafficPolicy: {connectionPool: {http: {h2UpgradePolicy: UPGRADE, http2MaxRequests: 5}}}", "istio", "--strict", code=1)
    assert "only a service has a protocol: write it there" in said


# ---- Envoy ----

LISTENERS = """
static_resources:
  listeners: [LISTENERS]
  clusters: [{name: a, load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}MORE}]
"""
ROUTES = "route_config: {virtual_hosts: [{name: a, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: a}}]}]}"
CERTIFICATE = "tls_certificates: [{certificate_chain: {filename: a.pem}, private_key: {filename: a.key}}]"


def chain(context=None, more="", manager="", match=""):
    tls = f"transport_socket: {{name: tls, typed_config: {{common_tls_context: {{{context}}}{more}}}}}, " if context is not None else ""
    return f"{{{match}{tls}filters: [{{name: hcm, typed_config: {{{manager}{ROUTES}}}}}]}}"


def envoy(becalm, chains, *options, code=0, more="", address="{socket_address: {address: 0.0.0.0, port_value: 8443}}"):
    text = LISTENERS.replace("LISTENERS", f"{{name: l, address: {address}, filter_chains: [{chains}]}}").replace("MORE", more)
    return imported(becalm, text, *options, code=code)


def test_import_tls__a_listener_of_envoy_with_tls_becomes_listen(becalm):
    context = CERTIFICATE + ", alpn_protocols: [h2, http/1.1], tls_params: {tls_minimum_protocol_version: TLSv1_3}"
    policy, _ = envoy(becalm, chain(context), "--strict")
    assert policy["listen"] == [
        {"address": "0.0.0.0:8443", "tls": {"certificates": [{"cert": "a.pem", "key": "a.key"}], "minVersion": 1.3}, "protocols": ["h2", "h1"]}
    ]


@pytest.mark.parametrize(
    "alpn, codec, want",
    [
        ("", "", ["h1"]),  # without ALPN no client speaks HTTP/2
        (", alpn_protocols: [http/1.1]", "", ["h1"]),
        (", alpn_protocols: [h2]", "codec_type: AUTO, ", ["h2", "h1"]),
        (", alpn_protocols: [h2, http/1.1]", "codec_type: HTTP1, ", ["h1"]),
        (", alpn_protocols: [h2]", "codec_type: HTTP2, ", ["h2"]),
    ],
)
def test_import_tls__a_listener_speaks_what_it_spoke(becalm, alpn, codec, want):
    assert envoy(becalm, chain(CERTIFICATE + alpn, manager=codec), "--strict")[0]["listen"][0]["protocols"] == want


@pytest.mark.parametrize("required, auth", [("", "optional"), (", require_client_certificate: false", "optional"), (", require_client_certificate: true", "required")])
def test_import_tls__clients_of_a_listener_show_what_they_showed(becalm, required, auth):
    context = CERTIFICATE + ", validation_context: {trusted_ca: {filename: ca.pem}}"
    tls = envoy(becalm, chain(context, more=required), "--strict")[0]["listen"][0]["tls"]
    assert (tls["clientCa"], tls["clientAuth"]) == ("ca.pem", auth)


def test_import_tls__names_of_chains_are_names_of_certificates(becalm):
    first = chain(CERTIFICATE, match="filter_chain_match: {server_names: [a.example]}, ")
    second = chain(CERTIFICATE.replace("a.", "b."), match="filter_chain_match: {server_names: [b.example]}, ")
    tls = envoy(becalm, first + ", " + second, "--strict")[0]["listen"][0]["tls"]
    assert [each["cert"] for each in tls["certificates"]] == ["a.pem", "b.pem"] and tls["strictSni"] is True
    tls = envoy(becalm, first + ", " + chain(CERTIFICATE.replace("a.", "b.")), "--strict")[0]["listen"][0]["tls"]
    assert "strictSni" not in tls


@pytest.mark.parametrize(
    "chains, words",
    [
        (chain("tls_certificates: [{certificate_chain: {inline_string: x}, private_key: {filename: a.key}}]"), "is in no file; its address is left out"),
        (chain("tls_certificate_sds_secret_configs: [{name: x}]"), "come from elsewhere (SDS)"),
        (chain(""), "it has no certificate; its address is left out"),
        (chain(CERTIFICATE + ", validation_context: {trusted_ca: {inline_string: x}}"), "without it every client could connect"),
        (chain(CERTIFICATE, more=", require_client_certificate: true"), "no certificate of a client can be verified"),
    ],
)
def test_import_tls__a_listener_whose_files_are_not_known_is_left_out(becalm, chains, words):
    policy, said = envoy(becalm, chains, "--strict", code=1)
    assert "listen" not in policy and words in said


def test_import_tls__an_address_of_envoy_whose_tls_is_lost_is_never_opened_without_it(becalm):
    other = f"{{name: m, address: {{socket_address: {{address: 0.0.0.0, port_value: 9443}}}}, filter_chains: [{chain('tls_certificate_sds_secret_configs: [{name: x}]')}]}}"
    first = f"{{name: l, address: {{socket_address: {{address: 0.0.0.0, port_value: 8443}}}}, filter_chains: [{chain(CERTIFICATE)}]}}"
    policy, said = imported(becalm, LISTENERS.replace("LISTENERS", f"{first}, {other}").replace("MORE", ""), "--strict", code=1)
    assert [each["address"] for each in policy["listen"]] == ["0.0.0.0:8443"] and "its address is left out" in said


@pytest.mark.parametrize(
    "chains, words",
    [
        (chain(CERTIFICATE + ", validation_context: {trusted_ca: {filename: ca.pem}, match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: x}}]}"), "clients with any certificate of clientCa can connect"),
        (chain(CERTIFICATE, match="filter_chain_match: {source_prefix_ranges: []}, "), "all clients of an address get the same set of certificates"),
        (chain(CERTIFICATE, manager="codec_type: HTTP3, "), "HTTP/3 is not spoken"),
    ],
)
def test_import_tls__what_a_listener_does_and_becalm_does_not_is_a_warning(becalm, chains, words):
    policy, said = envoy(becalm, chains, "--strict", code=1)
    assert words in said and policy["listen"][0]["tls"]["certificates"]


def test_import_tls__the_second_version_of_envoy_wrote_it_elsewhere(becalm):
    chains = f"{{tls_context: {{common_tls_context: {{{CERTIFICATE}}}}}, filters: [{{name: hcm, config: {{{ROUTES}}}}}]}}"
    more = ", tls_context: {sni: x.example, common_tls_context: {}}"
    policy, _ = envoy(becalm, chains, "--strict", more=more)
    assert policy["listen"][0]["tls"]["certificates"] == [{"cert": "a.pem", "key": "a.key"}]
    assert policy["services"]["a"]["tls"] == {"serverName": "x.example", "verify": "none"}


def test_import_tls__an_address_that_nobody_can_listen_on_leaves_listen_alone(becalm):
    policy, said = envoy(becalm, chain(CERTIFICATE), address="{pipe: {path: /run/x}}")
    assert "listen" not in policy and "`listen` sets the addresses that Becalm listens on" in said


@pytest.mark.parametrize(
    "validation, name, code",
    [
        ("match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: x.example}}]", "x.example", 0),
        ("match_subject_alt_names: [{exact: x.example}]", "x.example", 0),
        ("verify_subject_alt_name: [x.example]", "x.example", 0),
        ("match_typed_subject_alt_names: [{san_type: DNS, matcher: {suffix: .example}}]", None, 1),
        ("match_typed_subject_alt_names: [{san_type: URI, matcher: {exact: 'spiffe://a'}}]", None, 1),
        ("crl: {filename: x}", None, 1),  # Envoy would verify no name at all
    ],
)
def test_import_tls__the_name_that_a_cluster_verifies_is_the_hosts(becalm, validation, name, code):
    context = f"{{common_tls_context: {{validation_context: {{trusted_ca: {{filename: ca.pem}}, {validation}}}}}}}"
    policy, _ = envoy(becalm, chain(), "--strict", code=code, more=f", transport_socket: {{name: tls, typed_config: {context}}}")
    assert policy["services"]["a"]["tls"].get("serverName") == name


def test_import_tls__with_tls_a_cluster_speaks_http_1_unless_it_says_otherwise(becalm):
    socket = ", transport_socket: {name: tls, typed_config: {common_tls_context: {}}}"
    options = ", typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {OPTION}}"
    for more, want in (
        (socket, "h1"),
        ("", None),
        (socket + ", http2_protocol_options: {}", "h2"),
        (socket + options.replace("OPTION", "explicit_http_config: {http2_protocol_options: {}}"), "h2"),
        (socket + options.replace("OPTION", "auto_config: {http2_protocol_options: {max_concurrent_streams: 9}}"), None),
    ):
        assert envoy(becalm, chain(), more=more)[0]["services"]["a"].get("protocol") == want, more


def test_import_tls__the_numbers_of_http_2_are_those_of_the_policy(becalm):
    manager = "http2_protocol_options: {max_concurrent_streams: 128, initial_stream_window_size: 65536, initial_connection_window_size: 1048576}, "
    more = ", http2_protocol_options: {max_concurrent_streams: 64, initial_stream_window_size: 65536}"
    policy, said = envoy(becalm, chain(manager=manager), "--strict", more=more)
    assert policy["http2"] == {"streams": 128, "window": 65536} and policy["pool"] == {"streams": 64}
    assert "a connection's window is that of all its streams together" in said
    policy, said = envoy(becalm, chain(manager=manager), "--strict", code=1, more=more.replace("65536", "1000000000"))
    assert policy["http2"]["window"] == 65536 and "[conflict]" in said and "[out-of-range]" in said


# ---- whole files ----


@pytest.mark.parametrize("name", ["istio-gateway", "envoy-tls"])
def test_import_tls__prints_the_whole_policy_and_all_warnings(becalm, name):
    done = becalm("import", f"{name}.yaml", cwd=FOLDER)
    assert done.stdout == (FOLDER / "expected" / f"{name}.yaml").read_text(encoding="utf-8")
    assert done.stderr == (FOLDER / "expected" / f"{name}.warnings").read_text(encoding="utf-8")
