# SPDX-License-Identifier: MIT
"""How programs get in: by several names, by short ones, by a prefix that their service does not know; and what is told of who does not."""

import json

import pytest
from host import Reply
from wire import ask

FULL = "payment.shop.svc.cluster.local"


def state_of(gateway):
    return json.loads(ask(gateway.admin, path="/api/state", host=f"127.0.0.1:{gateway.admin}").body)


def arrives(gateway, name):
    """Whose answer it is: the body says which service."""
    answer = gateway.ask(host=name)
    return answer.body.decode() if answer.status == 200 else answer.status


@pytest.fixture
def named(gateway, host):
    """named("name: {match...}", ...): a gateway with these services, each of whose hosts says its name."""

    def make(*services, text=""):
        lines = [text, "services:"]
        for each in services:
            name, rest = each.split(": {", 1)
            there = host().on("/", Reply(200, body=name.encode()))
            lines.append(f"  {name}: {{{rest}".replace("HERE", there.address))
        return gateway("\n".join(lines) + "\n")

    return make


def test_a_match_takes_a_list_of_hosts(named):
    gateway = named(
        "a: {hosts: [HERE], match: {host: [one.test, two.test, '*.three.test']}}",
        "b: {hosts: [HERE], match: [{host: [four.test, five.test], method: GET}, {host: six.test}]}",
    )
    names = ["one.test", "two.test", "x.three.test", "four.test", "five.test", "six.test", "seven.test"]
    assert [arrives(gateway, name) for name in names] == ["a", "a", "a", "b", "b", "b", 404]


def test_short_names_of_kubernetes_are_the_same_service(named):
    gateway = named(f"a: {{hosts: [HERE], match: {{host: {FULL}}}}}")
    names = [FULL, "payment.shop.svc", "payment.shop", "payment", "Payment.Shop", "payment.other", "shop"]
    assert [arrives(gateway, name) for name in names] == ["a"] * 5 + [404, 404]


def test_a_short_name_of_two_services_is_nobodys_and_a_written_one_its_writers(named):
    gateway = named(
        f"a: {{hosts: [HERE], match: {{host: {FULL}}}}}",
        "b: {hosts: [HERE], match: {host: payment.bank.svc.cluster.local}}",
        "c: {hosts: [HERE], match: {host: payment.bank}}",
    )
    names = ["payment", "payment.shop", "payment.bank.svc", "payment.bank"]
    assert [arrives(gateway, name) for name in names] == [404, "a", "b", "c"]


def test_parts_of_one_name_have_its_short_names_together(named, host):
    there = host().on("/x", Reply(200, body=b"b"))
    gateway = named(
        f"a: {{hosts: [HERE], match: {{host: {FULL}}}}}",
        f"b: {{hosts: ['{there.address}'], match: {{host: {FULL}, path: /x}}}}",
    )
    assert arrives(gateway, "payment.shop") == "a" and gateway.ask(host="payment", path="/x").body == b"b"


@pytest.mark.parametrize(
    ("prefix", "by", "path", "arrives_as"),
    [
        ("/pay", "/", "/pay/x?q=1", "/x?q=1"),
        ("/pay", "/", "/pay", "/"),
        ("/pay", "/", "/pay?q=/pay", "/?q=/pay"),
        ("/pay", "/", "/pay/", "/"),
        ("/pay", "/v2", "/pay/pay/x", "/v2/pay/x"),
        ("/pay", "/v2/", "/pay/x", "/v2/x"),
        ("/pay", "/v2/", "/pay", "/v2/"),
        ("/pay/", "/v2", "/pay/x", "/v2/x"),
        ("/", "/v2", "/x", "/v2/x"),
        ("/pay", "/", "/%70%61y/%78", "/%78"),
        ("/p%61y", "/", "/pay/a%2Fb", "/a%2Fb"),
    ],
)
def test_a_prefix_is_replaced_towards_the_host(gateway, host, prefix, by, path, arrives_as):
    there = host()
    here = gateway(f"services:\n  a: {{hosts: ['{there.address}'], match: {{prefix: '{prefix}'}}, replacePrefix: {by}}}\n")
    assert here.ask(path=path).status == 200
    assert there.requests[0].target == arrives_as
    taken = path[: len(path) - len("/%78")] if "%70" in path else prefix.rstrip("/").replace("%61", "a")
    assert there.requests[0].get("x-forwarded-prefix", "") == taken


def test_a_prefix_of_one_match_is_not_taken_off_the_paths_of_another(gateway, host):
    there = host()
    here = gateway(
        f"trust: [127.0.0.0/8]\nlog: {{access: json}}\nservices:\n"
        f"  a: {{hosts: ['{there.address}'], match: [{{prefix: /pay}}, {{host: pay.test}}], replacePrefix: /}}\n"
    )
    here.ask(path="/pay/x", fields={"X-Forwarded-Prefix": "/shop"})
    here.ask(path="/other", host="pay.test", fields={"X-Forwarded-Prefix": "/shop"})
    assert [each.target for each in there.requests] == ["/x", "/other"]
    assert [each.get("x-forwarded-prefix") for each in there.requests] == ["/shop, /pay", "/shop"]
    here.end()
    assert '"/pay/x"' in here.access()[0]  # as the client wrote it


def test_who_has_no_route_is_told_once_for_each_host(gateway):
    here = gateway("services:\n  a: {hosts: ['127.0.0.1:9'], match: {host: a.test}}\n")
    for _ in range(3):
        assert here.ask(host="Telemetry.test:9000").status == 404
    assert here.ask(host="other.test").status == 404
    state = state_of(here)
    assert state["unrouted"] == 4
    assert {each["host"]: each["requests"] for each in state["unroutedHosts"]} == {"telemetry.test:9000": 3, "other.test": 1}
    here.end()
    assert len(here.log_lines("no service matches")) == 2 and "host=Telemetry.test:9000" in here.log_lines("no service matches")[0]


def test_the_hosts_without_a_route_that_are_told_are_few(gateway):
    here = gateway("services:\n  a: {hosts: ['127.0.0.1:9'], match: {host: a.test}}\n")
    with here.wire() as wire:
        for number in range(100):
            assert wire.ask(host=f"h{number}.test").status == 404
    state = state_of(here)
    assert state["unrouted"] == 100 and len(state["unroutedHosts"]) == 32
    here.end()
    assert len(here.log_lines("no service matches")) == 33
