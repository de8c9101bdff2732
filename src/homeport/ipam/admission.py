"""What pools, claims and addresses may say, and what may not change while somebody uses it."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import msgspec

from homeport.api.ipam.v1alpha2 import PoolSpec
from homeport.api.ipam.v1beta2 import IPAddress, IPAddressClaim
from homeport.api.meta import Resource
from homeport.capi.addresspool import KINDS, Pool, describe, network_of, reservations, usable
from homeport.client.absence import find_object
from homeport.client.errors import Cause, NotFound
from homeport.client.protocol import Client, Key
from homeport.ipam import conversion
from homeport.ipam.name import SKIP_VALIDATE_DELETE
from homeport.ipam.pool import list_addresses
from homeport.machinery.address import Address, AddressSet, parse_span
from homeport.runtime.cache import key_of
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]
_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


def register(hooks: Hooks, client: Client) -> None:
    """`client` looks up what is in use; it must be able to read claims and addresses wherever these hooks run."""
    conversion.register(hooks)
    for kind in KINDS.values():
        use = Use(client, kind)
        hooks.add(kind, validate=validate_pool, validate_delete=use.validate_delete, warn=use.warn)
        hooks.add(kind, validate=use.validate)
    hooks.add(IPAddress, validate=validate_address)
    hooks.add(IPAddress, validate=Claimed(client).validate)
    hooks.add(IPAddressClaim, validate=validate_claim)


# -- pools -------------------------------------------------------------------------------------------------------


def validate_pool(obj: Json, old: Json | None) -> list[Cause]:
    if old is not None and old.get("spec") == obj.get("spec"):
        return []
    spec = obj.get("spec") or {}
    causes = [*_list_causes(spec, "addresses"), *_list_causes(spec, "excludedAddresses")]
    if not spec.get("addresses"):
        causes.append(Cause.required("spec.addresses", "set at least one address"))
    if causes:
        return causes
    typed = msgspec.convert(spec, PoolSpec, strict=False)
    causes = [*_family_causes(typed), *_gateway_causes(typed)]
    return causes or list(_network_causes(typed))


def _list_causes(spec: Json, field: str) -> Iterator[Cause]:
    for number, text in enumerate(spec.get(field) or ()):
        try:
            parse_span(str(text))
        except ValueError as error:
            yield Cause.invalid(f"spec.{field}[{number}]", str(error))


def _family_causes(spec: PoolSpec) -> Iterator[Cause]:
    """A pool is of one family: the first address decides."""
    version = parse_span(spec.addresses[0])[0].version
    for field, texts in (("addresses", spec.addresses), ("excludedAddresses", spec.excluded_addresses)):
        for number, text in enumerate(texts):
            other = parse_span(text)[0].version
            if other != version:
                message = (
                    f"{text!r} is IPv{other}, but the first address of the pool is IPv{version}: create a pool "
                    "for each family"
                )
                yield Cause.invalid(f"spec.{field}[{number}]", message)


def _gateway_causes(spec: PoolSpec) -> Iterator[Cause]:
    if not spec.gateway:
        return
    gateway = _address(spec.gateway)
    version = parse_span(spec.addresses[0])[0].version
    if gateway is None:
        yield Cause.invalid("spec.gateway", f"{spec.gateway!r} is not a valid IP address")
    elif gateway.version != version:
        yield Cause.invalid("spec.gateway", f"{gateway} is IPv{gateway.version}, but the addresses are IPv{version}")


def _network_causes(spec: PoolSpec) -> Iterator[Cause]:
    try:
        network = network_of(spec)
    except ValueError as error:
        yield Cause.invalid("spec.prefix", str(error))
        return
    for number, text in enumerate(spec.addresses):
        if not network.covers(AddressSet.parse([text])):
            message = f"{text!r} is outside the network {network} of the first address with prefix {spec.prefix}"
            yield Cause.invalid(f"spec.addresses[{number}]", message)


class Use:
    """What claims hold of a pool stands against making it smaller and against removing it."""

    def __init__(self, client: Client, kind: type[Pool]) -> None:
        self._client = client
        self._kind = kind

    async def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        if old is None or old.get("spec") == obj.get("spec"):
            return []
        try:
            left = usable(msgspec.convert(obj.get("spec") or {}, PoolSpec, strict=False))
            before = usable(msgspec.convert(old.get("spec") or {}, PoolSpec, strict=False))
        except ValueError:
            return []  # said already; and what was wrong before may be put right in any way
        lost = [
            f"{address} (IPAddressClaim {claim})"
            for address, claim in await self._held(old)
            if address in before and address not in left
        ]
        if not lost:
            return []
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        message = (
            f"Forbidden: in use and no longer in the pool: {', '.join(lost[:5])}{more}; keep them, or delete the claims"
        )
        return [Cause("FieldValueForbidden", message, "spec.addresses")]

    async def validate_delete(self, obj: Json) -> list[Cause]:
        meta = obj.get("metadata") or {}
        if SKIP_VALIDATE_DELETE in (meta.get("annotations") or {}) or await self._namespace_goes(meta):
            return []
        held = await self._held(obj)
        if not held:
            return []
        shown = ", ".join(f"{address} (IPAddressClaim {claim})" for address, claim in held[:5])
        more = f" and {len(held) - 5} more" if len(held) > 5 else ""
        message = f"Forbidden: {len(held)} of its addresses are in use: {shown}{more}; delete the claims first"
        return [Cause("FieldValueForbidden", message, "metadata.name")]

    async def warn(self, obj: Json, old: Json | None) -> list[str]:
        """Two pools may have the same addresses, for networks that know nothing of each other. Most do."""
        if old is not None and old.get("spec") == obj.get("spec"):
            return []
        try:
            own = usable(msgspec.convert(obj.get("spec") or {}, PoolSpec, strict=False))
        except (ValueError, msgspec.ValidationError):
            return []
        meta = obj.get("metadata") or {}
        found: list[str] = []
        for kind in KINDS.values():
            for other in (await self._client.list(kind)).items:
                same = kind is self._kind and other.metadata.uid == meta.get("uid")
                apart = {other.metadata.namespace, str(meta.get("namespace") or "")} - {""}
                if not same and len(apart) < 2:
                    found += _shared(own, other, describe(kind, key_of(other)))
        return found

    async def _held(self, pool: Json) -> list[tuple[Address, Key]]:
        meta = pool.get("metadata") or {}
        key = Key(str(meta.get("namespace") or ""), str(meta.get("name") or ""))
        found: dict[Address, Key] = {}
        for each in await list_addresses(self._client, self._kind, key):
            address = _address(each.spec.address)
            if address is not None:
                claim = each.spec.claim_ref.name if each.spec.claim_ref is not None else each.metadata.name
                found[address] = Key(each.metadata.namespace, claim)
        for address, chosen in reservations(meta.get("annotations") or {}).items():
            if address not in found and await self._exists(chosen.key, chosen.uid):
                found[address] = chosen.key
        return sorted(found.items(), key=lambda each: int(each[0]))

    async def _exists(self, key: Key, uid: str) -> bool:
        try:
            return (await self._client.get(IPAddressClaim, key)).metadata.uid == uid
        except NotFound:
            return False

    async def _namespace_goes(self, meta: Json) -> bool:
        """Everything in it goes in some order; finalizers keep the pool until its addresses are gone."""
        name = str(meta.get("namespace") or "")
        if not name:
            return False
        found = await find_object(self._client, _NAMESPACE, Key("", name))
        if found is None:
            return True
        return bool(found.metadata.get("deletionTimestamp"))


def _shared(own: AddressSet, other: Pool, named: str) -> Iterator[str]:
    try:
        shared = own.without(own.without(usable(other.spec)))
    except ValueError:
        return
    if shared and own.version == shared.version:
        yield f"spec.addresses: {shared} is in {named} as well: an address may be in one pool only"


# -- addresses and claims ----------------------------------------------------------------------------------------


def validate_address(obj: Json, old: Json | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    if old is not None:
        return _unchanged(spec, old, "immutable: delete its claim and create another one")
    causes = []
    address = _address(str(spec.get("address") or ""))
    if address is None:
        causes.append(Cause.invalid("spec.address", f"{spec.get('address')!r} is not a valid IP address"))
    prefix = spec.get("prefix")
    if address is not None and address.version == 4 and isinstance(prefix, int) and prefix > 32:
        causes.append(Cause.invalid("spec.prefix", f"{prefix} is too long for an IPv4 address: the maximum is 32"))
    gateway = str(spec.get("gateway") or "")
    if gateway and _address(gateway) is None:
        causes.append(Cause.invalid("spec.gateway", f"{gateway!r} is not a valid IP address"))
    return causes


class Claimed:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        """An address must come from the pool that its claim names, where there is a claim."""
        spec = obj.get("spec") or {}
        name = str((spec.get("claimRef") or {}).get("name") or "")
        if old is not None or not name:
            return []
        claim = await find_object(self._client, IPAddressClaim, Key(str(obj["metadata"].get("namespace") or ""), name))
        if claim is None:
            return []
        wanted, given = claim.spec.pool_ref, spec.get("poolRef") or {}
        if wanted is None or (wanted.api_group, wanted.kind, wanted.name) == tuple(
            given.get(each) for each in ("apiGroup", "kind", "name")
        ):
            return []
        message = f"IPAddressClaim {name} requests an address of {wanted.kind} {wanted.name}"
        return [Cause.invalid("spec.poolRef", f"{given.get('kind')} {given.get('name')}: {message}")]


def validate_claim(obj: Json, old: Json | None) -> list[Cause]:
    if old is None:
        return []
    return _unchanged(obj.get("spec") or {}, old, "immutable: delete the claim and create another one")


def _unchanged(spec: Json, old: Json, advice: str) -> list[Cause]:
    if (old.get("spec") or {}) == spec:
        return []
    return [Cause.forbidden("spec", advice)]


def _address(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
