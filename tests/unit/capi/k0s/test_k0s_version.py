"""Versions of k0s, in either spelling."""

from __future__ import annotations

import itertools

import pytest

from homeport.capi.k0s import version as k0sversion

ORDERED = (
    "v1.31.9+k0s.0",
    "v1.32.0-rc.1+k0s.0",
    "v1.32.0+k0s.0",
    "v1.32.0+k0s.1",
    "v1.32.0-k0s.10",
    "v1.32.2",
    "v1.32.10-k0s.0",
    "v1.33.0+k0s.0",
)


@pytest.mark.parametrize(
    ("text", "tag", "shown"),
    [
        ("v1.33.4+k0s.0", "v1.33.4-k0s.0", "v1.33.4+k0s.0"),
        ("v1.33.4-k0s.2", "v1.33.4-k0s.2", "v1.33.4+k0s.2"),
        ("1.33.4+k0s.0", "v1.33.4-k0s.0", "v1.33.4+k0s.0"),
        ("v1.33.4", "v1.33.4-k0s.0", "v1.33.4+k0s.0"),
        ("v1.33.0-rc.1+k0s.0", "v1.33.0-rc.1-k0s.0", "v1.33.0-rc.1+k0s.0"),
        ("v1.33.0-rc.1-k0s.0", "v1.33.0-rc.1-k0s.0", "v1.33.0-rc.1+k0s.0"),
        ("v1.33.0-alpha.2", "v1.33.0-alpha.2-k0s.0", "v1.33.0-alpha.2+k0s.0"),
    ],
)
def test_a_version_has_a_tag_and_a_name(text: str, tag: str, shown: str) -> None:
    version = k0sversion.parse(text)
    assert (version.tag, str(version)) == (tag, shown)
    assert k0sversion.parse(tag) == version == k0sversion.parse(shown)


def test_both_spellings_and_a_missing_suffix_are_the_same_version() -> None:
    assert k0sversion.same("v1.33.4+k0s.0", "v1.33.4-k0s.0")
    assert k0sversion.same("v1.33.4", "v1.33.4-k0s.0")
    assert not k0sversion.same("v1.33.4+k0s.0", "v1.33.4+k0s.1")
    assert len({k0sversion.parse("v1.33.4+k0s.0"), k0sversion.parse("v1.33.4-k0s.0")}) == 1


def test_versions_are_ordered_by_kubernetes_and_then_by_the_build() -> None:
    versions = [k0sversion.parse(text) for text in ORDERED]
    assert max(versions) == versions[-1]
    assert all(a < b and b > a and a <= b for a, b in itertools.pairwise(versions))
    assert k0sversion.parse("v1.33.4+k0s.0") <= k0sversion.parse("v1.33.4-k0s.0")


@pytest.mark.parametrize(
    "text", ["", "v1.33", "latest", "v1.33.4+k0s", "v1.33.4+rke2r1", "v1.33.4+k0s.0 ", "v1.33.4+k0s.x"]
)
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    assert not k0sversion.is_valid(text)
    with pytest.raises(ValueError, match=r"v1\.33\.4\+k0s\.0"):
        k0sversion.parse(text)


def test_a_version_knows_whether_its_build_was_written() -> None:
    assert k0sversion.parse("v1.33.4-k0s.0").suffixed
    assert not k0sversion.parse("v1.33.4").suffixed
    assert k0sversion.parse("v1.33.4+k0s.0").line == (1, 33)
