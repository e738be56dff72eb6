# SPDX-License-Identifier: MIT
"""deploy/helm: the chart renders the same objects as the bases for Kustomize, and follows its values."""

import copy
import json

import jsonschema
import pytest
import yaml

from chart import Chart
from conftest import ROOT
from test_kubernetes import covers, pod_of, rendered, version

CHART = ROOT / "deploy/helm/becalm"
SIDECAR = {
    "kind": "sidecar",
    "policy": yaml.safe_load((ROOT / "deploy/kubernetes/sidecar/configmap.yaml").read_text())["data"]["becalm.yaml"],
    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
}


@pytest.fixture(scope="module")
def chart():
    return Chart(CHART)


def plain(thing):
    """Without the labels that only a chart has, and without defaults of Kubernetes."""
    if isinstance(thing, list):
        return [plain(each) for each in thing]
    if not isinstance(thing, dict):
        return thing
    own = ("app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "imagePullPolicy")
    return {key: plain(value) for key, value in thing.items() if key not in own and (key, value) != ("type", "ClusterIP")}


def test_helm__the_gateway_is_that_of_kustomize(chart):
    made, base = chart.render(), rendered("gateway")
    assert set(made) == set(base)
    for kind in base:
        assert plain(made[kind]) == plain(base[kind]), kind
    assert plain(chart.render(podMonitor={"enabled": True})["PodMonitor"])["spec"] == rendered("monitoring")["PodMonitor"]["spec"]


def test_helm__the_sidecar_is_that_of_kustomize(chart):
    made, base = chart.render(**SIDECAR), rendered("sidecar")
    assert set(made) == set(base) == {"ConfigMap", "Deployment"}
    assert made["ConfigMap"]["data"] == base["ConfigMap"]["data"]
    ours, theirs = plain(pod_of(made["Deployment"])[0]), pod_of(base["Deployment"])[0]
    assert ours == theirs
    assert covers(made["Deployment"]["spec"]["selector"], pod_of(made["Deployment"])[1])


def test_helm__two_releases_do_not_select_each_others_pods(chart):
    one, two = chart.render("one"), chart.render("two")
    for kind, path in (("Deployment", "selector"), ("Service", "selector"), ("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
        selector = one[kind]["spec"][path]
        assert covers(selector, pod_of(one["Deployment"])[1]), kind
        assert not covers(selector, pod_of(two["Deployment"])[1]), kind
    assert {each["metadata"]["name"] for each in one.values()} == {"one"}
    pod = pod_of(one["Deployment"])[0]
    assert pod["serviceAccountName"] == "one" and pod["volumes"][0]["configMap"]["name"] == "one"
    assert one["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == "one"
    assert all(covers(each["labelSelector"], pod_of(one["Deployment"])[1]) for each in pod["topologySpreadConstraints"])


def test_helm__values_do_what_they_say(chart):
    made = chart.render(
        image={"repository": "registry.example.com/becalm", "tag": "1.2.3"},
        autoscaling={"enabled": False},
        networkPolicy={"enabled": False},
        replicas=5,
        service={"port": 8000},
        tokenSecret="other",
        policy="listen: 0.0.0.0:8080\n",
    )
    assert set(made) == {"ServiceAccount", "ConfigMap", "Deployment", "Service", "PodDisruptionBudget"}
    pod, _ = pod_of(made["Deployment"])
    assert pod["containers"][0]["image"] == "registry.example.com/becalm:1.2.3"
    assert made["Deployment"]["spec"]["replicas"] == 5 and made["Service"]["spec"]["ports"][0]["port"] == 8000
    assert pod["volumes"][1]["secret"]["secretName"] == "other"
    assert made["ConfigMap"]["data"]["becalm.yaml"] == "listen: 0.0.0.0:8080\n"


def test_helm__versions_are_the_programs(chart):
    assert chart.about["version"] == chart.about["appVersion"] == version()
    assert pod_of(chart.render()["Deployment"])[0]["containers"][0]["image"] == f"becalm:{version()}"


def test_helm__the_policy_passes_its_check(chart, becalm, tmp_path):
    for values in ({}, SIDECAR):
        path = tmp_path / "configmap.yaml"
        path.write_text(yaml.safe_dump(chart.render(**values)["ConfigMap"]))
        done = becalm("check", path)
        assert done.returncode == 0, done.stdout


def test_helm__a_schema_knows_every_value_and_no_other():
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(values, schema)

    def known(part, value, path):
        for key, each in value.items() if isinstance(value, dict) and "properties" in part else ():
            assert key in part["properties"], f"{path}{key}"
            known(part["properties"][key], each, f"{path}{key}.")

    known(schema, values, "")
    for path, wrong in (("kind", "daemon"), ("replicas", 0), ("autoscaling", {"enabled": True, "max": 3}), ("replica", 3), ("policy", {"listen": "x"})):
        bad = copy.deepcopy(values)
        bad[path] = wrong
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, schema)
