# SPDX-License-Identifier: MIT
"""Renders a Helm chart: by helm where there is one, else by the few constructs of Go's templates that ours has."""

import re
import shutil
import subprocess

import yaml

TOKEN = re.compile(r"(\s*)\{\{(-?)\s*(.*?)\s*(-?)\}\}(\s*)", re.S)
COMMENT = re.compile(r"^/\*.*\*/$", re.S)


def merged(base, more):
    if not isinstance(base, dict) or not isinstance(more, dict):
        return more
    return {**base, **{key: merged(base.get(key), value) for key, value in more.items()}}


def pieces(text):
    """Texts and actions in turn, with the blanks cut off that a dash takes."""
    found, at = [], 0
    for token in TOKEN.finditer(text):
        before, left, action, right, after = token.groups()
        found.append(("text", text[at : token.start()] + ("" if left else before)))
        if not COMMENT.match(action):
            found.append(("action", action))
        at = token.end() if right else token.end() - len(after)
    return [*found, ("text", text[at:])]


class Chart:
    def __init__(self, folder):
        self.folder = folder
        self.about = yaml.safe_load((folder / "Chart.yaml").read_text())
        self.defines = {}
        self.values = {}

    def find(self, word):
        if word.startswith('"'):
            return word[1:-1]
        if re.fullmatch(r"\d+", word):
            return int(word)
        path = word.strip(".").split(".")
        roots = {
            "Values": self.values,
            "Release": {"Name": self.name, "Namespace": "default", "Service": "Helm"},
            "Chart": {"AppVersion": self.about["appVersion"], "Name": self.about["name"]},
        }
        value = roots[path[0]]
        for key in path[1:]:
            value = value[key]  # helm would write nothing for a missing value: here it is an error
        return value

    def evaluate(self, expression):
        value = None
        for i, stage in enumerate(expression.split("|")):
            words = re.findall(r'"[^"]*"|\S+', stage)
            given = [] if i == 0 else [value]
            if words[0] == "include":
                value = self.expand(self.defines[words[1][1:-1]])
            elif words[0] == "toYaml":
                value = yaml.safe_dump(self.find(words[1]), default_flow_style=False).rstrip("\n")
            elif words[0] == "nindent":
                value = "\n" + "\n".join(" " * int(words[1]) + line if line else "" for line in given[0].split("\n"))
            elif words[0] == "default":
                value = given[0] or self.find(words[1])
            elif words[0] == "eq":
                value = self.find(words[1]) == self.find(words[2])
            else:
                assert len(words) == 1, f"what is {stage}?"
                value = self.find(words[0])
        return value

    def expand(self, parts):
        out, at = [], 0
        while at < len(parts):
            kind, text = parts[at]
            at += 1
            if kind == "text":
                out.append(text)
                continue
            word = text.split()[0]
            if word not in ("if", "define"):
                value = self.evaluate(text)
                out.append("true" if value is True else "false" if value is False else str(value))
                continue
            start, depth = at, 1
            while depth > 0:
                if parts[at][0] == "action":
                    depth += {"if": 1, "define": 1, "end": -1}.get(parts[at][1].split()[0], 0)
                at += 1
            inner = parts[start : at - 1]
            if word == "define":
                self.defines[text.split()[1][1:-1]] = inner
            elif self.evaluate(text[2:].strip()):
                out.append(self.expand(inner))
        return "".join(out)

    def by_hand(self, name, values):
        self.name, self.values = name, merged(yaml.safe_load((self.folder / "values.yaml").read_text()), values)
        out = []
        for path in sorted((self.folder / "templates").iterdir(), key=lambda each: (not each.name.startswith("_"), each.name)):
            text = self.expand(pieces(path.read_text()))
            if path.suffix == ".yaml":
                out += [each for each in yaml.safe_load_all(text) if each is not None]
        return out

    def by_helm(self, name, values):
        command = ["helm", "template", name, str(self.folder), "--values", "-"]
        done = subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, check=True)
        return [each for each in yaml.safe_load_all(done.stdout) if each is not None]

    def render(self, name="becalm", **values):
        """{kind: object}, from both where there are both."""
        made = self.by_hand(name, values)
        if shutil.which("helm") is not None:
            assert sorted(self.by_helm(name, values), key=str) == sorted(made, key=str)
        found = {each["kind"]: each for each in made}
        assert len(found) == len(made)
        return found
