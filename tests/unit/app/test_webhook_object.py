"""What tells the API server of another cluster to ask our webhooks."""

from __future__ import annotations

from typing import Any

from homeport.app.components import COMPONENTS
from homeport.app.kubernetes.webhook import (
    hooks_of,
    hosts_of,
    injected,
    pod_labels,
    webhook_objects,
    with_conversion,
)
from homeport.app.platform import Platform
from homeport.runtime.webhook.configuration import DEFINITION, INJECT_ANNOTATION, MUTATING, VALIDATING

NAMESPACE, SERVICE = "homeport-system", "homeport-webhook"


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [each for each in objects if each["kind"] == kind]
    return found


def test_every_kind_with_hooks_is_asked_about_and_writes_fail_if_nobody_answers() -> None:
    objects = webhook_objects(COMPONENTS, NAMESPACE, SERVICE)
    validating = of_kind(objects, VALIDATING.kind)["webhooks"]
    asked = {f"{w['rules'][0]['resources'][0]}.{w['rules'][0]['apiGroups'][0]}" for w in validating}
    assert asked == {each.resource.qualified for each in hooks_of(COMPONENTS) if each.validates or each.deletions}
    assert {"kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", "tenantclusters.butler.butlerlabs.dev"} <= asked
    for webhook in [*validating, *of_kind(objects, MUTATING.kind)["webhooks"]]:
        assert webhook["failurePolicy"] == "Fail"
        assert webhook["clientConfig"]["service"]["name"] == SERVICE
        (left_out,) = webhook["namespaceSelector"]["matchExpressions"]
        assert "kube-system" in left_out["values"]


def test_replicas_are_checked_when_a_control_plane_is_scaled() -> None:
    rules = [
        r
        for w in of_kind(webhook_objects(COMPONENTS, NAMESPACE, SERVICE), VALIDATING.kind)["webhooks"]
        for r in w["rules"]
    ]
    scaled = {r["resources"][0] for r in rules if r["resources"][0].endswith("/scale")}
    assert {"kubeadmcontrolplanes/scale", "k0scontrolplanes/scale", "machinedeployments/scale"} <= scaled
    assert all(r["operations"] == ["UPDATE"] for r in rules if r["resources"][0] in scaled)


def test_the_service_selects_the_pods_of_all_replicas() -> None:
    service = of_kind(webhook_objects(COMPONENTS, NAMESPACE, SERVICE), "Service")
    assert (service["metadata"]["namespace"], service["metadata"]["name"]) == (NAMESPACE, SERVICE)
    assert service["spec"]["selector"] == pod_labels(SERVICE)
    assert f"{SERVICE}.{NAMESPACE}.svc" in hosts_of(NAMESPACE, SERVICE)


def test_a_process_outside_the_cluster_is_asked_by_its_url() -> None:
    objects = webhook_objects(COMPONENTS, NAMESPACE, SERVICE, url="https://10.0.0.5:9443")
    assert {each["kind"] for each in objects} == {MUTATING.kind, VALIDATING.kind}
    first = of_kind(objects, VALIDATING.kind)["webhooks"][0]
    assert first["clientConfig"]["url"].startswith("https://10.0.0.5:9443/validate/")
    assert hosts_of(NAMESPACE, SERVICE, "https://10.0.0.5:9443")[0] == "10.0.0.5"


def test_definitions_with_several_versions_serve_all_of_them_through_the_webhook() -> None:
    definitions = Platform(COMPONENTS).definitions()
    made = {each["metadata"]["name"]: with_conversion(each, NAMESPACE, SERVICE) for each in definitions}
    several = {name for name, each in made.items() if len(each["spec"]["versions"]) > 1}
    assert several == set(injected(definitions, NAMESPACE, SERVICE)[DEFINITION])
    converters = {f"{group}/{kind}" for group, kind in hooks_of(COMPONENTS).conversions}
    for name in several:
        spec = made[name]["spec"]
        assert f"{spec['group']}/{spec['names']['kind']}" in converters, name
        assert all(version["served"] for version in spec["versions"])
        assert spec["conversion"]["webhook"]["clientConfig"]["service"]["path"] == "/convert"
        assert made[name]["metadata"]["annotations"][INJECT_ANNOTATION] == f"{NAMESPACE}/{SERVICE}"
    assert all("conversion" not in each["spec"] for name, each in made.items() if name not in several)


def test_templates_stay_immutable_in_every_version() -> None:
    (crd,) = [
        each
        for each in Platform(COMPONENTS).definitions()
        if each["spec"]["names"]["kind"] == "KubeadmControlPlaneTemplate"
    ]
    for version in with_conversion(crd, NAMESPACE, SERVICE)["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["template"]["properties"][
            "spec"
        ]
        assert "self == oldSelf" in [rule["rule"] for rule in spec["x-kubernetes-validations"]]
