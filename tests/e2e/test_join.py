# SPDX-License-Identifier: MIT
"""A chain of five sidecars whose applications pass on nothing but `traceparent`: deadlines go down it, and marks up."""

import itertools
import os
import subprocess
import sys

import pytest
from conftest import HERE, free_port
from host import Reply, wait_until
from load import Load
from message import request
from wire import ask

LAYERS = 5
SPAN = "b7ad6b7169203331"
NUMBERS = itertools.count(1)
RULES = "attemptTimeout: 30s, deadline: 60s"  # so that no attempt ends by the clock, however busy the machine is
DEAD_CALLS = 5000 if os.environ.get("BECALM_SOAK") == "1" else 600


def trace():
    """Another one for each request, as clients have it."""
    return {"traceparent": f"00-{next(NUMBERS):032x}-{SPAN}-01"}


class Chain:
    """door: where the first sidecar takes requests for its application."""

    def __init__(self, gateway, leaf, folder, text="", layers=LAYERS, rules=RULES):
        self.programs = []
        self.door = free_port()
        doors = [f"127.0.0.1:{self.door}", *(f"unix:{folder}/door{layer}" for layer in range(2, layers + 1))]
        for layer in range(layers, 0, -1):
            last = layer == layers
            application = leaf.address if last else f"unix:{folder}/application{layer}"
            others = "" if last else f"\n  next: {{hosts: ['{doors[layer]}'], {rules}}}"
            here = gateway(
                f"role: sidecar\ntrust: [127.0.0.0/8, unix]\n{text}services:\n"
                f"  self: {{hosts: ['{application}'], listen: {{address: '{doors[layer - 1]}', role: gateway}}, {rules}}}{others}\n"
            )
            self.first = here  # at last
            if not last:
                self.programs.append(subprocess.Popen([sys.executable, str(HERE / "passer.py"), f"{folder}/application{layer}", str(here.port)]))
                wait_until((folder / f"application{layer}").exists)

    def end(self):
        for program in self.programs:
            program.kill()
            program.wait(10)


@pytest.fixture
def chain(gateway, tmp_path):
    made = []

    def make(leaf, **more):
        made.append(Chain(gateway, leaf, tmp_path, **more))
        return made[-1]

    yield make
    for each in made:
        each.end()


def left(leaf):
    return int(leaf.requests[-1].get("x-request-deadline-ms"))


def test_a_deadline_goes_down_a_chain_whose_applications_do_not_pass_it_on(chain, host):
    leaf = host()
    here = chain(leaf)
    assert ask(here.door, fields={**trace(), "X-Request-Deadline-Ms": "20000"}).status == 200
    assert 0 < left(leaf) <= 20000
    assert ask(here.door, fields=trace()).status == 200  # whose own client says nothing: the policies' own
    assert left(leaf) > 20000
    here.first.expect_metric(2, "becalm_join_calls_total", result="joined")
    here.first.expect_metric(2, "becalm_join_calls_total")


def test_without_joining_it_ends_at_the_first_application(chain, host):
    leaf = host()
    here = chain(leaf, text="join: []\n", layers=2)
    assert ask(here.door, fields={**trace(), "X-Request-Deadline-Ms": "20000"}).status == 200
    assert left(leaf) > 20000


def test_only_the_ids_that_are_listed_join(chain, host):
    leaf = host()
    here = chain(leaf, text="join: [b3, x-request-id]\n", layers=2)
    assert ask(here.door, fields={**trace(), "X-Request-Deadline-Ms": "20000"}).status == 200
    assert left(leaf) > 20000


def calls_at_the_leaf(here, leaf):
    """For one call at the top, when all have heard that it is dead."""
    for _ in range(20):
        ask(here.door, fields=trace())
    before = leaf.count()
    for _ in range(10):
        assert ask(here.door, fields=trace()).status == 502
    return (leaf.count() - before) / 10


GREEDY = "attemptTimeout: 30s, deadline: 60s, initialDelay: 1ms, maxDelay: 1ms, maxRetries: 1, budget: {kind: none}, breaker: {enabled: false}, outlier: {enabled: false}"


def test_a_mark_goes_up_past_an_application_that_does_not_know_it(chain, host):
    """Each of three hops would try twice. Those above the failure do not, though the application between them says nothing."""
    leaf = host().on("/", Reply(503))
    here = chain(leaf, layers=2, rules=GREEDY)
    assert calls_at_the_leaf(here, leaf) == 2
    assert ask(here.door, fields=trace()).get("becalm-retry").startswith("spent")


def test_without_joining_each_application_multiplies(chain, host):
    leaf = host().on("/", Reply(503))
    assert calls_at_the_leaf(chain(leaf, layers=2, rules=GREEDY, text="join: []\n"), leaf) == 4


def test_a_dead_leaf_behind_five_applications_sees_at_most_a_tenth_more(chain, host):
    leaf = host()
    here = chain(leaf)
    load = Load(here.door, clients=4, seconds=300, make=lambda n: ("GET", request(path="/", fields=trace())))
    load.start()
    wait_until(lambda: len(load.results) > 30, seconds=120)
    leaf.on("/", Reply(503, b"dead"))
    seen, sent = leaf.count(), len(load.results)
    wait_until(lambda: len(load.results) > sent + DEAD_CALLS, seconds=150)
    share = (leaf.count() - seen) / (len(load.stop()) - sent)
    print(f"{share:.3f}x")
    assert share <= 1.1
