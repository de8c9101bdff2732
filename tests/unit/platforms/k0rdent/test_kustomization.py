"""Kustomizations of ServiceTemplates: built as kustomize does, and refused by name where that is not possible."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.helm.errors import SourceError
from homeport.machinery.manifest import parse_objects
from homeport.platforms.k0rdent.service.kustomize import build

WEB = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "registry.example.com:5000/web:1.0", env: [{name: A, value: a}]}
      - {name: side, image: side}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
"""
WHOLE = """resources: [web.yaml]
namespace: shop
labels: [{pairs: {team: blue}, includeSelectors: true}]
images: [{name: "registry.example.com:5000/web", newTag: "2.0"}]
replicas: [{name: web, count: 3}]
configMapGenerator: [{name: settings, literals: [color=red], options: {disableNameSuffixHash: true}}]
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec: {template: {spec: {containers: [{name: web, env: [{name: B, value: b}]}]}}}
- target: {kind: Service}
  patch: '[{"op": "replace", "path": "/spec/ports/0/port", "value": 8080}]'
"""


def built(**files: str) -> dict[str, Any]:
    texts = {key.replace("_", "."): text.encode() for key, text in files.items()}
    return {each["kind"]: each for each in parse_objects({"all": build(texts, "", "ConfigMap a/b")})}


def test_a_kustomization_becomes_its_objects() -> None:
    found = built(kustomization_yaml=WHOLE, web_yaml=WEB)
    spec = found["Deployment"]["spec"]
    pod = spec["template"]["spec"]
    assert (spec["replicas"], found["Deployment"]["metadata"]["namespace"]) == (3, "shop")
    assert pod["containers"][0]["image"] == "registry.example.com:5000/web:2.0"
    assert {each["name"] for each in pod["containers"][0]["env"]} == {"A", "B"}
    assert pod["containers"][1] == {"name": "side", "image": "side"}
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"] == {"app": "web", "team": "blue"}
    assert found["Service"]["spec"] == {"selector": {"app": "web", "team": "blue"}, "ports": [{"port": 8080}]}
    assert "namespace" not in found["Namespace"]["metadata"]
    assert found["ConfigMap"]["data"] == {"color": "red"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("resources: [web.yaml]\nnamePrefix: a-\n", "not supported: namePrefix"),
        ("resources: [missing.yaml]\n", "missing.yaml does not exist"),
        ("resources: ['https://example.com/a']\n", "only files of the source can be used"),
        ("resources: [web.yaml]\nconfigMapGenerator: [{name: a, literals: [b=c]}]\n", "disableNameSuffixHash"),
        ("resources: [web.yaml]\npatches: [{target: {kind: Job}, patch: '[{}]'}]\n", "no object fits"),
        ("resources: [", "kustomization.yaml"),
        ("resources: [web.yaml]\npatches: [1]\n", "is not valid"),
    ],
)
def test_what_a_kustomization_can_not_have_is_named(text: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        built(kustomization_yaml=text, web_yaml=WEB)
