"""The definitions of k0smotron's kinds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from homeport.hosted.k0smotron.definition import definitions
from homeport.machinery import yaml
from unit.capi.test_definition import plain

DEFINITIONS = definitions()
NAMES = [crd["spec"]["names"]["kind"] for crd in DEFINITIONS]
REFERENCE = os.environ.get("HOMEPORT_REFERENCE", "")
# Parts of a Pod and of a claim: here the API server that gets them checks them.
OPEN = ("mounts", "manifests", "topologySpreadConstraints", "persistentVolumeClaim")


def names(schema: Any) -> Any:
    """A schema without the inside of what is left open."""
    if isinstance(schema, dict):
        return {name: names(part) if name not in OPEN else None for name, part in schema.items()}
    return [names(each) for each in schema] if isinstance(schema, list) else schema


def test_cluster_and_token_have_short_names_and_control_planes_a_scale() -> None:
    found = {crd["spec"]["names"]["kind"]: crd for crd in DEFINITIONS}
    assert found["Cluster"]["spec"]["names"]["shortNames"] == ["kmc"]
    assert found["JoinTokenRequest"]["spec"]["names"]["shortNames"] == ["jtr"]
    for kind in ("Cluster", "K0smotronControlPlane"):
        for version in found[kind]["spec"]["versions"]:
            assert version["subresources"]["scale"]["specReplicasPath"] == ".spec.replicas"
    labels = found["K0smotronControlPlane"]["metadata"]["labels"]
    assert (labels["cluster.x-k8s.io/v1beta1"], labels["cluster.x-k8s.io/v1beta2"]) == ("v1beta1", "v1beta2")


@pytest.mark.parametrize("crd", DEFINITIONS, ids=NAMES)
def test_only_the_newest_version_is_stored(crd: dict[str, Any]) -> None:
    stored = {version["name"]: version["storage"] for version in crd["spec"]["versions"]}
    assert stored == {"v1beta1": False, "v1beta2": True}


@pytest.mark.parametrize("crd", DEFINITIONS, ids=NAMES)
def test_every_field_is_described(crd: dict[str, Any]) -> None:
    for version in crd["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        assert list(undescribed(schema["properties"]["spec"], "spec")) == []
        if "status" in schema["properties"]:
            assert list(undescribed(schema["properties"]["status"], "status")) == []


def undescribed(schema: dict[str, Any], path: str) -> Any:
    if not schema.get("description") and not path.endswith("]"):
        yield path
    for name, part in (schema.get("properties") or {}).items():
        if name != "conditions":
            yield from undescribed(part, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from undescribed(schema["items"], f"{path}[]")


@pytest.mark.skipif(not REFERENCE, reason="HOMEPORT_REFERENCE names no folder of upstream CRDs")
@pytest.mark.parametrize("crd", DEFINITIONS, ids=NAMES)
def test_a_definition_is_the_upstream_one_but_for_its_words(crd: dict[str, Any]) -> None:
    spec = crd["spec"]
    [path] = Path(REFERENCE).rglob(f"k0smotron/{spec['group']}_{spec['names']['plural']}.yaml")
    theirs = plain(yaml.load(path.read_text())["spec"])
    ours = plain(spec)
    del ours["names"]["categories"]
    for version in (*theirs["versions"], *ours["versions"]):
        age = [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
        version.setdefault("additionalPrinterColumns", age)
    assert names(ours) == names(theirs)
