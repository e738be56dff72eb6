# SPDX-License-Identifier: MIT
"""The ways in which programs reach a service: by several names, by short names, by a prefix that their service does not
know; and the log lines about requests without a service."""

import json

import pytest
from host import Reply, wait_until
from wire import Wire, ask

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


def test_short_names_are_the_same_endpoint(gateway, host):
    there = host().on("/", Reply(200, body=b"fine"))
    endpoints = f"{{full: {{match: {{host: {FULL}}}}}, bank: {{match: {{host: payment.bank.svc}}}}, written: {{match: {{host: payment}}}}}}"
    there = gateway(f"services: {{a: {{hosts: ['{there.address}'], match: {{prefix: /}}, endpoints: {endpoints}}}}}\n", sets=["log.access=json"])
    for name in (FULL, "payment.shop", "Payment.Shop.svc", "payment.bank", "payment"):
        assert there.ask(host=name).status == 200
    wait_until(lambda: len(there.access()) == 5)
    assert [json.loads(line).get("endpoint", "default") for line in there.access()] == ["full", "full", "full", "bank", "written"]


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
    assert len(here.told("no service matches", 2)) == 2 and "host=Telemetry.test:9000" in here.told("no service matches")[0]


def test_the_hosts_without_a_route_that_are_told_are_few(gateway):
    here = gateway("services:\n  a: {hosts: ['127.0.0.1:9'], match: {host: a.test}}\n")
    with here.wire() as wire:
        for number in range(100):
            assert wire.ask(host=f"h{number}.test").status == 404
    state = state_of(here)
    assert state["unrouted"] == 100 and len(state["unroutedHosts"]) == 32
    here.end()
    assert len(here.told("no service matches", 33)) == 33


def test_a_listener_of_a_service_leads_to_it_whatever_a_request_names(gateway, host, tmp_path):
    one, other = (host().on("/", Reply(200, body=name)).on("/x", Reply(200, body=name + b" x")) for name in (b"a", b"b"))
    here = gateway(
        f"connect: true\nservices:\n"
        f"  a: {{hosts: ['{one.address}'], listen: 'unix:{tmp_path}/a', match: {{host: a.test}}, endpoints: {{x: {{match: {{path: /x}}}}}}}}\n"
        f"  b: {{hosts: ['{other.address}'], listen: ['unix:{tmp_path}/b', {{address: 'unix:{tmp_path}/c'}}], match: {{host: b.test}}}}\n"
    )
    doors = {door: str(tmp_path / door) for door in "abc"}
    for name in ("a.test", "b.test", "127.0.0.1:9000", "nobody.test"):
        assert [ask(doors[door], host=name).body for door in "abc"] == [b"a", b"b", b"b"], name
    assert ask(doors["a"], path="/x", host="b.test").body == b"a x"
    assert ask(doors["b"], path="http://a.test/", host="a.test").body == b"b"
    assert ask(doors["b"], method="CONNECT", path="b.test:80", host="b.test:80").status == 404  # a tunnel is asked for by name
    assert [arrives(here, name) for name in ("a.test", "b.test", "c.test")] == ["a", "b", 404]
    here.expect_metric(1, "becalm_calls_total", service="a", endpoint="x")
    assert f"listening on unix:{tmp_path}/c for b" in here.log()


def test_a_connection_stays_its_services_when_the_listener_is_taken_away(gateway, host, tmp_path):
    a, b = (host().on("/", Reply(200, body=name)) for name in (b"a", b"b"))
    text = "services:\n" + "".join(f"  {name}: {{hosts: ['{there.address}'], match: {{host: {name}.test}}}}\n" for name, there in (("a", a), ("b", b)))
    listens = f"{{listen: 'unix:{tmp_path}/a', "
    here = gateway(text.replace("a: {", "a: " + listens))

    def reload(policy):
        count = state_of(here)["reload"]["count"]
        here.reload(policy)
        wait_until(lambda: state_of(here)["reload"]["count"] > count)
        assert state_of(here)["reload"]["successful"]

    with Wire(str(tmp_path / "a")) as wire:
        assert wire.ask(host="b.test").body == b"a"
        reload(text)
        assert wire.ask(host="b.test").body == b"a" and not (tmp_path / "a").exists()
        reload(text.replace("b: {", "b: " + listens))  # it opens again, for another service
        assert wire.ask(host="a.test").body == b"b" and ask(str(tmp_path / "a"), host="a.test").body == b"b"
        reload("services:\n" + text.splitlines()[1] + "\n")
        assert wire.ask(host="a.test").status == 404


def test_two_listeners_of_one_process_have_roles_of_their_own(gateway, host, tmp_path):
    """Inbound it is the service's gateway, which believes no headers and names the client to the service; outbound it
    is the program's sidecar."""
    there = host()
    here = gateway(
        f"role: sidecar\nservices:\n"
        f"  self: {{hosts: ['{there.address}'], listen: {{address: 'unix:{tmp_path}/in', role: gateway}}}}\n"
        f"  other: {{hosts: ['{there.address}'], match: {{host: other.test}}}}\n"
    )
    ask(str(tmp_path / "in"), path="/in", fields={"X-Request-Deadline-Ms": "1234"})
    here.ask(path="/out", host="other.test", fields={"X-Request-Deadline-Ms": "1234"})
    inbound, outbound = there.requests
    assert inbound.get("forwarded").startswith("for=unknown") and inbound.get("x-forwarded-proto") == "http"
    assert outbound.get("forwarded") is None and outbound.get("x-forwarded-proto") is None
    assert int(inbound.get("x-request-deadline-ms")) > 1234 >= int(outbound.get("x-request-deadline-ms"))


def test_a_policy_may_listen_for_its_services_alone(gateway, host, tmp_path):
    there = host().on("/", Reply(200, body=b"a"))
    gateway(f"listen: []\nservices:\n  a: {{hosts: ['{there.address}'], listen: 'unix:{tmp_path}/a'}}\n", listen=None)
    assert ask(str(tmp_path / "a"), host="x.test").body == b"a"
