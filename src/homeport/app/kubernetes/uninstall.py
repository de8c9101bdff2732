"""Removes Homeport from a Kubernetes cluster of others, and keeps what belongs to users."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from homeport.api.meta import Resource
from homeport.app.definition import DIGEST, DefinitionError, asks_webhook, await_removed, serve_stored
from homeport.app.kubernetes import webhook
from homeport.app.kubernetes.dashboard import place as dashboard
from homeport.app.kubernetes.install import SERVICE, InstallError, delete, installed, remove, summary
from homeport.app.kubernetes.layout import LAYOUTS, SYSTEM_NAMESPACE, placements
from homeport.app.kubernetes.workload import INSTALLED
from homeport.app.platform import Platform
from homeport.capi.definition.inventory import is_inventory
from homeport.client.absence import drop_object, find_object
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, Query
from homeport.machinery.manifest import described
from homeport.runtime.definition import CRD, SHARED_LABEL
from homeport.runtime.lease import LEASE
from homeport.runtime.webhook.authority import SECRET
from homeport.runtime.webhook.configuration import INJECT_ANNOTATION, MUTATING, VALIDATING

_SHOWN = 5
_ASKING = (MUTATING, VALIDATING)
_SERVICE = Key(SYSTEM_NAMESPACE, webhook.SERVICE)
_OWN_MANAGER = re.compile(r"homeport(-.*)?|k0rdent|butler(-.*)?")  # field managers of controllers, and of commands
_COMMAND_MANAGER = re.compile(r"homeport(-(create|dashboard|heal|image|import|move|orphans|rollout|upgrade))?")
_PLATFORM_MANAGER = re.compile(r"k0rdent|butler(-.*)?")  # of controllers that create objects by themselves

Say = Callable[[str], None]
_Name = tuple[str, str, str, str]  # group, kind, namespace, name


async def uninstall(client: Client, platform: Platform, say: Say, *, definitions: bool = False) -> None:
    """The controllers and their permissions. With `definitions` also all kinds, which is refused while users have
    objects of them: they would be deleted, and machines would be left behind that no controller knows.

    Raises InstallError and ApiError. Repeat it after any failure.
    """
    crds = await _ours(client, platform) if definitions else []
    built_in = _built_in(platform)
    await _refuse_objects(client, crds, built_in, "Nothing was removed")
    found = await installed(client)
    await remove(client, [each for each in found if each[0] in _ASKING], say)
    await _end_conversion(client, platform, say)
    await remove(client, [each for each in found if each[0] not in _ASKING], say)
    say(f"removed {len(found)} objects: {summary(kind.kind for kind, _ in found)}" if found else "nothing is installed")
    await _remove_leases(client, platform)
    await _remove_authority(client)
    await _remove_dashboard_certificates(client)
    await _remove_definitions(client, crds, built_in, say)
    say(_kept(definitions))


async def _remove_definitions(
    client: Client, crds: list[Mapping[str, Any]], built_in: frozenset[_Name], say: Say
) -> None:
    """Looks for objects once more: no webhook guards them any more. It also makes the API server prepare the storage of
    definitions that were changed just now; it could not remove them before."""
    await _refuse_objects(client, crds, built_in, "The CustomResourceDefinitions were kept")
    for crd in crds:
        await delete(client, CRD, Key("", crd["metadata"]["name"]), str(crd["metadata"]["uid"]))
    for crd in crds:
        try:
            await await_removed(client, crd)
        except DefinitionError as error:
            raise InstallError(str(error)) from error
    if crds:
        say(f"removed {len(crds)} CustomResourceDefinitions")


async def _end_conversion(client: Client, platform: Platform, say: Say) -> None:
    """Before the replicas are removed: without an answer an API server could not even show objects in an older
    version. What another installation serves, for example one by Helm, stays."""
    if await _served_by_others(client):
        say(f"kept: the webhooks of Service {_SERVICE}, which was not created by 'homeport install'")
        return
    ended = 0
    for body in platform.definitions():
        crd = await find_object(client, CRD, Key("", body["metadata"]["name"]))
        annotations = (crd["metadata"].get("annotations") or {}) if crd is not None else {}
        if crd is not None and asks_webhook(crd) and annotations.get(INJECT_ANNOTATION) == str(_SERVICE):
            await serve_stored(client, crd)
            ended += 1
    if ended:
        say(f"{ended} CustomResourceDefinitions serve only their newest version now")


async def _served_by_others(client: Client) -> bool:
    service = await find_object(client, SERVICE, _SERVICE)
    return service is not None and (service["metadata"].get("labels") or {}).get(INSTALLED) != "true"


async def _remove_authority(client: Client) -> None:
    """The CA of the webhooks, which the replicas made."""
    if not await _served_by_others(client):
        with contextlib.suppress(NotFound):
            await client.delete(SECRET, webhook.secret_of(SYSTEM_NAMESPACE))


async def _remove_dashboard_certificates(client: Client) -> None:
    """The garbage collector would, with their owner; until then the key of a CA would be left."""
    if await find_object(client, dashboard.CONFIG_MAP, dashboard.KEY) is not None:
        return  # another installation has it, for example one by Helm
    for kind, key in dashboard.ISSUED:
        await drop_object(client, kind, key)


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


async def _refuse_objects(
    client: Client, crds: Iterable[Mapping[str, Any]], built_in: frozenset[_Name], kept: str
) -> None:
    found: list[str] = []
    for crd in crds:
        kind = _resource(crd)
        async for each in _objects(client, kind):
            known = (kind.group, kind.kind, each.namespace, each.name) in built_in or is_inventory(crd)
            if _matters(each, known=known):
                found.append(described({**kind.type_meta, **each}))
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise InstallError(
            f"--crds would delete {len(found)} objects: {', '.join(found[:_SHOWN])}{more}. {kept}. Delete the "
            "clusters first and wait until their machines are gone, move them with 'homeport move', or leave out "
            "--crds to keep them"
        )


def _built_in(platform: Platform) -> frozenset[_Name]:
    """What an installation creates at its start."""
    bodies = [(kind, body["metadata"]) for kind, body in platform.objects()]
    return frozenset((kind.group, kind.kind, str(m.get("namespace", "")), str(m["name"])) for kind, m in bodies)


def _matters(obj: Mapping[str, Any], *, known: bool) -> bool:
    """Whether a user wrote it, be it with a command of ours or with the dashboard, or it stands for something that a
    controller has to remove first.

    What is left are built-in templates, catalogues and the inventory, which an installation creates again, and objects
    with an owner, which itself counts.
    """
    meta = obj["metadata"]
    managers = {str(each.get("manager", "")) for each in meta.get("managedFields") or ()}
    if meta.get("finalizers") or not managers or any(not _OWN_MANAGER.fullmatch(each) for each in managers):
        return True
    if known or meta.get("ownerReferences"):
        return False
    by_command = any(_COMMAND_MANAGER.fullmatch(each) for each in managers)
    return by_command or not any(_PLATFORM_MANAGER.fullmatch(each) for each in managers)


async def _objects(client: Client, kind: Resource) -> Any:
    query = Query(limit=500)
    while True:
        try:
            page = await client.list(kind, query)
        except NotFound:
            return  # an earlier run has deleted the definition, and the server has just removed it
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
