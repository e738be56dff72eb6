# SPDX-License-Identifier: MIT
"""HAProxy's handling of a request, from its file: written from HAProxy's manual, without a look at the importer."""

import re
import shlex

SECTIONS = ("global", "defaults", "frontend", "backend", "listen")
UNITS = {"us": 1e-6, "ms": 1e-3, "": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}
ALL = ["conn-failure", "empty-response", "junk-response", "response-timeout", "500", "502", "503", "504"]
MEANS = {"conn-failure": {"connect-failure", "refused-stream"}, "empty-response": {"reset"}, "junk-response": {"reset"}}
MEANS.update({"response-timeout": {"timeout"}, "none": set(), "0rtt-rejected": set()})


class Unclear(Exception):
    """Decided by something that no policy has."""


def time(text):
    number, unit = re.fullmatch(r"(\d+)([a-z]*)", text).groups()
    return int(number) * UNITS[unit]


class HAProxy:
    def __init__(self, path):
        self.sections, section = [], None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            words = shlex.split(line, comments=True)
            if words and words[0] in SECTIONS:
                section = {"kind": words[0], "name": words[1] if len(words) > 1 else "", "words": words, "line": number, "lines": []}
                self.sections.append(section)
            elif words:
                section["lines"].append((number, words))
        defaults = {}
        latest = []
        for section in self.sections:
            named = section["words"][section["words"].index("from") + 1] if "from" in section["words"] else None
            if section["kind"] == "defaults":
                section["all"] = (defaults[named] if named else []) + section["lines"]
                defaults[section["name"]] = latest = section["all"]
            else:
                section["all"] = (defaults[named] if named else latest) + section["lines"]
        self.by_name = {s["name"]: s for s in self.sections if s["kind"] in ("backend", "listen")}

    @staticmethod
    def value(section, *names):
        """The words behind the last line that begins so."""
        found = None
        for _, words in section["all"]:
            if tuple(words[: len(names)]) == names:
                found = words[len(names) :]
        return found

    # ---- conditions ----

    def _test(self, words, host, path, method):
        sample, values = words[0], [w for w in words[1:] if w != "-i"]
        if sample == "path_beg":
            return any(path.startswith(v) for v in values)
        if sample == "path":
            return path in values
        if sample == "method":
            return method in values
        if sample in ("hdr(host)", "req.hdr(host)"):
            return host in values
        raise Unclear(sample)

    def _acl(self, section, name, *request):
        if name.startswith("METH_"):
            return request[2] == name[5:]
        return any([self._test(w[2:], *request) for _, w in section["lines"] if w[:2] == ["acl", name]])

    def _condition(self, section, words, *request):
        result, holds, at = False, True, 0
        while at < len(words):
            if words[at] in ("or", "||"):
                result, holds = result or holds, True
            elif words[at] == "{":
                end = words.index("}", at)
                holds = self._test(words[at + 1 : end], *request) and holds
                at = end
            elif words[at][0] == "!":
                raise Unclear(words[at])
            else:
                holds = self._acl(section, words[at], *request) and holds
            at += 1
        return result or holds

    # ---- requests ----

    def frontends(self):
        return [s for s in self.sections if s["kind"] in ("frontend", "listen") and self.value(s, "mode") == ["http"]]

    def call(self, frontend, host, path, method, left_out=()):
        """(line of the rule, its action), or (line, None) if that depends on more than the file. Rules at lines that
        are left out do not count."""
        name = frontend["name"] if frontend["kind"] == "listen" else None
        line = frontend["line"]
        for number, words in frontend["lines"]:
            if words[0] == "use_backend" and number not in left_out:
                try:
                    fits = len(words) == 2 or (words[2] == "if" and self._condition(frontend, words[3:], host, path, method))
                except Unclear:
                    return number, None
                if fits:
                    name, line = words[1], number
                    break
            if words[0] == "default_backend":
                name, line = words[1], number
        backend = self.by_name.get(name)
        if backend is None:
            return line, None
        return line, self.calls(backend)

    def calls(self, backend):
        servers = [w for _, w in backend["lines"] if w[0] == "server"]
        on = self.value(backend, "retry-on") or ["conn-failure"]
        on = ALL if on == ["all-retryable-errors"] else on
        conditions = set().union(*(MEANS.get(word, {word}) for word in on))
        retries = int((self.value(backend, "retries") or ["3"])[0])
        connect, server = self.value(backend, "timeout", "connect"), self.value(backend, "timeout", "server")
        return {
            "hosts": sorted(w[2] for w in servers if "disabled" not in w and "backup" not in w and "$" not in w[2]),
            "attempts": 1 + (retries if conditions else 0),
            "retry_on": conditions,
            "connect_timeout": time(connect[0]) if connect else 3600,
            "attempt_timeout": time(server[0]) if server else None,
        }
