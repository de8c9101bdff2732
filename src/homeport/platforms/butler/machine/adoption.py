"""VMs whose MachineRequest was removed by force: the request is made again, for the VM that exists.

Each step can be repeated. The new request is paused until its status names the VM: a request without a VM would get a
second one. A VM is removed by adopting it and deleting the request, so that all the care of a deletion applies.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from homeport.api.butler.v1alpha1 import GROUP, ClusterBootstrap, MachineRequest
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.platforms.butler.machine.phase import UNKNOWN
from homeport.platforms.butler.machine.record import Lost, find_lost, strike
from homeport.platforms.butler.name import PROVIDER_FINALIZER_PREFIX
from homeport.platforms.butler.normal.machine import CONTROL_PLANE

ADOPTED = f"{GROUP}/adopted-from"  # an annotation: the UID of the request that was removed
_WRITE = Write(field_manager="homeport-orphans")
_HOLD_SECONDS = 60.0


class Refused(Exception):
    """It can't be done, or should not; says why and what to do."""


async def choose(client: Client, names: Sequence[str], namespace: str) -> list[Lost]:
    """By NAME or NAMESPACE/NAME of the request, name of the VM or its id. Raises Refused."""
    found = await find_lost(client)
    return [_find(found, name, namespace) for name in dict.fromkeys(names)]


def _find(found: Sequence[Lost], name: str, namespace: str) -> Lost:
    fits = [each for each in found if name in (str(each.request), each.vm, each.uid)]
    here = [each for each in found if each.request.namespace == namespace]
    fits = fits or [each for each in here if name in (each.request.name, each.machine)]
    if not fits:
        raise Refused(f"{name}: no VM without its MachineRequest is called so: see 'homeport orphans machines'")
    if len(fits) > 1:
        raise Refused(f"{name}: several VMs fit: use the ID of one of them")
    return fits[0]


def check(lost: Lost, *, remove: bool, force: bool) -> None:
    """Raises Refused where the VM may be in use. `force` passes over that, and over nothing else."""
    what = f"VM {lost.machine} of MachineRequest {lost.request}"
    if not lost.vm:
        raise Refused(f"{what}: the provider does not show it ({lost.state or 'not asked yet'}): try again later")
    if not lost.spec:
        raise Refused(f"{what}: an earlier release recorded it without its size: delete it at its provider")
    if force:
        return
    if not lost.deleted:
        raise Refused(
            f"{what}: this plane did not see the deletion of the request. It may have been moved to another plane, or "
            "a backup may be older than the VM. If no other plane manages the VM, use --force"
        )
    if remove and lost.spec.get("role") in (CONTROL_PLANE, "controlplane"):
        raise Refused(f"{what} is a control plane and may run etcd: adopt it, or use --force to remove it nevertheless")


async def adopt(client: Client, lost: Lost) -> MachineRequest:
    """Makes the request again and gives it the VM. Raises Refused."""
    request = await _hold_request(client, lost)
    key = lost.request
    if request.metadata.annotations.get(ADOPTED) != lost.uid:
        raise Refused(f"MachineRequest {key} exists, and is for another VM: rename or delete it first")
    if request.spec.paused:
        await client.patch(MachineRequest, key, MergePatch({"status": _status(lost)}), _WRITE, subresource="status")
        uid = request.metadata.uid
        body = {"metadata": {"uid": uid}, "spec": {"paused": None}}
        request = await client.patch(MachineRequest, key, MergePatch(body), _WRITE)
    await _await_hold(client, key, request.metadata.uid)
    await strike(client, key.namespace, lost.uid)
    return request


async def remove(client: Client, lost: Lost) -> None:
    request = await adopt(client, lost)
    await client.delete(MachineRequest, lost.request, uid=request.metadata.uid)


async def _await_hold(client: Client, key: Key, uid: str) -> None:
    """Until its controller has set its finalizer: before that, a deletion would leave the VM behind."""
    query = Query(namespace=key.namespace, fields=f"metadata.name={key.name}")
    try:
        async with asyncio.timeout(_HOLD_SECONDS), client.watch(MachineRequest, query, initial_events=True) as events:
            async for event in events:
                if event.type in ("BOOKMARK", "DELETED") or event.object.metadata.uid != uid:
                    continue
                if any(each.startswith(PROVIDER_FINALIZER_PREFIX) for each in event.object.metadata.finalizers):
                    return
    except TimeoutError:
        pass
    raise Refused(
        f"MachineRequest {key} is made again, and its controller has not taken it up within {_HOLD_SECONDS:g} s: check "
        f"that the plane is running, and the conditions of the request; then run this command again"
    )


async def _hold_request(client: Client, lost: Lost) -> MachineRequest:
    meta = {
        "name": lost.request.name,
        "namespace": lost.request.namespace,
        "annotations": {ADOPTED: lost.uid},
        "labels": dict(lost.labels),
        "ownerReferences": [dict(each) for each in lost.owners if await _exists(client, lost.request.namespace, each)],
    }
    spec = {**lost.spec, "paused": True}
    body: dict[str, Any] = {**MachineRequest.__resource__.type_meta, "metadata": meta, "spec": spec}
    with contextlib.suppress(AlreadyExists):
        await client.create(body, _WRITE, kind=MachineRequest.__resource__)
    try:
        return await client.get(MachineRequest, lost.request)
    except NotFound:
        raise Refused(f"MachineRequest {lost.request} was deleted meanwhile: run this command again") from None


async def _exists(client: Client, namespace: str, owner: Mapping[str, Any]) -> bool:
    """An owner that is gone would have the request deleted, and its VM with it."""
    if owner.get("kind") != ClusterBootstrap.__resource__.kind:
        return False
    found = await find_object(client, ClusterBootstrap, Key(namespace, str(owner.get("name"))))
    if found is None:
        return False
    return found.metadata.uid == owner.get("uid") and not found.metadata.deletion_timestamp


def _status(lost: Lost) -> dict[str, Any]:
    found: dict[str, Any] = {"providerID": lost.provider_id, "phase": UNKNOWN}
    if lost.addresses:
        found |= {"ipAddress": lost.addresses[0], "ipAddresses": list(lost.addresses)}
    return found
