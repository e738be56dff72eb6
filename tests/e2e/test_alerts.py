# SPDX-License-Identifier: MIT
"""A storm as Prometheus sees it: a real one scrapes a real gateway whose services are dead, poor, flaky or well. Every
alert fires for the service that it is meant for, and every query of the Grafana dashboard finds data."""

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

import pytest

from conftest import PROGRAM, ROOT
from host import Reply

sys.path.append(str(ROOT / "tests/cli"))

import prometheus_server  # noqa: E402

pytestmark = pytest.mark.skipif(not prometheus_server.installed(), reason="there is no prometheus")

MINUTE = 2  # seconds of a minute in the rules: their durations are divided by 30
POLICY = """
defaults: {initialDelay: 5ms, maxDelay: 10ms, limit: {kind: none}, outlier: {enabled: true}}
services:
  naive: # retries without end: the storm
    hosts: [DEAD]
    match: {prefix: /naive}
    maxRetries: 3
    budget: {kind: none}
    breaker: {enabled: false}
  guarded: # the breaker opens
    hosts: [DEAD]
    match: {prefix: /guarded}
  poor: # the budget pays for next to nothing
    hosts: [DEAD]
    match: {prefix: /poor}
    breaker: {enabled: false}
  flaky: # retries hide that every third attempt fails
    hosts: [ALIVE]
    match: {prefix: /flaky}
    budget: {kind: none}
    maxRetries: 5
  sealed: # it has no requests: its handshakes and certificates are still shown
    hosts: ["https://127.0.0.1:1"]
    match: {prefix: /sealed}
    tls: SHOWN
  calm:
    hosts: [ALIVE]
    match: {prefix: /calm}
"""
SERVICES = ["naive", "guarded", "poor", "flaky", "calm"]
EXPECTED = {
    ("HighRetryRate", "naive"),
    ("RetryStorm", "naive"),
    ("RetriesDoNotConverge", "naive"),
    ("RequestAmplification", "naive"),
    ("CircuitBreakerOpen", "guarded"),
    ("LoadShedding", "guarded"),
    ("RetryBudgetExhausted", "poor"),
    ("RetriesWithoutErrors", "flaky"),
    ("PolicyReloadFailed", None),
}


def printed(what):
    done = subprocess.run([PROGRAM, "rules", what], stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout


def shortened(text):
    """Minutes of PromQL and of `for`, at this test's pace."""
    return re.sub(r"\b(\d+)m\b", lambda match: f"{int(match[1]) * MINUTE}s", text)


class Callers:
    """One for each service, at a pace that can be changed."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.pause = 0.5
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self._call, args=[f"/{name}"]) for name in SERVICES]

    def _call(self, path):
        while not self.stopped.wait(self.pause):
            self.gateway.ask(path=path)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


class Prometheus:
    def __init__(self, url):
        self.url = url
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, path, **query):
        where = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with self.opener.open(where, timeout=30) as answer:
            return json.load(answer)["data"]

    def firing(self):
        alerts = [each for each in self.get("alerts")["alerts"] if each["state"] == "firing"]
        return {(each["labels"]["alertname"], each["labels"].get("service")) for each in alerts}


@pytest.fixture
def prometheus(tmp_path):
    """prometheus(gateway): one that scrapes it and has the rules as printed, but faster."""
    with contextlib.ExitStack() as stack:

        def start(gateway):
            folder = tmp_path / "prometheus"
            folder.mkdir()
            (folder / "becalm.rules.yaml").write_text(shortened(printed("prometheus")))
            (folder / "prometheus.yml").write_text(
                "global: {scrape_interval: 500ms, evaluation_interval: 500ms}\n"
                "rule_files: [becalm.rules.yaml]\n"
                "scrape_configs:\n"
                f"  - {{job_name: becalm, static_configs: [{{targets: ['127.0.0.1:{gateway.admin}']}}]}}\n"
            )
            return Prometheus(stack.enter_context(prometheus_server.configured(folder)))

        yield start


def dashboard_queries():
    """(title, PromQL) of every panel, with the variables as Grafana would fill them in."""
    for panel in json.loads(printed("grafana"))["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"].replace("$__rate_interval", f"{2 * MINUTE}s")
            yield panel["title"], shortened(re.sub(r"\$\w+", ".*", query))


def every_alert_fires(prometheus, callers):
    """Collects them, because those about a change of pace end by themselves. The pace changes again until all were seen: on a busy
    machine callers are not five times as fast at once."""
    seen = set()
    for _ in range(5):
        callers.pause = 0.5
        time.sleep(7 * MINUTE)  # RequestAmplification compares with five minutes before
        callers.pause = 0.03
        end = time.monotonic() + 12 * MINUTE
        while not EXPECTED <= seen and time.monotonic() < end:
            time.sleep(0.2)
            seen.update(prometheus.firing())
        if EXPECTED <= seen:
            return seen
    raise AssertionError(f"not seen: {EXPECTED - seen}; seen: {seen}")


def test_alerts__a_storm_is_seen_by_prometheus_and_grafana(gateway, host, authority, prometheus):
    alive, dead = host(), host()
    dead.stop()
    requests = iter(range(1 << 30))
    alive.on("/flaky", lambda request: Reply(status=503 if next(requests) % 3 == 0 else 200))
    hosts = POLICY.replace("DEAD", f'"{dead.address}"').replace("ALIVE", f'"{alive.address}"')
    front = gateway(hosts.replace("SHOWN", authority.issue().yaml))
    server = prometheus(front)
    with Callers(front) as callers:
        front.reload("services: {")
        seen = every_alert_fires(server, callers)
        assert not [name for name, service in seen if service == "calm" and name != "RequestAmplification"]
        queries = list(dashboard_queries())
        assert len(queries) > 30
        empty = [(title, query) for title, query in queries if not server.get("query", query=query)["result"]]
        assert empty == []
