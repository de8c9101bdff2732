"""How the services of one cluster are kept: read from a ServiceSpec, and carried by the ServiceSet. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.k0rdent.v1beta1.service import HelmOptions, ServiceSpec
from homeport.api.meta import wire

Json = dict[str, Any]

PRIORITY = 100
CONTINUOUS, WITH_DRIFT, ONE_TIME, DRY_RUN = "Continuous", "ContinuousWithDriftDetection", "OneTime", "DryRun"
# Fields of a ServiceSpec that a ServiceSet has in the configuration of its provider.
_FLAT = ("syncMode", "priority", "stopOnConflict", "continueOnError", "driftExclusions", "driftIgnore")
_WITHOUT_EFFECT = ("reload", "policyRefs", "templateResourceRefs")
# What objects have besides metadata and status: an object of driftIgnore may change in all of it.
_CONTENT = (
    *("/spec", "/data", "/stringData", "/binaryData", "/type", "/immutable", "/rules", "/aggregationRule", "/subjects"),
    *("/roleRef", "/webhooks", "/secrets", "/imagePullSecrets", "/automountServiceAccountToken", "/value"),
    *("/provisioner", "/parameters", "/reclaimPolicy", "/allowVolumeExpansion", "/mountOptions"),
)
_USED_OPTIONS = frozenset(
    {"timeout", "createNamespace", "installOptions", "upgradeOptions", "wait", "waitForJobs", "dependencyUpdate"}
    | {"skipCRDs", "disableHooks"}
)
_DURATION = re.compile(r"([0-9]+(h|m|s))+")


@dataclass(frozen=True, slots=True)
class Settings:
    sync_mode: str = CONTINUOUS
    priority: int = PRIORITY
    stop_on_conflict: bool = False
    continue_on_error: bool = False
    exclusions: tuple[Json, ...] = ()  # drift that is ignored, as a ClusterAddon has it


def provider_config(spec: ServiceSpec) -> Json:
    """What the ServiceSet carries: the configuration of the provider wins over the older fields."""
    flat = {key: value for key, value in wire(spec).items() if key in _FLAT}
    return {**flat, **spec.provider.config}


def without_effect(spec: ServiceSpec) -> list[str]:
    """Fields that are set and that nothing acts on."""
    given = {**wire(spec), **spec.provider.config}
    found = [f"serviceSpec.{each}" for each in _WITHOUT_EFFECT if given.get(each)]
    listed = given.get("driftIgnore")
    found += [
        f"serviceSpec.driftIgnore[{i}]"
        for i, each in enumerate(listed if isinstance(listed, list) else ())
        if _ignored(each) is None
    ]
    for i, service in enumerate(spec.services):
        options = wire(service.helm_options) if service.helm_options is not None else {}
        found += [f"serviceSpec.services[{i}].helmOptions.{each}" for each in sorted(set(options) - _USED_OPTIONS)]
    return found


def read_settings(config: Mapping[str, Any]) -> Settings:
    """Of the provider of a ServiceSet. What is not of the expected type counts as not written."""
    priority = config.get("priority")
    mode = config.get("syncMode")
    return Settings(
        sync_mode=mode if mode in (CONTINUOUS, WITH_DRIFT, ONE_TIME, DRY_RUN) else CONTINUOUS,
        priority=priority if isinstance(priority, int) and not isinstance(priority, bool) else PRIORITY,
        stop_on_conflict=config.get("stopOnConflict") is True,
        continue_on_error=config.get("continueOnError") is True,
        exclusions=(*_exclusions(config.get("driftExclusions")), *_ignorances(config.get("driftIgnore"))),
    )


def _exclusions(given: Any) -> list[Json]:
    found = []
    for each in given if isinstance(given, list) else ():
        target = each.get("target") if isinstance(each, Mapping) else None
        paths = each.get("paths") if isinstance(each, Mapping) else None
        if not isinstance(target, Mapping) or not target.get("kind") or not isinstance(paths, list):
            continue
        kept = {key: str(target[key]) for key in ("kind", "namespace", "name") if target.get(key)}
        found.append({**kept, "paths": [str(path) for path in paths]})
    return found


def _ignorances(given: Any) -> list[Json]:
    return [found for each in (given if isinstance(given, list) else ()) if (found := _ignored(each)) is not None]


def _ignored(given: Any) -> Json | None:
    """Objects that others may change in every field. None: they are not named, but chosen by labels or annotations."""
    if not isinstance(given, Mapping) or not given.get("kind"):
        return None
    if given.get("labelSelector") or given.get("annotationSelector"):
        return None
    made: Json = {key: str(given[key]) for key in ("kind", "namespace", "name") if given.get(key)}
    if given.get("version"):
        made["apiVersion"] = "/".join(str(given[key]) for key in ("group", "version") if given.get(key))
    return {**made, "paths": list(_CONTENT)}


def disables_hooks(options: Mapping[str, Any]) -> bool:
    """For installations and upgrades alike: a ClusterAddon does not tell them apart."""
    both = [(options.get(each) or {}).get("disableHooks") for each in ("installOptions", "upgradeOptions")]
    return bool(options.get("disableHooks") or all(both))


def merged_options(template: HelmOptions | None, service: HelmOptions | None) -> Json:
    """The service wins over its template."""
    below = wire(template) if template is not None else {}
    return {**below, **(wire(service) if service is not None else {})}


def timeout_of(options: Mapping[str, Any]) -> str:
    text = str(options.get("timeout") or "")
    return text if _DURATION.fullmatch(text) else ""


def takes_ownership(options: Mapping[str, Any]) -> bool:
    return any((options.get(each) or {}).get("takeOwnership") for each in ("installOptions", "upgradeOptions"))


def creates_namespace(options: Mapping[str, Any]) -> bool:
    install = options.get("installOptions") or {}
    return install.get("createNamespace", options.get("createNamespace", True)) is not False
