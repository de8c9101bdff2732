"""apiVersion strings and the order of versions."""

from __future__ import annotations

import pytest

from homeport.machinery.gvk import GroupVersion, parse_api_version, version_order


def test_an_api_version_has_a_group_unless_it_is_a_core_one() -> None:
    assert parse_api_version("v1") == GroupVersion("", "v1")
    assert parse_api_version("apps/v1") == GroupVersion("apps", "v1")
    assert str(GroupVersion("apps", "v1")) == "apps/v1"
    assert str(GroupVersion("", "v1")) == "v1"


@pytest.mark.parametrize("text", ["", "a/b/c", "/v1", "a/"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="unexpected GroupVersion string"):
        parse_api_version(text)


def test_versions_are_ordered_by_maturity_then_number() -> None:
    versions = ["foo10", "v1alpha1", "v10", "v1beta2", "v2", "foo1", "v11alpha2", "v3beta1", "v1", "v12alpha1"]
    assert sorted(versions, key=version_order) == [
        "v10", "v2", "v1", "v3beta1", "v1beta2", "v12alpha1", "v11alpha2", "v1alpha1", "foo1", "foo10",
    ]  # fmt: skip


def test_zero_is_a_number_of_a_version() -> None:
    assert sorted(["foo", "v1alpha1", "v0", "v1"], key=version_order) == ["v1", "v0", "v1alpha1", "foo"]
