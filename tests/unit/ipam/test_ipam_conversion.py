"""Pools of v1alpha1 are converted to v1alpha2 and back without loss."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.ipam import conversion
from homeport.runtime.webhook.hook import Hooks

GROUP = "ipam.cluster.x-k8s.io"


def hooks() -> Hooks:
    made = Hooks()
    conversion.register(made)
    return made


def pool(version: str, kind: str = "InClusterIPPool", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": "p"}, "spec": spec}


@pytest.mark.parametrize("kind", ["InClusterIPPool", "GlobalInClusterIPPool"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"subnet": "10.0.0.0/24", "gateway": "10.0.0.1"}, {"addresses": ["10.0.0.1-10.0.0.254"], "prefix": 24}),
        ({"subnet": "10.0.0.0/24", "start": "10.0.0.9"}, {"addresses": ["10.0.0.9-10.0.0.254"], "prefix": 24}),
        ({"subnet": "10.0.0.0/24", "prefix": 16}, {"addresses": ["10.0.0.1-10.0.0.254"], "prefix": 16}),
        ({"start": "10.0.0.5", "end": "10.0.0.9", "prefix": 24}, {"addresses": ["10.0.0.5-10.0.0.9"], "prefix": 24}),
        ({"addresses": ["10.0.0.7"], "prefix": 24}, {"addresses": ["10.0.0.7"], "prefix": 24}),
        ({"subnet": "fd00::/120"}, {"addresses": ["fd00::1-fd00::fe"], "prefix": 120}),
        ({"subnet": "nonsense"}, {"addresses": ["nonsense"]}),
    ],
)
def test_a_pool_goes_up_and_comes_back_as_it_was_written(kind: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    converted = hooks().converted(pool("v1alpha1", kind, **old), "v1alpha2")
    wanted = new | {"gateway": old["gateway"]} if "gateway" in old else new
    assert {field: value for field, value in converted["spec"].items() if value} == wanted
    back = hooks().converted(converted, "v1alpha1")
    assert {field: value for field, value in back["spec"].items() if value} == old
    assert "annotations" not in back["metadata"]


def test_what_only_the_newer_version_has_survives_a_write_in_the_older_one() -> None:
    new = pool("v1alpha2", addresses=["10.0.0.0/24"], prefix=24, excludedAddresses=["10.0.0.9"])
    old = hooks().converted(new, "v1alpha1")
    assert "excludedAddresses" not in old["spec"]
    old["spec"]["gateway"] = "10.0.0.1"
    again = hooks().converted(old, "v1alpha2")
    assert again["spec"]["excludedAddresses"] == ["10.0.0.9"]
    assert again["spec"]["gateway"] == "10.0.0.1"


def test_a_change_in_the_newer_version_is_seen_in_the_older_one() -> None:
    new = hooks().converted(pool("v1alpha1", subnet="10.0.0.0/24"), "v1alpha2")
    new["spec"]["addresses"] = ["10.0.0.20-10.0.0.30"]
    assert hooks().converted(new, "v1alpha1")["spec"]["addresses"] == ["10.0.0.20-10.0.0.30"]
