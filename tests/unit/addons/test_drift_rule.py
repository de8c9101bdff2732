"""Fields that others may change keep the value that they have."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.addons.target.drift import kept
from homeport.api.addon.v1alpha1 import DriftRule


def obj(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("paths", "desired", "live", "result"),
    [
        (["/spec/replicas"], {"replicas": 1}, {"replicas": 5}, {"replicas": 5}),
        (["/spec/replicas"], {}, {"replicas": 5}, {"replicas": 5}),
        (["/spec/replicas"], {"replicas": 1}, {}, {}),
        (["/spec/a/b"], {"x": 1}, {"a": {"b": 2, "c": 3}}, {"x": 1, "a": {"b": 2}}),
        (["/spec/a/b"], {"x": 1}, {"x": 2}, {"x": 1}),
        (["/spec/l/1/v"], {"l": [{"v": 1}, {"v": 1}]}, {"l": [{"v": 9}, {"v": 8}]}, {"l": [{"v": 1}, {"v": 8}]}),
        (["/spec/l/7"], {"l": [1]}, {"l": [2]}, {"l": [1]}),
        (["/spec/k~1e~0y"], {"k/e~y": 1}, {"k/e~y": 2}, {"k/e~y": 2}),
    ],
)
def test_the_live_value_of_a_path_is_kept(
    paths: list[str], desired: dict[str, Any], live: dict[str, Any], result: dict[str, Any]
) -> None:
    before = obj(**desired)
    assert kept(before, obj(**live), [DriftRule(kind="Deployment", paths=paths)])["spec"] == result
    assert before == obj(**desired), "what is given stays as it is"


@pytest.mark.parametrize(
    "rule",
    [
        DriftRule(kind="DaemonSet", paths=["/spec/replicas"]),
        DriftRule(kind="Deployment", name="other", paths=["/spec/replicas"]),
        DriftRule(kind="Deployment", namespace="b", paths=["/spec/replicas"]),
        DriftRule(kind="Deployment", api_version="apps/v2", paths=["/spec/replicas"]),
    ],
)
def test_a_rule_is_for_the_objects_that_it_names(rule: DriftRule) -> None:
    assert kept(obj(replicas=1), obj(replicas=5), [rule]) == obj(replicas=1)
