# SPDX-License-Identifier: MIT
"""deploy/logs: the fields that Alloy and Vector extract are in the log lines of a gateway. Debian packages neither, so
this test reads their files and performs the few steps in them on real lines."""

import datetime
import json
import re

import yaml
from conftest import ROOT
from host import Reply, wait_until

FOLDER = ROOT / "deploy/logs"


def lines_of(gateway, host):
    """A gateway's real lines, parsed: of its log, and of its access log with calls that went well, were retried, failed, and had no route."""
    there = host()
    there.on("/good", Reply(200))
    there.on("/flaky", Reply(503), Reply(200))
    there.on("/bad", Reply(503))
    made = gateway(f'log: {{format: json, access: json}}\nservices: {{shop: {{hosts: ["{there.address}"], match: {{prefix: /}}}}}}\n')
    for path in ("/good", "/flaky", "/bad", "/bad"):
        made.ask(path=path)
    wait_until(lambda: len(made.access()) == 4)
    log = [json.loads(line) for line in made.log().splitlines() if line.startswith("{")]
    return log, [json.loads(line) for line in made.access()]


def blocks(text):
    """[(name, {key: value}, [blocks])] of Alloy's language, as far as the file uses it."""
    text = re.sub(r"^\s*//.*$", "", text, flags=re.M)
    at = 0

    def inside():
        nonlocal at
        values, nested = {}, []
        while True:
            space = re.compile(r"\s*").match(text, at)
            at = space.end()
            if at == len(text) or text[at] == "}":
                at += 1
                return values, nested
            begins = re.compile(r'([\w.]+)(?: "(\w+)")? \{').match(text, at)
            if begins:
                at = begins.end()
                nested.append((begins[1], begins[2], *inside()))
                continue
            value = re.compile(r"(\w+)\s*=\s*(\{.*?\}|\[.*?\]|\".*?\")\n").match(text, at)
            assert value, text[at : at + 60]
            at = value.end()
            values[value[1]] = dict(re.findall(r'(\w+) = "(.*?)"', value[2])) if value[2][0] == "{" else value[2].strip('"')

    return inside()[1]


def found(lines, names):
    """Each is in some line."""
    return {name for name in names if any(name in line for line in lines)} == set(names)


def test_what_the_files_take_out_of_a_line_is_there(gateway, host):
    log, access = lines_of(gateway, host)
    both = log + access
    assert log and {line.get("reason") for line in access} >= {"ok", "budget_empty"}

    # Alloy.
    parts = {(kind, name): (values, nested) for kind, name, values, nested in blocks((FOLDER / "becalm.alloy").read_text())}
    steps = [(kind, values) for kind, _, values, _ in parts["loki.process", "becalm"][1]]
    assert [kind for kind, _ in steps] == ["stage.json", "stage.timestamp", "stage.labels", "stage.structured_metadata"]
    taken = steps[0][1]["expressions"]
    assert found(both, taken.values())
    assert steps[1][1] == {"source": "time", "format": "RFC3339Nano"}
    for line in both:
        assert datetime.datetime.fromisoformat(line[taken["time"]]).tzinfo is not None
    for _, values in steps[2:]:
        assert set(values["values"]) <= set(taken), "what was not taken out can't be a label"
    assert parts["loki.source.journal", "becalm"][0]["forward_to"] == "[loki.process.becalm.receiver]"
    assert parts["loki.process", "becalm"][0]["forward_to"] == "[loki.write.default.receiver]" and ("loki.write", "default") in parts
    unit = parts["loki.source.journal", "becalm"][0]["matches"].removeprefix("_SYSTEMD_UNIT=")
    assert (ROOT / "deploy/systemd" / unit).exists()

    # Vector.
    vector = yaml.safe_load((FOLDER / "vector.yaml").read_text())
    made = {*vector["sources"], *vector["transforms"]}
    for each in [*vector["transforms"].values(), *vector["sinks"].values()]:
        assert set(each["inputs"]) <= made
    program = vector["transforms"]["becalm_lines"]["source"].splitlines()
    assert program == [
        ". = object!(parse_json!(string!(.message)))",
        '.timestamp = parse_timestamp!(.time, "%+")',
        '.kind = if exists(.level) { "log" } else { "access" }',
        "del(.time)",
    ], "this test does these steps below"
    events = [{**line, "kind": "log" if "level" in line else "access"} for line in both]
    assert [event["kind"] for event in events] == ["log"] * len(log) + ["access"] * len(access)
    for label in vector["sinks"]["loki"]["labels"].values():
        assert all(name in event for event in events for name in re.findall(r"{{ (\w+) }}", label))
    condition = vector["transforms"]["becalm_failures"]["condition"]
    assert condition == '.kind == "access" && .reason != "ok"'
    assert [event["target"] for event in events if event["kind"] == "access" and event["reason"] != "ok"] == ["/bad", "/bad"]
