"""Writes the objects of a tenant cluster, and removes those that it no longer has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.bootstrap.v1beta2 import KubeadmConfigTemplate
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Object, Resource
from homeport.api.steward.controlplane import StewardControlPlane
from homeport.capi.object.ownership import owner_reference
from homeport.capi.remote.pki import SECRET
from homeport.client.absence import drop_object
from homeport.client.protocol import Client, Key, Query
from homeport.platforms.butler.tenant.name import labels_of, selector_of
from homeport.platforms.butler.tenant.removal import NAMESPACE
from homeport.platforms.butler.tenant.render import render_addon, render_objects
from homeport.platforms.butler.tenant.scope import TenantScope
from homeport.platforms.butler.tenant.state import workers_ready
from homeport.runtime.applier import Applier

Json = dict[str, Any]

_KINDS: dict[str, Resource] = {
    "Secret": SECRET,
    **{
        each.__resource__.kind: each.__resource__
        for each in (Cluster, MachineDeployment, KubeadmControlPlane, StewardControlPlane, KubeadmConfigTemplate)
    },
}
_WATCHED = frozenset(("Cluster", "MachineDeployment", "KubeadmControlPlane", "StewardControlPlane"))


class Composition:
    def __init__(self, client: Client, applier: Applier) -> None:
        self._client = client
        self._applier = applier
        self._swept: dict[Key, frozenset[str]] = {}  # names of the templates that were left at the last look

    def forget(self, key: Key) -> None:
        self._applier.forget(key)
        self._swept.pop(key, None)

    async def hold_namespace(self, scope: TenantScope) -> None:
        assert scope.model is not None
        if scope.children.namespace is None:
            self._applier.forget(scope.key)  # whatever was applied there is gone with it
        body = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": scope.namespace, "labels": labels_of(scope.key, scope.model.team)},
        }
        await self._applier.hold(scope.key, body, NAMESPACE)

    async def apply(self, scope: TenantScope) -> bool:
        """Whether the caches show all of it, so that what they report is about what is wanted now."""
        blueprint, children = scope.blueprint, scope.children
        assert blueprint is not None
        kinds = {
            **_KINDS,
            blueprint.cluster_kind.kind: blueprint.cluster_kind,
            blueprint.template_kind.kind: blueprint.template_kind,
        }
        objects = render_objects(blueprint)
        watched = _watched(scope)
        shown = True
        for obj in objects:
            kind = kinds[obj["kind"]]
            cached = watched.get((kind.kind, obj["metadata"]["name"]))
            known = kind.kind in _WATCHED
            shown = await self._applier.hold(scope.key, obj, kind, cached=cached, watched=known) and shown
        if children.cluster is not None:
            shown = await self._apply_addons(scope) and shown
        await self._drop_others(scope, objects)
        return shown

    async def _apply_addons(self, scope: TenantScope) -> bool:
        blueprint, cluster = scope.blueprint, scope.children.cluster
        assert blueprint is not None
        assert cluster is not None
        known = {each.metadata.name: each for each in scope.children.addons}
        owner, kind, shown = owner_reference(cluster), ClusterAddon.__resource__, True
        for request in blueprint.addons:
            body = render_addon(blueprint, request, owner)
            cached = known.get(body["metadata"]["name"])
            shown = await self._applier.hold(scope.key, body, kind, cached=cached, watched=True) and shown
        for name, addon in known.items():
            if name not in blueprint.addon_names:
                await self._delete(ClusterAddon, addon)
        return shown

    async def _drop_others(self, scope: TenantScope, objects: Sequence[Json]) -> None:
        """Groups of workers that the spec no longer has; and templates, once no machine is made from them."""
        names = {each["metadata"]["name"] for each in objects}
        for each in scope.children.deployments:
            if each.metadata.name not in names:
                await self._delete(MachineDeployment, each)
        await self._sweep_templates(scope, frozenset(names))

    async def _sweep_templates(self, scope: TenantScope, names: frozenset[str]) -> None:
        blueprint = scope.blueprint
        assert blueprint is not None
        if self._swept.get(scope.key) == names or not _settled(scope, names):
            return
        query = Query(namespace=scope.namespace, labels=selector_of(scope.key))
        for kind in (KubeadmConfigTemplate.__resource__, blueprint.template_kind):
            for each in (await self._client.list(kind, query)).items:
                if each.name not in names and not each.metadata.get("deletionTimestamp"):
                    await self._gone(kind, Key(each.namespace, each.name), each.uid)
                    self._applier.forget(scope.key)  # the spec may go back to it, and no cache shows that it is gone
        self._swept[scope.key] = names

    async def _delete(self, kind: type[Object], obj: Object) -> None:
        if not obj.metadata.deletion_timestamp:
            await self._gone(kind, Key(obj.metadata.namespace, obj.metadata.name), obj.metadata.uid)

    async def _gone(self, kind: type[Object] | Resource, key: Key, uid: str) -> None:
        await drop_object(self._client, kind, key, uid=uid)


def _settled(scope: TenantScope, names: frozenset[str]) -> bool:
    """Whether all machines are made from these templates."""
    found = scope.children.deployments
    templates = [each.spec.template.spec for each in found]
    used = {ref.name for each in templates for ref in (each.infrastructure_ref, each.bootstrap.config_ref) if ref}
    return bool(found) and used <= names and workers_ready(found, len(found)).good


def _watched(scope: TenantScope) -> dict[tuple[str, str], Object]:
    children = scope.children
    found = [*children.deployments, children.cluster, children.control_plane]
    return {(type(each).__resource__.kind, each.metadata.name): each for each in found if each is not None}
