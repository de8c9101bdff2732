"""The definitions of the k0s kinds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from homeport.capi.k0s.definition import definitions
from homeport.capi.name import BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP
from homeport.machinery import yaml
from unit.capi.test_definition import plain
from unit.hosted.k0smotron.test_k0smotron_definition import undescribed

DEFINITIONS = [*definitions(BOOTSTRAP_GROUP), *definitions(CONTROL_PLANE_GROUP)]
NAMES = [crd["spec"]["names"]["kind"] for crd in DEFINITIONS]
REFERENCE = os.environ.get("HOMEPORT_REFERENCE", "")


def test_all_kinds_are_defined() -> None:
    assert NAMES == [
        "K0sWorkerConfig",
        "K0sWorkerConfigTemplate",
        "K0sControllerConfig",
        "K0sControlPlane",
        "K0sControlPlaneTemplate",
    ]
    for crd in DEFINITIONS:
        labels = crd["metadata"]["labels"]
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
    assert ours == theirs
