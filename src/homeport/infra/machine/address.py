"""Addresses of machines from pools of any IPAM provider: one claim each, held until the machine is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.ipam.v1beta2 import IPAddress, IPAddressClaim, IPPoolReference
from homeport.api.meta import Object, wire
from homeport.capi import name as names
from homeport.capi.object.ownership import controller_of, is_controlled_by, owner_reference
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Key, MergePatch, Write
from homeport.infra.protocol import StaticAddress
from homeport.machinery import condition
from homeport.runtime.cache import key_of
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait

# On a claim: a machine uses the address. The IPAM provider must not reassign it, even if the claim is being deleted.
IN_USE = "infrastructure.homeport.dev/machine"
BY_MACHINE = "machine"


def pools_of(infra: Any) -> Sequence[IPPoolReference]:
    """`spec.addressesFromPools`: one for each network card, in order. Kinds without that field have none."""
    found: Sequence[IPPoolReference] = getattr(infra.spec, "addresses_from_pools", ())
    return found


def takes_addresses(kind: type[Object]) -> bool:
    spec: Any = getattr(kind(), "spec", None)
    return hasattr(spec, "addresses_from_pools")


def claim_name(infra: Object, index: int) -> str:
    return f"{infra.metadata.name}-{index}"


class Claims:
    """The claims of all machines of a kind."""

    def __init__(self, manager: Manager, provider: str, kind: type[Object]) -> None:
        self._client = manager.client
        self._claims = manager.informers.get(IPAddressClaim).cache
        self._addresses = manager.informers.get(IPAddress).cache
        self._index = f"{BY_MACHINE} of {provider}"
        self._claims.add_index(self._index, _machine_uid)
        self._names = f"{self._index}, by name"
        owner = machine_of(kind)
        self._claims.add_index(self._names, lambda claim: [str(each) for each in owner(claim)])
        self._write = Write(field_manager=f"homeport-{provider}")

    # -- growing -----------------------------------------------------------------------------------------------

    async def hold(self, infra: Object, cluster: Cluster) -> Wait | tuple[StaticAddress, ...]:
        """The addresses in the order of the pools, once all are there."""
        waits: list[Wait] = []
        given: list[StaticAddress] = []
        for index, ref in enumerate(pools_of(infra)):
            name = claim_name(infra, index)
            found = await self._claimed(infra, cluster, name, ref)
            address = self._address(found) if isinstance(found, IPAddressClaim) else None
            if address is not None:
                given.append(_static(address, ref))
            else:
                waits.append(found if isinstance(found, Wait) else _waiting(found))
        return _joined(waits) if waits else tuple(given)

    async def _claimed(self, infra: Object, cluster: Cluster, name: str, ref: IPPoolReference) -> IPAddressClaim | Wait:
        claim: IPAddressClaim | None = self._claims.get(Key(infra.metadata.namespace, name))
        if claim is None:
            try:
                body = _render(infra, cluster, name, ref)
                await self._client.create(body, self._write, kind=IPAddressClaim.__resource__)
            except AlreadyExists:
                return Wait("WaitingForIPAddress", f"IPAddressClaim {name} was created a moment ago", quiet=True)
            return Wait("WaitingForIPAddress", f"IPAddressClaim {name} has no address yet", quiet=True)
        if not is_controlled_by(claim, infra):
            owner = controller_of(claim)
            whose = f"belongs to {owner['kind']} {owner['name']}" if owner else "has no owner"
            text = f"IPAddressClaim {name} exists and {whose}: delete it, or use another name for the machine"
            return Wait("AddressClaimTaken", text, warning=True)
        if claim.spec.pool_ref != ref:
            await self._drop(claim)  # the pool was corrected before there was a machine
            return Wait("WaitingForIPAddress", f"IPAddressClaim {name} is created again for another pool", quiet=True)
        return claim

    def _address(self, claim: IPAddressClaim) -> IPAddress | None:
        ref = claim.status.address_ref
        found: IPAddress | None = self._addresses.get(Key(claim.metadata.namespace, ref.name)) if ref else None
        return found

    # -- shrinking ---------------------------------------------------------------------------------------------

    async def release(self, infra: Object) -> None:
        """The machine is gone: its addresses may go to others."""
        for claim in self._claims.by(self._index, infra.metadata.uid):
            await self._drop(claim)

    async def release_left(self, machine: Key) -> None:
        """Claims that are being deleted and whose machine object is gone, for example because its finalizer was
        removed by hand: no other controller releases them."""
        for claim in self._claims.by(self._names, str(machine)):
            if claim.metadata.deletion_timestamp:
                await self._drop(claim)

    async def _drop(self, claim: IPAddressClaim) -> None:
        """Deleted, then let go: after a crash in between the finalizer still says that it was ours."""
        meta, key = claim.metadata, key_of(claim)
        try:
            if not meta.deletion_timestamp:
                await self._client.delete(IPAddressClaim, key, uid=meta.uid)
            if IN_USE in meta.finalizers:
                live = (await self._client.get(IPAddressClaim, key)).metadata
                left = [each for each in live.finalizers if each != IN_USE]
                body = {"finalizers": left, "uid": meta.uid, "resourceVersion": live.resource_version}
                await self._client.patch(IPAddressClaim, key, MergePatch({"metadata": body}), self._write)
        except NotFound:
            return


def machine_of(kind: type[Object]) -> Callable[[IPAddressClaim], Iterable[Key]]:
    """For watches: the machine of this kind that a claim was made for."""
    resource = kind.__resource__

    def keys(claim: IPAddressClaim) -> Iterable[Key]:
        owner = controller_of(claim)
        if owner is not None and owner["kind"] == resource.kind:
            yield Key(claim.metadata.namespace, owner["name"])

    return keys


def _machine_uid(claim: IPAddressClaim) -> list[str]:
    owner = controller_of(claim)
    return [owner["uid"]] if owner is not None else []


def _render(infra: Object, cluster: Cluster, name: str, ref: IPPoolReference) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": infra.metadata.namespace,
            "labels": {names.CLUSTER_NAME_LABEL: cluster.metadata.name},
            "ownerReferences": [owner_reference(infra, controller=True)],
            "finalizers": [IN_USE],
        },
        "spec": {"clusterName": cluster.metadata.name, "poolRef": wire(ref)},
    }


def _static(address: IPAddress, ref: IPPoolReference) -> StaticAddress:
    spec = address.spec
    return StaticAddress(spec.address, spec.prefix or 0, spec.gateway, f"{ref.kind} {ref.name}")


def _waiting(claim: IPAddressClaim) -> Wait:
    """The IPAM provider's message, if it gives a reason."""
    name, said = claim.metadata.name, condition.find(claim.status.conditions, "Ready")
    if said is None or said.get("status") != "False":
        ref = claim.spec.pool_ref
        pool = f"{ref.kind} {ref.name}" if ref is not None else "its pool"
        return Wait("WaitingForIPAddress", f"IPAddressClaim {name} has no address of {pool} yet", quiet=True)
    reason = str(said.get("reason") or "WaitingForIPAddress")
    return Wait(reason, f"IPAddressClaim {name}: {said.get('message') or reason}", warning=True)


def _joined(waits: Sequence[Wait]) -> Wait:
    """What is wrong comes before what only takes a moment."""
    bad = [each for each in waits if each.warning] or list(waits)
    message = "; ".join(dict.fromkeys(each.message for each in bad))
    return Wait(bad[0].reason, message, warning=bad[0].warning, quiet=bad[0].quiet)
