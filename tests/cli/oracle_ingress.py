# SPDX-License-Identifier: MIT
"""ingress-nginx's handling of a request, from Ingress objects: written from its documentation, without a look at the
importer."""

import re

import yaml

PREFIX = "nginx.ingress.kubernetes.io/"
DEFAULTS = {
    "proxy-next-upstream": "error timeout",
    "proxy-next-upstream-tries": "3",
    "proxy-connect-timeout": "5",
    "proxy-read-timeout": "60",
}
ERRORS = {"error": {"connect-failure", "refused-stream", "reset"}, "timeout": {"timeout"}, "invalid_header": {"reset"}}


def calls(path):
    """[(host, path, action)] for every path of every Ingress."""
    objects = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]
    settings = dict(DEFAULTS)
    for each in objects:
        if each["kind"] == "ConfigMap":
            settings.update(each["data"])
    for each in objects:
        if each["kind"] != "Ingress":
            continue
        notes = {k[len(PREFIX) :]: v for k, v in each["metadata"].get("annotations", {}).items() if k.startswith(PREFIX)}
        own = {**settings, **notes}
        on = own["proxy-next-upstream"].split()
        conditions = set().union(*(ERRORS.get(word, {word[5:]}) for word in on))
        for rule in each["spec"]["rules"]:
            for item in rule["http"]["paths"]:
                service = item["backend"]["service"]
                name = f"{service['name']}.{each['metadata']['namespace']}:{service['port']['number']}"
                probe = item["path"] if item["pathType"] == "Exact" else item["path"].rstrip("/") + "/some/thing"
                yield rule["host"], probe, {
                    "hosts": [name],
                    "attempts": 1 if "off" in on else int(own["proxy-next-upstream-tries"]),
                    "retry_on": conditions,
                    "connect_timeout": int(re.sub("s$", "", own["proxy-connect-timeout"])),
                    "attempt_timeout": int(re.sub("s$", "", own["proxy-read-timeout"])),
                    "deadline": None,
                }
