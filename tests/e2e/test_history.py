# SPDX-License-Identifier: MIT
"""The data of the dashboard: its files, the stream of events, the history. tests/browser uses a real browser."""

import json
import select

from conftest import policy_of
from host import Reply, wait_until
from message import request
from test_admin import ENDPOINT, TOKEN, admin, bearer, page, post
from wire import Wire

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
STREAMS_MAX = 16


class Events:
    """A client that follows /api/events."""

    def __init__(self, gateway):
        self.wire = Wire(gateway.admin)
        self.wire.send(request(path="/api/events", host=f"127.0.0.1:{gateway.admin}"))
        self.text = b""
        while b"\r\n\r\n" not in self.text:
            self.read()
        self.head, self.text = self.text.split(b"\r\n\r\n", 1)
        self.status = int(self.head.split()[1])

    def read(self):
        data = self.wire.socket.recv(65536)
        assert data, "the stream ended"
        self.text += data

    def next(self):
        """The data of the next event."""
        while True:
            while b"\n\n" not in self.text:
                self.read()
            event, self.text = self.text.split(b"\n\n", 1)
            if event.startswith(b"data: "):
                return json.loads(event[6:])

    def close(self):
        self.wire.close()


def rows(told):
    """The rows of a history, by column."""
    return [dict(zip(told["columns"], row)) for row in told["rows"]]


def history(gateway, query="service=a"):
    return page(gateway, f"/api/history?{query}")


def test_a_browser_gets_the_dashboard_and_curl_the_list(pair):
    gateway, _ = pair()
    front = admin(gateway, fields=HTML)
    assert front.get("content-type") == "text/html; charset=utf-8" and b"<html" in front.body
    csp = front.get("content-security-policy")
    assert "default-src 'self'" in csp and "unsafe" not in csp and "frame-ancestors 'none'" in csp
    assert b"<style" not in front.body and b" style=" not in front.body and b" onclick=" not in front.body
    assert admin(gateway).body.startswith(b"becalm ")


def test_files_are_kept_by_a_browser_until_they_change(pair):
    gateway, _ = pair()
    script = admin(gateway, path="/assets/main.js")
    assert script.status == 200 and script.get("content-type") == "text/javascript; charset=utf-8"
    assert script.get("cache-control") == "no-cache"
    again = admin(gateway, path="/assets/main.js", fields={"If-None-Match": script.get("etag")})
    assert again.status == 304 and again.body == b""
    assert admin(gateway, path="/assets/main.js", fields={"If-None-Match": '"other"'}).body == script.body
    assert admin(gateway, "HEAD", "/assets/main.js").get("content-length") == str(len(script.body))
    for path in ("/assets/no-such-file", "/assets/", "/assets/../main.js", "/assets/%2e%2e/x"):
        assert admin(gateway, path=path).status == 404


def test_the_page_needs_no_token_and_what_it_shows_does(gateway, host, tmp_path):
    (tmp_path / "token").write_text(TOKEN)
    there = gateway(policy_of([host()], f"adminTokenFile: {tmp_path}/token"))
    assert admin(there, fields=HTML).status == 200 and admin(there, path="/assets/style.css").status == 200
    for path in ("/", "/api/events", "/api/sample", "/api/history?service=a"):
        assert admin(there, path=path).status == 401
    assert admin(there, path="/api/sample", fields=bearer(TOKEN)).status == 200


def test_every_second_somebody_is_told(pair):
    gateway, host = pair(rules=ENDPOINT)
    host.on("/charge", Reply(status=503), Reply())
    events = Events(gateway)
    assert events.status == 200 and b"text/event-stream" in events.head
    first = events.next()
    assert gateway.ask(path="/charge").status == 200
    seen = []
    while not any(row["arrivals"] for row in seen):
        event = events.next()
        assert event["time"] > first["time"]
        (service,) = event["services"]
        seen = [dict(zip(event["columns"], each["row"])) for each in service["endpoints"] if each["name"] == "charge"]
    (row,) = seen
    while row["attempts"] < 2:  # a call may end in the next second
        event = events.next()
        more = dict(zip(event["columns"], event["services"][0]["endpoints"][1]["row"]))
        row = {key: row[key] + more[key] if key in ("attempts", "retries", "afterRetry") else row[key] for key in row}
    assert (row["arrivals"], row["attempts"], row["retries"], row["afterRetry"]) == (1, 2, 1, 1)
    assert row["breaker"] == "CLOSED"
    events.close()


def test_so_many_may_follow_and_others_have_to_ask(pair):
    gateway, _ = pair()
    all_of_them = [Events(gateway) for _ in range(STREAMS_MAX)]
    assert {each.status for each in all_of_them} == {200}
    refused = admin(gateway, path="/api/events")
    assert refused.status == 503 and b"/api/sample" in refused.body
    assert page(gateway, "/api/sample")["services"][0]["name"] == "a"
    all_of_them[0].close()
    wait_until(lambda: Events(gateway).status == 200)


def test_who_does_not_read_costs_nobody_else_anything_and_is_sent_away(gateway, host):
    one = f"  s: {{hosts: ['{host().address}'], match: {{prefix: /s}}}}\n"
    many = "".join(f"  t{i}: {{hosts: ['127.0.0.1:9'], match: {{prefix: /t{i}/}}}}\n" for i in range(300))
    there = gateway("services:\n" + one + many)
    sleepers = [Wire(there.admin, receive_buffer=4096) for _ in range(STREAMS_MAX - 1)]
    for sleeper in sleepers:
        sleeper.send(request(path="/api/events", host=f"127.0.0.1:{there.admin}"))
    wait_until(lambda: all(select.select([sleeper.socket], [], [], 0)[0] for sleeper in sleepers))
    reader = Events(there)
    assert reader.status == 200 and admin(there, path="/api/events").status == 503, "all places are taken"
    for _ in range(4):
        assert len(reader.next()["services"]) == 301
    assert there.ask(path="/s").status == 200

    def has_place():
        events = Events(there)
        events.close()
        return reader.next() and events.status == 200

    wait_until(has_place, 60)  # after ten seconds, in which they took nothing
    reader.close()
    for sleeper in sleepers:
        sleeper.close()


def test_the_history_adds_up_to_what_was_counted(pair):
    gateway, host = pair()
    host.on("/", Reply(status=503), Reply())
    for _ in range(7):
        gateway.ask(path="/")
    wait_until(lambda: sum(row["firstAttempt"] + row["afterRetry"] for row in rows(history(gateway))) == 7)
    told = rows(history(gateway))
    assert sum(row["arrivals"] for row in told) == 7
    assert sum(row["attempts"] for row in told) == host.count("/")
    assert [row["time"] for row in told] == sorted(row["time"] for row in told)
    assert all(500 < row["spanMs"] for row in told)
    recent = page(gateway, "/api/history")["services"]
    assert recent[0]["name"] == "a" and sum(recent[0]["arrivals"]) == 7


def test_a_history_is_asked_for_by_names_that_exist(pair):
    gateway, _ = pair(rules=ENDPOINT)
    assert history(gateway, "service=a&endpoint=charge&range=24h")["rows"] == []
    assert admin(gateway, path="/api/history?service=b").status == 404
    assert admin(gateway, path="/api/history?service=a&endpoint=x").status == 404
    assert admin(gateway, path="/api/history?service=a&range=2h").status == 400


def test_a_reload_keeps_the_history_of_who_stays(gateway, host):
    one = host()
    there = gateway(policy_of([one], rules="maxRetries: 1"))
    there.ask()
    wait_until(lambda: sum(row["arrivals"] for row in rows(history(there))) == 1)
    there.reload(policy_of([one], rules="maxRetries: 0") + "  b: {hosts: [" + one.address + "], match: {prefix: /b}}\n")
    assert post(there, "/api/reload")[0] == 200
    there.ask(path="/b")
    wait_until(lambda: len(page(there, "/api/history")["services"]) == 2 and history(there, "service=b")["rows"])
    assert sum(row["arrivals"] for row in rows(history(there))) == 1
    assert sum(row["arrivals"] for row in rows(history(there, "service=b"))) == 1
    there.reload(policy_of([one]))
    assert post(there, "/api/reload")[0] == 200
    wait_until(lambda: history(there)["rows"])
    assert admin(there, path="/api/history?service=b").status == 404


def test_the_moves_of_a_breaker_are_remembered_orders_too(pair):
    gateway, _ = pair()
    gateway.ask()
    wait_until(lambda: history(gateway)["rows"])
    assert post(gateway, "/api/services/a/breaker", {"state": "forced_open"})[0] == 200
    wait_until(lambda: history(gateway)["moves"])
    (move,) = history(gateway)["moves"]
    assert (move["from"], move["to"], move["count"]) == ("CLOSED", "FORCED_OPEN", 1)


def test_an_order_to_a_breaker_is_remembered_where_no_request_ever_came(pair):
    gateway, _ = pair(rules=ENDPOINT)
    wait_until(lambda: page(gateway, "/api/sample")["services"][0]["endpoints"])
    assert post(gateway, "/api/services/a/breaker", {"state": "forced_open", "endpoint": "charge"})[0] == 200
    wait_until(lambda: history(gateway, "service=a&endpoint=charge")["moves"])
    (move,) = history(gateway, "service=a&endpoint=charge")["moves"]
    assert (move["from"], move["to"]) == ("CLOSED", "FORCED_OPEN")
    assert history(gateway)["moves"] == [] and history(gateway)["rows"] == [], "nobody touched the other one"


def test_the_longer_ranges_have_the_step_that_is_running(pair):
    gateway, _ = pair()
    gateway.ask()
    wait_until(lambda: history(gateway)["rows"])
    for span in ("1h", "6h", "24h"):
        assert sum(row["arrivals"] for row in rows(history(gateway, f"service=a&range={span}"))) == 1


def test_where_there_is_no_memory_for_a_history_it_is_said(gateway, host):
    one = host()
    many = "".join(f"  t{i}: {{hosts: [{one.address}], match: {{prefix: /t{i}/}}}}\n" for i in range(600))
    there = gateway("services:\n" + many)
    with Wire(there.port) as wire:
        for i in range(600):
            assert wire.ask(path=f"/t{i}/").status == 200
    wait_until(lambda: sum(sum(each["arrivals"]) for each in page(there, "/api/history")["services"]) == 600)
    told = [history(there, f"service=t{i}") for i in range(600)]
    kept = [each["history"] for each in told]
    assert 400 < kept.count(True) < 600
    assert all(bool(each["rows"]) == each["history"] for each in told)


def test_each_second_has_a_number_and_says_of_which_process(pair):
    gateway, _ = pair()
    events = Events(gateway)
    first, second = events.next(), events.next()
    events.close()
    assert second["number"] > first["number"]
    state = page(gateway, "/api/state")
    assert first["id"] == second["id"] == state["id"]
    assert first["started"] == second["started"] <= first["time"]


def test_a_storm_has_signs(gateway, host):
    naive = "maxRetries: 3\ninitialDelay: 1ms\nbudget: {kind: none}\nbreaker: {enabled: false}\nlimit: {kind: none}"
    one = host()
    one.on("/", Reply(status=503))
    there = gateway(policy_of([one], rules=naive))
    there.ask()
    wait_until(lambda: page(there, "/api/sample")["services"][0]["storm"]["retryShare"] == 0.75)
    assert page(there, "/api/sample")["services"][0]["storm"]["signs"] == [], "a handful is no storm"
    for _ in range(6):
        there.ask()
    wait_until(lambda: page(there, "/api/sample")["services"][0]["storm"]["signs"] == ["retryShare"])
