# SPDX-License-Identifier: MIT
"""Only the host may see the query of a URL: it is in no log, metric or admin page."""

import json

import pytest

from host import Reply, wait_until
from wire import ask

QUERY = "token=hunter2"


def told(gateway, access):
    """The access log and the page of decisions, as text."""
    wait_until(lambda: len(gateway.access()) >= 3)
    page = ask(gateway.admin, path="/api/decisions", host=f"127.0.0.1:{gateway.admin}").body.decode()
    assert json.loads(page)["decisions"]
    return "\n".join(gateway.access()), page


@pytest.mark.parametrize("access", ["json", "combined"])
@pytest.mark.parametrize("shown", [False, True])
def test_queries_are_shown_only_if_the_policy_says_so(pair, access, shown):
    gateway, host = pair(f"log: {{access: {access}, query: {str(shown).lower()}}}", rules="maxRetries: 0")
    host.on(f"/fails?{QUERY}", Reply(503))
    fields = {"Referer": f"http://a.test/before?{QUERY}"}
    assert gateway.ask(path=f"/fails?{QUERY}", fields=fields).status == 503
    assert gateway.ask(path=f"/well?{QUERY}", fields=fields).status == 200
    gateway.ask(path=f"http://a.test/absolute?{QUERY}", fields=fields)
    log, page = told(gateway, access)
    assert host.count(f"/well?{QUERY}") == 1, "the host has it in any case"
    for text in (log, page):
        assert ("hunter2" in text) == shown
        assert "/fails" in text
    assert "/well" in log and "http://a.test/before" in log and "/absolute" in log


def test_they_are_not_shown_by_default(pair):
    gateway, host = pair("log: {access: json}", rules="maxRetries: 0")
    host.on(f"/fails?{QUERY}", Reply(503))
    for _ in range(3):
        gateway.ask(path=f"/fails?{QUERY}")
    log, page = told(gateway, "json")
    assert "hunter2" not in log + page + gateway.log()
