"""Making Machines. A bootstrap config and an infrastructure machine of the Machine's name come first, so that the
Machine never refers to nothing; what a crash left half-made is taken up again by its name."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import structlog

from homeport.api.cluster.v1beta2 import Machine, MachineSet
from homeport.api.meta import Resource, Unstructured
from homeport.capi.capi import Capi
from homeport.capi.name import CLONED_FROM_NAME, SET_NAME_LABEL, TEMPLATE_SUFFIX, label_value
from homeport.capi.object.ownership import is_owned_by, owner_reference
from homeport.capi.object.template import clone
from homeport.capi.resolution import plural
from homeport.client.absence import drop_object
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Key, Query, Write
from homeport.core.machineset.machine import annotations_of, labels_of, machine_name, new_machine
from homeport.core.machineset.scope import SetScope
from homeport.core.related import Related
from homeport.runtime.cache import key_of

log = structlog.get_logger(__name__)

_AT_ONCE = 16  # a set of thousands does not fill the server's queue alone
_IN_A_LOOP = 500  # names are chosen without a pause, so a mistyped `replicas` must not stop everything else


def cloned_kind(template: Unstructured, resource: Resource) -> Resource:
    kind = str(template["kind"]).removesuffix(TEMPLATE_SUFFIX)
    return Resource(resource.group, resource.version, kind, plural(kind))


class Creation:
    def __init__(self, capi: Capi, write: Write) -> None:
        self._client = capi.manager.client
        self._machines = capi.manager.informers.get(Machine).cache
        self._write = write
        self._swept: dict[Key, str] = {}  # sets without half-made Machines, as far as we know

    def forget(self, key: Key) -> None:
        self._swept.pop(key, None)

    async def create(self, scope: SetScope, count: int) -> list[Machine]:
        """Makes `count` Machines, or as many as one loop may make: the events of these bring the next loop."""
        count = min(count, _IN_A_LOOP)
        names = (await self.sweep(scope, keep=count))[:count]
        taken = set(names)
        while len(names) < count:
            name = machine_name(scope.object)
            if name not in taken and Key(scope.key.namespace, name) not in self._machines:
                names.append(name)
                taken.add(name)
        self.forget(scope.key)  # until all of it is done
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(name: str) -> Machine:
            async with limit:
                return await self._create(scope, name)

        made = await asyncio.gather(*(one(name) for name in names), return_exceptions=True)
        for result in made:
            if isinstance(result, BaseException):
                raise result
        self._swept[scope.key] = scope.object.metadata.uid
        return [machine for machine in made if isinstance(machine, Machine)]

    async def _create(self, scope: SetScope, name: str) -> Machine:
        machine_set = scope.object
        config = await self._clone(machine_set, scope.bootstrap, name)
        infrastructure = await self._clone(machine_set, scope.infrastructure, name)
        assert infrastructure is not None
        body = new_machine(machine_set, name, bootstrap=config, infrastructure=infrastructure)
        # Applied, so that what the template no longer has can be taken from the Machine later.
        made = await self._client.apply(body, self._write, kind=Machine.__resource__, force=True)
        return msgspec.convert(made, Machine)

    async def _clone(self, machine_set: MachineSet, related: Related, name: str) -> dict[str, str] | None:
        """A reference to the object made from the template; None where there is no template."""
        if related.object is None or related.resource is None:
            return None
        body = clone(
            related.object,
            name=name,
            namespace=machine_set.metadata.namespace,
            cluster_name=machine_set.spec.cluster_name,
            owner=owner_reference(machine_set),
            labels=labels_of(machine_set),
            annotations=annotations_of(machine_set),
        )
        kind = cloned_kind(related.object, related.resource)
        try:
            await self._client.create(body, self._write, kind=kind)
        except AlreadyExists:
            held = await self._client.get(kind, Key(machine_set.metadata.namespace, name))
            if not is_owned_by(held, machine_set):
                raise  # somebody else's: the next loop takes another name
        return {"apiGroup": kind.group, "kind": kind.kind, "name": name}

    # -- what a crash left -------------------------------------------------------------------------------------

    async def sweep(self, scope: SetScope, keep: int = 0) -> list[str]:
        """Names of half-made Machines that can be completed, at most `keep`; the rest is deleted.

        Looked for once per set and process, and after every failure: nobody else leaves any.
        """
        if self._swept.get(scope.key) == scope.object.metadata.uid:
            return []
        found: dict[str, list[tuple[Resource, Unstructured]]] = {}
        for related in (scope.bootstrap, scope.infrastructure):
            if related.object is not None and related.resource is not None:
                kind = cloned_kind(related.object, related.resource)
                for obj in await self._half_made(scope.object, kind):
                    found.setdefault(obj.name, []).append((kind, obj))
        usable = [name for name, parts in sorted(found.items()) if all(_fits(scope, obj) for _, obj in parts)]
        for name, parts in found.items():
            if name not in usable[:keep]:
                await self._drop(parts)
        self._swept[scope.key] = scope.object.metadata.uid
        return usable[:keep]

    async def _half_made(self, machine_set: MachineSet, kind: Resource) -> Sequence[Unstructured]:
        query = Query(
            namespace=machine_set.metadata.namespace,
            labels=f"{SET_NAME_LABEL}={label_value(machine_set.metadata.name)}",
        )
        page = await self._client.list(kind, query)
        return [
            obj
            for obj in page.items
            if is_owned_by(obj, machine_set)
            and not obj.metadata.get("deletionTimestamp")
            and key_of(obj) not in self._machines
        ]

    async def _drop(self, parts: Sequence[tuple[Resource, Unstructured]]) -> None:
        for kind, obj in parts:
            log.info(
                "deleting objects that were created for a Machine that does not exist", kind=kind.kind, name=obj.name
            )
            await drop_object(self._client, kind, key_of(obj), uid=obj.uid)


def _fits(scope: SetScope, obj: Mapping[str, Any]) -> bool:
    """Made from the templates that the set has today."""
    name = (obj["metadata"].get("annotations") or {}).get(CLONED_FROM_NAME)
    templates = (scope.bootstrap.object, scope.infrastructure.object)
    return any(
        name == each.name and obj["kind"] == each["kind"].removesuffix(TEMPLATE_SUFFIX) for each in templates if each
    )
