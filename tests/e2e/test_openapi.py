# SPDX-License-Identifier: MIT
"""deploy/openapi/becalm-admin.yaml describes the real answers of the admin address, with success and with errors."""

import copy
import json
import os
import pathlib

import jsonschema
import pytest
import yaml
from conftest import policy_of
from host import Reply, wait_until
from store import SERVER, redis, rules  # noqa: F401: a fixture
from wire import ask

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = yaml.safe_load((ROOT / "deploy/openapi/becalm-admin.yaml").read_text())
RULES = """\
maxRetries: 2
initialDelay: 1ms
budget: {level: both}
hedge: {enabled: true, delay: 20ms}
throttle: {enabled: true}
endpoints:
  charge: {match: {path: /charge}, mode: shadow}
"""


def closed(schema):
    """The same schema, without members that it does not name: `make soak` notices new members."""
    if isinstance(schema, dict):
        more = {"additionalProperties": False} if "properties" in schema and "additionalProperties" not in schema else {}
        return {key: closed(value) for key, value in schema.items()} | more
    return [closed(each) for each in schema] if isinstance(schema, list) else schema


COMPONENTS = DOCUMENT["components"]
if os.environ.get("BECALM_SOAK"):
    COMPONENTS = copy.deepcopy(COMPONENTS) | {"schemas": closed(COMPONENTS["schemas"])}


def described(path, method, status):
    """The content that the document promises: {type: schema}."""
    response = DOCUMENT["paths"][path][method]["responses"][str(status)]
    if "$ref" in response:
        response = COMPONENTS["responses"][response["$ref"].rsplit("/", 1)[1]]
    return response.get("content", {})


def check(gateway, method, path, query="", status=200, body=None, fields=(), **names):
    """Asks, and holds the answer against the document. Returns it."""
    where = path.format(**names) + query
    data = None if body is None else json.dumps(body).encode()
    answer = ask(gateway.admin, method.upper(), where, host=f"127.0.0.1:{gateway.admin}", body=data, fields=fields)
    assert answer.status == status, (where, answer.status, answer.body)
    content = described(path, method, status)
    if not content:
        return answer
    kind = answer.get("content-type").split(";")[0]
    assert kind in content, (where, kind)
    if kind.endswith("json"):
        schema = {**content[kind]["schema"], "components": COMPONENTS}
        jsonschema.Draft202012Validator(schema).validate(json.loads(answer.body))
    return answer


def test_the_document_is_one():
    assert DOCUMENT["openapi"].startswith("3.1.")
    ids = [each["operationId"] for path in DOCUMENT["paths"].values() for each in path.values()]
    assert len(set(ids)) == len(ids)
    for name, schema in COMPONENTS["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
    used = set()

    def look(part):
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            if key == "$ref":
                kind, name = value.removeprefix("#/components/").split("/")
                assert name in COMPONENTS[kind], value
                used.add((kind, name))
            elif isinstance(value, (dict, list)):
                look(value)

    look(DOCUMENT)
    assert {("schemas", name) for name in COMPONENTS["schemas"]} <= used


def test_every_page_is_listed_by_the_gateway(gateway, host):
    there = gateway(policy_of([host()]))
    text = ask(there.admin, "GET", "/", host=f"127.0.0.1:{there.admin}").body.decode()
    for path in DOCUMENT["paths"]:
        assert path.split("{")[0] in text, path


def test_the_answers_are_as_described(gateway, host):
    one = host()
    one.on("/bad", Reply(status=503))
    one.on("/charge", Reply(status=503), Reply())
    there = gateway(policy_of([one], rules=RULES))
    for path in ("/ok", "/charge", *["/bad"] * 12, "/ok"):
        there.ask(path=path)

    breaker = "/api/services/{service}/breaker"
    check(there, "post", breaker, service="a", body={"state": "forced_open", "endpoint": "default"})

    def seen():  # a history that knows of a breaker that has moved
        answer = json.loads(check(there, "get", "/api/history", "?service=a").body)
        return answer["moves"] and answer["rows"]

    wait_until(seen)
    for path in ("/healthz", "/readyz", "/metrics", "/api/state", "/api/sample", "/api/history", "/api/decisions", "/api/policy", "/api/fleet", "/api/keys", "/api/faults"):
        check(there, "get", path)
    check(there, "get", "/api/state", "?service=a")
    check(there, "get", "/api/history", "?service=a&endpoint=charge&range=1h")
    check(there, "get", "/api/decisions", "?service=a&limit=3")
    for state in ("forced_open", "disabled", "metrics_only", "closed", "reset"):
        check(there, "post", breaker, service="a", body={"state": state})
    check(there, "post", "/api/reload", body={})


@pytest.mark.skipif(SERVER is None, reason="redis-server is not installed")
def test_and_those_of_a_fleet(gateway, host, redis):
    there = gateway(policy_of([host()], f'store: {{redis: "{redis.url}", timeout: 20s}}', rules()))
    wait_until(lambda: json.loads(check(there, "get", "/api/fleet").body)["stores"][0]["instances"])
    check(there, "get", "/api/state")
    redis.kill()
    wait_until(lambda: not json.loads(check(there, "get", "/api/fleet").body)["stores"][0]["up"])
    assert json.loads(check(there, "get", "/api/fleet").body)["stores"][0]["error"]


def test_and_those_to_faults_on_order(gateway, host, tmp_path):
    (tmp_path / "token").write_text("word\n")
    there = gateway(policy_of([host()], f"adminTokenFile: {tmp_path}/token"))
    known = {"authorization": "Bearer word"}
    order = {"service": "a", "for": "60s", "latency": "5ms", "name": "slow", "clients": ["127.0.0.1"], "headers": ["x: y"]}
    check(there, "post", "/api/faults", body=order, fields=known)
    check(there, "post", "/api/faults", body={"service": "a", "for": "60s", "cutCallers": "10%", "endpoint": "default"}, fields=known)
    check(there, "post", "/api/faults", body={"service": "a", "for": "60s", "badHosts": 1}, fields=known)
    for path in ("/api/faults", "/api/state", "/api/sample"):
        check(there, "get", path, fields=known)
    check(there, "post", "/api/faults", body=order, status=409, fields=known)
    check(there, "post", "/api/faults", body={**order, "service": "b"}, status=404, fields=known)
    check(there, "post", "/api/faults", body={"service": "a"}, status=400, fields=known)
    check(there, "delete", "/api/faults/{name}", name="slow", fields=known)
    check(there, "delete", "/api/faults/{name}", name="slow", status=404, fields=known)
    check(there, "delete", "/api/faults", fields=known)


def test_so_are_the_refusals(gateway, host):
    there = gateway(policy_of([host()]))
    check(there, "post", "/api/faults", body={}, status=403)
    check(there, "delete", "/api/faults", status=403)
    check(there, "get", "/api/history", "?service=nobody", status=404)
    check(there, "get", "/api/history", "?range=1d", status=400)
    check(there, "get", "/api/decisions", "?limit=x", status=400)
    check(there, "delete", "/api/keys/{id}", id="nothing", status=400)
    check(there, "delete", "/api/keys/{id}", id="0" * 32, status=404)
    check(there, "post", "/api/services/{service}/breaker", service="nobody", body={"state": "closed"}, status=404)
    check(there, "post", "/api/services/{service}/breaker", service="a", body={"state": "ajar"}, status=400)
    there.path.write_text("services: {a: {maxRetires: 1}}\n")
    told = json.loads(check(there, "post", "/api/reload", body={}, status=422).body)
    assert told["diagnostics"][0]["code"] == "unknown-key"
