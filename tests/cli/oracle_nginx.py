# SPDX-License-Identifier: MIT
"""nginx's handling of a request, from its files: written from nginx's documentation, without a look at the importer."""

import fnmatch
import pathlib
import re

TOKEN = re.compile(r"""\s+|\#[^\n]*|(?P<sign>[;{}])|"(?P<double>(?:\\.|[^"\\])*)"|'(?P<single>(?:\\.|[^'\\])*)'|(?P<bare>(?:\$\{|\\.|[^\s;{])+)""", re.S)
CODE = re.compile(r"\w+_by_lua_block\s*$")
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "": 1}
ERRORS = {"error": {"connect-failure", "refused-stream", "reset"}, "timeout": {"timeout"}, "invalid_header": {"reset"}}


def tokens(text):
    """(line, word or sign, whether it is a sign)"""
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        line = text.count("\n", 0, at) + 1
        at = found.end()
        if found["sign"]:
            yield line, found["sign"], True
            if found["sign"] == "{" and CODE.search(text[: found.start()]):
                depth = 1
                while depth:
                    depth += {"{": 1, "}": -1}.get(text[at], 0) if not text[at - 1] == '"' else 0
                    at += 1
                yield line, "}", True
        else:
            for kind in ("double", "single", "bare"):
                if found[kind] is not None:
                    yield line, found[kind], False


def parse(path):
    """[(line, words, block or None)]"""
    stream = tokens(path.read_text(encoding="utf-8"))

    def block():
        out, words, first = [], [], None
        for line, word, sign in stream:
            if not sign:
                first = first or line
                words.append(word)
            elif word == ";":
                out.append((first, words, None))
                words, first = [], None
            elif word == "{":
                out.append((first, words, block()))
                words, first = [], None
            else:
                return out
        return out

    return block()


def time(text):
    parts = re.findall(r"(\d+)(ms|[smhd]|)", text)
    return sum(int(number) * UNITS[unit] for number, unit in parts if number)


class Nginx:
    def __init__(self, *paths):
        self.files = {pathlib.Path(path): parse(pathlib.Path(path)) for path in paths}
        included = {f for path, tree in self.files.items() for f in self._included(path, tree)}
        self.upstreams, self.servers = {}, []
        http = {}
        for path, tree in self.files.items():
            for _, words, block in self._expand(path, tree):
                if words[0] == "http":
                    http = self._settings(path, block, {})
        for path, tree in self.files.items():
            if path in included:
                continue
            for _, words, block in self._expand(path, tree):
                if words[0] == "http":
                    self._level(path, block, self._settings(path, block, {}))
            self._level(path, tree, self._settings(path, tree, http))

    def _files_of(self, path, pattern):
        wanted = pathlib.PurePath(pattern)
        return [
            p
            for p in self.files
            if p != path and fnmatch.fnmatch(p.name, wanted.name) and (wanted.parent.name in ("", p.parent.name))
        ]

    def _included(self, path, tree):
        for _, words, block in tree:
            if words[0] == "include":
                yield from self._files_of(path, words[1])
            if block:
                yield from self._included(path, block)

    def _expand(self, path, block):
        for line, words, inner in block or ():
            if words[0] == "include":
                for other in self._files_of(path, words[1]):
                    yield from self._expand(other, self.files[other])
            else:
                yield line, words, inner

    def _settings(self, path, block, outer):
        own = {words[0]: words[1:] for _, words, inner in self._expand(path, block) if inner is None and words[0] != "set"}
        variables = {words[1]: words[2] for _, words, _ in self._expand(path, block) if words[0] == "set"}
        inherited = {k: v for k, v in outer.items() if k.startswith(("proxy_", "$")) and k != "proxy_pass"}
        return {**inherited, **variables, **own}

    def _level(self, path, block, settings):
        for line, words, inner in self._expand(path, block):
            if words[0] == "upstream":
                self.upstreams[words[1]] = [w for _, w, _ in self._expand(path, inner) if w[0] == "server"]
            elif words[0] == "server":
                own = self._settings(path, inner, settings)
                names, listens = [], []
                for _, w, _ in self._expand(path, inner):
                    if w[0] == "server_name":
                        names += w[1:]
                    if w[0] == "listen":
                        listens.append((w[1].split(":")[-1], "default_server" in w))
                locations = list(self._locations(path, inner, own))
                self.servers.append({"line": line, "names": names, "listens": listens or [("80", False)], "locations": locations, "own": own})

    def _locations(self, path, block, settings):
        for line, words, inner in self._expand(path, block):
            if words[0] == "location":
                own = self._settings(path, inner, settings)
                how, what = ("", words[1]) if len(words) == 2 else words[1:3]
                yield {"line": line, "how": how, "what": what, "own": own}
                yield from self._locations(path, inner, own)

    # ---- a request ----

    def server(self, host, port):
        mine = [s for s in self.servers if any(p == port for p, _ in s["listens"])]
        for server in mine:
            if host in server["names"]:
                return server
        wild = [(len(n), s) for s in mine for n in s["names"] if n[:1] in "*." and (host.endswith(n.lstrip("*")) or "." + host == n)]
        if wild:
            return max(wild, key=lambda pair: pair[0])[1]
        marked = [s for s in mine if (port, True) in s["listens"]]
        return (marked or mine or [None])[0]

    @staticmethod
    def location(server, path):
        prefix = None
        for location in server["locations"]:
            if location["how"] == "=" and location["what"] == path:
                return location
            if location["how"] in ("", "^~") and not location["what"].startswith("@") and path.startswith(location["what"]):
                if prefix is None or len(location["what"]) > len(prefix["what"]):
                    prefix = location
        if prefix is None or prefix["how"] != "^~":
            for location in server["locations"]:
                if location["how"] in ("~", "~*") and re.search(location["what"], path, re.I if location["how"] == "~*" else 0):
                    return location
        return prefix

    def call(self, host, path, port="80"):
        """The handling of a request: `line` of the location, and `hosts` if it is passed on, else None."""
        server = self.server(host, port)
        location = server and self.location(server, path)
        if location is None:
            return None
        own = location["own"]
        if "proxy_pass" not in own:
            return {"line": location["line"], "hosts": None}
        target = own["proxy_pass"][0]
        for name, value in own.items():
            if name.startswith("$"):
                target = target.replace(name, value)
        if "$" in target:
            return {"line": location["line"], "hosts": None}
        authority = re.match(r"\w+://([^/]+)", target)[1]
        servers = self.upstreams.get(authority, [["server", authority]])
        hosts = [w[1] if ":" in w[1] else w[1] + ":80" for w in servers if "down" not in w and "backup" not in w]
        on = own.get("proxy_next_upstream", ["error", "timeout"])
        tries = int(own.get("proxy_next_upstream_tries", ["0"])[0])
        attempts = 1 if "off" in on else min(tries or len(hosts), len(hosts))
        conditions = set()
        for word in on:
            conditions |= ERRORS.get(word, {word[5:]} if word.startswith("http_") else set())
        return {
            "line": location["line"],
            "how": location["how"],
            "hosts": sorted(hosts),
            "attempts": attempts,
            "attempt_timeout": time(own.get("proxy_read_timeout", ["60s"])[0]),
            "connect_timeout": time(own.get("proxy_connect_timeout", ["60s"])[0]),
            "total": time(own.get("proxy_next_upstream_timeout", ["0"])[0]),
            "retry_on": conditions,
            "idempotent": "non_idempotent" in on,
        }

    def requests(self):
        """A request for each location of each server, for each name, and for a host that no server names."""
        for server in self.servers:
            port = server["listens"][0][0]
            hosts = [n for n in server["names"] if not n.startswith(("~", "_", "*", "."))] + ["nobody.example"]
            hosts += ["x" + n.lstrip("*") for n in server["names"] if n[:1] in ("*", ".")]
            for host in hosts:
                for location in server["locations"]:
                    if location["how"] == "=":
                        yield host, location["what"], port
                    elif location["how"] in ("", "^~") and location["what"][0] == "/":
                        yield host, location["what"].rstrip("/") + "/some/thing", port
                yield host, "/none/of/these", port
