"""Removes Homeport from a Kubernetes cluster of others, and keeps what belongs to users."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from homeport.api.meta import Resource
from homeport.app.definition import DIGEST
from homeport.app.kubernetes.install import InstallError, delete, installed, summary
from homeport.app.kubernetes.layout import LAYOUTS, placements
from homeport.app.platform import Platform
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, Query
from homeport.machinery.manifest import described
from homeport.runtime.definition import CRD, SHARED_LABEL
from homeport.runtime.lease import LEASE

_SHOWN = 5
_OWN_MANAGER = re.compile(r"homeport(-.*)?|k0rdent|butler(-.*)?")  # field managers of the controllers

Say = Callable[[str], None]


async def uninstall(client: Client, platform: Platform, say: Say, *, definitions: bool = False) -> None:
    """The controllers and their permissions. With `definitions` also all kinds, which is refused while users have
    objects of them: they would be deleted, and machines would be left behind that no controller knows.

    Raises InstallError and ApiError. Repeat it after any failure.
    """
    crds = await _ours(client, platform) if definitions else []
    await _refuse_objects(client, crds)
    found = await installed(client)
    for kind, each in found:
        await delete(client, kind, Key(each.namespace, each.name), each.uid)
    say(f"removed {len(found)} objects: {summary(kind.kind for kind, _ in found)}" if found else "nothing is installed")
    await _remove_leases(client, platform)
    for crd in crds:
        await delete(client, CRD, Key("", crd["metadata"]["name"]), str(crd["metadata"]["uid"]))
    if crds:
        say(f"removed {len(crds)} CustomResourceDefinitions")
    say(_kept(definitions))


def _kept(definitions: bool) -> str:
    if definitions:
        return "kept: namespaces, with the Secrets and ConfigMaps in them"
    return "kept: CustomResourceDefinitions, all objects of these kinds, and namespaces; machines continue to run"


async def _ours(client: Client, platform: Platform) -> list[Mapping[str, Any]]:
    """Definitions that we installed. One that another project shares with us stays."""
    found: list[Mapping[str, Any]] = []
    for body in platform.definitions():
        try:
            crd = await client.get(CRD, Key("", body["metadata"]["name"]))
        except NotFound:
            continue
        meta = crd["metadata"]
        shared = SHARED_LABEL in (body["metadata"].get("labels") or {})
        if not shared or DIGEST in (meta.get("annotations") or {}):
            found.append(crd)
    return found


async def _refuse_objects(client: Client, crds: Iterable[Mapping[str, Any]]) -> None:
    found: list[str] = []
    for crd in crds:
        kind = _resource(crd)
        found += [described({**kind.type_meta, **each}) async for each in _objects(client, kind) if _matters(each)]
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise InstallError(
            f"--crds would delete {len(found)} objects: {', '.join(found[:_SHOWN])}{more}. Nothing was removed. Delete "
            "the clusters first and wait until their machines are gone, move them with 'homeport move', or leave out "
            "--crds to keep them"
        )


def _matters(obj: Mapping[str, Any]) -> bool:
    """Whether somebody else wrote it, or it stands for something that a controller has to remove first.

    What is left are built-in templates, catalogues and the inventory, which an installation creates again.
    """
    meta = obj["metadata"]
    managers = {str(each.get("manager", "")) for each in meta.get("managedFields") or ()}
    return bool(meta.get("finalizers")) or not managers or any(not _OWN_MANAGER.fullmatch(each) for each in managers)


async def _objects(client: Client, kind: Resource) -> Any:
    query = Query(limit=500)
    while True:
        page = await client.list(kind, query)
        for each in page.items:
            yield each
        if not page.continue_:
            return
        query = Query(limit=500, continue_=page.continue_)


async def _remove_leases(client: Client, platform: Platform) -> None:
    """The API server has no owner for them: nobody else does."""
    for namespace, name in _leases(platform):
        try:
            await client.delete(LEASE, Key(namespace, name))
        except NotFound:
            continue


def _leases(platform: Platform) -> Iterator[tuple[str, str]]:
    for layout in LAYOUTS:
        yield from dict.fromkeys(each.lease for each in placements(platform.components, layout))


def _resource(crd: Mapping[str, Any]) -> Resource:
    spec = crd["spec"]
    version = next(each["name"] for each in spec["versions"] if each["storage"])
    return Resource(
        spec["group"], version, spec["names"]["kind"], spec["names"]["plural"], spec["scope"] == "Namespaced"
    )
