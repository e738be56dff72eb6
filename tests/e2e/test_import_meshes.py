# SPDX-License-Identifier: MIT
"""becalm import of Envoy, Istio and the Gateway API through the gateway: for each request of the corpus the readers of
tests/cli/test_import_oracle.py, which share nothing with the importer, say to which hosts it goes and how often it is
tried; the hosts, which fail with 503, count. Becalm's budget, breaker and ejection are switched off, as in
test_import_live.py."""

import pathlib
import ssl
import subprocess
import sys

import pytest
import yaml
from conftest import PROGRAM, free_port
from host import Reply, wait_until
from host_h2 import HostH2
from http2 import Http2
from wire import Wire

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import test_import_oracle as oracle  # noqa: E402

ADDED = {"budget": {"kind": "none"}, "breaker": {"enabled": False}, "outlier": {"enabled": False}, "restart": {"enabled": False}, "limit": {"kind": "none"}}
FILES = ["envoy-front.yaml", "istio-ingress.yaml", "gateway-api-shop.yaml"]


def expected(answer, method):
    """How often a request is tried whose hosts answer 503."""
    retried = answer.on is not None and answer.on & {"5xx", "gateway-error", "503"}
    return 1 + answer.retries if retried and method == "GET" else 1


@pytest.mark.parametrize("name", FILES)
def test_import_meshes__each_request_goes_where_the_source_says_as_often_as_it_says(gateway, host, name):
    done = subprocess.run([PROGRAM, "import", str(oracle.CORPUS / name)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    policy = yaml.safe_load(done.stdout)
    stands_for = {}
    for service in policy["services"].values():
        key = tuple(sorted(service["hosts"]))
        if key not in stands_for:
            stands_for[key] = host()
            for path in oracle.REQUESTS[name][1]:
                stands_for[key].on(path, Reply(status=503))
        service["hosts"] = [stands_for[key].address]
    policy.setdefault("defaults", {}).update(ADDED)
    running = gateway(yaml.safe_dump(policy), sets=["pool.idle=0s"])
    hosts, paths = oracle.REQUESTS[name]
    tried = set()
    for target in hosts:
        for method in ("GET", "POST"):
            for path in paths:
                answer = oracle.reader_of(name, target)(oracle.objects_of(name), method, target, path, {})
                for each in stands_for.values():
                    each.forget()
                got = running.ask(method, path, host=target, body=b"x" if method == "POST" else b"")
                where = (method, target, path, answer, got.status)
                if answer is None:
                    assert got.status == 404 and all(each.count() == 0 for each in stands_for.values()), where
                    continue
                mine = stands_for[tuple(answer.hosts)]
                wait_until(lambda host=mine, want=expected(answer, method): host.count() >= want, what=lambda: where)
                assert mine.count() == expected(answer, method), (where, mine.count())
                assert all(each.count() == 0 for each in stands_for.values() if each is not mine), where
                tried.add(mine.count())
    assert len(tried) > 1, "some are repeated and some are not"


GATEWAY = """
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {{name: edge}}
spec:
  servers:
  - {{port: {{number: {port}, protocol: HTTPS}}, bind: 127.0.0.1, hosts: [a.test],
      tls: {{mode: MUTUAL, serverCertificate: {own.cert}, privateKey: {own.key}, caCertificates: {ca}, minProtocolVersion: TLSV1_3}}}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: shop}}
spec: {{hosts: [a.test], http: [{{route: [{{destination: {{host: 127.0.0.1, port: {{number: {host}}}}}}}]}}]}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {{name: shop}}
spec:
  host: 127.0.0.1
  trafficPolicy:
    tls: {{mode: MUTUAL, subjectAltNames: [shop.internal], caCertificates: {ca}, clientCertificate: {own.cert}, privateKey: {own.key}}}
    connectionPool: {{http: {{h2UpgradePolicy: UPGRADE}}}}
"""
ENVOY = """
static_resources:
  listeners:
  - name: https
    address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - filter_chain_match: {{server_names: [a.test]}}
      transport_socket: {{name: envoy.transport_sockets.tls, typed_config: {{require_client_certificate: true, common_tls_context: {{
        alpn_protocols: [h2, http/1.1], tls_params: {{tls_minimum_protocol_version: TLSv1_3}},
        tls_certificates: [{{certificate_chain: {{filename: {own.cert}}}, private_key: {{filename: {own.key}}}}}],
        validation_context: {{trusted_ca: {{filename: {ca}}}}}}}}}}}
      filters: [{{name: hcm, typed_config: {{http2_protocol_options: {{max_concurrent_streams: 7}}, route_config: {{virtual_hosts: [
        {{name: a, domains: ['*'], routes: [{{match: {{prefix: /}}, route: {{cluster: shop}}}}]}}]}}}}}}]
  clusters:
  - name: shop
    load_assignment: {{endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {host}}}}}}}}}]}}]}}
    http2_protocol_options: {{}}
    transport_socket: {{name: envoy.transport_sockets.tls, typed_config: {{common_tls_context: {{
      tls_certificates: [{{certificate_chain: {{filename: {own.cert}}}, private_key: {{filename: {own.key}}}}}],
      validation_context: {{trusted_ca: {{filename: {ca}}}, match_typed_subject_alt_names: [{{san_type: DNS, matcher: {{exact: shop.internal}}}}]}}}}}}}}
"""


@pytest.mark.parametrize("source", [GATEWAY, ENVOY], ids=["istio", "envoy"])
def test_import_meshes__tls_of_both_sides_is_spoken_as_the_source_says(gateway, authority, tmp_path, source):
    """Certificates of clients are asked for, names of hosts verified, HTTP/2 spoken, older versions refused, on the address of the source."""
    own, port = authority.issue(), free_port()
    known = authority.issue("shop.internal", also=("DNS:shop.internal",)).server(client_ca=authority.cert)
    known.set_alpn_protocols(["h2"])
    this = HostH2(tls=known)
    try:
        text = source.format(port=port, own=own, ca=authority.cert, host=this.address.rsplit(":", 1)[1])
        done = subprocess.run([PROGRAM, "import", "-"], input=text, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0 and " 0 values changed" in done.stderr, done.stderr
        gateway(done.stdout, listen=None)
        client = authority.client()
        client.load_cert_chain(own.cert, own.key)
        with Http2(port, tls=client) as both:
            assert both.ask(path="/x", authority="a.test").status == 200
            assert both.connection.remote_settings.max_concurrent_streams == (7 if source is ENVOY else 100)
        assert [asked.field(":scheme") for asked in this.requests] == ["https"]
        with pytest.raises((ssl.SSLError, OSError)), Wire(port, tls=authority.client(), name="a.test") as wire:  # shows no certificate
            wire.ask(path="/y")
        old = authority.client()
        old.load_cert_chain(own.cert, own.key)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(ssl.SSLError):
            Wire(port, tls=old, name="a.test")
        with pytest.raises(ssl.SSLError, match="(?i)unrecognized"):
            Wire(port, tls=client, name="b.test")  # a name that is not listed
        assert len(this.requests) == 1
    finally:
        this.close()
