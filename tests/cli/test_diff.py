# SPDX-License-Identifier: MIT
"""becalm diff: the effects of a change of a policy, in words."""

import json

from conftest import ROOT

OLD = """
services:
  front: {hosts: ["127.0.0.1:1"], match: {prefix: /f}, calls: [payment]}
  payment: {hosts: ["127.0.0.1:2"], maxRetries: 3, deadline: 10s, calls: [ledger]}
  ledger: {hosts: ["127.0.0.1:3"], maxRetries: 3, endpoints: {a: {match: {path: /a}}}}
"""
NEW = """
listen: 127.0.0.1:8081
services:
  front: {hosts: ["127.0.0.1:1"], match: {prefix: /f}, calls: [payment]}
  payment: {hosts: ["127.0.0.1:2", "127.0.0.1:4"], maxRetries: 0, deadline: 2s, calls: [ledger]}
  ledger: {hosts: ["127.0.0.1:3"], maxRetries: 3, endpoints: {b: {match: {path: /a}}}}
  cart: {hosts: ["127.0.0.1:5"], match: {prefix: /c}}
"""
SAID = """\
the gateway as a whole
    listen: 127.0.0.1:8080 -> 127.0.0.1:8081
payment: a call makes at most 1 attempt instead of 4, and may take 2s instead of 10s
    hosts: 127.0.0.1:2 -> 127.0.0.1:2, 127.0.0.1:4
    maxRetries: 3 -> 0
        how many retries a call may make: retries, not attempts
    deadline: 10s -> 2s
        how long the whole call may take, with all retries and waits; 16s if only attemptTimeout is written
ledger/b is new: its requests have rules of their own now
ledger/a is gone: its requests have the service's rules now
cart is new: 127.0.0.1:5
worst case per client request, in attempts at each service
  payment: 12x -> 3x without budgets, 6.25x -> 2.5x with budgets, the client waits up to 30.3s -> 6.3s
  ledger: 48x -> 12x without budgets, 15.625x -> 6.25x with budgets, the client waits up to 30.3s -> 6.3s
"""


def write(folder, old, new):
    (folder / "old.yaml").write_text(old)
    (folder / "new.yaml").write_text(new)
    return [str(folder / "old.yaml"), str(folder / "new.yaml")]


def test_says_in_words_what_a_change_does(becalm, tmp_path):
    files = write(tmp_path, OLD, NEW)
    run = becalm("diff", *files)
    assert (run.returncode, run.stdout, run.stderr) == (0, SAID, "")
    assert becalm("diff", "--exit-code", *files).returncode == 1


def test_what_means_the_same_is_no_difference(becalm, tmp_path):
    moved = 'services:\n  a:\n    hosts: ["127.0.0.1:1"]\n    maxRetries: 2\n'
    plain = 'services: {a: {hosts: ["127.0.0.1:1"]}}\n'
    files = write(tmp_path, plain, moved)
    run = becalm("diff", "--exit-code", *files)
    assert (run.returncode, run.stdout) == (0, f"{files[0]} and {files[1]} mean the same\n")


def test_the_default_of_all_services_reaches_each_of_them(becalm, tmp_path):
    services = 'services: {a: {hosts: ["127.0.0.1:1"]}, b: {hosts: ["127.0.0.1:2"], budget: {kind: none}}}\n'
    files = write(tmp_path, services, "defaults: {budget: {kind: ratio}}\n" + services)
    said = becalm("diff", *files).stdout
    assert "a: as many attempts and as much time as before\n    budget.kind: earned -> ratio\n" in said
    assert "\nb:" not in said and not said.startswith("b:")


def test_as_json_it_is_the_same(becalm, tmp_path):
    told = json.loads(becalm("diff", "--json", *write(tmp_path, OLD, NEW)).stdout)
    assert [each["key"] for each in told["settings"]] == ["listen"]
    changes = {(each["service"], each["endpoint"]): each for each in told["services"]}
    assert changes["payment", None]["old_attempts"] == 4 and changes["payment", None]["new_attempts"] == 1
    assert {"key": "deadline", "old": "10s", "new": "2s"} in changes["payment", None]["values"]
    assert changes["ledger", "a"]["change"] == "removed" and changes["cart", None]["change"] == "added"
    assert {"service": "ledger", "no_budgets": {"old": 48.0, "new": 12.0}}.items() <= told["worst"][1].items()


CHANGED = """
listen: {address: 127.0.0.1:8080, protocols: [h1, h2], proxyProtocol: true, unlisted: refuse}
role: sidecar
workers: 3
trust: [10.0.0.0/8]
forwarded: standard
clientKey: header:x-user
log: {level: debug, access: json, query: true}
drain: {delay: 1s}
bodyTimeout: 7s
streamIdleTimeout: 7m
maxConnectionsPerClient: 7
maxBuffered: 7MiB
replay: {total: 7MiB}
upgrades: [tcp]
connect: true
paths: as-is
maxTunnels: 7
pool: {maxPerHost: 7, idle: 7s}
idempotencyStore: {ttl: 7h}
store: {redis: redis://cache, timeout: 2s}
explain: true
services:
  one:
    match: {prefix: /one}
    hosts: ["127.0.0.1:2"]
    listen: 127.0.0.1:4711
    replacePrefix: /
    send: [deadline]
    traffic: 5/s
    instances: 3
    protocol: h1
    proxyProtocol: v2
    tls: {serverName: pay.test}
    healthCheck: {path: /healthz, interval: 7s}
    calls: [two]
"""


def test_every_table_of_keys_is_compared(becalm, tmp_path):
    """All keys of a table go the same way; of each type that stands there one is changed here."""
    told = json.loads(becalm("diff", "--json", *write(tmp_path, 'services: {one: {match: {prefix: /one}, hosts: ["127.0.0.1:1"]}}\n', CHANGED)).stdout)
    assert {each["key"] for each in told["settings"]} == {
        "listen", "role", "workers", "trust", "forwarded", "clientKey", "log.level", "log.access", "log.query", "drain.delay", "bodyTimeout",
        "streamIdleTimeout", "maxConnectionsPerClient", "maxBuffered", "replay.total", "upgrades", "connect", "paths", "maxTunnels",
        "pool.maxPerHost", "pool.idle", "idempotencyStore.ttl", "store.redis", "store.timeout", "explain",
        "listen[127.0.0.1:8080].protocols", "listen[127.0.0.1:8080].proxyProtocol", "listen[127.0.0.1:8080].unlisted",
    }  # fmt: skip
    (one,) = told["services"]
    keys = {each["key"] for each in one["values"]}
    assert {
        "hosts", "listen", "replacePrefix", "send", "traffic", "instances", "protocol", "proxyProtocol", "tls", "tls.serverName", "calls",
        "healthCheck.kind", "healthCheck.path", "healthCheck.interval",
    } <= keys  # fmt: skip


BEFORE = """
listen: {address: 127.0.0.1:8443, tls: {certificates: [{cert: a.pem, key: a.key}]}}
admin: {address: 127.0.0.1:9901, tls: {certificates: [{cert: a.pem, key: a.key}]}}
services:
  front: {hosts: ["127.0.0.1:1"], match: {prefix: /f}, calls: [payment]}
  payment: {hosts: ["127.0.0.1:2"], match: {host: payment.shop.svc.cluster.local}, budget: {kind: ratio}, maxRetries: 0, calls: [ledger]}
  ledger: {hosts: ["127.0.0.1:3"], maxRetries: 0}
  stock: {hosts: ["127.0.0.1:4"], match: {prefix: /s}}
"""
AFTER = """
listen: {address: 127.0.0.1:8443, tls: {certificates: [{cert: b.pem, key: a.key}]}}
admin: {address: 127.0.0.1:9901, tls: {certificates: [{cert: b.pem, key: a.key}]}}
services:
  front: {hosts: ["127.0.0.1:1"], match: {prefix: /f}, calls: [payment]}
  payment: {hosts: ["${PAY}"], match: {host: pay.shop.svc.cluster.local}, budget: {kind: none}, maxRetries: 0, hedge: {enabled: true, max: 2}}
  ledger: {hosts: ["127.0.0.1:3"], maxRetries: 0}
"""
CHANGES = """\
the gateway as a whole
    listen[127.0.0.1:8443].tls.certificates: a.pem and a.key -> b.pem and a.key
    admin.tls.certificates: a.pem and a.key -> b.pem and a.key
payment: a call makes at most 3 attempts instead of 1
    match: host payment.shop.svc.cluster.local -> host pay.shop.svc.cluster.local
    hosts: 127.0.0.1:2 -> 127.0.0.1:22
    calls: ledger -> none
    budget.kind: ratio -> none
        how retries are paid for
    hedge.enabled: false -> true
        whether a second attempt is sent beside a slow one, instead of a retry after it
    hedge.max: 1 -> 2
        how many hedges a call may send
    budget.percent: 10 -> none
"""


def test_what_goes_is_told_like_what_comes(becalm, tmp_path):
    """Certificates of both addresses, hedges as attempts, a match as it was written, values from the environment, keys that one side alone has."""
    write(tmp_path, BEFORE, AFTER)
    said = becalm("diff", "old.yaml", "new.yaml", env={"PAY": "127.0.0.1:22"}).stdout
    assert said.startswith(CHANGES), said
    assert "\nstock is gone: its requests find no service, or one with a wider match\n" in said


def test_a_change_of_time_alone_changes_the_worst_case(becalm, tmp_path):
    old = 'services:\n  front: {hosts: ["127.0.0.1:1"], match: {prefix: /f}, deadline: 4s}\n'
    said = becalm("diff", *write(tmp_path, old, old.replace("4s", "5s"))).stdout
    assert said.startswith("front: a call may take 5s instead of 4s\n")
    assert said.endswith("\n  front: the client waits up to 4s -> 5s\n")


def test_so_does_a_change_of_what_a_dead_service_gets(becalm, tmp_path):
    old = 'services:\n  front: {hosts: ["127.0.0.1:1"], match: {prefix: /f}, maxRetries: 1}\n'
    said = becalm("diff", *write(tmp_path, old, old.replace("maxRetries: 1", "maxRetries: 1, budget: {kind: concurrency}"))).stdout
    assert said.endswith("\n  front: 1x -> 2x while it is dead\n"), said


def test_a_long_list_is_cut_with_dots(becalm, tmp_path):
    hosts = ", ".join(f'"host-{i:03}.example.com:80"' for i in range(99))
    said = becalm("diff", *write(tmp_path, "services: {}\n", f"services: {{a: {{hosts: [{hosts}]}}}}\n")).stdout
    first = said.splitlines()[0]
    assert first.startswith("a is new: host-000.example.com:80, ") and first.endswith("...") and len(first) < 1100


def test_every_policy_of_ours_means_the_same_as_itself(becalm):
    for path in sorted((ROOT / "policies").glob("*.yaml")):
        run = becalm("diff", "--exit-code", str(path), str(path))
        assert run.returncode == 0, f"{path}: {run.stdout}{run.stderr}"


def test_a_policy_that_is_not_valid_is_told_where(becalm, tmp_path):
    files = write(tmp_path, OLD, "services: {a: {maxRetires: 2}}\n")
    run = becalm("diff", *files)
    assert run.returncode == 1 and run.stdout == ""
    assert "new.yaml:1:16: error: a service has no key" in run.stderr
    assert becalm("diff", files[0]).returncode == 2
