"""Who owns what: owner references made, found, and put right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from homeport.api.meta import Object, OwnerReference, Resource, Unstructured
from homeport.client.protocol import Client, MergePatch, Write
from homeport.machinery.gvk import parse_api_version
from homeport.runtime.cache import key_of

AnyObject = Object | Unstructured
O = TypeVar("O", bound=AnyObject)
Reference = dict[str, Any]  # an owner reference as it stands on the wire


def owner_reference(obj: AnyObject, *, controller: bool = False, kind: Resource | None = None) -> Reference:
    """A reference to `obj`. `kind` is needed for an Unstructured that does not say what it is."""
    api_version, name = _typed(obj, kind)
    made: Reference = {"apiVersion": api_version, "kind": name, "name": key_of(obj).name, "uid": _uid(obj)}
    if controller:
        made |= {"controller": True, "blockOwnerDeletion": True}
    return made


def _typed(obj: AnyObject, kind: Resource | None) -> tuple[str, str]:
    if kind is None and isinstance(obj, Object):
        kind = type(obj).__resource__
    if kind is not None:
        return kind.api_version, kind.kind
    assert isinstance(obj, Unstructured)
    return str(obj["apiVersion"]), str(obj["kind"])


def _uid(obj: AnyObject) -> str:
    return obj.uid if isinstance(obj, Unstructured) else obj.metadata.uid


def owners(obj: AnyObject | Mapping[str, Any]) -> list[Reference]:
    """The owner references of any object, as dicts."""
    if isinstance(obj, Object):
        return [_wire(reference) for reference in obj.metadata.owner_references]
    return [dict(each) for each in (obj.get("metadata") or {}).get("ownerReferences") or ()]


def _wire(reference: OwnerReference) -> Reference:
    made: Reference = {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "name": reference.name,
        "uid": reference.uid,
    }
    if reference.controller is not None:
        made["controller"] = reference.controller
    if reference.block_owner_deletion is not None:
        made["blockOwnerDeletion"] = reference.block_owner_deletion
    return made


def controller_of(obj: AnyObject | Mapping[str, Any]) -> Reference | None:
    return next((owner for owner in owners(obj) if owner.get("controller")), None)


def group_kind(reference: Mapping[str, Any]) -> tuple[str, str]:
    return parse_api_version(str(reference["apiVersion"])).group, str(reference["kind"])


def owner_of_kind(obj: AnyObject | Mapping[str, Any], kind: Resource) -> Reference | None:
    """The owner of this kind, whatever its version; the controlling one if there are several."""
    found = [owner for owner in owners(obj) if group_kind(owner) == (kind.group, kind.kind)]
    return next((owner for owner in found if owner.get("controller")), found[0] if found else None)


def is_controlled_by(obj: AnyObject | Mapping[str, Any], owner: AnyObject) -> bool:
    found = controller_of(obj)
    return found is not None and found["uid"] == _uid(owner)


def is_owned_by(obj: AnyObject | Mapping[str, Any], owner: AnyObject) -> bool:
    return any(reference["uid"] == _uid(owner) for reference in owners(obj))


def adoptable(obj: AnyObject | Mapping[str, Any]) -> bool:
    """Nobody controls it and it is not going away."""
    if isinstance(obj, Object):
        return controller_of(obj) is None and not obj.metadata.deletion_timestamp
    return controller_of(obj) is None and not (obj.get("metadata") or {}).get("deletionTimestamp")


class OwnedElsewhere(Exception):
    """Somebody else controls the object."""


def rival_of(
    obj: AnyObject | Mapping[str, Any], wanted: Mapping[str, Any], *, without: Sequence[tuple[str, str]] = ()
) -> Reference | None:
    """The owner that forbids `wanted` to adopt the object: another controller, or an earlier owner of the same kind.

    Owners of the (group, kind) in `without` hand it over. An object of the same name is the same owner: restored
    objects have another uid.
    """
    found = [each for each in owners(obj) if group_kind(each) not in without]
    controller = next((each for each in found if each.get("controller")), None)
    first = next((each for each in found if group_kind(each) == group_kind(wanted)), None)
    holder = controller or first
    return None if holder is None or _identity(holder) == _identity(wanted) else holder


def _identity(reference: Mapping[str, Any]) -> tuple[str, str, str]:
    return (*group_kind(reference), str(reference["name"]))


def with_owner(
    references: Iterable[Mapping[str, Any]], wanted: Mapping[str, Any], *, without: Sequence[tuple[str, str]] = ()
) -> list[Reference]:
    """The references with `wanted` among them, and without owners of the (group, kind) in `without`.

    A reference to the same object is replaced: restored objects have another uid, upgraded ones another version.
    Raises OwnedElsewhere when another object is the controller and `wanted` would be a second.
    """
    left = [dict(each) for each in references if group_kind(each) not in without]
    places = [i for i, each in enumerate(left) if _identity(each) == _identity(wanted)]
    kept = [each for i, each in enumerate(left) if i not in places]
    if wanted.get("controller"):
        other = next((each for each in kept if each.get("controller")), None)
        if other is not None:
            raise OwnedElsewhere(
                f"it is controlled by {other['kind']} {other['name']!r}, so {wanted['kind']} {wanted['name']!r} "
                "can't own it: use another object, or remove the other owner"
            )
    kept.insert(places[0] if places else len(kept), dict(wanted))  # the first of a kind keeps its precedence
    return kept


def owner_patch(
    obj: AnyObject,
    wanted: Mapping[str, Any],
    *,
    without: Sequence[tuple[str, str]] = (),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Iterable[str] = (),
) -> dict[str, Any]:
    """The merge patch that gives `obj` this owner, and these labels, annotations and finalizers; {} when it has all.

    Lists are written whole, so the patch holds for this very state of the object and is refused for another.
    """
    meta = obj.metadata if isinstance(obj, Unstructured) else {}
    typed = None if isinstance(obj, Unstructured) else obj.metadata
    patch: dict[str, Any] = {}
    before = owners(obj)
    after = with_owner(before, wanted, without=without)
    if sorted(before, key=_uid_of) != sorted(after, key=_uid_of):
        patch["ownerReferences"] = after
    for name, values in (("labels", labels), ("annotations", annotations)):
        known = getattr(typed, name) if typed is not None else meta.get(name) or {}
        missing = {key: value for key, value in (values or {}).items() if known.get(key) != value}
        if missing:
            patch[name] = missing
    held = list(typed.finalizers if typed is not None else meta.get("finalizers") or ())
    missing_finalizers = [each for each in finalizers if each not in held]
    if missing_finalizers:
        patch["finalizers"] = held + missing_finalizers
    if not patch:
        return {}
    state = (typed.uid, typed.resource_version) if typed is not None else (meta.get("uid"), meta.get("resourceVersion"))
    return {"metadata": {"uid": state[0], "resourceVersion": state[1], **patch}}


def _uid_of(reference: Mapping[str, Any]) -> str:
    return str(reference.get("uid", ""))


async def ensure_owner(
    client: Client,
    kind: type[Object] | Resource,
    obj: O,
    wanted: Mapping[str, Any],
    options: Write,
    *,
    without: Sequence[tuple[str, str]] = (),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Iterable[str] = (),
) -> O:
    """The object with this owner (and labels, annotations, finalizers): as it is when it has them, else patched once.

    Raises Conflict when the object changed meanwhile, OwnedElsewhere when another object controls it.
    """
    patch = owner_patch(obj, wanted, without=without, labels=labels, annotations=annotations, finalizers=finalizers)
    if not patch:
        return obj
    same: Any = kind  # as the object is: typed, or a plain one
    written: O = await client.patch(same, key_of(obj), MergePatch(patch), options)
    return written
