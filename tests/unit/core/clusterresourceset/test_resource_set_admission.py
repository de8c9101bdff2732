"""What a ClusterResourceSet may say."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core.clusterresourceset.admission import default, validate, validate_binding

SELECTOR = {"matchLabels": {"cni": "ours"}}


def resource_set(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"clusterSelector": SELECTOR, "resources": [], **spec}}


def faults(found: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [f"{each.field}: {each.message}" for each in validate(found, old)]


def test_a_set_is_applied_once_unless_it_says_otherwise() -> None:
    plain, other = resource_set(), resource_set(strategy="Reconcile")
    default(plain, None)
    default(other, None)
    assert (plain["spec"]["strategy"], other["spec"]["strategy"]) == ("ApplyOnce", "Reconcile")


def test_a_set_as_it_should_be_is_accepted() -> None:
    assert faults(resource_set(strategy="ApplyOnce")) == []
    assert faults(resource_set(strategy="ApplyOnce"), resource_set(strategy="ApplyOnce")) == []
    assert faults(resource_set(strategy="ApplyOnce"), resource_set()) == []  # as it was before defaults


@pytest.mark.parametrize(
    ("spec", "old", "said"),
    [
        ({"clusterSelector": {}}, None, "spec.clusterSelector: Required value"),
        ({"clusterSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}, None, "spec.clusterSelector: "),
        ({"strategy": "Reconcile"}, {"strategy": "ApplyOnce"}, 'spec.strategy: Invalid value: "Reconcile": it can\'t'),
        ({}, {"clusterSelector": {"matchLabels": {"x": "y"}}}, "spec.clusterSelector: Invalid value"),
    ],
)
def test_a_set_that_makes_no_sense_is_refused(spec: dict[str, Any], old: dict[str, Any] | None, said: str) -> None:
    (found,) = faults(resource_set(**spec), None if old is None else resource_set(**old))
    assert found.startswith(said)


def test_a_binding_stays_with_its_cluster() -> None:
    one, two = {"spec": {"clusterName": "one"}}, {"spec": {"clusterName": "two"}}
    assert [each.field for each in validate_binding(two, one)] == ["spec.clusterName"]
    assert validate_binding(one, one) == validate_binding(one, None) == []
    assert validate_binding(one, {"spec": {}}) == []
