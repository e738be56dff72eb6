# SPDX-License-Identifier: MIT
"""becalm schema: a JSON Schema that accepts all files that the loader accepts, and refuses the errors that a schema can
express."""

import json
import re

import jsonschema
import pytest
import yaml

from conftest import ROOT

POLICIES = sorted((ROOT / "policies").glob("*.yaml")) + sorted((ROOT / "tests/policies/import/expected").glob("*.yaml"))
BROKEN = sorted(path for path in (ROOT / "tests/policies/broken").iterdir() if path.suffix in (".yaml", ".json"))
SEEN_BY_A_SCHEMA = {"unknown-key", "wrong-type", "out-of-range"}

# Errors that only the loader finds, and why.
BEYOND = {
    "out-of-range-fallback-headers.yaml": "lists have no bounds",
    "wrong-type-fallback-header.yaml": "a field is a text",
    "wrong-type-fallback-header-line.yaml": "a field is a text",
    "range-duration-of-eleven-years.yaml": "durations are texts",
    "range-header-bytes.yaml": "sizes are texts",
    "range-host-port.yaml": "a port is part of an address",
    "type-count-is-octal.yaml": "a schema is asked after YAML has made a number of it",
    "type-duration-below-a-nanosecond.yaml": "durations are texts",
    "type-listen-on-a-name.yaml": "a name looks like an address",
    "type-name-of-dots.yaml": "the pattern of names is that of their letters",
    "type-network.yaml": "the pattern of networks is that of their digits",
    "type-unknown-retry-condition.yaml": "any word may be one of gRPC's codes",
}


class Core(yaml.SafeLoader):
    """YAML 1.2, as editors read it: on, off, yes and no are words."""


Core.yaml_implicit_resolvers = {
    first: [(tag, regex) for tag, regex in rows if tag != "tag:yaml.org,2002:bool"]
    for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Core.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|false|True|False)$"), list("tTfF"))


def read(text):
    tree = yaml.load(text, Core)
    if isinstance(tree, dict) and tree.get("kind") == "ConfigMap" and "policy.yaml" in tree.get("data", {}):
        return read(tree["data"]["policy.yaml"])
    return {} if tree is None else tree


@pytest.fixture
def schema(becalm):
    done = becalm("schema")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture
def validator(schema):
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.name)
def test_schema__takes_every_policy_of_the_tree(validator, path):
    assert [error.message for error in validator.iter_errors(read(path.read_text()))] == []


def test_schema__refuses_what_is_broken(validator):
    refused, taken = 0, set()
    for path in BROKEN:
        beside = path.with_name(path.name + ".expect")
        text = path.read_text("latin-1")
        codes = set(re.findall(r"\d+:\d+: ([a-z-]+)", (beside.read_text() if beside.exists() else text)))
        try:
            tree = read(path.read_text())
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
            continue
        if not codes & SEEN_BY_A_SCHEMA or path.name.startswith("yaml-"):
            continue
        if validator.is_valid(tree):
            taken.add(path.name)
        else:
            refused += 1
    assert taken == set(BEYOND)
    assert refused >= 30


def keys_of(schema, node, prefix=""):
    """[(dotted name, its schema)] of a definition, references followed."""
    found = []
    for name, value in node["properties"].items():
        if "$ref" in value:
            target = schema
            for part in value["$ref"].split("/")[1:]:
                target = target[part]
            value = target
        inner = value if "properties" in value else next((x for x in value.get("anyOf", []) if "properties" in x), None)
        if inner and "definitions" not in value:
            found += keys_of(schema, inner, f"{prefix}{name}.")
        else:
            found.append((prefix + name, value))
    return found


def test_schema__every_key_is_told_with_its_default(schema, becalm):
    told = dict(keys_of(schema, schema["definitions"]["defaults"]))
    explained = json.loads(becalm("check", "--json", "--explain", "defaults", "-", stdin="{}").stdout)
    values = explained["explain"][0]["values"]
    assert len(values) > 40
    for value in values:
        description = told[value["key"]]["description"]
        assert description.startswith(value["sentence"]), value["key"]
        assert f"; default: {value['value']}" in description, value["key"]


# Plain scalars, lists and mappings, right for some keys and wrong for most.
SAMPLES = (
    "0 3 70000 2000000 0.5 12.25 true off none auto 10ms 1.5s 1h30m 10% 64KiB 5/s p95 p99.9 full earned learned address "
    "credentials header:x-user 127.0.0.1:80 [::1]:80 host.local:8080 unix:/run/x https://pay.local srv://_http._tcp.pay.local *.example.com * /pay POST "
    "1.2 h1 redis://cache 10.0.0.0/8 503 UNAVAILABLE reset [5xx,503] [] {} {x-plan:1} info"
).split()


def written(name, value, base):
    """The lines of a policy that has one key."""
    parts = name.split(".")
    lines = [f"{'  ' * (base + i)}{part}:" for i, part in enumerate(parts)]
    lines[-1] += f" {value}"
    return lines


def test_schema__takes_whatever_the_loader_takes(becalm, schema, validator, tmp_path):
    """Each key with each sample: the schema must accept all values that the loader accepts."""
    service = schema["definitions"]["service"]
    places = [(name, 0, []) for name, _ in keys_of(schema, schema) if name.split(".")[0] not in ("version", "services", "lint", "defaults")]
    places += [(name, 2, ["services:", "  one:"]) for name, _ in keys_of(schema, service) if name != "endpoints"]
    assert len(places) > 125
    taken, stricter = 0, []
    for number, sample in enumerate(SAMPLES):
        sample = "'*'" if sample == "*" else "'*.example.com'" if sample.startswith("*.") else sample.replace("[::1]:80", "'[::1]:80'")
        files = []
        for each, (name, base, head) in enumerate(places):
            path = tmp_path / f"{number}-{each}.yaml"
            path.write_text("\n".join(head + written(name, sample, base)) + "\n")
            files.append(path)
        wrong = set()
        for first in range(0, len(files), 60):  # fewer than the findings that are told
            report = json.loads(becalm("check", "--json", *files[first : first + 60]).stdout)
            wrong |= {found["file"] for found in report["findings"] if found["severity"] == "error"}
        for path, (name, _, _) in zip(files, places):
            if str(path) not in wrong:
                taken += 1
                if not validator.is_valid(read(path.read_text())):
                    stricter.append((name, sample))
    assert stricter == []
    assert taken > 500


def test_schema__every_example_says_where_it_is():
    for path in sorted((ROOT / "policies").glob("*.yaml")):
        if "kind: ConfigMap" not in path.read_text():
            first = path.read_text().splitlines()[0]
            assert first == "# yaml-language-server: $schema=/usr/share/becalm/becalm.schema.json", path.name


def test_schema__usage(becalm):
    assert becalm("schema", "more").returncode == 2
