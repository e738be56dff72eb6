# SPDX-License-Identifier: MIT
"""The policies of the repository, started as they are."""

import subprocess

import pytest
from conftest import ROOT
from host import Reply
from message import signed

RETRIES = {"payment-service": 2, "inventory-service": 5, "notification-service": 1}
QUICK = [
    "defaults.budget.kind=none",
    "defaults.initialDelay=1ms",
    "defaults.maxDelay=2ms",
    "defaults.breaker.enabled=false",
]
QUICK += [
    f"services.{name}.{key}"
    for name, key in (("payment-service", "initialDelay=1ms"), ("inventory-service", "maxDelay=2ms"))
]


@pytest.mark.parametrize("role", ["gateway", "sidecar"])
@pytest.mark.parametrize("file", ["coordinated.yaml", "coordinated-configmap.yaml"])
def test_one_file_serves_both_roles(gateway, host, role, file):
    """As a gateway it retries nothing, as a sidecar each service as written."""
    there = host()
    there.on("*", Reply(503, b"down"))
    hosts = [f'services.{name}.hosts=["{there.address}"]' for name in RETRIES]
    made = gateway((ROOT / "policies" / file).read_text(), sets=[f"role={role}", *hosts, *QUICK])
    for name, retries in RETRIES.items():
        there.forget()
        answer = made.ask(path=f"/{name}", host=name)
        assert answer.body == b"down"
        assert there.count() == (1 if role == "gateway" else 1 + retries), name
        assert there.requests[0].get("host") == name


def test_the_services_of_a_file_are_not_mixed_up(gateway, host):
    hosts = {name: host() for name in RETRIES}
    sets = [f'services.{name}.hosts=["{there.address}"]' for name, there in hosts.items()]
    made = gateway((ROOT / "policies/coordinated.yaml").read_text(), sets=sets)
    for name, there in hosts.items():
        assert made.ask(host=name).status == 200 and there.count() == 1
    assert made.ask(host="other-service").status == 404


def started(gateway, file, **hosts):
    sets = [f'services.{name}.hosts=["{there.address}"]' for name, there in hosts.items()]
    return gateway((ROOT / "policies" / file).read_text(), sets=sets)


def test_the_sidecar_routes_by_host(gateway, host):
    inventory, search = host(), host()
    made = started(gateway, "sidecar.yaml", inventory=inventory, search=search)
    assert made.ask(host="inventory.local").status == made.ask(host="search.local").status == 200
    assert (inventory.count(), search.count()) == (1, 1)
    assert made.ask(host="127.0.0.1").status == 404


def test_the_internal_gateway_routes_by_path_and_wants_keys(gateway, host):
    payment, ledger = host(), host()
    made = started(gateway, "internal-gateway.yaml", payment=payment, ledger=ledger)
    assert made.ask(path="/pay/list").status == made.ask(path="/ledger/1").status == 200
    assert made.ask("POST", "/pay/charge", body=b"5").status == 400
    assert made.ask("POST", "/pay/charge", body=b"5", fields={"Idempotency-Key": '"k"'}).status == 200
    assert (payment.count(), ledger.count()) == (2, 1)


def test_the_egress_sidecar_takes_one_environment_variable(gateway, host):
    metadata = host()
    metadata.on("/latest", Reply(body=signed(b"here")))
    made = started(gateway, "egress.yaml", metadata=metadata)
    done = subprocess.run(
        ["curl", "-sS", "--max-time", "30", "http://metadata.local/latest"],
        stdout=subprocess.PIPE,
        env={"http_proxy": f"http://127.0.0.1:{made.port}", "PATH": "/usr/bin:/bin"},
    )
    assert done.stdout == signed(b"here")
    assert made.ask(path="http://elsewhere.example/").status == 404


@pytest.mark.parametrize("file", sorted(path.name for path in (ROOT / "policies").glob("*.yaml")))
def test_every_policy_starts_and_ends(gateway, file):
    made = gateway((ROOT / "policies" / file).read_text())
    assert made.ask(host="nobody.test", path="/nowhere/at-all").status in (404, 502, 503)
