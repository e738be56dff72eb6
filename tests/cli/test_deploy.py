# SPDX-License-Identifier: MIT
"""deploy/: systemd accepts the units, the Kubernetes files match the pages, and their policy is valid."""

import re
import shutil
import subprocess

import pytest
import yaml

from conftest import ROOT

UNITS = ROOT / "deploy/systemd"
KUBERNETES = ROOT / "deploy/kubernetes/sidecar"


def seconds(text):
    return int(re.fullmatch(r"(\d+)s", text)[1])


def default(key):
    """Of a setting, as becalm.yaml(5) has it."""
    manual = (ROOT / "man/becalm.yaml.5").read_text()
    return re.search(rf"^\.It Ic {re.escape(key)}\n.*?^\.Li (\S+) \.", manual, re.S | re.M)[1]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd")
def test_deploy__systemd_takes_the_units(becalm, tmp_path):
    service = (UNITS / "becalm.service").read_text()
    assert service.count("/usr/local/bin/becalm ") == 1
    (tmp_path / "becalm.service").write_text(service.replace("/usr/local/bin/becalm", becalm.program))
    shutil.copy(UNITS / "becalm.socket", tmp_path)
    units = [tmp_path / "becalm.service", tmp_path / "becalm.socket"]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_deploy__the_units_fit_the_gateway():
    service = (UNITS / "becalm.service").read_text()
    held = """
        Type=notify DynamicUser=yes CapabilityBoundingSet= AmbientCapabilities= NoNewPrivileges=yes ProtectSystem=strict
        ProtectHome=yes ProtectProc=invisible ProtectClock=yes ProtectHostname=yes ProtectControlGroups=yes
        ProtectKernelLogs=yes ProtectKernelModules=yes ProtectKernelTunables=yes PrivateDevices=yes PrivateTmp=yes
        PrivateUsers=yes RestrictNamespaces=yes RestrictRealtime=yes RestrictSUIDSGID=yes LockPersonality=yes
        MemoryDenyWriteExecute=yes SystemCallArchitectures=native SystemCallFilter=@system-service UMask=0077
    """.split()
    for line in (*held, "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX", "SystemCallFilter=~@privileged @resources"):
        assert f"\n{line}\n" in service, line
    assert seconds(re.search(r"WatchdogSec=(\S+)", service)[1]) > 0
    drain = [seconds(default(key)) for key in ("drain.delay", "drain.limit")]
    assert seconds(re.search(r"TimeoutStopSec=(\S+)", service)[1]) > sum(drain)
    socket = (UNITS / "becalm.socket").read_text()
    assert f"[{re.search(r'ListenStream=(.+)', socket)[1]}]" == default("listen")


def test_deploy__the_sidecar_s_policy_is_right(becalm):
    done = becalm("check", "--strict", KUBERNETES / "configmap.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_deploy__the_sidecar_is_native_and_fits_its_policy():
    config = yaml.safe_load((KUBERNETES / "configmap.yaml").read_text())
    policy = yaml.safe_load(config["data"]["becalm.yaml"])
    pod = yaml.safe_load((KUBERNETES / "deployment.yaml").read_text())["spec"]["template"]["spec"]
    (sidecar,) = pod["initContainers"]
    volumes = {each["name"]: each for each in pod["volumes"]}
    mounts = {each["name"]: each for each in sidecar["volumeMounts"]}
    assert sidecar["restartPolicy"] == "Always"
    assert volumes["policy"]["configMap"]["name"] == config["metadata"]["name"]
    assert not any("subPath" in each for each in mounts.values())
    assert sidecar["args"][-1] == mounts["policy"]["mountPath"] + "/becalm.yaml"
    assert policy["adminTokenFile"] == mounts["token"]["mountPath"] + "/token"
    assert sidecar["ports"][0]["containerPort"] == int(policy["admin"].rsplit(":", 1)[1])
    paths = {name: sidecar[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    assert paths == {"startup": "/readyz", "readiness": "/readyz", "liveness": "/healthz"}
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    limits = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert sidecar["securityContext"] == limits
    assert sidecar["resources"]["limits"]["memory"] and all(each["readOnly"] for each in mounts.values())
    drain = policy["drain"]
    assert pod["terminationGracePeriodSeconds"] > seconds(drain["delay"]) + seconds(drain["limit"])
    assert pod["containers"][0]["env"][0]["value"] == "http://" + policy["listen"]
