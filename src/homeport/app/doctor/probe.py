"""Asks providers whether they can be reached with the credentials of a cluster, as the controllers do."""

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
from homeport.providers.harvester.infracluster.connection import Connector as HarvesterConnector
from homeport.providers.nutanix.connection import Connector as PrismConnector
from homeport.runtime.clock import SystemClock

_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Probe:
    """A provider that could not be used, on the object that names it."""

    object: Unstructured
    reason: str
    message: str


class _Connector(Protocol):
    def sources(self, infra: Any) -> Sources: ...
    async def connect(self, infra: Any) -> object: ...
    async def close(self) -> None: ...


async def probe(client: Client, objects: Iterable[Unstructured], dial: DialOptions) -> list[Probe]:
    """Clusters that share an endpoint and credentials share a session."""
    clock = SystemClock()
    connectors: Mapping[str, tuple[type, _Connector]] = {
        "NutanixCluster": (NutanixCluster, PrismConnector(client, clock, dial)),
        "KubevirtCluster": (KubevirtCluster, HarvesterConnector(client, clock, dial)),
    }
    try:
        asked = [
            _ask(each, *connectors[str(each.get("kind"))])
            for each in objects
            if each.get("kind") in connectors and not _is_refused(each)
        ]
        return [each for each in await asyncio.gather(*asked) if each is not None]
    finally:
        for _, connector in connectors.values():
            await connector.close()


def _is_refused(obj: Unstructured) -> bool:
    """The controllers have shown its credentials in vain. Vendors lock accounts after a few wrong passwords."""
    return any(each.get("reason") == policy_of(Denied("")).reason for each in conditions_of(obj))


async def _ask(obj: Unstructured, kind: type, connector: _Connector) -> Probe | None:
    try:
        infra: Any = msgspec.convert(dict(obj), kind)
    except msgspec.ValidationError:
        return None  # the controllers report what can't be read
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await connector.connect(infra)
    except ProviderError as shared:
        error = seen_from(_origin(connector, infra), shared)
        return Probe(obj, policy_of(error).reason, error.message)
    except TimeoutError:
        return Probe(obj, "Unreachable", f"the provider has not answered within {_PATIENCE_SECONDS:.0f} s")
    return None


def _origin(connector: _Connector, infra: Any) -> str:
    secrets = connector.sources(infra).secrets
    return f"Secret {secrets[0]}" if len(secrets) == 1 else ""
