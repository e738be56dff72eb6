# SPDX-License-Identifier: MIT
"""OpenSSL is loaded by the first policy that needs it, and a gateway that needs none runs without it."""

import pytest
import store
from conftest import policy_of, wait_until
from host import Reply
from store import SERVER, redis  # noqa: F401: a fixture

REQUIRED = """endpoints:
  charge: {match: {method: POST, path: /charge}, idempotencyKey: required}
"""
TLS = "tls: {verify: none}"
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


def test_openssl__is_not_loaded_without_tls(pair):
    gateway, host = pair()
    assert gateway.ask().status == 200
    assert not has_openssl(gateway)


@pytest.mark.skipif(SERVER is None, reason="redis-server is not installed")
def test_openssl__is_not_loaded_for_a_budget_in_redis(pair, redis):
    """The names of scripts are hashes, which were made with the program."""
    gateway, host = pair(rules=store.rules(20).replace("shared: {", f'shared: {{redis: "{redis.url}", '))
    wait_until(lambda: store.leased(gateway))
    assert not has_openssl(gateway)


def test_openssl__is_loaded_with_a_policy_that_remembers_keys(pair):
    """And not by the first of them, while a worker serves."""
    gateway, host = pair(rules=REQUIRED)
    assert has_openssl(gateway)
    host.on("/charge", Reply(201, b"once"))
    first = gateway.ask("POST", "/charge", body=b"5", fields=KEYED)
    again = gateway.ask("POST", "/charge", body=b"5", fields=KEYED)
    assert (first.status, again.status, host.count()) == (201, 201, 1)


def test_openssl__is_loaded_by_a_reload_that_brings_tls(pair):
    gateway, host = pair()
    assert not has_openssl(gateway)
    gateway.reload(policy_of([host], rules=TLS))
    wait_until(lambda: has_openssl(gateway))


@pytest.mark.parametrize("rules, what", [(TLS, "TLS needs"), (REQUIRED, "idempotency keys need")])
def test_openssl__where_there_is_none_a_policy_that_needs_it_is_refused(pair, without, rules, what):
    gateway, host = pair(env=without)
    assert gateway.ask("POST", "/charge", body=b"5", fields=KEYED).status == 200
    gateway.reload(policy_of([host], rules=rules))
    wait_until(lambda: gateway.log_lines(f"{what} OpenSSL, which can't be loaded: "), what=gateway.log)
    assert gateway.ask("POST", "/charge", body=b"5", fields=KEYED).status == 200, "the policy before stays"
