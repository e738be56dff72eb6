# SPDX-License-Identifier: MIT
"""becalm import ingress-nginx: Ingress objects, their annotations and the controller's ConfigMap."""

import pathlib

import oracle_ingress
import pytest
from policy_reader import Policy

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import" / "ingress-nginx"
CORPUS = sorted(FOLDER.glob("*.yaml"))

INGRESS = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: a, annotations: {{ {0} }}}}
spec: {{rules: [{{http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: a, port: {{number: 80}}}}}}}}]}}}}]}}
"""


@pytest.fixture
def imported(becalm):
    def run(annotations, *options, code=0):
        text = ", ".join(f'nginx.ingress.kubernetes.io/{key}: "{value}"' for key, value in annotations.items())
        done = becalm("import", *options, "-", stdin=INGRESS.format(text))
        assert done.returncode == code, done.stderr
        done.call = Policy(becalm, done.stdout).call("x", "/") if done.stdout else None
        return done

    return run


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_import_ingress__the_policy_does_what_the_oracle_says(becalm, path):
    done = becalm("import", "--strict", path.name, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    policy = Policy(becalm, done.stdout)
    compared = 0
    for host, probe, want in oracle_ingress.calls(path):
        got = policy.call(host, probe)
        for key, value in want.items():
            if key != "retry_on" or want["attempts"] > 1:
                assert got[key] == value, (key, host, probe, want, got)
        compared += 1
    assert compared > 2


@pytest.mark.parametrize("annotations, attempts", [({}, 3), ({"proxy-next-upstream-tries": 1}, 1), ({"proxy-next-upstream": "off"}, 1)])
def test_import_ingress__three_tries_whatever_the_hosts(imported, annotations, attempts):
    assert imported(annotations).call["attempts"] == attempts


def test_import_ingress__nothing_written_is_what_the_controller_does(imported):
    call = imported({}, "--strict").call
    assert (call["connect_timeout"], call["attempt_timeout"], call["deadline"]) == (5, 60, None)
    assert call["retry_on"] == {"connect-failure", "refused-stream", "reset", "timeout"} and not call["idempotent"]


@pytest.mark.parametrize(
    "annotations, warning",
    [
        ({"rewrite-target": "/$1"}, "Becalm passes paths on unchanged"),
        ({"configuration-snippet": "proxy_read_timeout 1s;"}, "it is not read"),
        ({"proxy-next-upstream-timeout": 10}, "the deadline is the sum of both times"),
        ({"proxy-next-upstream-tries": 0}, "0 is no limit"),
        ({"proxy-next-upstream": "http_500"}, "retried once per call"),
        ({"backend-protocol": "FCGI"}, "hosts are asked in HTTP, HTTPS, GRPC or GRPCS"),
    ],
)
def test_import_ingress__what_would_differ_is_a_warning_and_strict_fails(imported, annotations, warning):
    assert warning in imported(annotations).stderr
    assert warning in imported(annotations, "--strict", code=1).stderr


def test_import_ingress__a_canary_is_left_out_and_said(imported):
    done = imported({"canary": "true", "canary-weight": 10}, code=1)
    assert "the Ingress is left out" in done.stderr
