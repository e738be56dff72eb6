# SPDX-License-Identifier: MIT
"""The policies of the repository, started as they are."""

import pytest
from conftest import ROOT
from host import Reply

RETRIES = {"payment-service": 2, "inventory-service": 5, "notification-service": 1}
QUICK = ["defaults.budget.kind=none", "defaults.initialDelay=1ms", "defaults.maxDelay=2ms", "defaults.breaker.enabled=false"]
QUICK += [f"services.{name}.{key}" for name, key in
          (("payment-service", "initialDelay=1ms"), ("inventory-service", "maxDelay=2ms"))]


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
