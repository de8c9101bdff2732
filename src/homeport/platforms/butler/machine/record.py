"""Records of VMs, besides the MachineRequests that they were made for: what is left if a request is removed by force.

A record is a ConfigMap. It is written before the VM is created, and deleted after the provider confirmed that the VM is
gone. A record without its MachineRequest is an orphan, or the request was moved to another plane: nobody deletes such a
VM but the user.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from homeport.api.butler.v1alpha1 import GROUP, MachineRequest, ProviderConfig
from homeport.api.meta import Resource, Unstructured
from homeport.capi.component import Setup
from homeport.capi.platform import MachineFact, MachineOrder, Shape
from homeport.client.errors import AlreadyExists, ApiError, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.infra.error import ProviderError
from homeport.platforms.butler.name import FIELD_MANAGER
from homeport.platforms.butler.provider.access import Accesses
from homeport.platforms.butler.provider.site import read_site
from homeport.runtime.informer import metadata_only

_LOG = logging.getLogger(__name__)
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
LABEL = f"{GROUP}/machine-record"  # the UID of the MachineRequest
RECORDS = Query(labels=LABEL)
VM, CHECKED = "vm", "state"  # keys that the plane writes when the request is gone
_WRITE = Write(field_manager=FIELD_MANAGER)
_LOOK_SECONDS = 300.0
_ANY_SHAPE = Shape(cpu=1, memory="1Gi", disk="1Gi")  # a VM is found by its mark


@dataclass(frozen=True, slots=True)
class Lost:
    """A VM whose MachineRequest is gone."""

    request: Key
    uid: str
    machine: str  # name of the VM
    config: Key  # ProviderConfig
    vm: str  # its id, once the provider was asked; '' before
    state: str

    @classmethod
    def read(cls, record: Mapping[str, object]) -> Lost:
        data: Mapping[str, str] = record.get("data") or {}  # type: ignore[assignment]
        meta: Mapping[str, Mapping[str, str]] = record["metadata"]  # type: ignore[assignment]
        config = Key(*data.get("providerConfig", "/").split("/", 1))
        request = Key(str(meta["namespace"]), data.get("name", ""))
        return cls(
            request, meta["labels"][LABEL], data.get("machineName", ""), config, data.get(VM, ""), data.get(CHECKED, "")
        )


class Records:
    def __init__(self, setup: Setup) -> None:
        self._client = setup.manager.client
        self._known = setup.manager.informers.get(metadata_only(CONFIG_MAP), RECORDS).cache

    async def enter(self, request: MachineRequest, machine: str, config: str) -> None:
        """Before the VM `machine` is created. `config`: namespace/name of the ProviderConfig."""
        meta = request.metadata
        if Key(meta.namespace, record_name(meta.uid)) in self._known:
            return
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": record_name(meta.uid), "namespace": meta.namespace, "labels": {LABEL: meta.uid}},
            "data": {"name": meta.name, "machineName": machine, "providerConfig": config},
        }
        with contextlib.suppress(AlreadyExists):  # the cache is late
            await self._client.create(Unstructured(body), _WRITE, kind=CONFIG_MAP)


async def strike(client: Client, namespace: str, uid: str) -> None:
    """After the provider confirmed that the VM is gone."""
    with contextlib.suppress(NotFound):
        await client.delete(CONFIG_MAP, Key(namespace, record_name(uid)))


def record_name(uid: str) -> str:
    return f"machinerequest-{uid}"


async def find_lost(client: Client) -> list[Lost]:
    """Records first: a request that is created meanwhile is known."""
    records = (await client.list(CONFIG_MAP, RECORDS)).items
    known = {each.metadata.uid for each in (await client.list(MachineRequest, Query())).items}
    return [found for each in records if (found := Lost.read(each)).uid not in known]


class Search:
    """Asks providers about VMs whose MachineRequest is gone, and forgets those that are gone as well."""

    def __init__(self, setup: Setup, accesses: Accesses) -> None:
        self._client = setup.manager.client
        self._accesses = accesses
        self._configs = setup.manager.informers.get(ProviderConfig).cache
        setup.manager.job(self._run)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self.look()
            except ApiError as error:
                _LOG.warning("VMs without a MachineRequest can't be looked for: %s", error)

    async def look(self) -> None:
        for each in await find_lost(self._client):
            try:
                found = await self._observe(each)
            except ProviderError as error:
                await self._note(each, {CHECKED: str(error)})
                continue
            if found is None:
                await strike(self._client, each.request.namespace, each.uid)
            else:
                await self._note(each, {VM: found.id, CHECKED: f"power {found.power}"})

    async def _observe(self, lost: Lost) -> MachineFact | None:
        """None: the provider was asked, and has no VM of the request. Raises ProviderError."""
        config = self._configs.get(lost.config)
        if config is None:
            raise ProviderError(f"ProviderConfig {lost.config} no longer exists")
        site = await read_site(self._client, self._accesses.supports, config)
        order = MachineOrder(
            uid=lost.uid,
            namespace=lost.request.namespace,
            object_name=lost.request.name,
            name=lost.machine,
            shape=_ANY_SHAPE,
        )
        return await self._accesses.of(site.support).machines.observe(site.site, order)

    async def _note(self, lost: Lost, data: Mapping[str, str]) -> None:
        key = Key(lost.request.namespace, record_name(lost.uid))
        with contextlib.suppress(NotFound):
            await self._client.patch(CONFIG_MAP, key, MergePatch({"data": dict(data)}), _WRITE)
