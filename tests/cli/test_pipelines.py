# SPDX-License-Identifier: MIT
"""becalm check in the formats of pipelines, and its callers there: the hook of pre-commit, the action of GitHub, the
job of GitLab, each as the pipeline itself would run it."""

import json
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
import yaml

from conftest import PROGRAM, ROOT, environment

WRONG = "defaults: {maxRetry: 3, initialDelay: 100}\n"
SHOP = """\
services:
  front: {maxRetries: 3, calls: [payment]}
  payment: {maxRetries: 3, calls: [ledger]}
  ledger: {maxRetries: 3, jitter: none}
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "fine.yaml").write_text("services: {}\n")
    (tmp_path / "wrong, 100%.yaml").write_text(WRONG)
    (tmp_path / "shop.yaml").write_text(SHOP)
    return ["fine.yaml", "shop.yaml"], ["fine.yaml", "wrong, 100%.yaml"]


def findings(becalm, names):
    return json.loads(becalm("check", "--json", *names).stdout)["findings"]


def sentence(finding):
    return finding["message"] + ("; " + finding["remedy"] if finding["remedy"] else "")


def test_format__the_exit_code_is_the_same_in_all_of_them(becalm, files):
    for names in files:
        for more in ([], ["--strict"]):
            codes = {
                becalm("check", *more, "--format", each, *names).returncode
                for each in ("text", "json", "github", "sarif", "junit")
            }
            assert codes == {becalm("check", *more, *names).returncode}


def test_format__json_is_json(becalm, files):
    assert becalm("check", "--format", "json", *files[0]).stdout == becalm("check", "--json", *files[0]).stdout


def test_format__github_has_every_finding_beside_its_line(becalm, files):
    for names in files:
        lines = becalm("check", "--format", "github", *names).stdout.splitlines()
        found = []
        for line in lines:
            kind, file, row, column, code, text = re.fullmatch(
                r"::(error|warning) file=([^,:]*),line=(\d+),col=(\d+),title=([^,:]*)::(.*)", line
            ).groups()
            for escape, meant in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%25", "%")):
                file, text = file.replace(escape, meant), text.replace(escape, meant)
            found.append((kind, file, int(row), int(column), code, text))
        assert found == [
            (f["severity"], f["file"], f["line"], f["column"], f["code"], sentence(f)) for f in findings(becalm, names)
        ]
        assert found


def test_format__sarif_has_every_finding_and_its_rule(becalm, files):
    for names in files:
        log = json.loads(becalm("check", "--format", "sarif", *names).stdout)
        assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
        run = log["runs"][0]
        wanted = findings(becalm, names)
        assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(dict.fromkeys(f["code"] for f in wanted))
        assert len(run["results"]) == len(wanted) > 0
        for result, finding in zip(run["results"], wanted):
            place = result["locations"][0]["physicalLocation"]
            assert (result["ruleId"], result["level"]) == (finding["code"], finding["severity"])
            assert result["message"]["text"] == sentence(finding)
            assert place["artifactLocation"]["uri"] == finding["file"].replace("%", "%25").replace(",", "%2C").replace(" ", "%20")
            assert place["region"] == {"startLine": finding["line"], "startColumn": finding["column"]}


def junit(text):
    return {suite.get("name"): suite for suite in ElementTree.fromstring(text)}


def test_format__junit_has_a_suite_per_file(becalm, files):
    suites = junit(becalm("check", "--format", "junit", *files[1]).stdout)
    assert list(suites) == files[1]
    assert [case.get("name") for case in suites["fine.yaml"]] == ["no findings"]
    wrong = suites["wrong, 100%.yaml"]
    assert (wrong.get("tests"), wrong.get("failures")) == ("2", "2")
    assert [case[0].get("message") for case in wrong] == [sentence(f) for f in findings(becalm, files[1])]


def test_format__junit_fails_warnings_only_if_they_fail(becalm, files):
    calm = junit(becalm("check", "--format", "junit", *files[0]).stdout)["shop.yaml"]
    strict = junit(becalm("check", "--strict", "--format", "junit", *files[0]).stdout)["shop.yaml"]
    assert calm.get("failures") == "0" and calm.get("tests") == strict.get("tests") == strict.get("failures") != "0"
    assert all(case[0].tag == "system-out" for case in calm)


def test_format__what_a_file_holds_breaks_none_of_them(becalm, tmp_path):
    (tmp_path / "odd.yaml").write_text('defaults: {"<&\\n::error::%\\e]]>": 1}\n')
    assert len(becalm("check", "--format", "github", "odd.yaml").stdout.splitlines()) == 1
    assert junit(becalm("check", "--format", "junit", "odd.yaml").stdout)["odd.yaml"].get("failures") == "1"
    json.loads(becalm("check", "--format", "sarif", "odd.yaml").stdout)


def test_format__usage(becalm, files):
    for words in (["--format", "xml"], ["--json", "--format", "sarif"]):
        done = becalm("check", *words, "fine.yaml")
        assert (done.returncode, done.stdout) == (2, "")
        assert "text json github sarif junit" in done.stderr


# ---- callers ----


@pytest.fixture
def path(tmp_path):
    """A PATH with this becalm in front."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/becalm").symlink_to(pathlib.Path(PROGRAM).resolve())
    return f"{tmp_path}/bin:{os.environ['PATH']}"


def bash(script, tmp_path, **env):
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_pre_commit__runs_on_the_policies_of_a_commit(tmp_path, path, files):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["language"] == "system"
    named = re.compile(hook["files"])
    assert all(map(named.search, ("becalm.yaml", "deploy/becalm-eu.yml", "becalm.shop.yaml")))
    assert not any(map(named.search, ("values.yaml", "becalm/other.yaml", "becalm.yaml.md")))
    (tmp_path / "becalm.yaml").write_text(SHOP)
    (tmp_path / "becalm-2.yaml").write_text(WRONG)
    assert bash(f"{hook['entry']} becalm.yaml", tmp_path, PATH=path).returncode == 0
    assert bash(f"{hook['entry']} becalm.yaml becalm-2.yaml", tmp_path, PATH=path).returncode == 1


def action(tmp_path, path, **inputs):
    """Runs the composite action's steps as GitHub does: inputs and outputs are put in, each step is a bash of its own."""
    described = yaml.safe_load((ROOT / "action.yml").read_text())
    assert described["runs"]["using"] == "composite"
    known = {name: row["default"] for name, row in described["inputs"].items()}
    assert set(inputs) <= set(known)
    values = {f"inputs.{name}": value for name, value in {**known, **inputs}.items()}
    values["github.action_path"] = str(ROOT)
    said = ""
    for step in described["runs"]["steps"]:
        assert step["shell"] == "bash"
        env = {
            name: re.sub(r"\$\{\{ (\S+) \}\}", lambda found: values[found[1]], text) for name, text in step["env"].items()
        }
        assert "${{" not in step["run"]  # a file's name must not become a command
        output = tmp_path / "output"
        output.write_text("")
        done = bash(step["run"], tmp_path, PATH=path, GITHUB_OUTPUT=str(output), **env)
        said += done.stdout
        if done.returncode:
            return done.returncode, said
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            values[f"steps.{step['id']}.outputs.{name}"] = value
    return 0, said


def test_action__passes_and_fails_as_check_does(tmp_path, path, files):
    assert action(tmp_path, path, files="fine.yaml shop.yaml")[0] == 0
    code, said = action(tmp_path, path, files="fine.yaml shop.yaml", strict="true")
    assert code == 1 and "::warning file=shop.yaml,line=4" in said
    code, said = action(tmp_path, path, files="*.yaml")
    assert code == 1 and "::error file=wrong%2C 100%25.yaml,line=1" in said
    code, said = action(tmp_path, path, **{"files": "shop.yaml", "max-amplification": "2"})
    assert code == 1 and "::error file=shop.yaml" in said


def test_action__writes_sarif_whether_it_fails_or_not(tmp_path, path, files):
    for names, code in (("fine.yaml", 0), ("*.yaml", 1)):
        assert action(tmp_path, path, files=names, sarif="out.sarif")[0] == code
        assert json.loads((tmp_path / "out.sarif").read_text())["version"] == "2.1.0"


def test_action__takes_the_program_that_it_is_told(tmp_path, files):
    assert action(tmp_path, os.environ["PATH"], files="fine.yaml", becalm=str(pathlib.Path(PROGRAM).resolve()))[0] == 0


def test_gitlab__the_job_reports_and_fails(tmp_path, path, files):
    (job,) = yaml.safe_load((ROOT / "deploy/gitlab/becalm.gitlab-ci.yml").read_text()).values()
    for names, code in (("fine.yaml", 0), ("*.yaml", 1)):
        variables = {**job["variables"], "BECALM_FILES": names}
        done = bash("\n".join(job["script"]), tmp_path, PATH=path, **variables)
        assert done.returncode == code, done.stdout
        assert "fine.yaml" in junit((tmp_path / job["artifacts"]["reports"]["junit"]).read_text())
