# SPDX-License-Identifier: MIT
"""The header fields that tell hosts about the client, the gateway's own fields, and the request id."""

import json
import re

import pytest
from conftest import free_port, policy_of
from host import Reply
from http2 import Http2
from wire import Wire

FORGED = {
    "X-Forwarded-For": "192.0.2.7",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "shop.example",
    "Forwarded": "for=192.0.2.7;proto=https",
}
TRACE = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "a=b",
    "baggage": "user=7",
    "b3": "0",
    "x-b3-traceid": "463ac35c9f6413ad48485a3953bb6124",
    "x-b3-spanid": "a2fb4a1d1a96d312",
    "x-b3-parentspanid": "0020000000000001",
    "x-b3-sampled": "1",
    "x-b3-flags": "0",
    "x-cloud-trace-context": "105445aa7843bc8bf206b12000100000/1;o=1",
}
OURS = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "x-request-id", "via", "x-request-deadline-ms", "x-envoy-attempt-count"]


def said(request):
    return [request.get(name) for name in ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded")]


def test_a_gateway_tells_hosts_who_asked_and_believes_nobody_about_it(pair):
    gateway, host = pair()
    with gateway.wire(source="127.0.0.9") as wire:
        wire.ask(host="shop.test", fields=FORGED)
    assert said(host.requests[0]) == ["127.0.0.9", "http", "shop.test", 'for=127.0.0.9;host="shop.test";proto=http']
    assert len(host.requests[0].all("x-forwarded-for")) == 1


def test_what_a_trusted_peer_says_stays_and_the_peer_is_added(pair):
    gateway, host = pair("trust: [127.0.0.9]")
    with gateway.wire(source="127.0.0.9") as wire:
        wire.ask(host="shop.test", fields=FORGED)
    added = 'for=192.0.2.7;proto=https, for=127.0.0.9;host="shop.test";proto=http'
    assert said(host.requests[0]) == ["192.0.2.7, 127.0.0.9", "https", "shop.example", added]


@pytest.mark.parametrize(
    ("text", "x_forwarded", "standard"),
    [
        ("", True, True),
        ("forwarded: x-forwarded", True, False),
        ("forwarded: standard", False, True),
        ("forwarded: off", False, False),
        ("role: sidecar", False, False),
        ("role: sidecar\nforwarded: all", True, True),
    ],
)
def test_one_key_chooses_the_fields(pair, text, x_forwarded, standard):
    gateway, host = pair(text)
    gateway.ask()
    got = said(host.requests[0])
    assert got[:2] == (["127.0.0.1", "http"] if x_forwarded else [None, None])
    assert (got[3] is not None) == standard


def test_off_leaves_to_trusted_peers_what_they_say_and_nobody_else(pair):
    gateway, host = pair("forwarded: off\ntrust: [127.0.0.9]")
    for source in ("127.0.0.9", "127.0.0.8"):
        with gateway.wire(source=source) as wire:
            wire.ask(fields=FORGED)
    assert said(host.requests[0]) == list(FORGED.values()) and said(host.requests[1]) == [None] * 4


def test_https_and_http2_are_told_alike(gateway, host, authority):
    there = host()
    certificate = authority.issue("shop.test", ["DNS:shop.test"])
    secure = gateway(policy_of([there]), tls=certificate.tls)
    secure.ask(tls=authority.client(), name="shop.test", host="shop.test")
    assert said(there.requests[-1])[:3] == ["127.0.0.1", "https", "shop.test"] and there.requests[-1].get("forwarded").endswith(";proto=https")
    plain = gateway(policy_of([there]), protocols="[h2, h1]")
    with Http2(plain.port) as client:
        assert client.ask(authority="shop.test", fields=[("x-forwarded-for", "192.0.2.7")]).status == 200
    assert said(there.requests[-1]) == ["127.0.0.1", "http", "shop.test", 'for=127.0.0.1;host="shop.test";proto=http']


def test_a_client_at_a_unix_socket_has_no_address(gateway, host, tmp_path):
    there = host()
    gateway(policy_of([there]), sets=[f'listen=["127.0.0.1:{free_port()}", "unix:{tmp_path}/in"]'])
    with Wire(f"{tmp_path}/in") as wire:
        wire.ask(host="shop.test")
    assert said(there.requests[0]) == [None, "http", "shop.test", 'for=unknown;host="shop.test";proto=http']


def test_every_attempt_and_line_of_a_call_has_one_id(pair):
    gateway, host = pair("log: {access: json, format: json}", rules="initialDelay: 1ms\nbudget: {kind: none}")
    host.on("/", Reply(503), Reply(503), Reply(200))
    assert gateway.ask().status == 200
    ids = {each.get("x-request-id") for each in host.requests}
    assert len(host.requests) == 3 and len(ids) == 1 and re.fullmatch("[0-9a-f]{32}", min(ids))
    gateway.ask(fields={"X-Request-Id": "mine"})
    assert host.requests[3].all("x-request-id") == ["mine"]
    gateway.ask()
    assert host.requests[4].get("x-request-id") not in ids | {"mine"}
    gateway.end()
    lines = [json.loads(line) for line in gateway.access()]
    assert [line["request_id"] for line in lines] == [min(ids), "mine", host.requests[4].get("x-request-id")]
    retries = [json.loads(line) for line in gateway.log_lines("resend_count")]
    assert [line["request_id"] for line in retries] == [min(ids)] * 2


def test_nothing_of_ours_goes_to_strangers(pair):
    gateway, host = pair("trust: [127.0.0.0/8]", rules="send: []")
    gateway.ask(host="shop.test", fields={**FORGED, **TRACE, "Via": "1.1 inside", "X-Request-Id": "mine", "Grpc-Timeout": "3S", "X-A": "1"})
    got = host.requests[0]
    assert sorted(name for name, _ in got.fields) == ["host", "x-a"]


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("deadline", ["x-request-deadline-ms"]),
        ("attempts", ["x-envoy-attempt-count"]),
        ("via", ["via"]),
        ("forwarded", ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded"]),
        ("request-id", ["x-request-id"]),
        ("trace", []),
    ],
)
def test_each_word_of_send_lets_its_fields_out(pair, word, names):
    gateway, host = pair(rules=f"send: [{word}]")
    gateway.ask(fields=TRACE)
    got = host.requests[0]
    assert [name for name in OURS if got.get(name)] == [name for name in OURS if name in names]
    assert ([got.get(name) for name in TRACE] == list(TRACE.values())) == (word == "trace")
    assert any(got.get(name) for name in TRACE) == (word == "trace")


def test_traces_pass_as_they_came(pair):
    gateway, host = pair()
    gateway.ask(fields=TRACE)
    assert [host.requests[0].get(name) for name in TRACE] == list(TRACE.values())


def test_baggage_without_deadlines_has_no_deadline(pair):
    gateway, host = pair("trust: [127.0.0.0/8]", rules="send: [trace]")
    gateway.ask(fields={"Baggage": "user=7,deadline-ms=6000"})
    assert host.requests[0].get("baggage") == "user=7"
