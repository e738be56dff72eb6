# SPDX-License-Identifier: MIT
"""becalm import haproxy: the policy handles each request as HAProxy would, or a warning says that it does not."""

import pathlib
import re

import pytest
from oracle_haproxy import HAProxy
from policy_reader import Policy

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import" / "haproxy"
CORPUS = sorted(FOLDER.glob("*.cfg"))
HEAD = "defaults\n mode http\n timeout connect 2s\n timeout server 10s\n"


@pytest.fixture
def imported(becalm, tmp_path):
    """imported("text"): the output of a file, which must load, and its findings."""

    def run(text, *options, code=0):
        (tmp_path / "haproxy.cfg").write_text(text)
        done = becalm("import", "haproxy", *options, "haproxy.cfg", cwd=tmp_path)
        assert done.returncode == code, done.stderr
        done.policy = Policy(becalm, done.stdout) if done.stdout else None
        return done

    return run


def served(lines="", *, servers=2, more="", front=""):
    hosts = "".join(f" server s{n} 127.0.0.1:{9001 + n} {more}\n" for n in range(servers))
    lines = "".join(f" {line}\n" for line in lines.split("; ") if line)
    return f"{HEAD}frontend f\n bind :80\n{front} default_backend b\nbackend b\n{lines}{hosts}"


def requests():
    for host in ("api.example.com", "nobody.example"):
        for path in ("/", "/cart/1", "/basket/1", "/reports/1", "/slow/1", "/export", "/static/x", "/static/img/x", "/admin/x"):
            for method in ("GET", "POST"):
                yield host, path, method


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_import_haproxy__the_policy_does_what_the_oracle_says_or_a_warning_does(becalm, path):
    done = becalm("import", path.name, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    policy, haproxy = Policy(becalm, done.stdout), HAProxy(path)
    compared = 0
    left_out = {int(line) for line in re.findall(r":(\d+):\d+: warning: use_backend \S+ has no equivalent", done.stderr)}
    for request in requests():
        line, want = haproxy.call(haproxy.frontends()[0], *request, left_out)
        got = policy.call(*request)
        where = (request, line, want, got)
        assert want is not None, where  # else a warning would have left its rule out
        for key, value in want.items():
            if key != "retry_on" or want["attempts"] > 1:
                assert got[key] == value, (key, where)
        assert got["deadline"] is None, where
        compared += 1
    assert compared > 0


@pytest.mark.parametrize("lines, attempts", [("", 4), ("retries 0", 1), ("retries 5", 6), ("retry-on none", 1)])
def test_import_haproxy__retries_are_retries(imported, lines, attempts):
    assert imported(served(lines)).policy.call("x", "/")["attempts"] == attempts


@pytest.mark.parametrize("written, seconds", [("5000", 5), ("1500ms", 1.5), ("3s", 3), ("2m", 120), ("1h", 3600)])
def test_import_haproxy__times_without_a_unit_are_milliseconds(imported, written, seconds):
    assert imported(served(f"timeout server {written}")).policy.call("x", "/")["attempt_timeout"] == seconds


def test_import_haproxy__what_it_does_not_bound_is_not_bound(imported):
    call = imported("defaults\n mode http\nlisten a\n bind :80\n server s 127.0.0.1:9001\n").policy.call("x", "/")
    assert (call["attempt_timeout"], call["connect_timeout"], call["deadline"]) == (None, 3600, None)


def test_import_haproxy__a_retry_waits_unless_it_is_redispatched(imported):
    values = imported(served()).policy.call("x", "/")["values"]
    assert (values["initialDelay"], values["growth"], values["jitter"]) == ("1s", "constant", "none")
    assert imported(served("timeout connect 200ms")).policy.call("x", "/")["values"]["initialDelay"] == "200ms"
    assert imported(served("option redispatch")).policy.call("x", "/")["values"]["initialDelay"] == "0"
    assert imported(served("option redispatch", servers=1)).policy.call("x", "/")["values"]["initialDelay"] == "1s"


def test_import_haproxy__maxconn_observe_and_queue(imported):
    more = "maxconn 30 maxqueue 5 check observe layer7 error-limit 4 on-error mark-down inter 5s rise 3"
    values = imported(served("timeout queue 7s", more=more)).policy.call("x", "/")["values"]
    assert (values["limit.kind"], values["limit.max"], values["gate.maxQueue"]) == ("fixed", "60", "10")
    assert values["gate.maxQueueTime"] == "7s"
    assert (values["outlier.consecutive5xxErrors"], values["outlier.baseEjectionTime"]) == ("4", "15s")


def test_import_haproxy__the_first_rule_wins_there_and_here(imported):
    front = " use_backend p if { path_beg /p/ }\n use_backend h if { hdr(host) -i h.example }\n use_backend q if { path_beg /p/q/ }\n"
    text = served("option redispatch", front=front) + "".join(f"backend {name}\n server s {name}.internal:80\n" for name in "phq")
    done = imported(text)
    assert "use_backend q has no equivalent: a rule above takes all of its requests" in done.stderr
    assert done.policy.call("x.example", "/p/1")["hosts"] == ["p.internal:80"]
    assert done.policy.call("h.example", "/1")["hosts"] == ["h.internal:80"]
    assert done.policy.call("h.example", "/p/1")["hosts"] == ["p.internal:80"]
    assert done.policy.call("x.example", "/p/q/1")["hosts"] == ["p.internal:80"]


@pytest.mark.parametrize(
    "text, warning",
    [
        (served(), "without `option redispatch` they go to the same server"),
        (served("option redispatch; retry-on 500"), "retried once per call"),
        (served("option redispatch; server x 10.0.0.1:80 backup"), "Becalm has no backup hosts"),
        (served("option redispatch; server x 10.0.0.1:80 weight 7"), "spread evenly"),
        (served("option redispatch; http-request set-path /x%[path]"), "Becalm passes paths on unchanged"),
        (served("option redispatch", front=" use_backend b if { src 10.0.0.0/8 }\n"), "no match can have its condition"),
        (served("option redispatch") + "frontend g\n bind :81\n default_backend b\n", "by its port alone"),
    ],
)
def test_import_haproxy__what_would_differ_is_a_warning_and_strict_fails(imported, text, warning):
    assert "warning: " in imported(text).stderr
    assert warning in imported(text, "--strict", code=1).stderr


def test_import_haproxy__strict_passes_what_means_the_same(imported):
    imported(served("option redispatch"), "--strict")
    imported(served("retries 0; balance leastconn", more="check"), "--strict")


@pytest.mark.parametrize(
    "text, error",
    [
        (served('acl a path "b'), "the quote that opens here is not closed on its line"),
        (served("timeout server soon"), 'haproxy.cfg:9:17: error: timeout server: "soon" is not a time; write it like 30s or 500ms [bad-value]'),
        (served(more="maxconn many"), 'maxconn: "many" is not a number [bad-value]'),
        (served("retry-on often"), '"often" is no condition of HAProxy'),
        ("global\n maxconn 5\n", "there is nothing about retries"),
    ],
)
def test_import_haproxy__what_is_broken_is_said_with_its_place(imported, text, error):
    assert error in imported(text, code=1).stderr
