"""What the definitions of the upstream provider have is in ours as well.

They are no part of the project: HOMEPORT_REFERENCE names a folder that has them in crds/nutanix. Ours let more spellings in
(see admission), so that they are compared by the paths of their fields, not by their words and limits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from homeport.providers.nutanix.definition import definitions

REFERENCE = os.environ.get("HOMEPORT_REFERENCE", "")
OURS = {crd["metadata"]["name"]: crd for crd in definitions()}


def theirs() -> list[dict[str, Any]]:
    return [yaml.safe_load(path.read_text()) for path in sorted(Path(REFERENCE).rglob("crds/nutanix/*.yaml"))]


def schema_of(crd: dict[str, Any]) -> dict[str, Any]:
    (version,) = crd["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


def missing(theirs: dict[str, Any], ours: dict[str, Any], path: str = "") -> Iterator[str]:
    """Fields of theirs that ours would prune."""
    if ours.get("x-kubernetes-preserve-unknown-fields"):
        return
    if isinstance(theirs.get("additionalProperties"), dict) and not isinstance(ours.get("additionalProperties"), dict):
        yield f"{path}.*"
    if "items" in theirs:
        yield from missing(theirs["items"], ours.get("items") or {}, f"{path}[]")
    for name, part in (theirs.get("properties") or {}).items():
        held = (ours.get("properties") or {}).get(name)
        if held is None and not isinstance(ours.get("additionalProperties"), dict):
            yield f"{path}.{name}"
        elif held is not None and path + name != "metadata":
            yield from missing(part, held, f"{path}.{name}")


@pytest.mark.skipif(not REFERENCE, reason="HOMEPORT_REFERENCE names no folder of upstream CRDs")
def test_no_field_of_the_upstream_definitions_is_lost() -> None:
    found = theirs()
    assert len(found) >= 8
    lost = {
        crd["metadata"]["name"]: list(missing(schema_of(crd), schema_of(OURS[crd["metadata"]["name"]])))
        if crd["metadata"]["name"] in OURS
        else ["the whole kind"]
        for crd in found
    }
    assert {name: fields for name, fields in lost.items() if fields} == {}


@pytest.mark.skipif(not REFERENCE, reason="HOMEPORT_REFERENCE names no folder of upstream CRDs")
def test_names_labels_and_subresources_are_the_upstream_ones() -> None:
    for crd in theirs():
        ours = OURS[crd["metadata"]["name"]]
        names = {key: value for key, value in crd["spec"]["names"].items() if key != "shortNames"}
        assert names.items() <= ours["spec"]["names"].items()
        assert set(crd["spec"]["names"].get("shortNames") or ()) <= set(ours["spec"]["names"].get("shortNames") or ())
        move = "clusterctl.cluster.x-k8s.io/move"
        assert (move in crd["metadata"].get("labels", {})) == (move in ours["metadata"]["labels"])
        assert set(crd["spec"]["versions"][0].get("subresources") or ()) <= set(
            ours["spec"]["versions"][0].get("subresources") or ()
        )


def test_a_field_that_would_be_pruned_is_found() -> None:
    reference = {"properties": {"a": {"type": "array", "items": {"properties": {"b": {}, "c": {}}}}, "d": {}}}
    mine = {"properties": {"a": {"type": "array", "items": {"properties": {"b": {}}}}}}
    assert list(missing(reference, mine)) == [".a[].c", ".d"]
