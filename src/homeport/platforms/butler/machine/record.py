"""Records of VMs, besides the MachineRequests that they were made for: what is left if a request is removed by force.

A record is a ConfigMap. It is written before the VM is created, and deleted after the provider confirmed that the VM is
gone. A record without its MachineRequest is an orphan, or the request was moved to another plane: nobody deletes such a
VM but the user. That this plane saw the deletion of the request, and not for a move, is recorded as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from homeport.api.butler.v1alpha1 import GROUP, MachineRequest, ProviderConfig
from homeport.api.meta import Resource, Unstructured, wire
from homeport.capi.component import Setup
from homeport.capi.name import DELETE_FOR_MOVE
from homeport.capi.object.paused import has_annotation
from homeport.capi.platform import MachineFact, MachineOrder, Shape
from homeport.client.absence import drop_object
from homeport.client.errors import AlreadyExists, ApiError, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.infra.error import ProviderError
from homeport.platforms.butler.name import FIELD_MANAGER
from homeport.platforms.butler.provider.access import Accesses
from homeport.platforms.butler.provider.site import read_site
from homeport.runtime.informer import metadata_only

T = TypeVar("T")

_LOG = logging.getLogger(__name__)
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
LABEL = f"{GROUP}/machine-record"  # the UID of the MachineRequest
RECORDS = Query(labels=LABEL)
PROVIDER_ID = f"{GROUP}/provider-id"  # an annotation: after a move the VM has the mark of another UID
VM, CHECKED, ADDRESSES = "vm", "state", "addresses"  # keys that the plane writes when the request is gone
DELETED = "deleted"  # the plane saw that the request was deleted
_UNKEPT = ("userData", "networkData", "paused")  # may hold passwords, and a VM that exists does not need them
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
    spec: Mapping[str, Any]  # of the request, without its user data; empty in records of earlier releases
    labels: Mapping[str, str] = field(default_factory=dict)
    owners: Sequence[Mapping[str, Any]] = ()
    provider_id: str = ""
    addresses: tuple[str, ...] = ()
    deleted: bool = False  # this plane saw the deletion of the request, and it was not for a move

    @property
    def record(self) -> Key:
        return Key(self.request.namespace, record_name(self.uid))

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Lost:
        data, meta = record.get("data") or {}, record["metadata"]
        return cls(
            request=Key(str(meta["namespace"]), data.get("name", "")),
            uid=meta["labels"][LABEL],
            machine=data.get("machineName", ""),
            config=Key(*data.get("providerConfig", "/").split("/", 1)),
            vm=data.get(VM, ""),
            state=data.get(CHECKED, ""),
            spec=_parsed(data.get("spec", ""), {}),
            labels=_parsed(data.get("labels", ""), {}),
            owners=_parsed(data.get("owners", ""), []),
            provider_id=(meta.get("annotations") or {}).get(PROVIDER_ID, ""),
            addresses=tuple(data.get(ADDRESSES, "").split()),
            deleted=bool(data.get(DELETED)),
        )


def _parsed(text: str, otherwise: T) -> T:
    try:
        found = json.loads(text)
    except ValueError:
        return otherwise
    return found if isinstance(found, type(otherwise)) else otherwise


class Records:
    def __init__(self, setup: Setup) -> None:
        self._client = setup.manager.client
        self._known = setup.manager.informers.get(metadata_only(CONFIG_MAP), RECORDS).cache

    async def enter(self, request: MachineRequest, machine: str, config: str) -> None:
        """Before the VM `machine` is created. `config`: namespace/name of the ProviderConfig."""
        meta = request.metadata
        key = Key(meta.namespace, record_name(meta.uid))
        if key in self._known:
            await self._keep_id(key, request.status.provider_id)
            return
        spec = {name: value for name, value in wire(request.spec).items() if name not in _UNKEPT}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "labels": {LABEL: meta.uid},
                "annotations": {PROVIDER_ID: request.status.provider_id} if request.status.provider_id else {},
            },
            "data": {
                "name": meta.name,
                "machineName": machine,
                "providerConfig": config,
                "spec": json.dumps(spec, separators=(",", ":")),
                "labels": json.dumps(meta.labels, separators=(",", ":")),
                "owners": json.dumps(wire(meta.owner_references), separators=(",", ":")),
            },
        }
        with contextlib.suppress(AlreadyExists):  # the cache is late
            await self._client.create(Unstructured(body), _WRITE, kind=CONFIG_MAP)

    async def _keep_id(self, key: Key, provider_id: str) -> None:
        known = self._known.get(key)
        if not provider_id or known is None or PROVIDER_ID in known.metadata.annotations:
            return
        body = {"metadata": {"annotations": {PROVIDER_ID: provider_id}}}
        with contextlib.suppress(NotFound):
            await self._client.patch(CONFIG_MAP, key, MergePatch(body), _WRITE)


async def strike(client: Client, namespace: str, uid: str) -> None:
    """After the provider confirmed that the VM is gone."""
    await drop_object(client, CONFIG_MAP, Key(namespace, record_name(uid)))


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
        self._deleted: set[tuple[str, str]] = set()  # namespace and UID of requests whose deletion is to be recorded
        self._hurry = asyncio.Event()
        setup.manager.informers.get(MachineRequest).on_delete(self._see)
        setup.manager.job(self._run)

    def _see(self, request: MachineRequest) -> None:
        """Whoever pauses a request, or moves it to another plane, answers for its VM."""
        meta = request.metadata
        if DELETE_FOR_MOVE not in meta.annotations and not request.spec.paused and not has_annotation(request):
            self._deleted.add((meta.namespace, meta.uid))
            self._hurry.set()

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._hurry.wait()
            self._hurry.clear()
            try:
                await self.look()
            except ApiError as error:
                _LOG.warning("VMs without a MachineRequest can't be looked for: %s", error)

    async def look(self) -> None:
        for namespace, uid in sorted(self._deleted):
            await self._note(Key(namespace, record_name(uid)), {DELETED: "true"})
            self._deleted.discard((namespace, uid))
        for each in await find_lost(self._client):
            try:
                found = await self._observe(each)
            except ProviderError as error:
                await self._note(each.record, {CHECKED: str(error)})
                continue
            if found is None:
                await strike(self._client, each.request.namespace, each.uid)
            else:
                data = {VM: found.id, CHECKED: f"power {found.power}", ADDRESSES: " ".join(found.addresses)}
                await self._note(each.record, data, {PROVIDER_ID: found.provider_id})

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
            provider_id=lost.provider_id,
        )
        return await self._accesses.of(site.support).machines.observe(site.site, order)

    async def _note(self, key: Key, data: Mapping[str, str], annotations: Mapping[str, str] | None = None) -> None:
        body: dict[str, Any] = {"data": dict(data)}
        if annotations:
            body["metadata"] = {"annotations": dict(annotations)}
        with contextlib.suppress(NotFound):
            await self._client.patch(CONFIG_MAP, key, MergePatch(body), _WRITE)
