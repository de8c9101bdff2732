"""Finds a Machine by its name, with its infrastructure and bootstrap objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Client, Key, Query
from homeport.client.restmapper import RestMapper
from homeport.infra.preflight.near import near

MACHINE = Resource("cluster.x-k8s.io", "v1beta2", "Machine", "machines", True)


class NoMachine(Exception):
    """There is no Machine of this name."""


@dataclass(frozen=True, slots=True)
class FoundMachine:
    machine: Unstructured
    infra: Mapping[str, Any]  # empty: it does not exist, or may not be read
    bootstrap: Mapping[str, Any]

    @property
    def vm(self) -> str:
        """The name of its VM: that of the infrastructure object."""
        return str((self.infra.get("metadata") or {}).get("name") or self.machine.name)

    @property
    def addresses(self) -> list[str]:
        """To connect to, the best first."""
        found = (self.machine.get("status") or {}).get("addresses") or ()
        order = ("ExternalIP", "InternalIP")
        usable = sorted((each for each in found if each.get("type") in order), key=lambda e: order.index(e["type"]))
        return [str(each["address"]) for each in usable]


async def find_machine(client: Client, key: Key) -> FoundMachine:
    """Raises NoMachine."""
    try:
        machine = await client.get(MACHINE, key)
    except NotFound:
        names = [each.name for each in (await client.list(MACHINE, Query(namespace=key.namespace))).items]
        raise NoMachine(f"no Machine {key.name!r} in namespace {key.namespace!r}{near(key.name, names)}") from None
    spec = machine.get("spec") or {}
    kinds = RestMapper(client)
    infra = await _follow(client, kinds, spec.get("infrastructureRef"), key.namespace)
    bootstrap = await _follow(client, kinds, (spec.get("bootstrap") or {}).get("configRef"), key.namespace)
    return FoundMachine(machine, infra, bootstrap)


async def _follow(
    client: Client, kinds: RestMapper, ref: Mapping[str, Any] | None, namespace: str
) -> Mapping[str, Any]:
    if not ref:
        return {}
    try:
        group = str(ref.get("apiGroup") or str(ref.get("apiVersion", "")).partition("/")[0])
        kind = next(each for each in await kinds.listed() if (each.group, each.kind) == (group, ref.get("kind")))
        return await client.get(kind, Key(namespace, str(ref["name"])))
    except (ApiError, StopIteration):
        return {}
