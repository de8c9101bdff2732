"""Names and amounts of resources: what containers ask for, and what quotas limit."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from homeport.apiserver.kinds.check import dns_label, duplicate, forbidden, invalid, label_key, named, required
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause
from homeport.machinery.quantity import QuantityError, parse_quantity

_HUGE = "hugepages-"
_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED = frozenset({
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
})  # fmt: skip
QUOTA = _CONTAINER | _COUNTED | {
    "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage", "limits.cpu", "limits.memory",
    "limits.ephemeral-storage",
}  # fmt: skip
_STANDARD = QUOTA | {"storage"}


def is_quota_name(key: str) -> bool:
    return key in QUOTA or key.startswith((_HUGE, f"requests.{_HUGE}"))


def _is_native(key: str) -> bool:
    return "/" not in key or "kubernetes.io/" in key


def _is_extended(key: str) -> bool:
    return not _is_native(key) and not key.startswith("requests.") and not label_key(f"requests.{key}")


def _known(field: str, key: str) -> Iterator[Cause]:
    wrong = label_key(key)
    if wrong:
        yield invalid(field, key, wrong)
    elif "/" not in key and key not in _STANDARD and not is_quota_name(key):
        yield invalid(field, key, "must be a standard resource type or fully qualified")


def resource_name(field: str, key: str) -> Iterator[Cause]:
    """The name of a resource that a container can ask for."""
    yield from _known(field, key)
    if "/" not in key:
        if key not in _CONTAINER and not key.startswith(_HUGE):
            yield invalid(field, key, "must be a standard resource for containers")
    elif not _is_native(key) and not _is_extended(key):
        yield invalid(field, key, "doesn't follow extended resource name standard")


def quota_name(field: str, key: str) -> Iterator[Cause]:
    yield from _known(field, key)
    if "/" not in key and not is_quota_name(key):
        yield invalid(field, key, "must be a standard resource for quota")


def quantity_value(field: str, key: str, amount: str) -> Iterator[Cause]:
    value = parse_quantity(amount)
    if value.amount < 0:
        yield invalid(field, amount, "must be greater than or equal to 0")
    if (key in _COUNTED or _is_extended(key)) and value.amount != value.value:
        yield invalid(field, amount, "must be an integer")


def requirements(field: str, found: Json, claims: Collection[str] = ()) -> Iterator[Cause]:
    """What a container requests and is limited to. `claims`: the names that the Pod gives its ResourceClaims."""
    limits, requests = found.get("limits") or {}, found.get("requests") or {}
    for key, amount in limits.items():
        yield from _amount(f"{field}.limits[{key}]", key, amount)
    for key, amount in requests.items():
        yield from _amount(f"{field}.requests[{key}]", key, amount)
        yield from _request(field, key, amount, limits.get(key))
    keys = limits.keys() | requests.keys()
    if any(key.startswith(_HUGE) for key in keys) and not keys & {"cpu", "memory"}:
        yield forbidden(field, "HugePages require cpu or memory")
    yield from _claims(f"{field}.claims", found.get("claims") or [], claims)


def _request(field: str, key: str, amount: str, limit: str | None) -> Iterator[Cause]:
    overcommit = _is_native(key) and not key.startswith(_HUGE)
    if limit is None:
        if not overcommit:
            yield required(f"{field}.limits", "Limit must be set for non overcommitable resources")
    elif not overcommit and parse_quantity(amount) != parse_quantity(limit):
        yield invalid(f"{field}.requests", amount, f"must be equal to {key} limit of {limit}")
    elif parse_quantity(limit) < parse_quantity(amount):
        yield invalid(f"{field}.requests", amount, f"must be less than or equal to {key} limit of {limit}")


def _amount(field: str, key: str, amount: str) -> Iterator[Cause]:
    yield from resource_name(field, key)
    yield from quantity_value(field, key, amount)
    if key.startswith(_HUGE) and not _divisible(key, amount):
        yield invalid(field, amount, f"{amount} is not positive integer multiple of {key}")


def _divisible(key: str, amount: str) -> bool:
    try:
        page = parse_quantity(key.removeprefix(_HUGE))
    except QuantityError:
        return False
    return page.amount > 0 and page.amount == page.value and parse_quantity(amount).value % page.value == 0


def _claims(field: str, found: list[Json], known: Collection[str]) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, claim in enumerate(found):
        subfield, name, request = f"{field}[{i}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            yield required(subfield)
            continue
        key = f"{name}/{request}" if request else name
        if request and name not in seen:
            yield from named(f"{subfield}.request", request, dns_label)
        if name in seen:
            yield duplicate(subfield, name)
        elif key in seen or (not request and any(each.startswith(f"{name}/") for each in seen)):
            yield duplicate(subfield, key)
        seen.add(key)
        if name not in known:
            listed = f": {', '.join(sorted(known))}" if known else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{listed}"
            yield Cause("FieldValueNotFound", f'Not found: "{name}": {detail}', subfield)
