"""A control plane Machine is made in three steps under one name; after a crash the next attempt goes on with that name.

bootstrap config  >  infrastructure machine  >  Machine
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import structlog

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.cluster.v1beta2.reference import ContractRef
from homeport.api.meta import Object, Resource, Unstructured
from homeport.capi.capi import Capi
from homeport.capi.name import TEMPLATE_SUFFIX
from homeport.capi.object.ownership import ensure_owner, is_owned_by, owner_reference
from homeport.capi.object.template import clone, cloned_from
from homeport.capi.resolution import NotInstalled, plural
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, Write
from homeport.runtime.cache import Cache, key_of
from homeport.runtime.controller import Controller
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

C = TypeVar("C", bound=Object)


class MachineMaker(Generic[C]):
    def __init__(
        self,
        capi: Capi,
        controller: Controller,
        client: Client,
        write: Write,
        configs: Cache[C],
        machines: Cache[Machine],
    ) -> None:
        self._capi = capi
        self._controller = controller  # woken by the template that it reads
        self._client = client
        self._write = write
        self._configs = configs
        self._machines = machines

    async def _find_template(self, plane: Object, ref: ContractRef, cluster: Cluster) -> Unstructured | Wait:
        """The template of infrastructure machines, owned by the Cluster so that it goes and moves with it."""
        key = key_of(plane)
        try:
            found = await self._capi.externals.find(
                ref, key.namespace, watcher=self._controller, owner_kind=type(plane).__resource__, owner=key
            )
        except NotInstalled as missing:
            return Wait("InfrastructureTemplateNotFound", str(missing))
        if found is None:
            return Wait("InfrastructureTemplateNotFound", f"{ref.kind} {ref.name} does not exist: create it")
        template, served = found
        if template.metadata.get("deletionTimestamp"):
            return template
        owned: Unstructured = await ensure_owner(
            self._client, served.resource, template, owner_reference(cluster), self._write
        )
        return owned

    async def _create_pair(
        self,
        plane: Object,
        cluster: str,
        config: dict[str, Any],
        config_kind: Resource,
        template: Unstructured,
        labels: Mapping[str, str],
        annotations: Mapping[str, str],
    ) -> Resource:
        """The bootstrap config, and an infrastructure machine of the same name, whose kind is returned."""
        name, namespace = str(config["metadata"]["name"]), plane.metadata.namespace
        if Key(namespace, name) not in self._configs:
            await self._create(config, config_kind, plane)
        infra = clone(
            template,
            name=name,
            namespace=namespace,
            cluster_name=cluster,
            owner=owner_reference(plane),
            labels=labels,
            annotations=annotations,
        )
        kind = machine_kind(template)
        await self._create(infra, kind, plane)
        return kind

    async def _create(self, body: dict[str, Any], kind: Resource, plane: Object) -> Unstructured:
        try:
            return await self._client.create(body, self._write, kind=kind)
        except AlreadyExists:
            found = await self._client.get(kind, Key(plane.metadata.namespace, body["metadata"]["name"]))
            if not is_owned_by(found, plane):
                raise
            return found

    async def _unfinished(
        self, plane: Object, configs: Iterable[C], template: Unstructured, same: Callable[[C], bool]
    ) -> str:
        """The name of a Machine that was begun and would be the same now. What would be another is removed."""
        found = ""
        for config in configs:
            key = key_of(config)
            if not is_owned_by(config, plane) or key in self._machines or config.metadata.deletion_timestamp:
                continue
            if not found and same(config) and await self._is_clone(template, key):
                found = key.name
                log.info("continuing with a Machine whose creation was interrupted", machine=found)
                continue
            log.info("removing the objects of a Machine whose creation was interrupted", machine=key.name)
            for kind in (machine_kind(template), type(config).__resource__):
                await self._remove(kind, key, plane)
        return found

    async def _is_clone(self, template: Unstructured, key: Key) -> bool:
        """The infrastructure machine was made from this template, or is not made yet."""
        kind = machine_kind(template)
        infra = await find_object(self._client, kind, key)
        if infra is None:
            return True
        return cloned_from(infra) == (f"{template['kind']}.{kind.group}", template.name)

    async def _remove(self, kind: Resource, key: Key, plane: Object) -> None:
        try:
            found = await self._client.get(kind, key)
            if is_owned_by(found, plane):
                await self._client.delete(kind, key, uid=found.uid)
        except NotFound:
            return


def machine_kind(template: Unstructured) -> Resource:
    """What a template makes."""
    kind = str(template["kind"]).removesuffix(TEMPLATE_SUFFIX)
    group, _, version = str(template["apiVersion"]).rpartition("/")
    return Resource(group, version, kind, plural(kind))
