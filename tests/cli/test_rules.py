# SPDX-License-Identifier: MIT
"""becalm rules: promtool tests the alerts, and the dashboard is valid for Grafana. tests/e2e/test_alerts.py has both in
a real storm."""

import itertools
import json
import re
import shutil
import subprocess

import pytest
import yaml

from conftest import ROOT

TESTS = sorted((ROOT / "deploy/prometheus/tests").glob("*.yaml"))
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool")

# As the field knows them; dashboards and pagers elsewhere rely on each word.
RETRY_RATIO = (
    "sum(rate(http_client_retry_attempts_total[5m])) by (service)"
    " / sum(rate(http_client_requests_total[5m])) by (service)"
)
KNOWN = {
    "HighRetryRate": {
        "expr": f"{RETRY_RATIO} > 0.3",
        "for": "2m",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": "High retry rate detected for {{ $labels.service }}",
            "description": "Retry rate is {{ $value | humanizePercentage }}",
        },
    },
    "CircuitBreakerOpen": {
        "expr": "circuit_breaker_state == 2",
        "for": "1m",
        "labels": {"severity": "critical"},
        "annotations": {"summary": "Circuit breaker open for {{ $labels.service }}"},
    },
    "RequestAmplification": {
        "expr": "sum(rate(http_server_requests_total[1m])) by (service)"
        " / sum(rate(http_server_requests_total[1m] offset 5m)) by (service) > 5",
        "for": "2m",
        "labels": {"severity": "critical"},
        "annotations": {"summary": "Request amplification detected for {{ $labels.service }}"},
    },
}
SIGNS = {
    f"{RETRY_RATIO} > 0.5",
    "rate(http_server_requests_total[1m]) / rate(http_server_requests_total[1m] offset 5m) > 3",
    "max_over_time(http_client_concurrent_requests[5m]) > 100",
}


def joined(text):
    return " ".join(text.split())


def rules(becalm):
    groups = yaml.safe_load(becalm("rules", "prometheus").stdout)["groups"]
    return [{**rule, "expr": joined(rule["expr"])} for group in groups for rule in group["rules"]]


def dashboard(becalm):
    return json.loads(becalm("rules", "grafana").stdout)


def targets(board):
    return [target for panel in board["panels"] for target in panel.get("targets", [])]


def metrics_of(query):
    """The names of metrics in PromQL, without the suffixes of histograms and the parts of recording rules."""
    names = re.findall(r"\b((?:becalm|http|circuit|process)_[a-z_]+)\b", re.sub(r"\w+:\w+:\w+", "", query))
    return {re.sub(r"_bucket$", "", name) for name in names}


def test_rules__are_the_files_of_deploy(becalm):
    for what, path in (("prometheus", "prometheus/becalm.rules.yaml"), ("grafana", "grafana/becalm.json")):
        done = becalm("rules", what)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == (ROOT / "deploy" / path).read_text()


def test_rules__usage(becalm):
    done = becalm("rules", "grafanna")
    assert done.returncode == 2
    assert "did you mean 'grafana'?" in done.stderr
    done = becalm("rules", "grafana", "more")
    assert (done.returncode, done.stdout) == (2, "")


def metrics_source():
    return "".join(path.read_text() for path in sorted((ROOT / "src/meter").glob("metrics*.c")))


def test_rules__metrics_exist(becalm):
    source = metrics_source()
    queries = [rule["expr"] for rule in rules(becalm)] + [target["expr"] for target in targets(dashboard(becalm))]
    used = set().union(*map(metrics_of, queries))
    assert len(used) > 20
    for name in used:
        assert f'"{name}"' in source, name


# ---- Prometheus ----


def test_rules__the_known_alerts_are_verbatim(becalm):
    found = {rule["alert"]: rule for rule in rules(becalm) if "alert" in rule}
    for name, wanted in KNOWN.items():
        assert found[name] == {"alert": name, **wanted}


def test_rules__the_signs_of_a_storm_are_recorded(becalm):
    assert SIGNS == {rule["expr"] for rule in rules(becalm) if "record" in rule}


def test_rules__every_alert_is_explained(becalm):
    page = (ROOT / "docs/alerts.md").read_text()
    manual = (ROOT / "man/becalm-rules.1").read_text()
    for rule in rules(becalm):
        name = rule.get("alert", rule.get("record"))
        assert f"### {name}" in page or f"`{name}`" in page, name
        assert name in manual, name


@needs_promtool
def test_rules__promtool_takes_them(becalm, tmp_path):
    (tmp_path / "r.yaml").write_text(becalm("rules", "prometheus").stdout)
    done = subprocess.run(["promtool", "check", "rules", tmp_path / "r.yaml"], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stdout


@needs_promtool
def test_rules__promtool_proves_them():
    done = subprocess.run(
        ["promtool", "test", "rules", *TESTS], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout


def test_rules__every_alert_has_a_case_that_fires_and_one_that_does_not(becalm):
    cases = [case for path in TESTS for case in yaml.safe_load(path.read_text())["tests"]]
    fires, quiet = set(), set()
    for case in cases:
        last = {each["alertname"]: each for each in case.get("alert_rule_test", [])}  # those before are pending
        for name, each in last.items():
            (fires if each["exp_alerts"] else quiet).add(name)
    for rule in rules(becalm):
        if "alert" in rule:
            assert rule["alert"] in fires & quiet, rule["alert"]


def test_rules__runbooks_lead_to_the_part_of_each_alert(becalm):
    headings = re.findall(r"^### (\w+)$", (ROOT / "docs/alerts.md").read_text(), re.M)
    plain = yaml.safe_load(becalm("rules", "prometheus").stdout)
    told = yaml.safe_load(becalm("rules", "prometheus", "--runbooks", "https://wiki.example/alerts.md").stdout)
    resource = yaml.safe_load(becalm("rules", "kubernetes", "--runbooks", "https://wiki.example/alerts.md").stdout)
    assert resource["spec"] == told
    alerts = [rule for group in told["groups"] for rule in group["rules"] if "alert" in rule]
    for alert in alerts:
        url = alert["annotations"].pop("runbook_url")
        assert alert["alert"] in headings and url == f"https://wiki.example/alerts.md#{alert['alert'].lower()}"
    assert told == plain, "nothing else is different"
    done = becalm("rules", "prometheus", "--runbooks", 'https://x"\n')
    assert (done.returncode, done.stdout) == (2, "")


def test_rules__alertmanager_mutes_what_there_is(becalm):
    alerts = {rule["alert"] for rule in rules(becalm) if "alert" in rule}
    labels = {rule["alert"]: "service" in rule["annotations"]["summary"] for rule in rules(becalm) if "alert" in rule}
    inhibit = yaml.safe_load((ROOT / "deploy/prometheus/alertmanager.yaml").read_text())["inhibit_rules"]
    for rule in inhibit:
        for matcher in rule["source_matchers"] + rule["target_matchers"]:
            names = set(re.fullmatch(r'alertname=~?"([\w|]+)"', matcher)[1].split("|"))
            assert names <= alerts, names - alerts
            assert rule["equal"] == ["service"] and all(labels[name] for name in names)


# ---- Grafana ----


def test_rules__the_dashboard_can_be_imported(becalm):
    board = dashboard(becalm)
    assert board["uid"] and board["title"] and board["schemaVersion"] >= 36
    assert "__inputs" not in board and "id" not in board
    variables = {each["name"]: each for each in board["templating"]["list"]}
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(board))) - {"__rate_interval", "__all"}
    assert used <= set(variables), used


def test_rules__the_dashboard_links_to_the_gateway_and_marks_alerts_and_reloads(becalm):
    board = dashboard(becalm)
    assert [link["url"] for link in board["links"]] == ["http://${instance}/"]
    marks = [mark["expr"] for mark in board["annotations"]["list"]]
    assert any("ALERTS{" in mark for mark in marks)
    source = metrics_source()
    assert all(f'"{name}"' in source for mark in marks for name in metrics_of(mark))


def test_rules__every_panel_asks_the_chosen_datasource_and_says_what_it_shows(becalm):
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    for panel in dashboard(becalm)["panels"]:
        if panel["type"] != "row":
            assert panel["description"] and panel["targets"], panel["title"]
            assert all(target["datasource"] == chosen for target in [panel, *panel["targets"]]), panel["title"]


def test_rules__every_rate_is_over_the_interval_that_grafana_chooses(becalm):
    for target in targets(dashboard(becalm)):
        ranges = re.findall(r"\b(rate|increase)\([^\[]*\[([^\]]+)\]", target["expr"])
        assert all(width == "$__rate_interval" for _, width in ranges), target["expr"]


def test_rules__panels_do_not_overlap(becalm):
    panels = dashboard(becalm)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for one, other in itertools.combinations([panel["gridPos"] for panel in panels], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


def test_rules__the_dashboard_shows_every_figure(becalm):
    shown = set().union(*(metrics_of(target["expr"]) for target in targets(dashboard(becalm))))
    assert shown >= {
        "becalm_arrivals_total",
        "becalm_calls_total",
        "becalm_budget_left",
        "becalm_retry_overflow_total",
        "becalm_limit",
        "becalm_pending_requests",
        "becalm_host_ejected",
        "becalm_request_duration_seconds",
        "becalm_retry_delay_seconds",
        "becalm_shed_total",
        "becalm_hedges_total",
        "becalm_active_retries",
        "becalm_config_last_reload_successful",
        "circuit_breaker_state",
        "circuit_breaker_transitions_total",
        "http_client_concurrent_requests",
        "http_client_requests_total",
        "http_client_retry_attempts_total",
        "http_server_requests_total",
    }
