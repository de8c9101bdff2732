"""A plane with pools and claims, and nothing else of Cluster API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from homeport import ipam
from homeport.api.ipam.v1alpha2 import GROUP, GlobalInClusterIPPool, InClusterIPPool
from homeport.api.ipam.v1beta2 import IPAddress, IPAddressClaim
from homeport.builtin.install import install as install_builtin
from homeport.capi.definition.kind import KINDS, render_definition
from homeport.client.protocol import Key, Query
from homeport.ipam.definition import definitions
from homeport.runtime.manager import Manager
from homeport.runtime.testing import Plane, plane
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks

NEEDED = ("IPAddress", "IPAddressClaim", "Cluster")
BETA = f"{GROUP}/v1beta2"


def pool(name: str = "machines", *addresses: str, kind: str = "InClusterIPPool", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"addresses": list(addresses or ["10.0.0.10-10.0.0.12"]), "prefix": 24, "gateway": "10.0.0.1", **spec},
    }


def claim(name: str, pool: str = "machines", kind: str = "InClusterIPPool", **meta: Any) -> dict[str, Any]:
    return {
        "apiVersion": BETA,
        "kind": "IPAddressClaim",
        "metadata": {"name": name, **meta},
        "spec": {"poolRef": {"apiGroup": GROUP, "kind": kind, "name": pool}},
    }


@asynccontextmanager
async def ipam_plane(*, start: bool = True) -> AsyncIterator[Plane]:
    # One version is enough here: others would need their conversion.
    newest = [replace(each, versions=each.versions[-1:]) for each in KINDS]
    crds = [render_definition(each) for each in newest if each.versions[-1].__resource__.kind in NEEDED]
    async with plane(crds=[*crds, *definitions()]) as p:
        hooks = Hooks()
        ipam.register(hooks, p.client)
        install_hooks(hooks, p.server)
        if start:
            await begin(p)
        yield p


async def begin(p: Plane) -> None:
    """A manager that knows nothing but what is in the API."""
    p.manager = Manager(p.server.client(), clock=p.clock)
    install_builtin(p.server, p.manager)  # what is owned goes with its owner
    ipam.install(p.manager)
    await p.start()


async def given(p: Plane, *names: str) -> list[str]:
    """The addresses of these claims, once they have them."""
    found = []
    for name in names:
        await p.until(IPAddressClaim, Key("default", name), lambda c: c.status.address_ref is not None, timeout=90)
        found.append((await p.client.get(IPAddress, Key("default", name))).spec.address)
    return found


async def addresses(p: Plane) -> dict[str, str]:
    found = (await p.client.list(IPAddress, Query())).items
    return {f"{each.metadata.namespace}/{each.metadata.name}": each.spec.address for each in found}


def ready(obj: Any, reason: str = "") -> bool:
    for each in obj.status.conditions:
        if each["type"] == "Ready":
            return bool(each["status"] == "True" if not reason else each["reason"] == reason)
    return False


def message(obj: Any) -> str:
    return next((each["message"] for each in obj.status.conditions if each["type"] == "Ready"), "")


__all__ = ["GlobalInClusterIPPool", "InClusterIPPool", "addresses", "claim", "given", "ipam_plane", "pool"]
