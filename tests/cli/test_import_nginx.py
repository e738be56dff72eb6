# SPDX-License-Identifier: MIT
"""becalm import nginx: the policy handles each request as nginx would, or a warning says that it does not."""

import pathlib
import re

import pytest
from oracle_nginx import Nginx
from policy_reader import Policy

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import" / "nginx"
CORPUS = {path.stem: [path] for path in sorted(FOLDER.glob("*.conf"))}
CORPUS["split"] = sorted((FOLDER / "split").rglob("*.conf"))


@pytest.fixture
def imported(becalm, tmp_path):
    """imported("text"): the output of a file, which must load, and its findings."""

    def run(text, *options, code=0):
        path = tmp_path / "nginx.conf"
        path.write_text(text)
        done = becalm("import", "nginx", *options, "nginx.conf", cwd=tmp_path)
        assert done.returncode == code, done.stderr
        done.policy = Policy(becalm, done.stdout) if done.stdout else None
        return done

    return run


def served(text, *, http="", location="", servers=2):
    """A file with one service."""
    hosts = "".join(f"server 127.0.0.1:{9001 + n};" for n in range(servers))
    return f"http {{ {http} upstream up {{ {hosts} {text} }} server {{ location / {{ proxy_pass http://up; {location} }} }} }}"


def warned(stderr, line):
    return re.search(rf":{line}:\d+: warning: ", stderr) is not None


@pytest.mark.parametrize("name", CORPUS)
def test_import_nginx__the_policy_does_what_the_oracle_says_or_a_warning_does(becalm, name):
    files = [str(path.relative_to(FOLDER)) for path in CORPUS[name]]
    done = becalm("import", "nginx", *files, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    policy, nginx = Policy(becalm, done.stdout), Nginx(*CORPUS[name])
    compared = 0
    for host, path, port in nginx.requests():
        want = nginx.call(host, path, port)
        got = policy.call(host, path)
        where = (host, path, port, want, got)
        if want is None:
            continue  # nginx has a 404, or a file
        if want["hosts"] is None or warned(done.stderr, want["line"]):
            assert warned(done.stderr, want["line"]) or "variable" in done.stderr or "by itself" in done.stderr, where
            continue
        assert got is not None, where
        assert got["hosts"] == want["hosts"], where
        assert got["attempts"] == want["attempts"], where
        assert got["attempt_timeout"] == want["attempt_timeout"], where
        assert got["connect_timeout"] == want["connect_timeout"], where
        assert got["deadline"] == (want["total"] + want["attempt_timeout"] if want["total"] and want["attempts"] > 1 else None), where
        if want["attempts"] > 1:
            assert got["retry_on"] == want["retry_on"], where
            assert got["idempotent"] == want["idempotent"], where
        compared += 1
    assert compared > 0


def test_import_nginx__without_a_file_the_dialects_are_listed(becalm):
    done = becalm("import", "nginx")
    assert done.returncode == 2
    assert "no FILE is given; write - to read from stdin. The dialects are: istio, " in done.stderr and "nginx" in done.stderr


@pytest.mark.parametrize("name", CORPUS)
def test_import_nginx__files_are_known_by_their_content(becalm, name):
    files = [str(path.relative_to(FOLDER)) for path in CORPUS[name]]
    named = becalm("import", "nginx", *files, cwd=FOLDER)
    guessed = becalm("import", *files, cwd=FOLDER)
    if name != "split":  # a snippet of only settings is of no known dialect
        assert guessed.stdout == named.stdout and named.stdout


@pytest.mark.parametrize(
    "servers, tries, attempts",
    [(1, 0, 1), (1, 5, 1), (2, 0, 2), (3, 0, 3), (3, 2, 2), (3, 1, 1), (3, 9, 3)],
)
def test_import_nginx__each_host_is_tried_once_and_no_more_than_tries(imported, servers, tries, attempts):
    call = imported(served("", location=f"proxy_next_upstream_tries {tries};", servers=servers)).policy.call("x", "/")
    assert call["attempts"] == attempts


@pytest.mark.parametrize("written, seconds", [("5", 5), ("1500ms", 1.5), ("1m", 60), ("1h30m", 5400), ('"1m 30s"', 90), ("1d", 86400)])
def test_import_nginx__times_have_nginx_units(imported, written, seconds):
    assert imported(served("", location=f"proxy_read_timeout {written};")).policy.call("x", "/")["attempt_timeout"] == seconds


def test_import_nginx__nothing_is_shorter_than_the_source(imported):
    call = imported(served("")).policy.call("x", "/")
    assert (call["attempt_timeout"], call["connect_timeout"], call["deadline"]) == (60, 60, None)


def test_import_nginx__settings_are_inherited_until_a_block_has_its_own(imported):
    text = """http { proxy_read_timeout 7s; proxy_next_upstream error http_503;
      upstream up { server a:1; server b:1; }
      server { proxy_connect_timeout 3s;
        location / { proxy_pass http://up; }
        location /slow/ { proxy_pass http://up; proxy_read_timeout 70s; proxy_next_upstream timeout non_idempotent; } } }"""
    policy = imported(text).policy
    root, slow = policy.call("x", "/"), policy.call("x", "/slow/x")
    assert (root["attempt_timeout"], root["connect_timeout"]) == (7, 3)
    assert root["retry_on"] == {"connect-failure", "refused-stream", "reset", "503"} and not root["idempotent"]
    assert (slow["attempt_timeout"], slow["connect_timeout"]) == (70, 3)
    assert slow["retry_on"] == {"timeout"} and slow["idempotent"]


def test_import_nginx__one_block_that_repeats_post_does_not_make_others(imported):
    text = """upstream up { server a:1; server b:1; }
      server { location / { proxy_pass http://up; proxy_next_upstream error non_idempotent; }
               location /pay/ { proxy_pass http://up; } }"""
    policy = imported(text).policy
    assert policy.call("x", "/")["idempotent"] and not policy.call("x", "/pay/x")["idempotent"]


def test_import_nginx__max_fails_is_an_ejection_if_it_is_more_than_one_failure(imported):
    hosts = "server 127.0.0.1:9001 max_fails={0} fail_timeout=20s; server 127.0.0.1:9002 max_fails={0};"
    values = imported(served(hosts.format(4), servers=0)).policy.call("x", "/")["values"]
    assert values["outlier.consecutive5xxErrors"] == "4" and values["outlier.baseEjectionTime"] == "20s"
    assert imported(served(hosts.format(0), servers=0)).policy.call("x", "/")["values"]["outlier.enabled"] == "false"
    assert "note: max_fails has no equivalent" in imported(served(hosts.format(1), servers=0)).stderr


@pytest.mark.parametrize(
    "text, warning",
    [
        (served("", location="proxy_next_upstream_timeout 5s;"), "the deadline is the sum of both times"),
        (served("", location="proxy_next_upstream http_500;", servers=3), "retried once per call"),
        (served("server 127.0.0.1:9009 backup;"), "Becalm has no backup hosts"),
        (served("server 127.0.0.1:9009 weight=5;"), "spread evenly"),
        (served("", location="rewrite ^/a /b;"), "Becalm passes paths on unchanged"),
        (served("", http="include extra/*.conf;"), "give it as well"),
        (served("").replace("http://up", "http://up/v2/"), "it puts /v2/ in the place of /"),
        (served("").replace("http://up", "http://$host"), "by a variable"),
        (served("").replace("location /", "location ~ x$"), "regular expression"),
        (served("").replace("location /", "location = /a { return 200; } location /"), "nginx answers it by itself"),
    ],
)
def test_import_nginx__what_would_differ_is_a_warning_and_strict_fails(imported, text, warning):
    code = 0 if "variable" not in warning and "expression" not in warning else 1  # nothing is left of these
    assert warning in imported(text, code=code).stderr
    assert warning in imported(text, "--strict", code=1).stderr


@pytest.mark.parametrize(
    "text",
    [served(""), served("keepalive 16; zone up 64k;", location="proxy_buffering off; proxy_set_header Host $host;"), served("least_conn;")],
)
def test_import_nginx__strict_passes_what_means_the_same(imported, text):
    imported(text, "--strict")


@pytest.mark.parametrize(
    "text, error",
    [
        ("http {\n  server {\n    listen 80\n  }\n}\n", 'nginx.conf:4:3: error: a ";" is missing in front of the "}" [syntax]'),
        ("http {\n", 'nginx.conf:1:6: error: the block that opens here is never closed; write a "}" behind it [syntax]'),
        (served("", location="proxy_read_timeout soon;"), 'is not a time; write it like 60s or 500ms [bad-value]'),
        ("events { }\n", "there is nothing about retries"),
    ],
)
def test_import_nginx__what_is_broken_is_said_with_its_place(imported, text, error):
    assert error in imported(text, code=1).stderr
