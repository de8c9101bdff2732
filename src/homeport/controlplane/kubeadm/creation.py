"""A control plane Machine is made in three steps under one name; after a crash the next attempt goes on with that name.

KubeadmConfig  >  infrastructure machine  >  Machine
"""

from __future__ import annotations

from typing import Any

import msgspec
import structlog

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource, Unstructured, wire
from homeport.capi.capi import Capi
from homeport.capi.name import BOOTSTRAP_GROUP, TEMPLATE_SUFFIX
from homeport.capi.object import naming
from homeport.capi.object.ownership import AnyObject, ensure_owner, is_owned_by, owner_of_kind, owner_reference
from homeport.capi.object.template import clone, cloned_from
from homeport.capi.resolution import NotInstalled, plural
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, Write
from homeport.controlplane.kubeadm import desired
from homeport.controlplane.kubeadm.action import Create
from homeport.controlplane.kubeadm.rollout import comparable
from homeport.controlplane.kubeadm.scope import ControlPlaneScope
from homeport.runtime.cache import Cache, key_of
from homeport.runtime.controller import Controller
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

BY_CONTROL_PLANE = "KubeadmControlPlane"  # an index: what was made for one, by the owner reference it begins with


def control_plane_keys(obj: AnyObject) -> list[str]:
    owner = owner_of_kind(obj, KubeadmControlPlane.__resource__)
    return [] if owner is None else [str(Key(key_of(obj).namespace, owner["name"]))]


class Maker:
    def __init__(
        self,
        capi: Capi,
        controller: Controller,
        client: Client,
        write: Write,
        configs: Cache[KubeadmConfig],
        machines: Cache[Machine],
    ) -> None:
        self._capi = capi
        self._controller = controller  # woken by the template that it reads
        self._client = client
        self._write = write
        self._configs = configs
        self._machines = machines

    async def template(self, scope: ControlPlaneScope) -> Unstructured | Wait:
        """The template of infrastructure machines, owned by the Cluster so that it goes and moves with it."""
        ref = scope.kcp.spec.machine_template.spec.infrastructure_ref
        if ref is None:
            return Wait("InvalidReference", "set spec.machineTemplate.spec.infrastructureRef")
        try:
            found = await self._capi.externals.find(
                ref,
                scope.kcp.metadata.namespace,
                watcher=self._controller,
                owner_kind=type(scope.kcp).__resource__,
                owner=scope.key,
            )
        except NotInstalled as missing:
            return Wait("InfrastructureTemplateNotFound", str(missing))
        if found is None:
            return Wait("InfrastructureTemplateNotFound", f"{ref.kind} {ref.name} does not exist: create it")
        template, served = found
        if template.metadata.get("deletionTimestamp"):
            return template
        owned: Unstructured = await ensure_owner(
            self._client, served.resource, template, owner_reference(scope.cluster), self._write
        )
        return owned

    async def create(self, scope: ControlPlaneScope, template: Unstructured, action: Create) -> Machine:
        kcp, cluster = scope.kcp, scope.cluster.metadata.name
        join = scope.findings.initialized or not action.first
        config = desired.kubeadm_config(kcp, cluster, "", join=join)
        name = await self._unfinished(scope, config, template) or self._new_name(scope)
        config["metadata"]["name"] = name
        if Key(kcp.metadata.namespace, name) not in self._configs:
            await self._create(config, KubeadmConfig.__resource__, scope)
        infra = clone(
            template,
            name=name,
            namespace=kcp.metadata.namespace,
            cluster_name=cluster,
            owner=owner_reference(kcp),
            labels=desired.machine_labels(kcp, cluster),
            annotations=desired.machine_annotations(kcp),
        )
        kind = machine_kind(template)
        await self._create(infra, kind, scope)
        body = desired.machine(
            kcp,
            cluster,
            name,
            bootstrap={"apiGroup": BOOTSTRAP_GROUP, "kind": "KubeadmConfig", "name": name},
            infrastructure={"apiGroup": kind.group, "kind": kind.kind, "name": name},
            domain=action.domain,
            remediation=action.remediation.render() if action.remediation is not None else "",
        )
        return msgspec.convert(await self._create(body, Machine.__resource__, scope), Machine)

    async def _create(self, body: dict[str, Any], kind: Resource, scope: ControlPlaneScope) -> Unstructured:
        try:
            return await self._client.create(body, self._write, kind=kind)
        except AlreadyExists:
            key = Key(scope.kcp.metadata.namespace, body["metadata"]["name"])
            found = await self._client.get(kind, key)
            if not is_owned_by(found, scope.kcp):
                raise
            return found

    # -- names -------------------------------------------------------------------------------------------------

    def _new_name(self, scope: ControlPlaneScope) -> str:
        template = scope.kcp.spec.machine_naming.template or naming.CONTROL_PLANE_TEMPLATE
        values = {"cluster.name": scope.cluster.metadata.name, "kubeadmControlPlane.name": scope.kcp.metadata.name}
        return naming.render(template, values)

    async def _unfinished(self, scope: ControlPlaneScope, wanted: dict[str, Any], template: Unstructured) -> str:
        """The name of a Machine that was begun and would be the same now. What would be another is removed."""
        found = ""
        for config in self._configs.by(BY_CONTROL_PLANE, str(scope.key)):
            key = key_of(config)
            if not is_owned_by(config, scope.kcp) or key in self._machines or config.metadata.deletion_timestamp:
                continue
            if not found and await self._usable(config, wanted, template):
                found = key.name
                log.info("continuing with a Machine whose creation was interrupted", machine=found)
                continue
            log.info("removing the objects of a Machine whose creation was interrupted", machine=key.name)
            for kind in (machine_kind(template), KubeadmConfig.__resource__):
                await self._remove(kind, key, scope)
        return found

    async def _usable(self, config: KubeadmConfig, wanted: dict[str, Any], template: Unstructured) -> bool:
        if comparable(wire(config.spec)) != comparable(wanted.get("spec") or {}):
            return False
        try:
            infra = await self._client.get(machine_kind(template), key_of(config))
        except NotFound:
            return True
        group = machine_kind(template).group
        return cloned_from(infra) == (f"{template['kind']}.{group}", template.name)

    async def _remove(self, kind: Resource, key: Key, scope: ControlPlaneScope) -> None:
        try:
            found = await self._client.get(kind, key)
            if is_owned_by(found, scope.kcp):
                await self._client.delete(kind, key, uid=found.uid)
        except NotFound:
            return


def machine_kind(template: Unstructured) -> Resource:
    """What a template makes."""
    kind = str(template["kind"]).removesuffix(TEMPLATE_SUFFIX)
    group, _, version = str(template["apiVersion"]).rpartition("/")
    return Resource(group, version, kind, plural(kind))
