# SPDX-License-Identifier: MIT
"""Clients that are known by their certificates: `trust:` and `clientKey: certificate`."""

import ssl
import threading

import pytest
from conftest import policy_of, wait_until
from host import Reply
from http2 import Http2
from wire import Wire

SAID = {"X-Forwarded-Client-Cert": "URI=spiffe://test/admin"}


@pytest.fixture
def guarded(gateway, host, authority):
    """guarded(): a gateway whose clients may show a certificate, and the authority that clients must trust."""

    def make(text="", auth="required", rules="", **options):
        this = host()
        tls = f"{{certificates: [{authority.issue().yaml}], clientCa: {authority.cert}, clientAuth: {auth}}}"
        made = gateway(policy_of([this], text, rules), tls=tls, protocols="[h2, h1]", **options)
        made.host = this
        return made

    return make


def believed(gateway, context, **more):
    """Does the gateway believe its headers about other clients?"""
    with Wire(gateway.port, tls=context, name="a.test", **more) as wire:
        assert wire.ask(fields=SAID).status == 200
    return gateway.host.got()[-1].get("x-forwarded-client-cert") is not None


def der(kind, name):
    """One alternative name byte by byte, which may have a NUL in it; 2: DNS, 6: URI."""
    inner = bytes([0x80 | kind, len(name)]) + name
    return ["DER:" + (bytes([0x30, len(inner)]) + inner).hex(":")]


ROWS = [
    ("spiffe://shop/cart", ["URI:spiffe://shop/cart"], True),
    ("spiffe://shop/cart", ["URI:spiffe://shop/cart2"], False),
    ("spiffe://shop/*", ["URI:spiffe://shop/cart"], True),
    ("spiffe://shop/*", ["URI:spiffe://shopping/cart"], False),
    ("spiffe://shop/cart", ["DNS:spiffe"], False),
    ("dns:cart.shop", ["DNS:Cart.Shop"], True),
    ("dns:*.shop", ["DNS:cart.shop"], True),
    ("dns:*.shop", ["DNS:a.cart.shop"], False),
    ("dns:cart.shop", ["DNS:b.test", "DNS:cart.shop"], True),
    ("dns:cart.shop", ["DNS:*.shop"], False),
    ("dns:cart.shop", der(2, b"cart.shop\0.evil.test"), False),
    ("dns:cart.shop", der(2, b"cart.shop\0"), False),
    ("dns:*.shop", der(2, b"evil.test\0.shop"), False),
    ("dns:*.shop", der(2, b".shop"), False),
    ("dns:cart.shop", der(2, b""), False),
    ("spiffe://shop/cart", der(6, b"spiffe://shop/cart\0/x"), False),
    ("spiffe://shop/*", der(6, b"spiffe://shop/"), False),
    ("spiffe://shop/cart", [f"URI:spiffe://shop/{i}" for i in range(1500)], False),
    ("spiffe://shop/1499", [f"URI:spiffe://shop/{i}" for i in range(1500)], True),
    ("cn:caller", [], True),
    ("cn:caller", ["DNS:b.test"], False),
    ("dns:caller", [], False),
    ("cn:other", [], False),
]


@pytest.mark.parametrize("name,names,expected", ROWS)
def test_mtls__who_is_named_in_trust_is_believed(guarded, authority, name, names, expected):
    gateway = guarded(f'trust: ["{name}"]')
    shown = authority.client(authority.issue("caller", also=names))
    assert believed(gateway, shown) is expected


def test_mtls__http_2_and_resumed_sessions_are_known_too(guarded, authority):
    gateway = guarded("trust: [cn:caller]")
    friend, stranger = (authority.client(authority.issue(name, also=[])) for name in ("caller", "other"))
    for context, expected in ((friend, SAID["X-Forwarded-Client-Cert"]), (stranger, None)):
        with Http2(gateway.port, tls=context) as client:
            assert client.ask(fields=[(name.lower(), value) for name, value in SAID.items()]).status == 200
            session = client.socket.session
        assert gateway.host.got()[-1].get("x-forwarded-client-cert") == expected
        with Http2(gateway.port, tls=context, session=session) as client:
            assert client.socket.session_reused
            assert client.ask(fields=[(name.lower(), value) for name, value in SAID.items()]).status == 200
        assert gateway.host.got()[-1].get("x-forwarded-client-cert") == expected


def test_mtls__who_shows_none_where_none_is_needed_is_nobody(guarded, authority):
    gateway = guarded("trust: [cn:caller]", auth="optional")
    assert not believed(gateway, authority.client())
    assert believed(gateway, authority.client(authority.issue("caller", also=[])))


def test_mtls__a_reload_changes_who_is_believed_on_the_same_connection(guarded, authority):
    gateway = guarded("trust: [cn:other]")
    with Wire(gateway.port, tls=authority.client(authority.issue("caller", also=[])), name="a.test") as wire:
        assert wire.ask(fields=SAID).status == 200
        assert gateway.host.got()[-1].get("x-forwarded-client-cert") is None
        gateway.reload(policy_of([gateway.host], "trust: [cn:caller]"))

        def passes():
            assert wire.ask(fields=SAID).status == 200
            return gateway.host.got()[-1].get("x-forwarded-client-cert") is not None

        wait_until(passes)


def test_mtls__an_address_is_believed_whatever_it_shows(guarded, authority):
    assert believed(guarded("trust: [127.0.0.0/8, cn:caller]", auth="optional"), authority.client())


@pytest.mark.parametrize("client_key,turn", [("address", 4), ("certificate", 2)])
def test_mtls__clients_that_wait_are_served_in_turn_by_their_certificates(guarded, authority, client_key, turn):
    """All clients have one address. With a turn for each, the last client with its single request waits for one other
    request."""
    rules = "maxRetries: 0\nattemptTimeout: 60s\nlimit: {kind: fixed, max: 1}\nbreaker: {enabled: false}\ngate: {targetQueueTime: 60s, maxQueueTime: 60s}"
    gateway = guarded(f"clientKey: {client_key}", rules=rules)
    go = threading.Event()
    gateway.host.on("/loud", Reply(when=go.is_set))
    loud, quiet = (authority.client(authority.issue(name, also=[])) for name in ("loud", "quiet"))
    with Http2(gateway.port, tls=loud) as one, Http2(gateway.port, tls=quiet) as other:
        streams = [one.begin(path="/loud") for _ in range(4)]
        gateway.expect_metric(3, "becalm_pending_requests")
        last = other.begin(path="/quiet")
        gateway.expect_metric(4, "becalm_pending_requests")
        go.set()
        assert [one.answer(each).status for each in streams] == [200] * 4
        assert other.answer(last).status == 200
    assert [each.target for each in gateway.host.got()].index("/quiet") == turn


def test_mtls__a_missing_or_wrong_certificate_is_an_alert_and_a_reason_over_http_2_too(guarded, authority):
    gateway = guarded()
    with pytest.raises(ssl.SSLError) as error:
        with Http2(gateway.port, tls=authority.client()) as client:
            client.ask()
    assert "CERTIFICATE_REQUIRED" in str(error.value).upper()
    gateway.expect_metric(1, "becalm_tls_handshakes_total", side="clients", result="no_certificate")
