"""Asks providers: whether they can be reached with the credentials of a cluster, and what they know about machines
that do not come up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from homeport.api.kubevirt.v1alpha1 import KubevirtCluster
from homeport.api.meta import Unstructured
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.capi.cloud import Sources
from homeport.capi.object.summary import conditions_of
from homeport.client.dial import DialOptions
from homeport.client.protocol import Client
from homeport.infra.error import Denied, ProviderError, policy_of, seen_from
from homeport.infra.vendor.trouble import Trouble
from homeport.providers.harvester import trouble as harvester
from homeport.providers.harvester.infracluster.connection import Connector as HarvesterConnector
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.providers.nutanix import trouble as nutanix
from homeport.providers.nutanix.connection import Connector as PrismConnector
from homeport.providers.nutanix.connection import PrismSession
from homeport.runtime.clock import SystemClock

_PATIENCE_SECONDS = 10.0
_MACHINES = ("NutanixMachine", "KubevirtMachine")


@dataclass(frozen=True, slots=True)
class Probe:
    """What is wrong at a provider, on the object that it concerns."""

    object: Unstructured
    reason: str
    message: str


class _Connector(Protocol):
    def sources(self, infra: Any) -> Sources: ...
    async def connect(self, infra: Any) -> object: ...
    async def close(self) -> None: ...


async def probe(client: Client, objects: Iterable[Unstructured], dial: DialOptions) -> list[Probe]:
    """Clusters that share an endpoint and credentials share a session."""
    clock, objects = SystemClock(), [*objects]
    machines = [each for each in objects if each.get("kind") in _MACHINES]
    connectors: Mapping[str, tuple[type, _Connector]] = {
        "NutanixCluster": (NutanixCluster, PrismConnector(client, clock, dial)),
        "KubevirtCluster": (KubevirtCluster, HarvesterConnector(client, clock, dial)),
    }
    try:
        asked = [
            _ask(each, *connectors[str(each.get("kind"))], [one for one in machines if one.namespace == each.namespace])
            for each in objects
            if each.get("kind") in connectors and not _is_refused(each)
        ]
        return [each for found in await asyncio.gather(*asked) for each in found]
    finally:
        for _, connector in connectors.values():
            await connector.close()


def _is_refused(obj: Unstructured) -> bool:
    """The controllers have shown its credentials in vain. Vendors lock accounts after a few wrong passwords."""
    return any(each.get("reason") == policy_of(Denied("")).reason for each in conditions_of(obj))


async def _ask(obj: Unstructured, kind: type, connector: _Connector, machines: list[Unstructured]) -> list[Probe]:
    try:
        infra: Any = msgspec.convert(dict(obj), kind)
    except msgspec.ValidationError:
        return []  # the controllers report what can't be read
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            session = await connector.connect(infra)
            return _placed(obj, machines, await _troubles(session, machines))
    except ProviderError as shared:
        error = seen_from(_origin(connector, infra), shared)
        return [Probe(obj, policy_of(error).reason, error.message)]
    except TimeoutError:
        text = f"the provider has not answered within {_PATIENCE_SECONDS:.0f} s"
        return [Probe(obj, "Unreachable", text)]


async def _troubles(session: object, machines: list[Unstructured]) -> list[Trouble]:
    pending = {each.name for each in machines if not _is_up(each)}
    if isinstance(session, PrismSession):
        refs = [(each.get("spec") or {}).get("project") or {} for each in machines]
        projects = {str(value) for ref in refs for value in (ref.get("name"), ref.get("uuid")) if value}
        return await nutanix.troubles(session, pending, projects)
    return await harvester.troubles(session, pending) if isinstance(session, HarvesterSession) else []


def _placed(obj: Unstructured, machines: list[Unstructured], troubles: list[Trouble]) -> list[Probe]:
    """On the machine that each is about; a quota on the cluster. A full quota hurts nobody while all machines run."""
    named = {each.name: each for each in machines}
    waiting = any(not _is_up(each) for each in machines)
    found: list[Probe] = []
    for each in troubles:
        reason = "QuotaNearlyUsedUp" if each.reason == "QuotaUsedUp" and not waiting else each.reason
        found.append(Probe(named.get(each.about, obj), reason, each.message))
    return found


def _is_up(machine: Unstructured) -> bool:
    status = machine.get("status") or {}
    return bool((status.get("initialization") or {}).get("provisioned") or status.get("ready"))


def _origin(connector: _Connector, infra: Any) -> str:
    secrets = connector.sources(infra).secrets
    return f"Secret {secrets[0]}" if len(secrets) == 1 else ""
