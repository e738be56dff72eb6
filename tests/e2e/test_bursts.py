# SPDX-License-Identifier: MIT
"""Pages of calls through a sidecar, to a host that rejects what it has no place for."""

import threading
import time

from host import Reply
from load import Load, statuses

PAGE = 24
PLACES = 10
TAKES = 0.2  # seconds


class Places:
    """The host's replies: 503 while as many requests are being worked on as there are places."""

    def __init__(self):
        self.lock = threading.Lock()
        self.ends = []

    def reply(self, request):
        with self.lock:
            now = time.monotonic()
            self.ends = [end for end in self.ends if end > now]
            if len(self.ends) >= PLACES:
                return Reply(503)
            self.ends.append(now + TAKES)
            return Reply(delay=TAKES)


def page(sidecar):
    """The statuses of one page: calls that clients send together, each its only one."""
    return statuses(Load(sidecar.port, clients=PAGE, count=PAGE).run_through())


def test_a_sidecar_learns_how_many_calls_of_a_page_a_host_takes_at_once(pair):
    """Not by its retries: there are none."""
    sidecar, host = pair(text="role: sidecar", rules="maxRetries: 0\nattemptTimeout: 30s\ndeadline: 60s")
    host.on("/", Places().reply)
    assert page(sidecar)[503] > 0, "the page is too small for this host"
    pages = []
    for _ in range(15):
        time.sleep(2 * TAKES)
        pages.append(page(sidecar))
    assert {200: PAGE} in pages, f"the host rejected calls of all pages: {pages}"
    assert pages[-1] == {200: PAGE}, f"it began again: {pages}"
