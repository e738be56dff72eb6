# SPDX-License-Identifier: MIT
"""A real Prometheus scrapes a real gateway with the configuration of the Prometheus operator: each target has its own
labels `service` and `endpoint`. With the PodMonitor's settings Prometheus still sees the services that the gateway
calls."""

import contextlib
import json
import subprocess
import sys
import urllib.parse
import urllib.request

import pytest
import yaml

from conftest import PROGRAM, ROOT, wait_until
from host import Reply

sys.path.append(str(ROOT / "tests/cli"))

import prometheus_server  # noqa: E402

pytestmark = pytest.mark.skipif(not prometheus_server.installed(), reason="there is no prometheus")

SERVICES = ["payment", "ledger"]
(MONITOR,) = yaml.safe_load((ROOT / "deploy/kubernetes/monitoring/podmonitor.yaml").read_text())["spec"]["podMetricsEndpoints"]


def snake(rule):
    names = {"sourceLabels": "source_labels", "targetLabel": "target_label"}
    return {names.get(key, key): value for key, value in rule.items()}


@contextlib.contextmanager
def prometheus(folder, gateway, honor, relabel):
    """As the operator writes it: labels of the target, and the settings of the monitor."""
    folder.mkdir()
    rules = subprocess.run([PROGRAM, "rules", "prometheus"], stdout=subprocess.PIPE, text=True, check=True).stdout
    (folder / "rules.yaml").write_text(rules)
    job = {
        "job_name": "monitoring/becalm",
        "scrape_interval": "1s",
        "honor_labels": honor,
        "metric_relabel_configs": [snake(rule) for rule in relabel],
        "static_configs": [
            {
                "targets": [f"127.0.0.1:{gateway.admin}"],
                "labels": {"service": "becalm", "endpoint": "becalm-admin", "namespace": "shop", "pod": "becalm-0"},
            }
        ],
    }
    settings = {"global": {"evaluation_interval": "1s"}, "rule_files": ["rules.yaml"], "scrape_configs": [job]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    with prometheus_server.configured(folder) as url:
        yield url


def fetch(url, path):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url + path, timeout=60) as answer:
        return json.load(answer)["data"]


def ask(url, query):
    return fetch(url, "/api/v1/query?" + urllib.parse.urlencode({"query": query}))["result"]


def seen(url, label):
    """{value of the label: arrivals}"""
    return {each["metric"].get(label): float(each["value"][1]) for each in ask(url, f"sum by ({label}) (becalm_arrivals_total)")}


@pytest.fixture
def shop(gateway, host):
    one = host()
    one.on("*", lambda got: Reply(body=b"fine"))
    lines = [f"  {name}: {{hosts: ['{one.address}'], match: {{prefix: /{name}}}, endpoints: {{all: {{match: {{prefix: /{name}/all}}}}}}}}" for name in SERVICES]
    made = gateway("services:\n" + "\n".join(lines) + "\n")
    for name in SERVICES:
        for _ in range(3):
            assert made.ask(path=f"/{name}/all").status == 200
    return made


@pytest.mark.parametrize("honor", [True, False], ids=["honoured", "overridden"])
def test_operator__the_monitor_keeps_each_service_apart(shop, tmp_path, honor):
    with prometheus(tmp_path / "prometheus", shop, honor and MONITOR["honorLabels"], MONITOR["metricRelabelings"]) as url:
        wait_until(lambda: seen(url, "service") == {name: 3 for name in SERVICES})
        assert seen(url, "endpoint").get("all") == 6
        assert seen(url, "pod") == {"becalm-0": 6}, "what the operator adds beside is still there"
        assert ask(url, 'count({exported_service!=""})') == ask(url, 'count({exported_endpoint!=""})') == []


def test_operator__without_it_everything_is_one_service_and_an_alert_says_so(shop, tmp_path):
    with prometheus(tmp_path / "prometheus", shop, False, []) as url:
        wait_until(lambda: seen(url, "service") == {"becalm": 6})
        assert seen(url, "exported_service") == {name: 3 for name in SERVICES}
        wait_until(lambda: "LabelsRenamed" in {each["labels"]["alertname"] for each in fetch(url, "/api/v1/alerts")["alerts"]})
