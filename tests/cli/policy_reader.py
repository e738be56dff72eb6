# SPDX-License-Identifier: MIT
"""The handling of a request by a policy, for oracles: which hosts, how many attempts, which times, which failures. It
asks `becalm check --explain` for the values, and routes by the rules of docs/policy.md with code of its own."""

import json
import re

import yaml

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text):
    """1h30m, 250ms, 0; None for none."""
    if text in (None, "none", "never"):
        return None
    return round(sum(float(number) * UNITS[unit or "s"] for number, unit in re.findall(r"([\d.]+)([a-z]*)", str(text))), 9)


def _matches(node):
    match = (node or {}).get("match", {})
    return match if isinstance(match, list) else [match]


def _as_list(value):
    return value if isinstance(value, list) else [value]


def _host_fits(want, host):
    want = want.lower()
    if want == "*":
        return 0
    if want.startswith("*."):
        return len(want) if host.endswith(want[1:]) else None
    return 10000 if want == host else None


def _rank(match, host, path, method):
    """How well one match fits, as a tuple that compares; None: not at all. Lists mean any of them."""
    best = 0
    if "host" in match:
        ranks = [rank for rank in (_host_fits(want, host) for want in _as_list(match["host"])) if rank is not None]
        if not ranks:
            return None
        best = max(ranks)
    exact, longest = 0, 0
    if "path" in match:
        if path not in _as_list(match["path"]):
            return None
        exact = 1
    if "prefix" in match:
        fits = [p for p in _as_list(match["prefix"]) if path == p or path.startswith(p if p.endswith("/") else p + "/")]
        if not fits:
            return None
        longest = max(map(len, fits))
    if "start" in match:
        fits = [p for p in _as_list(match["start"]) if path.startswith(p)]
        if not fits:
            return None
        longest = max(longest, *map(len, fits))
    if "method" in match and method not in _as_list(match["method"]):
        return None
    return best, exact, longest, "method" in match


def _best(items, host, path, method, own_name):
    found = None
    for name, node in items:
        for match in _matches(node):
            if not match and own_name:
                match = {"host": name}
            rank = _rank(match, host, path, method)
            if rank is not None and (found is None or rank > found[0]):
                found = (rank, name, node)
    return found and found[1:]


class Policy:
    def __init__(self, becalm, text):
        self.tree = yaml.safe_load(text)
        done = becalm("check", "--explain", "all", "--json", "-", stdin=text)
        assert done.returncode == 0, done.stdout + done.stderr
        self.values = {
            (each["service"], each["endpoint"]): {value["key"]: value["value"] for value in each["values"]}
            for each in json.loads(done.stdout)["explain"]
        }

    def call(self, host, path, method="GET"):
        """None: no service takes the request."""
        service = _best((self.tree.get("services") or {}).items(), host, path, method, True)
        if service is None:
            return None
        name, node = service
        endpoint = _best((node.get("endpoints") or {}).items(), host, path, method, False)
        values = self.values[name, endpoint[0] if endpoint else None]
        return {
            "service": name,
            "hosts": sorted(map(str, node.get("hosts", []))),
            "attempts": int(values["maxRetries"]) + 1,
            "attempt_timeout": seconds(values["attemptTimeout"]),
            "connect_timeout": seconds(values["connectTimeout"]),
            "deadline": seconds(values["deadline"]),
            "retry_on": set(re.findall(r"[\w-]+", values["retryOn"])),
            "idempotent": values["idempotent"] == "true",
            "values": values,
        }
