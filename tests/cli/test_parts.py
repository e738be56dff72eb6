# SPDX-License-Identifier: MIT
"""A policy that is put together: ${NAME} from the environment and from files, and services from other files."""

import json

import pytest


def said(becalm, *args, **more):
    report = json.loads(becalm("check", "--json", *args, **more).stdout)
    return [(f["file"], f["line"], f["column"], f["code"], f["message"]) for f in report["findings"] if f["severity"] == "error"]


def value(becalm, target, key, *files, **more):
    told = json.loads(becalm("check", "--json", "--explain", target, *files, **more).stdout)["explain"][0]
    return next((each["value"], each["file"], each["line"]) for each in told["values"] if each["key"] == key)


# ---- ${NAME} ----


@pytest.mark.parametrize(
    "written, meant",
    [
        ("${A}", "250ms"),
        ("${A_B:-1s}", "1s"),
        ("${EMPTY:-1s}", "1s"),
        ("${A:-1s}", "250ms"),
        ("${N}0ms", "10ms"),
        ("${file:secret}", "7s"),
    ],
)
def test_substitute__puts_in_what_stands_elsewhere(becalm, tmp_path, written, meant):
    (tmp_path / "secret").write_text("7s\n")
    (tmp_path / "p.yaml").write_text(f"defaults:\n  initialDelay: {written}\n  maxDelay: 1m\n")
    env = {"A": "250ms", "EMPTY": "", "N": "1"}
    assert value(becalm, "defaults", "initialDelay", "p.yaml", env=env) == (meant, "p.yaml", 2)


def test_substitute__a_file_is_relative_to_the_policy(becalm, tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/secret").write_text("7s\r\n")
    (tmp_path / "etc/p.yaml").write_text("defaults: {initialDelay: '${file:secret}'}\n")
    assert value(becalm, "defaults", "initialDelay", "etc/p.yaml")[0] == "7s"


def test_substitute__also_in_what_set_does_not_touch_and_in_configmaps(becalm, tmp_path):
    (tmp_path / "p.yaml").write_text("kind: ConfigMap\ndata:\n  policy.yaml: |\n    defaults: {maxRetries: '${N}'}\n")
    assert value(becalm, "defaults", "maxRetries", "p.yaml", env={"N": "2"}) == ("2", "p.yaml", 4)


@pytest.mark.parametrize(
    "written, code, message",
    [
        ("${NOBODY}", "missing", "NOBODY is not in the environment"),
        ("${file:none}", "unreadable", "${file:none}: "),
        ("${file:/}", "unreadable", "it is not a regular file"),
        ("${", "wrong-type", "${ has no }"),
        ("${}", "wrong-type", "none of ${NAME}"),
        ("${1A}", "wrong-type", "none of ${NAME}"),
        ("${A B}", "wrong-type", "none of ${NAME}"),
    ],
)
def test_substitute__what_is_missing_is_an_error_at_its_place(becalm, tmp_path, written, code, message):
    (tmp_path / "p.yaml").write_text(f"services:\n  a:\n    hosts: ['{written}']\n")
    found = [each for each in said(becalm, "p.yaml") if each[3] == code]
    assert found[0][:3] == ("p.yaml", 3, 13) and message in found[0][4]


def test_substitute__two_dollars_are_one(becalm, tmp_path):
    (tmp_path / "p.yaml").write_text("services: {a: {hosts: ['h:80'], match: {header: {x-price: '$${A} $5 ${A}'}}}}\n")
    done = becalm("check", "--route", "GET /", "--header", "x-price: ${A} $5 b", "--host", "a", "p.yaml", env={"A": "b"})
    assert done.returncode == 0, done.stdout


def test_substitute__not_in_keys(becalm, tmp_path):
    (tmp_path / "p.yaml").write_text("'${A}': 1\n")
    assert "${A}" in said(becalm, "p.yaml", env={"A": "defaults"})[0][4]


@pytest.mark.parametrize("key", ["maxRetries", "deadline", "jitter", "retryOn", "keyScope", "attemptTimeout", "budget: {percent", "hedge: {delay", "budget: {shared: {redis"])
def test_substitute__a_secret_in_the_wrong_place_is_not_told(becalm, tmp_path, key):
    end = "}" * key.count("{")
    (tmp_path / "p.yaml").write_text(f"defaults: {{{key}: '${{SECRET}}'{end}}}\n")
    for text in ("hunter2", "99999999999"):
        done = becalm("check", "p.yaml", env={"SECRET": text})
        assert done.returncode == 1 and text not in done.stdout + done.stderr


@pytest.mark.parametrize("key", ["listen", "admin", "hosts", "trust", "log: {level"])
def test_substitute__nor_in_the_settings(becalm, tmp_path, key):
    line = "services: {a: {hosts: ['${SECRET}']}}" if key == "hosts" else f"{key}: '${{SECRET}}'" + "}" * key.count("{")
    (tmp_path / "p.yaml").write_text(line + "\n")
    done = becalm("check", "p.yaml", env={"SECRET": "hunter2"})
    assert done.returncode == 1 and "hunter2" not in done.stdout + done.stderr and "${SECRET}" in done.stdout


# ---- several files ----


@pytest.fixture
def shop(tmp_path):
    (tmp_path / "base.yaml").write_text("defaults: {maxRetries: 1}\nservices: {front: {calls: [payment]}}\n")
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/20-ledger.yml").write_text("services: {ledger: {deadline: 3s}}\n")
    (tmp_path / "conf.d/10-payment.yaml").write_text("version: 1\nservices:\n  payment:\n    maxRetries: 2\n    calls: [ledger]\n")
    (tmp_path / "conf.d/.hidden.yaml").write_text("nonsense: [\n")
    (tmp_path / "conf.d/readme.txt").write_text("not a policy\n")
    return tmp_path


def names(becalm, *args):
    return [node["service"] for node in json.loads(becalm("check", "--json", *args).stdout)["amplification"]]


def test_parts__a_folder_brings_its_services_in_the_order_of_its_files(becalm, shop):
    assert names(becalm, "--include", "conf.d", "base.yaml") == ["front", "payment", "ledger"]
    (shop / "base.yaml").write_text("include: conf.d\n" + (shop / "base.yaml").read_text())
    assert names(becalm, "base.yaml") == ["front", "payment", "ledger"]


def test_parts__are_relative_to_the_first_file(becalm, shop):
    (shop / "with.yaml").write_text("include: [conf.d/20-ledger.yml]\n")
    assert names(becalm, shop / "with.yaml", ) == ["ledger"]


def test_parts__inherit_defaults_and_know_their_own_lines(becalm, shop):
    more = ["--include", "conf.d", "base.yaml"]
    assert value(becalm, "payment", "maxRetries", *more) == ("2", "conf.d/10-payment.yaml", 4)
    assert value(becalm, "ledger", "maxRetries", *more) == ("1", "base.yaml", 1)
    assert value(becalm, "ledger", "deadline", *more) == ("3s", "conf.d/20-ledger.yml", 1)


def test_parts__what_is_wrong_is_told_with_its_own_file(becalm, shop):
    (shop / "conf.d/30-wrong.yaml").write_text("services:\n  other: {maxRetry: 2}\n")
    (shop / "conf.d/40-empty.yaml").write_text("# nothing yet\n")
    (shop / "conf.d/50-broken.yaml").write_text("services: [\n")
    found = said(becalm, "--include", "conf.d", "base.yaml")
    assert ("conf.d/30-wrong.yaml", 2, 11, "unknown-key") in [each[:4] for each in found]
    assert "conf.d/50-broken.yaml" in [each[0] for each in found]


def test_parts__a_finding_of_the_linter_too(becalm, shop):
    (shop / "conf.d/30-odd.yaml").write_text("services:\n  odd:\n    jitter: none\n")
    report = json.loads(becalm("check", "--json", "--include", "conf.d", "base.yaml").stdout)
    assert [(f["file"], f["line"]) for f in report["findings"] if f["code"] == "no-jitter"] == [("conf.d/30-odd.yaml", 3)]


def test_parts__own_services_and_nothing_else(becalm, shop):
    for line in ("defaults: {maxRetries: 9}", "listen: 0.0.0.0:80", "include: more", "trust: [0.0.0.0/0]"):
        (shop / "conf.d/30-more.yaml").write_text(line + "\n")
        (found,) = said(becalm, "--include", "conf.d", "base.yaml")
        assert found[:4] == ("conf.d/30-more.yaml", 1, 1, "unknown-key") and "belong in base.yaml" in found[4] + becalm("check", "--include", "conf.d", "base.yaml").stdout


def test_parts__a_service_has_one_owner(becalm, shop):
    (shop / "conf.d/30-again.yaml").write_text("services:\n  payment: {}\n")
    done = becalm("check", "--include", "conf.d", "base.yaml")
    assert "conf.d/30-again.yaml:2:3: error: the service \"payment\" is here twice; the first is at conf.d/10-payment.yaml:3" in done.stdout


def test_parts__what_is_not_there_is_an_error_where_it_is_named(becalm, shop):
    (shop / "base.yaml").write_text("services: {}\ninclude:\n  - nowhere\n")
    assert said(becalm, "base.yaml")[0][:4] == ("base.yaml", 3, 5, "unreadable")


def test_parts__set_reaches_their_services(becalm, shop):
    more = ["--include", "conf.d", "--set", "services.payment.maxRetries=0", "base.yaml"]
    assert value(becalm, "payment", "maxRetries", *more)[0] == "0"
