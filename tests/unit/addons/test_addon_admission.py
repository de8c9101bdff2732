"""ClusterAddons that can't work are refused at once, with the field."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.addons.admission import validate, warn

INLINE = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
MANIFESTS = [{"inline": INLINE}]


def made(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "app"}, "spec": {"clusterName": "one", **spec}}


def fields(found: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(each.field) for each in validate(found, old)]


@pytest.mark.parametrize(
    "spec",
    [
        {"manifests": MANIFESTS},
        {"manifests": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}]},
        {"addon": "cilium"},
        {"addon": "cilium", "version": "1.19.x", "values": {"a": 1}, "valuesFrom": [{"secretRef": {"name": "b"}}]},
        {"addon": "metallb", "parameters": {"addresses": ["10.0.0.0/24"]}},
        {"chart": {"repository": "https://charts.example.com", "name": "web"}, "version": "1.2.3"},
        {"chart": {"repository": "oci://registry.example.com/charts/web"}, "version": "1.2.x"},
        {"chart": {"repository": "http://mirror.local", "name": "web", "insecureHTTP": True}, "version": "1.2.3"},
        {"clusterName": "", "clusterSelector": {"matchLabels": {"a": "b"}}, "addon": "cilium"},
    ],
)
def test_what_works_is_let_in(spec: dict[str, Any]) -> None:
    assert validate(made(**spec), None) == []


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.addon"),
        ({"addon": "cilium", "manifests": MANIFESTS}, "spec.addon"),
        ({"clusterName": "", "addon": "cilium"}, "spec.clusterName"),
        ({"clusterSelector": {"matchLabels": {"a": "b"}}, "addon": "cilium"}, "spec.clusterName"),
        (
            {
                "clusterName": "",
                "clusterSelector": {"matchExpressions": [{"key": "a", "operator": "Ni"}]},
                "addon": "cilium",
            },
            "spec.clusterSelector",
        ),
        ({"addon": "metalb"}, "spec.addon"),
        ({"addon": "metallb"}, "spec.parameters.addresses"),
        ({"addon": "cilium", "parameters": {"hubbel": True}}, "spec.parameters.hubbel"),
        ({"addon": "cilium", "version": "9.9.x"}, "spec.version"),
        ({"addon": "cilium", "dependsOn": [{"name": "x"}, {"name": "app"}]}, "spec.dependsOn[1].name"),
        ({"addon": "cilium", "valuesTemplate": "{{ .Facts.name"}, "spec.valuesTemplate"),
        ({"addon": "cilium", "valuesFrom": [{}]}, "spec.valuesFrom[0]"),
        ({"manifests": [{}]}, "spec.manifests[0]"),
        ({"manifests": [{"inline": INLINE, "secretRef": {"name": "a"}}]}, "spec.manifests[0]"),
        ({"manifests": [{"inline": "kind: Pod"}]}, "spec.manifests[0].inline"),
        ({"manifests": [{"inline": "{{ if }}", "template": True}]}, "spec.manifests[0].inline"),
        ({"manifests": MANIFESTS, "values": {"a": 1}}, "spec.values"),
        ({"chart": {"repository": "https://charts.example.com"}, "version": "1.2.3"}, "spec.chart.name"),
        ({"chart": {"repository": "https://charts.example.com", "name": "web"}}, "spec.version"),
        (
            {"chart": {"repository": "http://charts.example.com", "name": "web"}, "version": "1.2.3"},
            "spec.chart.repository",
        ),
    ],
)
def test_what_can_not_work_is_refused_with_its_field(spec: dict[str, Any], field: str) -> None:
    assert fields(made(**spec)) == [field]


def test_an_unknown_add_on_is_refused_with_what_was_meant() -> None:
    (cause,) = validate(made(addon="cert-manger"), None)
    assert "did you mean cert-manager?" in cause.message


def test_the_cluster_of_an_add_on_stays() -> None:
    assert fields(made(addon="cilium", clusterName="two"), made(addon="cilium")) == ["spec.clusterName"]


def test_an_add_on_that_is_being_deleted_can_be_changed_whatever_is_wrong_with_it() -> None:
    old = made(addon="gone-from-the-catalogue")
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert validate(old, old) == []


def test_a_version_outside_of_the_list_is_a_warning() -> None:
    (text,) = warn(made(addon="cilium", version="1.19.99"), None)
    assert text.startswith("spec.version: the catalogue has no version 1.19.99 of cilium")
    assert warn(made(addon="cilium", version="1.19.6"), None) == []
