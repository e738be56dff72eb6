# SPDX-License-Identifier: MIT
"""OpenSSL is loaded by the first policy or request that needs it, and a gateway that needs none runs without it."""

import pytest
from conftest import policy_of, wait_until
from host import Reply

REQUIRED = """endpoints:
  charge: {match: {method: POST, path: /charge}, idempotencyKey: required}
"""
KEYED = {"Idempotency-Key": '"k"'}


def has_openssl(gateway):
    return "libcrypto" in gateway.maps()


@pytest.fixture
def without(tmp_path):
    """The environment of a machine whose OpenSSL can't be loaded."""
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "libssl.so.3").write_text("no library\n")
    return {"LD_LIBRARY_PATH": str(folder)}


def with_tls(host):
    return policy_of([host], rules="tls: {verify: none}")


def test_openssl__is_not_loaded_without_tls(pair):
    gateway, host = pair()
    assert gateway.ask().status == 200
    assert not has_openssl(gateway)


def test_openssl__is_loaded_with_the_first_key(pair):
    gateway, host = pair(rules=REQUIRED)
    host.on("/charge", Reply(201, b"once"))
    first = gateway.ask("POST", "/charge", body=b"5", fields=KEYED)
    again = gateway.ask("POST", "/charge", body=b"5", fields=KEYED)
    assert (first.status, again.status, host.count()) == (201, 201, 1)
    assert has_openssl(gateway)


def test_openssl__is_loaded_by_a_reload_that_brings_tls(pair):
    gateway, host = pair()
    assert not has_openssl(gateway)
    gateway.reload(with_tls(host))
    wait_until(lambda: has_openssl(gateway))


def test_openssl__a_gateway_without_tls_needs_none(pair, without):
    gateway, host = pair(env=without)
    assert gateway.ask().status == 200
    gateway.reload(with_tls(host))
    wait_until(lambda: gateway.log_lines("TLS needs OpenSSL, which can't be loaded: "), what=gateway.log)
    assert gateway.ask().status == 200, "the policy before stays"


def test_openssl__a_key_without_it_is_answered_and_ends_nothing(pair, without):
    gateway, host = pair(rules=REQUIRED, env=without)
    answer = gateway.ask("POST", "/charge", body=b"5", fields=KEYED)
    assert answer.status >= 500 and host.count() == 0, "it can't be remembered, so it is not sent"
    assert gateway.ask().status == 200
