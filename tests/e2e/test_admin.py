# SPDX-License-Identifier: MIT
"""The admin address: its pages, its orders, and its access rules."""

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest
from conftest import can_trace, free_port, policy_of
from host import Reply, wait_until
from message import BAD_TRAILERS, request
from wire import Wire, ask

ENDPOINT = "endpoints:\n  charge: {match: {path: /charge}, maxRetries: 1}\n"
TOKEN = "correct-horse-battery-staple"
AT_WORK = "attemptTimeout: 1h\ndeadline: 1h\nmaxRetries: 0"  # calls stay until they are answered



def admin(gateway, method="GET", path="/", host=None, **more):
    """One request to a gateway's admin address."""
    return ask(gateway.admin, method, path, host=host or f"127.0.0.1:{gateway.admin}", **more)


def page(gateway, path):
    answer = admin(gateway, path=path)
    assert answer.status == 200 and answer.get("content-type") == "application/json", answer.body
    return json.loads(answer.body)


def post(gateway, path, body=None, **more):
    """The status, and the JSON of the answer."""
    answer = admin(gateway, "POST", path, body=b"" if body is None else json.dumps(body).encode(), **more)
    return answer.status, json.loads(answer.body)


def target(gateway, service="a", endpoint="default"):
    """The answer of /api/state."""
    services = {each["name"]: each for each in page(gateway, "/api/state")["services"]}
    return {each["name"]: each for each in services[service]["endpoints"]}[endpoint]


# Pages.


def test_health_and_readiness(pair):
    gateway, _ = pair(delay="30s")
    assert admin(gateway, path="/healthz").body == b"ok\n"
    assert admin(gateway, path="/readyz").body == b"ready\n"
    gateway.signal(signal.SIGTERM)
    wait_until(lambda: admin(gateway, path="/readyz").status == 503)
    assert b"draining" in admin(gateway, path="/readyz").body
    assert admin(gateway, path="/healthz").status == 200
    assert page(gateway, "/api/state")["draining"] is True
    assert gateway.ask().status == 200, "it still serves"


def test_the_front_page_lists_the_others(pair):
    gateway, _ = pair()
    text = admin(gateway).body.decode()
    for path in ("/healthz", "/readyz", "/metrics", "/api/state", "/api/decisions", "/api/policy", "/api/reload"):
        assert path in text
    assert max(map(len, text.splitlines())) <= 88


def test_every_answer_is_neither_kept_nor_guessed_nor_framed(pair):
    gateway, _ = pair()
    for path in ("/", "/metrics", "/no-such-page"):
        answer = admin(gateway, path=path)
        assert answer.get("cache-control") == "no-store" and answer.get("x-content-type-options") == "nosniff"
        assert "default-src 'none'" in answer.get("content-security-policy")
        assert "frame-ancestors 'none'" in answer.get("content-security-policy")


def test_metrics_are_what_prometheus_reads(pair):
    gateway, host = pair(rules=ENDPOINT, workers=2)
    host.on("/charge", Reply(status=503), Reply())
    assert gateway.ask(path="/charge").status == 200
    plain = admin(gateway, path="/metrics")
    assert plain.get("content-type") == "text/plain; version=0.0.4; charset=utf-8"
    gateway.expect_metric(1, "becalm_arrivals_total", service="a", endpoint="charge")
    gateway.expect_metric(1, "http_client_retry_attempts_total", endpoint="charge", attempt="1")
    assert gateway.metric("becalm_connections_accepted_total") >= 1
    assert gateway.metric("becalm_host_ejected", host=host.address) == 0
    accept = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
    opened = admin(gateway, path="/metrics", fields=accept)
    assert opened.get("content-type").startswith("application/openmetrics-text")
    assert opened.body.endswith(b"# EOF\n")
    if shutil.which("promtool"):
        check = subprocess.run(["promtool", "check", "metrics"], input=plain.body, capture_output=True)
        assert (check.returncode, check.stdout, check.stderr) == (0, b"", b"")


def test_hosts_of_one_address_have_a_series_each(gateway, host):
    one = host()
    there = gateway(policy_of([one, one]))
    rows = [row for row in there.metrics() if row.startswith("becalm_host_ejected")]
    assert len(rows) == 2 and f'host="{one.address}#2"' in rows[1]


def test_requests_for_no_service_are_counted(gateway, host):
    there = gateway(f"services:\n  a: {{hosts: [{host().address}], match: {{prefix: /a}}}}\n")
    assert there.ask(path="/b").status == 404
    there.expect_metric(1, "becalm_unrouted_requests_total")
    assert page(there, "/api/state")["unrouted"] == 1


def test_state_adds_the_workers_up(pair):
    gateway, host = pair(rules=ENDPOINT, workers=2)
    host.on("/charge", *[Reply(status=503), Reply()] * 3)
    for _ in range(3):
        assert gateway.ask(path="/charge").status == 200
    for _ in range(17):
        assert gateway.ask(path="/other").status == 200
    wait_until(lambda: page(gateway, "/api/state")["requests"] == 0)  # counted after the answer
    state = page(gateway, "/api/state")
    assert state["workers"] == 2 and state["role"] == "gateway" and state["accepted"] >= 20
    assert state["reload"]["successful"] is True and state["reload"]["count"] == 0
    service = state["services"][0]
    assert service["hosts"][0]["address"] == host.address and service["hosts"][0]["ejected"] is False
    charge, other = target(gateway, endpoint="charge"), target(gateway)
    assert charge["arrivals"] == 3 and charge["calls"]["after_retry"] == {"ok": 3}
    assert charge["attempts"] == {"success": 3, "server_error": 3, "error": 0}
    assert charge["retries"] == [3] + [0] * 8 and charge["amplification"] == 2
    assert other["arrivals"] == 17 and other["calls"]["first_attempt"] == {"ok": 17} and other["amplification"] == 1
    assert charge["delay"]["count"] == 3 and len(charge["delay"]["counts"]) == len(state["bucketsMs"]) + 1
    assert charge["duration"]["count"] == 3 and charge["latencyMs"]["count"] > 0
    assert charge["breaker"]["state"] == "CLOSED" and charge["limit"]["shared"] is True
    assert 0 < charge["budget"]["left"] <= charge["budget"]["cap"]


def test_state_tells_what_waits_and_what_is_in_flight(pair):
    gateway, host = pair(
        rules="limit: {kind: fixed, max: 1}\ngate: {maxQueueTime: 60s}\nattemptTimeout: 60s\ndeadline: 100s\n"
    )
    host.on("*", Reply(end="hang", cut=0))
    with gateway.wire() as first, gateway.wire() as second:
        first.send(request())
        wait_until(lambda: target(gateway)["inFlight"] == 1)
        second.send(request())
        wait_until(lambda: target(gateway)["gate"]["waiting"] == 1)
        here = target(gateway)
        assert here["limit"] == {
            "kind": "fixed",
            "now": 1,
            "inFlight": 1,
            "answers": 0,
            "maxAnswers": 100000,
            "shared": False,
        }
        assert here["active"] == 2
        assert page(gateway, "/api/state")["services"][0]["hosts"][0]["inFlight"] == 1


def test_it_can_be_read_while_the_workers_write(pair):
    """For ThreadSanitizer."""
    gateway, host = pair(rules=ENDPOINT, workers=2)
    host.on("/charge", *[Reply(status=503), Reply()] * 100)

    def call():
        with gateway.wire() as wire:
            for _ in range(100):
                wire.ask(path="/charge")

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    while any(caller.is_alive() for caller in callers):
        for path in ("/api/state", "/api/decisions", "/metrics", "/api/policy"):
            assert admin(gateway, path=path).status == 200
        post(gateway, "/api/services/a/breaker", {"state": "reset"})
        assert post(gateway, "/api/reload")[0] == 200
    for caller in callers:
        caller.join()
    assert target(gateway, endpoint="charge")["arrivals"] == 300


def test_decisions_are_newest_first_over_all_workers(pair):
    gateway, host = pair(text="drain: {limit: 5s}", workers=2)
    host.on("*", Reply(status=404))
    for i in range(12):
        gateway.ask(path=f"/{i}")
    wait_until(lambda: len(page(gateway, "/api/decisions")["decisions"]) == 12)  # kept after the answer
    list_ = page(gateway, "/api/decisions")["decisions"]
    assert [each["target"] for each in list_] == [f"/{i}" for i in reversed(range(12))]
    assert list_[0]["service"] == "a" and list_[0]["reason"] == "permanent" and list_[0]["status"] == 404
    assert list_[0]["attempt"][0]["host"] == host.address
    assert len(page(gateway, "/api/decisions?limit=3")["decisions"]) == 3
    assert len(page(gateway, "/api/decisions?service=a&limit=300")["decisions"]) == 12
    assert page(gateway, "/api/decisions?service=%61b")["decisions"] == []
    assert len(page(gateway, "/api/decisions?service=%61")["decisions"]) == 12
    for bad in ("0", "-1", "many", "1x", ""):
        assert admin(gateway, path=f"/api/decisions?limit={bad}").status == 400


def names_in(value, path=""):
    """The path of every member of a JSON document; tables of counts by word have no names of ours below them."""
    words = ("calls", "attempts", "overflow", "shed", "shadow", "hedges", "transitions")
    if isinstance(value, list):
        for each in value:
            yield from names_in(each, path)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield f"{path}.{name}"
            if name not in words:
                yield from names_in(inner, f"{path}.{name}")


def test_names_are_written_alike_on_every_page(pair):
    gateway, host = pair(rules=ENDPOINT)
    host.on("*", Reply(status=503))
    assert gateway.ask(fields={"X-Request-Id": "r-1"}).status == 503
    wait_until(lambda: page(gateway, "/api/decisions")["decisions"])
    decision = page(gateway, "/api/decisions")["decisions"][0]
    assert decision["requestId"] == "r-1" and decision["attempt"][1]["waitedMs"] >= 0
    for where in ("state", "sample", "history", "history?service=a", "decisions", "policy"):
        names = sorted(set(names_in(page(gateway, f"/api/{where}"))))
        assert names and [name for name in names if not name.replace(".", "").isalnum()] == [], where


def test_policy_says_where_each_value_came_from(pair):
    gateway, _ = pair(
        text="gatewayRetries: false\ndefaults: {deadline: 9s}", rules=ENDPOINT, sets=["defaults.jitter=equal"]
    )
    policy = page(gateway, "/api/policy")
    assert policy["role"] == "gateway" and policy["gatewayRetries"] is False
    assert [each["endpoint"] for each in policy["targets"]] == ["default", "charge"]
    values = {each["key"]: each for each in policy["targets"][1]["values"]}
    assert (values["maxRetries"]["value"], values["maxRetries"]["from"]) == ("1", "endpoint")
    assert values["maxRetries"]["line"] == 8 and values["maxRetries"]["file"].endswith("becalm.yaml")
    assert (values["deadline"]["value"], values["deadline"]["from"]) == ("9s", "defaults")
    assert values["jitter"]["from"] == "--set" and "line" not in values["jitter"]
    assert values["attemptTimeout"]["from"] == "default"
    assert policy["targets"][1]["inForce"]["maxRetries"] == 0, "as a gateway it retries nothing"


# Orders.


def test_policy_can_be_that_of_one_service(gateway, host):
    one = host().address
    there = gateway(f"services:\n  a: {{hosts: [{one}], match: {{prefix: /a}}}}\n  b: {{hosts: [{one}], match: {{prefix: /b}}}}\n")
    assert [each["service"] for each in page(there, "/api/policy")["targets"]] == ["a", "b"]
    assert [each["service"] for each in page(there, "/api/policy?service=b")["targets"]] == ["b"]
    assert page(there, "/api/policy?service=c")["targets"] == []


def test_names_that_no_service_can_have_are_refused(pair):
    gateway, _ = pair()
    for path in ("/api/state", "/api/policy", "/api/history", "/api/decisions"):
        for name in ("%", "%zz", "a%00", "x" * 129):
            answer = admin(gateway, path=f"{path}?service={name}")
            assert answer.status == 400 and b"service is a name" in answer.body, (path, name)
        assert admin(gateway, path=f"{path}?service={'x' * 128}").status in (200, 404)
    assert admin(gateway, path="/api/decisions?limit=%").status == 400


def test_names_of_128_characters_are_told_in_full(gateway, host):
    service, endpoint = "s" * 128, "e" * 128
    rules = f"hosts: [{host().address}], match: {{prefix: /}}, endpoints: {{{endpoint}: {{match: {{path: /e}}}}}}"
    there = gateway(f"services:\n  {service}: {{{rules}}}\n")
    assert there.ask(path="/e").status == 200
    wait_until(lambda: page(there, f"/api/decisions?service={service}")["decisions"])
    (told,) = page(there, f"/api/decisions?service={service}")["decisions"]
    assert (told["service"], told["endpoint"]) == (service, endpoint)


def test_reload_tells_what_is_wrong_and_keeps_the_policy(pair):
    gateway, host = pair()
    assert post(gateway, "/api/reload") == (200, {"reloaded": True, "diagnostics": []})
    good = gateway.path.read_text()
    gateway.path.write_text(good + "maxRetrys: 1\n")
    status, answer = post(gateway, "/api/reload")
    assert status == 422 and answer["reloaded"] is False
    first = answer["diagnostics"][0]
    assert first["severity"] == "error" and first["code"] == "unknown-key" and "maxRetrys" in first["message"]
    assert first["line"] == good.count("\n") + 1 and first["column"] == 1 and first["file"] == str(gateway.path)
    state = page(gateway, "/api/state")
    assert state["reload"]["successful"] is False and "unknown-key" in state["reload"]["why"]
    gateway.expect_metric(0, "becalm_config_last_reload_successful")
    assert gateway.ask().status == 200
    gateway.path.write_text(good.replace("prefix: /", "prefix: /only"))
    assert post(gateway, "/api/reload")[0] == 200
    wait_until(lambda: gateway.ask().status == 404)
    assert gateway.ask(path="/only").status == 200
    assert page(gateway, "/api/state")["reload"]["successful"] is True


def test_breakers_obey(pair):
    gateway, host = pair(rules=ENDPOINT, workers=2)
    path = "/api/services/a/breaker"
    status, answer = post(gateway, path, {"state": "forced_open", "endpoint": "charge"})
    assert status == 200 and answer["breakers"] == [{"endpoint": "charge", "from": "CLOSED", "to": "FORCED_OPEN"}]
    refused = gateway.ask(path="/charge")
    assert refused.status == 503 and json.loads(refused.body)["reason"] == "breaker_open"
    assert gateway.ask(path="/other").status == 200, "the others do not"
    assert target(gateway, endpoint="charge")["breaker"]["state"] == "FORCED_OPEN"
    assert [each["to"] for each in post(gateway, path, {"state": "disabled"})[1]["breakers"]] == ["DISABLED"] * 2
    assert gateway.ask(path="/charge").status == 200
    assert [each["to"] for each in post(gateway, path, {"state": "reset"})[1]["breakers"]] == ["CLOSED"] * 2
    assert [each["to"] for each in post(gateway, path, {"state": "FORCED_OPEN"})[1]["breakers"]] == ["FORCED_OPEN"] * 2
    assert gateway.ask(path="/other").status == 503
    assert post(gateway, "/api/reload")[0] == 200
    assert gateway.ask(path="/other").status == 503, "a reload forgets no order"
    post(gateway, path, {"state": "closed", "endpoint": "default"})
    assert gateway.ask(path="/other").status == 200 and gateway.ask(path="/charge").status == 503
    wait_until(lambda: gateway.log_lines("breaker ordered"))


@pytest.mark.parametrize("rules, state", [("", "CLOSED"), ("breaker: {enabled: false}\n", "DISABLED")])
def test_reset_is_what_the_policy_begins_with(pair, rules, state):
    gateway, _ = pair(rules=rules)
    post(gateway, "/api/services/a/breaker", {"state": "forced_open"})
    assert post(gateway, "/api/services/a/breaker", {"state": "reset"})[1]["breakers"][0]["to"] == state


def test_orders_that_make_no_sense_are_refused(pair):
    gateway, _ = pair(rules=ENDPOINT)
    for body in (
        b"",
        b"{",
        b"[]",
        b'"state"',
        b'{"state": "ajar"}',
        b'{"endpoint": "charge"}',
        b'{"state": ["closed"]}',
    ):
        assert admin(gateway, "POST", "/api/services/a/breaker", body=body).status == 400, body
    for body in ({"state": "closed", "endpoints": "x"}, {"state": "closed", "endpoint": ["charge"]}):
        assert post(gateway, "/api/services/a/breaker", body)[0] == 400, body
    assert admin(gateway, "POST", "/api/services/%zz/breaker", body=b'{"state": "closed"}').status == 400
    assert post(gateway, "/api/services/b/breaker", {"state": "closed"})[0] == 404
    assert post(gateway, "/api/services/a/breaker", {"state": "closed", "endpoint": "b"})[0] == 404
    assert post(gateway, "/api/services/a/b/breaker", {"state": "closed"})[0] == 404
    assert target(gateway)["breaker"]["state"] == "CLOSED"


# Access.


def test_only_names_of_this_machine_are_answered_to(pair):
    gateway, _ = pair()
    for host in ("127.0.0.1", "localhost", "LOCALHOST:1", "127.8.8.8:80", "[::1]:9900", "[::ffff:127.0.0.1]"):
        assert admin(gateway, path="/api/state", host=host).status == 200, host
    for host in ("evil.test", "127.0.0.1.evil.test", "localhost.evil.test:9900", "10.0.0.1", "[fe80::1]", "0.0.0.0"):
        assert admin(gateway, path="/api/state", host=host).status == 403, host
        assert admin(gateway, path="/healthz", host=host).status == 403, host
    assert admin(gateway, path="http://evil.test/api/state").status == 403
    with Wire(gateway.admin) as wire:
        assert wire.send(b"GET /healthz HTTP/1.0\r\n\r\n").answer().status == 200, "a probe that names nobody"


def test_pages_of_other_sites_neither_read_nor_write(pair):
    gateway, _ = pair()
    own = f"http://127.0.0.1:{gateway.admin}"
    typed = {"Content-Type": "application/json; charset=utf-8"}
    for origin in ("http://evil.test", "null", own + ".evil.test", f"http://localhost:{gateway.admin}", "127.0.0.1"):
        assert admin(gateway, path="/api/state", fields={"Origin": origin}).status == 403, origin
        assert post(gateway, "/api/reload", fields={"Origin": origin, **typed})[0] == 403, origin
    assert post(gateway, "/api/reload", fields={"Origin": own, **typed})[0] == 200
    assert post(gateway, "/api/reload", fields={"Origin": own, "Content-Type": "text/plain"})[0] == 415
    assert post(gateway, "/api/reload", fields={"Origin": own})[0] == 415
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        assert post(gateway, "/api/reload", fields={"Sec-Fetch-Site": site})[0] == status, site
    assert admin(gateway, fields={"Sec-Fetch-Site": "cross-site"}).status == 200, "a link from another page"
    assert page(gateway, "/api/state")["reload"]["count"] == 3


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_beyond_loopback_only_the_token_opens(gateway, host, tmp_path):
    secret = tmp_path / "token"
    secret.write_text(TOKEN + "\n")
    there = gateway(policy_of([host()], f"adminTokenFile: {secret}"), admin="0.0.0.0")
    for fields in ({}, bearer("wrong"), bearer(TOKEN[:-1]), bearer(TOKEN + "e"), bearer(""), {"Authorization": TOKEN}):
        for path in ("/", "/metrics", "/api/state", "/no-such-page"):
            answer = admin(there, path=path, fields=fields)
            assert answer.status == 401 and answer.get("www-authenticate").startswith("Bearer"), (path, fields)
        assert admin(there, "POST", "/api/reload", fields=fields, body=b"").status == 401
    assert admin(there, path="/api/state", fields=bearer(TOKEN)).status == 200
    assert admin(there, path="/api/state", fields={"Authorization": f"bearer {TOKEN}"}).status == 200
    assert admin(there, path="/metrics", fields=bearer(TOKEN), host="becalm.monitoring.svc").status == 200
    assert admin(there, path="/healthz").status == 200 and admin(there, path="/readyz").status == 200


def test_a_token_s_file_is_relative_to_the_policy(gateway, host, tmp_path):
    """And, as once, to where the gateway was started, if the policy's folder has no such file."""
    (tmp_path / "token-beside").write_text(TOKEN)
    there = gateway(policy_of([host()], "adminTokenFile: ../token-beside"))
    assert there.path.parent.parent == tmp_path
    assert admin(there, path="/api/state").status == 401
    assert admin(there, path="/api/state", fields=bearer(TOKEN)).status == 200
    there.path.write_text(there.path.read_text().replace("token-beside", "token-nowhere"))
    status, answer = post(there, "/api/reload", fields=bearer(TOKEN))
    fault = answer["diagnostics"][0]
    line = next(n for n, text in enumerate(there.path.read_text().splitlines(), 1) if "token-nowhere" in text)
    assert status == 422 and (fault["line"], fault["column"]) == (line, 17), fault
    assert f"{there.path.parent}/../token-nowhere" in fault["message"]
    here = os.path.relpath(tmp_path / "token-beside")
    there.path.write_text(there.path.read_text().replace("../token-nowhere", here))
    assert post(there, "/api/reload", fields=bearer(TOKEN))[0] == 200
    assert admin(there, path="/api/state", fields=bearer(TOKEN)).status == 200


def test_a_reload_reads_the_token_again(gateway, host, tmp_path):
    secret = tmp_path / "token"
    secret.write_text(TOKEN)
    there = gateway(policy_of([host()], f"adminTokenFile: {secret}"))
    assert admin(there, path="/api/state").status == 401, "who names a token wants it asked for, here too"
    secret.write_text("another")
    assert admin(there, path="/api/state", fields=bearer("another")).status == 401
    assert post(there, "/api/reload", fields=bearer(TOKEN))[0] == 200
    assert admin(there, path="/api/state", fields=bearer(TOKEN)).status == 401
    assert admin(there, path="/api/state", fields=bearer("another")).status == 200
    for bad in ("", " \n", "two words", "\x7f", "x" * 5000):
        secret.write_text(bad)
        status, answer = post(there, "/api/reload", fields=bearer("another"))
        assert status == 422 and "adminTokenFile" in answer["diagnostics"][0]["message"], bad
    secret.unlink()
    assert post(there, "/api/reload", fields=bearer("another"))[0] == 422
    assert admin(there, path="/api/state", fields=bearer("another")).status == 200


def test_a_local_socket_is_for_its_owner(gateway, host, tmp_path):
    path = str(tmp_path / "admin.sock")
    there = gateway(policy_of([host()], f"admin: unix:{path}"), admin=None)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert ask(path, path="/healthz", host="whatever").body == b"ok\n"
    there.end()
    assert not os.path.exists(path)


def test_the_address_moves_with_a_reload(gateway, host, tmp_path):
    first, second = free_port(), free_port()
    policy = policy_of([host()], "admin: 127.0.0.1:PORT")
    there = gateway(policy.replace("PORT", str(first)), admin=None)
    with Wire(first) as asker, Wire(first) as idle:
        assert asker.ask(path="/healthz", host="localhost").status == 200
        assert idle.ask(path="/healthz", host="localhost").status == 200
        with socket.create_server(("127.0.0.1", second)):
            there.path.write_text(policy.replace("PORT", str(second)))
            answer = asker.ask("POST", "/api/reload", host="localhost", body=b"")
            assert answer.status == 422 and b"in use" in answer.body
            (told,) = json.loads(answer.body)["diagnostics"]
            at = there.path.read_text().splitlines()[told["line"] - 1][told["column"] - 1 :]
            assert at == f"127.0.0.1:{second}", "it is told where the address stands"
        answer = asker.ask("POST", "/api/reload", host="localhost", body=b"")
        assert answer.status == 200 and asker.at_end(), "the old address is gone, but not before its answer"
        assert idle.at_end()
    assert ask(second, path="/healthz", host="localhost").status == 200
    with pytest.raises(ConnectionRefusedError):
        Wire(first)
    there.path.write_text(policy.replace("127.0.0.1:PORT", "none"))
    assert ask(second, "POST", "/api/reload", host="localhost", body=b"").status == 200
    with pytest.raises(ConnectionRefusedError):
        Wire(second)
    assert there.ask().status == 200


# As a server.


def test_it_keeps_connections_and_answers_in_order(pair):
    gateway, _ = pair()
    name = f"127.0.0.1:{gateway.admin}"
    with Wire(gateway.admin) as wire:
        for _ in range(3):
            assert wire.ask(path="/healthz", host=name).status == 200
        wire.send(request(path="/healthz", host=name) + request("POST", "/api/reload", host=name, body=b"{}"))
        wire.send(request("HEAD", "/metrics", host=name) + b"\r\n" + request(path="/none", host=name))
        assert [wire.answer(method).status for method in ("GET", "POST", "HEAD", "GET")] == [200, 200, 200, 404]
        last = wire.ask(path="/healthz", host=name, fields={"Connection": "close"})
        assert last.get("connection") == "close" and wire.at_end()


def test_bodies_come_in_pieces_and_in_chunks(pair):
    gateway, _ = pair()
    path, name = "/api/services/a/breaker", f"127.0.0.1:{gateway.admin}"
    body = b'{"state": "closed"}'
    with Wire(gateway.admin) as wire:
        for piece in request("POST", path, host=name, body=body):
            wire.send(bytes([piece]))
        assert wire.answer().status == 200
        chunks = b"".join(b"1\r\n%c\r\n" % each for each in body) + b"0\r\n\r\n"
        wire.send(request("POST", path, host=name, fields={"Transfer-Encoding": "chunked"}) + chunks)
        assert wire.answer().status == 200
        head = request("POST", path, host=name, fields={"Expect": "100-continue"}, body=body)[: -len(body)]
        assert wire.send(head).socket.recv(100).startswith(b"HTTP/1.1 100 ")
        assert wire.send(body).answer().status == 200


def chunked_reload(gateway, behind):
    head = request("POST", "/api/reload", host=f"127.0.0.1:{gateway.admin}", fields={"Transfer-Encoding": "chunked"})
    return head + b"2\r\n{}\r\n0\r\n" + behind


def test_trailers_are_read_so_that_the_next_request_is_one(pair):
    gateway, _ = pair()
    sent = chunked_reload(gateway, b"etag: a\r\nx-unknown: GET / HTTP/1.1\r\n\r\n")
    for cut in (len(sent), len(sent) - 1, len(sent) - 2, len(sent) - 3, len(sent) - 40):
        with Wire(gateway.admin) as wire:
            wire.send(sent[:cut])
            wire.send(sent[cut:] + request(path="/healthz", host="localhost"))
            assert [wire.answer(method).status for method in ("POST", "GET")] == [200, 200]
            assert wire.ask(path="/none", host="localhost").status == 404


@pytest.mark.parametrize("what", BAD_TRAILERS)
def test_bad_trailers_are_refused(pair, what):
    gateway, _ = pair()
    for cut in (1, 4, len(BAD_TRAILERS[what])):
        with Wire(gateway.admin) as wire:
            wire.send(chunked_reload(gateway, BAD_TRAILERS[what][:cut]))
            wire.send(BAD_TRAILERS[what][cut:] + chunked_reload(gateway, b"\r\n"))
            answer = wire.answer("POST")
            assert answer.status == 400 and answer.get("connection") == "close" and wire.at_end()
    assert page(gateway, "/api/state")["reload"]["count"] == 0


def test_what_it_does_not_take(pair):
    gateway, _ = pair()
    name = f"127.0.0.1:{gateway.admin}"

    def status(data):
        with Wire(gateway.admin) as wire:
            answer = wire.send(data).answer()
            return answer.status, wire.at_end()

    large = b"x" * (64 * 1024 + 1)
    chunked = {"Transfer-Encoding": "chunked"}
    assert status(request("POST", "/api/reload", host=name, body=large)) == (413, True)
    assert status(request("POST", "/api/reload", host=name, fields=chunked) + b"10001\r\n" + large) == (413, True)
    assert status(request("POST", "/api/reload", host=name, fields=chunked) + b"x\r\n") == (400, True)
    assert status(request(path="/" + "x" * 9000, host=name)) == (414, True)
    assert status(request(host=name, fields={"X": "x" * 9000})) == (431, True)
    assert status(b"nonsense\r\n\r\n") == (400, True)
    assert admin(gateway, "DELETE", "/metrics").status == 405
    assert admin(gateway, "DELETE", "/metrics").get("allow") == "GET, HEAD"
    assert admin(gateway, path="/api/reload").get("allow") == "POST"
    assert admin(gateway, "CONNECT", "127.0.0.1:80").status == 404
    assert page(gateway, "/api/state")["reload"]["count"] == 0


def test_a_page_larger_than_the_socket_takes_arrives_whole(gateway, host):
    one = host()
    services = "".join(f"  s{i}: {{hosts: [{one.address}], match: {{prefix: /s{i}}}}}\n" for i in range(300))
    there = gateway("services:\n" + services)
    with Wire(there.admin, receive_buffer=4096) as wire:
        state = json.loads(wire.ask(path="/api/state", host="localhost").body)
        assert len(state["services"]) == 300
        assert wire.ask(path="/healthz", host="localhost").status == 200


def test_more_askers_than_places_push_out_who_is_idle(pair):
    gateway, _ = pair()
    wires = [Wire(gateway.admin) for _ in range(64)]
    for wire in wires:
        assert wire.ask(path="/healthz", host="localhost").status == 200
    assert admin(gateway, path="/healthz").status == 200
    assert wires[0].at_end(), "the one that was silent for longest"
    for wire in wires[8:]:  # the request that looked for readiness may still have held a place
        assert wire.ask(path="/healthz", host="localhost").status == 200, "and nobody who spoke later"
    for wire in wires:
        wire.close()


@pytest.mark.parametrize("said", [b"", b"GET /heal"])
def test_who_connects_and_says_nothing_keeps_no_probe_waiting(pair, said):
    gateway, _ = pair()
    busy = Wire(gateway.admin)
    busy.ask(path="/healthz", host="localhost")
    busy.send(request("POST", "/api/reload", host="localhost", fields={"Content-Length": "2"}))  # its body is to come
    silent = [Wire(gateway.admin).send(said) for _ in range(64)]
    begun = time.monotonic()
    for _ in range(3):
        assert admin(gateway, path="/healthz").status == 200
    assert time.monotonic() - begun < 9, "they would go by themselves after 10 s"
    busy.send(b"{}")
    assert busy.answer("POST").status == 200, "who is being answered stays"
    for wire in (busy, *silent):
        wire.close()


UNFINISHED = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
STRANGERS = {
    "refused and stay": request("GET", "/api/state", host="localhost"),
    "refused and closed": request("GET", "/api/state", host="localhost", fields={"Connection": "close"}),
    "silent": b"",
    "half a head": b"GET /heal",
    "a body that never comes": UNFINISHED,
    "pages that nobody reads": request("GET", "/assets/style.css", host="localhost") * 64,
}


class Flood:
    """Connections of a client without a token, 300 a second: each sends its bytes and stays open."""

    def __init__(self, port, words, with_):
        self.port, self.words = port, words
        self.held = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(63)]
        for each in self.held:
            each.sendall(with_)
        self.ended = threading.Event()
        self.count = 0
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.ended.wait(1 / 300):
            try:
                self.held.append(socket.create_connection(("127.0.0.1", self.port), 5))
                self.held[-1].setblocking(False)
                self.held[-1].send(self.words)
                self.count += 1
            except OSError:
                pass
            if len(self.held) > 400:
                self.held.pop(0).close()

    def end(self):
        self.ended.set()
        self.thread.join()
        for each in self.held:
            each.close()


@pytest.mark.parametrize("words", STRANGERS)
def test_probes_are_answered_beside_a_flood_without_a_token(gateway, host, tmp_path, words):
    """As a kubelet asks: one connection for each probe. Others may have taken every place before it."""
    secret = tmp_path / "token"
    secret.write_text(TOKEN)
    there = gateway(policy_of([host()], f"adminTokenFile: {secret}"))
    flood = Flood(there.admin, STRANGERS[words], UNFINISHED)
    try:
        wait_until(lambda: flood.count > 70)
        answers = []
        for i in range(10):  # a displaced connection is closed, so that this loop ends
            answers.append(admin(there, path=("/healthz", "/readyz")[i % 2]).status)
            time.sleep(0.1)
        assert answers == [200] * 10
        assert admin(there, path="/api/state", fields=bearer(TOKEN)).status == 200
    finally:
        flood.end()


def test_who_may_follow_is_not_pushed_out_by_who_may_not(gateway, host, tmp_path):
    secret = tmp_path / "token"
    secret.write_text(TOKEN)
    there = gateway(policy_of([host()], f"adminTokenFile: {secret}"))
    with Wire(there.admin) as follower:
        follower.send(request("GET", "/api/events", host="localhost", fields=bearer(TOKEN)))
        assert b"200" in follower.socket.recv(12)
        flood = Flood(there.admin, STRANGERS["silent"], UNFINISHED)
        try:
            wait_until(lambda: flood.count > 200)
        finally:
            flood.end()
        follower.socket.setblocking(False)
        with pytest.raises(BlockingIOError):  # it is still told: all that came, and no end
            while follower.socket.recv(65536):
                pass


def test_it_accepts_where_there_is_no_dev_null(pair):
    """A root without /dev, as in a container that has only the program."""
    hidden = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none /dev && exec "$@"', "sh"]
    if subprocess.run([*hidden, "true"], capture_output=True).returncode != 0:
        pytest.skip("no file systems may be mounted here")
    gateway, _ = pair(wrapper=hidden)
    assert admin(gateway, path="/healthz").status == 200


@pytest.mark.skipif(not can_trace(), reason="strace can't delay this program's calls")
def test_the_descriptor_that_is_kept_for_it_is_never_free_for_a_worker(pair):
    delay = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=eventfd2", "-e", "inject=eventfd2:delay_enter=300000"]
    gateway, host = pair(rules=AT_WORK, wrapper=delay)
    go, crowd = gateway.fill_descriptors(host)
    crowd += [Wire(gateway.port) for _ in range(20)]  # these want one each
    try:
        wait_until(lambda: admin(gateway, path="/healthz").get("connection") == "close")
        for _ in range(5):
            assert admin(gateway, path="/healthz").status == 200
    finally:
        go.set()
        for wire in crowd:
            wire.close()


def test_it_answers_when_there_are_no_descriptors_left(pair):
    gateway, host = pair(rules=AT_WORK)
    go, crowd = gateway.fill_descriptors(host)
    answers = [admin(gateway, path=path) for path in ("/healthz", "/api/state", "/metrics") * 5]
    assert [answer.status for answer in answers] == [200] * len(answers)
    # Each gets the slot that is reserved for it, once no client has given another slot back a moment before.
    wait_until(lambda: admin(gateway, path="/healthz").get("connection") == "close")
    go.set()
    for wire in crowd:
        wire.close()
    wait_until(lambda: admin(gateway, path="/healthz").get("connection") is None)
    assert gateway.ask().status == 200


@pytest.mark.parametrize("short", ["places", "descriptors"])
def test_a_request_that_has_come_is_answered_though_its_connection_would_be_closed_for_another(pair, short):
    """Both came while the gateway stood still, the other connection first."""
    gateway, _ = pair()
    with contextlib.ExitStack() as stack:
        oldest, *_ = [stack.enter_context(Wire(gateway.admin)) for _ in range(64 if short == "places" else 1)]
        most = gateway.settled_fds()
        if short == "descriptors":
            resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE, (most, most))
        gateway.stop()
        other = stack.enter_context(Wire(gateway.admin))
        oldest.send(request("GET", "/healthz", host="localhost"))
        gateway.signal(signal.SIGCONT)
        assert oldest.answer().status == 200
        assert other.ask(path="/healthz", host="localhost").status == 200
