# SPDX-License-Identifier: MIT
"""Tunnels are bounded, in all and for each host."""

import contextlib
import json

import pytest

from host import Reply, Tunnel, wait_until
from message import request

UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket"}
NAME = "becalm_bounds_reached_total"


@contextlib.contextmanager
def tunnels(gateway, count):
    """Asks for that many; yields the answers' statuses and bodies."""
    wires = [gateway.wire() for _ in range(count)]
    try:
        yield wires, [wire.ask(path="/ws", fields=UPGRADE) for wire in wires]
    finally:
        for wire in wires:
            wire.close()


CASES = {
    "maxTunnels": ("maxTunnels: 4", "maxTunnels"),
    "maxTunnelsPerHost": ("maxTunnelsPerHost: 4", "maxTunnelsPerHost"),
    "half of maxConnections": ("maxConnections: 8", "maxTunnels"),
    "pool.maxPerHost": ("pool: {maxPerHost: 4}", "maxTunnelsPerHost"),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_no_more_tunnels_than_their_bound(pair, case, workers):
    text, bound = CASES[case]
    gateway, host = pair(text, workers=workers)
    host.on("/ws", Tunnel())
    for turn in (1, 2):  # their places are given back
        with tunnels(gateway, 7) as (wires, answers):
            assert sorted(answer.status for answer in answers) == [101] * 4 + [503] * 3
            refused = next(answer for answer in answers if answer.status == 503)
            assert bound in refused.body.decode() and json.loads(refused.body)["status"] == 503
            wait_until(lambda: gateway.metric("becalm_tunnels") == 4)  # a refused one has had a place for a moment
            gateway.expect_metric(3 * turn, NAME, bound=bound, action="refused")
            assert gateway.ask().status == 200, "requests are not concerned"
        wait_until(lambda: gateway.metric("becalm_tunnels") == 0)


def test_upgrades_that_the_host_does_not_want_give_their_places_back(pair):
    gateway, host = pair("maxTunnels: 2\nmaxTunnelsPerHost: 2", rules="maxRetries: 0")
    host.on("/ws", Reply(200), Reply(503), Reply(raw=b"junk\r\n\r\n", end="close"), Reply(426))
    for _ in range(8):
        assert gateway.ask(path="/ws", fields=UPGRADE).status in (200, 426, 502, 503)
    with gateway.wire() as wire:
        wire.send(request(path="/ws", fields=UPGRADE)).reset()
    wait_until(lambda: gateway.metric("becalm_tunnels") == 0)
    assert gateway.metric(NAME, bound="maxTunnelsPerHost") == gateway.metric(NAME, bound="maxTunnels") == 0


def test_connect_is_bounded_as_well(gateway, host):
    one = host()
    made = gateway(f"connect: on\nmaxTunnels: 2\nservices:\n  a.test:\n    hosts: ['{one.address}']\n")
    wires = [made.wire() for _ in range(3)]
    statuses = [wire.send(b"CONNECT a.test:80 HTTP/1.1\r\nhost: a.test:80\r\n\r\n").answer("CONNECT").status for wire in wires]
    assert statuses == [200, 200, 503]
    for wire in wires:
        wire.close()
    wait_until(lambda: made.metric("becalm_tunnels") == 0)
