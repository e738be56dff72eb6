# SPDX-License-Identifier: MIT
"""becalm init: three questions, and a first policy that is valid with all answers."""

import stat

import yaml


def test_asks_three_questions_and_writes_what_was_answered(becalm, tmp_path):
    run = becalm("init", stdin="payment\n10.0.0.1:80, 10.0.0.2:80\nenforce\n")
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("  [") == 3
    assert "becalm proxy becalm.yaml" in run.stdout and "curl -i http://127.0.0.1:8080/" in run.stdout
    told = yaml.safe_load((tmp_path / "becalm.yaml").read_text())
    assert told["services"] == {"payment": {"hosts": ["10.0.0.1:80", "10.0.0.2:80"], "match": {"prefix": "/"}}}
    assert told["defaults"] == {"mode": "enforce"}
    assert "remove this line" not in (tmp_path / "becalm.yaml").read_text()
    assert becalm("check", "--strict", "becalm.yaml").returncode == 0


def test_the_end_of_the_input_takes_the_defaults_and_so_does_yes(becalm, tmp_path):
    assert becalm("init", stdin="").returncode == 0
    run = becalm("init", "--yes", "other.yaml", stdin="payment\n")
    assert (run.returncode, run.stderr) == (0, "")
    written = (tmp_path / "becalm.yaml").read_text()
    assert written == (tmp_path / "other.yaml").read_text()
    assert yaml.safe_load(written)["defaults"] == {"mode": "shadow"} and "remove this line" in written
    assert becalm("check", "--strict", "other.yaml").returncode == 0
    acting = [line for line in written.splitlines() if "mode" not in line]  # as its comment says
    (tmp_path / "acting.yaml").write_text("\n".join(acting))
    assert becalm("check", "--strict", "acting.yaml").returncode == 0


def test_what_can_t_be_is_told_at_once_and_asked_again(becalm, tmp_path):
    run = becalm("init", stdin="payment\n10.0.0.1\n10.0.0.1:80\nnever\n\n")
    assert run.returncode == 0
    assert run.stderr.count("That can't be: ") == 2 and '"10.0.0.1" is not an address' in run.stderr
    told = yaml.safe_load((tmp_path / "becalm.yaml").read_text())
    assert told["services"]["payment"]["hosts"] == ["10.0.0.1:80"] and told["defaults"] == {"mode": "shadow"}


def test_the_rest_of_a_line_that_is_too_long_answers_no_other_question(becalm, tmp_path):
    run = becalm("init", stdin="x" * 30000 + "\npayment\n10.0.0.1:80\nenforce\n")
    assert run.returncode == 0 and run.stderr.count("That can't be: ") == 1
    told = yaml.safe_load((tmp_path / "becalm.yaml").read_text())
    assert list(told["services"]) == ["payment"] and told["defaults"] == {"mode": "enforce"}


def test_no_answer_breaks_out_of_its_quotes(becalm, tmp_path):
    for i, name in enumerate(('a"b', "a\\", "a: b", "#", "x" * 3000, "é", '"}\nadmin: 0.0.0.0:1')):
        run = becalm("init", f"{i}.yaml", stdin=f"{name}\n\n\n")
        assert run.returncode == 0, run.stderr
        assert becalm("check", f"{i}.yaml").returncode == 0
        assert yaml.safe_load((tmp_path / f"{i}.yaml").read_text())["admin"] == "127.0.0.1:9900"


def test_an_option_answers_before_it_is_asked(becalm, tmp_path):
    run = becalm("init", "-y", "--service", "a", "--hosts", "h:1", "--mode", "enforce", "--listen", "127.0.0.1:18080")
    assert run.returncode == 0 and "http://127.0.0.1:18080/" in run.stdout
    assert yaml.safe_load((tmp_path / "becalm.yaml").read_text())["listen"] == "127.0.0.1:18080"
    run = becalm("init", "-y", "--hosts", "nowhere", "b.yaml")
    assert run.returncode == 1 and "--hosts: " in run.stderr and not (tmp_path / "b.yaml").exists()
    run = becalm("init", "-y", "--listen", "nowhere", "b.yaml")
    assert run.returncode == 1 and "--listen: " in run.stderr


def test_a_socket_is_written_as_it_is_and_no_curl_is_shown_that_could_not_reach_it(becalm, tmp_path):
    run = becalm("init", "-y", "--hosts", "unix:/tmp/a\\b", "--listen", "unix:/tmp/x.sock")
    assert run.returncode == 0 and "curl" not in run.stdout, run.stderr
    told = yaml.safe_load((tmp_path / "becalm.yaml").read_text())
    assert told["listen"] == "unix:/tmp/x.sock" and told["services"]["app"]["hosts"] == ["unix:/tmp/a\\b"]


def test_an_answer_that_can_t_be_is_not_written_where_the_input_ends_behind_it(becalm, tmp_path):
    run = becalm("init", stdin="payment\nnowhere\n")
    assert run.returncode == 0 and run.stderr.count("That can't be: ") == 1
    assert yaml.safe_load((tmp_path / "becalm.yaml").read_text())["services"]["payment"]["hosts"] == ["127.0.0.1:9001"]


def test_what_no_file_has_room_for_and_a_second_file_are_refused(becalm, tmp_path):
    run = becalm("init", "-y", "--listen", "unix:/" + "x" * 9000)
    assert run.returncode == 1 and "--listen: that is too long" in run.stderr
    run = becalm("init", "-y", "a.yaml", "b.yaml")
    assert run.returncode == 2 and "one FILE at most" in run.stderr and not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_kept(becalm, tmp_path):
    path = tmp_path / "becalm.yaml"
    path.write_text("mine\n")
    run = becalm("init", stdin="payment\n")
    assert run.returncode == 1 and "--force" in run.stderr and "?" not in run.stderr
    assert path.read_text() == "mine\n"
    assert becalm("init", "-y", "--force").returncode == 0
    assert path.read_text() != "mine\n" and stat.S_ISREG(path.stat().st_mode)
    assert becalm("init", "-y", "no/such/folder.yaml").returncode == 1
    (tmp_path / "link.yaml").symlink_to("elsewhere.yaml")  # that leads nowhere yet
    run = becalm("init", "-y", "link.yaml")
    assert run.returncode == 1 and "--force" in run.stderr and not (tmp_path / "elsewhere.yaml").exists()
