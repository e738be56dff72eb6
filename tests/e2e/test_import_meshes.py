# SPDX-License-Identifier: MIT
"""becalm import of Envoy, Istio and the Gateway API through the gateway: for each request of the corpus the readers of
tests/cli/test_import_oracle.py, which share nothing with the importer, say to which hosts it goes and how often it is tried;
the hosts, which fail with 503, count. What Becalm adds of its own is switched off, as in test_import_live.py."""

import pathlib
import subprocess
import sys

import pytest
import yaml
from conftest import PROGRAM
from host import Reply, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import test_import_oracle as oracle  # noqa: E402

ADDED = {"budget": {"kind": "none"}, "breaker": {"enabled": False}, "outlier": {"enabled": False}, "restart": {"enabled": False}, "limit": {"kind": "none"}}
FILES = ["envoy-front.yaml", "istio-ingress.yaml", "gateway-api-shop.yaml"]


def expected(answer, method):
    """How often a request is tried whose hosts answer 503."""
    retried = answer.on is not None and answer.on & {"5xx", "gateway-error", "503"}
    return 1 + answer.retries if retried and method == "GET" else 1


@pytest.mark.parametrize("name", FILES)
def test_import_meshes__each_request_goes_where_the_source_says_as_often_as_it_says(gateway, host, name):
    done = subprocess.run([PROGRAM, "import", str(oracle.CORPUS / name)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    policy = yaml.safe_load(done.stdout)
    stands_for = {}
    for service in policy["services"].values():
        key = tuple(sorted(service["hosts"]))
        if key not in stands_for:
            stands_for[key] = host()
            for path in oracle.REQUESTS[name][1]:
                stands_for[key].on(path, Reply(status=503))
        service["hosts"] = [stands_for[key].address]
    policy.setdefault("defaults", {}).update(ADDED)
    running = gateway(yaml.safe_dump(policy), sets=["pool.idle=0s"])
    hosts, paths = oracle.REQUESTS[name]
    tried = set()
    for target in hosts:
        for method in ("GET", "POST"):
            for path in paths:
                answer = oracle.reader_of(name, target)(oracle.objects_of(name), method, target, path, {})
                for each in stands_for.values():
                    each.forget()
                got = running.ask(method, path, host=target, body=b"x" if method == "POST" else b"")
                where = (method, target, path, answer, got.status)
                if answer is None:
                    assert got.status == 404 and all(each.count() == 0 for each in stands_for.values()), where
                    continue
                mine = stands_for[tuple(answer.hosts)]
                wait_until(lambda host=mine, want=expected(answer, method): host.count() >= want, what=lambda: where)
                assert mine.count() == expected(answer, method), (where, mine.count())
                assert all(each.count() == 0 for each in stands_for.values() if each is not mine), where
                tried.add(mine.count())
    assert len(tried) > 1, "some are repeated and some are not"
