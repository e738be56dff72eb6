# SPDX-License-Identifier: MIT
"""A sidecar passes hosts that no service names (unlisted: pass): which hosts, by which listeners, and the log lines
about them. Names here lead to this machine, so that only those pass that match.host has; tests/unit/test_passing.c has
the other addresses."""

import json

import pytest
from conftest import free_port
from host import Reply, wait_until
from wire import Wire, ask

POLICY = """
role: sidecar
connect: true
listen: [127.0.0.1:{own}, {{address: "127.0.0.1:{inbound}", role: gateway}}, {{address: "127.0.0.1:{shut}", unlisted: refuse}}]
services:
  payment: {{hosts: ["{payment}"], match: {{host: payment.test}}}}
  outside: {{unlisted: pass, match: {{host: ["localhost:{port}", "127.0.0.1:{port}", "*", "*.test:8443"]}}{rules}}}
"""


def why(answer):
    return json.loads(answer.body)["reason"]


class Lab:
    def __init__(self, gateway, host, rules="", sets=()):
        self.there = host().on("/", Reply(200, body=b"outside")).on("/slow", Reply(200, delay=1))
        self.payment = host().on("/", Reply(200, body=b"payment"))
        self.port = int(self.there.address.split(":")[1])
        self.own, self.inbound, self.shut = free_port(), free_port(), free_port()
        names = {"own": self.own, "inbound": self.inbound, "shut": self.shut, "port": self.port}
        text = POLICY.format(**names, payment=self.payment.address, rules=rules)
        self.gateway = gateway(text, listen=None, sets=sets)

    def ask(self, url, port=None, **more):
        """By http_proxy: the URL is the target."""
        name = url.split("/")[2]
        return ask(port or self.own, path=url, host=name, **more)

    def state(self):
        return json.loads(ask(self.gateway.admin, path="/api/state", host=f"127.0.0.1:{self.gateway.admin}").body)


@pytest.fixture
def lab(gateway, host):
    return lambda **more: Lab(gateway, host, **more)


def test_hosts_that_no_service_names_are_passed_counted_and_told_once(lab):
    it = lab()
    urls = [f"http://localhost:{it.port}/", f"http://LocalHost:{it.port}/", f"http://127.0.0.1:{it.port}/"]
    assert [it.ask(url).body for url in urls] == [b"outside"] * 3
    assert ask(it.own, host=f"localhost:{it.port}").body == b"outside"  # by Host alone
    assert it.ask("http://payment.test/").body == b"payment"
    assert [each.get("host") for each in it.there.requests][:1] == [f"localhost:{it.port}"]
    assert it.there.requests[0].target == "/" and it.there.requests[0].get("via") is not None
    it.gateway.expect_metric(4, "becalm_passed_requests_total")
    it.gateway.expect_metric(4, "becalm_arrivals_total", service="outside")
    state = it.state()
    told = {each["host"]: each["requests"] for each in state["passedHosts"]}
    assert state["passed"] == 4 and told == {f"localhost:{it.port}": 3, f"127.0.0.1:{it.port}": 1}
    outside = next(each for each in state["services"] if each["name"] == "outside")
    assert [(each["name"], each["usable"]) for each in outside["hosts"]] == [("*", True)]
    wait_until(lambda: len(it.gateway.log_lines("passed on to a host that no service names")) == 2)
    page = json.loads(ask(it.gateway.admin, path="/api/decisions?service=outside", host=f"127.0.0.1:{it.gateway.admin}").body)
    assert f"localhost:{it.port}" in json.dumps(page)


def test_connections_to_them_are_kept(lab):
    it = lab(sets=["workers=1"])
    for _ in range(5):
        it.ask(f"http://localhost:{it.port}/")
    assert it.there.connections == 1


def test_no_more_is_passed_than_the_policy_lets_in(lab):
    it = lab()
    other = free_port()
    refused = {
        "http://127.0.0.1/": "not_passed",  # a pattern leads to no address of this machine
        "http://[::1]/": "not_passed",
        "http://169.254.169.254/latest/meta-data/": "not_passed",
        "http://[::ffff:169.254.169.254]/": "not_passed",
        "http://0.0.0.0/": "not_passed",
        f"http://example.test:{other}/": "not_passed",  # a pattern without a port is for 80 and 443
        f"http://127.0.0.1:{it.gateway.admin}/": "not_passed",
        "http://a%2eb/": "not_passed",
    }
    answers = {url: it.ask(url) for url in refused}
    assert {url: (each.status, why(each)) for url, each in answers.items()} == {url: (404, why) for url, why in refused.items()}
    leads_here = it.ask("http://localhost/")  # by the pattern: its address is found, and is this machine's
    assert (leads_here.status, why(leads_here)) == (502, "retries_off") and "match.host" in leads_here.body.decode()
    assert it.there.requests == [] and it.state()["unrouted"] == len(refused)
    for port in ("", ":80", ":443"):  # these pass, and lead here
        answer = it.ask(f"http://localhost{port}/")
        assert (answer.status, "match.host" in answer.body.decode()) == (502, True)


def test_only_listeners_for_the_program_beside_it_pass_them(lab):
    it = lab()
    url = f"http://localhost:{it.port}/"
    answers = [it.ask(url, port=port) for port in (it.own, it.inbound, it.shut)]
    assert [each.status for each in answers] == [200, 404, 404] and why(answers[1]) == "not_passed"


def test_a_tunnel_leads_to_them(lab):
    it = lab()
    with Wire(it.own) as wire:
        wire.send(f"CONNECT localhost:{it.port} HTTP/1.1\r\nHost: localhost:{it.port}\r\n\r\n".encode())
        assert wire.answer("CONNECT").status == 200
        assert wire.ask(host="x").body == b"outside"
    with Wire(it.own) as wire:
        wire.send(b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost:22\r\n\r\n")
        assert wire.answer("CONNECT").status == 404


def test_a_name_that_is_not_resolved_ends_with_the_attempt(lab):
    it = lab(rules=", attemptTimeout: 200ms")
    assert it.ask("http://nothing.invalid/").status in (502, 504)
    wait_until(lambda: it.ask(f"http://localhost:{it.port}/").status == 200)  # a busy machine may need more than one


def test_who_leaves_before_a_name_is_found_is_in_nobodys_way(lab):
    """Attempts wait for names in a list of their worker."""
    it = lab(sets=["workers=1"])
    for turn in range(40):
        name = f"n{turn}.localhost"
        wires = [Wire(it.own) for _ in range(3)]
        for wire in wires:
            wire.send(f"GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
        wires.pop(turn % 3).reset()
        for wire in wires:
            assert wire.answer().status == 502
            wire.close()
    assert it.ask(f"http://localhost:{it.port}/").status == 200


def test_nothing_is_learned_of_one_host_for_another(lab):
    it = lab(rules=", connectTimeout: 1s")
    dead = free_port()
    it.gateway.reload(it.gateway.path.read_text().replace('"*"', f'"localhost:{dead}", "*"'))
    wait_until(lambda: it.ask(f"http://localhost:{dead}/").status == 502)
    assert [it.ask(f"http://localhost:{dead}/").status for _ in range(20)] == [502] * 20
    assert it.ask(f"http://localhost:{it.port}/").status == 200
