"""Nodes and the VMs that they are, for the cloud controller manager.

A steady cluster costs one list of VMs in a few minutes, however many Nodes it has; where things are is kept longer.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from homeport.api.meta import Unstructured
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.capi.cloud import Address, CloudInstance
from homeport.infra.error import Misconfigured, Missing
from homeport.machinery import condition
from homeport.providers.nutanix.cloud.config import CloudConfig
from homeport.providers.nutanix.connection import Connector, PrismSession
from homeport.providers.nutanix.machine import PREFIX
from homeport.providers.nutanix.prism.record import Category, Element, Prism, Vm
from homeport.providers.nutanix.vmcache import VmCache
from homeport.runtime.clock import Clock

INSTANCE_TYPE = "ahv-vm"
_PROVIDER_MARK = "providerid"
_LABELS = "nutanix.com"
_MARKS = "node.cloudprovider.kubernetes.io/"  # taints that wait for what we say
_STEADY_SECONDS = 120.0  # how old news of a Node that is well may be ...
_URGENT_SECONDS = 2.0  # ... and of one that is new or does not answer
_PLACE_SECONDS = 900.0  # clusters, categories and hosts: they hardly ever change

T = TypeVar("T")


@dataclass(slots=True)
class _TimedCache(Generic[T]):
    """Something that is read once in a while, by one for all."""

    clock: Clock
    value: T | None = None
    read_at: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def get(self, read: Callable[[], Awaitable[T]]) -> T:
        async with self.lock:
            now = self.clock.monotonic()
            if self.value is None or now - self.read_at >= _PLACE_SECONDS:
                self.value, self.read_at = await read(), now
            return self.value


class NutanixCloud:
    balancer = None

    def __init__(self, config: CloudConfig, connector: Connector, clock: Clock) -> None:
        self._config = config
        self._connector = connector
        self._clock = clock
        # Connections are made for NutanixClusters: here the configuration plays that part.
        self._infra = NutanixCluster()
        self._infra.metadata.namespace = config.namespace
        self._infra.spec.prism_central = config.central
        self._vms = VmCache(self._prism, clock)
        self._categories: dict[str, _TimedCache[list[Category]]] = {}
        self._hosts: dict[str, _TimedCache[str]] = {}

    async def close(self) -> None:
        await self._connector.close()

    async def instance(self, node: Unstructured) -> CloudInstance | None:
        candidates = vm_ids(node)
        age = _STEADY_SECONDS if settled(node) else _URGENT_SECONDS
        vm = await self._vms.find(candidates, name=node.name, younger_than=age) if candidates else None
        if vm is None and not provider_id(node):
            vm = await self._unknown(node)
        if vm is None and not candidates:
            raise Missing(f"Node {node.name} has neither systemUUID nor providerID: its VM can't be identified")
        return None if vm is None else await self._describe(vm)

    async def _unknown(self, node: Unstructured) -> Vm | None:
        """A new Node whose firmware says what Prism Central does not know: some swap the bytes of an id, and clones may
        have the id of another. Then it is the only running VM of its name, which has to have its addresses."""
        swapped = swap_bytes(system_id(node))
        vm = await self._vms.find([swapped], younger_than=_URGENT_SECONDS) if swapped else None
        if vm is not None:
            return vm
        named = await (await self._prism()).find_vms(names=[node.name])
        held = {str(each.get("address")) for each in internal_addresses(node)}
        alive = [each for each in named if each.name == node.name and each.power != "off"]
        fits = [each for each in alive if not held or held & set(each.addresses)]
        return fits[0] if len(fits) == 1 else None

    async def _session(self) -> PrismSession:
        return await self._connector.connect(self._infra)

    async def _prism(self) -> Prism:
        return (await self._session()).prism

    async def _describe(self, vm: Vm) -> CloudInstance:
        region, zone = await self._place(vm)
        marked = next((m.partition(":")[2] for m in vm.marks if m.partition(":")[0].lower() == _PROVIDER_MARK), "")
        return CloudInstance(
            provider_id=marked if "://" in marked else f"{PREFIX}{marked or vm.id}",
            instance_type=INSTANCE_TYPE,
            region=region,
            zone=zone,
            shutdown=vm.power == "off",
            addresses=self._addresses(vm),
            labels=await self._labels(vm) if self._config.custom_labels else {},
        )

    def _addresses(self, vm: Vm) -> tuple[Address, ...]:
        shown = [each for each in vm.addresses if not self._config.ignores(each)]
        if not shown:
            return ()
        return (*(Address("InternalIP", each) for each in shown), Address("Hostname", vm.name))

    # -- where it is -------------------------------------------------------------------------------------------

    async def _place(self, vm: Vm) -> tuple[str, str]:
        """Region and zone."""
        if self._config.region_category:
            region = await self._category(vm, self._config.region_category)
            return region, await self._category(vm, self._config.zone_category)
        elements = await self._all_elements()
        centrals = [each.name for each in elements if each.is_central]
        return (centrals[0] if len(centrals) == 1 else ""), _named(elements, vm.cluster_id)

    async def _category(self, vm: Vm, key: str) -> str:
        """The value that the VM has of a category, else the one of its Prism Element."""

        async def read() -> list[Category]:
            return await (await self._prism()).categories(key)

        known = await self._categories.setdefault(key, _TimedCache(self._clock)).get(read)
        values = [each.value for each in known if each.id in vm.category_ids]
        if not values and known:
            held = next((each.category_ids for each in await self._all_elements() if each.id == vm.cluster_id), ())
            values = [each.value for each in known if each.id in held]
        if len(values) > 1:
            raise Misconfigured(
                f"VM {vm.name} has several values of category {key}, which topologyDiscovery uses: "
                f"{', '.join(sorted(values))}; remove all but one"
            )
        return values[0] if values else ""

    async def _labels(self, vm: Vm) -> dict[str, str]:
        found = {
            "prism-element-uuid": vm.cluster_id,
            "prism-element-name": _named(await self._all_elements(), vm.cluster_id),
            "prism-host-uuid": vm.host_id,
            "prism-host-name": await self._host(vm),
        }
        return {f"{_LABELS}/{name}": value for name, value in found.items() if value}

    async def _host(self, vm: Vm) -> str:
        async def read() -> str:
            return await (await self._prism()).host_name(vm.cluster_id, vm.host_id)

        return await self._hosts.setdefault(vm.host_id, _TimedCache(self._clock)).get(read) if vm.host_id else ""

    async def _all_elements(self) -> Sequence[Element]:
        return await (await self._session()).lookup.all_elements(younger_than=_PLACE_SECONDS)


def vm_ids(node: Unstructured) -> list[str]:
    """What the firmware says first: a provider id may be older than the machine."""
    provider = provider_id(node)
    known = provider.removeprefix(PREFIX).rpartition("/")[2].lower() if provider.startswith(PREFIX) else ""
    return list(dict.fromkeys(filter(None, (system_id(node), known))))


def provider_id(node: Unstructured) -> str:
    return str((node.get("spec") or {}).get("providerID") or "")


def system_id(node: Unstructured) -> str:
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("systemUUID") or "").lower()


def swap_bytes(text: str) -> str:
    """The id with its first three parts the other way round, as some firmware and kernels tell it; '' for no id."""
    try:
        return str(uuid.UUID(bytes_le=uuid.UUID(text).bytes))
    except ValueError:
        return ""


def internal_addresses(node: Unstructured) -> list[Mapping[str, Any]]:
    found = (node.get("status") or {}).get("addresses") or ()
    return [each for each in found if each.get("type") == "InternalIP"]


def settled(node: Unstructured) -> bool:
    """Known before, answering, and not marked as new or as off."""
    spec = node.get("spec") or {}
    marked = any(str(each.get("key", "")).startswith(_MARKS) for each in spec.get("taints") or ())
    known = bool(spec.get("providerID")) and not marked
    return known and condition.is_true((node.get("status") or {}).get("conditions"), "Ready")


def _named(elements: Sequence[Element], element_id: str) -> str:
    return next((each.name for each in elements if each.id == element_id), "")
