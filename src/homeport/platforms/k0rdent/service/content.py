"""What a service is made of, as a ClusterAddon of the cluster's namespace can name it.

A ClusterAddon reads objects of its own namespace alone. What a MultiClusterService brings from kcm-system is copied:
charts, manifests and values, which the cluster gets anyway; never an account of a repository.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeport.addons.source import ALL_KEYS
from homeport.api.k0rdent.v1beta1 import ServiceSet, ServiceTemplate
from homeport.api.k0rdent.v1beta1.multicluster import ServiceWithValues
from homeport.api.k0rdent.v1beta1.template import SourceSpec
from homeport.client.protocol import Key
from homeport.helm.errors import SourceError
from homeport.helm.source.archive import pack
from homeport.helm.source.held import ARCHIVES
from homeport.platforms.k0rdent.name import MANAGED, SYSTEM_NAMESPACE
from homeport.platforms.k0rdent.service.kustomize import build
from homeport.platforms.k0rdent.source import Holder, Origin, Sources

Json = dict[str, Any]
_REFS = {"ConfigMap": "configMapRef", "Secret": "secretRef"}
_LARGEST = 1 << 20  # bytes of a Secret


@dataclass(slots=True)
class Content:
    """Parts of a ClusterAddon's spec, and Secrets that it reads: key > content by the end of their names."""

    spec: Json = field(default_factory=dict)
    values_from: list[Json] = field(default_factory=list)
    copies: dict[str, dict[str, bytes]] = field(default_factory=dict)


def place_of_sources(template: ServiceTemplate, original: ServiceTemplate | None) -> str:
    """The namespace in which the sources of a template are. `original`: the template of this name in kcm-system.

    A copy that AccessManagement made is the same as its original, whose sources stay in kcm-system.
    """
    if original is not None and MANAGED.items() <= template.metadata.labels.items():
        if original.spec == template.spec:
            return SYSTEM_NAMESPACE
    return template.metadata.namespace


def home_of(owner: ServiceSet) -> str:
    """The namespace in which templates, chains and values of the services are looked for."""
    return SYSTEM_NAMESPACE if owner.spec.multi_cluster_service else owner.metadata.namespace


class Contents:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    async def find(
        self, owner: ServiceSet, service: ServiceWithValues, template: ServiceTemplate, addon: str, place: str
    ) -> Content:
        """`place`: the namespace of the template's sources. Raises SourceError."""
        made = Content()
        namespace = owner.metadata.namespace
        if template.spec.helm is not None:
            await self._chart(made, template, place, namespace, addon)
            await self._values(made, service, home_of(owner), namespace, addon)
        elif template.spec.resources is not None:
            await self._manifests(made, template.spec.resources, place, namespace, addon)
        elif template.spec.kustomize is not None:
            holder = await manifest_holder(self._sources, template.spec.kustomize, place, "spec.kustomize")
            files = await self._sources.files(holder, whole=True)
            _copied(made, addon, "manifests", {"manifests.yaml": build(files, holder.path, str(holder))})
            made.spec["manifests"] = [{"secretRef": {"name": copy_name(addon, "manifests")}}]
        return made

    # -- charts ------------------------------------------------------------------------------------------------

    async def _chart(self, made: Content, template: ServiceTemplate, place: str, namespace: str, addon: str) -> None:
        origin = await self._sources.find(template.spec.helm, place)
        if origin.holder is not None:
            made.spec["chart"] = await self._held(made, origin.holder, namespace, addon)
            return
        made.spec["version"] = template.status.chart_version
        if is_direct(origin, namespace):
            secret = origin.secret or origin.authority
            made.spec["chart"] = {
                "repository": origin.repository,
                "name": origin.chart,
                **({"insecureHTTP": True} if origin.plain_http else {}),
                **({"credentialsRef": {"name": secret.name}} if secret is not None else {}),
            }
            return
        fetched = await self._sources.fetch(origin)
        if fetched.archive is None:
            raise SourceError(f"chart {fetched.location}: it is not an archive: package it")
        _copied(made, addon, "chart", {"chart.tgz": fetched.archive})
        made.spec["chart"] = {"secretRef": {"name": copy_name(addon, "chart")}}

    async def _held(self, made: Content, holder: Holder, namespace: str, addon: str) -> Json:
        if holder.checkout is not None:
            archive = pack(holder.path.strip("/").rpartition("/")[2] or "chart", await self._sources.files(holder))
            _copied(made, addon, "chart", {"chart.tgz": archive})
            return {"secretRef": {"name": copy_name(addon, "chart")}}
        path = {"path": holder.path} if holder.path else {}
        if holder.key.namespace == namespace:
            return {_REFS[holder.kind]: {"name": holder.key.name}, **path}
        _copied(made, addon, "chart", await self._sources.files(holder))
        return {"secretRef": {"name": copy_name(addon, "chart")}, **path}

    # -- manifests and values ----------------------------------------------------------------------------------

    async def _manifests(self, made: Content, source: SourceSpec, place: str, namespace: str, addon: str) -> None:
        holder = await manifest_holder(self._sources, source, place, "spec.resources")
        found = manifests_of(holder, await self._sources.files(holder))
        if any(key.endswith(ARCHIVES) for key in found):
            raise SourceError(f"{holder}: manifests are expected as keys, not as an archive")
        if holder.key.namespace == namespace and holder.checkout is None:
            made.spec["manifests"] = [{_REFS[holder.kind]: {"name": holder.key.name}}]
            return
        _copied(made, addon, "manifests", found)
        made.spec["manifests"] = [{"secretRef": {"name": copy_name(addon, "manifests")}}]

    async def _values(self, made: Content, service: ServiceWithValues, home: str, namespace: str, addon: str) -> None:
        for i, each in enumerate(service.values_from):
            if home == namespace:
                made.values_from.append({_REFS[each.kind]: {"name": each.name}, "key": ALL_KEYS})
                continue
            holder = Holder(each.kind, Key(home, each.name))
            _copied(made, addon, f"values-{i}", await self._sources.files(holder))
            made.values_from.append({"secretRef": {"name": copy_name(addon, f"values-{i}")}, "key": ALL_KEYS})


async def manifest_holder(sources: Sources, source: SourceSpec, namespace: str, field_name: str) -> Holder:
    """Where the manifests of a template are. Raises SourceError."""
    if source.deployment_type == "Local":
        raise SourceError(f"{field_name}.deploymentType: Local is not supported: services are for clusters; use Remote")
    return await sources.holder(source, namespace, field_name)


def manifests_of(holder: Holder, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """A repository has other files, too, and folders, which keys of a Secret have not."""
    if holder.checkout is None:
        return dict(files)
    found = {name.replace("/", "_"): text for name, text in files.items() if name.endswith((".yaml", ".yml", ".json"))}
    if not found:
        raise SourceError(f"{holder}: path {holder.path or '.'} has no files that end in .yaml, .yml or .json")
    return found


def is_direct(origin: Origin, namespace: str) -> bool:
    """Whether a ClusterAddon of the namespace can fetch the chart itself."""
    secrets = {each for each in (origin.secret, origin.authority) if each is not None}
    if len(secrets) > 1 or origin.pass_credentials or origin.digest:
        return False
    return all(each.namespace == namespace for each in secrets)


def copy_name(addon: str, what: str) -> str:
    return f"{addon}.{what}"


def _copied(made: Content, addon: str, what: str, files: Mapping[str, bytes]) -> None:
    size = sum(map(len, files.values()))
    if size > _LARGEST:
        raise SourceError(
            f"Secret {copy_name(addon, what)} would have {size} bytes, and at most {_LARGEST} are possible: use a "
            "repository without an account, or a ClusterDeployment in the namespace of the template"
        )
    made.copies[copy_name(addon, what)] = dict(files)


def encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    return {key: base64.b64encode(content).decode() for key, content in files.items()}


def values_read(owner: ServiceSet) -> list[str]:
    """`Secret kcm-system/web`: objects with values of the services."""
    home = home_of(owner)
    return [f"{one.kind} {home}/{one.name}" for each in owner.spec.services for one in each.values_from]


def sources_read(template: ServiceTemplate) -> list[str]:
    """`ConfigMap kcm-system/web`: objects that hold what the template is made of."""
    helm = template.spec.helm
    sources = [template.spec.resources, template.spec.kustomize, helm.chart_source if helm is not None else None]
    refs = [each.local_source_ref for each in sources if each is not None and each.local_source_ref is not None]
    return [f"{ref.kind} {template.metadata.namespace}/{ref.name}" for ref in refs]
