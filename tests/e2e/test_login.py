# SPDX-License-Identifier: MIT
"""NTLM and Negotiate log in a connection, not a request: from then on, only its client may use the connection."""

import threading

import pytest
from host import Reply, Tunnel, wait_until
from message import request

OFFERS = [("WWW-Authenticate", 'Basic realm="a, b"'), ("www-authenticate", "Negotiate, NTLM")]


def toy(host):
    """A host that remembers the logged-in user of each connection."""
    people, begun = {}, {}

    def reply(got):
        scheme, _, word = got.get("authorization", "").partition(" ")
        if word.startswith("hello-"):
            begun[got.peer] = word[6:]
            return Reply(401, b"go on", {"WWW-Authenticate": f"{scheme} challenge"})
        if word == "proof" and got.peer in begun:
            people[got.peer] = begun.pop(got.peer)
        if got.peer in people and got.get("upgrade"):
            return Tunnel()
        if got.peer in people:
            return Reply(200, f"you are {people[got.peer]}".encode())
        return Reply(401, b"who are you?", OFFERS)

    host.on("*", reply)


def log_in(wire, name, scheme="NTLM"):
    assert wire.ask(fields={"Authorization": f"{scheme} hello-{name}"}).status == 401
    assert wire.ask(fields={"Authorization": f"{scheme} proof"}).body == f"you are {name}".encode()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("scheme", ["NTLM", "Negotiate", "nTlM"])
def test_nobody_else_gets_the_connection_of_who_has_logged_in(pair, scheme, workers):
    gateway, host = pair(workers=workers)
    toy(host)
    with gateway.wire() as alice:
        assert alice.ask().status == 401
        log_in(alice, "alice", scheme)
        assert alice.ask(path="/again").body == b"you are alice", "its next requests need no credentials"
        for _ in range(8):
            assert gateway.ask().body == b"who are you?"
        with gateway.wire() as bob:
            log_in(bob, "bob", scheme)
            for _ in range(3):
                assert alice.ask().body == b"you are alice" and bob.ask().body == b"you are bob"
    for _ in range(8):
        assert gateway.ask().body == b"who are you?", "nor when it has gone"
    wait_until(lambda: host.open <= workers)


def test_half_a_login_is_nobody_elses(pair):
    gateway, host = pair()
    toy(host)
    with gateway.wire() as alice:
        assert alice.ask(fields={"Authorization": "NTLM hello-alice"}).status == 401
        assert gateway.ask(fields={"Authorization": "NTLM proof"}).body == b"who are you?"
        assert alice.ask(fields={"Authorization": "NTLM proof"}).body == b"you are alice"
    assert gateway.ask(fields={"Authorization": "NTLM proof"}).body == b"who are you?"


def test_a_login_outlives_reloads_and_ends_with_its_connection(pair):
    gateway, host = pair()
    toy(host)
    with gateway.wire() as alice:
        log_in(alice, "alice")
        gateway.reload("explain: true\n" + gateway.path.read_text())
        wait_until(lambda: gateway.ask().get("becalm-explain") is not None)
        assert alice.ask().body == b"you are alice"
        host.drop_idle()
        assert alice.ask().body == b"who are you?", "and it can log in anew"
        log_in(alice, "alice")


def test_what_is_asked_on_such_a_connection_is_not_repeated_on_another(pair):
    gateway, host = pair(rules="initialDelay: 1ms\nbudget: {kind: none}", hosts=1)
    toy(host)
    with gateway.wire() as alice:
        log_in(alice, "alice")
        host.on("/fails", Reply(503))
        assert alice.ask(path="/fails").status == 503
        assert host.count("/fails") == 1
        assert alice.ask().body == b"you are alice"


def test_connections_without_such_a_login_are_shared_as_ever(pair):
    gateway, host = pair()
    host.on("*", Reply(401, b"no", {"WWW-Authenticate": 'Basic realm="NTLM"'}))
    for _ in range(5):
        gateway.ask(fields={"Authorization": "Basic TlRMTQ=="})
    assert len({got.peer for got in host.requests}) == 1


def test_an_upgrade_on_the_connection_of_a_login_has_a_place_like_any_other(pair):
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
    gateway, host = pair("maxTunnelsPerHost: 1")
    toy(host)
    with gateway.wire() as alice, gateway.wire() as bob:
        log_in(alice, "alice")
        log_in(bob, "bob")
        assert alice.ask(fields=upgrade).status == 101
        alice.send(b"hello")
        assert alice.socket.recv(5) == b"hello" and gateway.metric("becalm_tunnels") == 1
        refused = bob.ask(fields=upgrade)
        assert refused.status == 503 and b"maxTunnelsPerHost" in refused.body
        assert bob.ask().body == b"you are bob", "nothing was sent, so the login is as it was"
        alice.close()
        wait_until(lambda: gateway.metric("becalm_tunnels") == 0)
        assert bob.ask(fields=upgrade).status == 101


def test_idle_logins_leave_room_for_everybody_else(pair):
    gateway, host = pair("pool: {maxPerHost: 4, idle: 60s}", "deadline: 5s\nattemptTimeout: 5s\nlimit: {kind: none}")
    toy(host)
    wires = [gateway.wire(source="127.0.0.2") for _ in range(10)]
    for number, wire in enumerate(wires):
        log_in(wire, f"many-{number}")
    with gateway.wire(source="127.0.0.3") as alice:
        log_in(alice, "alice")
        for _ in range(20):
            assert gateway.ask(source="127.0.0.4").body == b"who are you?"
        for wire in wires:
            log_in(wire, "again")
        assert alice.ask().body == b"you are alice", "who has one keeps it before who has many"
    assert host.open <= 4
    for wire in wires:
        wire.close()


def test_a_login_gives_way_where_there_is_one_connection_only(pair):
    gateway, host = pair("pool: {maxPerHost: 1, idle: 60s}", "deadline: 5s\nattemptTimeout: 5s\nlimit: {kind: none}")
    toy(host)
    with gateway.wire() as alice:
        log_in(alice, "alice")
        for _ in range(5):
            assert gateway.ask().body == b"who are you?"
        assert alice.ask().body == b"who are you?"
        log_in(alice, "alice")


def test_those_in_line_get_the_place_of_a_login_that_becomes_idle(pair):
    """A client that holds all connections sends one request after the other: between two of them, another client has
    its turn."""
    gateway, host = pair("pool: {maxPerHost: 2, idle: 60s}", "deadline: 10s\nattemptTimeout: 10s\nlimit: {kind: none}")
    toy(host)
    go = threading.Event()
    host.on("/slow", Reply(200, b"slow", when=go.is_set))
    wires = [gateway.wire(source="127.0.0.2") for _ in range(2)]
    for wire in wires:
        log_in(wire, "loud")
        wire.send(request("GET", "/slow"))
    wait_until(lambda: host.count("/slow") == 2)
    with gateway.wire(source="127.0.0.3") as other:
        other.send(request("GET", "/"))
        assert other.says_nothing(0.2)
        go.set()
        assert other.answer().body == b"who are you?"
    for wire in wires:
        assert wire.answer().body == b"slow"
        wire.close()


def test_what_becomes_of_a_login_is_booked_on_the_host_that_it_leads_to(pair):
    rules = "breaker: {enabled: false}\nlimit: {kind: none}\nbudget: {kind: none}\nmaxRetries: 0"
    gateway, hosts = pair("explain: true", rules, hosts=2)
    for host in hosts:
        toy(host)
        host.on("/fails", Reply(503))
    with gateway.wire() as alice:
        log_in(alice, "alice")
        own, other = sorted(hosts, key=lambda host: -len(host.requests))
        for _ in range(20):
            answer = alice.ask(path="/fails")
            assert answer.status == 503 and f'host="{own.address}"' in answer.get("becalm-explain")
        assert (own.count("/fails"), other.count("/fails")) == (20, 0)
        gateway.expect_metric(1, "becalm_host_ejected", host=own.address)
        assert gateway.metric("becalm_host_ejected", host=other.address) == 0
        assert alice.ask().body == b"you are alice", "also while others are kept from that host"
