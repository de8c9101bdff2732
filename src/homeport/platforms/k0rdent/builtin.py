"""Objects of k0rdent's kinds that Homeport brings along: the release, its templates, interfaces of providers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.k0rdent.v1beta1 import (
    GROUP,
    VERSION,
    AccessManagement,
    ClusterTemplate,
    Management,
    ProviderInterface,
    ProviderTemplate,
    Release,
)
from homeport.api.meta import Resource
from homeport.capi.name import STAYS_LABEL
from homeport.platforms.k0rdent.catalogue import CLUSTER_CHARTS, PROVIDER_CHARTS, VENDORS, ProviderChart
from homeport.platforms.k0rdent.name import (
    COMPONENT,
    COMPONENT_LABEL,
    KNOWN_PROVIDERS,
    MANAGED,
    MANAGEMENT,
    PROVIDER_LABEL,
    REPOSITORY,
    SYSTEM_NAMESPACE,
)

Json = dict[str, Any]

RELEASE_VERSION = "1.2.0"
_FIRST_PROVIDERS = ("k0smotron", "nutanix")  # of planes that are older than the annotation
RELEASE = f"kcm-{RELEASE_VERSION.replace('.', '-')}"


def initial_objects() -> list[tuple[Resource, Json]]:
    """There before the first request. Users change the first two; the controllers keep the others as they are."""
    charts = PROVIDER_CHARTS.values()
    providers = [{"name": each.provider} for each in charts if each.provider]
    return [
        _management(providers),
        _object(AccessManagement, MANAGEMENT, {}),
        *release_objects(),
        *(each for chart in charts for each in provider_objects(chart)),
    ]


def _management(providers: list[Json]) -> tuple[Resource, Json]:
    kind, body = _object(Management, MANAGEMENT, {"release": RELEASE, "providers": providers})
    body["metadata"]["annotations"] = {KNOWN_PROVIDERS: ",".join(each["name"] for each in providers)}
    return kind, body


def known_providers(annotations: Mapping[str, str]) -> list[str]:
    """Names of the providers that a Management had when it was created, or that were added to it later."""
    held = annotations.get(KNOWN_PROVIDERS)
    return list(_FIRST_PROVIDERS) if held is None else [each for each in held.split(",") if each]


def release_objects() -> list[tuple[Resource, Json]]:
    """In the order in which they are applied."""
    return [
        *(_object(ProviderTemplate, template_name(each), _chart(each)) for each in PROVIDER_CHARTS.values()),
        _release(),
    ]


def template_name(chart: ProviderChart) -> str:
    return f"{chart.name}-{chart.version.replace('.', '-')}"


def provider_objects(chart: ProviderChart) -> list[tuple[Resource, Json]]:
    """What an enabled provider adds, of k0rdent's kinds."""
    vendor = next((each for each in VENDORS if each.provider in chart.providers), None)
    if vendor is None:
        return []
    interface = _object(
        ProviderInterface,
        f"cluster-api-provider-{vendor.name}",
        {
            "description": chart.description,
            "clusterIdentities": [{"group": "", "version": "v1", "kind": "Secret"}],
        },
        {PROVIDER_LABEL: vendor.provider},
    )
    templates = [
        _object(ClusterTemplate, each.name, {"helm": _helm(each.name, each.version)})
        for each in CLUSTER_CHARTS.values()
        if vendor.provider in each.providers
    ]
    return [interface, *templates]


def _release() -> tuple[Resource, Json]:
    charts = PROVIDER_CHARTS.values()
    spec = {
        "version": RELEASE_VERSION,
        "kcm": {"template": template_name(PROVIDER_CHARTS["kcm"])},
        "capi": {"template": template_name(PROVIDER_CHARTS["cluster-api"])},
        "providers": [{"name": each.provider, "template": template_name(each)} for each in charts if each.provider],
    }
    return _object(Release, RELEASE, spec)


def _chart(chart: ProviderChart) -> Json:
    return {"helm": _helm(chart.name, chart.version)}


def _helm(name: str, version: str) -> Json:
    source = {"kind": "HelmRepository", "name": REPOSITORY}
    return {"chartSpec": {"chart": name, "version": version, "sourceRef": source, "interval": "10m"}}


def _object(cls: Any, name: str, spec: Json, labels: Json | None = None) -> tuple[Resource, Json]:
    at: Resource = cls.__resource__
    meta: Json = {"name": name, "labels": {COMPONENT_LABEL: COMPONENT, **MANAGED, STAYS_LABEL: "", **(labels or {})}}
    if at.namespaced:
        meta["namespace"] = SYSTEM_NAMESPACE
    return at, {"apiVersion": f"{GROUP}/{VERSION}", "kind": at.kind, "metadata": meta, "spec": spec}
