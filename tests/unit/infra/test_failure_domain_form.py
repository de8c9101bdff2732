"""Failure domains in the form that the InfraCluster kind has."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from homeport.infra.cluster.failuredomain import render_failure_domains
from homeport.infra.protocol import FailureDomain

DOMAINS = [FailureDomain("a", True, {"cluster": "x"}), FailureDomain("b", False)]


class MapForm(msgspec.Struct):
    failure_domains: Annotated[dict[str, Any], "loose"] = {}


class ListForm(msgspec.Struct):
    failure_domains: Annotated[list[dict[str, Any]], "loose"] = []


class Optional(msgspec.Struct):
    failure_domains: list[dict[str, Any]] | None = None


def test_a_kind_with_a_map_gets_them_by_name() -> None:
    wanted = {"a": {"controlPlane": True, "attributes": {"cluster": "x"}}, "b": {"controlPlane": False}}
    assert render_failure_domains(DOMAINS, MapForm) == wanted


def test_a_kind_with_a_list_gets_them_as_a_list() -> None:
    wanted = [
        {"name": "a", "controlPlane": True, "attributes": {"cluster": "x"}},
        {"name": "b", "controlPlane": False},
    ]
    assert render_failure_domains(DOMAINS, ListForm) == wanted
    assert render_failure_domains(DOMAINS, Optional) == wanted
