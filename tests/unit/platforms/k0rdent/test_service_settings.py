"""Options of services: what they become, and which ones have no effect."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from homeport.api.k0rdent.v1beta1.service import ServiceSpec
from homeport.platforms.k0rdent.service.settings import disables_hooks, provider_config, read_settings, without_effect


def spec(**fields: Any) -> ServiceSpec:
    return msgspec.convert(fields, ServiceSpec)


def test_objects_of_drift_ignore_may_change_in_everything_but_their_metadata() -> None:
    ignored = [{"group": "apps", "version": "v1", "kind": "Deployment", "name": "web"}, {"kind": "ConfigMap"}]
    found = read_settings(provider_config(spec(driftIgnore=ignored))).exclusions
    assert [(each["kind"], each.get("name"), each.get("apiVersion")) for each in found] == [
        ("Deployment", "web", "apps/v1"),
        ("ConfigMap", None, None),
    ]
    assert all({"/spec", "/data"} <= set(each["paths"]) for each in found)
    assert not [path for each in found for path in each["paths"] if path.startswith("/metadata")]


@pytest.mark.parametrize("entry", [{"kind": "Deployment", "labelSelector": "app=web"}, {"name": "web"}])
def test_drift_ignore_that_chooses_objects_otherwise_is_warned_about(entry: dict[str, Any]) -> None:
    given = spec(driftIgnore=[{"kind": "ConfigMap"}, entry])
    assert without_effect(given) == ["serviceSpec.driftIgnore[1]"]
    assert len(read_settings(provider_config(given)).exclusions) == 1


def test_options_that_have_no_effect_are_named() -> None:
    options = {"skipCRDs": True, "disableHooks": True, "timeout": "5m", "atomic": True, "labels": {"a": "b"}}
    service = {"name": "web", "namespace": "apps", "template": "web-1", "helmOptions": options}
    assert without_effect(spec(services=[service], reload=True)) == [
        "serviceSpec.reload",
        "serviceSpec.services[0].helmOptions.atomic",
        "serviceSpec.services[0].helmOptions.labels",
    ]


@pytest.mark.parametrize(
    ("options", "disabled"),
    [
        ({"disableHooks": True}, True),
        ({"installOptions": {"disableHooks": True}, "upgradeOptions": {"disableHooks": True}}, True),
        ({"installOptions": {"disableHooks": True}}, False),
        ({}, False),
    ],
)
def test_hooks_are_disabled_for_all_operations_or_for_none(options: dict[str, Any], disabled: bool) -> None:
    assert disables_hooks(options) is disabled
