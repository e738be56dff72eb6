# SPDX-License-Identifier: MIT
"""Calls of several threads that share one client. ThreadSanitizer looks at these, and at test_lines."""

import pytest
from conftest import service
from host import Reply


@pytest.mark.parametrize("kind", ["{kind: fixed, max: 1}", "{min: 1, max: 1}"])
def test_threads__downloads_in_progress_hold_no_slot_of_the_limit(host, lab, kind):
    host.on("/", Reply(200, b"a" * 200, pace=0.01))
    result = lab(service(limit=kind), f"http://{host.address}/", threads=6, in_turn=1)
    assert [(call["code"], call["bytes"], call["reason"]) for call in result.calls] == [(0, 200, "ok")] * 6


def test_threads__downloads_in_progress_have_a_bound_of_their_own(host, lab):
    host.on("/", Reply(200, b"a" * 200, pace=0.02))
    limit = "{kind: fixed, max: 1, maxAnswers: 3}"
    result = lab(service(limit=limit, gate="{maxQueue: 0}"), f"http://{host.address}/", threads=4, in_turn=1)
    assert sorted(call["reason"] for call in result.calls) == ["answers", "ok", "ok", "ok"]
    assert result.count("becalm_shed_total", reason="answers") == 1


def test_threads__many_threads_share_a_client(host, lab):
    host.on("/", *[Reply(503, b""), Reply(200, b"fine"), Reply(200, b"fine")] * 200)
    result = lab(service(), f"http://{host.address}/", threads=8, repeat=40, operation="many")
    assert len(result.calls) == 320 and {call["code"] for call in result.calls} == {0}
    sent = result.count("http_client_requests_total", operation="many")
    assert sent == host.count() == 320 + result.count("http_client_retry_attempts_total", operation="many")
    assert result.count("http_client_concurrent_requests") == 0
    assert result.count("becalm_active_requests") == 0
