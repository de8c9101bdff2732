"""The objects that a workload cluster gets."""

from __future__ import annotations

import base64
from typing import Any

from homeport.ccm import manifest
from homeport.ccm.manifest import CONFIG_HASH, Settings, render

SETTINGS = Settings("nutanix", "nutanix_config.json", "{}", {"credentials": "[]"})


def found(kind: str, settings: Settings = SETTINGS, **more: Any) -> dict[str, Any]:
    return next(body for body, _ in render(settings, **more) if body["kind"] == kind)


def test_everything_is_there_and_what_the_pod_needs_comes_before_it() -> None:
    kinds = [body["kind"] for body, _ in render(SETTINGS)]
    assert kinds[-1] == "Deployment"
    assert set(kinds[:-1]) == {
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ConfigMap",
        "Secret",
    }
    assert all(body["metadata"].get("namespace", "kube-system") == "kube-system" for body, _ in render(SETTINGS))


def test_the_pod_runs_on_new_control_planes_before_there_is_a_network() -> None:
    pod = found("Deployment", image="registry/homeport:1")["spec"]["template"]["spec"]
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "Default")
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]
    tolerated = {(each["key"], each["effect"]) for each in pod["tolerations"] if "tolerationSeconds" not in each}
    assert ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule") in tolerated
    assert ("node.cluster.x-k8s.io/uninitialized", "NoSchedule") in tolerated
    assert ("node-role.kubernetes.io/control-plane", "NoSchedule") in tolerated
    assert ("node.kubernetes.io/not-ready", "NoSchedule") in tolerated
    assert ("node.cluster.x-k8s.io/uninitialized", "NoSchedule") in tolerated
    (container,) = pod["containers"]
    assert container["image"] == "registry/homeport:1"
    assert container["args"][:5] == ["ccm", "--cloud", "nutanix", "--config", "/etc/cloud/nutanix_config.json"]


def test_the_selector_finds_the_pods() -> None:
    spec = found("Deployment")["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_no_secret_but_its_own_may_be_read() -> None:
    rules = [rule for body, _ in render(SETTINGS) for rule in body.get("rules", ()) if "secrets" in rule["resources"]]
    assert [(rule["resourceNames"], rule["verbs"]) for rule in rules] == [([manifest.SECRET_NAME], ["get"])]


def test_services_may_be_written_only_where_there_are_addresses_for_them() -> None:
    def writable(settings: Settings) -> set[str]:
        rules = found("ClusterRole", settings)["rules"]
        return {each for rule in rules if rule["verbs"] != ["get"] for each in rule["resources"]}

    assert "services" not in writable(SETTINGS)
    assert {"services", "services/status"} <= writable(Settings("nutanix", "c", "{}", services=True))


def test_a_changed_configuration_is_a_new_pod_and_changed_credentials_are_not() -> None:
    def mark(settings: Settings) -> str:
        template = found("Deployment", settings)["spec"]["template"]
        return str(template["metadata"]["annotations"][CONFIG_HASH])

    assert mark(Settings("nutanix", "nutanix_config.json", '{"a": 1}')) != mark(SETTINGS)
    changed = Settings("nutanix", "nutanix_config.json", "{}", {"credentials": "[1]"})
    assert mark(changed) == mark(SETTINGS)
    assert base64.b64decode(found("Secret", changed)["data"]["credentials"]) == b"[1]"


def test_credentials_do_not_show_in_a_log() -> None:
    assert "hunter2" not in repr(Settings("nutanix", "c", "{}", {"credentials": "hunter2"}))
