"""Nodes and the VMs that they are, for the cloud controller manager."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from homeport.api.meta import Unstructured
from homeport.api.nutanix.v1beta1 import (
    CredentialRef,
    NutanixCluster,
    PrismCentral,
    TrustBundle,
)
from homeport.infra.error import Misconfigured, Missing
from homeport.infra.protocol import Address, CloudInstance
from homeport.providers.nutanix.connection import Connector, PrismSession
from homeport.providers.nutanix.credential import DEFAULT_PORT
from homeport.providers.nutanix.machine import PREFIX
from homeport.providers.nutanix.prism.record import Vm

INSTANCE_TYPE = "ahv-vm"
_PROVIDER_MARK = "providerid"
_LABELS = "nutanix.com"


@dataclass(frozen=True, slots=True)
class CloudConfig:
    """nutanix_config.json, as users of the vendor's own manager write it."""

    central: PrismCentral
    namespace: str
    region_category: str = ""  # '' with zone_category: topology is Prism Central and Prism Element
    zone_category: str = ""
    custom_labels: bool = False
    ignored: tuple[tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address], ...] = ()
    pools: Mapping[str, str] = field(default_factory=dict)


def parse_config(text: str, namespace: str) -> CloudConfig:
    """Raises Misconfigured naming the field. `namespace`: where Secrets and ConfigMaps are that name none."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Misconfigured(f"the configuration is no JSON: {error}") from None
    central = found.get("prismCentral") if isinstance(found, dict) else None
    if not isinstance(central, dict) or not central.get("address"):
        raise Misconfigured("prismCentral.address: is required")
    topology = found.get("topologyDiscovery") or {}
    kind = topology.get("type") or "Prism"
    if kind not in ("Prism", "Categories"):
        raise Misconfigured(f"topologyDiscovery.type: must be Prism or Categories, not {kind!r}")
    categories = (topology.get("topologyCategories") or {}) if kind == "Categories" else {}
    if kind == "Categories" and not (categories.get("regionCategory") and categories.get("zoneCategory")):
        raise Misconfigured("topologyDiscovery.topologyCategories: regionCategory and zoneCategory are required")
    return CloudConfig(
        _central(central, namespace),
        namespace,
        str(categories.get("regionCategory") or ""),
        str(categories.get("zoneCategory") or ""),
        bool(found.get("enableCustomLabeling")),
        tuple(_range(str(each), number) for number, each in enumerate(found.get("ignoredNodeIPs") or ())),
        {str(name): str(pool) for name, pool in (found.get("addressPools") or {}).items()},
    )


def _central(found: Mapping[str, Any], namespace: str) -> PrismCentral:
    ref, bundle = found.get("credentialRef") or {}, found.get("additionalTrustBundle") or {}
    return PrismCentral(
        address=str(found["address"]),
        port=int(found.get("port") or DEFAULT_PORT),
        insecure=bool(found.get("insecure")),
        credential_ref=CredentialRef(name=str(ref.get("name") or ""), namespace=str(ref.get("namespace") or namespace))
        if ref.get("name")
        else None,
        additional_trust_bundle=TrustBundle(
            kind=str(bundle.get("kind") or "ConfigMap"),
            name=str(bundle.get("name") or ""),
            namespace=str(bundle.get("namespace") or namespace),
            data=str(bundle.get("data") or ""),
        )
        if bundle
        else None,
    )


def _range(text: str, number: int) -> tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address]:
    try:
        if "/" in text:
            network = ip_network(text, strict=False)
            return network.network_address, network.broadcast_address
        low, _, high = text.partition("-")
        return ip_address(low.strip()), ip_address((high or low).strip())
    except ValueError:
        raise Misconfigured(f"ignoredNodeIPs[{number}]: {text!r} is no address, range (FIRST-LAST) or CIDR") from None


class NutanixCloud:
    def __init__(self, config: CloudConfig, connector: Connector) -> None:
        self._config = config
        self._connector = connector
        # Connections are made for NutanixClusters: here the configuration plays that part.
        self._infra = NutanixCluster()
        self._infra.metadata.namespace = config.namespace
        self._infra.spec.prism_central = config.central
        self._topology: dict[tuple[str, str], str] = {}

    async def close(self) -> None:
        await self._connector.close()

    async def instance(self, node: Unstructured) -> CloudInstance | None:
        session = await self._connector.connect(self._infra)
        candidates = vm_ids(node)
        if not candidates:
            raise Missing(f"Node {node.name} says neither systemUUID nor providerID: its VM can't be told")
        for each in candidates:
            vm = await session.prism.vm(each)
            if vm is not None:
                return await self._describe(session, vm)
        return None

    async def _describe(self, session: PrismSession, vm: Vm) -> CloudInstance:
        (region, zone), labels = await asyncio.gather(self._place(session, vm), self._labels(session, vm))
        marked = next((m.partition(":")[2] for m in vm.marks if m.partition(":")[0].lower() == _PROVIDER_MARK), "")
        return CloudInstance(
            provider_id=f"{PREFIX}{marked or vm.id}",
            instance_type=INSTANCE_TYPE,
            region=region,
            zone=zone,
            shutdown=vm.power == "off",
            addresses=self._addresses(vm),
            labels=labels,
        )

    def _addresses(self, vm: Vm) -> tuple[Address, ...]:
        shown = [each for each in vm.addresses if not self._is_ignored(each)]
        if not shown:
            return ()
        return (*(Address("InternalIP", each) for each in shown), Address("Hostname", vm.name))

    def _is_ignored(self, text: str) -> bool:
        address = ip_address(text)
        return any(
            low.version == address.version and int(low) <= int(address) <= int(high)
            for low, high in self._config.ignored
        )

    async def _place(self, session: PrismSession, vm: Vm) -> tuple[str, str]:
        if self._config.region_category:
            region = await self._category(session, vm, self._config.region_category)
            return region, await self._category(session, vm, self._config.zone_category)
        everything = await session.prism_elements()
        centrals = [each.name for each in everything if each.is_central]
        zone = next((each.name for each in everything if each.id == vm.cluster_id), "")
        return (centrals[0] if len(centrals) == 1 else ""), zone

    async def _category(self, session: PrismSession, vm: Vm, key: str) -> str:
        """The value that the VM has of a category, else the one of its Prism Element."""
        values = await session.categories_of(vm, key)
        if len(values) > 1:
            raise Misconfigured(f"VM {vm.name} has several values of category {key}: {', '.join(sorted(values))}")
        return values[0] if values else ""

    async def _labels(self, session: PrismSession, vm: Vm) -> dict[str, str]:
        if not self._config.custom_labels:
            return {}
        found = {f"{_LABELS}/prism-element-uuid": vm.cluster_id, f"{_LABELS}/prism-host-uuid": vm.host_id}
        everything = await session.prism_elements()
        found[f"{_LABELS}/prism-element-name"] = next((e.name for e in everything if e.id == vm.cluster_id), "")
        found[f"{_LABELS}/prism-host-name"] = await session.host_name(vm)
        return {name: value for name, value in found.items() if value}


def vm_ids(node: Unstructured) -> list[str]:
    """What the firmware says first: a provider id may be older than the machine."""
    system = str(((node.get("status") or {}).get("nodeInfo") or {}).get("systemUUID") or "").lower()
    provider = str((node.get("spec") or {}).get("providerID") or "")
    known = provider.removeprefix(PREFIX) if provider.startswith(PREFIX) else ""
    return list(dict.fromkeys(filter(None, (system, known))))


def pools_of(config: CloudConfig) -> Iterable[tuple[str, str]]:
    return config.pools.items()
