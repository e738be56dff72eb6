# SPDX-License-Identifier: MIT
"""A gateway whose policy is in several files: teams add, change and take out services of their own, and it notices."""

from conftest import Gateway
from host import Reply, wait_until


def text(name, host):
    return f"services: {{{name}: {{hosts: ['{host.address}'], match: {{prefix: /{name}}}}}}}\n"


def test_parts__a_team_s_file_is_noticed_and_a_bad_one_changes_nothing(gateway, host, tmp_path):
    one, two = host(), host()
    one.on("*", lambda got: Reply(body=b"one"))
    two.on("*", lambda got: Reply(body=b"two"))
    parts = tmp_path / "conf.d"
    parts.mkdir()
    (parts / "one.yaml").write_text(text("one", one))
    made = gateway(f"include: {parts}\n")
    assert (made.ask(path="/one").body, made.ask(path="/two").status) == (b"one", 404)

    (parts / "two.yaml").write_text(text("two", two))
    wait_until(lambda: made.ask(path="/two").status == 200)
    assert made.ask(path="/one").body == b"one"

    (parts / "two.yaml").write_text("services: {two: {maxRetry: 1}}\n")
    wait_until(lambda: "two.yaml:1:" in made.log())
    assert (made.ask(path="/one").body, made.ask(path="/two").body) == (b"one", b"two")

    (parts / "two.yaml").unlink()
    wait_until(lambda: made.ask(path="/two").status == 404)
    assert made.ask(path="/one").body == b"one"


def test_parts__addresses_come_from_the_environment(gateway, host):
    one = host()
    one.on("*", lambda got: Reply(body=b"one"))
    made = gateway("services: {a: {hosts: ['${ONE}'], match: {prefix: /}}}\n", env={"ONE": one.address})
    assert made.ask().body == b"one"


def test_parts__folders_may_stand_on_the_command_line(host, tmp_path):
    one = host()
    one.on("*", lambda got: Reply(body=b"one"))
    parts = tmp_path / "conf.d"
    parts.mkdir()
    (parts / "one.yaml").write_text(text("one", one))
    made = Gateway(tmp_path, "defaults: {}\n", sets=[], parts=[parts])
    try:
        assert made.ask(path="/one").body == b"one"
    finally:
        made.end()
