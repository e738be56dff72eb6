# SPDX-License-Identifier: MIT
"""A gateway is shared fairly: clients that wait at a gate are served in turn, however many requests each sends, through
whichever worker and to whichever endpoint. Clients differ by their address."""

import os

import pytest

from host import Reply
from load import Load, reasons, success
from message import request

SOAK = os.environ.get("BECALM_SOAK") == "1"
LOUD, QUIET = "127.0.0.2", "127.0.0.3"


def room(slots=4, more=""):
    """A policy with a limit: with calls of 20 ms, four slots are room for 200 calls a second, or as many as the machine
    can do."""
    return f"maxRetries: 0\nattemptTimeout: 20s\nlimit: {{kind: fixed, max: {slots}}}\nbreaker: {{enabled: false}}\n{more}"


def crowd(gateway, clients, source=LOUD, paths=("/",), seconds=60):
    """Connections that ask one request after another, for each path as often."""
    make = lambda n: ("GET", request(path=paths[n % len(paths)]))  # noqa: E731
    load = Load(gateway.port, clients=clients, source=source, seconds=seconds, make=make)
    load.start()
    return load


@pytest.mark.parametrize("workers", [1, 2])
def test_a_client_with_many_connections_does_not_starve_another(pair, workers):
    gateway, host = pair(rules=room(), workers=workers)
    host.on("/", Reply(delay=0.02))
    loud = crowd(gateway, 300 if SOAK else 120)
    host.wait(100)
    quiet = Load(gateway.port, clients=1, count=600 if SOAK else 50, seconds=120, source=QUIET).run_through()
    others = loud.stop()
    assert success(quiet) >= 0.99, (success(quiet), reasons(quiet))
    assert sum(result.status == 200 for result in others) > len(quiet), "who asks more gets what others leave"


ORDERS = {
    "as written": ("one", "two"),
    "the other way round": ("two", "one"),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("workers", [1, 2])
def test_endpoints_of_one_gate_are_served_alike(gateway, host, order, workers):
    """In any order of the file, and also for one client that asks both."""
    there = host()
    endpoints = "".join(f"      {name}: {{match: {{path: /{name}}}}}\n" for name in ORDERS[order])
    rules = "".join(f"    {line}\n" for line in room().splitlines())
    made = gateway(
        f"services:\n  a:\n    hosts: [{there.address}]\n    match: {{prefix: /}}\n{rules}    endpoints:\n{endpoints}",
        workers=workers,
    )
    for path in ("/one", "/two"):
        there.on(path, Reply(delay=0.02))
    load = crowd(made, 160 if SOAK else 80, paths=("/one", "/two"), seconds=150)
    there.wait(3000 if SOAK else 600, seconds=120)
    load.stop()
    counts = [there.count(path) for path in ("/one", "/two")]
    assert 0.45 <= counts[0] / sum(counts) <= 0.55, counts


def test_a_call_at_another_worker_is_served_too(gateway, host):
    """Of one client: slots that come free at one worker serve its own calls first, and it has always some."""
    there = host()
    there.on("/", Reply(delay=0.02))
    made = gateway(
        f"services:\n  a:\n    hosts: [{there.address}]\n    match: {{prefix: /}}\n"
        + "".join(f"    {line}\n" for line in room(slots=1).splitlines()),
        workers=2,
    )
    loads = [crowd(made, 1, seconds=150) for _ in range(24)]  # each on a connection that some worker has for good
    there.wait(600 if SOAK else 200, seconds=120)
    served = [sum(result.status == 200 for result in load.stop()) for load in loads]
    assert min(served) > 0, served


def saying(name):
    """Requests that say whose they are."""
    return lambda n: ("GET", request(fields={"X-Client-Id": name(n)}))


def named_crowd(gateway, host, loud, quiet):
    """Two clients behind one address that name themselves in a header; returns the answers of the quiet one."""
    host.on("/", Reply(delay=0.02))
    crowd = Load(gateway.port, clients=120, seconds=60, make=saying(loud))
    crowd.start()
    host.wait(100)
    results = Load(gateway.port, clients=1, count=200 if SOAK else 40, seconds=120, make=saying(quiet)).run_through()
    crowd.stop()
    return results


def test_a_trusted_peer_tells_its_clients_apart(pair):
    gateway, host = pair("clientKey: header:x-client-id\ntrust: [127.0.0.0/8]", rules=room())
    results = named_crowd(gateway, host, lambda n: "loud", lambda n: "quiet")
    assert success(results) >= 0.99, (success(results), reasons(results))


def test_who_is_not_trusted_has_one_turn_whatever_names_it_says(pair):
    gateway, host = pair("clientKey: header:X-Client-Id", rules=room())
    host.on("/", Reply(delay=0.02))
    loud = Load(gateway.port, clients=120, seconds=60, source=LOUD, make=saying(lambda n: f"name{n}"))
    loud.start()
    host.wait(100)
    quiet = Load(gateway.port, clients=1, count=200 if SOAK else 40, seconds=120, source=QUIET).run_through()
    loud.stop()
    assert success(quiet) >= 0.99, (success(quiet), reasons(quiet))


@pytest.mark.parametrize("level", ["service", "both"])
def test_a_client_that_always_fails_leaves_retries_to_another(pair, level):
    rules = f"initialDelay: 1ms\nbreaker: {{enabled: false}}\noutlier: {{enabled: false}}\nbudget: {{level: {level}}}"
    gateway, host = pair(rules=rules)
    host.on("/fails", Reply(503))
    host.on("/", *([Reply()] * 9 + [Reply(503)]) * 2000)
    seconds = 60 if SOAK else 10
    make = lambda n: ("GET", request(path="/fails"))  # noqa: E731
    failing = Load(gateway.port, rate=50, seconds=seconds + 5, source=LOUD, make=make)
    failing.start()
    host.wait(50, path="/fails")
    others = Load(gateway.port, rate=40, seconds=seconds, source=QUIET).run_through()
    failing.stop()
    assert success(others) >= 0.985, (success(others), reasons(others))
