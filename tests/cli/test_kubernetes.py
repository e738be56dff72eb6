# SPDX-License-Identifier: MIT
"""deploy/kubernetes: kubectl renders complete bases, and each reference in them has its object."""

import re
import shutil
import subprocess

import pytest
import yaml

from conftest import ROOT

BASES = ROOT / "deploy/kubernetes"
pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")


def rendered(base):
    done = subprocess.run(["kubectl", "kustomize", BASES / base], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    found = {}
    for each in yaml.safe_load_all(done.stdout):
        assert each["apiVersion"] and each["metadata"]["name"]
        assert each["kind"] not in found
        found[each["kind"]] = each
    return found


def covers(selector, labels):
    wanted = selector.get("matchLabels", selector)
    return wanted != {} and wanted.items() <= labels.items()


@pytest.fixture(scope="module")
def gateway():
    return rendered("gateway")


def pod_of(deployment):
    return deployment["spec"]["template"]["spec"], deployment["spec"]["template"]["metadata"]["labels"]


def test_gateway__has_everything(gateway):
    assert set(gateway) == {
        "ServiceAccount", "ConfigMap", "Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy",
    }
    versions = {kind: each["apiVersion"] for kind, each in gateway.items()}
    assert versions == {
        "ServiceAccount": "v1", "ConfigMap": "v1", "Deployment": "apps/v1", "Service": "v1", "HorizontalPodAutoscaler": "autoscaling/v2",
        "PodDisruptionBudget": "policy/v1", "NetworkPolicy": "networking.k8s.io/v1",
    }


def test_gateway__every_selector_finds_its_pods(gateway):
    pod, labels = pod_of(gateway["Deployment"])
    assert covers(gateway["Deployment"]["spec"]["selector"], labels)
    assert covers(gateway["Service"]["spec"]["selector"], labels)
    assert covers(gateway["PodDisruptionBudget"]["spec"]["selector"], labels)
    assert covers(gateway["NetworkPolicy"]["spec"]["podSelector"], labels)
    spread = pod["topologySpreadConstraints"]
    assert {each["topologyKey"] for each in spread} == {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}
    assert all(covers(each["labelSelector"], labels) for each in spread)
    target = gateway["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", gateway["Deployment"]["metadata"]["name"])
    assert pod["serviceAccountName"] == gateway["ServiceAccount"]["metadata"]["name"]


def test_gateway__numbers_fit_each_other(gateway):
    scale = gateway["HorizontalPodAutoscaler"]["spec"]
    assert gateway["Deployment"]["spec"]["replicas"] == scale["minReplicas"] == 3 < scale["maxReplicas"]
    assert scale["metrics"][0]["resource"]["name"] == "cpu"
    (container,) = pod_of(gateway["Deployment"])[0]["containers"]
    assert container["resources"]["requests"]["cpu"], "utilization is of what is requested"
    assert gateway["PodDisruptionBudget"]["spec"]["maxUnavailable"] < scale["minReplicas"]
    policy = yaml.safe_load(gateway["ConfigMap"]["data"]["becalm.yaml"])
    worst = policy["maxConnections"] * 192 * 1024
    assert worst < int(container["resources"]["limits"]["memory"].removesuffix("Mi")) * 1024 * 1024


@pytest.mark.parametrize("base", ["gateway", "sidecar"])
def test_kubernetes__pod_and_policy_fit(becalm, tmp_path, base):
    found = rendered(base)
    pod, _ = pod_of(found["Deployment"])
    (container,) = pod["initContainers"] if base == "sidecar" else pod["containers"]
    policy = yaml.safe_load(found["ConfigMap"]["data"]["becalm.yaml"])
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports["becalm-admin"] == int(policy["admin"].rsplit(":", 1)[1])
    for probe, path in (("startup", "/readyz"), ("readiness", "/readyz"), ("liveness", "/healthz")):
        assert container[f"{probe}Probe"]["httpGet"] == {"path": path, "port": "becalm-admin"}
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert set(mounts) == set(volumes)
    assert volumes["policy"]["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]
    assert container["args"][-1] == mounts["policy"] + "/becalm.yaml"
    assert policy["adminTokenFile"] == mounts["token"] + "/token"
    drain = sum(int(policy["drain"][key].removesuffix("s")) for key in ("delay", "limit"))
    assert pod["terminationGracePeriodSeconds"] > drain
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 65532
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }
    assert container["image"] == f"becalm:{version()}"
    done = becalm("check", BASES / base / "configmap.yaml")
    assert done.returncode == 0, done.stdout
    if base == "gateway":
        assert ports["http"] == int(policy["listen"].rsplit(":", 1)[1])
        (port,) = found["Service"]["spec"]["ports"]
        assert port["targetPort"] in ports
        opened = {each["port"] for rule in found["NetworkPolicy"]["spec"]["ingress"] for each in rule["ports"]}
        assert opened == set(ports)


def version():
    return re.search(r'BECALM_VERSION +"(.*)"', (ROOT / "include/becalm/version.h").read_text())[1]


def test_monitoring__scrapes_both_and_leaves_their_labels_alone(gateway):
    (monitor,) = rendered("monitoring").values()
    assert (monitor["apiVersion"], monitor["kind"]) == ("monitoring.coreos.com/v1", "PodMonitor")
    for found in (gateway, rendered("sidecar")):
        pod, labels = pod_of(found["Deployment"])
        assert covers(monitor["spec"]["selector"], labels)
        secrets = {each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
        (scrape,) = monitor["spec"]["podMetricsEndpoints"]
        assert scrape["authorization"]["credentials"]["name"] in secrets
        ports = {each["name"] for one in pod["containers"] + pod.get("initContainers", []) for each in one.get("ports", [])}
        assert scrape["port"] in ports and scrape["honorLabels"] is True


def test_rules__kubernetes_is_the_rule_file_as_a_resource(becalm):
    done = becalm("rules", "kubernetes")
    resource = yaml.safe_load(done.stdout)
    assert (done.returncode, resource["apiVersion"], resource["kind"]) == (0, "monitoring.coreos.com/v1", "PrometheusRule")
    assert resource["spec"] == yaml.safe_load(becalm("rules", "prometheus").stdout)


# ---- the component that puts a sidecar into others' pods ----

OWN = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, labels: {becalm: inject}}
spec:
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec:
      terminationGracePeriodSeconds: 120
      initContainers: [{name: migrate, image: front:1}]
      containers: [{name: front, image: front:1, env: [{name: http_proxy, value: "http://127.0.0.1:8080"}]}]
      volumes: [{name: policy, emptyDir: {}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: ledger, labels: {becalm: inject}}
spec:
  selector: {matchLabels: {app: ledger}}
  template:
    metadata: {labels: {app: ledger}}
    spec: {containers: [{name: ledger, image: ledger:1}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other, labels: {app: other}}
spec: {selector: {matchLabels: {app: other}}, template: {metadata: {labels: {app: other}}, spec: {containers: [{name: other, image: other:1}]}}}
"""


@pytest.fixture(scope="module")
def injected(tmp_path_factory):
    """{name: object} of a team's own kustomization that takes the component of docs/kubernetes.md."""
    folder = tmp_path_factory.mktemp("overlay")
    shutil.copytree(BASES / "inject", folder / "becalm/deploy/kubernetes/inject")
    overlay = re.search(r"```yaml\n(# kustomization.yaml of a team\n.*?)```", (ROOT / "docs/kubernetes.md").read_text(), re.S)[1]
    (folder / "kustomization.yaml").write_text(overlay.replace("../becalm/", "becalm/"))
    (folder / "programs.yaml").write_text(OWN)
    done = subprocess.run(["kubectl", "kustomize", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if "unknown field" in done.stderr and "components" in done.stderr:
        pytest.skip("this kubectl is older than components")
    assert done.returncode == 0, done.stderr
    return {each["metadata"]["name"]: each for each in yaml.safe_load_all(done.stdout)}


def test_inject__whoever_has_the_label_gets_the_sidecar_and_nobody_else(injected):
    (base,) = pod_of(rendered("sidecar")["Deployment"])[0]["initContainers"]
    assert set(injected) == {"becalm", "front", "ledger", "other"}
    for name in ("front", "ledger"):
        pod, labels = pod_of(injected[name])
        sidecar = pod["initContainers"][0]
        assert sidecar["name"] == "becalm" and sidecar["restartPolicy"] == "Always", "before all others, and a sidecar"
        same = {"args", "ports", "startupProbe", "readinessProbe", "livenessProbe", "resources"}
        assert {key: sidecar[key] for key in same} == {key: base[key] for key in same}, "as the base has it"
        assert sidecar["image"] == f"registry.example.com/becalm:{version()}"
        assert base["securityContext"].items() <= sidecar["securityContext"].items() and sidecar["securityContext"]["runAsUser"] == 65532
        mounts = {each["name"]: each["mountPath"] for each in sidecar["volumeMounts"]}
        volumes = {each["name"]: each for each in pod["volumes"]}
        assert set(mounts.values()) == {each["mountPath"] for each in base["volumeMounts"]} and set(mounts) <= set(volumes)
        assert volumes["becalm-policy"]["configMap"]["name"] == injected["becalm"]["metadata"]["name"]
        assert volumes["becalm-token"]["secret"]["defaultMode"] == 0o444, "its user is not the pod's group"
        assert labels["becalm"] == "scraped"
    other, labels = pod_of(injected["other"])
    assert set(other) == {"containers"} and labels == {"app": "other"}


def test_inject__leaves_what_is_the_programs_own(injected):
    pod, labels = pod_of(injected["front"])
    assert pod["terminationGracePeriodSeconds"] == 120 and "securityContext" not in pod and labels["app"] == "front"
    assert [each["name"] for each in pod["initContainers"]] == ["becalm", "migrate"]
    (program,) = pod["containers"]
    assert program["env"] == [{"name": "http_proxy", "value": "http://127.0.0.1:8080"}]
    assert {"name": "policy", "emptyDir": {}} in pod["volumes"]
    policy = yaml.safe_load(injected["becalm"]["data"]["becalm.yaml"])
    assert sum(int(policy["drain"][key].removesuffix("s")) for key in ("delay", "limit")) < 30, "a pod's own grace period, which nobody wrote"
    assert policy == yaml.safe_load(rendered("sidecar")["ConfigMap"]["data"]["becalm.yaml"])
