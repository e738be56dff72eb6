# SPDX-License-Identifier: MIT
"""The log tells that a service is down once, and that it is back once, with any traffic. test_changes.c checks the
times."""

from host import Reply, wait_until

BEGINS = ("calls fail service=b ", "breaker opened service=b ", "host ejected service=a ")
ENDS = ("calls succeed again service=b ", "breaker closed service=b ", "host gets calls again service=a ")


def told(gateway):
    """How many lines there are of each kind."""
    log = gateway.log().splitlines()
    return {kind: sum(f" {kind}" in line for line in log) for kind in BEGINS + ENDS}


def test_an_outage_is_one_line_of_each_kind_and_so_is_its_end(gateway, host):
    there = host().on("/", Reply(503))
    well = host()
    here = gateway(
        f"services:\n  a: {{hosts: ['{there.address}', '{well.address}'], match: {{prefix: /}}, breaker: {{waitDurationInOpenState: 100ms}},"
        f" outlier: {{consecutive5xxErrors: 3, baseEjectionTime: 10ms, maxEjectionPercent: 100}}}}\n"
        f"  b: {{hosts: ['{there.address}'], match: {{host: b.test}}, breaker: {{waitDurationInOpenState: 100ms, openMultiplier: 1, mode: consecutive, failureThreshold: 5}}}}\n"
    )

    def goes_on():
        here.ask(path="/", host="b.test")
        here.ask(path="/")
        return told(here)

    wait_until(lambda: all(goes_on()[kind] for kind in BEGINS), what=lambda: told(here))
    for _ in range(200):  # many moves of the breaker, and no more lines
        goes_on()
    assert max(told(here).values()) == 1, here.log()
    assert "breaker moved" not in here.log()
    there.on("/", Reply(200))
    wait_until(lambda: all(goes_on().values()), seconds=60, what=lambda: told(here))
    here.end()
    assert set(told(here).values()) == {1}, here.log()
