from __future__ import annotations

import pytest

from homeport.capi import version
from homeport.capi.version import is_at, minor_distance, parse, same


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("v1.31.2", "v1.31.10"),
        ("v1.31.10", "1.32.0"),
        ("v1.32.0-alpha.1", "v1.32.0-alpha.2"),
        ("v1.32.0-alpha.2", "v1.32.0-alpha.11"),
        ("v1.32.0-alpha.11", "v1.32.0-alpha.beta"),
        ("v1.32.0-rc.1", "v1.32.0"),
        ("v1.99.0", "v2.0.0"),
    ],
)
def test_versions_order_as_semantic_versions_do(older: str, newer: str) -> None:
    assert parse(older) < parse(newer)
    assert parse(newer) > parse(older)
    assert parse(older) != parse(newer)


def test_build_tags_make_no_order_but_another_version_to_install() -> None:
    assert parse("v1.31.2+a.1") == parse("v1.31.2+a.2")
    assert not same("v1.31.2+a.1", "v1.31.2+a.2")
    assert parse("v1.31.2+a.2").build_key < parse("v1.31.2+a.10").build_key
    assert same("1.31.2", "v1.31.2")


@pytest.mark.parametrize("text", ["", "v1", "v1.31", "v1.31.x", "1.31.02", "v1.31.2 ", "latest"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    assert not version.is_valid(text)
    with pytest.raises(ValueError, match=r"for example v1\.32\.4"):
        parse(text)


def test_the_distance_counts_minor_versions() -> None:
    assert minor_distance("v1.29.1", "v1.31.0") == 2
    assert minor_distance("v1.31.0", "v1.29.1") == -2
    with pytest.raises(ValueError, match="different major"):
        minor_distance("v1.31.0", "v2.0.0")


def test_a_version_is_written_with_v() -> None:
    assert str(parse("1.31.2")) == "v1.31.2"
    assert parse("1.31.2").line == (1, 31)


@pytest.mark.parametrize(
    ("kubelet", "wanted", "found"),
    [
        ("v1.29.2", "v1.29.2", True),
        ("v1.29.2+k0s", "v1.29.2+k0s.0", True),
        ("v1.29.2+k0s", "v1.29.2+k0s.1", True),
        ("v1.29.2+k0s", "v1.29.3+k0s.0", False),
        ("v1.29.2", "v1.29.2+k0s.0", False),
        ("v1.29.2+rke2r1", "v1.29.2+rke2r2", False),
        ("", "v1.29.2", False),
    ],
)
def test_a_kubelet_of_k0s_reports_no_number_of_its_build(kubelet: str, wanted: str, found: bool) -> None:
    assert is_at(kubelet, wanted) is found
