# SPDX-License-Identifier: MIT
"""One client with many connections beside others that want one: clients differ by their address."""

import contextlib
import json
import os
import sys
import threading
import time

import pytest

from conftest import policy_of
from host import Reply, wait_until
from message import request
from wire import Wire

CROWD, OTHER, THIRD = "127.0.0.2", "127.0.0.3", "127.0.0.4"


@contextlib.contextmanager
def crowd(gateway, count, source=CROWD, first=None):
    """That number of connections of one client; each calls `first` when it is open."""
    wires = []
    try:
        for _ in range(count):
            wires.append(gateway.wire(source=source))
            if first is not None:
                first(wires[-1])
        yield wires
    finally:
        for wire in wires:
            wire.close()


def ask_once(wire):
    assert wire.ask().status == 200


def one_byte(wire):
    wire.send(b"G")


def part_of_a_head(wire):
    wire.send(b"GET / HTTP/1.1\r\nhost: a\r\nx:")


def gone(wires):
    """How many were closed by the gateway."""
    return sum(not wire.says_nothing(0) for wire in wires)


def reason(answer):
    return json.loads(answer.body)["reason"]


def open_now(gateway):
    return int(gateway.metric("becalm_connections"))


KINDS = {"idle": ask_once, "silent": None, "one byte": one_byte, "part of a head": part_of_a_head}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_idle_connections_of_one_client_make_room_for_others(pair, kind, workers):
    gateway, host = pair("maxConnections: 50", workers=workers)
    with crowd(gateway, 50, first=KINDS[kind]) as wires:
        wait_until(lambda: open_now(gateway) == 50)
        answers = [gateway.ask(source=OTHER).status for _ in range(20)]
        assert answers == [200] * 20
        assert open_now(gateway) <= 50
        assert 1 <= gone(wires) <= 20, "one goes for each that finds no place, and not more"
    assert gateway.metric("becalm_bounds_reached_total", bound="maxConnections", action="displaced") >= 1
    assert gateway.metric("becalm_bounds_reached_total", bound="maxConnections", action="refused") == 0
    assert len(gateway.told("all connections are taken")) in range(1, workers + 1), "it is told, and not each time"


@pytest.mark.parametrize("kind", KINDS)
def test_idle_connections_make_room_for_others_where_descriptors_are_fewer_than_places(pair, kind):
    """No timeout ends them: others would wait for ever."""
    few = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)); os.execv(sys.argv[1], sys.argv[1:])"
    gateway, host = pair("headerTimeout: 10m\nidleTimeout: 10m", wrapper=[sys.executable, "-c", few])
    with crowd(gateway, 150, first=KINDS[kind]) as wires:
        assert [gateway.ask(source=OTHER).status for _ in range(20)] == [200] * 20
        assert gone(wires) >= 50, "those that there are no descriptors for went, and some more"
    assert "openFiles=100" in gateway.told("no descriptor is left")[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_others_that_stay_have_their_places_at_the_same_time(pair, workers):
    gateway, host = pair("maxConnections: 50", workers=workers)
    with crowd(gateway, 50, first=ask_once) as wires, crowd(gateway, 20, OTHER, first=ask_once) as others:
        assert open_now(gateway) == 50 and gone(others) == 0
        wait_until(lambda: gone(wires) == 20)
        assert all(wire.ask().status == 200 for wire in others)


def test_the_longest_idle_one_goes_first(pair):
    gateway, host = pair("maxConnections: 6")
    with crowd(gateway, 6, first=ask_once) as wires:
        time.sleep(0.01)
        for index in (0, 1, 3):
            assert wires[index].ask().status == 200
        with gateway.wire(source=OTHER) as one, gateway.wire(source=THIRD) as two:
            assert one.ask().status == two.ask().status == 200
            assert [index for index, wire in enumerate(wires) if not wire.says_nothing(0.1)] == [2, 4]


@pytest.mark.parametrize("workers", [1, 2])
def test_connections_of_the_client_with_the_most_go_before_older_ones_of_others(pair, workers):
    gateway, host = pair("maxConnections: 40", workers=workers)
    with crowd(gateway, 2, OTHER, first=ask_once) as old, crowd(gateway, 38, first=ask_once) as wires:
        with crowd(gateway, 10, THIRD, first=ask_once):
            wait_until(lambda: gone(wires) == 10)
            assert gone(old) == 0


def test_connections_at_work_are_never_given_up(pair):
    gateway, host = pair("maxConnections: 5")
    go = threading.Event()
    host.on("/slow", Reply(when=go.is_set))
    with crowd(gateway, 5, first=lambda wire: wire.send(request(path="/slow"))) as wires:
        host.wait(5, "/slow")
        with gateway.wire(source=OTHER) as sixth:
            answer = sixth.send(request()).answer()
            assert answer.status == 503 and reason(answer) == "connections"
        go.set()
        assert [wire.answer().status for wire in wires] == [200] * 5
        assert gateway.ask(source=OTHER).status == 200, "now one of them is idle"
    gateway.expect_metric(1, "becalm_bounds_reached_total", bound="maxConnections", action="refused")


def test_two_workers_full_of_calls_refuse_soon(pair):
    gateway, host = pair("maxConnections: 6", workers=2)
    go = threading.Event()
    host.on("/slow", Reply(when=go.is_set))
    with crowd(gateway, 6, first=lambda wire: wire.send(request(path="/slow"))) as wires:
        host.wait(6, "/slow")
        for _ in range(5):
            with gateway.wire(source=OTHER) as wire:
                assert wire.send(request()).answer().status == 503
        go.set()
        assert [wire.answer().status for wire in wires] == [200] * 6


def test_many_that_are_refused_at_once_hold_no_more_descriptors_than_their_bound(pair):
    gateway, host = pair("maxConnections: 5")
    go = threading.Event()
    host.on("/slow", Reply(when=go.is_set))
    with crowd(gateway, 5, first=lambda wire: wire.send(request(path="/slow"))) as wires:
        host.wait(5, "/slow")
        before = gateway.open_fds()
        with crowd(gateway, 400, OTHER):
            wait_until(lambda: gateway.metric("becalm_bounds_reached_total", action="refused") == 400)
            assert gateway.open_fds() <= before + 256 + 8
        go.set()
        assert [wire.answer().status for wire in wires] == [200] * 5


def test_a_request_that_is_on_its_way_saves_its_connection(pair):
    """Rounds of requests on all connections while new connections come: no client loses a request."""
    gateway, host = pair("maxConnections: 8")
    with crowd(gateway, 7, first=ask_once) as wires:
        for _ in range(30):
            for wire in wires:
                wire.send(request())
            with gateway.wire(source=OTHER) as other:
                assert other.ask().status == 200
            assert [wire.answer().status for wire in wires] == [200] * 7


def test_a_reload_that_lowers_the_bound_closes_the_longest_idle_ones(pair):
    gateway, host = pair("maxConnections: 50")
    with crowd(gateway, 30, first=ask_once) as wires:
        gateway.reload(policy_of([host], "maxConnections: 10"))
        wait_until(lambda: open_now(gateway) == 10)
        wait_until(lambda: gone(wires) == 20)
        assert gateway.ask(source=OTHER).status == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_one_client_has_at_most_its_own_number(pair, workers):
    gateway, host = pair("maxConnectionsPerClient: 5", workers=workers)
    go = threading.Event()
    host.on("/slow", Reply(when=go.is_set))
    with crowd(gateway, 5, first=lambda wire: wire.send(request(path="/slow"))) as wires:
        host.wait(5, "/slow")
        with gateway.wire(source=CROWD) as sixth:
            answer = sixth.send(request()).answer()
            assert answer.status == 503 and reason(answer) == "client_connections"
        assert gateway.ask(source=OTHER).status == 200
        go.set()
        assert [wire.answer().status for wire in wires] == [200] * 5
    wait_until(lambda: open_now(gateway) == 0)
    with crowd(gateway, 5, first=ask_once):
        pass
    name = "becalm_bounds_reached_total"
    gateway.expect_metric(1, name, bound="maxConnectionsPerClient", action="refused")


def test_ones_own_longest_idle_connection_makes_room(pair):
    gateway, host = pair("maxConnectionsPerClient: 3")
    with crowd(gateway, 3, first=ask_once) as wires, gateway.wire(source=CROWD) as fourth:
        assert fourth.ask().status == 200
        assert [wire.says_nothing(0.1) for wire in wires] == [False, True, True]
        assert wires[1].ask().status == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_storms_of_connections_leave_nothing_behind(pair, workers):
    """Clients come and go in all states at a small bound; at the end everything is as at the beginning."""
    gateway, host = pair("maxConnections: 20\nmaxConnectionsPerClient: 12", workers=workers)
    gateway.ask()
    before = gateway.open_fds() - host.open
    rounds = 600 if os.environ.get("BECALM_SOAK") else 60
    kinds = list(KINDS.values())
    wires = []
    for turn in range(rounds):
        source = (CROWD, OTHER, THIRD)[turn % 3]
        try:
            wire = Wire(gateway.port, source=source)
            wires.append(wire)
            kind = kinds[turn % len(kinds)]
            if kind is ask_once:
                wire.send(request())
            elif kind is not None:
                kind(wire)
        except OSError:
            pass
        if len(wires) > 40:
            wire = wires.pop(turn * 7 % 40)
            wire.reset() if turn % 2 else wire.close()
    assert open_now(gateway) <= 20
    assert gateway.ask(source="127.0.0.5").status == 200
    for wire in wires:
        wire.close()
    wait_until(lambda: open_now(gateway) == 0)
    wait_until(lambda: gateway.open_fds() - host.open <= before)
